//! A look at every knob of the machine and every change of the boot, as rows to be shown.
//!
//! Taken on a thread of the runner: what may block goes through the given [`KnobIo`], which asks a child.

use crate::experiment::report::ExperimentReport;
use crate::model::timestamp::Timestamp;
use crate::root::Root;
use crate::sanitize::sanitize;
use crate::tuning::change_set::{ChangeSet, KnobChange};
use crate::tuning::discover::discover_knobs;
use crate::tuning::journal::Journal;
use crate::tuning::journal_record::RestoreOutcome;
use crate::tuning::knob::{KnobGroup, KnobLink, KnobLocation};
use crate::tuning::knob_id::KnobId;
use crate::tuning::knob_io::{KnobError, KnobIo, KnobReading};
use crate::tuning::lifecycle::{LeaseStatus, lease_status, open_journal};
use crate::tuning::machine_limits::MachineLimits;
use crate::tuning::persist::file_for;
use crate::tuning::sysctl::display_path;
use crate::tuning::value;

/// Changes shown at most, the newest.
const MAX_CHANGES: usize = 200;
/// A change nobody holds is left behind only when it is older: its tuner may just be starting, ns.
const TUNER_START_GRACE_NS: i64 = 3_000_000_000;

/// Everything at one moment.
#[derive(Debug, Clone, Default)]
pub struct KnobSnapshot {
    /// All knobs, grouped.
    pub rows: Vec<KnobRow>,
    /// The boot's changes, newest first.
    pub changes: Vec<ChangeRow>,
    /// Why the changes are not known.
    pub changes_error: Option<String>,
    /// Whether this process may change anything.
    pub can_write: bool,
    /// What a ratio means here.
    pub machine: MachineLimits,
}

/// A knob, ready to be shown; names and texts are cleaned but for `name`.
#[derive(Debug, Clone)]
pub struct KnobRow {
    /// Which.
    pub id: KnobId,
    /// The same as text, raw: what other tables are looked up with.
    pub name: String,
    /// The same, cleaned.
    pub display_name: String,
    /// Under its heading: without device or process.
    pub short_name: String,
    /// The heading it stands under.
    pub heading: String,
    /// Device, mount point or process; empty: the machine.
    pub instance: String,
    /// Whether `place` is a device.
    pub is_device_knob: bool,
    /// Whether it steers buffered writes.
    pub is_writeback_knob: bool,
    /// The value, or why there is none.
    pub reading: Result<KnobReading, KnobError>,
    /// The value in few characters; `-`: not read.
    pub short_value: String,
    /// The value with its meaning on this machine, or the reason for there being none.
    pub long_value: String,
    /// The kernel's own value, in few characters; empty where it depends on the machine.
    pub short_default: String,
    /// The kernel's own value in words.
    pub default_text: String,
    /// What may be written.
    pub allowed_values: String,
    /// What it does and costs.
    pub description: &'static str,
    /// Where that is written.
    pub source: &'static str,
    /// What writing needs.
    pub required_privilege: &'static str,
    /// What moves with it.
    pub linked_effect: String,
    /// The file it is written to, or the call.
    pub written_to: String,
    /// Where a value that is to last is written, or where it belongs.
    pub persist_path: Result<String, String>,
}

/// How a change stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeStatus {
    /// Its tuner undoes it in so many seconds.
    Leased(u64),
    /// Its tuner does not answer.
    TunerSilent,
    /// It is being made.
    Applying,
    /// Its tuner is dead: nobody will undo it.
    Orphaned,
    /// Somebody wanted it to stay.
    Kept,
    /// Nothing of it stands: what became of it.
    Closed(String),
}

/// A change of this boot.
#[derive(Debug, Clone)]
pub struct ChangeRow {
    /// Its number.
    pub id: u64,
    /// When it was made, ns since 1970; 0: not known.
    pub wall_ns: i64,
    /// The same by CLOCK_BOOTTIME; `None`: not known, or before this boot's clock.
    pub boot_ns: Option<u64>,
    /// How it stands.
    pub status: ChangeStatus,
    /// Its knobs.
    pub members: Vec<ChangedKnobRow>,
}

impl ChangeRow {
    /// Whether it moved knobs of that experiment, and no others.
    pub fn belongs_to(&self, report: &ExperimentReport) -> bool {
        let moved = |m: &ChangedKnobRow| report.settings.iter().any(|s| s.knob == m.display_name);
        !self.members.is_empty() && self.members.iter().all(moved)
    }
}

/// A knob of a change.
#[derive(Debug, Clone)]
pub struct ChangedKnobRow {
    /// Which, raw.
    pub name: String,
    /// The same, cleaned.
    pub display_name: String,
    /// Its device, if it is a device's.
    pub device: Option<String>,
    /// Whether it steers buffered writes.
    pub is_writeback_knob: bool,
    /// Value before, as the kernel spells it.
    pub raw_old_value: String,
    /// Value before, in few characters.
    pub old_value: String,
    /// Value written.
    pub new_value: String,
    /// What became of it.
    pub outcome: Option<String>,
}

