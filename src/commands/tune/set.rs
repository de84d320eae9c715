//! `tune set`.

use super::super::FINE;
use super::out::Out;
use super::{Done, careful, need_root};
use crate::root::Root;
use crate::tune::address::Address;
use crate::tune::apply::wall_ns;
use crate::tune::client::Held;
use crate::tune::guard;
use crate::tune::machine::Machine;
use crate::tune::plan::{Planned, Refusal, plan};
use crate::tune::protocol::{Applied, Reply};
use crate::tune::value;
use crate::units;

/// Checks everything, then has a tuner do it.
pub fn run(root: &Root, words: Vec<String>, lease_secs: Option<u64>, dry_run: bool) -> Done {
    let machine = Machine::read(root);
    let planned = plan(&mut careful(root), &machine, &words)?;
    for p in &planned {
        guard::check(root, &p.at).map_err(Refusal::Unsafe)?;
    }
    if dry_run {
        return Ok(told(&planned, &machine, lease_secs).print().map(|()| FINE));
    }
    need_root(root, "changing knobs")?;
    let failed = |err: std::io::Error| Refusal::Failed(err.to_string());
    let (held, reply) = Held::start(Root::self_exe(), root, words, lease_secs).map_err(failed)?;
    let (id, members, lease) = match reply {
        Reply::Applied { id, members, lease_secs } => (id, members, lease_secs),
        Reply::Refused(refusal) => return Err(refusal),
        other => return Err(Refusal::Failed(format!("the tuner said {other:?}"))),
    };
    let mut out = Out::default();
    let changed = members.iter().any(|m| !m.after.is_empty());
    for member in &members {
        applied(&mut out, member, &machine);
    }
    match lease {
        Some(secs) if changed => {
            let pid = held.pid();
            match held.detach() {
                Ok(Reply::Left { .. }) => {}
                Ok(other) => return Err(Refusal::Failed(format!("the tuner said {other:?}"))),
                Err(err) => return Err(failed(err)),
            }
            let end = units::format_time_of_day(wall_ns() + secs as i64 * 1_000_000_000, 0);
            out.line(format!(
                "Change {id} is on lease for {}: at {end} UTC the old values come back by themselves (process {pid} \
                 sees to it, also if this terminal closes).",
                units::format_duration(secs)
            ));
            out.line(format!(
                "To let it stay: iotop-plus tune keep {id}    To take it back: iotop-plus tune undo {id}"
            ));
        }
        _ if changed => {
            out.line(format!(
                "Change {id} stays until the machine boots. To take it back: iotop-plus tune undo {id}"
            ));
            out.line("To make it last over a boot: iotop-plus tune persist KNOB...");
        }
        _ => out.line("Nothing to change."),
    }
    Ok(out.print().map(|()| FINE))
}

fn told(planned: &[Planned], machine: &Machine, lease_secs: Option<u64>) -> Out {
    let mut out = Out::default();
    for p in planned {
        let show = |v: &str| value::show(p.at.knob(), v, machine);
        match p.now.value == p.want {
            true => out.line(format!("{} stands at {} already", p.at, show(&p.want))),
            false => out.line(format!("would set {} from {} to {}", p.at, show(&p.now.value), show(&p.want))),
        }
        if let Some((other, now)) = &p.zeroes {
            out.line(format!("  which sets {other} from {} to 0", value::show(other.knob(), now, machine)));
        }
    }
    match lease_secs {
        Some(secs) => out.line(format!("on a lease of {}; nothing was changed", units::format_duration(secs))),
        None => out.line("to stay until the next boot; nothing was changed"),
    }
    out
}

fn applied(out: &mut Out, member: &Applied, machine: &Machine) {
    let show = |at: &Address, v: &str| value::show(at.knob(), v, machine);
    if member.after.is_empty() {
        if let Some((at, value)) = member.before.first() {
            out.line(format!("{at} stands at {} already", show(at, value)));
        }
        return;
    }
    for (n, ((at, old), (_, new))) in member.before.iter().zip(&member.after).enumerate() {
        if old != new {
            let indent = if n == 0 { "" } else { "  the kernel with it: " };
            out.line(format!("{indent}{at}: {} -> {}", show(at, old), show(at, new)));
        }
    }
}
