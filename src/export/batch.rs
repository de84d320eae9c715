//! Batch reports in iotop's format, so that scripts written for iotop keep working.
//!
//! Every row has the same number of fields before the command: `TID PRIO USER`, then value and unit of
//! `DISK READ`, `DISK WRITE`, `SWAPIN`, `IO>` and `SWAP`, which iotop does not have. A value that could not be
//! read is `-`. The tree has its lines before the command.

use super::processes::{delays_unavailable, hidden_tasks_note};
use crate::model::columns::process::{command_text, tree_lines};
use crate::model::process::{ProcessColumn, ProcessFilter, ProcessQuery, ProcessRow, ProcessTree};
use crate::model::system_state::SystemState;
use std::fmt::Write;

/// What a report shows.
#[derive(Debug, Clone, Copy, Default)]
pub struct BatchOptions {
    /// Only tasks with I/O.
    pub only_active: bool,
    /// Totals since the start instead of rates.
    pub is_accumulated: bool,
    /// Tasks below their parents, with lines before the command. Parents of tasks with I/O are listed as well.
    pub is_tree: bool,
}

/// One report: two lines of totals, the header, one row a task, busiest first.
pub fn batch_report(system: &SystemState, options: BatchOptions) -> String {
    let mut out = String::new();
    push_header(&mut out, system, options);
    let filter = ProcessFilter {
        only_active: options.only_active && !options.is_accumulated,
        only_accumulated: options.only_active && options.is_accumulated,
        ..ProcessFilter::default()
    };
    let by = if options.is_accumulated { ProcessColumn::AccIo } else { ProcessColumn::Io };
    let query = ProcessQuery { sort_by: by, filter, height: usize::MAX, ..ProcessQuery::default() };
    let elapsed = system.processes.time.boot_ns.saturating_sub(system.processes.counters_since.boot_ns);
    let processes = &system.processes;
    let window = match options.is_tree {
        true => ProcessTree::default().window(processes, &query),
        false => processes.window(&query),
    };
    for row in (0..window.rows.len()).filter_map(|index| window.row(processes, index)) {
        if !row.has_exited() || options.is_accumulated {
            push_row(&mut out, &row, options, elapsed);
        }
    }
    out
}

fn push_header(out: &mut String, system: &SystemState, options: BatchOptions) {
    let known = system.processes_status.ok().is_some();
    let (read, written) = if options.is_accumulated {
        let sums = system.processes.accumulated_io;
        (sums.read as f64, sums.write as f64)
    } else {
        let totals = system.processes.totals();
        (totals.read_bytes_per_s, totals.write_bytes_per_s)
    };
    let suffix = if options.is_accumulated { "" } else { "/s" };
    let total = |n: f64| format_bytes(known.then_some(n), suffix);
    let disks = system.snapshot.disks_mb_per_s(system.topology.ok());
    let current = |n: Option<f64>| format_bytes(n.map(|mb| mb * 1_048_576.0), "/s");
    let [read_now, written_now] = [disks.map(|d| d.0), disks.map(|d| d.1)].map(current);
    let _ = writeln!(out, "Total DISK READ:   {:>14} | Total DISK WRITE:   {:>14}", total(read), total(written));
    let _ = writeln!(out, "Current DISK READ: {read_now:>14} | Current DISK WRITE: {written_now:>14}");
    let id = if system.processes.rows_are_threads { "TID" } else { "PID" };
    let _ = writeln!(out, "{id:>7} PRIO  USER       DISK READ  DISK WRITE   SWAPIN      IO>       SWAP  COMMAND");
}

