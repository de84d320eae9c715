//! The rows of the tree of control groups: below their parents, the busiest first.

use super::ControlGroupActivity;
use super::columns::{CONTROL_GROUP_COLUMNS, ControlGroupColumn, ControlGroupRow};
use crate::model::process::container_hint;
use crate::model::syncs::list::device_name;
use crate::model::system_state::SystemState;
use std::cmp::Ordering;
use std::collections::HashMap;

/// Selection and order of the rows.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ControlGroupQuery<'a> {
    /// Sort the groups of one parent by this column, largest first (text: A first); `None` for the most bytes.
    pub sort: Option<ControlGroupColumn>,
    pub reverse: bool,
    /// Only groups whose path or container contains this, and those above them; case-insensitive.
    pub filter: &'a str,
}

/// What the processes of a group sum up to.
#[derive(Debug, Clone, Copy, Default)]
struct ProcessSums {
    count: u64,
    throttled_pct: Option<f64>,
}

/// Whether a group is `parent` or below it.
pub(crate) fn is_within(path: &str, parent: &str) -> bool {
    path.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The path of the group above; `None` for one below the root.
fn parent_of(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(parent, _)| parent).filter(|parent| !parent.is_empty())
}

/// Notes below the list.
pub(crate) fn notes(activity: &ControlGroupActivity) -> Vec<String> {
    match activity.left_out {
        0 => Vec::new(),
        n => vec![format!("{n} more groups are not read; those above them count their I/O")],
    }
}

/// The groups as a tree.
pub(crate) fn tree_rows(system: &SystemState, query: &ControlGroupQuery<'_>) -> Vec<ControlGroupRow> {
    let Some(activity) = system.snapshot.control_groups.ok() else { return Vec::new() };
    let sums = process_sums(system);
    let mut children: HashMap<&str, Vec<ControlGroupRow>> = HashMap::new();
    for rate in &activity.groups {
        let sum = sums.get(rate.path()).copied().unwrap_or_default();
        let row = ControlGroupRow {
            device: rate.busiest_device().map_or_else(|| "-".into(), |id| device_name(Some(id), system.topology.ok())),
            label: label(system, rate.path()),
            processes: sum.count,
            throttled_pct: sum.throttled_pct,
            rate: rate.clone(),
        };
        children.entry(parent_of(rate.path()).unwrap_or_default()).or_default().push(row);
    }
    for rows in children.values_mut() {
        rows.sort_by(|a, b| compare(a, b, query));
    }
    let mut out = Vec::with_capacity(activity.groups.len());
    append(&mut children, "", 0, &query.filter.to_lowercase(), &mut out);
    out
}

/// Appends the groups below `parent`; with a filter, those that match and those above them.
fn append(
    children: &mut HashMap<&str, Vec<ControlGroupRow>>,
    parent: &str,
    depth: usize,
    filter: &str,
    out: &mut Vec<ControlGroupRow>,
) -> bool {
    let mut is_any = false;
    for mut row in children.remove(parent).unwrap_or_default() {
        let path = row.rate.path().to_owned();
        let is_match = [&path, &row.label].iter().any(|text| text.to_lowercase().contains(filter));
        row.label.insert_str(0, &" ".repeat(2 * depth));
        let at = out.len();
        out.push(row);
        if append(children, &path, depth + 1, filter, out) || is_match {
            is_any = true;
        } else {
            out.truncate(at);
        }
    }
    is_any
}

/// `podman:web`, `NAMESPACE/POD/CONTAINER`, `postgresql.service`.
fn label(system: &SystemState, path: &str) -> String {
    let last = path.rsplit('/').next().unwrap_or_default();
    let hint = container_hint(&format!("/{last}"));
    let known = hint.as_ref().and_then(|hint| system.processes.container_names().find(hint));
    known.map_or_else(|| hint.clone().unwrap_or_else(|| last.into()), |known| known.label.to_string())
}

/// Counts each process in its group and in those above.
fn process_sums(system: &SystemState) -> HashMap<&str, ProcessSums> {
    let mut sums: HashMap<&str, ProcessSums> = HashMap::new();
    for process in system.processes.iter().filter(|process| !process.has_exited()) {
        let mut group = process.cgroup().filter(|path| path.len() > 1);
        while let Some(path) = group {
            let sum = sums.entry(path).or_default();
            sum.count += u64::from(process.pid() == process.key().tid);
            if let Some(pct) = process.throttled_pct() {
                *sum.throttled_pct.get_or_insert(0.0) += pct;
            }
            group = parent_of(path);
        }
    }
    sums
}

fn compare(a: &ControlGroupRow, b: &ControlGroupRow, query: &ControlGroupQuery<'_>) -> Ordering {
    let bytes = |row: &ControlGroupRow| row.rate.io_per_s(0).unwrap_or(0.0) + row.rate.io_per_s(1).unwrap_or(0.0);
    let memory = |row: &ControlGroupRow| row.rate.memory.unwrap_or(0);
    let order = match query.sort {
        None => bytes(b).total_cmp(&bytes(a)).then_with(|| memory(b).cmp(&memory(a))),
        Some(column) => {
            let order = a.sort_value(column).compare(&b.sort_value(column));
            let is_ascending = CONTROL_GROUP_COLUMNS.iter().any(|c| c.id == column && c.ascending);
            if is_ascending { order } else { order.reverse() }
        }
    };
    let order = if query.reverse { order.reverse() } else { order };
    order.then_with(|| a.label.cmp(&b.label))
}
