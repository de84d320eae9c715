//! An experiment under way: messages of its child process, finished rounds, dirty pages of both arms.

use crate::experiment::message::{ExperimentMessage, ExperimentProgress, RoundPhase};
use crate::experiment::report::{DirtyPagesPoint, DirtyThresholds, ExperimentReport, Round};
use crate::experiment::spec::{Arm, ExperimentSpec};

/// Maximum number of notes stored.
const MAX_NOTES: usize = 50;
/// Maximum number of points of the current round; then every second one is dropped.
const MAX_POINTS: usize = 960;
/// Time without a message after which the child process is shown as hung, ms. It sends several a second, except while
/// dirty pages are written back.
const SILENT_AFTER_MS: u64 = 5000;

/// An experiment of this session.
#[derive(Debug)]
pub struct TrackedExperiment {
    /// Number of the experiment.
    pub number: u64,
    /// The confirmed specification.
    pub spec: ExperimentSpec,
    /// PID of the child process, once it has started.
    pub pid: Option<u32>,
    /// The last progress message.
    pub progress: Option<ExperimentProgress>,
    /// Finished rounds of the experiment and of the control.
    pub rounds: [Vec<Round>; 2],
    /// Dirty pages in the current round.
    pub points: Vec<DirtyPagesPoint>,
    /// Dirty thresholds of both arms, as far as they have been in effect.
    pub thresholds: [DirtyThresholds; 2],
    /// Notes of the child process, newest last.
    pub notes: Vec<String>,
    /// Time of the last message, CLOCK_BOOTTIME in ns.
    pub last_message_ns: u64,
    /// Whether it was asked to end.
    pub is_stopping: bool,
    /// How it ended; `None` while it runs.
    pub ending: Option<ExperimentEnding>,
    /// Name of the stored report, or why storing failed; `None` until then.
    pub stored: Option<Result<String, String>>,
}

/// How an experiment ended.
#[derive(Debug)]
pub enum ExperimentEnding {
    /// With a report, complete or partial.
    Report(Box<ExperimentReport>),
    /// Refused before the start.
    Refused(String),
    /// Without a report.
    Failed(String),
}

impl TrackedExperiment {
    /// An experiment whose child has not sent anything yet.
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

    /// Handles a message of the child process.
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

    /// The finished rounds of the current part: the experiment or the control.
    pub fn finished_rounds(&self) -> &[Round] {
        &self.rounds[usize::from(self.progress.as_ref().is_some_and(|p| p.is_control))]
    }

    /// The points to draw for an arm, with a label: those of the current round if it has any, else of the arm's last round.
    pub fn latest_points(&self, arm: Arm) -> Option<(&[DirtyPagesPoint], String)> {
        let under_way = self.progress.as_ref().filter(|p| p.arm == arm && !self.points.is_empty());
        if let Some(p) = under_way {
            return Some((&self.points, format!("round {}, now", p.round)));
        }
        let last = self.finished_rounds().iter().rev().find(|r| r.arm == arm)?;
        Some((&last.dirty_points, format!("round {}", last.number)))
    }

    /// Completed fraction of the whole experiment, 0 to 1.
    pub fn fraction_done(&self) -> f64 {
        let Some(p) = &self.progress else { return 0.0 };
        let within = p.bench.as_ref().filter(|_| p.phase == RoundPhase::Work);
        let within = within.filter(|b| b.measurement_index.is_some()).and_then(|b| b.fraction_done).unwrap_or(0.0);
        (f64::from(p.round.saturating_sub(1)) + within.clamp(0.0, 1.0)) / f64::from(p.total_rounds.max(1))
    }

    /// Status text for the header: `experiment txlog 3/8 B 42 %`.
    pub fn status_text(&self) -> String {
        self.status_text_at(self.progress.as_ref())
    }

    /// The status text as it would be with this progress.
    pub fn status_text_at(&self, progress: Option<&ExperimentProgress>) -> String {
        let name = format!("experiment {}", self.spec.plan.profile);
        let Some(p) = progress else { return format!("{name} starting") };
        if self.is_stopping {
            return format!("{name} stopping");
        }
        let done = p.bench.as_ref().filter(|_| p.phase == RoundPhase::Work).and_then(|b| b.fraction_done);
        let done = done.map_or(String::new(), |d| format!(" {:.0} %", d * 100.0));
        format!("{name} {}/{} {}{done}", p.round, p.total_rounds, p.arm.name())
    }

    /// Says what hangs.
    pub fn blocked_text(&self, now_ns: u64) -> Option<String> {
        let pid = self.pid.map_or(String::new(), |pid| format!(" (process {pid})"));
        let silent = now_ns.saturating_sub(self.last_message_ns) / 1_000_000;
        let draining = self.progress.as_ref().is_some_and(|p| p.phase == RoundPhase::Drain);
        if silent > SILENT_AFTER_MS {
            let limit = self.spec.drain_limit_ms / 1000;
            return Some(match draining {
                true => format!("writing back dirty pages for {} s; gives up after {limit} s", silent / 1000),
                false => format!("no message from the experiment process{pid} for {} s", silent / 1000),
            });
        }
        let bench = self.progress.as_ref().and_then(|p| p.bench.as_ref());
        let still = bench.map_or(0, |b| b.idle_ms);
        (still >= 1000).then(|| {
            let limit = self.spec.plan.stall_limit_ms / 1000;
            format!("BLOCKED: no request completed for {} s; gives up after {limit} s", still / 1000)
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
        assert_eq!(run.status_text(), "experiment randrw stopping");
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
        assert!(run.blocked_text(9_000_000_000).unwrap().contains("dirty pages for 9 s; gives up after 300 s"));
        run.apply_message(progress(1, Arm::A, RoundPhase::Work, 0), 9_000_000_000);
        assert!(run.blocked_text(19_000_000_000).unwrap().contains("for 10 s"));
    }
}
