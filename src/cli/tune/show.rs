//! `tune list` and `tune get`.

use super::super::exit::{EXIT_FAILED, EXIT_OK};
use super::super::text_output::TextOutput;
use super::common::{child_knob_io, parse_knob_ids};
use crate::root::Root;
use crate::tuning::discover::discover_knobs;
use crate::tuning::knob::KnobLink;
use crate::tuning::knob_id::KnobId;
use crate::tuning::knob_io::{KnobError, KnobIo, KnobReading};
use crate::tuning::machine_limits::MachineLimits;
use crate::tuning::value;

pub(in crate::cli) fn list(root: &Root, part: Option<&str>) -> anyhow::Result<u8> {
    let machine = MachineLimits::read(root);
    let mut out = TextOutput::default();
    let wanted: Vec<KnobId> = discover_knobs(root, part.is_some())
        .into_iter()
        .filter(|a| part.is_none_or(|p| a.to_string().contains(p)))
        .collect();
    let readings = child_knob_io(root).read_all(&wanted);
    let knobs: Vec<_> = wanted.iter().zip(&readings).collect();
    for (n, group) in knobs.chunk_by(|a, b| a.0.definition().group == b.0.definition().group).enumerate() {
        if n > 0 {
            out.push_blank();
        }
        out.push_line(group[0].0.definition().group.title());
        let rows: Vec<_> = group.iter().map(|(at, reading)| knob_row(at, reading, &machine)).collect();
        out.push_table(&["  KNOB", "NOW", "ALLOWED", "KERNEL DEFAULT"], &rows);
    }
    if part.is_none() {
        out.push_blank();
        out.push_line("Processes: nofile@PID and ioprio@PID");
        out.push_line("Loop, RAM, compressed-RAM and network disks: `iotop-plus tune list loop`, and the like");
        out.push_line("`iotop-plus tune get KNOB` says what one does and costs.");
    } else if wanted.is_empty() {
        out.push_line("no knob is called like that");
    }
    out.print()
}

fn knob_row(at: &KnobId, reading: &Result<KnobReading, KnobError>, machine: &MachineLimits) -> Vec<String> {
    let knob = at.definition();
    vec![
        format!("  {at}"),
        format_reading(at, reading, machine),
        describe_allowed(at, reading, machine),
        knob.default_display().into(),
    ]
}

fn describe_allowed(at: &KnobId, reading: &Result<KnobReading, KnobError>, machine: &MachineLimits) -> String {
    value::describe_allowed(at.definition(), machine, reading.as_ref().unwrap_or(&KnobReading::default()))
}

/// Formats a value, or the reason why there is none.
pub(in crate::cli) fn format_reading(
    at: &KnobId,
    reading: &Result<KnobReading, KnobError>,
    machine: &MachineLimits,
) -> String {
    match reading {
        Ok(reading) => value::format_with_meaning(at.definition(), &reading.value, machine),
        Err(KnobError::Absent(_)) => "- (not here)".into(),
        Err(KnobError::Denied(_)) => "- (denied)".into(),
        Err(KnobError::Invalid(_)) => "- (not readable)".into(),
        Err(KnobError::Blocked(_)) => "- (blocked)".into(),
    }
}

pub(in crate::cli) fn get(root: &Root, knobs: &[String]) -> anyhow::Result<u8> {
    let machine = MachineLimits::read(root);
    let wanted = parse_knob_ids(knobs)?;
    let mut io = child_knob_io(root);
    let readings = io.read_all(&wanted);
    let mut out = TextOutput::default();
    let mut code = EXIT_OK;
    for (n, (at, reading)) in wanted.iter().zip(&readings).enumerate() {
        if n > 0 {
            out.push_blank();
        }
        let knob = at.definition();
        match reading {
            Ok(r) => out.push_line(format!("{at} = {}", value::format_with_meaning(knob, &r.value, &machine))),
            Err(fail) => {
                out.push_line(format!("{at}: {}", fail));
                code = EXIT_FAILED;
            }
        }
        out.push_line(format!("allowed: {}", describe_allowed(at, reading, &machine)));
        out.push_line(format!("kernel default: {}", knob.default_display()));
        out.push_line(format!("needs: {}", knob.requires));
        match knob.link {
            KnobLink::Pair(other) => out.push_line(format!("writing it sets {other} to 0")),
            KnobLink::Recomputes(others) => out.push_line(format!("the kernel also moves {}", others.join(", "))),
            KnobLink::Independent => {}
        }
        out.push_paragraph(knob.description);
        out.push_line(format!("source: {}", knob.source));
    }
    out.print()?;
    Ok(code)
}
