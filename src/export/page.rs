//! A snapshot for people: a head line, then the panes' tables one below the other.

use super::sheet::Sheet;
use super::{charge, devices, findings, kernel, memory, network, processes, syncs};
use crate::diagnose::Engine;
use crate::model::columns::device::DEFAULT;
use crate::model::columns::process::{TEXT_EXPORT, TRACED_TEXT_EXPORT};
use crate::model::device_list::{self, DeviceQuery};
use crate::model::kernel_log::LogPatterns;
use crate::model::process::{ProcessColumn, ProcessFilter, ProcessQuery};
use crate::model::syncs::MAX_SLOW_SYNCS;
use crate::model::syncs::list::SyncQuery;
use crate::model::system_state::SystemState;
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
    pub fn shows_syncs(self, world: &SystemState) -> bool {
        self.syncs && (self != Scope::ALL || world.snapshot.syncs.ok().is_some())
    }
}

/// Aligned text.
pub fn text(world: &SystemState, engine: &Engine, scope: Scope) -> String {
    let mut out = format!("{}\n", head(world));
    for sheet in sheets(world, engine, scope, WIDTH) {
        out.push('\n');
        out.push_str(&sheet.text());
    }
    out
}

/// Markdown.
pub fn markdown(world: &SystemState, engine: &Engine, scope: Scope) -> String {
    let mut out = format!("{}\n\n", super::sheet::escape(&head(world)));
    for sheet in sheets(world, engine, scope, WIDTH) {
        out.push_str(&sheet.markdown());
    }
    out
}

/// Whose machine, when, over how long, and the CPU.
pub fn head(world: &SystemState) -> String {
    let (snap, host) = (&world.snapshot, &world.host);
    let cpu = match snap.cpu.ok() {
        Some(c) => format!(
            "us {:.0} sy {:.0} wa {:.0} st {:.0} id {:.0}",
            c.user_pct, c.system_pct, c.iowait_pct, c.steal_pct, c.idle_pct
        ),
        None => format!("cpu - ({})", snap.cpu.unavailable_reason(snap.time.boot_ns).unwrap_or_default()),
    };
    format!(
        "{}  {}  up {}  {}  over {:.1} s  {cpu}",
        host.name,
        format_rfc3339(snap.time.wall_ns),
        format_duration(snap.time.boot_ns / 1_000_000_000),
        host.kernel,
        snap.interval_secs
    )
}

/// The panes' tables, tasks in lines of at most `cells`.
pub fn sheets(world: &SystemState, engine: &Engine, scope: Scope, cells: usize) -> Vec<Sheet> {
    let (snap, now) = (&*world.snapshot, world.now().boot_ns);
    let mut out = Vec::new();
    if scope.findings {
        out.push(findings::sheet("Findings".into(), engine, world.now()));
    }
    if scope.devices {
        let lines = device_list::list_devices(snap, world.topology.ok(), &DeviceQuery::default());
        let mut sheet = devices::sheet("Devices".into(), DEFAULT, snap, &lines, now);
        sheet.notes.extend(world.topology.unavailable_reason(now).map(|why| format!("no tree, no mount points: {why}")));
        out.push(sheet);
        out.extend(network::sheet("Network file systems".into(), snap, now));
    }
    if scope.processes {
        out.push(tasks(world).within(cells));
        out.extend(charge::sheets(world));
    }
    if scope.shows_syncs(world) {
        let topo = world.topology.ok();
        out.push(syncs::sheet("Syncs".into(), snap, topo, &SyncQuery::default()).within(cells));
        out.extend(syncs::slow("Slow syncs", snap, topo, "").map(|s| newest(s).within(cells)));
    }
    if scope.memory {
        out.push(memory::sheet("Memory".into(), snap, now));
    }
    if scope.kernel {
        let patterns = LogPatterns::default();
        let mut sheet = kernel::sheet("Kernel log".into(), world.kernel_log.visible(&patterns), world);
        sheet.notes.extend(world.kernel_log_status.unavailable_reason(now));
        out.push(sheet);
    }
    out
}

/// Without the older ones of many.
fn newest(mut slow: Sheet) -> Sheet {
    let more = slow.rows.len().saturating_sub(SLOW);
    if more > 0 {
        slow.rows.truncate(SLOW);
        slow.notes.push(format!("{more} older ones; --format json has the newest {MAX_SLOW_SYNCS}"));
    }
    slow
}

/// Who did something, busiest first, then who is swapped out most.
fn tasks(world: &SystemState) -> Sheet {
    let active = ProcessFilter { only_active: true, ..ProcessFilter::default() };
    let busy = ProcessQuery { sort_by: ProcessColumn::Io, filter: active, height: TASKS, ..ProcessQuery::default() };
    let swapped = ProcessQuery { sort_by: ProcessColumn::Swap, height: SWAPPED, ..ProcessQuery::default() };
    let mut rows = world.processes.window(&busy).rows;
    for at in world.processes.window(&swapped).rows {
        if !rows.contains(&at) && world.processes.row(at).swap_bytes.is_some_and(|n| n > 0) {
            rows.push(at);
        }
    }
    let title = if world.processes.rows_are_threads() { "Threads" } else { "Processes" };
    let traced = !world.processes.rows_are_threads() && world.snapshot.io_attribution.ok().is_some();
    let set = if traced { TRACED_TEXT_EXPORT } else { TEXT_EXPORT };
    let mut sheet = processes::sheet(title.into(), set, |put| {
        for at in &rows {
            put(&world.processes.row(*at));
        }
    });
    let more = world.processes.len() - rows.len();
    if more > 0 {
        sheet
            .notes
            .push(format!("{more} more, idle or less busy and less swapped out; --format json has all"));
    }
    sheet.notes.extend(world.processes_status.unavailable_reason(world.now().boot_ns));
    sheet.notes.extend(processes::gaps(&world.processes));
    sheet
}
