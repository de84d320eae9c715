//! Pages of text: how an experiment ended, a stored one, a comparison of two.

use crate::experiment::report::{ExperimentReport, compare, tables, text};
use crate::experiment::spec::Arm;
use crate::export::table::Table;
use crate::sanitize::sanitize;
use crate::tui::knob_snapshot::ChangeStatus;
use crate::tui::state::App;
use crate::tui::views::bench::OpenedResult;
use crate::tui::views::bench::page::{result_card, style_report_line};
use crate::tui::views::experiments::ExperimentRow;
use crate::tui::views::experiments::run::{ExperimentEnding, TrackedExperiment};
use crate::tui::widgets::styled_lines::{StyledLine, TextStyle, wrap_lines};
use crate::units::format_duration;

/// Title of the page, and its keys.
pub fn page_title(app: &App) -> (String, &'static str) {
    let ui = &app.views.experiments;
    match (&ui.opened, &ui.selected, &ui.run) {
        (Some(OpenedResult::Result(r)), ..) => (format!("Report {}", sanitize(&r.id)), "o: to a file, Esc: back"),
        (Some(OpenedResult::Comparison(_)), ..) => ("Two experiments".into(), "Esc: back"),
        (Some(_), ..) => ("Report".into(), "Esc: back"),
        (None, ExperimentRow::CurrentRun, Some(run)) => {
            (format!("Report of {}", run.spec.plan.profile), "o: to a file")
        }
        _ => ("Report".into(), "Enter: show, m: mark, c: compare"),
    }
}

/// The page's lines for a width.
pub fn page_lines(app: &App, width: u16) -> Vec<StyledLine> {
    let ui = &app.views.experiments;
    let lines = match (&ui.opened, &ui.selected, &ui.run) {
        (Some(OpenedResult::Loading(ids)), ..) => {
            vec![(format!("reading {} …", sanitize(ids.join(" and "))), TextStyle::Dim)]
        }
        (Some(OpenedResult::Failed(why)), ..) => vec![(sanitize(why), TextStyle::Crit)],
        (Some(OpenedResult::Result(report)), ..) => report_lines(app, report, width),
        (Some(OpenedResult::Comparison(both)), ..) => match compare::compare_text(&both[0], &both[1]) {
            Ok(text) => text.lines().map(style_report_line).collect(),
            Err(why) => vec![(sanitize(why), TextStyle::Crit)],
        },
        (None, ExperimentRow::CurrentRun, Some(run)) => run_outcome_lines(app, run, width),
        _ => selected_result_card(app),
    };
    wrap_lines(lines, width.into())
}

/// Whose values are in effect and the keys to change that, then the report as `experiment show` prints it.
fn report_lines(app: &App, report: &ExperimentReport, width: u16) -> Vec<StyledLine> {
    let mut out: Vec<StyledLine> = Vec::new();
    if let Some(trial) = report.trials.first() {
        out.push((sanitize(&trial.verdict.text), TextStyle::Strong));
    }
    out.push((change_status_text(app, report), TextStyle::Dim));
    out.push((String::new(), TextStyle::Plain));
    out.extend(text::text_report_within(report, width.into()).lines().map(style_report_line));
    out
}

/// Whose values are in effect, and the keys that change that.
fn change_status_text(app: &App, report: &ExperimentReport) -> String {
    let tune = &app.views.tune;
    let stands = |i: usize| {
        report.settings.iter().all(|s| {
            let row = tune.rows().iter().find(|r| r.display_name == s.knob);
            row.is_some_and(|r| r.reading.as_ref().is_ok_and(|v| v.value == s.values[i]))
        })
    };
    if !stands(1) {
        let whose = if stands(0) { "A's values are in effect" } else { "neither A's nor B's values are in effect" };
        return format!("Now: {whose}. a applies B on a lease, K for good.");
    }
    let open = tune.changes().iter().find(|c| c.belongs_to(report) && !matches!(c.status, ChangeStatus::Closed(_)));
    match open.map(|c| (c.id, &c.status)) {
        Some((id, ChangeStatus::Leased(left))) => {
            // The countdown of this screen's own leases is exact to the second.
            let left = tune.leases.iter().find(|l| l.id == id).map_or(left, |l| &l.secs_left);
            format!("Now: B is in effect, change {id} reverts in {}. K keeps it, u reverts it.", format_duration(*left))
        }
        Some((id, _)) => format!("Now: B is in effect by change {id}. u reverts it."),
        None => "Now: B's values are in effect, not by a change of this program.".into(),
    }
}

/// How the experiment of this session ended.
fn run_outcome_lines(app: &App, run: &TrackedExperiment, width: u16) -> Vec<StyledLine> {
    let mut out = match &run.ending {
        None => Vec::new(),
        Some(ExperimentEnding::Report(report)) => {
            let kept = match &run.stored {
                None => ("saving …".into(), TextStyle::Dim),
                Some(Ok(id)) => (format!("saved as {}", sanitize(id)), TextStyle::Dim),
                Some(Err(why)) => (format!("! not saved: {}", sanitize(why)), TextStyle::Warn),
            };
            let mut out = vec![kept];
            out.extend(report_lines(app, report, width));
            return out;
        }
        Some(ExperimentEnding::Refused(why)) => vec![
            (format!("refused: {}", sanitize(why)), TextStyle::Crit),
            ("Nothing was changed or written. Change the plan and start again.".into(), TextStyle::Plain),
        ],
        Some(ExperimentEnding::Failed(why)) => vec![
            (format!("failed: {}", sanitize(why)), TextStyle::Crit),
            ("c in Tune shows the changes.".into(), TextStyle::Plain),
        ],
    };
    out.extend(run.notes.iter().map(|n| (format!("! {n}"), TextStyle::Warn)));
    out
}

/// A stored experiment that is selected but not opened.
fn selected_result_card(app: &App) -> Vec<StyledLine> {
    let ui = &app.views.experiments;
    let Some(k) = ui.selected_stored() else { return Vec::new() };
    result_card(&k.profile, &k.id, &k.summary(), k.read_error.is_some(), ui.marked.as_ref())
}

/// A report as a table for export: a row for each round, everything else as notes.
pub fn build_table(report: &ExperimentReport) -> Table {
    let title =
        format!("{} on {}, {}", sanitize(&report.spec.plan.profile), sanitize(&report.host), sanitize(&report.time));
    let Some(trial) = report.trials.first() else { return Table::new(title, &[("", false)]) };
    let (heads, rows) = tables::rounds_table(trial);
    let heads: Vec<(&str, bool)> = heads.iter().map(|h| (h.as_str(), h != "arm")).collect();
    let mut sheet = Table::new(title, &heads);
    sheet.rows = rows.into_iter().map(|row| row.into_iter().map(sanitize).collect()).collect();
    for arm in [Arm::A, Arm::B] {
        sheet.notes.push(sanitize(format!("{}: {}", arm.name(), tables::describe_arm(report, arm))));
    }
    for (heads, rows) in [tables::median_table(trial), tables::latency_table(trial)] {
        sheet.notes.extend(rows.iter().map(|row| {
            let cells = heads.iter().zip(row).skip(1).map(|(h, c)| format!("{h} {c}"));
            sanitize(format!("{}: {}", row[0], cells.collect::<Vec<_>>().join(", ")))
        }));
    }
    sheet.notes.extend(trial.comparison.iter().flat_map(tables::describe_ratio).map(sanitize));
    sheet.notes.push(sanitize(&trial.verdict.text));
    sheet.notes.extend(report.warnings.iter().map(sanitize));
    sheet.notes.push(sanitize(&report.aftermath));
    sheet
}
