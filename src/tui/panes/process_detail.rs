//! One task: its counters, limits, what it waits for, and on demand its mappings.

use super::kernel_detail::draw_lines;
use super::{Pane, PaneId, when};
use crate::export::sheet::Sheet;
use crate::model::process::ProcRow;
use crate::text::clean;
use crate::tui::keys::Context;
use crate::tui::state::{App, Detail, ProcessDetail};
use crate::tui::widgets::dialog::frame;
use crate::tui::widgets::theme::Theme;
use crate::units::{bytes, span};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// The pane.
pub const PANE: Pane = Pane {
    id: PaneId::ProcessDetail,
    contexts: &[Context::ProcessDetail, Context::Detail, Context::List],
    render,
    sheet,
    rows: |app| text(app).len(),
};

fn detail(app: &App) -> Option<&ProcessDetail> {
    match &app.ui.detail {
        Some(Detail::Process(p)) => Some(p),
        _ => None,
    }
}

fn text(app: &App) -> Vec<(String, bool)> {
    let Some(p) = detail(app) else { return Vec::new() };
    let mut out = Vec::new();
    match app.world.procs.get(&p.key) {
        Some(row) => counters(app, &row, &mut out),
        None => out.push(("this task has ended".into(), true)),
    }
    out
}

fn counters(app: &App, row: &ProcRow<'_>, out: &mut Vec<(String, bool)>) {
    let rate = |n: Option<f64>| super::writeback::short(n);
    let level = |n: Option<u64>| n.map_or("-".into(), bytes);
    let pct = |n: Option<f64>| n.map_or("-".into(), |n| format!("{n:.1} %"));
    let now = app.world.now().boot_ns;
    out.push((row.command.clone().unwrap_or_else(|| row.comm.clone()), true));
    let mut fact = |name: &str, value: String| out.push((format!("{name:<12} {value}"), false));
    let kind = if row.kernel_thread { "kernel thread" } else { "program" };
    let exited = if row.exited { ", ENDED" } else { "" };
    fact("task", format!("{} of process {}, parent {}, {kind}{exited}", row.tid, row.pid, row.ppid));
    fact("name", row.comm.clone());
    fact("user", row.user.clone().unwrap_or_else(|| "-".into()));
    let wait = row.wchan.map_or(String::new(), |w| format!(", waits in {}", clean(w)));
    let since = span(now.saturating_sub(row.state_since_ns) / 1_000_000_000);
    fact("state", format!("{} for {since}{wait}", row.state));
    fact("threads", row.num_threads.to_string());
    fact("io priority", row.ionice.clone().unwrap_or_else(|| "-".into()));
    fact("read", format!("{}/s, {} in all", rate(row.read_bytes_per_s), level(row.read_bytes_total)));
    fact("written", format!("{}/s, {} in all", rate(row.write_bytes_per_s), level(row.write_bytes_total)));
    fact("cancelled", format!("{}/s", rate(row.cancelled_bytes_per_s)));
    fact("I/O delay", pct(row.io_delay_pct));
    fact("swapin delay", pct(row.swapin_delay_pct));
    fact(
        "memory",
        format!(
            "{} resident, {} in swap (VmSwap; shared memory not counted)",
            bytes(row.rss_bytes),
            level(row.swap_bytes)
        ),
    );
    fact("major faults", row.major_faults_per_s.map_or("-".into(), |n| format!("{n:.1}/s")));
    fact("cgroup", row.cgroup.map_or("-".into(), clean));
    if let Some(container) = row.container {
        fact("container", clean(container));
    }
}

fn render(app: &App, theme: &Theme, area: Rect, buf: &mut Buffer, focused: bool) {
    let Some(p) = detail(app) else { return };
    let inner = frame(buf, area, &format!("Task {}", p.key.tid), &when(app), focused, theme);
    draw_lines(app, theme, inner, buf, &text(app));
}

fn sheet(app: &App) -> Sheet {
    let title = detail(app)
        .map_or(String::new(), |p| format!("Task {} on {}, {}", p.key.tid, app.world.host.name, app.stamp()));
    let mut sheet = Sheet::new(title, &[("", false)]);
    sheet.rows.extend(text(app).into_iter().map(|l| vec![l.0]));
    sheet
}
