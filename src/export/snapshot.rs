//! A snapshot for people: a head line, then the panes' tables one below the other.

use super::table::Table;
use super::{devices, findings, io_attribution, kernel_log, memory, network, processes, syncs};
use crate::doctor::RuleEngine;
use crate::model::columns::device::DEFAULT;
use crate::model::columns::process::{TEXT_EXPORT, TRACED_TEXT_EXPORT};
use crate::model::device_list::{self, DeviceQuery};
use crate::model::kernel_log::LogPatterns;
use crate::model::process::{ProcessColumn, ProcessFilter, ProcessQuery};
use crate::model::syncs::MAX_SLOW_SYNCS;
use crate::model::syncs::list::SyncQuery;
use crate::model::system_state::SystemState;
use crate::units::{format_duration, format_rfc3339};

/// Busy tasks listed; JSON has them all.
const MAX_BUSY_TASKS: usize = 40;
/// Tasks listed for what they have in swap.
const MAX_SWAPPED_TASKS: usize = 10;
/// Slow syncs listed.
const MAX_LISTED_SYNCS: usize = 20;
/// Cells of a task's line: command lines can be thousands long.
const MAX_WIDTH: usize = 100;

/// Which panes a snapshot shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotScope {
    /// Block devices and network file systems.
    pub devices: bool,
    /// Tasks.
    pub processes: bool,
    /// Dirty pages, swap, pressure.
    pub memory: bool,
    /// The kernel log.
    pub kernel_log: bool,
    /// What is wrong.
    pub findings: bool,
    /// Who waits for syncs; among everything only if it was traced.
    pub syncs: bool,
}

impl SnapshotScope {
    /// Everything.
    pub const ALL: SnapshotScope =
        SnapshotScope { devices: true, processes: true, memory: true, kernel_log: true, findings: true, syncs: true };

    /// Whether syncs are shown: nobody who did not ask for them by name is told why they are not there.
    pub fn shows_syncs(self, world: &SystemState) -> bool {
        self.syncs && (self != SnapshotScope::ALL || world.snapshot.syncs.ok().is_some())
    }
}

/// Aligned text.
pub fn text(world: &SystemState, engine: &RuleEngine, scope: SnapshotScope) -> String {
    let mut out = format!("{}\n", header_line(world));
    for sheet in build_tables(world, engine, scope, MAX_WIDTH) {
        out.push('\n');
        out.push_str(&sheet.to_text());
    }
    out
}

/// Markdown.
pub fn markdown(world: &SystemState, engine: &RuleEngine, scope: SnapshotScope) -> String {
    let mut out = format!("{}\n\n", super::table::escape_markdown(&header_line(world)));
    for sheet in build_tables(world, engine, scope, MAX_WIDTH) {
        out.push_str(&sheet.to_markdown());
    }
    out
}

/// Whose machine, when, over how long, and the CPU.
pub fn header_line(world: &SystemState) -> String {
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
pub fn build_tables(world: &SystemState, engine: &RuleEngine, scope: SnapshotScope, cells: usize) -> Vec<Table> {
    let (snap, now) = (&*world.snapshot, world.now().boot_ns);
    let mut out = Vec::new();
    if scope.findings {
        out.push(findings::build_table("Findings".into(), engine, world.now()));
    }
    if scope.devices {
        let lines = device_list::list_devices(snap, world.topology.ok(), &DeviceQuery::default());
        let mut sheet = devices::build_table("Devices".into(), DEFAULT, snap, &lines, now);
        sheet
            .notes
            .extend(world.topology.unavailable_reason(now).map(|why| format!("no tree, no mount points: {why}")));
        out.push(sheet);
        out.extend(network::build_table("Network file systems".into(), snap, now));
    }
    if scope.processes {
        out.push(task_table(world).fit_width(cells));
        out.extend(io_attribution::build_tables(world));
    }
    if scope.shows_syncs(world) {
        let topo = world.topology.ok();
        out.push(syncs::build_table("Syncs".into(), snap, topo, &SyncQuery::default()).fit_width(cells));
        out.extend(syncs::build_slow_table("Slow syncs", snap, topo, "").map(|s| limit_slow_syncs(s).fit_width(cells)));
    }
    if scope.memory {
        out.push(memory::build_table("Memory".into(), snap, now));
    }
    if scope.kernel_log {
        let patterns = LogPatterns::default();
        let mut sheet = kernel_log::build_table("Kernel log".into(), world.kernel_log.visible(&patterns), world);
        sheet.notes.extend(world.kernel_log_status.unavailable_reason(now));
        out.push(sheet);
    }
    out
}

/// Without the older ones of many.
fn limit_slow_syncs(mut slow: Table) -> Table {
    let more = slow.rows.len().saturating_sub(MAX_LISTED_SYNCS);
    if more > 0 {
        slow.rows.truncate(MAX_LISTED_SYNCS);
        slow.notes.push(format!("{more} older ones; --format json has the newest {MAX_SLOW_SYNCS}"));
    }
    slow
}

/// Who did something, busiest first, then who is swapped out most.
fn task_table(world: &SystemState) -> Table {
    let active = ProcessFilter { only_active: true, ..ProcessFilter::default() };
    let busy =
        ProcessQuery { sort_by: ProcessColumn::Io, filter: active, height: MAX_BUSY_TASKS, ..ProcessQuery::default() };
    let swapped = ProcessQuery { sort_by: ProcessColumn::Swap, height: MAX_SWAPPED_TASKS, ..ProcessQuery::default() };
    let mut rows = world.processes.window(&busy).rows;
    for at in world.processes.window(&swapped).rows {
        if !rows.contains(&at) && world.processes.row(at).swap_bytes.is_some_and(|n| n > 0) {
            rows.push(at);
        }
    }
    let title = if world.processes.rows_are_threads() { "Threads" } else { "Processes" };
    let traced = !world.processes.rows_are_threads() && world.snapshot.io_attribution.ok().is_some();
    let set = if traced { TRACED_TEXT_EXPORT } else { TEXT_EXPORT };
    let mut sheet = processes::build_table(title.into(), set, |put| {
        for at in &rows {
            put(&world.processes.row(*at));
        }
    });
    let more = world.processes.len() - rows.len();
    if more > 0 {
        sheet.notes.push(format!("{more} more, idle or less busy and less swapped out; --format json has all"));
    }
    sheet.notes.extend(world.processes_status.unavailable_reason(world.now().boot_ns));
    sheet.notes.extend(processes::missing_data_notes(&world.processes));
    sheet
}
