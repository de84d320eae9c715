//! A benchmark run: messages of its child process, how it ended, and whether the report is stored.

use crate::bench::message::{BenchMessage, BenchProgress};
use crate::bench::plan::BenchPlan;
use crate::bench::report::BenchReport;
use crate::bench::target::checks::BenchRefusal;
use crate::tui::views::bench::rate_series::BenchRateSeries;

/// Maximum number of notes stored.
const MAX_NOTES: usize = 50;
/// Time without a completed request after which a run is shown as blocked, ms.
pub const BLOCKED_AFTER_MS: u64 = 2000;

/// A run of this session.
#[derive(Debug)]
pub struct TrackedBench {
    /// Number of the run.
    pub number: u64,
    /// The confirmed plan.
    pub plan: BenchPlan,
    /// PID of the child process, once it has started.
    pub pid: Option<u32>,
    /// The last progress message.
    pub progress: Option<BenchProgress>,
    /// Rates and latencies so far.
    pub rates: BenchRateSeries,
    /// Notes of the child process, newest last.
    pub notes: Vec<String>,
    /// Time of the last message, CLOCK_BOOTTIME in ns.
    pub last_message_ns: u64,
    /// Whether it was asked to end.
    pub is_stopping: bool,
    /// How it ended; `None` while it runs.
    pub ending: Option<BenchEnding>,
    /// Name of the stored report, or why storing failed; `None` until then.
    pub stored: Option<Result<String, String>>,
}

/// How a run ended.
#[derive(Debug)]
pub enum BenchEnding {
    /// With a report, complete or partial.
    Report(Box<BenchReport>),
    /// Refused before the start: unsafe, or a privilege is missing.
    Refused(BenchRefusal),
    /// Without a report.
    Failed(String),
}

impl TrackedBench {
    /// A run whose child has not sent anything yet.
    pub fn new(number: u64, plan: BenchPlan, now_ns: u64) -> Self {
        Self {
            number,
            plan,
            pid: None,
            progress: None,
            rates: BenchRateSeries::default(),
            notes: Vec::new(),
            last_message_ns: now_ns,
            is_stopping: false,
            ending: None,
            stored: None,
        }
    }

    /// Handles a message of the child process.
    pub fn apply_message(&mut self, message: BenchMessage, now_ns: u64) {
        self.last_message_ns = now_ns;
        match message {
            BenchMessage::Progress(p) => {
                self.rates.push(&p);
                self.progress = Some(*p);
            }
            BenchMessage::Note(note) => {
                if self.notes.len() < MAX_NOTES {
                    self.notes.push(crate::sanitize::sanitize(note));
                }
            }
            BenchMessage::Refused(refused) => self.ending = Some(BenchEnding::Refused(refused)),
            BenchMessage::Failed(why) => self.ending = Some(BenchEnding::Failed(why)),
            BenchMessage::Report(report) => self.ending = Some(BenchEnding::Report(report)),
        }
    }

    /// Status text for the header: `bench randrw 42 %`.
    pub fn status_text(&self) -> String {
        self.status_text_at(self.progress.as_ref())
    }

    /// The status text as it would be with this progress.
    pub fn status_text_at(&self, progress: Option<&BenchProgress>) -> String {
        let name = &self.plan.profile;
        let Some(p) = progress else { return format!("bench {name} starting") };
        if self.is_stopping {
            return format!("bench {name} stopping");
        }
        if p.idle_ms >= BLOCKED_AFTER_MS {
            return format!("bench {name} BLOCKED {} s", p.idle_ms / 1000);
        }
        let what = if p.measurement_index.is_none() { " preparing" } else { "" };
        let done = p.fraction_done.map_or(String::new(), |d| format!(" {:.0} %", d * 100.0));
        format!("bench {name}{what}{done}")
    }

    /// Says what hangs: the requests, or the child process itself.
    pub fn blocked_text(&self, now_ns: u64) -> Option<String> {
        let pid = self.pid.map_or(String::new(), |pid| format!(" (process {pid})"));
        let unheard = now_ns.saturating_sub(self.last_message_ns) / 1_000_000;
        // The child sends four messages a second; one may be a tick old when this is evaluated.
        if unheard > BLOCKED_AFTER_MS + 3000 {
            return Some(format!(
                "no message from the benchmark process{pid} for {} s: it is blocked in the kernel or gets no CPU time",
                unheard / 1000
            ));
        }
        let silent = self.progress.as_ref().map_or(0, |p| p.idle_ms);
        if silent < 1000 {
            return None;
        }
        let limit = self.plan.stall_limit_ms / 1000;
        Some(format!(
            "BLOCKED: no request completed for {} s{pid}; gives up after {limit} s. Frozen file system, dead server, hung device?",
            silent / 1000
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(part: Option<u32>, done: f64, silent_ms: u64) -> BenchProgress {
        BenchProgress {
            measurement_index: part,
            fraction_done: Some(done),
            idle_ms: silent_ms,
            ..BenchProgress::default()
        }
    }

    #[test]
    fn status_text_tells_progress_and_blocking() {
        let mut run = TrackedBench::new(1, BenchPlan::default(), 0);
        assert_eq!(run.status_text(), "bench randrw starting");
        run.apply_message(BenchMessage::Progress(Box::new(progress(None, 0.5, 0))), 1);
        assert_eq!(run.status_text(), "bench randrw preparing 50 %");
        run.apply_message(BenchMessage::Progress(Box::new(progress(Some(0), 0.42, 1500))), 1);
        assert_eq!(run.status_text(), "bench randrw 42 %");
        run.apply_message(BenchMessage::Progress(Box::new(progress(Some(0), 0.42, 7100))), 1);
        assert_eq!(run.status_text(), "bench randrw BLOCKED 7 s");
        run.is_stopping = true;
        assert_eq!(run.status_text(), "bench randrw stopping");
    }

    #[test]
    fn blocked_text_distinguishes_device_and_child() {
        let mut run = TrackedBench::new(1, BenchPlan::default(), 0);
        run.pid = Some(77);
        run.apply_message(BenchMessage::Progress(Box::new(progress(Some(0), 0.1, 200))), 5_000_000_000);
        assert_eq!(run.blocked_text(6_000_000_000), None);
        run.apply_message(BenchMessage::Progress(Box::new(progress(Some(0), 0.1, 3000))), 8_000_000_000);
        assert!(run.blocked_text(8_000_000_000).unwrap().contains("no request completed for 3 s (process 77)"));
        assert!(run.blocked_text(18_000_000_000).unwrap().contains("for 10 s"));
    }
}
