//! An experiment as the screen follows it: what its child said, the rounds so far, dirty pages of both arms.

use crate::experiment::message::{ExperimentMessage, ExperimentProgress, RoundPhase};
use crate::experiment::report::{DirtyPagesPoint, DirtyThresholds, ExperimentReport, Round};
use crate::experiment::spec::{Arm, ExperimentSpec};

/// Notes kept.
const MAX_NOTES: usize = 50;
/// Points kept of the round under way; of more every other one goes.
const MAX_POINTS: usize = 960;
/// Without a word of the child for so long something is wrong, ms: it speaks several times a second but while
/// pages drain.
const SILENT_AFTER_MS: u64 = 5000;

/// An experiment of this session.
#[derive(Debug)]
pub struct TrackedExperiment {
    /// Which.
    pub number: u64,
    /// What was confirmed.
    pub spec: ExperimentSpec,
    /// Its process, once it is there.
    pub pid: Option<u32>,
    /// The last progress.
    pub progress: Option<ExperimentProgress>,
    /// Rounds that are over, of the experiment and of the control.
    pub rounds: [Vec<Round>; 2],
    /// Dirty pages in the round under way.
    pub points: Vec<DirtyPagesPoint>,
    /// The arms' thresholds, as far as they have been in force.
    pub thresholds: [DirtyThresholds; 2],
    /// What its child had to say, newest last.
    pub notes: Vec<String>,
    /// Boot clock of the last word of its child, ns.
    pub last_message_ns: u64,
    /// It was told to end.
    pub is_stopping: bool,
    /// How it ended.
    pub ending: Option<ExperimentEnding>,
    /// Its name in the store, or why it is not there; `None` while it is being kept.
    pub stored: Option<Result<String, String>>,
}

/// How it ended.
#[derive(Debug)]
pub enum ExperimentEnding {
    /// With a report, of all or of a part.
    Report(Box<ExperimentReport>),
    /// Not begun.
    Refused(String),
    /// Without a report.
    Failed(String),
}

impl TrackedExperiment {
    /// Nothing heard yet.
    pub fn new(number: u64, spec: ExperimentSpec, now_ns: u64) -> Self {
        Self {
            number,
            spec,
            pid: None,
            progress: None,
            rounds: Default::default(),
            points: Vec::new(),
            thresholds: Default::default(),
            notes: Vec::new(),
            last_message_ns: now_ns,
            is_stopping: false,
            ending: None,
            stored: None,
        }
    }

    /// Takes in a message of the child.
    pub fn apply_message(&mut self, message: ExperimentMessage, now_ns: u64) {
        self.last_message_ns = now_ns;
        match message {
            ExperimentMessage::Progress(p) => self.apply_progress(p),
            ExperimentMessage::Round(round) => {
                let control = self.progress.as_ref().is_some_and(|p| p.is_control);
                self.rounds[usize::from(control)].push(*round);
                self.points.clear();
            }
            ExperimentMessage::Note(note) => {
                if self.notes.len() < MAX_NOTES {
                    self.notes.push(crate::sanitize::sanitize(note));
                }
            }
            ExperimentMessage::Refused(refusal) => self.ending = Some(ExperimentEnding::Refused(refusal.to_string())),
            ExperimentMessage::Failed(why) => self.ending = Some(ExperimentEnding::Failed(why)),
            ExperimentMessage::Report(report) => self.ending = Some(ExperimentEnding::Report(report)),
        }
    }

    fn apply_progress(&mut self, p: ExperimentProgress) {
        if self.progress.as_ref().is_none_or(|old| old.round != p.round) {
            self.points.clear();
        }
        if p.phase == RoundPhase::Work {
            self.thresholds[p.arm.index()] = p.thresholds;
        }
        self.points.extend(p.dirty_point);
        if self.points.len() >= MAX_POINTS {
            self.points = self.points.iter().step_by(2).copied().collect();
        }
        self.progress = Some(p);
    }

    /// The rounds that are over of what is going on now.
    pub fn finished_rounds(&self) -> &[Round] {
        &self.rounds[usize::from(self.progress.as_ref().is_some_and(|p| p.is_control))]
    }

    /// What there is of an arm to be drawn: the round under way once it has been seen, else its last one.
    pub fn latest_points(&self, arm: Arm) -> Option<(&[DirtyPagesPoint], String)> {
        let under_way = self.progress.as_ref().filter(|p| p.arm == arm && !self.points.is_empty());
        if let Some(p) = under_way {
            return Some((&self.points, format!("round {}, now", p.round)));
        }
        let last = self.finished_rounds().iter().rev().find(|r| r.arm == arm)?;
        Some((&last.dirty_points, format!("round {}", last.number)))
    }

    /// How far all of it is, 0 to 1.
    pub fn fraction_done(&self) -> f64 {
        let Some(p) = &self.progress else { return 0.0 };
        let within = p.bench.as_ref().filter(|_| p.phase == RoundPhase::Work);
        let within = within.filter(|b| b.measurement_index.is_some()).and_then(|b| b.fraction_done).unwrap_or(0.0);
        (f64::from(p.round.saturating_sub(1)) + within.clamp(0.0, 1.0)) / f64::from(p.total_rounds.max(1))
    }

