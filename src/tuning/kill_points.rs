//! Numbered points in applying and restoring a change, at which tests kill or stop processes. Without a plan, reaching one
//! costs an addition.

use rustix::process::{Pid, Signal, kill_process};

/// Which processes to kill or stop at which point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KillPlan {
    /// Counted from 1.
    pub step: u32,
    /// Another process, killed first.
    pub other_pid: Option<Pid>,
    /// What this process gets then.
    pub own_signal: Option<Signal>,
}

/// Counts the points reached.
#[derive(Debug, Default)]
pub struct KillPoints {
    passed: u32,
    plan: Option<KillPlan>,
}

impl KillPoints {
    /// Executes `plan` when its point is reached.
    pub fn with_plan(plan: Option<KillPlan>) -> Self {
        Self { passed: 0, plan }
    }

    /// Whether there is a plan.
    pub fn is_armed(&self) -> bool {
        self.plan.is_some()
    }

    /// The number of points reached.
    pub fn count(&self) -> u32 {
        self.passed
    }

    /// Counts a point; `_what` documents it.
    pub fn reach(&mut self, _what: &'static str) {
        self.passed += 1;
        let Some(plan) = self.plan.as_ref().filter(|p| p.step == self.passed) else { return };
        if let Some(pid) = plan.other_pid {
            let _ = kill_process(pid, Signal::KILL);
        }
        if let Some(signal) = plan.own_signal {
            let _ = kill_process(rustix::process::getpid(), signal);
        }
    }
}

impl std::str::FromStr for KillPlan {
    type Err = String;

    /// `STEP`: kills this process; `STEP:PID`: another process; `STEP:PID:own`: both; `STEP:stop`: stops this process.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut fields = text.split(':');
        let step = fields.next().and_then(|s| s.parse().ok()).ok_or("no step")?;
        let other = match fields.next() {
            Some("stop") => return Ok(Self { step, other_pid: None, own_signal: Some(Signal::STOP) }),
            Some(pid) => Some(pid.parse().ok().and_then(Pid::from_raw).ok_or("no process")?),
            None => None,
        };
        let is_own = other.is_none() || fields.next() == Some("own");
        Ok(Self { step, other_pid: other, own_signal: is_own.then_some(Signal::KILL) })
    }
}
