//! `processes[]`: every task there is, busiest first.

use super::charge::{self, Device};
use super::{known, stream};
use crate::model::process::{ProcessColumn, CommandLine, ProcessRow, ProcessTable, ProcessQuery};
use crate::model::system_state::SystemState;
use crate::text::sanitize_cow;
use serde::{Serialize, Serializer};
use std::borrow::Cow;

/// Rows of the table, in order, made while they are written.
pub(super) struct Processes<'a> {
    world: &'a SystemState,
    table: &'a ProcessTable,
    rows: Vec<u32>,
}

/// `None` while tasks cannot be listed.
pub(super) fn processes(world: &SystemState) -> Option<Processes<'_>> {
    world.processes_status.ok()?;
    let query = ProcessQuery { sort_by: ProcessColumn::Io, height: usize::MAX, ..ProcessQuery::default() };
    Some(Processes { world, table: &world.processes, rows: world.processes.window(&query).rows })
}

impl Serialize for Processes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // One that ended within the interval has no rates any more; its pages may still be written.
        let wanted = |row: &ProcessRow<'_>| !row.exited || self.table.has_exited_with_io(row);
        let rows = self.rows.iter().map(|at| self.table.row(*at)).filter(wanted);
        stream(serializer, rows.map(|row| Process::of(self.world, row)))
    }
}

#[derive(Serialize)]
struct Process<'a> {
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
    stalled_ms_per_s: Stalled,
    swap_bytes: Option<u64>,
    rss_bytes: u64,
    major_faults_per_s: Option<f64>,
    cgroup: Option<Cow<'a, str>>,
    ended: bool,
    writeback_bytes_per_s: Option<f64>,
    writeback_bytes_total: Option<u64>,
    devices: Option<Vec<Device>>,
}

/// What held it up, milliseconds of each second.
#[derive(Serialize)]
struct Stalled {
    throttle: Option<f64>,
    reclaim: Option<f64>,
    swapin: Option<f64>,
}

fn ms(pct: Option<f64>) -> Option<f64> {
    known(pct.map(|pct| pct * 10.0))
}

impl<'a> Process<'a> {
    fn of(world: &SystemState, row: ProcessRow<'a>) -> Self {
        // Threads are not told apart.
        let raw = world.last_sample.as_ref().and_then(|s| s.io_accounts.ok()).filter(|_| row.attributed_io.is_some());
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
            read_bytes_per_s: known(row.read_bytes_per_s),
            write_bytes_per_s: known(row.write_bytes_per_s),
            cancelled_bytes_per_s: known(row.cancelled_bytes_per_s),
            read_bytes_total: row.read_bytes_total,
            write_bytes_total: row.write_bytes_total,
            io_delay_pct: known(row.io_delay_pct),
            swapin_delay_pct: known(row.swapin_delay_pct),
            stalled_ms_per_s: Stalled {
                throttle: ms(row.throttled_pct),
                reclaim: ms(row.reclaim_pct),
                swapin: ms(row.swapin_delay_pct),
            },
            swap_bytes: row.swap_bytes,
            rss_bytes: row.rss_bytes,
            major_faults_per_s: known(row.major_faults_per_s),
            cgroup: row.cgroup.map(|c| sanitize_cow(c.as_bytes())),
            ended: row.exited,
            writeback_bytes_per_s: known(row.attributed_io.map(|c| c.writeback_bytes_per_s)),
            writeback_bytes_total: raw.map(|raw| raw.written_back_bytes(row.pid, None)),
            devices: row.attributed_io.and_then(|_| charge::devices(world, row.pid)),
        }
    }
}
