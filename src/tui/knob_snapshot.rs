//! All knobs of the machine and all changes of this boot, as rows for display.
//!
//! It is taken on the runner's thread. Reads that may block go through the given [`KnobIo`], which uses a child process.

#![expect(missing_docs, reason = "the names say what needs no comment")]

use crate::experiment::report::ExperimentReport;
use crate::model::timestamp::Timestamp;
use crate::root::Root;
use crate::sanitize::sanitize;
use crate::tuning::change_set::ChangeSet;
use crate::tuning::discover::discover_knobs;
use crate::tuning::journal::Journal;
use crate::tuning::journal_record::{KnobChange, RestoreOutcome};
use crate::tuning::knob::{Knob, KnobGroup, KnobLink, KnobLocation};
use crate::tuning::knob_id::KnobId;
use crate::tuning::knob_io::{KnobError, KnobIo, KnobReading};
use crate::tuning::lifecycle::{LeaseStatus, lease_status, open_journal};
use crate::tuning::machine_limits::MachineLimits;
use crate::tuning::persist::file_for;
use crate::tuning::sysctl::display_path;
use crate::tuning::value;
use std::sync::Arc;

/// Maximum number of changes shown, the newest ones.
const MAX_CHANGES: usize = 200;
/// A change without a tuner counts as orphaned only when it is older, ns: its tuner may just be starting.
const TUNER_START_GRACE_NS: i64 = 3_000_000_000;

#[derive(Debug, Clone, Default)]
pub struct KnobSnapshot {
    /// All knobs, by group.
    pub rows: Vec<KnobRow>,
    pub changes: Vec<ChangeRow>,
    /// Why the changes could not be read.
    pub changes_error: Option<String>,
    pub can_write: bool,
    /// Memory sizes, which give ratios their meaning.
    pub machine: MachineLimits,
}

/// What the Tune view knows of knobs and changes, for all views.
#[derive(Debug, Clone, Default)]
pub struct KnobState {
    pub snapshot: Option<Arc<KnobSnapshot>>,
    /// Leased changes of this screen.
    pub leases: Vec<ActiveLease>,
    pub lease_secs: u64,
}

impl KnobState {
    pub fn rows(&self) -> &[KnobRow] {
        self.snapshot.as_ref().map(|s| s.rows.as_slice()).unwrap_or_default()
    }

    /// All changes of this boot, newest first.
    pub fn changes(&self) -> &[ChangeRow] {
        self.snapshot.as_ref().map(|s| s.changes.as_slice()).unwrap_or_default()
    }

    pub fn knob(&self, name: &str) -> Option<&KnobRow> {
        self.rows().iter().find(|r| r.name == name)
    }

    /// Whether a change that is in effect set this knob.
    pub(crate) fn is_changed(&self, knob: &KnobId) -> bool {
        self.changes().iter().any(|c| c.members.iter().any(|m| m.outcome.is_none() && m.knob == *knob))
    }

    pub fn can_write(&self) -> bool {
        self.snapshot.as_ref().is_some_and(|s| s.can_write)
    }
}

/// A change of this screen that reverts itself when its lease ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveLease {
    pub id: u64,
    pub secs_left: u64,
}

#[derive(Debug, Clone)]
pub struct KnobRow {
    pub id: KnobId,
    /// The knob as text, unsanitized; the key of other tables.
    pub name: String,
    pub display_name: String,
    pub heading: String,
    /// The value, or why it could not be read.
    pub reading: Result<KnobReading, KnobError>,
    /// The file that would persist a value, or why it cannot be persisted; sanitized.
    pub persist_path: Result<String, String>,
}

/// Texts for display, all sanitized.
impl KnobRow {
    fn new(root: &Root, id: KnobId, reading: Result<KnobReading, KnobError>) -> Self {
        let persist_path = file_for(root, &id).map(|file| sanitize(display_path(root, &file)));
        Self {
            name: id.to_string(),
            display_name: sanitize(id.to_string()),
            heading: group_heading(&id),
            persist_path: persist_path.map_err(|error| sanitize(error.to_string())),
            reading,
            id,
        }
    }

