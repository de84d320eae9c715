//! Recordings of situations, made by `cargo bench --bench situations -- --record tests/fixtures/doctor`: the program still
//! says of each what it said then, and what it says is still true.
//!
//! The truth of each is beside its recording. The benchmark wrote it when it made the situation, and it judges there as here.

#[path = "bench/situations/judge.rs"]
#[allow(dead_code)]
mod judge;

use judge::{Said, Scene, Truth, judge};
use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Deserialize)]
struct Expected {
    truth: Truth,
    scene: Scene,
}

fn recordings() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/doctor");
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|file| file.extension().is_some_and(|e| e == "iotop")).collect();
    files.sort();
    files
}

/// The findings at the end of a recording.
fn findings_at_end(file: &Path) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iotop-plus"));
    let out = command.arg("replay").arg(file).args(["--format", "json", "--pane", "findings"]).output().unwrap();
    assert!(out.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    let sample: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    sample["findings"].clone()
}

#[test]
fn findings_of_recorded_situations_are_right_and_stay_the_same() {
    let (mut sentences, mut wrong) = (String::new(), Vec::new());
    for file in recordings() {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let expected = std::fs::read_to_string(file.with_extension("json")).unwrap();
        let Expected { truth, scene } = serde_json::from_str(&expected).unwrap();
        let score = judge(&truth, &Said::all(&findings_at_end(&file)), &scene);
        sentences.push_str(&format!("{name}\n"));
        score.said.iter().for_each(|said| sentences.push_str(&format!("    {said}\n")));
        if score.word() != "right" {
            wrong.push(format!("{name}: {} {:?} {:?}", score.word(), score.wrong, score.missing));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(!sentences.is_empty());
    insta::assert_snapshot!("findings_of_situations", sentences);
}
