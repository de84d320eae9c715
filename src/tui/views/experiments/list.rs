//! The list of experiments: the one of this session, the form for the next one, stored ones.

use crate::experiment::report::verdict::TrialOutcome;
use crate::experiment::stored::StoredExperiment;
use crate::export::table::Table;
use crate::sanitize::sanitize;
use crate::tui::keymap::KeyContext;
use crate::tui::layout;
use crate::tui::panes::{Pane, PaneId};
use crate::tui::state::App;
use crate::tui::views::bench::list::format_result_time;
use crate::tui::views::experiments::ExperimentRow;
use crate::tui::views::experiments::run::{ExperimentEnding, TrackedExperiment};
use crate::tui::views::tune::render::draw_truncated;
use crate::tui::widgets::cell_buffer::CellBuffer;
use crate::tui::widgets::dialog::draw_frame;
use crate::tui::widgets::table::highlight_row;
use crate::tui::widgets::text::draw_text;
use crate::tui::widgets::theme::Theme;
use ratatui::layout::Rect;

/// The list pane.
pub const PANE: Pane = Pane {
    id: PaneId::ExperimentList,
    contexts: &[KeyContext::Experiment, KeyContext::Scroll],
    render,
    content_hash: |_| None,
    table: build_table,
    row_count: |app| app.views.experiments.rows().len(),
};

/// First visible line, so that the selected row is visible.
fn scroll_offset(app: &App, height: usize) -> usize {
    let ui = &app.views.experiments;
    let rows = ui.rows();
    let at = rows.iter().position(|r| *r == ui.selected).unwrap_or(0);
    let offset = ui.list_offset.min(rows.len().saturating_sub(height)).min(at);
    if height > 0 && at >= offset + height { at + 1 - height } else { offset }
}

/// First visible line now.
pub fn current_scroll_offset(app: &App) -> usize {
    let height =
        layout::compute_layout(app).pane_area(PaneId::ExperimentList).map_or(0, |a| a.height.saturating_sub(2));
    scroll_offset(app, height.into())
}

/// The row in line `y` of a pane of this height.
pub fn row_at(app: &App, height: u16, y: u16) -> Option<ExperimentRow> {
    app.views.experiments.rows().into_iter().nth(scroll_offset(app, height.into()) + usize::from(y))
}

/// An outcome in few words.
fn outcome_text(outcome: Option<TrialOutcome>) -> &'static str {
    match outcome {
        Some(TrialOutcome::Better) => "B better",
        Some(TrialOutcome::Worse) => "B worse",
        Some(TrialOutcome::NoDifference) => "no difference shown",
        Some(TrialOutcome::TooFew) => "too few rounds",
        None => "-",
    }
}

fn current_run_text(run: &TrackedExperiment) -> String {
    let name = &run.spec.plan.profile;
    match &run.ending {
        None => format!("> {}", run.status_text().trim_start_matches("experiment ")),
        Some(ExperimentEnding::Report(r)) => {
            format!("> {name}: {}", outcome_text(r.trials.first().map(|t| t.verdict.outcome)))
        }
        Some(ExperimentEnding::Refused(_)) => format!("> {name}: refused"),
        Some(ExperimentEnding::Failed(_)) => format!("> {name}: failed"),
    }
}

/// Formats a stored experiment, ` 11-21 15:49 txlog B better`.
fn stored_result_text(k: &StoredExperiment, marked: bool, offset_secs: i64) -> String {
    let mark = if marked { '*' } else { ' ' };
    if k.read_error.is_some() {
        return format!("{mark}{} unreadable", sanitize(&k.id));
    }
    let end = if k.is_complete { "" } else { " (part)" };
    let time = format_result_time(&k.id, offset_secs);
    format!(
        "{mark}{time} {} {}{end}  {}",
        sanitize(&k.profile),
        outcome_text(k.outcome),
        sanitize(k.assignments.join(" "))
    )
}

fn row_text(app: &App, row: &ExperimentRow) -> String {
    let ui = &app.views.experiments;
    match row {
        ExperimentRow::CurrentRun => ui.run.as_ref().map_or(String::new(), current_run_text),
        ExperimentRow::Next => {
            let b = if ui.form.set.is_empty() { String::new() } else { sanitize(ui.form.set.join(" ")) };
            format!("+ next: {} {b}", ui.form.selected_workload().name())
        }
        ExperimentRow::Stored(id) => match ui.stored_experiments().iter().find(|k| k.id == *id) {
            Some(k) => stored_result_text(k, ui.marked.as_ref() == Some(id), app.shared.utc_offset_secs),
            None => sanitize(id),
        },
    }
}

fn render(app: &App, theme: &Theme, area: Rect, buf: &mut CellBuffer, focused: bool) {
    let ui = &app.views.experiments;
    let note = match ui.selected {
        ExperimentRow::Next => "r: run",
        ExperimentRow::Stored(_) => "Enter: show",
        ExperimentRow::CurrentRun => "Enter: show",
    };
    let inner = draw_frame(buf, area, "Experiments", note, focused, theme);
    let rows = ui.rows();
    let from = scroll_offset(app, inner.height.into());
    for (row, y) in rows.iter().skip(from).zip(inner.y..inner.bottom()) {
        let style = if *row == ExperimentRow::CurrentRun { theme.warn } else { theme.text };
        draw_truncated(buf, inner.x, y, &row_text(app, row), inner.width, style);
        if *row == ui.selected {
            highlight_row(buf, inner, y, theme);
        }
    }
    let below = inner.y + (rows.len() - from) as u16;
    let said = match &ui.stored {
        Some(Err(why)) => format!("- {}", sanitize(why)),
        Some(Ok(all)) if all.is_empty() => "No stored experiments".into(),
        _ => String::new(),
    };
    if below < inner.bottom() {
        draw_text(buf, inner.x, below, &said, inner.width, theme.dim);
    }
}

fn build_table(app: &App) -> Table {
    let title = format!("Experiments on {}, {}", app.shared.system.host.name, app.shared.timestamp());
    let heads = ["experiment", "began", "workload", "directory", "B", "outcome"];
    let mut sheet = Table::new(title, &heads.map(|h| (h, false)));
    for k in app.views.experiments.stored_experiments() {
        let row = [&k.id, &k.time, &k.profile, &k.directory, &k.assignments.join(" "), outcome_text(k.outcome)];
        sheet.rows.push(row.into_iter().map(sanitize).collect());
        sheet.notes.extend(k.read_error.iter().map(sanitize));
    }
    sheet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_experiment_is_summarised_in_one_line() {
        let k = StoredExperiment {
            id: "1795276156-txlog".into(),
            profile: "txlog".into(),
            outcome: Some(TrialOutcome::Better),
            assignments: vec!["vm.dirty_ratio=80".into()],
            ..StoredExperiment::default()
        };
        assert_eq!(stored_result_text(&k, true, 0), "*11-21 15:49 txlog B better (part)  vm.dirty_ratio=80");
        let broken = StoredExperiment { read_error: Some("x".into()), ..k };
        assert_eq!(stored_result_text(&broken, false, 0), " 1795276156-txlog unreadable");
    }
}
