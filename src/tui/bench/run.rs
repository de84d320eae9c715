//! A run as the screen follows it: what its child said, how it ended, whether the result is kept.

use super::course::Course;
use crate::bench::message::{Message, Progress};
use crate::bench::plan::Plan;
use crate::bench::report::Report;
use crate::bench::target::refuse::Refused;

/// Notes kept of one run.
const NOTES: usize = 50;
/// Without any completion for so long a run is called blocked, ms.
pub const BLOCKED_MS: u64 = 2000;

/// A run of this session.
#[derive(Debug)]
pub struct Run {
    /// Which.
    pub number: u64,
    /// What was confirmed.
    pub plan: Plan,
    /// Its process, once it is there.
    pub pid: Option<u32>,
    /// The last progress.
    pub progress: Option<Progress>,
    /// Rates and latencies so far.
    pub course: Course,
    /// What its child had to say, newest last.
    pub notes: Vec<String>,
    /// Boot clock of the last word of its child, ns.
    pub heard_ns: u64,
    /// It was told to end.
    pub stopping: bool,
    /// How it ended.
    pub end: Option<Ended>,
    /// Its name in the store, or why it is not there; `None` while it is being kept.
    pub kept: Option<Result<String, String>>,
}

/// How a run ended.
#[derive(Debug)]
pub enum Ended {
    /// With figures, of all or of a part.
    Report(Box<Report>),
    /// Not begun, for safety or for want of a privilege.
    Refused(Refused),
    /// Without figures.
    Failed(String),
}

impl Run {
    /// Nothing heard yet.
    pub fn new(number: u64, plan: Plan, now_ns: u64) -> Self {
        Self {
            number,
            plan,
            pid: None,
            progress: None,
            course: Course::default(),
            notes: Vec::new(),
            heard_ns: now_ns,
            stopping: false,
            end: None,
            kept: None,
        }
    }

    /// Takes in a message of the child.
    pub fn take(&mut self, message: Message, now_ns: u64) {
        self.heard_ns = now_ns;
        match message {
            Message::Progress(p) => {
                self.course.push(&p);
                self.progress = Some(*p);
            }
            Message::Note(note) => {
                if self.notes.len() < NOTES {
                    self.notes.push(crate::text::sanitize(note));
                }
            }
            Message::Refused(refused) => self.end = Some(Ended::Refused(refused)),
            Message::Failed(why) => self.end = Some(Ended::Failed(why)),
            Message::Report(report) => self.end = Some(Ended::Report(report)),
        }
    }

    /// `bench randrw 42 %`.
    pub fn word(&self) -> String {
        self.word_at(self.progress.as_ref())
    }

    /// The same for a progress that has not been taken in yet.
    pub fn word_at(&self, progress: Option<&Progress>) -> String {
        let name = &self.plan.profile;
        let Some(p) = progress else { return format!("bench {name} starting") };
        if self.stopping {
            return format!("bench {name} ending");
        }
        if p.silent_ms >= BLOCKED_MS {
            return format!("bench {name} BLOCKED {} s", p.silent_ms / 1000);
        }
        let what = if p.part.is_none() { " preparing" } else { "" };
        let done = p.done.map_or(String::new(), |d| format!(" {:.0} %", d * 100.0));
        format!("bench {name}{what}{done}")
    }

    /// What hangs, in words: nothing completes, or the child itself is silent.
    pub fn trouble(&self, now_ns: u64) -> Option<String> {
        let pid = self.pid.map_or(String::new(), |pid| format!(" (process {pid})"));
        let unheard = now_ns.saturating_sub(self.heard_ns) / 1_000_000;
        // The child speaks four times a second, and its words may be a tick old when they are looked at.
        if unheard > BLOCKED_MS + 3000 {
            return Some(format!(
                "the measuring process{pid} has said nothing for {} s: blocked in the kernel, or the machine has no time for it",
                unheard / 1000
            ));
        }
        let silent = self.progress.as_ref().map_or(0, |p| p.silent_ms);
        if silent < 1000 {
            return None;
        }
        let limit = self.plan.stall_limit_ms / 1000;
        Some(format!(
            "BLOCKED: nothing has completed for {} s{pid}; given up at {limit} s. Frozen file system, dead server, hung device?",
            silent / 1000
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(part: Option<u32>, done: f64, silent_ms: u64) -> Progress {
        Progress { part, done: Some(done), silent_ms, ..Progress::default() }
    }

    #[test]
    fn the_word_says_how_far_and_what_is_wrong() {
        let mut run = Run::new(1, Plan::default(), 0);
        assert_eq!(run.word(), "bench randrw starting");
        run.take(Message::Progress(Box::new(progress(None, 0.5, 0))), 1);
        assert_eq!(run.word(), "bench randrw preparing 50 %");
        run.take(Message::Progress(Box::new(progress(Some(0), 0.42, 1500))), 1);
        assert_eq!(run.word(), "bench randrw 42 %");
        run.take(Message::Progress(Box::new(progress(Some(0), 0.42, 7100))), 1);
        assert_eq!(run.word(), "bench randrw BLOCKED 7 s");
        run.stopping = true;
        assert_eq!(run.word(), "bench randrw ending");
    }

    #[test]
    fn silence_of_the_device_and_of_the_child_are_told_apart() {
        let mut run = Run::new(1, Plan::default(), 0);
        run.pid = Some(77);
        run.take(Message::Progress(Box::new(progress(Some(0), 0.1, 200))), 5_000_000_000);
        assert_eq!(run.trouble(6_000_000_000), None);
        run.take(Message::Progress(Box::new(progress(Some(0), 0.1, 3000))), 8_000_000_000);
        assert!(run.trouble(8_000_000_000).unwrap().contains("nothing has completed for 3 s (process 77)"));
        assert!(run.trouble(18_000_000_000).unwrap().contains("said nothing for 10 s"));
    }
}
