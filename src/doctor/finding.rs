//! What a rule reports: severity, subject, evidence, remedies.

use crate::model::disk::DevId;
use crate::model::process::TaskKey;
use crate::model::raw_bytes::RawBytes;
use crate::sanitize::sanitize;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; not a problem by itself.
    #[default]
    Note,
    /// Costs performance, or will become a problem.
    Warn,
    /// Work is blocked, or data is at risk.
    Critical,
}

impl Severity {
    pub(super) fn critical_if(is_critical: bool) -> Self {
        if is_critical { Severity::Critical } else { Severity::Warn }
    }

    /// The word in JSON and on screen.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The symbol before a title, so that severity does not depend on colour.
    pub fn symbol(self) -> &'static str {
        match self {
            Severity::Note => "·",
            Severity::Warn => "!",
            Severity::Critical => "‼",
        }
    }
}

/// What a finding is about. Names are sanitized.
#[derive(Debug, Clone, Default, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum FindingSubject {
    #[default]
    Machine,
    Device(DevId, String),
    Task(TaskKey, String),
    /// A task named by the kernel or by tracing that is not in the task list.
    #[strum(serialize = "task")]
    Pid(u32, String),
    Mount(RawBytes),
    Cgroup(String),
    /// A name from the kernel log that is no block device: `ata4.00`, a server.
    #[strum(serialize = "named")]
    KernelName(String),
}

impl FindingSubject {
    /// The word in JSON.
    pub fn kind(&self) -> &'static str {
        self.into()
    }

    /// The name, sanitized; empty for the machine.
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

/// A place in the program that a finding links to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NavTarget {
    /// A knob in the Tune view, by its id (`vm.dirty_bytes`, `scheduler@sda`).
    Knob(String),
    /// A benchmark profile, in this directory if one is known.
    Bench(&'static str, Option<RawBytes>),
    /// A device's detail page.
    Device(DevId),
    /// A task's detail page.
    Task(TaskKey),
    /// An entry of the kernel log, by its sequence number; `None`: the Kernel view.
    KernelLog(Option<u64>),
    Memory,
    Processes,
    Devices,
    Syncs,
}

pub(super) fn knob(id: impl Into<String>) -> NavTarget {
    NavTarget::Knob(id.into())
}

impl NavTarget {
    /// The place in a few words.
    pub fn label(&self) -> String {
        match self {
            NavTarget::Knob(knob) => format!("Tune {}", sanitize(knob)),
            NavTarget::Bench(profile, Some(dir)) => format!("Bench {profile} in {}", dir.sanitized()),
            NavTarget::Bench(profile, None) => format!("Bench {profile}"),
            NavTarget::Device(_) => "the device's page".into(),
            NavTarget::Task(key) => format!("the page of task {}", key.tid),
            NavTarget::KernelLog(_) => "the kernel log".into(),
            NavTarget::Memory => "the Memory view".into(),
            NavTarget::Processes => "the Processes view".into(),
            NavTarget::Devices => "the Devices view".into(),
            NavTarget::Syncs => "the Syncs view".into(),
        }
    }
}

/// The cost of a remedy that has none. Text output leaves it out.
pub(crate) const NO_COST: &str = "none";

/// Something to do about a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remedy {
    /// What to do, in the imperative.
    pub action: String,
    /// What it costs, or [`NO_COST`].
    pub cost: &'static str,
    /// Where in the program it is done.
    pub nav_target: Option<NavTarget>,
}

/// A value that supports a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// Name of the value, as the kernel or iostat calls it where they have it.
    pub name: &'static str,
    /// The value with its unit, sanitized.
    pub value: String,
}

/// A process that causes a problem, or suffers from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvolvedTask {
    /// `fio (1234)`, sanitized.
    pub name: String,
    /// Its share of the device's queue, per cent.
    pub share_pct: Option<u8>,
    /// Its systemd unit or container, as `unit backup.service`; `None` in the session of a user.
    pub group: Option<String>,
}

/// A systemd unit or container whose tasks together cause a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvolvedGroup {
    /// `unit backup.service`, `container podman:web`, sanitized.
    pub name: String,
    /// Its share of the device's queue, per cent.
    pub share_pct: u8,
}

impl InvolvedTask {
    pub(super) fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), share_pct: None, group: None }
    }
}

