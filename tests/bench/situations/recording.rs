//! Small recordings of situations, each with its truth, for tests/situations.rs.

use crate::judge::{Said, Scene, Truth, judge};
use crate::program;
use crate::run::Outcome;
use crate::trimmed::{Kept, trim};
use serde::Serialize;
use std::path::Path;

/// What the test needs besides the recording.
#[derive(Serialize)]
struct Expected<'a> {
    truth: &'a Truth,
    scene: &'a Scene,
}

/// Trims the recording of a situation that was right to `to`, unless the program no longer finds the same in it.
pub fn keep(outcome: &Outcome, raw: &Path, to: &Path) {
    let name = outcome.situation.name;
    if let Err(why) = try_keep(outcome, raw, to) {
        let _ = std::fs::remove_file(to.join(format!("{name}.iotop")));
        println!("{name:<32} no recording: {why}");
    }
}

fn try_keep(outcome: &Outcome, raw: &Path, to: &Path) -> Result<(), String> {
    let judged = outcome.result.as_ref().map_err(Clone::clone)?;
    let (truth, scene, name) = (&judged.truth, &judged.scene, outcome.situation.name);
    std::fs::create_dir_all(to).map_err(|err| err.to_string())?;
    let [from, file] = [raw, to].map(|dir| dir.join(format!("{name}.iotop")));
    let kept = Kept {
        devices: scene.disks.clone(),
        programs: scene
            .names
            .iter()
            .chain(&truth.culprits)
            .chain(&truth.victims)
            .chain(&truth.others)
            .cloned()
            .collect(),
        mounts: vec!["/mnt-".into()],
        facts: true,
        renames: own_names(),
        ..Kept::default()
    };
    trim(&from, &file, kept).map_err(|err| format!("{}: {err}", from.display()))?;
    let last = program::replay(&file)?.pop().ok_or("no sample")?;
    let score = judge(truth, &Said::all(&last), scene);
    if score.word() != "right" {
        return Err(format!("trimmed it is {}: {:?} {:?}", score.word(), score.wrong, score.missing));
    }
    let text = serde_json::to_string_pretty(&Expected { truth, scene }).map_err(|err| err.to_string())?;
    std::fs::write(to.join(format!("{name}.json")), text + "\n").map_err(|err| err.to_string())
}

/// What the recordings are not to have of where the benchmark ran: its control group and its file.
fn own_names() -> Vec<(String, String)> {
    let group = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = group.lines().filter_map(|line| line.rsplit(':').next()).find(|path| path.len() > 1);
    let file = std::env::current_exe().ok();
    let file = file.as_ref().and_then(|file| file.to_str());
    let pairs = [(group, "/"), (file, "situations")];
    pairs.into_iter().filter_map(|(from, to)| Some((from?.to_owned(), to.to_owned()))).collect()
}
