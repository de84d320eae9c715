//! Numbered points in the making and unmaking of a change, so that a test can have processes killed at
//! each of them. Without a plan, passing one costs an addition.

use rustix::process::{Pid, Signal, kill_process};

/// Whom to kill when a step is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KillPlan {
    /// Counted from 1.
    pub step: u32,
    /// Another process, killed first.
    pub other_pid: Option<Pid>,
    /// Whether to kill this process too.
    pub kill_self: bool,
}

/// Counts steps.
#[derive(Debug, Default)]
pub struct KillPoints {
    passed: u32,
    plan: Option<KillPlan>,
}

impl KillPoints {
    /// Carries out `plan` when its step is reached.
    pub fn with_plan(plan: Option<KillPlan>) -> Self {
        Self { passed: 0, plan }
    }

    /// Whether something will happen at some step.
    pub fn is_armed(&self) -> bool {
        self.plan.is_some()
    }

    /// How many were passed.
    pub fn count(&self) -> u32 {
        self.passed
    }

    /// A step is reached; `_what` says which to the reader of the code.
    pub fn reach(&mut self, _what: &'static str) {
        self.passed += 1;
        let Some(plan) = self.plan.as_ref().filter(|p| p.step == self.passed) else { return };
        if let Some(pid) = plan.other_pid {
            let _ = kill_process(pid, Signal::KILL);
        }
        if plan.kill_self {
            let _ = kill_process(rustix::process::getpid(), Signal::KILL);
        }
    }
}

impl std::str::FromStr for KillPlan {
    type Err = String;

    /// `STEP`: this process; `STEP:PID`: another; `STEP:PID:own`: both.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let step = parts.next().and_then(|s| s.parse().ok()).ok_or("no step")?;
        let other = match parts.next() {
            Some(pid) => Some(pid.parse().ok().and_then(Pid::from_raw).ok_or("no process")?),
            None => None,
        };
        Ok(Self { step, other_pid: other, kill_self: other.is_none() || parts.next() == Some("own") })
    }
}