/// A problem found by a rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Finding {
    pub rule: &'static str,
    pub severity: Severity,
    pub subject: FindingSubject,
    /// What of the subject it is about, where a rule may find several things wrong with one: `reads`, a device; else empty.
    pub aspect: String,
    /// One line with the subject and the main values, sanitized.
    pub title: String,
    pub evidence: Vec<Evidence>,
    /// When it began (CLOCK_BOOTTIME, ns), as far as known.
    pub since_ns: Option<u64>,
    /// When it last happened (CLOCK_BOOTTIME, ns); `None`: it is happening now.
    pub last_seen_ns: Option<u64>,
    pub why: &'static str,
    /// What to do, most promising first.
    pub remedies: Vec<Remedy>,
    pub see_also: Option<NavTarget>,
    /// Block devices it concerns: its own first, then those below it; empty: none, or unknown ones.
    pub devices: Vec<DevId>,
    /// Path of the control group it concerns, sanitized.
    pub cgroup: Option<String>,
    /// Processes that cause it, largest share first. Of a fault of a device there are none.
    pub culprits: Vec<InvolvedTask>,
    /// The unit or container with most of the device's queue.
    pub culprit_group: Option<InvolvedGroup>,
    /// Processes that suffer from it.
    pub victims: Vec<InvolvedTask>,
    /// Paths of the files that it is about, sanitized.
    pub files: Vec<String>,
}

impl Finding {
    /// A finding without evidence yet. The rule that finds it adds its name.
    pub(super) fn new(severity: Severity, subject: FindingSubject, title: impl Into<String>) -> Self {
        Self { severity, subject, title: title.into(), ..Self::default() }
    }

    pub(super) fn of_machine(severity: Severity, title: impl Into<String>) -> Self {
        Self::new(severity, FindingSubject::Machine, title)
    }

    pub(super) fn of_mount(severity: Severity, mount_point: &RawBytes, title: String) -> Self {
        Self::new(severity, FindingSubject::Mount(mount_point.clone()), title)
    }

    /// A finding about a running task, which its page shows. `comm` is sanitized.
    pub(super) fn of_task(severity: Severity, key: TaskKey, comm: &str, title: String) -> Self {
        Self::new(severity, FindingSubject::Task(key, comm.to_owned()), title).see_also(NavTarget::Task(key))
    }

    /// What tells it from other findings: its rule, the subject, and what of the subject it is about.
    pub(crate) fn key(&self) -> (&'static str, &FindingSubject, &str) {
        (self.rule, &self.subject, &self.aspect)
    }

    /// See [`Finding::aspect`].
    pub(super) fn aspect(mut self, aspect: impl Into<String>) -> Self {
        self.aspect = aspect.into();
        self
    }

    pub(super) fn fact(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.evidence.push(Evidence { name, value: value.into() });
        self
    }

    pub(super) fn fact_opt(self, name: &'static str, value: Option<String>) -> Self {
        value.into_iter().fold(self, |finding, value| finding.fact(name, value))
    }

    pub(super) fn since(mut self, boot_ns: u64) -> Self {
        self.since_ns = Some(boot_ns);
        self
    }

    pub(super) fn last_seen(mut self, boot_ns: u64) -> Self {
        self.last_seen_ns = Some(boot_ns);
        self
    }

    pub(super) fn why(mut self, why: &'static str) -> Self {
        self.why = why;
        self
    }

    pub(super) fn advise(mut self, action: impl Into<String>) -> Self {
        self.remedies.push(Remedy { action: action.into(), cost: NO_COST, nav_target: None });
        self
    }

    pub(super) fn advise_at(mut self, action: impl Into<String>, nav_target: NavTarget) -> Self {
        self.remedies.push(Remedy { action: action.into(), cost: NO_COST, nav_target: Some(nav_target) });
        self
    }

    /// Sets what the last remedy costs.
    pub(super) fn costs(mut self, cost: &'static str) -> Self {
        if let Some(remedy) = self.remedies.last_mut() {
            remedy.cost = cost;
        }
        self
    }

    pub(super) fn advise_benchmark(self, action: &str, profile: &'static str, directory: Option<RawBytes>) -> Self {
        self.advise_at(action, NavTarget::Bench(profile, directory)).costs("adds load while it runs")
    }

    pub(super) fn see_also(mut self, nav_target: NavTarget) -> Self {
        self.see_also = Some(nav_target);
        self
    }

    pub(super) fn on_devices(mut self, devices: Vec<DevId>) -> Self {
        self.devices = devices;
        self
    }

    pub(super) fn in_cgroup(mut self, path: Option<&str>) -> Self {
        self.cgroup = path.map(str::to_owned);
        self
    }

    pub(super) fn caused_by(mut self, culprits: impl IntoIterator<Item = InvolvedTask>) -> Self {
        self.culprits.extend(culprits);
        self
    }

    pub(super) fn of_group(mut self, group: Option<InvolvedGroup>) -> Self {
        self.culprit_group = group;
        self
    }

    pub(super) fn delays(mut self, victims: impl IntoIterator<Item = InvolvedTask>) -> Self {
        self.victims.extend(victims);
        self
    }

    pub(super) fn on_files(mut self, files: impl IntoIterator<Item = String>) -> Self {
        self.files.extend(files);
        self
    }

    pub(super) fn report(self, out: &mut Vec<Finding>) {
        out.push(self);
    }
}

/// Why a rule was not, or not fully, evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RuleSkipped {
    /// More samples are needed; the text says of what.
    NeedsMoreData(&'static str),
    /// A source is missing; the text says which and why.
    Unavailable(String),
}
