//! The Syncs view: which processes wait for fsync and its kin, on which file, for how long.

mod lists;

use crate::export::table::Table;
use crate::model::syncs::SLOW_THRESHOLD_MS;
use crate::model::syncs::columns::{SLOW_SYNC_COLUMNS, SOURCE, SYNC_COLUMNS};
use crate::tui::settings::SYNC_THRESHOLD_MS_RANGE;
use crate::tui::view::{
    Action, ColumnInfo, Context, Effect, KeyContext, Outbox, PaneClick, PaneId, PaneSpec, Target, View, ViewId,
    change_columns,
};
use crate::tui::widgets::{CellBuffer, ColumnState, Rect, RowSearch, Scroll, split_rows};
use smart_default::SmartDefault;
use std::time::Duration;

const KEYS: &[KeyContext] = &[KeyContext::Columns, KeyContext::List, KeyContext::Scroll];
/// They are in the order of time.
const SLOW_KEYS: &[KeyContext] = &[KeyContext::List, KeyContext::Scroll];

/// Rows of the lower pane while nothing is traced.
const UNTRACED_ROWS: u16 = 3;

#[derive(Debug, Clone, SmartDefault)]
pub struct SyncsView {
    pub scroll: Scroll,
    pub slow_scroll: Scroll,
    /// Of the callers. The default order is longest wait first.
    pub columns: ColumnState,
    pub filter: String,
    /// Syncs of at least this many milliseconds are listed one by one.
    #[default(SLOW_THRESHOLD_MS)]
    pub threshold_ms: u64,
    /// The threshold last sent to the collector; `None`: slow syncs are not listed.
    pub requested_threshold: Option<Duration>,
}

impl SyncsView {
    /// Sets the threshold from the text of `:syncs MS`.
    /// Errors: the text is not a number in range.
    pub fn set_threshold(&mut self, text: &str) -> Result<(), String> {
        let ms = text.trim_end_matches("ms").trim().parse().ok().filter(|ms| SYNC_THRESHOLD_MS_RANGE.contains(ms));
        self.threshold_ms =
            ms.ok_or_else(|| format!("syncs \"{text}\": must be 0 to {} milliseconds", SYNC_THRESHOLD_MS_RANGE.end()))?;
        Ok(())
    }

    fn scroll_mut(&mut self, pane: PaneId) -> &mut Scroll {
        if pane == PaneId::Syncs { &mut self.scroll } else { &mut self.slow_scroll }
    }

    fn len(&self, pane: PaneId, cx: &Context) -> usize {
        match pane {
            PaneId::Syncs => self.callers(cx.shared).len(),
            _ => self.slow_syncs(cx.shared).len(),
        }
    }

    fn open_process(&self, pane: PaneId, cx: &Context, out: &mut Outbox) {
        let pid = match pane {
            PaneId::Syncs => self.callers(cx.shared).get(self.scroll.selected).map(|row| row.rate.file.pid),
            _ => self.slow_syncs(cx.shared).get(self.slow_scroll.selected).map(|row| row.file.pid),
        };
        let Some(pid) = pid else { return };
        match cx.shared.system.processes.find_live(pid) {
            Some(row) => out.navigate(Target::Task(row.key())),
            None => out.error(format!("process {pid} has exited, or has not been scanned yet")),
        }
    }
}

