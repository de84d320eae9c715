//! The list of the Bench view: the run of this session, profiles, stored results.

use crate::bench::store::StoredResult;
use crate::bench::workloads::WORKLOADS;
use crate::export::table::Table;
use crate::sanitize::sanitize;
use crate::tui::keymap::KeyContext;
use crate::tui::layout;
use crate::tui::panes::{Pane, PaneId};
use crate::tui::state::App;
use crate::tui::views::bench::BenchRow;
use crate::tui::views::bench::run::{BenchEnding, TrackedBench};
use crate::tui::widgets::cell_buffer::CellBuffer;
use crate::tui::widgets::dialog::draw_frame;
use crate::tui::widgets::table::highlight_row;
use crate::tui::widgets::text::draw_text;
use crate::tui::widgets::theme::Theme;
use crate::units::{format_bytes_long, format_rfc3339, write_count};
use ratatui::layout::Rect;

/// The list pane.
pub const PANE: Pane = Pane {
    id: PaneId::BenchResults,
    contexts: &[KeyContext::Bench, KeyContext::Scroll],
    render,
    content_hash: |_| None,
    table: build_table,
    row_count: |app| app.views.bench.rows().len(),
};

/// A line of the list.
enum ListLine {
    Heading(String),
    Row(BenchRow),
}

fn list_lines(app: &App) -> Vec<ListLine> {
    let bench = &app.views.bench;
    let mut out = Vec::new();
    for row in bench.rows() {
        match &row {
            BenchRow::Profile(0) => out.push(ListLine::Heading("Profiles".into())),
            BenchRow::Stored(id) if bench.stored_results().first().is_some_and(|k| k.id == *id) => {
                out.push(ListLine::Heading("Results, newest first".into()));
            }
            _ => {}
        }
        out.push(ListLine::Row(row));
    }
    match &bench.stored {
        None => {}
        Some(Err(why)) => out.push(ListLine::Heading(format!("- {}", sanitize(why)))),
        Some(Ok(all)) if all.is_empty() => out.push(ListLine::Heading("No stored results".into())),
        Some(Ok(_)) => {}
    }
    out
}

/// First visible line, so that the selected row is visible.
fn scroll_offset(app: &App, lines: &[ListLine], height: usize) -> usize {
    let at = lines.iter().position(|l| matches!(l, ListLine::Row(r) if *r == app.views.bench.selected)).unwrap_or(0);
    // Scroll the heading above the first profile into view with it.
    let top = if at <= 1 { 0 } else { at };
    let offset = app.views.bench.list_offset.min(lines.len().saturating_sub(height)).min(top);
    if height > 0 && at >= offset + height { at + 1 - height } else { offset }
}

/// First visible line now.
pub fn current_scroll_offset(app: &App) -> usize {
    let height = layout::compute_layout(app).pane_area(PaneId::BenchResults).map_or(0, |a| a.height.saturating_sub(2));
    scroll_offset(app, &list_lines(app), height.into())
}

/// The row in line `y` of a pane of this height.
pub fn row_at(app: &App, height: u16, y: u16) -> Option<BenchRow> {
    let lines = list_lines(app);
    let from = scroll_offset(app, &lines, height.into());
    match lines.into_iter().nth(from + usize::from(y))? {
        ListLine::Row(row) => Some(row),
        ListLine::Heading(_) => None,
    }
}

fn current_run_text(run: &TrackedBench) -> String {
    let name = &run.plan.profile;
    match &run.ending {
        None => format!("> {}", run.status_text().trim_start_matches("bench ")),
        Some(BenchEnding::Report(_)) => format!("> {name}: its result"),
        Some(BenchEnding::Refused(_)) => format!("> {name}: refused"),
        Some(BenchEnding::Failed(_)) => format!("> {name}: failed"),
    }
}

/// Formats a result's time in local time, `11-21 15:49`. A result's name begins with its time in seconds since 1970.
pub fn format_result_time(id: &str, offset_secs: i64) -> String {
    let secs: i64 = id.split('-').next().and_then(|s| s.parse().ok()).unwrap_or(0);
    let local = secs.saturating_add(offset_secs).saturating_mul(1_000_000_000);
    format_rfc3339(local).get(5..16).map_or_else(String::new, |t| t.replace('T', " "))
}

