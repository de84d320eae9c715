//! `tune status`: the five values of each knob, and the changes of this boot.

use super::super::FINE;
use super::out::Out;
use super::show::told;
use super::{Done, addresses, careful};
use crate::root::Root;
use crate::tune::at_boot::at_boot;
use crate::tune::change::{Change, at_start, fold};
use crate::tune::journal::Journal;
use crate::tune::kernel::KnobIo;
use crate::tune::machine::Machine;
use crate::tune::manage::{Holder, holder};
use crate::tune::persist;
use crate::tune::places::every;
use crate::tune::sysctl::{NextBoot, shown};
use crate::units;

/// Prints it.
pub fn run(root: &Root, knobs: &[String]) -> Done {
    let machine = Machine::read(root);
    let mut out = Out::default();
    let (mut journal, changes, trouble) = changes(root);
    let wanted = match knobs {
        [] => every(root, false),
        some => addresses(some)?,
    };
    let next = NextBoot::read(root);
    let readings = careful(root).read_many(&wanted);
    let rows: Vec<Vec<String>> = wanted
        .iter()
        .zip(&readings)
        .map(|(at, reading)| {
            let start = match (&trouble, at_start(&changes, at)) {
                (Some(_), _) => "?".into(),
                (None, Some(value)) => value.to_owned(),
                (None, None) => "unchanged".into(),
            };
            let boot = at_boot(root, &next, at);
            vec![
                at.to_string(),
                told(at, reading, &machine),
                start,
                at.knob().default_words().into(),
                boot.value,
                boot.by,
            ]
        })
        .collect();
    out.table(&["KNOB", "NOW", "AT FIRST CHANGE", "KERNEL DEFAULT", "NEXT BOOT", "DECIDED BY"], &rows);
    for (file, by) in &next.masked {
        out.line(format!("note: {} does not count, {} stands before it", shown(root, file), shown(root, by)));
    }
    if let Some(note) = persist::others(root) {
        out.line(format!("note: {note}"));
    }
    out.gap();
    match trouble {
        Some(why) => out.line(format!("changes of this boot: {why}")),
        None => tell(&mut out, journal.as_mut(), &changes),
    }
    Ok(out.print().map(|()| FINE))
}

fn changes(root: &Root) -> (Option<Journal>, Vec<Change>, Option<String>) {
    match Journal::open_existing(root) {
        Ok(None) => (None, Vec::new(), None),
        Err(err) => (None, Vec::new(), Some(format!("unknown, {err}"))),
        Ok(Some(mut journal)) => match journal.load() {
            Ok((records, damaged)) => {
                if damaged > 0 {
                    super::complain(&format!("{damaged} damaged lines in the journal were left out"));
                }
                (Some(journal), fold(&records), None)
            }
            Err(err) => (None, Vec::new(), Some(format!("unknown, {err}"))),
        },
    }
}

fn tell(out: &mut Out, journal: Option<&mut Journal>, changes: &[Change]) {
    let open: Vec<&Change> = changes.iter().filter(|c| c.is_open()).collect();
    let Some(journal) = journal.filter(|_| !open.is_empty()) else {
        out.line("No change of this boot stands.");
        return;
    };
    for change in open {
        let how = match change.kept {
            true => format!("stays until the boot; to take it back: iotop-plus tune undo {}", change.id),
            false => match holder(journal, change.id) {
                Holder::Lease(secs) => format!("on lease for another {}", units::format_duration(secs)),
                Holder::Silent => "its tuner does not answer".into(),
                Holder::Nobody => {
                    format!("LEFT BEHIND, its tuner is dead; to restore: iotop-plus tune undo {}", change.id)
                }
            },
        };
        out.line(format!("change {}, {}: {how}", change.id, units::format_rfc3339(change.wall_ns)));
        for m in change.members.iter().filter(|m| m.closed.is_none()) {
            let old: Vec<String> =
                m.before.iter().filter(|(_, v)| v != "0").map(|(a, v)| format!("{a}={v}")).collect();
            out.line(format!("  {}={} (before: {})", m.at, m.want, old.join(" ")));
        }
    }
}