    pub fn knob(&self) -> &'static Knob {
        self.id.definition()
    }

    /// Its name without device or process, for display below its heading.
    pub(crate) fn short_name(&self) -> String {
        match self.knob().group {
            KnobGroup::Mount => sanitize(format!("{} {}", self.knob().name, self.id.instance())),
            _ => self.knob().name.to_owned(),
        }
    }

    pub(crate) fn format_short(&self, value: &str) -> String {
        sanitize(value::format_short(self.knob(), value))
    }

    /// The value in few characters; `-` if it could not be read.
    pub fn short_value(&self) -> String {
        self.reading.as_ref().map_or("-".into(), |r| self.format_short(&r.value))
    }

    /// The value with its meaning on this machine, or why it could not be read.
    pub(crate) fn long_value(&self, machine: &MachineLimits) -> String {
        sanitize(match &self.reading {
            Ok(r) => value::format_with_meaning(self.knob(), &r.value, machine),
            Err(fail) => format!("- {fail}"),
        })
    }

    pub(crate) fn default_text(&self, machine: &MachineLimits) -> String {
        let knob = self.knob();
        knob.default.map_or(knob.default_text.into(), |d| value::format_with_meaning(knob, d, machine))
    }

    pub(crate) fn allowed_values(&self, machine: &MachineLimits) -> String {
        let no_reading = KnobReading::default();
        sanitize(value::describe_allowed(self.knob(), machine, self.reading.as_ref().unwrap_or(&no_reading)))
    }

    /// Other knobs that a write changes too; empty if there are none.
    pub(crate) fn linked_effect(&self) -> String {
        match self.knob().link {
            KnobLink::Pair(other) => format!("writing it sets {other} to 0"),
            KnobLink::Recomputes(others) => format!("the kernel also changes {}", others.join(", ")),
            KnobLink::Independent => String::new(),
        }
    }

    /// The file or system call that sets it.
    pub(crate) fn written_to(&self) -> String {
        let instance = self.id.instance();
        sanitize(match (self.id.path(&Root::live()), self.knob().location) {
            (Some(file), _) => file.to_string_lossy().into_owned(),
            (None, KnobLocation::Atime) => format!("mount_setattr(2) on {instance}"),
            (None, KnobLocation::Nofile) => format!("prlimit(2) on process {instance}"),
            (None, _) => format!("ioprio_set(2) on process {instance}"),
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeStatus {
    /// Its tuner reverts it in this many seconds.
    Leased(u64),
    TunerSilent,
    Applying,
    /// Its tuner was killed: nothing will revert it.
    Orphaned,
    /// It was kept: it stays until the machine boots.
    Kept,
    /// It is no longer in effect; says why.
    Closed(String),
}

/// A change of this boot.
#[derive(Debug, Clone)]
pub struct ChangeRow {
    pub id: u64,
    /// Time of the change, ns since 1970; 0 if not known.
    pub wall_ns: i64,
    /// The same by CLOCK_BOOTTIME; `None` if not known or earlier than the boot clock.
    pub boot_ns: Option<u64>,
    pub status: ChangeStatus,
    pub members: Vec<KnobChange>,
}

impl ChangeRow {
    /// Whether it reverts itself when its lease ends.
    pub fn is_on_lease(&self) -> bool {
        matches!(self.status, ChangeStatus::Leased(_) | ChangeStatus::TunerSilent)
    }

    /// Whether it changed only knobs of that experiment.
    pub fn belongs_to(&self, report: &ExperimentReport) -> bool {
        let moved = |m: &KnobChange| report.settings.iter().any(|s| s.knob == sanitize(m.knob.to_string()));
        !self.members.is_empty() && self.members.iter().all(moved)
    }
}

/// The device of a knob that belongs to one.
pub(crate) fn device_of(knob: &KnobId) -> Option<&str> {
    knob.definition().is_of_device().then(|| knob.instance())
}

/// The name of a changed knob, its value before the change and the one written, sanitized and in few characters.
pub(crate) fn change_texts(m: &KnobChange) -> [String; 3] {
    let own = |all: &[(KnobId, String)]| all.first().map(|(_, v)| v.clone());
    let old = own(&m.before).unwrap_or_default();
    let new = m.after.as_deref().and_then(own).unwrap_or_else(|| m.target.clone());
    let short = |value: &str| value::format_short(m.knob.definition(), value);
    [m.knob.to_string(), short(&old), short(&new)].map(sanitize)
}

/// Takes a snapshot. `extra` lists knobs beside those always shown.
pub fn take_snapshot(root: &Root, io: &mut dyn KnobIo, extra: &[String], now: Timestamp) -> KnobSnapshot {
    let machine = MachineLimits::read(root);
    let mut all = discover_knobs(root, false);
    for knob_id in extra.iter().filter_map(|e| KnobId::parse(e).ok()) {
        if !all.contains(&knob_id) {
            all.push(knob_id);
        }
    }
    // Knobs of one device are listed together: its queue, then its share of dirty memory.
    all.sort_by_cached_key(|knob_id| {
        (group_order(knob_id), if group_order(knob_id) == 0 { String::new() } else { knob_id.instance().to_owned() })
    });
    let readings = io.read_all(&all);
    let rows = all.into_iter().zip(readings).map(|(knob_id, r)| KnobRow::new(root, knob_id, r)).collect();
    let (changes, trouble) = match open_journal(root) {
        Ok(None) => (Vec::new(), None),
        Ok(Some((journal, changes))) => {
            let newest = changes.iter().rev().take(MAX_CHANGES);
            (newest.map(|c| change_row(&journal, c, now)).collect(), None)
        }
        Err(why) => (Vec::new(), Some(sanitize(why.to_string()))),
    };
    let writable = rustix::process::geteuid().is_root() || !root.is_live();
    KnobSnapshot { rows, changes, changes_error: trouble, can_write: writable, machine }
}

fn group_order(knob_id: &KnobId) -> u8 {
    match knob_id.definition().group {
        KnobGroup::Device | KnobGroup::Bdi => 1,
        KnobGroup::Mount => 2,
        KnobGroup::Process => 3,
        _ => 0,
    }
}

fn group_heading(knob_id: &KnobId) -> String {
    match knob_id.definition().group {
        KnobGroup::Device | KnobGroup::Bdi => format!("Device {}", sanitize(knob_id.instance())),
        KnobGroup::Mount => "Mounts".into(),
        KnobGroup::Process => format!("Process {}", knob_id.instance()),
        group => group.title().into(),
    }
}

fn change_row(journal: &Journal, change: &ChangeSet, now: Timestamp) -> ChangeRow {
    let age = now.wall_ns - change.wall_ns;
    let boot_ns = (change.wall_ns > 0 && age >= 0).then(|| now.boot_ns.checked_sub(age as u64)).flatten();
    let status = match (change.is_open(), change.is_kept) {
        (false, _) => ChangeStatus::Closed(outcome_summary(change)),
        (true, true) => ChangeStatus::Kept,
        (true, false) => match lease_status(journal, change.id) {
            LeaseStatus::Active(secs) => ChangeStatus::Leased(secs),
            LeaseStatus::Unresponsive => ChangeStatus::TunerSilent,
            LeaseStatus::Orphaned if age < TUNER_START_GRACE_NS => ChangeStatus::Applying,
            LeaseStatus::Orphaned => ChangeStatus::Orphaned,
        },
    };
    ChangeRow { id: change.id, wall_ns: change.wall_ns, boot_ns, status, members: change.members.clone() }
}

fn outcome_summary(change: &ChangeSet) -> String {
    let all = |is: fn(&RestoreOutcome) -> bool| change.members.iter().filter_map(|m| m.outcome.as_ref()).all(is);
    let any = |is: fn(&RestoreOutcome) -> bool| change.members.iter().filter_map(|m| m.outcome.as_ref()).any(is);
    if change.members.is_empty()
        || all(|o| *o == RestoreOutcome::AlreadyRestored) && change.members.iter().all(|m| m.after.is_none())
    {
        "nothing to change".into()
    } else if any(|o| matches!(o, RestoreOutcome::Conflict { .. })) {
        "CONFLICT".into()
    } else if all(|o| *o == RestoreOutcome::Gone) {
        "gone".into()
    } else {
        "reverted".into()
    }
}
