//! A snapshot for people: a head line, then the panes' tables one below the other.

use super::sheet::Sheet;
use super::{charge, devices, findings, kernel, memory, network, processes, syncs};
use crate::diagnose::Engine;
use crate::model::columns::device::PLAIN;
use crate::model::columns::process::{PAPER, TRACED_PAPER};
use crate::model::device_list::{self, DeviceQuery};
use crate::model::kernlog::Patterns;
use crate::model::process::{Column, Filter, Query};
use crate::model::syncs::SLOW_KEPT;
use crate::model::syncs::list::SyncQuery;
use crate::model::world::World;
use crate::units::{format_rfc3339, format_duration};

/// Busy tasks listed; JSON has them all.
const TASKS: usize = 40;
/// Tasks listed for what they have in swap.
const SWAPPED: usize = 10;
/// Slow syncs listed.
const SLOW: usize = 20;
/// Cells of a task's line: command lines can be thousands long.
const WIDTH: usize = 100;

/// Which panes a snapshot shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope {
    /// Block devices and network file systems.
    pub devices: bool,
    /// Tasks.
    pub processes: bool,
    /// Dirty pages, swap, pressure.
    pub memory: bool,
    /// The kernel log.
    pub kernel: bool,
    /// What is wrong.
    pub findings: bool,
    /// Who waits for syncs; among everything only if it was traced.
    pub syncs: bool,
}

impl Scope {
    /// Everything.
    pub const ALL: Scope =
        Scope { devices: true, processes: true, memory: true, kernel: true, findings: true, syncs: true };

    /// Whether syncs are shown: nobody who did not ask for them by name is told why they are not there.
    pub fn shows_syncs(self, world: &World) -> bool {
        self.syncs && (self != Scope::ALL || world.snap.syncs.ok().is_some())
    }
}

/// Aligned text.
pub fn text(world: &World, engine: &Engine, scope: Scope) -> String {
    let mut out = format!("{}\n", head(world));
    for sheet in sheets(world, engine, scope, WIDTH) {
        out.push('\n');
        out.push_str(&sheet.text());
    }
    out
}

/// Markdown.
pub fn markdown(world: &World, engine: &Engine, scope: Scope) -> String {
    let mut out = format!("{}\n\n", super::sheet::escape(&head(world)));
    for sheet in sheets(world, engine, scope, WIDTH) {
        out.push_str(&sheet.markdown());
    }
    out
}

/// Whose machine, when, over how long, and the CPU.
pub fn head(world: &World) -> String {
    let (snap, host) = (&world.snap, &world.host);
    let cpu = match snap.cpu.ok() {
        Some(c) => format!(
            "us {:.0} sy {:.0} wa {:.0} st {:.0} id {:.0}",
            c.user_pct, c.system_pct, c.iowait_pct, c.steal_pct, c.idle_pct
        ),
        None => format!("cpu - ({})", snap.cpu.why(snap.at.boot_ns).unwrap_or_default()),
    };
    format!(
        "{}  {}  up {}  {}  over {:.1} s  {cpu}",
        host.name,
        format_rfc3339(snap.at.wall_ns),
        format_duration(snap.at.boot_ns / 1_000_000_000),
        host.kernel,
        snap.secs
    )
}

/// The panes' tables, tasks in lines of at most `cells`.
pub fn sheets(world: &World, engine: &Engine, scope: Scope, cells: usize) -> Vec<Sheet> {
    let (snap, now) = (&*world.snap, world.now().boot_ns);
    let mut out = Vec::new();
    if scope.findings {
        out.push(findings::sheet("Findings".into(), engine, world.now()));
    }
    if scope.devices {
        let lines = device_list::lines(snap, world.topo.ok(), &DeviceQuery::default());
        let mut sheet = devices::sheet("Devices".into(), PLAIN, snap, &lines, now);
        sheet.notes.extend(world.topo.why(now).map(|why| format!("no tree, no mount points: {why}")));
        out.push(sheet);
        out.extend(network::sheet("Network file systems".into(), snap, now));
    }
    if scope.processes {
        out.push(tasks(world).within(cells));
        out.extend(charge::sheets(world));
    }
    if scope.shows_syncs(world) {
        let topo = world.topo.ok();
        out.push(syncs::sheet("Syncs".into(), snap, topo, &SyncQuery::default()).within(cells));
        out.extend(syncs::slow("Slow syncs", snap, topo, "").map(|s| newest(s).within(cells)));
    }
    if scope.memory {
        out.push(memory::sheet("Memory".into(), snap, now));
    }
    if scope.kernel {
        let patterns = Patterns::default();
        let mut sheet = kernel::sheet("Kernel log".into(), world.klog.visible(&patterns), world);
        sheet.notes.extend(world.klog_state.why(now));
        out.push(sheet);
    }
    out
}

/// Without the older ones of many.
fn newest(mut slow: Sheet) -> Sheet {
    let more = slow.rows.len().saturating_sub(SLOW);
    if more > 0 {
        slow.rows.truncate(SLOW);
        slow.notes.push(format!("{more} older ones; --format json has the newest {SLOW_KEPT}"));
    }
    slow
}

/// Who did something, busiest first, then who is swapped out most.
fn tasks(world: &World) -> Sheet {
    let active = Filter { only_active: true, ..Filter::default() };
    let busy = Query { by: Column::Io, filter: active, height: TASKS, ..Query::default() };
    let swapped = Query { by: Column::Swap, height: SWAPPED, ..Query::default() };
    let mut rows = world.procs.window(&busy).rows;
    for at in world.procs.window(&swapped).rows {
        if !rows.contains(&at) && world.procs.row(at).swap_bytes.is_some_and(|n| n > 0) {
            rows.push(at);
        }
    }
    let title = if world.procs.threads() { "Threads" } else { "Processes" };
    let traced = !world.procs.threads() && world.snap.charged.ok().is_some();
    let set = if traced { TRACED_PAPER } else { PAPER };
    let mut sheet = processes::sheet(title.into(), set, |put| {
        for at in &rows {
            put(&world.procs.row(*at));
        }
    });
    let more = world.procs.len() - rows.len();
    if more > 0 {
        sheet
            .notes
            .push(format!("{more} more, idle or less busy and less swapped out; --format json has all"));
    }
    sheet.notes.extend(world.procs_state.why(world.now().boot_ns));
    sheet.notes.extend(processes::gaps(&world.procs));
    sheet
}
