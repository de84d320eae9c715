//! The page beside the list: a form, the run under way, how a run ended, a stored result, a comparison of two.

use super::kind::{RunKind, RunReports, RunStatus};
use super::state::{OpenedResult, Run, RunEnding, RunView};
use crate::bench::store::Storable;
use crate::export::table::Table;
use crate::sanitize::{sanitize, wrap};
use crate::tui::view::{Action, Context, RunAction, Shared};
use crate::tui::widgets::{
    CellBuffer, Rect, StyledLine, TextStyle, area_below, draw_bar, draw_lines, draw_text, wrap_lines,
};

/// Maximum number of notes of a run under way that are visible.
const MAX_VISIBLE_NOTES: usize = 2;

/// A report as the command line prints it, styled.
pub(crate) fn report_text(text: &str) -> impl Iterator<Item = StyledLine> {
    text.lines().map(|line| {
        let style = match line.chars().next() {
            Some('!') => TextStyle::Warn,
            Some(c) if !c.is_whitespace() => TextStyle::Strong,
            _ => TextStyle::Plain,
        };
        (sanitize(line), style)
    })
}

impl<K: RunKind> RunView<K> {
    /// The run under way, if the page shows it.
    fn shown_active_run(&self) -> Option<&Run<K>> {
        self.shown_run().filter(|run| run.ending.is_none())
    }

    fn page_title(&self, focused: bool) -> (String, String) {
        let texts = K::TEXTS;
        if let Some(form) = self.shown_form() {
            let edit_key = if focused { "Enter" } else { "F2" };
            return (self.form.title(form), format!("{edit_key}: change, S: start"));
        }
        let [stored_keys, run_keys] = texts.report_keys;
        let (title, keys) = match (&self.opened, self.shown_run()) {
            (Some(OpenedResult::Result(report)), _) => {
                (format!("{} {}", texts.report, sanitize(report.id())), stored_keys)
            }
            (Some(OpenedResult::Comparison(_)), _) => (format!("Two {}s", texts.stored_noun), "Esc: back"),
            (Some(_), _) => (texts.report.into(), "Esc: back"),
            (None, Some(run)) if run.ending.is_none() => {
                (format!("{}: {}", texts.run, run.profile), if run.is_stopping { "C: kill" } else { "C: stop" })
            }
            (None, Some(run)) => (format!("{} of {}", texts.report, run.profile), run_keys),
            (None, None) => (texts.report.into(), "Enter: show, m: mark, c: compare"),
        };
        (title, keys.into())
    }

    pub(super) fn render_page(&self, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let (theme, focused) = (&cx.theme, cx.is_focused(Self::PAGE));
        let (title, note) = self.page_title(focused);
        let inner = cx.draw_frame(buf, Self::PAGE, area, &title, &note);
        if let Some(form) = self.shown_form() {
            return self.render_form(form, cx, area, inner, buf);
        }
        if let Some(run) = self.shown_active_run() {
            return render_running(run, cx, inner, buf);
        }
        let (lines, height) = (self.page_lines(inner.width, cx), usize::from(inner.height));
        let from = self.text_offset.min(lines.len().saturating_sub(height));
        draw_lines(theme, inner, buf, &lines, from);
        if from + height < lines.len() {
            let more = format!(" {} more lines ", lines.len() - from - height);
            draw_text(buf, area.x + 2, area.bottom() - 1, &more, area.width.saturating_sub(4), theme.dim);
        }
    }

    /// Moves the selected line of a form, or scrolls the text.
    pub(super) fn scroll_page(&mut self, by: isize, cx: &Context) {
        if let Some(form) = self.shown_form() {
            return self.move_form_line(form, by, cx);
        }
        let inner = cx.inner_area(Self::PAGE);
        let lines = match self.shown_active_run() {
            Some(_) => 0,
            None => self.page_lines(inner.width, cx).len(),
        };
        let last = lines.saturating_sub(inner.height.into());
        self.text_offset = self.text_offset.min(last).saturating_add_signed(by).min(last);
    }

    /// The lines of a page of text for a width.
    fn page_lines(&self, width: u16, cx: &Context) -> Vec<StyledLine> {
        let lines = match &self.opened {
            Some(OpenedResult::Loading(ids)) => {
                vec![(format!("reading {} …", sanitize(ids.join(" and "))), TextStyle::Dim)]
            }
            Some(OpenedResult::Failed(why)) => vec![(sanitize(why), TextStyle::Crit)],
            Some(OpenedResult::Result(report)) => K::report_lines(report, cx.shared, width),
            Some(OpenedResult::Comparison(both)) => match K::compare(both, width) {
                Ok(text) => report_text(&text).collect(),
                Err(why) => vec![(sanitize(why), TextStyle::Crit)],
            },
            None => match self.shown_run() {
                Some(run) => outcome_lines(run, cx, width),
                None => self.selected_result_card(cx.shared),
            },
        };
        wrap_lines(lines, width.into())
    }

