//! One entry of the kernel log, whole: its trace, the device and the task it names.

use super::kernel_log::{class_label, visible_entries};
use super::{Pane, PaneId};
use crate::export::table::Table;
use crate::model::disk::DevId;
use crate::model::kernel_log::LogEntry;
use crate::model::process::TaskKey;
use crate::sanitize::sanitize;
use crate::tui::keymap::KeyContext;
use crate::tui::layout;
use crate::tui::state::{App, DetailPage};
use crate::tui::widgets::cell_buffer::CellBuffer;
use crate::tui::widgets::dialog::{draw_frame, wrap};
use crate::tui::widgets::text::draw_text;
use crate::tui::widgets::theme::Theme;
use ratatui::layout::Rect;

/// The pane.
pub const PANE: Pane = Pane {
    id: PaneId::KernelLogDetail,
    contexts: &[KeyContext::Detail, KeyContext::KernelDetail, KeyContext::Scroll],
    render,
    content_hash: |_| None,
    table: build_table,
    row_count: |app| scroll_positions(detail_lines(app).len(), focused_pane_inner(app).height),
};

/// What the entry shown points to: the task it names if that is still there, else the device.
pub fn link_target(app: &App) -> Option<EntryLink> {
    let e = shown_entry(app)?;
    let task = e.pid.and_then(|pid| app.shared.system.processes.find_by_pid(pid)).map(|row| EntryLink::Task(row.key()));
    task.or_else(|| {
        // `loop0-8` and `sda1` in a message may be a journal's or a partition's name.
        let name = e.device.as_deref()?;
        let rates = app.shared.snapshot().devices.ok()?;
        let rate = rates.iter().find(|r| &*r.name == name || name.split('-').next() == Some(&*r.name));
        rate.map(|r| EntryLink::Device(r.id))
    })
}

/// Where an entry leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryLink {
    /// A task.
    Task(TaskKey),
    /// A device.
    Device(DevId),
}

fn shown_entry(app: &App) -> Option<&LogEntry> {
    let Some(DetailPage::KernelLog(at)) = &app.screen.detail else { return None };
    visible_entries(app).nth(*at)
}

fn detail_lines(app: &App) -> Vec<(String, bool)> {
    let width = usize::from(app.screen.size.0.saturating_sub(4)).max(20);
    let Some(e) = shown_entry(app) else { return vec![("this entry is no longer kept".into(), true)] };
    let mut out = Vec::new();
    let mut fact = |name: &str, value: String| out.push((format!("{name:<10} {value}"), false));
    fact("time", format!("{} ({} s after boot)", crate::units::format_rfc3339(e.wall_ns), e.boot_us / 1_000_000));
    fact(
        "class",
        if e.is_from_program() { "written by a program, not the kernel".into() } else { class_label(e.class).into() },
    );
    fact("level", e.level.to_string());
    if e.count > 1 {
        fact("count", format!("{} since {}", e.count, crate::units::format_rfc3339(e.first_wall_ns)));
    }
    if e.suppressed > 0 {
        fact("kept back", format!("{} more lines by the kernel's rate limit", e.suppressed));
    }
    if let Some(device) = &e.device {
        fact("device", format!("{}{}", sanitize(device), device_status_text(app, device)));
    }
    if let Some(pid) = e.pid {
        fact(
            "task",
            format!("{pid} {}{}", e.comm.as_deref().map_or(String::new(), sanitize), task_status_text(app, pid)),
        );
    }
    out.push((String::new(), false));
    out.extend(wrap(&sanitize(&e.message), width).into_iter().map(|l| (l, true)));
    out.extend(e.folded.iter().map(|l| (format!("  {}", sanitize(l)), false)));
    if e.folded_dropped > 0 {
        out.push((format!("  … {} more lines not kept", e.folded_dropped), false));
    }
    out
}

/// What the device does right now.
fn device_status_text(app: &App, name: &str) -> String {
    let rate = app.shared.snapshot().devices.ok().and_then(|d| d.iter().find(|d| &*d.name == name));
    match rate {
        Some(r) if r.stalled => format!("  now STALLED with {} in flight", r.in_flight),
        Some(r) => format!("  now {:.1} tps, await {:.2} ms, util {:.0} %", r.tps, r.await_ms, r.util_pct),
        None => String::new(),
    }
}

/// What the task does right now.
fn task_status_text(app: &App, pid: u32) -> String {
    match app.shared.system.processes.find_by_pid(pid) {
        Some(row) => {
            format!("  now in state {}{}", row.state, row.wchan.map_or(String::new(), |w| format!(" in {w}")))
        }
        None => "  no longer there".into(),
    }
}

fn render(app: &App, theme: &Theme, area: Rect, buf: &mut CellBuffer, focused: bool) {
    let inner = draw_frame(buf, area, "Kernel log entry", "Enter: its task or device", focused, theme);
    draw_detail_lines(app, theme, inner, buf, &detail_lines(app));
}

/// The inside of the pane that has the keys.
pub fn focused_pane_inner(app: &App) -> Rect {
    let area = layout::compute_layout(app).pane_area(app.focused_pane()).unwrap_or_default();
    Rect { x: area.x + 1, y: area.y + 1, width: area.width.saturating_sub(2), height: area.height.saturating_sub(2) }
}

/// Places a page of so many lines can be scrolled to: the last one shows its end.
pub fn scroll_positions(lines: usize, height: u16) -> usize {
    lines.saturating_sub(usize::from(height)) + 1
}

/// Lines of a detail page, scrolled; `true` stands out.
pub fn draw_detail_lines(app: &App, theme: &Theme, area: Rect, buf: &mut CellBuffer, lines: &[(String, bool)]) {
    let last = lines.len().saturating_sub(usize::from(area.height));
    let skip = app.screen.detail_scroll.selected.min(last);
    for (i, (line, strong)) in lines.iter().skip(skip).take(usize::from(area.height)).enumerate() {
        draw_text(buf, area.x, area.y + i as u16, line, area.width, if *strong { theme.title } else { theme.text });
    }
}

fn build_table(app: &App) -> Table {
    let mut sheet = Table::new(
        format!("Kernel log entry on {}, {}", app.shared.system.host.name, app.shared.timestamp()),
        &[("", false)],
    );
    sheet.rows.extend(detail_lines(app).into_iter().map(|l| vec![l.0]));
    sheet
}
