//! What a process waits for, for the page of a task.

use super::detail::DetailText;
use crate::export::waits::{HEADERS, details, format_row};
use crate::model::process::TaskKey;
use crate::model::reading::Reading;
use crate::model::task_waits::list;
use crate::tui::view::Shared;

const MAX_ROWS: usize = 6;
const COLUMN_WIDTHS: [usize; 4] = [7, 10, 8, 10];

/// Appends what the process of a task waits for, while that is traced, and why it is not known otherwise.
pub(super) fn push_waits(shared: &Shared, pid: u32, out: &mut DetailText) {
    let snapshot = shared.snapshot();
    let waits = match &snapshot.task_waits {
        Reading::Ok(waits) => waits,
        missing => {
            let why = missing.unavailable_reason(shared.system.now().boot_ns).unwrap_or_default();
            return out.fact("waits", format!("- {why}"));
        }
    };
    let process = shared.system.processes.find_by_pid(pid).map(|row| row.key());
    let Some(process) = process else { return };
    let rows = list::wait_rows(snapshot, shared.system.topology.ok(), Some(TaskKey { tid: pid, pid, ..process }));
    let notes = list::notes(waits, snapshot);
    match rows.len() {
        0 => out.fact("waits", "none in the interval"),
        _ => out.strong(figures_line("waits for", &HEADERS.map(str::to_owned))),
    }
    for row in rows.iter().take(MAX_ROWS) {
        out.strong(figures_line(&format!("  {}", row.reason.label()), &format_row(row)));
        out.line(format!("    {}", details(row)));
    }
    if rows.len() > MAX_ROWS {
        out.line(format!("  {} more with less time", rows.len() - MAX_ROWS));
    }
    notes.into_iter().for_each(|note| out.line(format!("  {note}")));
}

/// The reason first, then the figures and the device.
fn figures_line(name: &str, cells: &[String; 6]) -> String {
    let figures: String = cells.iter().zip(COLUMN_WIDTHS).map(|(cell, width)| format!("{cell:>width$}")).collect();
    format!("{name:<14}{figures}  {}", cells[4])
}