impl View for SyncsView {
    fn panes(&self) -> &'static [PaneSpec] {
        &[(PaneId::Syncs, "syncs", KEYS), (PaneId::SlowSyncs, "slow-syncs", SLOW_KEYS)]
    }

    fn layout(&self, cx: &Context, body: Rect) -> Vec<(PaneId, Rect)> {
        // Nothing can be listed one by one where nothing is traced.
        let is_traced = cx.shared.snapshot().syncs.ok().is_some();
        let slow_rows = if is_traced { body.height * 2 / 5 } else { UNTRACED_ROWS.min(body.height) };
        let [callers, slow] = split_rows(body, body.height - slow_rows);
        vec![(PaneId::Syncs, callers), (PaneId::SlowSyncs, slow)]
    }

    fn render(&self, pane: PaneId, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        match pane {
            PaneId::Syncs => self.render_callers(cx, area, buf),
            _ => self.render_slow_syncs(cx, area, buf),
        }
    }

    fn table(&self, pane: PaneId, cx: &Context) -> Table {
        match pane {
            PaneId::Syncs => self.callers_table(cx),
            _ => self.slow_syncs_table(cx),
        }
    }

    fn move_selection(&mut self, pane: PaneId, by: isize, cx: &Context) -> bool {
        let len = self.len(pane, cx);
        self.scroll_mut(pane).move_selection(by, len);
        true
    }

    fn on_action(&mut self, pane: PaneId, action: Action, cx: &Context, out: &mut Outbox) -> bool {
        match action {
            Action::Open => self.open_process(pane, cx, out),
            _ => return change_columns(&mut self.columns, action, SYNC_COLUMNS.len()),
        }
        true
    }

    /// A click on a column's header sorts by it, a second one reverses the order; a click on a row selects it.
    fn on_click(&mut self, click: PaneClick, cx: &Context, _: &mut Outbox) {
        if click.y == click.inner.y {
            let fitted = self.fitted_columns(click.inner.width);
            if let Some(column) = fitted.column_at(click.x - click.inner.x).filter(|_| click.pane == PaneId::Syncs) {
                self.columns.click(Some(column));
            }
            return;
        }
        let len = self.len(click.pane, cx);
        self.scroll_mut(click.pane).click(len, click.inner, click.y);
    }

    fn on_command(&mut self, word: &str, args: &str, _: &Context, out: &mut Outbox) -> Option<Result<(), String>> {
        (word == "syncs").then(|| {
            self.set_threshold(args)?;
            out.info(format!("syncs that take {} ms are listed one by one", self.threshold_ms));
            Ok(())
        })
    }

    /// Slow syncs are listed only while they, or the findings made of them, are on screen.
    fn refresh(&mut self, cx: &Context, out: &mut Outbox) {
        let threshold = [ViewId::Syncs, ViewId::Findings]
            .into_iter()
            .any(|view| cx.is_settled_on(view))
            .then(|| Duration::from_millis(self.threshold_ms));
        if threshold != self.requested_threshold {
            self.requested_threshold = threshold;
            out.push(Effect::ListSlowSyncs(threshold));
        }
    }

    fn filter(&self, _: PaneId) -> &str {
        &self.filter
    }

    fn set_filter(&mut self, _: PaneId, text: &str, _: &Context) {
        text.clone_into(&mut self.filter);
    }

    fn columns(&self, pane: PaneId, _: &Context) -> Vec<ColumnInfo> {
        match pane {
            PaneId::Syncs => ColumnInfo::of_table(SYNC_COLUMNS, self.columns.sorted, |_| &SOURCE),
            // They are in the order of time.
            _ => ColumnInfo::of_table(SLOW_SYNC_COLUMNS, None, |_| &SOURCE)
                .into_iter()
                .map(|column| ColumnInfo { can_sort: false, ..column })
                .collect(),
        }
    }

    fn column_at(&self, click: PaneClick, _: &Context) -> Option<usize> {
        let fitted = match click.pane {
            PaneId::Syncs => self.fitted_columns(click.inner.width),
            _ => Self::fitted_slow_columns(click.inner.width),
        };
        fitted.column_at(click.x - click.inner.x)
    }

    fn sort_by(&mut self, _: PaneId, column: Option<usize>, _: &Context) {
        self.columns.sort_by(column);
    }

    fn find_row(&mut self, pane: PaneId, search: &RowSearch, cx: &Context) -> bool {
        let any = |texts: [&str; 3]| texts.iter().any(|t| search.matches(t));
        let rows: Vec<bool> = match pane {
            PaneId::Syncs => {
                self.callers(cx.shared).iter().map(|row| any([&row.comm, &row.path, &row.device])).collect()
            }
            _ => {
                let waiting_on = |row: &crate::model::syncs::SlowSyncRow| row.waiting_on.clone().unwrap_or_default();
                let slow = self.slow_syncs(cx.shared);
                slow.iter().map(|row| any([&row.comm, &row.path, &waiting_on(row)])).collect()
            }
        };
        search.select(rows.into_iter(), &mut self.scroll_mut(pane).selected)
    }
}
