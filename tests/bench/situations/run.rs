//! Runs situations: some at a time, some alone, some in guests, and those that were not right once more.

use crate::judge::{Said, Scene, Score, Truth, judge};
use crate::list::{self, Place, Situation};
use crate::stage::Stage;
use crate::{Args, guest, interrupt, program, recording, report};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// How long a load runs before the program looks at it.
const WARM_UP: Duration = Duration::from_secs(2);

/// Disks of all situations so far.
static PAST_DISKS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// How a situation went.
#[derive(Debug, Clone)]
pub struct Judged {
    pub truth: Truth,
    pub scene: Scene,
    pub score: Score,
}

/// A situation and its result.
pub struct Outcome {
    pub situation: &'static Situation,
    /// `Err`: why it was skipped.
    pub result: Result<Judged, String>,
    /// The score of a first run that was not right.
    pub first: Option<Score>,
}

impl Outcome {
    pub fn new(situation: &'static Situation, result: Result<Judged, String>) -> Self {
        Self { situation, result, first: None }
    }

    pub fn is_right(&self) -> bool {
        self.result.as_ref().is_ok_and(|judged| judged.score.word() == "right")
    }
}

/// Runs them all. The outcomes have the order of the list.
pub fn all(wanted: &[&'static Situation], args: &Args) -> Vec<Outcome> {
    let raw = args.record.as_ref().map(|_| tempfile::tempdir().expect("a directory for recordings"));
    let raw: Option<PathBuf> = raw.as_ref().map(|dir| dir.path().to_owned());
    let runner = Runner { before: before(), raw: raw.as_deref(), args };
    let at = |place: Place| wanted.iter().copied().filter(|s| s.place == place).collect::<Vec<_>>();
    let mut outcomes = runner.lanes(&at(Place::Machine), args.lanes);
    outcomes.extend(runner.lanes(&at(Place::Alone), 1));
    outcomes.extend(runner.guests(&at(Place::Guest)));
    for outcome in &mut outcomes {
        let lacks = outcome.result.as_ref().is_err_and(|why| why.starts_with("needs"));
        if outcome.is_right() || lacks || interrupt::is_over() {
            continue;
        }
        println!("again, alone:");
        let second = match outcome.situation.place {
            Place::Guest => runner.guests(&[outcome.situation]).pop(),
            _ => runner.lanes(&[outcome.situation], 1).pop(),
        };
        if let Some(Outcome { result: Ok(judged), .. }) = second {
            outcome.first = outcome.result.as_ref().ok().map(|first| first.score.clone());
            outcome.result = Ok(judged);
        }
    }
    if let (Some(raw), Some(to)) = (raw.as_deref(), args.record.as_deref()) {
        outcomes.iter().filter(|outcome| outcome.is_right()).for_each(|outcome| recording::keep(outcome, raw, to));
    }
    outcomes.sort_by_key(|outcome| wanted.iter().position(|s| s.name == outcome.situation.name));
    outcomes
}

struct Runner<'a> {
    before: Vec<(String, String)>,
    /// Where whole recordings are kept.
    raw: Option<&'a Path>,
    args: &'a Args,
}

impl Runner<'_> {
    /// Runs `lanes` of these at a time.
    fn lanes(&self, wanted: &[&'static Situation], lanes: usize) -> Vec<Outcome> {
        let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..lanes.clamp(1, wanted.len().max(1)) {
                scope.spawn(|| {
                    while let Some(situation) = wanted.get(next.fetch_add(1, Relaxed)).filter(|_| !interrupt::is_over())
                    {
                        let outcome = Outcome::new(situation, one(situation, &self.before, self.raw));
                        report::print(&outcome, self.args.verbose);
                        outcomes.lock().expect("no lane panics with it").push(outcome);
                    }
                });
            }
        });
        outcomes.into_inner().expect("no lane panics with it")
    }

    fn guests(&self, wanted: &[&'static Situation]) -> Vec<Outcome> {
        let outcomes = guest::run(wanted, self.raw);
        outcomes.iter().for_each(|outcome| report::print(outcome, self.args.verbose));
        outcomes
    }
}

/// Makes a situation and judges what the program says. Its whole recording is `NAME.iotop` in the directory.
pub fn one(situation: &Situation, before: &[(String, String)], raw: Option<&Path>) -> Result<Judged, String> {
    let mut stage = Stage::new()?;
    let truth = (situation.make)(&mut stage)?;
    std::thread::sleep(WARM_UP);
    let mut names = stage.names();
    let file = raw.map(|dir| dir.join(format!("{}.iotop", situation.name)));
    if let Some(file) = &file {
        // One of a first run that was not right.
        let _ = std::fs::remove_file(file);
    }
    let incidents = program::look(situation.secs, file.as_deref())?;
    let disks = stage.disks.clone();
    if list::ends_its_boot(situation) {
        std::mem::forget(stage);
    } else {
        drop(stage);
    }
    names.extend(disks.iter().cloned());
    let mut all_disks = PAST_DISKS.lock().map_err(|err| err.to_string())?;
    let past_disks = all_disks.iter().filter(|disk| !disks.contains(disk)).cloned().collect();
    all_disks.extend(disks.iter().cloned());
    drop(all_disks);
    let scene = Scene { names, disks, is_alone: guest::is_here(), before: before.to_vec(), past_disks };
    let score = judge(&truth, &Said::all(&incidents), &scene);
    Ok(Judged { truth, scene, score })
}

/// Rules and subjects that this machine has without any situation.
pub fn before() -> Vec<(String, String)> {
    let incidents = program::look(8.0, None).unwrap_or_default();
    let findings = incidents.as_array().into_iter().flatten().filter_map(|story| story["findings"].as_array());
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    findings.flatten().map(|f| (text(&f["rule"]), text(&f["subject"]["name"]))).collect()
}