    /// A stored result that is selected but not opened.
    fn selected_result_card(&self, shared: &Shared) -> Vec<StyledLine> {
        let [compare, mark] = [RunAction::Compare, RunAction::Mark].map(|action| shared.key(Action::Run(action)));
        let Some(stored) = self.selected_result() else { return Vec::new() };
        let id = &stored.id;
        let mark_hint = match &self.marked {
            Some(marked) if marked == id => format!("Marked: {compare} on another one compares the two."),
            Some(marked) => format!("{compare} compares it with {}, the marked one.", sanitize(marked)),
            None => {
                format!("{compare} compares it with the newest of its kind; {mark} marks it, to compare others with.")
            }
        };
        let style = if stored.is_damaged { TextStyle::Crit } else { TextStyle::Plain };
        vec![
            (format!("{} {}", sanitize(&stored.profile), sanitize(id)), TextStyle::Strong),
            (sanitize(&stored.summary), style),
            (String::new(), TextStyle::Plain),
            (format!("{} shows it.", shared.key(Action::Open)), TextStyle::Dim),
            (mark_hint, TextStyle::Dim),
        ]
    }

    pub(super) fn page_table(&self, cx: &Context) -> Table {
        if let Some(report) = self.shown_report() {
            return K::report_table(report);
        }
        let title = cx.shared.table_title(&self.page_title(false).0);
        if let Some(form) = self.shown_form() {
            return self.form_table(form, title, cx);
        }
        let lines = match self.shown_active_run() {
            Some(run) => summary_lines(run),
            None => self.page_lines(u16::MAX, cx),
        };
        let mut table = Table::new(title, &[("", false)]);
        table.rows.extend(lines.into_iter().map(|(text, _)| vec![text]));
        table
    }
}

fn outcome_lines<K: RunReports>(run: &Run<K>, cx: &Context, width: u16) -> Vec<StyledLine> {
    let mut out = match &run.ending {
        None => Vec::new(),
        Some(RunEnding::Report(report)) => {
            let mut out = vec![match &run.stored {
                None => ("saving …".into(), TextStyle::Dim),
                Some(Ok(id)) => (format!("saved as {}", sanitize(id)), TextStyle::Dim),
                Some(Err(why)) => (format!("! not saved: {}", sanitize(why)), TextStyle::Warn),
            }];
            out.extend(K::report_lines(report, cx.shared, width));
            return out;
        }
        Some(RunEnding::Refused(why)) => vec![
            (format!("refused: {}", sanitize(why)), TextStyle::Crit),
            (K::TEXTS.after_refusal.into(), TextStyle::Plain),
        ],
        Some(RunEnding::Failed(why)) => vec![
            (format!("failed: {}", sanitize(why)), TextStyle::Crit),
            (K::TEXTS.after_failure.into(), TextStyle::Plain),
        ],
    };
    out.extend(run.notes.iter().map(|note| (format!("! {note}"), TextStyle::Warn)));
    out
}

/// Draws a run under way: what it is doing, a bar, figures, the newest notes, and graphs in what is left.
fn render_running<K: RunStatus>(run: &Run<K>, cx: &Context, inner: Rect, buf: &mut CellBuffer) {
    let (theme, width) = (&cx.theme, usize::from(inner.width));
    let mut lines: Vec<StyledLine> = vec![(K::phase_text(run), TextStyle::Strong), (String::new(), TextStyle::Plain)];
    if let Some(trouble) = K::blocked_text(run, cx.shared.system.now().boot_ns) {
        lines.extend(wrap(&trouble, width).into_iter().map(|line| (line, TextStyle::Crit)));
    }
    lines.extend(K::figure_lines(run, width));
    let notes = run.notes.iter().rev().take(MAX_VISIBLE_NOTES);
    lines.extend(notes.map(|note| (format!("! {note}"), TextStyle::Warn)));
    let used = (lines.len() as u16).min(inner.height);
    draw_lines(theme, inner, buf, &lines, 0);
    if let Some(done) = K::fraction_done(run).filter(|_| inner.height > 1) {
        let bar = Rect { y: inner.y + 1, height: 1, ..inner };
        draw_bar(buf, bar, done, 1.0, &[], theme.graph, theme.dim);
    }
    K::draw_graphs(run, cx, area_below(inner, used), buf);
}

fn summary_lines<K: RunStatus>(run: &Run<K>) -> Vec<StyledLine> {
    let mut out = vec![(K::phase_text(run), TextStyle::Plain)];
    out.extend(K::figure_lines(run, usize::MAX));
    out.extend(K::summary_lines(run));
    out.extend(run.notes.iter().map(|note| (note.clone(), TextStyle::Plain)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_lines_are_sanitized_and_warnings_are_styled() {
        let lines: Vec<_> = report_text("! a\x1b[2J\n  device x\nrandrw on h\n\n").collect();
        let styled = [
            ("! a\\x1b[2J", TextStyle::Warn),
            ("  device x", TextStyle::Plain),
            ("randrw on h", TextStyle::Strong),
            ("", TextStyle::Plain),
        ];
        assert_eq!(lines, styled.map(|(text, style)| (text.to_owned(), style)));
    }
}
