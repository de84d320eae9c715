//! Processors, memory nodes and priorities of a job's thread.

use super::dispatch::CloneRun;
use crate::bench::session::{BenchSession, RunError};
use crate::bench::syscalls::{set_io_priority, set_memory_policy};
use crate::model::reading::describe_io_error;
use rustix::thread::CpuSet;

/// Sets up the calling thread for a clone. What is refused without a privilege is noted.
///
/// # Errors
/// A processor or a memory node is not there.
pub(super) fn set_up_thread(session: &BenchSession, clone: &CloneRun<'_>) -> Result<(), RunError> {
    let job = clone.job;
    let failed = |what: &str, why: &dyn std::fmt::Display| {
        session.progress.add_note(format!("{what} not set: {why}"));
    };
    if !job.numa_nodes.is_empty() {
        let cpus = processors_of_nodes(session, &job.numa_nodes)?;
        bind_to(&cpus).map_err(|e| RunError::from_errno("numa_cpu_nodes", e))?;
    }
    if let Some(policy) = &job.memory_policy {
        set_memory_policy(policy.mode, &policy.nodes).map_err(|e| RunError::from_errno("numa_mem_policy", e))?;
    }
    if !job.cpus.is_empty() {
        let own = clone.files.clone as usize % job.cpus.len();
        let chosen = job.cpus.iter().enumerate().filter(|(n, _)| !job.cpus_split || *n == own);
        let chosen: Vec<usize> = chosen.map(|(_, cpu)| *cpu).collect();
        bind_to(&chosen).map_err(|e| {
            let name = crate::sanitize::sanitize(job.name.as_bytes());
            RunError::Failed(format!(
                "[{name}] cpus_allowed: none of the processors {chosen:?} can be used: {}",
                describe_io_error(&e)
            ))
        })?;
    }
    if job.nice != 0
        && let Err(e) = rustix::process::nice(job.nice)
    {
        failed("nice", &e);
    }
    let (class, level) = job.io_priority;
    if class > 0
        && let Err(e) = set_io_priority(class, level)
    {
        failed("the I/O priority", &e);
    }
    // The default timer slack of 50 us would show in pauses.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    Ok(())
}

fn bind_to(cpus: &[usize]) -> std::io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(*cpu));
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// The processors of NUMA nodes, from sysfs.
fn processors_of_nodes(session: &BenchSession, nodes: &[usize]) -> Result<Vec<usize>, RunError> {
    let mut all = Vec::new();
    for node in nodes {
        let list = session.root.sys(&format!("devices/system/node/node{node}/cpulist"));
        let text = std::fs::read_to_string(&list)
            .map_err(|_| RunError::Failed(format!("numa_cpu_nodes: node {node} is not in this machine")))?;
        all.extend(parse_list(text.trim()));
    }
    Ok(all)
}

/// `0-3,8` as numbers.
fn parse_list(text: &str) -> Vec<usize> {
    let ranges = text.split(',').filter_map(|part| {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        Some(low.parse().ok()?..=high.parse::<usize>().ok()?)
    });
    ranges.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::parse_list;

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(parse_list("0-2,8"), [0, 1, 2, 8]);
        assert_eq!(parse_list(""), Vec::<usize>::new());
    }
}