/// Takes it. `extra` are knobs beside those always listed; `now` the clocks.
pub fn take_snapshot(root: &Root, io: &mut dyn KnobIo, extra: &[String], now: Timestamp) -> KnobSnapshot {
    let machine = MachineLimits::read(root);
    let mut all = discover_knobs(root, false);
    for at in extra.iter().filter_map(|e| KnobId::parse(e).ok()) {
        if !all.contains(&at) {
            all.push(at);
        }
    }
    // What belongs to one device stands together, its queue before its share of dirty memory.
    all.sort_by_cached_key(|at| {
        (group_order(at), if group_order(at) == 0 { String::new() } else { at.instance().to_owned() })
    });
    let readings = io.read_all(&all);
    let rows = all.into_iter().zip(readings).map(|(at, r)| knob_row(root, at, r, &machine)).collect();
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

fn group_order(at: &KnobId) -> u8 {
    match at.definition().group {
        KnobGroup::Device | KnobGroup::Bdi => 1,
        KnobGroup::Mount => 2,
        KnobGroup::Process => 3,
        _ => 0,
    }
}

fn is_device_knob(at: &KnobId) -> bool {
    matches!(at.definition().location, KnobLocation::Queue(_) | KnobLocation::Bdi(_))
}

fn group_heading(at: &KnobId) -> String {
    match at.definition().group {
        KnobGroup::Device | KnobGroup::Bdi => format!("Device {}", sanitize(at.instance())),
        KnobGroup::Mount => "Mounts".into(),
        KnobGroup::Process => format!("Process {}", at.instance()),
        group => group.title().into(),
    }
}

fn knob_row(root: &Root, at: KnobId, reading: Result<KnobReading, KnobError>, machine: &MachineLimits) -> KnobRow {
    let knob = at.definition();
    let (brief, long) = match &reading {
        Ok(r) => (value::format_short(knob, &r.value), value::format_with_meaning(knob, &r.value, machine)),
        Err(fail) => ("-".into(), format!("- {}", fail)),
    };
    let unknown = KnobReading::default();
    let allowed = value::describe_allowed(knob, machine, reading.as_ref().unwrap_or(&unknown));
    let short = match knob.group {
        KnobGroup::Mount => format!("{} {}", knob.name, at.instance()),
        _ => knob.name.to_owned(),
    };
    KnobRow {
        name: at.to_string(),
        display_name: sanitize(at.to_string()),
        short_name: sanitize(short),
        heading: group_heading(&at),
        instance: at.instance().to_owned(),
        is_device_knob: is_device_knob(&at),
        is_writeback_knob: knob.group == KnobGroup::Writeback,
        short_value: sanitize(brief),
        long_value: sanitize(long),
        short_default: knob.default.map(|d| value::format_short(knob, d)).unwrap_or_default(),
        default_text: knob.default.map_or(knob.default_text.into(), |d| value::format_with_meaning(knob, d, machine)),
        allowed_values: sanitize(allowed),
        description: knob.description,
        source: knob.source,
        required_privilege: knob.requires,
        linked_effect: match knob.link {
            KnobLink::Pair(other) => format!("writing it sets {other} to 0"),
            KnobLink::Recomputes(others) => format!("the kernel also moves {}", others.join(", ")),
            KnobLink::Independent => String::new(),
        },
        written_to: sanitize(write_destination(&at)),
        persist_path: file_for(root, &at)
            .map(|f| sanitize(display_path(root, &f)))
            .map_err(|error| sanitize(error.to_string())),
        reading,
        id: at,
    }
}

/// What is written to, in words a person can check.
fn write_destination(at: &KnobId) -> String {
    let live = Root::live();
    let file = match at.definition().location {
        KnobLocation::Sysctl(file) => live.proc(&format!("sys/{file}")),
        KnobLocation::Sys(file) => live.sys(file),
        KnobLocation::Queue(file) => live.sys(&format!("block/{}/queue/{file}", at.instance())),
        KnobLocation::Bdi(file) => live.sys(&format!("block/{}/bdi/{file}", at.instance())),
        KnobLocation::Atime => return format!("mount_setattr(2) on {}", at.instance()),
        KnobLocation::Nofile => return format!("prlimit(2) on process {}", at.instance()),
        KnobLocation::IoPrio => return format!("ioprio_set(2) on process {}", at.instance()),
    };
    file.to_string_lossy().into_owned()
}

fn change_row(journal: &Journal, change: &ChangeSet, now: Timestamp) -> ChangeRow {
    let age = now.wall_ns - change.wall_ns;
    let boot_ns = (change.wall_ns > 0 && age >= 0).then(|| now.boot_ns.checked_sub(age as u64)).flatten();
    let members: Vec<ChangedKnobRow> = change.members.iter().map(changed_knob_row).collect();
    let standing = match (change.is_open(), change.is_kept) {
        (false, _) => ChangeStatus::Closed(outcome_summary(change)),
        (true, true) => ChangeStatus::Kept,
        (true, false) => match lease_status(journal, change.id) {
            LeaseStatus::Active(secs) => ChangeStatus::Leased(secs),
            LeaseStatus::Unresponsive => ChangeStatus::TunerSilent,
            LeaseStatus::Orphaned if age < TUNER_START_GRACE_NS => ChangeStatus::Applying,
            LeaseStatus::Orphaned => ChangeStatus::Orphaned,
        },
    };
    ChangeRow { id: change.id, wall_ns: change.wall_ns, boot_ns, status: standing, members }
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
        "taken back".into()
    }
}

fn changed_knob_row(m: &KnobChange) -> ChangedKnobRow {
    let knob = m.knob.definition();
    let own = |all: &[(KnobId, String)]| all.first().map(|(_, v)| v.clone());
    let old = own(&m.before).unwrap_or_default();
    let new = m.after.as_deref().and_then(own).unwrap_or_else(|| m.target.clone());
    ChangedKnobRow {
        name: m.knob.to_string(),
        display_name: sanitize(m.knob.to_string()),
        device: is_device_knob(&m.knob).then(|| m.knob.instance().to_owned()),
        is_writeback_knob: knob.group == KnobGroup::Writeback,
        old_value: sanitize(value::format_short(knob, &old)),
        new_value: sanitize(value::format_short(knob, &new)),
        raw_old_value: old,
        outcome: m.outcome.clone().map(|o| sanitize(crate::tuning::restore::RestoreResult::Closed(o).to_string())),
    }
}
