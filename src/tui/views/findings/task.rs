//! Tasks as the line about the worst incident names them.

use crate::sanitize::sanitize;
use crate::tui::view::Shared;

/// A task: its name, sanitized, and its pid as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) name: String,
    pub(super) pid: String,
}

impl Task {
    /// From `fio (1234)`.
    pub(super) fn from_label(label: &str) -> Self {
        let (name, pid) = label.rsplit_once(" (").unwrap_or((label, ""));
        Self { name: name.into(), pid: pid.trim_end_matches(')').into() }
    }

    /// Whether it is a thread of the kernel; one that has ended is known by its name.
    pub(super) fn is_kernel_thread(&self, shared: &Shared) -> bool {
        let row = self.pid.parse().ok().and_then(|pid| shared.system.processes.find_live(pid));
        row.map_or_else(|| self.name.starts_with("kworker/"), |row| row.raw.kernel_thread)
    }
}

/// `dd (20733, 21344), fio (7) +2`: tasks of one name share its parentheses; those beyond `most` are counted.
pub(super) fn join_tasks(tasks: &[Task], most: usize) -> String {
    let mut by_name: Vec<(&str, Vec<&str>)> = Vec::new();
    for task in tasks.iter().take(most) {
        match by_name.iter_mut().find(|(name, _)| *name == task.name) {
            Some((_, pids)) => pids.push(&task.pid),
            None => by_name.push((&task.name, vec![&task.pid])),
        }
    }
    let named: Vec<String> = by_name.iter().map(|(name, pids)| format!("{name} ({})", pids.join(", "))).collect();
    let rest = tasks.len().saturating_sub(most);
    let rest = if rest > 0 { format!(" +{rest}") } else { String::new() };
    named.join(", ") + &rest
}

/// The tasks in their order, each once.
pub(super) fn without_repeats(tasks: impl IntoIterator<Item = Task>) -> Vec<Task> {
    let mut out: Vec<Task> = Vec::new();
    for task in tasks {
        if !out.contains(&task) {
            out.push(task);
        }
    }
    out
}

pub(super) fn is_kernel_thread(shared: &Shared, pid: u32) -> bool {
    match shared.system.processes.find_live(pid) {
        Some(row) => row.raw.kernel_thread,
        None => task_label(shared, pid).starts_with("kworker/"),
    }
}

/// `fio (1234)`, sanitized.
pub(super) fn task_label(shared: &Shared, pid: u32) -> String {
    let traced = || shared.snapshot().io_attribution.ok()?.process_name(pid).map(|name| sanitize(&**name));
    match shared.system.processes.find_live(pid) {
        Some(row) => row.label(),
        None => format!("{} ({pid})", traced().unwrap_or_else(|| "?".into())),
    }
}
