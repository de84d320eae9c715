//! The binary records and replays: files, their safety, formats, and recordings of earlier versions.

use serde_json::Value;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const BIN: &str = env!("CARGO_BIN_EXE_iotop-plus");

fn run(args: &[&str]) -> Output {
    Command::new(BIN).args(args).stdin(Stdio::null()).output().unwrap()
}

fn record(file: &Path, more: &[&str]) -> Output {
    let mut args = vec!["record", file.to_str().unwrap(), "-d", "0.1", "--for", "1"];
    args.extend(more);
    run(&args)
}

fn replay(file: &Path, more: &[&str]) -> Output {
    let mut args = vec!["replay", file.to_str().unwrap()];
    args.extend(more);
    run(&args)
}

fn stderr(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

fn lines(out: &Output) -> Vec<Value> {
    assert!(out.status.success(), "{out:?}");
    let text = std::str::from_utf8(&out.stdout).unwrap();
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/recordings").join(name)
}

#[test]
fn a_recording_is_private_and_can_be_replayed_in_every_format() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.iotop");
    let out = record(&file, &[]);
    assert!(out.status.success(), "{out:?}");
    assert!(stderr(&out).contains("samples over"), "{}", stderr(&out));
    assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    let all = lines(&replay(&file, &["--format", "json"]));
    assert!(all.len() > 2, "{}", all.len());
    for object in &all {
        assert_eq!(object["schema"], 1);
        assert!(object["cpu"].is_object() && object["processes"].is_array());
    }
    let few = lines(&replay(&file, &["--format", "json", "--pane", "devices", "-n", "2"]));
    assert!(few.len() == 2 && few[0].get("processes").is_none());
    for (format, has) in [("text", "Devices"), ("markdown", "| Device |")] {
        let out = replay(&file, &["--format", format, "-n", "1"]);
        assert!(String::from_utf8_lossy(&out.stdout).contains(has), "{format}");
    }
    for (pane, name) in [("devices", "tps"), ("processes", "pid"), ("memory", "writeback.dirty_bytes"), ("kernel", "")]
    {
        let out = replay(&file, &["--format", "csv", "--pane", pane]);
        assert!(out.status.success(), "{out:?}");
        let text = String::from_utf8(out.stdout).unwrap();
        let head = text.lines().next().unwrap_or_default();
        assert!(pane == "kernel" || head.split(',').any(|n| n == name), "{pane}: {head}");
    }
    let all_panes = replay(&file, &["--format", "csv"]);
    assert_eq!(all_panes.status.code(), Some(2), "{}", stderr(&all_panes));
}

#[test]
fn a_time_range_limits_the_replay() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.iotop");
    assert!(record(&file, &[]).status.success());
    let all = lines(&replay(&file, &["--format", "json"]));
    let at = |n: usize| all[n]["time"].as_str().unwrap().to_owned();
    let last = all.len() - 1;
    let end = lines(&replay(&file, &["--format", "json", "--from", "-0"]));
    assert_eq!((end.len(), &end[0]["time"]), (1, &all[last]["time"]));
    let none = replay(&file, &["--format", "json", "--to", "2001-01-01T00:00:00Z"]);
    assert!(none.status.success() && none.stdout.is_empty());
    let wrong = replay(&file, &["--format", "json", "--from", "noon"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("14:35"), "{} {}", stderr(&wrong), at(0));
}

