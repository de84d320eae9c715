//! The lower pane: the selected group, with its devices, limits, memory and files.

use super::GroupsView;
use crate::export::control_groups::describe;
use crate::export::table::Table;
use crate::model::control_groups::list::is_within;
use crate::model::file_io::list::FileQuery;
use crate::tui::view::{Context, PaneId};
use crate::tui::views::detail::{DetailText, detail_table};
use crate::tui::views::file_lists::push_files;
use crate::tui::widgets::{CellBuffer, Rect, draw_column};
use std::collections::BTreeSet;

impl GroupsView {
    /// The path of the selected group, and the lines about it.
    fn page_lines(&self, cx: &Context) -> (String, Vec<(String, bool)>) {
        let rows = self.rows(cx.shared);
        let Some(row) = rows.get(self.scroll.selected) else { return ("Control group".into(), Vec::new()) };
        let (system, path) = (&cx.shared.system, row.rate.path());
        let mut out = DetailText::default();
        for line in describe(&row.rate, system.topology.ok()) {
            out.line(line);
        }
        let of_group = system.processes.iter().filter(|process| process.cgroup().is_some_and(|p| is_within(p, path)));
        let pids: BTreeSet<u32> = of_group.map(|process| process.pid()).collect();
        push_files(cx.shared, &FileQuery { pids: Some(&pids), ..FileQuery::default() }, true, &mut out);
        (path.to_owned(), out.0)
    }

    pub(super) fn render_page(&self, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let (title, lines) = self.page_lines(cx);
        let inner = cx.draw_frame(buf, PaneId::ControlGroupPage, area, &title, "");
        let style = |strong: bool| if strong { cx.theme.title } else { cx.theme.text };
        draw_column(buf, inner, lines.iter().map(|(line, strong)| (line, style(*strong))));
    }

    pub(super) fn page_table(&self, cx: &Context) -> Table {
        let (title, lines) = self.page_lines(cx);
        detail_table(&title, cx, lines)
    }
}