/// Formats a stored result, `11-21 15:49 randrw 51k`.
fn stored_result_text(k: &StoredResult, marked: bool, offset_secs: i64) -> String {
    let mark = if marked { '*' } else { ' ' };
    if k.read_error.is_some() {
        return format!("{mark} {} unreadable", sanitize(&k.id));
    }
    let mut rate = String::new();
    if let Some((iops, _)) = k.rate {
        rate.push(' ');
        write_count(&mut rate, iops);
    }
    let end = if k.is_complete { "" } else { " part" };
    format!("{mark}{} {}{rate}{end}", format_result_time(&k.id, offset_secs), sanitize(&k.profile))
}

fn row_text(app: &App, row: &BenchRow) -> String {
    let bench = &app.views.bench;
    match row {
        BenchRow::CurrentRun => bench.run.as_ref().map_or(String::new(), current_run_text),
        BenchRow::Profile(at) => format!(" {:<9} {}", WORKLOADS[*at].name(), WORKLOADS[*at].about()),
        BenchRow::Stored(id) => match bench.stored_results().iter().find(|k| k.id == *id) {
            Some(k) => stored_result_text(k, bench.marked.as_ref() == Some(id), app.shared.utc_offset_secs),
            None => sanitize(id),
        },
    }
}

fn render(app: &App, theme: &Theme, area: Rect, buf: &mut CellBuffer, focused: bool) {
    let note = match app.views.bench.selected {
        BenchRow::Profile(_) => "Enter: run",
        BenchRow::Stored(_) => "Enter: show",
        BenchRow::CurrentRun => "Enter: show",
    };
    let inner = draw_frame(buf, area, "Bench", note, focused, theme);
    let lines = list_lines(app);
    let from = scroll_offset(app, &lines, inner.height.into());
    for (i, line) in lines.iter().skip(from).take(inner.height.into()).enumerate() {
        let y = inner.y + i as u16;
        match line {
            ListLine::Heading(text) => {
                draw_text(buf, inner.x, y, text, inner.width, theme.header);
            }
            ListLine::Row(row) => {
                let (text, style) =
                    (row_text(app, row), if *row == BenchRow::CurrentRun { theme.warn } else { theme.text });
                let (shown, cells) = crate::sanitize::fit_width(&text, inner.width.into());
                draw_text(buf, inner.x, y, shown, inner.width, style);
                if shown.len() < text.len() && cells > 0 {
                    draw_text(buf, inner.right() - 1, y, "…", 1, style);
                }
                if *row == app.views.bench.selected {
                    highlight_row(buf, inner, y, theme);
                }
            }
        }
    }
}

fn build_table(app: &App) -> Table {
    let title = format!("Benchmarks on {}, {}", app.shared.system.host.name, app.shared.timestamp());
    let heads = [
        ("result", false),
        ("began", false),
        ("profile", false),
        ("directory", false),
        ("IOPS", true),
        ("per s", true),
    ];
    let mut sheet = Table::new(title, &heads);
    for k in app.views.bench.stored_results() {
        let rate = |f: fn((f64, f64)) -> String| k.rate.map_or("-".into(), f);
        sheet.rows.push(vec![
            sanitize(&k.id),
            sanitize(&k.time),
            sanitize(&k.profile),
            sanitize(&k.directory),
            rate(|r| format!("{:.0}", r.0)),
            rate(|r| format_bytes_long(r.1 as u64)),
        ]);
        if let Some(why) = &k.read_error {
            sheet.notes.push(sanitize(why));
        }
    }
    sheet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_result_is_summarised_in_one_line() {
        let k = StoredResult {
            id: "1795276156-randrw".into(),
            profile: "randrw".into(),
            rate: Some((123_456.0, 1e9)),
            is_complete: false,
            ..StoredResult::default()
        };
        assert_eq!(stored_result_text(&k, true, 3600), "*11-21 16:49 randrw 123k part");
        let broken = StoredResult { read_error: Some("x".into()), ..k };
        assert_eq!(stored_result_text(&broken, false, 0), "  1795276156-randrw unreadable");
        assert_eq!(format_result_time("99999999999999999-x", 0).len(), 11);
    }
}
