//! `tune set` and `tune preset`.

use super::super::text_output::TextOutput;
use super::common::{child_knob_io, require_root};
use crate::root::Root;
use crate::tuning::apply::now_wall_ns;
use crate::tuning::knob_id::KnobId;
use crate::tuning::machine_limits::MachineLimits;
use crate::tuning::plan::{PlannedWrite, TuneError, plan_writes};
use crate::tuning::presets::{PRESETS, find_preset};
use crate::tuning::progress_check;
use crate::tuning::protocol::{AppliedKnob, TunerReply};
use crate::tuning::tuner_client::LeaseHandle;
use crate::tuning::value;
use crate::units;
use anyhow::bail;

pub(super) fn run(root: &Root, words: Vec<String>, lease_secs: Option<u64>, dry_run: bool) -> anyhow::Result<u8> {
    let machine = MachineLimits::read(root);
    let planned = plan_writes(&mut child_knob_io(root), &machine, &words)?;
    for p in &planned {
        progress_check::require_progress(root, &p.knob).map_err(TuneError::from)?;
    }
    if dry_run {
        return render_dry_run(&planned, &machine, lease_secs).print();
    }
    require_root(root, "changing knobs")?;
    // An error of the pipe to the tuner is none of standard output.
    let failed = |err: std::io::Error| TuneError::Failed(err.to_string());
    let (held, reply) = LeaseHandle::start(Root::self_exe(), root, words, lease_secs).map_err(failed)?;
    let (id, members, lease) = match reply {
        TunerReply::Applied { id, members, lease_secs } => (id, members, lease_secs),
        TunerReply::Refused(refusal) => return Err(refusal.into()),
        other => bail!("the tuner said {other:?}"),
    };
    let mut out = TextOutput::default();
    let changed = members.iter().any(|m| !m.after.is_empty());
    for member in &members {
        push_applied(&mut out, member, &machine);
    }
    match lease {
        Some(secs) if changed => {
            let pid = held.pid();
            match held.detach().map_err(failed)? {
                TunerReply::TimeLeft { .. } => {}
                other => bail!("the tuner said {other:?}"),
            }
            let end = units::format_time_of_day(now_wall_ns() + secs as i64 * 1_000_000_000, 0);
            out.push_line(format!(
                "Change {id} is on lease for {}: at {end} UTC the old values come back by themselves (process {pid} \
                 sees to it, also if this terminal closes).",
                units::format_duration(secs)
            ));
            out.push_line(format!(
                "To let it stay: iotop-plus tune keep {id}    To take it back: iotop-plus tune undo {id}"
            ));
        }
        _ if changed => {
            out.push_line(format!(
                "Change {id} stays until the machine boots. To take it back: iotop-plus tune undo {id}"
            ));
            out.push_line("To make it last over a boot: iotop-plus tune persist KNOB...");
        }
        _ => out.push_line("Nothing to change."),
    }
    out.print()
}

fn render_dry_run(planned: &[PlannedWrite], machine: &MachineLimits, lease_secs: Option<u64>) -> TextOutput {
    let mut out = TextOutput::default();
    for p in planned {
        let show = |v: &str| value::format_with_meaning(p.knob.definition(), v, machine);
        match p.current.value == p.target {
            true => out.push_line(format!("{} stands at {} already", p.knob, show(&p.target))),
            false => {
                out.push_line(format!("would set {} from {} to {}", p.knob, show(&p.current.value), show(&p.target)))
            }
        }
        if let Some((other, now)) = &p.zeroed_partner {
            out.push_line(format!(
                "  which sets {other} from {} to 0",
                value::format_with_meaning(other.definition(), now, machine)
            ));
        }
    }
    match lease_secs {
        Some(secs) => out.push_line(format!("on a lease of {}; nothing was changed", units::format_duration(secs))),
        None => out.push_line("to stay until the next boot; nothing was changed"),
    }
    out
}

fn push_applied(out: &mut TextOutput, member: &AppliedKnob, machine: &MachineLimits) {
    let show = |at: &KnobId, v: &str| value::format_with_meaning(at.definition(), v, machine);
    if member.after.is_empty() {
        if let Some((at, value)) = member.before.first() {
            out.push_line(format!("{at} stands at {} already", show(at, value)));
        }
        return;
    }
    for (n, ((at, old), (_, new))) in member.before.iter().zip(&member.after).enumerate() {
        if old != new {
            let indent = if n == 0 { "" } else { "  the kernel with it: " };
            out.push_line(format!("{indent}{at}: {} -> {}", show(at, old), show(at, new)));
        }
    }
}

pub(super) fn list_presets(root: &Root) -> anyhow::Result<u8> {
    let mut out = TextOutput::default();
    let mut io = child_knob_io(root);
    for preset in PRESETS {
        out.push_line(format!("{}: {}", preset.name, preset.title));
        out.push_paragraph(preset.description);
        let (words, missing) = preset.available_assignments(&mut io);
        out.push_paragraph(&format!("sets {}", words.join(" ")));
        if !missing.is_empty() {
            out.push_paragraph(&format!("not on this machine: {}", missing.join(" ")));
        }
        out.push_line(format!("source: {}", preset.source));
        out.push_blank();
    }
    out.push_line("`iotop-plus tune preset NAME --dry-run` shows what would change here.");
    out.print()
}

pub(super) fn apply_preset(root: &Root, name: &str, lease_secs: Option<u64>, dry_run: bool) -> anyhow::Result<u8> {
    let (words, _) = find_preset(name)?.available_assignments(&mut child_knob_io(root));
    run(root, words, lease_secs, dry_run)
}
