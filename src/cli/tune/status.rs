//! `tune status`: the values of each knob, and the changes of this boot.

use super::super::exit::print_error;
use super::super::text_output::TextOutput;
use super::common::{child_knob_io, parse_knob_ids};
use super::show::format_reading;
use crate::root::Root;
use crate::tuning::boot_value::boot_value;
use crate::tuning::change_set::{ChangeSet, changes_from_records, value_before_first_change};
use crate::tuning::discover::discover_knobs;
use crate::tuning::journal::Journal;
use crate::tuning::knob_id::KnobId;
use crate::tuning::knob_io::{KnobError, KnobIo, KnobReading};
use crate::tuning::lifecycle::{LeaseStatus, lease_status};
use crate::tuning::machine_limits::MachineLimits;
use crate::tuning::persist;
use crate::tuning::sysctl::{BootSysctls, display_path};
use crate::units;

pub(super) fn run(root: &Root, knobs: &[String]) -> anyhow::Result<u8> {
    let machine = MachineLimits::read(root);
    let mut out = TextOutput::default();
    let (mut journal, changes, trouble) = load_changes(root);
    let wanted = match knobs {
        [] => discover_knobs(root, false),
        some => parse_knob_ids(some)?,
    };
    let next = BootSysctls::read(root);
    let readings = child_knob_io(root).read_all(&wanted);
    let row = |(at, reading): (&KnobId, &Result<KnobReading, KnobError>)| {
        let start = match (&trouble, value_before_first_change(&changes, at)) {
            (Some(_), _) => "?",
            (None, value) => value.unwrap_or("unchanged"),
        };
        let boot = boot_value(root, &next, at);
        let default = at.definition().default_display().into();
        let now = format_reading(at, reading, &machine);
        vec![at.to_string(), now, start.to_owned(), default, boot.value, boot.decided_by]
    };
    let rows: Vec<Vec<String>> = wanted.iter().zip(&readings).map(row).collect();
    out.push_table(&["KNOB", "NOW", "AT FIRST CHANGE", "KERNEL DEFAULT", "NEXT BOOT", "DECIDED BY"], &rows);
    for (file, by) in &next.masked_files {
        let (file, by) = (display_path(root, file), display_path(root, by));
        out.push_line(format!("note: {file} does not count, {by} stands before it"));
    }
    if let Some(note) = persist::other_tuning_program(root) {
        out.push_line(format!("note: {note}"));
    }
    out.push_blank();
    match trouble {
        Some(why) => out.push_line(format!("changes of this boot: {why}")),
        None => push_changes(&mut out, journal.as_mut(), &changes),
    }
    out.print()
}

fn load_changes(root: &Root) -> (Option<Journal>, Vec<ChangeSet>, Option<String>) {
    let loaded = Journal::open_existing(root).and_then(|journal| {
        let Some(mut journal) = journal else { return Ok((None, Vec::new(), None)) };
        let (records, damaged) = journal.load()?;
        if damaged > 0 {
            print_error(&format!("{damaged} damaged lines in the journal were left out"));
        }
        Ok((Some(journal), changes_from_records(&records), None))
    });
    loaded.unwrap_or_else(|err| (None, Vec::new(), Some(format!("unknown, {err}"))))
}

fn push_changes(out: &mut TextOutput, journal: Option<&mut Journal>, changes: &[ChangeSet]) {
    let open: Vec<&ChangeSet> = changes.iter().filter(|c| c.is_open()).collect();
    let Some(journal) = journal.filter(|_| !open.is_empty()) else {
        out.push_line("No change of this boot stands.");
        return;
    };
    for change in open {
        let how = match change.is_kept {
            true => format!("stays until the boot; to take it back: iotop-plus tune undo {}", change.id),
            false => match lease_status(journal, change.id) {
                LeaseStatus::Active(secs) => format!("on lease for another {}", units::format_duration(secs)),
                LeaseStatus::Unresponsive => "its tuner does not answer".into(),
                LeaseStatus::Orphaned => {
                    format!("LEFT BEHIND, its tuner is dead; to restore: iotop-plus tune undo {}", change.id)
                }
            },
        };
        out.push_line(format!("change {}, {}: {how}", change.id, units::format_rfc3339(change.wall_ns)));
        for m in change.members.iter().filter(|m| m.outcome.is_none()) {
            let old: Vec<String> = m.before.iter().filter(|(_, v)| v != "0").map(|(a, v)| format!("{a}={v}")).collect();
            out.push_line(format!("  {}={} (before: {})", m.knob, m.target, old.join(" ")));
        }
    }
}