    /// `experiment txlog 3/8 B 42 %`.
    pub fn status_text(&self) -> String {
        self.status_text_at(self.progress.as_ref())
    }

    /// The same for a progress that has not been taken in yet.
    pub fn status_text_at(&self, progress: Option<&ExperimentProgress>) -> String {
        let name = format!("experiment {}", self.spec.plan.profile);
        let Some(p) = progress else { return format!("{name} starting") };
        if self.is_stopping {
            return format!("{name} ending");
        }
        let done = p.bench.as_ref().filter(|_| p.phase == RoundPhase::Work).and_then(|b| b.fraction_done);
        let done = done.map_or(String::new(), |d| format!(" {:.0} %", d * 100.0));
        format!("{name} {}/{} {}{done}", p.round, p.total_rounds, p.arm.name())
    }

    /// What hangs, in words.
    pub fn blocked_text(&self, now_ns: u64) -> Option<String> {
        let pid = self.pid.map_or(String::new(), |pid| format!(" (process {pid})"));
        let silent = now_ns.saturating_sub(self.last_message_ns) / 1_000_000;
        let draining = self.progress.as_ref().is_some_and(|p| p.phase == RoundPhase::Drain);
        if silent > SILENT_AFTER_MS {
            let limit = self.spec.drain_limit_ms / 1000;
            return Some(match draining {
                true => format!("draining for {} s; given up at {limit} s", silent / 1000),
                false => format!("the conducting process{pid} has said nothing for {} s", silent / 1000),
            });
        }
        let bench = self.progress.as_ref().and_then(|p| p.bench.as_ref());
        let still = bench.map_or(0, |b| b.idle_ms);
        (still >= 1000).then(|| {
            let limit = self.spec.plan.stall_limit_ms / 1000;
            format!("BLOCKED: nothing has completed for {} s; given up at {limit} s", still / 1000)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::message::BenchProgress;

    fn progress(round: u32, arm: Arm, phase: RoundPhase, at_ms: u64) -> ExperimentMessage {
        let bench = BenchProgress { measurement_index: Some(0), fraction_done: Some(0.5), ..BenchProgress::default() };
        let point = DirtyPagesPoint { at_ms, dirty_bytes: 1 << 20, writeback_bytes: 0 };
        let work = phase == RoundPhase::Work;
        ExperimentMessage::Progress(ExperimentProgress {
            is_control: false,
            round,
            total_rounds: 8,
            arm,
            phase,
            bench: work.then_some(bench),
            dirty_point: work.then_some(point),
            thresholds: DirtyThresholds { background: work.then_some(7), limit: None },
        })
    }

    #[test]
    fn progress_and_the_latest_points_of_each_arm_are_tracked() {
        let mut run = TrackedExperiment::new(1, ExperimentSpec::default(), 0);
        assert_eq!(run.status_text(), "experiment randrw starting");
        run.apply_message(progress(1, Arm::A, RoundPhase::Drain, 0), 1);
        assert_eq!((run.status_text().as_str(), run.fraction_done()), ("experiment randrw 1/8 A", 0.0));
        run.apply_message(progress(1, Arm::A, RoundPhase::Work, 250), 1);
        assert_eq!((run.status_text().as_str(), run.fraction_done()), ("experiment randrw 1/8 A 50 %", 0.0625));
        assert_eq!(run.latest_points(Arm::A).map(|(p, about)| (p.len(), about)), Some((1, "round 1, now".into())));
        assert!(run.latest_points(Arm::B).is_none());
        run.apply_message(progress(2, Arm::B, RoundPhase::Drain, 0), 1);
        assert!(run.points.is_empty() && run.thresholds[0].background == Some(7));
        run.is_stopping = true;
        assert_eq!(run.status_text(), "experiment randrw ending");
    }

    #[test]
    fn points_of_a_long_round_stay_bounded() {
        let mut run = TrackedExperiment::new(1, ExperimentSpec::default(), 0);
        for n in 0..10_000 {
            run.apply_message(progress(1, Arm::A, RoundPhase::Work, n * 250), 1);
        }
        assert!((MAX_POINTS / 2 - 1..MAX_POINTS).contains(&run.points.len()), "{}", run.points.len());
        assert!(run.points.windows(2).all(|w| w[0].at_ms < w[1].at_ms));
    }

    #[test]
    fn blocked_text_distinguishes_silence_and_draining() {
        let mut run = TrackedExperiment::new(1, ExperimentSpec::default(), 0);
        run.apply_message(progress(1, Arm::A, RoundPhase::Drain, 0), 0);
        assert_eq!(run.blocked_text(2_000_000_000), None);
        assert!(run.blocked_text(9_000_000_000).unwrap().contains("draining for 9 s; given up at 300 s"));
        run.apply_message(progress(1, Arm::A, RoundPhase::Work, 0), 9_000_000_000);
        assert!(run.blocked_text(19_000_000_000).unwrap().contains("said nothing for 10 s"));
    }
}
