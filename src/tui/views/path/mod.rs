//! The page of `:path DIR`: what a directory lies on.

mod page;

use super::detail::scroll_positions;
use crate::export::table::Table;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::tui::view::{Context, Effect, Event, KeyContext, Outbox, PaneId, PaneSpec, Request, Target, View};
use crate::tui::widgets::{CellBuffer, Rect};

#[derive(Debug, Default)]
pub struct PathView {
    pub path: String,
    /// What a child process has found; `None` until it replies, because the file system may hang.
    pub reply: Option<WorkerReply>,
}

impl View for PathView {
    fn panes(&self) -> &'static [PaneSpec] {
        &[PaneSpec { id: PaneId::PathDetail, contexts: &[KeyContext::Detail, KeyContext::Scroll] }]
    }

    fn render(&self, pane: PaneId, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        self.render_page(cx, &cx.theme(), area, buf, cx.is_focused(pane));
    }

    fn table(&self, _: PaneId, cx: &Context) -> Table {
        self.page_table(cx)
    }

    fn row_count(&self, pane: PaneId, cx: &Context) -> usize {
        scroll_positions(self.detail_lines(cx).len(), cx.inner_area(pane).height)
    }

    fn on_target(&mut self, target: &Target, _: &Context, out: &mut Outbox) -> bool {
        let Target::Path(path) = target else { return false };
        *self = Self { path: path.clone(), reply: None };
        out.request(Request::OpenPage(PaneId::PathDetail));
        out.push(Effect::RunJob(WorkerJob::ResolvePath { path: path.clone() }));
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
            Event::JobReply(WorkerJob::ResolvePath { path }, reply) => {
                if path == self.path {
                    self.reply = Some(reply);
                }
                None
            }
            other => Some(other),
        }
    }
}
