//! Which slow facts to read, and how often. They are read by a child process, so only for tasks and mounts that matter.

use super::rule_context::RuleContext;
use crate::model::process::{ProcessColumn, ProcessQuery, TaskKey};
use crate::model::raw_bytes::RawBytes;
use crate::model::system_state::SystemState;

/// Seconds between two readings while there are findings: settings and limits change rarely.
pub(crate) const INTERVAL_SECS: f64 = 30.0;
/// Seconds between two readings while there are none: one reading costs as much CPU time as five ticks.
pub(crate) const IDLE_INTERVAL_SECS: f64 = 60.0;
/// Seconds between two readings while containers are seen whose names were not read yet.
pub(crate) const NEW_CONTAINER_SECS: f64 = 5.0;
/// Tasks whose open files and control groups are read.
const MAX_TASKS: usize = 48;

/// The tasks whose limits and control groups to read, one a process: servers, hung tasks, the busiest, the largest. Hung
/// threads of these processes come last.
pub(crate) fn tasks_to_query(system: &SystemState) -> Vec<TaskKey> {
    let (ctx, processes) = (RuleContext::new(system), &system.processes);
    let largest = ProcessQuery { sort_by: ProcessColumn::Rss, height: MAX_TASKS / 3, ..ProcessQuery::default() };
    let servers = ctx.task_survey().servers.iter().take(MAX_TASKS / 3).map(|(row, _)| row.key());
    let hung = || system.hung_tasks.iter().take(MAX_TASKS / 6);
    let candidates = servers
        .chain(hung().filter_map(|task| Some(processes.row_or_process(&task.key)?.key())))
        .chain(ctx.top_io_tasks(1.0).into_iter().take(MAX_TASKS / 3).map(|task| task.key))
        .chain(processes.window(&largest).rows.into_iter().map(|index| processes.row(index).key()));
    let mut out: Vec<TaskKey> = Vec::new();
    for key in candidates {
        if out.len() < MAX_TASKS && !out.iter().any(|k| k.pid == key.pid) {
            out.push(key);
        }
    }
    // The files that hung threads wait for are read, too.
    out.extend(hung().map(|task| task.key).filter(|key| !out.contains(key)).collect::<Vec<_>>());
    out
}

/// The mount points whose free space to read: those of network file systems or those of block devices.
pub(crate) fn mounts_to_query(system: &SystemState, network: bool) -> Vec<RawBytes> {
    if network {
        let all = system.last_sample.as_ref().and_then(|s| s.netfs.ok()).map(Vec::as_slice).unwrap_or_default();
        return all.iter().map(|m| m.mount.clone()).collect();
    }
    let Some(topology) = system.topology.ok() else { return Vec::new() };
    let mounts = topology.devices.iter().flat_map(|device| device.space_mounts());
    let mut points: Vec<RawBytes> = mounts.map(|m| m.mount_point.clone()).collect();
    points.sort();
    points.dedup();
    points
}
