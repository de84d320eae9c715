//! Which process does the I/O of which device, for the pages of a task and of a device.

use super::detail::DetailText;
use crate::export::io_attribution::{COLUMN_HEADERS, format_rates, on_device, process_label, unattributed_text};
use crate::model::disk::DevId;
use crate::model::io_accounting::{IoAttribution, IoRates};
use crate::model::topology::DeviceKind;
use crate::sanitize::{fit_width, sanitize};
use crate::tui::view::Shared;
use crate::units::format_bytes;

const MAX_TASKS: usize = 8;
const MAX_GROUPS: usize = 4;
const NAME_WIDTH: usize = 24;
const COLUMN_WIDTHS: [usize; 7] = [7, 7, 8, 8, 8, 8, 8];

fn format_line(name: &str, cells: [String; 7]) -> String {
    let cells: String = cells.iter().zip(COLUMN_WIDTHS).map(|(c, width)| format!("{c:>width$}")).collect();
    let (name, used) = fit_width(name, NAME_WIDTH);
    format!("{name}{}{cells}", " ".repeat(NAME_WIDTH.saturating_sub(used)))
}

fn figures_line(name: &str, f: &IoRates) -> String {
    format_line(&format!("  {name}"), format_rates(f))
}

/// Appends the heading, and the figures' names or why there are none.
fn push_heading<'a>(shared: &'a Shared, name: &str, out: &mut DetailText) -> Option<&'a IoAttribution> {
    let charged = &shared.snapshot().io_attribution;
    match charged.unavailable_reason(shared.system.now().boot_ns) {
        None => out.section(format_line(name, COLUMN_HEADERS.map(str::to_owned))),
        Some(why) => {
            out.section(name);
            out.line(format!("  - {why}"));
        }
    }
    charged.ok().map(|charged| &**charged)
}

/// Appends the I/O of a process at each device, or why it is unknown. `group`: path of its control group.
pub(super) fn push_process_io(shared: &Shared, pid: u32, group: Option<&str>, out: &mut DetailText) {
    let Some(charged) = push_heading(shared, "I/O at the devices", out) else { return };
    let own = charged.process(pid);
    for on in own.map(|t| t.devices.as_slice()).unwrap_or_default() {
        out.line(figures_line(&shared.system.device_name(on.device), &on.rates));
    }
    if own.is_none() {
        out.line("  none in the interval");
    }
    if let Some(group) = group.and_then(|path| charged.cgroup(path)) {
        out.line(figures_line("its whole cgroup", &group.total));
    }
    let raw = shared.system.last_sample.as_ref().and_then(|s| s.io_accounts.ok());
    if let Some(total) = raw.map(|raw| raw.written_back_bytes(pid, None)).filter(|n| *n > 0) {
        out.line(format!("  {} of its pages have been written back since tracing began", format_bytes(total)));
    }
    if shared.system.processes.rows_are_threads {
        out.line("  (of the whole process, not of one thread)");
    }
}

/// Appends the processes and groups that did the I/O of a device, or why they are unknown.
pub(super) fn push_device_io(shared: &Shared, id: DevId, out: &mut DetailText) {
    let Some(charged) = push_heading(shared, "Who", out) else { return };
    let before = out.0.len();
    let tasks = on_device(&charged.processes, id);
    for (pid, figures) in tasks.iter().take(MAX_TASKS) {
        out.line(figures_line(&truncate_keeping_pid(process_label(charged, &shared.system, **pid)), figures));
    }
    if tasks.len() > MAX_TASKS {
        out.line(format!("  {} more did less", tasks.len() - MAX_TASKS));
    }
    let groups = on_device(&charged.cgroups, id);
    if !groups.is_empty() {
        out.line("  by control group:");
    }
    for (path, figures) in groups.iter().take(MAX_GROUPS) {
        out.line(figures_line(&truncate_start(&sanitize(&***path)), figures));
    }
    if let Some(text) = unattributed_text(charged, id) {
        out.line(format!("  {text}"));
    }
    if out.0.len() == before {
        out.line(format!("  {}", no_io_reason(shared, charged, id)));
    }
    if charged.dropped > 0 {
        out.line(format!("  {} requests could not be followed: too many were in flight", charged.dropped));
    }
}

/// Shortens `kworker/u8:1 (28188)` in the name, never in the PID.
fn truncate_keeping_pid(name: String) -> String {
    let Some((comm, pid)) = name.rsplit_once(" (") else { return name };
    let (comm, _) = fit_width(comm, NAME_WIDTH.saturating_sub(4 + pid.len()));
    format!("{comm} ({pid}")
}

/// Shortens a path at the start: its end says more.
fn truncate_start(path: &str) -> String {
    let mut rest = path;
    while fit_width(rest, usize::MAX).1 > NAME_WIDTH - 3 {
        rest = rest.strip_prefix(|_: char| true).unwrap_or_default();
    }
    if rest.len() == path.len() { path.to_owned() } else { format!("…{rest}") }
}

fn no_io_reason(shared: &Shared, charged: &IoAttribution, id: DevId) -> String {
    let kind = shared.system.topology.ok().and_then(|t| t.get(id)).map(|d| d.kind);
    match kind {
        Some(DeviceKind::Partition) => "- counted for the whole device only, not for a partition".into(),
        Some(DeviceKind::Disk | DeviceKind::Loop) | None => "no task in the interval".into(),
        _ => charged.unavailable.first().map_or_else(|| "no task in the interval".into(), |why| format!("- {why}")),
    }
}
