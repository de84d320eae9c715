//! Which slow facts are worth asking for now, and when: only tasks that matter are looked at closely.

use super::rule_context::RuleContext;
use crate::model::process::{ProcessColumn, ProcessQuery, TaskKey};
use crate::model::raw_bytes::RawBytes;
use crate::model::system_state::SystemState;

/// How often slow facts are read while something is wrong, seconds: settings and limits change rarely, and each reading
/// is a child.
pub const INTERVAL_SECS: f64 = 30.0;
/// The same while nothing is: at rest such a child costs as much as five ticks.
pub const IDLE_INTERVAL_SECS: f64 = 60.0;
/// Tasks looked at for their open files and control groups.
const MAX_TASKS: usize = 48;

/// The tasks whose limits and groups matter: servers, the busiest, the largest.
pub fn tasks_to_query(world: &SystemState) -> Vec<TaskKey> {
    let case = RuleContext::new(world);
    let mut out: Vec<TaskKey> = Vec::new();
    let mut add = |key: TaskKey| {
        // Limits and groups are a process' own; a thread's number is asked for by its process.
        if out.len() < MAX_TASKS && !out.iter().any(|k| k.pid == key.pid) {
            out.push(key);
        }
    };
    let procs = &world.processes;
    for (at, _) in case.task_survey().servers.iter().take(MAX_TASKS / 3) {
        add(procs.key_at(*at));
    }
    world
        .hung_tasks
        .iter()
        .take(MAX_TASKS / 6)
        .for_each(|s| add(TaskKey { pid: s.pid, tid: s.tid, starttime: s.starttime }));
    case.busiest_tasks().iter().take(MAX_TASKS / 3).for_each(|m| add(m.key));
    let largest = ProcessQuery { sort_by: ProcessColumn::Rss, height: MAX_TASKS / 3, ..ProcessQuery::default() };
    procs.window(&largest).rows.into_iter().for_each(|at| add(procs.key_at(at)));
    out
}

/// Mount points whose room is worth knowing: on block devices, or on the network.
pub fn mounts_to_query(world: &SystemState, network: bool) -> Vec<RawBytes> {
    if network {
        let all = world.last_sample.as_ref().and_then(|s| s.netfs.ok()).map(Vec::as_slice).unwrap_or_default();
        return all.iter().map(|m| m.mount.clone()).collect();
    }
    let Some(topo) = world.topology.ok() else { return Vec::new() };
    let all = topo.devices.iter().flat_map(|d| &d.mounts).filter(|m| super::rules::disk_space::is_checked(m));
    let mut points: Vec<RawBytes> = all.map(|m| m.mount_point.clone()).collect();
    points.sort();
    points.dedup();
    points
}
