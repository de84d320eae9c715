//! One entry of the kernel log, whole: its trace, the device and the task it names.

use super::kernel::{class_label, shown};
use super::{Pane, PaneId};
use crate::export::table::Table;
use crate::model::disk::DevId;
use crate::model::kernel_log::LogEntry;
use crate::model::process::TaskKey;
use crate::text::sanitize;
use crate::tui::keys::Context;
use crate::tui::layout;
use crate::tui::state::{App, Detail};
use crate::tui::widgets::canvas::Canvas;
use crate::tui::widgets::dialog::{frame, wrap};
use crate::tui::widgets::put::put;
use crate::tui::widgets::theme::Theme;
use ratatui::layout::Rect;

/// The pane.
pub const PANE: Pane = Pane {
    id: PaneId::KernelDetail,
    contexts: &[Context::Detail, Context::KernelDetail, Context::Scroll],
    render,
    stamp: |_| None,
    sheet,
    rows: |app| stops(text(app).len(), inside(app).height),
};

/// What the entry shown points to: the task it names if that is still there, else the device.
pub fn target(app: &App) -> Option<Target> {
    let e = entry(app)?;
    let task = e.pid.and_then(|pid| app.world.processes.find_by_pid(pid)).map(|row| Target::Task(row.key()));
    task.or_else(|| {
        // `loop0-8` and `sda1` in a message may be a journal's or a partition's name.
        let name = e.device.as_deref()?;
        let rates = app.snap().devices.ok()?;
        let rate = rates.iter().find(|r| &*r.name == name || name.split('-').next() == Some(&*r.name));
        rate.map(|r| Target::Device(r.id))
    })
}

/// Where an entry leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A task.
    Task(TaskKey),
    /// A device.
    Device(DevId),
}

fn entry(app: &App) -> Option<&LogEntry> {
    let Some(Detail::Kernel(at)) = &app.ui.detail else { return None };
    shown(app).nth(*at)
}

fn text(app: &App) -> Vec<(String, bool)> {
    let width = usize::from(app.ui.size.0.saturating_sub(4)).max(20);
    let Some(e) = entry(app) else { return vec![("this entry is no longer kept".into(), true)] };
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
        fact("device", format!("{}{}", sanitize(device), device_words(app, device)));
    }
    if let Some(pid) = e.pid {
        fact(
            "task",
            format!("{pid} {}{}", e.comm.as_deref().map_or(String::new(), sanitize), task_words(app, pid)),
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
fn device_words(app: &App, name: &str) -> String {
    let rate = app.snap().devices.ok().and_then(|d| d.iter().find(|d| &*d.name == name));
    match rate {
        Some(r) if r.stalled => format!("  now STALLED with {} in flight", r.in_flight),
        Some(r) => format!("  now {:.1} tps, await {:.2} ms, util {:.0} %", r.tps, r.await_ms, r.util_pct),
        None => String::new(),
    }
}

/// What the task does right now.
fn task_words(app: &App, pid: u32) -> String {
    match app.world.processes.find_by_pid(pid) {
        Some(row) => {
            format!("  now in state {}{}", row.state, row.wchan.map_or(String::new(), |w| format!(" in {w}")))
        }
        None => "  no longer there".into(),
    }
}

fn render(app: &App, theme: &Theme, area: Rect, buf: &mut Canvas, focused: bool) {
    let inner = frame(buf, area, "Kernel log entry", "Enter: its task or device", focused, theme);
    draw_lines(app, theme, inner, buf, &text(app));
}

/// The inside of the pane that has the keys.
pub fn inside(app: &App) -> Rect {
    let area = layout::arrange(app).area(app.focused()).unwrap_or_default();
    Rect {
        x: area.x + 1,
        y: area.y + 1,
        width: area.width.saturating_sub(2),
        height: area.height.saturating_sub(2),
    }
}

/// Places a page of so many lines can be scrolled to: the last one shows its end.
pub fn stops(lines: usize, height: u16) -> usize {
    lines.saturating_sub(usize::from(height)) + 1
}

/// Lines of a detail page, scrolled; `true` stands out.
pub fn draw_lines(app: &App, theme: &Theme, area: Rect, buf: &mut Canvas, lines: &[(String, bool)]) {
    let last = lines.len().saturating_sub(usize::from(area.height));
    let skip = app.ui.detail_scroll.selected.min(last);
    for (i, (line, strong)) in lines.iter().skip(skip).take(usize::from(area.height)).enumerate() {
        put(buf, area.x, area.y + i as u16, line, area.width, if *strong { theme.title } else { theme.text });
    }
}

fn sheet(app: &App) -> Table {
    let mut sheet =
        Table::new(format!("Kernel log entry on {}, {}", app.world.host.name, app.stamp()), &[("", false)]);
    sheet.rows.extend(text(app).into_iter().map(|l| vec![l.0]));
    sheet
}