#[test]
fn existing_files_and_link_targets_are_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let (old, link, victim) = (dir.path().join("old"), dir.path().join("link"), dir.path().join("victim"));
    std::fs::write(&old, "precious").unwrap();
    std::fs::write(&victim, "precious").unwrap();
    symlink(&victim, &link).unwrap();
    let dangling = dir.path().join("dangling");
    symlink(dir.path().join("made-by-us"), &dangling).unwrap();
    for path in [&old, &link, &dangling] {
        let out = record(path, &[]);
        assert_eq!(out.status.code(), Some(1), "{out:?}");
        assert!(stderr(&out).contains("--replace"), "{}", stderr(&out));
    }
    assert!(!dir.path().join("made-by-us").exists());
    assert_eq!(std::fs::read(&old).unwrap(), b"precious");
    // With --replace it replaces the file or the link itself, never the target of a link.
    for path in [&old, &link] {
        assert!(record(path, &["--replace"]).status.success());
        assert!(std::fs::symlink_metadata(path).unwrap().is_file());
        assert!(!lines(&replay(path, &["--format", "json"])).is_empty());
    }
    assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
    let out = record(Path::new("/dev/null"), &["--replace"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(stderr(&out).contains("not a regular file"), "{}", stderr(&out));
    // No partial file is left.
    let names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
}

#[test]
fn root_records_as_the_owner_of_the_directory() {
    use std::fs::{Permissions, create_dir, set_permissions};
    use std::os::unix::fs::{PermissionsExt, chown};
    let name = "root_records_as_the_owner_of_the_directory";
    if !rustix::process::geteuid().is_root() {
        return println!("skipped {name}: needs root");
    }
    let dir = tempfile::tempdir().unwrap();
    let (home, private) = (dir.path().join("home"), dir.path().join("private"));
    for (path, mode) in [(dir.path(), 0o755), (&home, 0o755), (&private, 0o700)] {
        let _ = create_dir(path);
        set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    chown(&home, Some(12345), Some(12345)).unwrap();
    symlink(&private, home.join("planted")).unwrap();
    assert!(record(&home.join("r"), &[]).status.success());
    assert_eq!(std::fs::metadata(home.join("r")).unwrap().uid(), 12345);
    let out = record(&home.join("planted/r"), &[]);
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    assert_eq!(std::fs::read_dir(&private).unwrap().count(), 0);
}

/// The process is stopped before its first sample until its time is up, as on a machine under load.
#[test]
fn a_recording_that_starts_late_still_holds_a_sample() {
    use rustix::process::{Pid, Signal, kill_process};
    use std::io::{BufRead, BufReader, Read};
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("old");
    std::fs::write(&file, "old").unwrap();
    let args = ["record", file.to_str().unwrap(), "-d", "0.1", "--for", "1", "--replace"];
    let mut child = Command::new(BIN).args(args).stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut String::new()).unwrap();
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::STOP).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1100));
    kill_process(pid, Signal::CONT).unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success(), "{rest}");
    assert!(!lines(&replay(&file, &["--format", "json"])).is_empty());
}

#[test]
fn an_unwritable_path_is_reported_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let out = record(&dir.path().join("no/such/dir/f"), &[]);
    assert_eq!(out.status.code(), Some(1));
    assert!(stderr(&out).contains("no such file or directory"), "{}", stderr(&out));
    let out = record(Path::new("/proc/f"), &[]);
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
}

#[test]
fn a_standard_error_that_takes_nothing_does_not_end_a_recording() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("f");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let args = ["record", file.to_str().unwrap(), "-d", "0.1", "--for", "1"];
    let status = Command::new(BIN).args(args).stdin(Stdio::null()).stderr(full).status().unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(!lines(&replay(&file, &["--format", "json"])).is_empty());
}

/// Needs root and tmpfs, for a full file system.
#[test]
fn a_full_disk_keeps_the_recording_and_is_reported() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("SKIP a_full_disk_keeps_what_was_recorded_and_says_so: needs root");
    }
    let dir = tempfile::tempdir().unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=128k", "tmpfs"]).arg(dir.path()).status();
    if !mounted.is_ok_and(|s| s.success()) {
        return eprintln!("SKIP a_full_disk_keeps_what_was_recorded_and_says_so: cannot mount tmpfs");
    }
    let file = dir.path().join("f");
    std::fs::write(dir.path().join("ballast"), vec![7; 100 << 10]).unwrap();
    let old = dir.path().join("old");
    std::fs::write(&old, "precious").unwrap();
    let out = run(&["record", file.to_str().unwrap(), "-d", "0.1", "--for", "60"]);
    let replaced = record(&old, &["--replace"]);
    let kept = std::fs::read(&old).unwrap();
    let readable = replay(&file, &["--format", "json"]);
    let exists = file.exists();
    let _ = Command::new("umount").arg(dir.path()).status();
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    assert!(stderr(&out).contains("no space left") && stderr(&out).contains("free some space"), "{}", stderr(&out));
    // Either not even one frame had room and no file is left, or all complete frames can be read.
    assert!(!exists || readable.status.success() || stderr(&readable).contains("no complete frame"), "{readable:?}");
    assert!(replaced.status.success() || kept == b"precious");
}