fn push_row(out: &mut String, row: &ProcessRow<'_>, options: BatchOptions, elapsed_ns: u64) {
    let share = |ns: Option<u64>| ns.filter(|_| elapsed_ns > 0).map(|n| n as f64 * 100.0 / elapsed_ns as f64);
    let (read, written, swapin, io, suffix) = if options.is_accumulated {
        let (read, written) = (row.accumulated().map(|b| b.read as f64), row.accumulated().map(|b| b.write as f64));
        (read, written, share(row.accumulated_swapin_delay_ns()), share(row.accumulated_io_delay_ns()), "")
    } else {
        let now = row.rates();
        (now.read_bytes_per_s, now.write_bytes_per_s, now.swapin_delay_pct, now.io_delay_pct, "/s")
    };
    let percent = |n: Option<f64>| n.map_or("- %".into(), |n| format!("{n:.2} %"));
    let _ = writeln!(
        out,
        "{:>7} {:<5} {:<8} {:>11} {:>11} {:>8} {:>8} {:>10}  {}",
        row.tid(),
        row.ionice().as_deref().unwrap_or("-"),
        row.user().as_deref().unwrap_or("-"),
        format_bytes(read, suffix),
        format_bytes(written, suffix),
        percent(swapin),
        percent(io),
        format_bytes(row.raw.swap_bytes.map(|n| n as f64), ""),
        tree_lines(row) + &command_text(row)
    );
}

/// `793.36 K/s` as iotop writes it: powers of 1024, two decimals, a space before the unit.
fn format_bytes(bytes: Option<f64>, suffix: &str) -> String {
    let Some(mut n) = bytes.filter(|n| n.is_finite()) else { return format!("- B{suffix}") };
    let units = ["B", "K", "M", "G", "T", "P"];
    let mut power = 0;
    while n > 1000.0 && power + 1 < units.len() {
        n /= 1024.0;
        power += 1;
    }
    format!("{n:.2} {}{suffix}", units[power])
}

/// What is missing from the reports, and why. To be printed once, not with every report.
pub(crate) fn missing_data_notes(system: &SystemState) -> Vec<String> {
    let now = system.now().boot_ns;
    let no_tasks = system.processes_status.unavailable_reason(now).map(|why| format!("no tasks: {why}"));
    let delays = delays_unavailable(&system.processes).map(|why| format!("SWAPIN and IO> are `-`: {why}"));
    let devices = [system.snapshot.devices.unavailable_reason(now), system.topology.unavailable_reason(now)];
    let devices = devices.into_iter().flatten().map(|why| format!("Current DISK READ and WRITE are `-`: {why}"));
    [no_tasks, delays, hidden_tasks_note(&system.processes)].into_iter().flatten().chain(devices).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_has_the_parents_of_tasks_with_io_above_them() {
        use crate::doctor::tests::test_machine::{TestMachine, task_after, task_counters};
        use crate::model::process::{IoBytes, TaskRaw};
        let mut machine = TestMachine::new();
        let tasks = |read| {
            let child = TaskRaw { ppid: 10, ..task_counters(11, "worker") };
            let did = IoBytes { read, ..IoBytes::default() };
            vec![task_counters(10, "manager"), task_after(child, did), task_counters(12, "idle")]
        };
        machine.scan(tasks(0), true);
        machine.scan(tasks(4096), false);
        let rows = |is_tree| {
            let options = BatchOptions { only_active: true, is_tree, ..BatchOptions::default() };
            let report = batch_report(&machine.system, options);
            report.lines().skip(3).map(|line| line.rsplit("  ").next().unwrap_or_default().trim().to_owned()).collect()
        };
        let (list, tree): (Vec<String>, Vec<String>) = (rows(false), rows(true));
        assert_eq!((list, tree), (vec!["worker".into()], vec!["manager".into(), "└─worker".into()]));
    }

    #[test]
    fn byte_amounts_are_formatted_like_iotop() {
        let of = |n: f64| format_bytes(Some(n), "/s");
        assert_eq!((of(0.0), of(999.0)), ("0.00 B/s".into(), "999.00 B/s".into()));
        assert_eq!((of(1001.0), of(812_400.64)), ("0.98 K/s".into(), "793.36 K/s".into()));
        assert_eq!(of(8_032_092.16), "7.66 M/s");
        assert_eq!((format_bytes(None, ""), format_bytes(Some(f64::NAN), "/s")), ("- B".into(), "- B/s".into()));
    }
}
