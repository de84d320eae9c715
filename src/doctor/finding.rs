//! What a rule says: how bad, about what, on which figures, and what can be done.

use crate::model::disk::DevId;
use crate::model::process::TaskKey;
use crate::model::raw_bytes::RawBytes;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; nothing is wrong by itself.
    Note,
    /// Costs speed, or will go wrong.
    Warn,
    /// Work stands still, or data is at risk.
    Critical,
}

impl Severity {
    /// The word in JSON and on screen.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warn => "warn",
            Severity::Critical => "critical",
        }
    }

    /// The mark before a line: the twin of the colour.
    pub fn symbol(self) -> &'static str {
        match self {
            Severity::Note => "·",
            Severity::Warn => "!",
            Severity::Critical => "‼",
        }
    }
}

/// What a finding is about. Names are cleaned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FindingSubject {
    /// The machine as a whole.
    Machine,
    /// A block device.
    Device(DevId, String),
    /// A task.
    Task(TaskKey, String),
    /// A task that the kernel named and that is gone, or not ours to see.
    Pid(u32, String),
    /// A mounted file system.
    Mount(RawBytes),
    /// A control group.
    Cgroup(String),
    /// Something only the kernel log names: `ata4.00`, a server.
    KernelName(String),
}

impl FindingSubject {
    /// The word in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            FindingSubject::Machine => "machine",
            FindingSubject::Device(..) => "device",
            FindingSubject::Task(..) | FindingSubject::Pid(..) => "task",
            FindingSubject::Mount(_) => "mount",
            FindingSubject::Cgroup(_) => "cgroup",
            FindingSubject::KernelName(_) => "named",
        }
    }

    /// Its name, cleaned.
    pub fn name(&self) -> String {
        match self {
            FindingSubject::Machine => String::new(),
            FindingSubject::Device(_, name) | FindingSubject::Cgroup(name) | FindingSubject::KernelName(name) => {
                name.clone()
            }
            FindingSubject::Task(key, name) => format!("{name} ({})", key.tid),
            FindingSubject::Pid(pid, name) => format!("{name} ({pid})"),
            FindingSubject::Mount(point) => point.sanitized(),
        }
    }
}

/// Where one key leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NavTarget {
    /// A knob in the Tune view, by its address (`vm.dirty_bytes`, `scheduler@sda`).
    Knob(String),
    /// A benchmark, in this directory if one is known.
    Bench(&'static str, Option<RawBytes>),
    /// A device's page.
    Device(DevId),
    /// A task's page.
    Task(TaskKey),
    /// An entry of the kernel log, by its record number; `None`: the view.
    KernelLog(Option<u64>),
    /// The Memory view.
    Memory,
    /// The Processes view.
    Processes,
    /// The Devices view.
    Devices,
    /// The Syncs view.
    Syncs,
}

impl NavTarget {
    /// Where to, in a few words.
    pub fn label(&self) -> String {
        match self {
            NavTarget::Knob(knob) => format!("Tune {}", crate::sanitize::sanitize(knob)),
            NavTarget::Bench(profile, Some(dir)) => format!("Bench {profile} in {}", dir.sanitized()),
            NavTarget::Bench(profile, None) => format!("Bench {profile}"),
            NavTarget::Device(_) => "the device's page".into(),
            NavTarget::Task(key) => format!("the page of task {}", key.tid),
            NavTarget::KernelLog(_) => "the kernel's own words".into(),
            NavTarget::Memory => "the Memory view".into(),
            NavTarget::Processes => "the Processes view".into(),
            NavTarget::Devices => "the Devices view".into(),
            NavTarget::Syncs => "the Syncs view".into(),
        }
    }
}

/// Something to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remedy {
    /// What.
    pub action: String,
    /// What that costs, or what speaks against it.
    pub cost: &'static str,
    /// Where it is done.
    pub nav_target: Option<NavTarget>,
}