#[test]
fn max_size_and_rotation_are_respected() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().join("box");
    let theirs = dir.path().join("box.0000");
    std::fs::write(&theirs, "not ours").unwrap();
    let max = 128 << 10;
    let args = ["record", base.to_str().unwrap(), "-d", "0.1", "--for", "4", "--max-size", "128K", "--rotate", "2"];
    let out = run(&args);
    assert!(out.status.success(), "{out:?}");
    let mut names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().map(|e| e.path()).collect();
    names.sort();
    assert_eq!(std::fs::read(&theirs).unwrap(), b"not ours");
    assert!(names.len() <= 3, "{names:?}");
    for file in names.iter().filter(|n| **n != theirs) {
        let len = std::fs::metadata(file).unwrap().len();
        let all = lines(&replay(file, &["--format", "json"]));
        assert!(!all.is_empty() && (len <= max || all.len() == 1), "{file:?}: {len} bytes, {} samples", all.len());
    }
    let small = run(&["record", base.to_str().unwrap(), "--max-size", "1K"]);
    assert_eq!(small.status.code(), Some(2), "{}", stderr(&small));
}

#[test]
fn a_file_that_is_no_recording_is_rejected_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("f");
    std::fs::write(&file, b"\x1b]0;owned\x07 iotop").unwrap();
    for path in [file.as_path(), dir.path(), Path::new("/dev/null"), &dir.path().join("none")] {
        for format in [&["--format", "json"][..], &[]] {
            let out = replay(path, format);
            assert_eq!(out.status.code(), Some(1), "{path:?}: {out:?}");
            assert!(!stderr(&out).contains('\x1b') && stderr(&out).starts_with("iotop-plus: "), "{}", stderr(&out));
        }
    }
}

/// Whether `now` contains `then`. Names, and sources of which values are unavailable, may be added. Texts of findings and
/// reasons are not compared: later versions may word them better.
fn contains_value(name: &str, now: &Value, then: &Value) -> bool {
    match (now, then) {
        _ if matches!(name, "why" | "try" | "evidence") => now.is_null() == then.is_null(),
        (Value::Object(now), Value::Object(then)) => {
            then.iter().all(|(key, value)| now.get(key).is_some_and(|v| contains_value(key, v, value)))
        }
        (Value::Array(now), Value::Array(then)) if name == "unavailable" => {
            then.iter().all(|gap| now.iter().any(|other| other["source"] == gap["source"]))
        }
        (Value::Array(now), Value::Array(then)) => {
            now.len() == then.len() && now.iter().zip(then).all(|(a, b)| contains_value(name, a, b))
        }
        _ => now == then,
    }
}

/// Recordings of every earlier version replay as the expected output beside them.
#[test]
fn recordings_of_older_versions_replay_the_same() {
    let mut seen = 0;
    for entry in std::fs::read_dir(fixture("")).unwrap().flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|e| e != "iotop") {
            continue;
        }
        seen += 1;
        let output = replay(&path, &["--format", "json"]);
        assert!(output.status.success(), "{path:?}: {}", stderr(&output));
        let kept = std::fs::read_to_string(path.with_extension("jsonl")).unwrap();
        let output = String::from_utf8(output.stdout).unwrap();
        for (n, (a, b)) in output.lines().zip(kept.lines()).enumerate() {
            let (a, b): (Value, Value) = (serde_json::from_str(a).unwrap(), serde_json::from_str(b).unwrap());
            for (key, value) in b.as_object().unwrap() {
                assert!(contains_value(key, &a[key], value), "{path:?}, sample {n}, {key}: {} not {value}", a[key]);
            }
        }
        assert_eq!(output.lines().count(), kept.lines().count());
    }
    assert!(seen > 0);
}
