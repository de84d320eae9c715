//! The progress of a benchmark on standard error: one line that is overwritten on a terminal, else a line now and then.

use super::child_progress::overwrite_progress_line;
use super::exit::print_error;
use crate::bench::description::progress_line;
use crate::bench::message::BenchProgress;
use std::time::{Duration, Instant};

/// Between two lines where standard error is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);
/// Below this share of a step nobody can say how long it takes.
const MIN_FRACTION: f64 = 0.02;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgressKind {
    Quiet,
    /// A line now and then.
    Lines,
    /// One line on a terminal.
    Live,
}

pub(super) struct ProgressPrinter {
    kind: ProgressKind,
    step: Option<StepProgress>,
}

/// The present step.
struct StepProgress {
    name: String,
    began: Instant,
    printed: Option<Instant>,
}

impl ProgressPrinter {
    pub(super) fn new(kind: ProgressKind) -> Self {
        Self { kind, step: None }
    }

    pub(super) fn show(&mut self, progress: &BenchProgress) {
        if self.kind == ProgressKind::Quiet {
            return;
        }
        if let Some(line) = self.line_at(progress, Instant::now()) {
            match self.kind {
                ProgressKind::Live => overwrite_progress_line(&line),
                _ => print_error(&line),
            }
        }
    }

    /// The line to print at `now`, if it is time for one.
    fn line_at(&mut self, progress: &BenchProgress, now: Instant) -> Option<String> {
        if self.step.as_ref().is_none_or(|step| step.name != progress.phase) {
            self.step = Some(StepProgress { name: progress.phase.clone(), began: now, printed: None });
        }
        let step = self.step.as_mut()?;
        let is_due = step.printed.is_none_or(|at| now.duration_since(at) >= LINE_INTERVAL);
        if self.kind == ProgressKind::Lines && !is_due {
            return None;
        }
        step.printed = Some(now);
        let gone = now.duration_since(step.began).as_secs_f64();
        let left = progress
            .fraction_done
            .filter(|done| (MIN_FRACTION..1.0).contains(done))
            .map(|done| gone * (1.0 - done) / done);
        Some(progress_line(progress) + &left.map_or(String::new(), |secs| format!("  about {secs:.0} s left")))
    }

    /// Prints a notice; the line with the progress makes room.
    pub(super) fn note(&self, note: &str) {
        if self.kind != ProgressKind::Quiet {
            self.clear();
            print_error(note);
        }
    }

    pub(super) fn clear(&self) {
        if self.kind == ProgressKind::Live {
            overwrite_progress_line("");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_with_each_step_and_every_ten_seconds_with_the_time_left() {
        let mut printer = ProgressPrinter::new(ProgressKind::Lines);
        let start = Instant::now();
        let mut at = |secs: u64, phase: &str, done: f64| {
            let progress = BenchProgress { phase: phase.into(), fraction_done: Some(done), ..BenchProgress::default() };
            printer.line_at(&progress, start + Duration::from_secs(secs))
        };
        assert!(at(0, "a", 0.0).is_some_and(|line| !line.contains("left")));
        assert_eq!(at(5, "a", 0.25), None);
        assert_eq!(at(10, "a", 0.5).as_deref(), Some("a  50 %  about 10 s left"));
        assert!(at(11, "b", 0.0).is_some(), "another step");
        let mut live = ProgressPrinter::new(ProgressKind::Live);
        let progress = BenchProgress { phase: "a".into(), ..BenchProgress::default() };
        assert!(live.line_at(&progress, start).is_some() && live.line_at(&progress, start).is_some());
    }
}
