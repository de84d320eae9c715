//! The text of the page: file system, options, the devices below it, free space.

use super::super::detail::{detail_table, draw_detail_lines};
use super::PathView;
use crate::export::table::Table;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::sanitize::sanitize;
use crate::subprocess::pool::PoolJob as _;
use crate::tui::view::{Context, Shared};
use crate::tui::widgets::{CellBuffer, Rect, Theme, draw_frame, wrap};

impl PathView {
    pub(super) fn detail_lines(&self, cx: &Context) -> Vec<(String, bool)> {
        let width = usize::from(cx.screen.size.0.saturating_sub(4)).max(20);
        match &self.reply {
            None => vec![(waiting_text(cx.shared, &self.path), true)],
            Some(WorkerReply::ResolvedPath(report)) => crate::export::path_report::path_report_lines(report),
            Some(WorkerReply::Failed(why)) => wrap(&sanitize(why), width).into_iter().map(|l| (l, true)).collect(),
            Some(_) => vec![("no answer".into(), true)],
        }
    }

    pub(super) fn render_page(&self, cx: &Context, theme: &Theme, area: Rect, buf: &mut CellBuffer, focused: bool) {
        let inner = draw_frame(buf, area, &format!("Path {}", sanitize(&self.path)), "Esc: back", focused, theme);
        draw_detail_lines(cx, theme, inner, buf, &self.detail_lines(cx));
    }

    pub(super) fn page_table(&self, cx: &Context) -> Table {
        detail_table(&format!("Path {}", sanitize(&self.path)), cx, self.detail_lines(cx))
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
