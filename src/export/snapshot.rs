//! A snapshot for people: a header line, then the tables of the panes.

use super::table::Table;
use super::{devices, files, findings, io_attribution, kernel_log, memory, network, processes, syncs, waits};
use crate::doctor::RuleEngine;
use crate::model::columns::device::DeviceColumnSet;
use crate::model::columns::process::{ProcessColumnSet, ProcessColumnSpec};
use crate::model::columns::stalls::waits_text;
use crate::model::device_list::{self, DeviceQuery};
use crate::model::file_io::list::FileQuery;
use crate::model::kernel_log::LogPatterns;
use crate::model::process::{ProcessColumn, ProcessFilter, ProcessQuery};
use crate::model::syncs::MAX_SLOW_SYNCS;
use crate::model::syncs::list::SyncQuery;
use crate::model::system_state::SystemState;
use crate::units::{format_duration, format_rfc3339};

/// Busy tasks listed; JSON lists all.
const MAX_BUSY_TASKS: usize = 40;
/// Tasks listed because they have most in swap.
const MAX_SWAPPED_TASKS: usize = 10;
const MAX_LISTED_SYNCS: usize = 20;
const MAX_LISTED_FILES: usize = 40;
/// Cells of a line with a command, which may have thousands.
const MAX_WIDTH: usize = 100;

/// The panes of a snapshot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SnapshotScope {
    /// Block devices and network file systems.
    pub devices: bool,
    /// Tasks.
    pub processes: bool,
    /// Dirty pages, swap, pressure.
    pub memory: bool,
    /// The kernel log.
    pub kernel_log: bool,
    /// Findings.
    pub findings: bool,
    /// Syncs; with all panes selected only if they were traced.
    pub syncs: bool,
    /// I/O by file; with all panes selected only if it was traced.
    pub files: bool,
    /// What tasks wait for, also if it was not traced; otherwise it belongs to the tasks.
    pub waits: bool,
}

impl SnapshotScope {
    /// All panes.
    pub const ALL: SnapshotScope = SnapshotScope {
        devices: true,
        processes: true,
        memory: true,
        kernel_log: true,
        findings: true,
        syncs: true,
        files: true,
        waits: false,
    };

    /// Whether syncs are included: where they are not traced, only if they were selected by name.
    pub(crate) fn shows_syncs(self, system: &SystemState) -> bool {
        self.syncs && (self != SnapshotScope::ALL || system.snapshot.syncs.ok().is_some())
    }

    /// Whether files are included: where they are not traced, only if they were selected by name.
    pub(crate) fn shows_files(self, system: &SystemState) -> bool {
        self.files && (self != SnapshotScope::ALL || system.snapshot.files.ok().is_some())
    }

    /// Whether waits are included: where they are not traced, only if they were selected.
    pub(crate) fn shows_waits(self, system: &SystemState) -> bool {
        self.waits || (self.processes && system.snapshot.task_waits.ok().is_some())
    }
}

/// The snapshot as aligned text.
pub fn text(system: &SystemState, engine: &RuleEngine, scope: SnapshotScope) -> String {
    let mut out = format!("{}\n", header_line(system));
    for table in build_tables(system, engine, scope, TableLayout::default()) {
        out.push('\n');
        out.push_str(&table.to_text());
    }
    out
}

/// The snapshot as Markdown.
pub fn markdown(system: &SystemState, engine: &RuleEngine, scope: SnapshotScope) -> String {
    let mut out = format!("{}\n\n", super::table::escape_markdown(&header_line(system)));
    for table in build_tables(system, engine, scope, TableLayout::default()) {
        out.push_str(&table.to_markdown());
    }
    out
}

pub(crate) fn header_line(system: &SystemState) -> String {
    let (snapshot, host) = (&system.snapshot, &system.host);
    let cpu = match snapshot.cpu.ok() {
        Some(c) => format!(
            "us {:.0} sy {:.0} wa {:.0} st {:.0} id {:.0}",
            c.user_pct, c.system_pct, c.iowait_pct, c.steal_pct, c.idle_pct
        ),
        None => format!("cpu - ({})", snapshot.cpu.unavailable_reason(snapshot.time.boot_ns).unwrap_or_default()),
    };
    let (time, up) = (format_rfc3339(snapshot.time.wall_ns), format_duration(snapshot.time.boot_ns / 1_000_000_000));
    format!("{}  {time}  up {up}  {}  over {:.1} s  {cpu}", host.name, host.kernel, snapshot.interval_secs)
}

/// How tables are laid out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableLayout {
    /// Cells of a line; long columns are cut.
    pub(crate) width: usize,
    /// Time zone of times of day, seconds east of UTC.
    pub(crate) utc_offset_secs: i64,
}

impl Default for TableLayout {
    fn default() -> Self {
        Self { width: MAX_WIDTH, utc_offset_secs: 0 }
    }
}

