//! The page of `:path DIR`: what a directory lies on, its file system, options, the devices below it, free space.

use super::detail::{detail_table, draw_detail_lines, scroll_positions};
use crate::export::table::Table;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::sanitize::sanitize;
use crate::subprocess::pool::PoolJob as _;
use crate::tui::view::{Context, Effect, Event, KeyContext, Outbox, PaneId, PaneSpec, Request, Shared, Target, View};
use crate::tui::widgets::{CellBuffer, Rect, wrap};

#[derive(Debug, Default)]
pub struct PathView {
    pub path: String,
    /// What a child process has found; `None` until it replies, because the file system may hang.
    pub reply: Option<WorkerReply>,
}

impl PathView {
    fn title(&self) -> String {
        format!("Path {}", sanitize(&self.path))
    }

    fn detail_lines(&self, cx: &Context) -> Vec<(String, bool)> {
        let width = usize::from(cx.screen.size.0.saturating_sub(4)).max(20);
        match &self.reply {
            None => vec![(waiting_text(cx.shared, &self.path), true)],
            Some(WorkerReply::ResolvedPath(report)) => crate::export::path_report::path_report_lines(report),
            Some(WorkerReply::Failed(why)) => wrap(&sanitize(why), width).into_iter().map(|l| (l, true)).collect(),
            Some(_) => vec![("no answer".into(), true)],
        }
    }
}

impl View for PathView {
    fn panes(&self) -> &'static [PaneSpec] {
        &[(PaneId::PathDetail, "path", &[KeyContext::Detail, KeyContext::Scroll])]
    }

    fn render(&self, pane: PaneId, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let inner = cx.draw_frame(buf, pane, area, &self.title(), "Esc: back");
        draw_detail_lines(cx, inner, buf, &self.detail_lines(cx));
    }

    fn table(&self, _: PaneId, cx: &Context) -> Table {
        detail_table(&self.title(), cx, self.detail_lines(cx))
    }

    fn row_count(&self, pane: PaneId, cx: &Context) -> usize {
        scroll_positions(self.detail_lines(cx).len(), cx.inner_area(pane).height)
    }

    fn on_target(&mut self, target: &Target, _: &Context, out: &mut Outbox) -> bool {
        let Target::Path(path) = target else { return false };
        *self = Self { path: path.clone(), reply: None };
        out.request(Request::OpenPage(PaneId::PathDetail));
        out.push(Effect::RunJob(WorkerJob::ResolvePath(path.clone())));
        true
    }

    fn on_command(&mut self, word: &str, args: &str, _: &Context, out: &mut Outbox) -> Option<Result<(), String>> {
        match (word, args) {
            ("path", "") => Some(Err("path DIR: which directory?".into())),
            ("path", directory) => {
                out.navigate(Target::Path(directory.to_owned()));
                Some(Ok(()))
            }
            _ => None,
        }
    }

    fn on_event(&mut self, event: Event, _: &Context, _: &mut Outbox) -> Option<Event> {
        match event {
            Event::JobReply(WorkerJob::ResolvePath(path), reply) => {
                if path == self.path {
                    self.reply = Some(reply);
                }
                None
            }
            other => Some(other),
        }
    }
}

/// The text while a child process has not replied.
fn waiting_text(shared: &Shared, path: &str) -> String {
    let now = shared.system.now().boot_ns;
    // Other jobs may be blocked longer; only this one matters.
    let own = WorkerJob::ResolvePath(path.to_owned()).key();
    let blocked = shared.system.blocked_reads.iter().find(|b| b.waiting_on.starts_with(&own));
    let secs = blocked.map_or(0, |b| now.saturating_sub(b.since_boot_ns) / 1_000_000_000);
    match secs {
        0..2 => format!("asking about {} …", sanitize(path)),
        _ => format!("{}: blocked for {secs} s; the file system does not answer", sanitize(path)),
    }
}
