//! `tune list` and `tune get`.

use super::super::{FAILED, FINE};
use super::out::Out;
use super::{Done, addresses, careful};
use crate::root::Root;
use crate::tune::address::Address;
use crate::tune::kernel::{Fail, KnobIo, Reading};
use crate::tune::knob::Link;
use crate::tune::machine::Machine;
use crate::tune::places::every;
use crate::tune::value;

/// All knobs in their groups.
pub fn list(root: &Root, part: Option<&str>) -> Done {
    let machine = Machine::read(root);
    let mut out = Out::default();
    let wanted: Vec<Address> = every(root, part.is_some())
        .into_iter()
        .filter(|a| part.is_none_or(|p| a.to_string().contains(p)))
        .collect();
    let readings = careful(root).read_many(&wanted);
    let mut group = None;
    let mut rows = Vec::new();
    for (at, reading) in wanted.iter().zip(&readings) {
        if group != Some(at.knob().group) {
            section(&mut out, &mut rows);
            if group.is_some() {
                out.gap();
            }
            out.line(at.knob().group.title());
            group = Some(at.knob().group);
        }
        rows.push(row(at, reading, &machine));
    }
    section(&mut out, &mut rows);
    if part.is_none() {
        out.gap();
        out.line("Processes: nofile@PID and ioprio@PID");
        out.line("`iotop-plus tune get KNOB` says what one does and costs.");
    } else if wanted.is_empty() {
        out.line("no knob is called like that");
    }
    Ok(out.print().map(|()| FINE))
}

fn section(out: &mut Out, rows: &mut Vec<Vec<String>>) {
    if !rows.is_empty() {
        out.table(&["  KNOB", "NOW", "ALLOWED", "KERNEL DEFAULT"], rows);
        rows.clear();
    }
}

fn row(at: &Address, reading: &Result<Reading, Fail>, machine: &Machine) -> Vec<String> {
    let unknown = Reading::default();
    let knob = at.knob();
    vec![
        format!("  {at}"),
        told(at, reading, machine),
        value::allowed(knob, machine, reading.as_ref().unwrap_or(&unknown)),
        knob.default_words().into(),
    ]
}

/// A value in words, or why there is none.
pub fn told(at: &Address, reading: &Result<Reading, Fail>, machine: &Machine) -> String {
    match reading {
        Ok(reading) => value::show(at.knob(), &reading.value, machine),
        Err(Fail::Absent(_)) => "- (not here)".into(),
        Err(Fail::Denied(_)) => "- (denied)".into(),
        Err(Fail::Invalid(_)) => "- (not readable)".into(),
        Err(Fail::Blocked(_)) => "- (blocked)".into(),
    }
}

/// Everything about a few knobs.
pub fn get(root: &Root, knobs: &[String]) -> Done {
    let machine = Machine::read(root);
    let wanted = addresses(knobs)?;
    let mut io = careful(root);
    let readings = io.read_many(&wanted);
    let mut out = Out::default();
    let mut code = FINE;
    for (n, (at, reading)) in wanted.iter().zip(&readings).enumerate() {
        if n > 0 {
            out.gap();
        }
        let knob = at.knob();
        match reading {
            Ok(r) => out.line(format!("{at} = {}", value::show(knob, &r.value, &machine))),
            Err(fail) => {
                out.line(format!("{at}: {}", fail.text()));
                code = FAILED;
            }
        }
        let unknown = Reading::default();
        out.line(format!(
            "allowed: {}",
            value::allowed(knob, &machine, reading.as_ref().unwrap_or(&unknown))
        ));
        out.line(format!("kernel default: {}", knob.default_words()));
        out.line(format!("needs: {}", knob.needs));
        match knob.link {
            Link::Pair(other) => out.line(format!("writing it sets {other} to 0")),
            Link::Moves(others) => out.line(format!("the kernel also moves {}", others.join(", "))),
            Link::Alone => {}
        }
        out.paragraph(knob.about, 100);
        out.line(format!("source: {}", knob.source));
    }
    Ok(out.print().map(|()| code))
}
