//! `tune status`: the five values of each knob, and the changes of this boot.

use super::super::FINE;
use super::out::Out;
use super::show::{every, told};
use super::{Done, addresses, careful};
use crate::root::Root;
use crate::tune::address::Address;
use crate::tune::change::{Change, at_start, fold};
use crate::tune::client::call;
use crate::tune::journal::Journal;
use crate::tune::kernel::KnobIo;
use crate::tune::knob::{Persist, Place};
use crate::tune::machine::Machine;
use crate::tune::persist;
use crate::tune::protocol::{Reply, Request};
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
            let (value, file) = next_boot(root, &next, at);
            vec![
                at.to_string(),
                told(at, reading, &machine),
                start,
                at.knob().default_words().into(),
                value,
                file,
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

/// The value at the next boot, and what decides it.
fn next_boot(root: &Root, next: &NextBoot, at: &Address) -> (String, String) {
    let knob = at.knob();
    let own = persist::file(root, at).ok();
    let ours = own.as_deref().and_then(|f| persist::persisted(f).ok()?.get(at).cloned());
    let default = || knob.default_words().to_owned();
    match (knob.persist, knob.place) {
        (Persist::Sysctl, _) => match next.of(at) {
            Some(decided) => {
                let loses = own.filter(|o| ours.is_some() && *o != decided.file);
                let note = loses.map(|o| format!("; OURS LOSES ({})", shown(root, &o))).unwrap_or_default();
                let over = match decided.losers.is_empty() || !note.is_empty() {
                    true => String::new(),
                    false => format!(" (over {})", decided.losers.join(", ")),
                };
                (decided.value, format!("{}{over}{note}", decided.from))
            }
            None => (default(), "the kernel: no file sets it".into()),
        },
        (Persist::Elsewhere(_), Place::Atime) => ("?".into(), "/etc/fstab or a mount unit".into()),
        (Persist::Elsewhere(_), _) => ("-".into(), "the process is gone by then".into()),
        (_, place) => match (ours, own) {
            (Some(value), Some(file)) => (value, shown(root, &file)),
            _ => match (place, thp_on_cmdline(root, knob.name)) {
                (_, Some(value)) => (value, "the kernel's command line".into()),
                (Place::Sys(_), None) => (default(), "the kernel, or a program at boot".into()),
                _ => (default(), "the driver, or another udev rule".into()),
            },
        },
    }
}

fn thp_on_cmdline(root: &Root, name: &str) -> Option<String> {
    let line = std::fs::read_to_string(root.proc("cmdline")).ok()?;
    let value = line.split_ascii_whitespace().rev().find_map(|w| w.strip_prefix("transparent_hugepage="))?;
    (name == "transparent_hugepage.enabled").then(|| value.to_owned())
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
            false => match call(journal, change.id, &Request::State) {
                Some(Ok(Reply::Left { secs })) => format!("on lease for another {}", units::span(secs)),
                Some(_) => "its tuner does not answer".into(),
                None => {
                    format!("LEFT BEHIND, its tuner is dead; to restore: iotop-plus tune undo {}", change.id)
                }
            },
        };
        out.line(format!("change {}, {}: {how}", change.id, units::rfc3339(change.wall_ns)));
        for m in change.members.iter().filter(|m| m.closed.is_none()) {
            let old: Vec<String> =
                m.before.iter().filter(|(_, v)| v != "0").map(|(a, v)| format!("{a}={v}")).collect();
            out.line(format!("  {}={} (before: {})", m.at, m.want, old.join(" ")));
        }
    }
}
