//! `processes[]`: every task, busiest first.

use super::io_attribution::{self, DeviceIoJson};
use super::{optional_number, serialize_items};
use crate::model::process::{CommandLine, ProcessColumn, ProcessQuery, ProcessRow, ProcessTable};
use crate::model::system_state::SystemState;
use crate::sanitize::sanitize_cow;
use serde::{Serialize, Serializer};
use std::borrow::Cow;

/// Rows of the table, converted while they are serialised.
pub(super) struct ProcessesJson<'a> {
    system: &'a SystemState,
    table: &'a ProcessTable,
    rows: Vec<u32>,
}

/// The processes; `None` where tasks cannot be listed.
pub(super) fn processes(system: &SystemState) -> Option<ProcessesJson<'_>> {
    system.processes_status.ok()?;
    let query = ProcessQuery { sort_by: ProcessColumn::Io, height: usize::MAX, ..ProcessQuery::default() };
    Some(ProcessesJson { system, table: &system.processes, rows: system.processes.window(&query).rows })
}

impl Serialize for ProcessesJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // An exited task has no rates, but its pages may still be written.
        let wanted = |row: &ProcessRow<'_>| !row.exited || self.table.has_exited_with_io(row);
        let rows = self.rows.iter().map(|at| self.table.row(*at)).filter(wanted);
        serialize_items(serializer, rows.map(|row| ProcessJson::from_row(self.system, row)))
    }
}

#[derive(Serialize)]
struct ProcessJson<'a> {
    pid: u32,
    tid: u32,
    starttime: u64,
    comm: Cow<'a, str>,
    command: Option<CommandLine<'a>>,
    user: Option<Cow<'a, str>>,
    state: char,
    wchan: Option<Cow<'a, str>>,
    ionice: Option<Cow<'static, str>>,
    read_bytes_per_s: Option<f64>,
    write_bytes_per_s: Option<f64>,
    cancelled_bytes_per_s: Option<f64>,
    read_bytes_total: Option<u64>,
    write_bytes_total: Option<u64>,
    io_delay_pct: Option<f64>,
    swapin_delay_pct: Option<f64>,
    stalled_ms_per_s: ProcessStallsJson,
    swap_bytes: Option<u64>,
    rss_bytes: u64,
    major_faults_per_s: Option<f64>,
    cgroup: Option<Cow<'a, str>>,
    ended: bool,
    writeback_bytes_per_s: Option<f64>,
    writeback_bytes_total: Option<u64>,
    devices: Option<Vec<DeviceIoJson>>,
}

/// Stalls by cause, milliseconds per second.
#[derive(Serialize)]
struct ProcessStallsJson {
    throttle: Option<f64>,
    reclaim: Option<f64>,
    swapin: Option<f64>,
}

fn pct_to_ms_per_s(pct: Option<f64>) -> Option<f64> {
    optional_number(pct.map(|pct| pct * 10.0))
}

impl<'a> ProcessJson<'a> {
    fn from_row(system: &SystemState, row: ProcessRow<'a>) -> Self {
        // Traced I/O is by process, not by thread.
        let raw = system.last_sample.as_ref().and_then(|s| s.io_accounts.ok()).filter(|_| row.attributed_io.is_some());
        Self {
            pid: row.pid,
            tid: row.tid,
            starttime: row.starttime,
            comm: row.comm,
            command: row.command,
            user: row.user,
            state: row.state,
            wchan: row.wchan.map(|w| sanitize_cow(w.as_bytes())),
            ionice: row.ionice,
            read_bytes_per_s: optional_number(row.read_bytes_per_s),
            write_bytes_per_s: optional_number(row.write_bytes_per_s),
            cancelled_bytes_per_s: optional_number(row.cancelled_bytes_per_s),
            read_bytes_total: row.read_bytes_total,
            write_bytes_total: row.write_bytes_total,
            io_delay_pct: optional_number(row.io_delay_pct),
            swapin_delay_pct: optional_number(row.swapin_delay_pct),
            stalled_ms_per_s: ProcessStallsJson {
                throttle: pct_to_ms_per_s(row.throttled_pct),
                reclaim: pct_to_ms_per_s(row.reclaim_pct),
                swapin: pct_to_ms_per_s(row.swapin_delay_pct),
            },
            swap_bytes: row.swap_bytes,
            rss_bytes: row.rss_bytes,
            major_faults_per_s: optional_number(row.major_faults_per_s),
            cgroup: row.cgroup.map(|c| sanitize_cow(c.as_bytes())),
            ended: row.exited,
            writeback_bytes_per_s: optional_number(row.attributed_io.map(|c| c.writeback_bytes_per_s)),
            writeback_bytes_total: raw.map(|raw| raw.written_back_bytes(row.pid, None)),
            devices: row.attributed_io.and_then(|_| io_attribution::process_devices(system, row.pid)),
        }
    }
}
