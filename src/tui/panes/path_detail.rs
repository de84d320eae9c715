//! The answer to `:path DIR`: file system, options, the devices below it, free space.

use super::kernel_log_detail::{draw_detail_lines, focused_pane_inner, scroll_positions};
use super::{Pane, PaneId};
use crate::export::table::Table;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::sanitize::sanitize;
use crate::tui::keymap::KeyContext;
use crate::tui::state::{App, DetailPage};
use crate::tui::widgets::cell_buffer::CellBuffer;
use crate::tui::widgets::dialog::{draw_frame, wrap};
use crate::tui::widgets::theme::Theme;
use ratatui::layout::Rect;

/// The pane.
pub const PANE: Pane = Pane {
    id: PaneId::PathDetail,
    contexts: &[KeyContext::Detail, KeyContext::Scroll],
    render,
    content_hash: |_| None,
    table: build_table,
    row_count: |app| scroll_positions(detail_lines(app).len(), focused_pane_inner(app).height),
};

fn detail_lines(app: &App) -> Vec<(String, bool)> {
    let Some(DetailPage::Path(path)) = &app.screen.detail else { return Vec::new() };
    let width = usize::from(app.screen.size.0.saturating_sub(4)).max(20);
    match &path.reply {
        None => vec![(waiting_text(app, &path.path), true)],
        Some(WorkerReply::ResolvedPath(report)) => crate::export::path_report::path_report_lines(report),
        Some(WorkerReply::Failed(why)) => wrap(&sanitize(why), width).into_iter().map(|l| (l, true)).collect(),
        Some(_) => vec![("no answer".into(), true)],
    }
}

/// What a child that does not answer is waiting for.
fn waiting_text(app: &App, path: &str) -> String {
    let now = app.shared.system.now().boot_ns;
    // Others may be stuck for longer; this one counts.
    let own = WorkerJob::ResolvePath { path: path.to_owned() }.key();
    let blocked = app.shared.system.blocked_reads.iter().find(|b| b.waiting_on.starts_with(&own));
    let secs = blocked.map_or(0, |b| now.saturating_sub(b.since_boot_ns) / 1_000_000_000);
    match secs {
        0..2 => format!("asking about {} …", sanitize(path)),
        _ => format!("{}: blocked for {secs} s; the file system does not answer", sanitize(path)),
    }
}

fn render(app: &App, theme: &Theme, area: Rect, buf: &mut CellBuffer, focused: bool) {
    let Some(DetailPage::Path(path)) = &app.screen.detail else { return };
    let inner = draw_frame(buf, area, &format!("Path {}", sanitize(&path.path)), "Esc: back", focused, theme);
    draw_detail_lines(app, theme, inner, buf, &detail_lines(app));
}

fn build_table(app: &App) -> Table {
    let title = match &app.screen.detail {
        Some(DetailPage::Path(p)) => {
            format!("Path {} on {}, {}", sanitize(&p.path), app.shared.system.host.name, app.shared.timestamp())
        }
        _ => String::new(),
    };
    let mut sheet = Table::new(title, &[("", false)]);
    sheet.rows.extend(detail_lines(app).into_iter().map(|l| vec![l.0]));
    sheet
}