/// A figure that says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The field's own name.
    pub name: &'static str,
    /// Value with its unit, cleaned.
    pub value: String,
}

/// Something a rule found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule's name.
    pub rule: &'static str,
    /// How bad.
    pub severity: Severity,
    /// About what.
    pub subject: FindingSubject,
    /// One line that names it and its figures, cleaned.
    pub title: String,
    /// The figures.
    pub evidence: Vec<Evidence>,
    /// CLOCK_BOOTTIME in ns since which it is so, as far as is known.
    pub since_ns: Option<u64>,
    /// CLOCK_BOOTTIME in ns when it was last so; `None`: it is so now.
    pub last_seen_ns: Option<u64>,
    /// Why it matters.
    pub why: &'static str,
    /// What to try, the most promising first.
    pub remedies: Vec<Remedy>,
    /// Where it can be seen.
    pub see_also: Option<NavTarget>,
    /// Block devices it has to do with: its own first, then what that lies on; none: any.
    pub devices: Vec<DevId>,
}

impl Finding {
    /// A finding without figures yet.
    pub fn new(rule: &'static str, severity: Severity, subject: FindingSubject, title: String) -> Self {
        Self {
            rule,
            severity,
            subject,
            title,
            evidence: Vec::new(),
            since_ns: None,
            last_seen_ns: None,
            why: "",
            remedies: Vec::new(),
            see_also: None,
            devices: Vec::new(),
        }
    }

    /// Adds a figure.
    pub fn fact(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.evidence.push(Evidence { name, value: value.into() });
        self
    }

    /// Adds a figure if it is known.
    pub fn fact_opt(self, name: &'static str, value: Option<String>) -> Self {
        match value {
            Some(value) => self.fact(name, value),
            None => self,
        }
    }

    /// Says since when.
    pub fn since(mut self, boot_ns: u64) -> Self {
        self.since_ns = Some(boot_ns);
        self
    }

    /// Says when it was last so.
    pub fn last_seen(mut self, boot_ns: u64) -> Self {
        self.last_seen_ns = Some(boot_ns);
        self
    }

    /// Says why it matters.
    pub fn why(mut self, why: &'static str) -> Self {
        self.why = why;
        self
    }

    /// Adds something to try.
    pub fn advise(mut self, what: impl Into<String>, cost: &'static str) -> Self {
        self.remedies.push(Remedy { action: what.into(), cost, nav_target: None });
        self
    }

    /// Adds something to try, and where that is done.
    pub fn advise_at(mut self, what: impl Into<String>, cost: &'static str, jump: NavTarget) -> Self {
        self.remedies.push(Remedy { action: what.into(), cost, nav_target: Some(jump) });
        self
    }

    /// Says where it can be seen.
    pub fn see_also(mut self, jump: NavTarget) -> Self {
        self.see_also = Some(jump);
        self
    }

    /// Names the devices it has to do with.
    pub fn on_devices(mut self, devices: Vec<DevId>) -> Self {
        self.devices = devices;
        self
    }

    /// Every place one key leads to: what to try first, then where to look.
    pub fn nav_targets(&self) -> impl Iterator<Item = &NavTarget> {
        self.remedies.iter().filter_map(|r| r.nav_target.as_ref()).chain(self.see_also.as_ref())
    }
}

/// What a rule answers besides what it found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleStatus {
    /// It had what it needs.
    Evaluated,
    /// Not enough data yet: what is still to come.
    NeedsMoreData(&'static str),
    /// It cannot tell: what is missing, and why.
    Unavailable(String),
}

/// A rule.
pub struct Rule {
    /// Its name in JSON and in tests: never changes its meaning.
    pub name: &'static str,
    /// What it looks for, in a line.
    pub description: &'static str,
    /// Looks, and adds what it finds.
    pub evaluate: fn(&super::rule_context::RuleContext<'_>, &mut Vec<Finding>) -> RuleStatus,
}
