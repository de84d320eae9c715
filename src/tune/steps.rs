//! Numbered points in the making and unmaking of a change, so that a test can have processes killed at
//! each of them. Without a plan, passing one costs an addition.

use rustix::process::{Pid, Signal, kill_process};

/// Whom to kill when a step is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Counted from 1.
    pub step: u32,
    /// Another process, killed first.
    pub other: Option<Pid>,
    /// Whether to kill this process too.
    pub own: bool,
}

/// Counts steps.
#[derive(Debug, Default)]
pub struct Steps {
    passed: u32,
    plan: Option<Plan>,
}

impl Steps {
    /// Carries out `plan` when its step is reached.
    pub fn with(plan: Option<Plan>) -> Self {
        Self { passed: 0, plan }
    }

    /// Whether something will happen at some step.
    pub fn armed(&self) -> bool {
        self.plan.is_some()
    }

    /// How many were passed.
    pub fn passed(&self) -> u32 {
        self.passed
    }

    /// A step is reached; `_what` says which to the reader of the code.
    pub fn pass(&mut self, _what: &'static str) {
        self.passed += 1;
        let Some(plan) = self.plan.as_ref().filter(|p| p.step == self.passed) else { return };
        if let Some(pid) = plan.other {
            let _ = kill_process(pid, Signal::KILL);
        }
        if plan.own {
            let _ = kill_process(rustix::process::getpid(), Signal::KILL);
        }
    }
}

impl std::str::FromStr for Plan {
    type Err = String;

    /// `STEP`: this process; `STEP:PID`: another; `STEP:PID:own`: both.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let step = parts.next().and_then(|s| s.parse().ok()).ok_or("no step")?;
        let other = match parts.next() {
            Some(pid) => Some(pid.parse().ok().and_then(Pid::from_raw).ok_or("no process")?),
            None => None,
        };
        Ok(Self { step, other, own: other.is_none() || parts.next() == Some("own") })
    }
}