/// The tables of the panes.
pub(crate) fn build_tables(
    system: &SystemState,
    engine: &RuleEngine,
    scope: SnapshotScope,
    TableLayout { width, utc_offset_secs }: TableLayout,
) -> Vec<Table> {
    let (snapshot, now) = (&*system.snapshot, system.now().boot_ns);
    let mut out = Vec::new();
    if scope.findings {
        out.push(findings::build_table("Findings".into(), engine, system.now()));
    }
    if scope.devices {
        let query = DeviceQuery { containers: Some(system.processes.container_names()), ..DeviceQuery::default() };
        let lines = device_list::list_devices(snapshot, system.topology.ok(), &query);
        let mut table =
            devices::build_table("Devices".into(), DeviceColumnSet::Default.columns(), snapshot, &lines, now);
        table
            .notes
            .extend(system.topology.unavailable_reason(now).map(|why| format!("no tree, no mount points: {why}")));
        out.push(table);
        out.extend(network::build_table("Network file systems".into(), snapshot, now));
    }
    if scope.processes {
        out.push(task_table(system).fit_width(width));
        out.extend(io_attribution::build_tables(system));
    }
    if scope.shows_waits(system) {
        let title = "Waits by process".into();
        out.push(waits::build_table(title, snapshot, system.topology.ok()).fit_width(width));
    }
    if scope.shows_syncs(system) {
        let topology = system.topology.ok();
        out.push(syncs::build_table("Syncs".into(), snapshot, topology, &SyncQuery::default()).fit_width(width));
        out.extend(
            syncs::build_slow_table("Slow syncs", snapshot, topology, "", utc_offset_secs)
                .map(|s| limit_slow_syncs(s).fit_width(width)),
        );
    }
    if scope.shows_files(system) {
        let (topology, query) = (system.topology.ok(), FileQuery::default());
        // Their paths are not cut: the end says most.
        out.push(limit_files(files::build_table("Files".into(), snapshot, topology, &query)));
        out.extend(files::build_directory_table("Directories".into(), snapshot, topology, &query).map(limit_files));
    }
    if scope.memory {
        out.push(memory::build_table("Memory".into(), snapshot, now));
    }
    if scope.kernel_log {
        let patterns = LogPatterns::default();
        let entries = system.kernel_log.visible(&patterns);
        let mut table = kernel_log::build_table("Kernel log".into(), entries, system, utc_offset_secs);
        table.notes.extend(system.kernel_log_status.unavailable_reason(now));
        out.push(table);
    }
    out
}

/// Keeps the newest rows.
fn limit_slow_syncs(mut slow: Table) -> Table {
    let more = slow.rows.len().saturating_sub(MAX_LISTED_SYNCS);
    if more > 0 {
        slow.rows.truncate(MAX_LISTED_SYNCS);
        slow.notes.push(format!("{more} older ones; --format json has the newest {MAX_SLOW_SYNCS}"));
    }
    slow
}

/// Keeps the rows with most time.
fn limit_files(mut files: Table) -> Table {
    let more = files.rows.len().saturating_sub(MAX_LISTED_FILES);
    if more > 0 {
        files.rows.truncate(MAX_LISTED_FILES);
        files.notes.push(format!("{more} more with less time; --format json has all"));
    }
    files
}

/// The busiest tasks, then those with most in swap.
fn task_table(system: &SystemState) -> Table {
    let active = ProcessFilter { only_active: true, ..ProcessFilter::default() };
    let busy =
        ProcessQuery { sort_by: ProcessColumn::Io, filter: active, height: MAX_BUSY_TASKS, ..ProcessQuery::default() };
    let swapped = ProcessQuery { sort_by: ProcessColumn::Swap, height: MAX_SWAPPED_TASKS, ..ProcessQuery::default() };
    let mut rows = system.processes.window(&busy).rows;
    for at in system.processes.window(&swapped).rows {
        if !rows.contains(&at) && system.processes.row(at).raw.swap_bytes.is_some_and(|n| n > 0) {
            rows.push(at);
        }
    }
    let title = if system.processes.rows_are_threads { "Threads" } else { "Processes" };
    let traced = !system.processes.rows_are_threads && system.snapshot.io_attribution.ok().is_some();
    let set = if traced { ProcessColumnSet::TracedTextExport } else { ProcessColumnSet::TextExport }.columns();
    let someone_waits = rows.iter().any(|at| !waits_text(&system.processes.row(*at)).is_empty());
    let is_shown = |column: &&ProcessColumnSpec| someone_waits || column.id != ProcessColumn::Waits;
    let columns: Vec<_> = set.iter().filter(is_shown).copied().collect();
    let mut table = processes::build_table(title.into(), &columns, |put| {
        for at in &rows {
            put(&system.processes.row(*at));
        }
    });
    let more = system.processes.len() - rows.len();
    if more > 0 {
        table.notes.push(format!("{more} more, idle or less busy and less swapped out; --format json has all"));
    }
    table.notes.extend(system.processes_status.unavailable_reason(system.now().boot_ns));
    table.notes.extend(processes::missing_data_notes(&system.processes));
    table
}
