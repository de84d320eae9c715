//! The text of the page: file system, options, the devices below it, free space.

use super::super::detail::draw_detail_lines;
use crate::export::table::Table;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::sanitize::sanitize;
use crate::tui::screen::DetailPage;
use crate::tui::shared::Shared;
use crate::tui::view::Context;
use crate::tui::widgets::cell_buffer::CellBuffer;
use crate::tui::widgets::dialog::{draw_frame, wrap};
use crate::tui::widgets::theme::Theme;
use ratatui::layout::Rect;

pub(super) fn detail_lines(cx: &Context) -> Vec<(String, bool)> {
    let Some(DetailPage::Path(path)) = &cx.screen.detail else { return Vec::new() };
    let width = usize::from(cx.screen.size.0.saturating_sub(4)).max(20);
    match &path.reply {
        None => vec![(waiting_text(cx.shared, &path.path), true)],
        Some(WorkerReply::ResolvedPath(report)) => crate::export::path_report::path_report_lines(report),
        Some(WorkerReply::Failed(why)) => wrap(&sanitize(why), width).into_iter().map(|l| (l, true)).collect(),
        Some(_) => vec![("no answer".into(), true)],
    }
}

/// The text while a child process has not replied.
fn waiting_text(shared: &Shared, path: &str) -> String {
    let now = shared.system.now().boot_ns;
    // Other jobs may be blocked longer; only this one matters.
    let own = WorkerJob::ResolvePath { path: path.to_owned() }.key();
    let blocked = shared.system.blocked_reads.iter().find(|b| b.waiting_on.starts_with(&own));
    let secs = blocked.map_or(0, |b| now.saturating_sub(b.since_boot_ns) / 1_000_000_000);
    match secs {
        0..2 => format!("asking about {} …", sanitize(path)),
        _ => format!("{}: blocked for {secs} s; the file system does not answer", sanitize(path)),
    }
}

pub(super) fn render(cx: &Context, theme: &Theme, area: Rect, buf: &mut CellBuffer, focused: bool) {
    let Some(DetailPage::Path(path)) = &cx.screen.detail else { return };
    let inner = draw_frame(buf, area, &format!("Path {}", sanitize(&path.path)), "Esc: back", focused, theme);
    draw_detail_lines(cx, theme, inner, buf, &detail_lines(cx));
}

pub(super) fn build_table(cx: &Context) -> Table {
    let title = match &cx.screen.detail {
        Some(DetailPage::Path(p)) => {
            format!("Path {} on {}, {}", sanitize(&p.path), cx.shared.system.host.name, cx.shared.timestamp())
        }
        _ => String::new(),
    };
    let mut sheet = Table::new(title, &[("", false)]);
    sheet.rows.extend(detail_lines(cx).into_iter().map(|l| vec![l.0]));
    sheet
}
