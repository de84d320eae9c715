//! Pages of text: how a run ended, a stored result, a comparison of two.

use crate::bench::compare;
use crate::bench::report::{BenchReport, markdown, sparkline, text};
use crate::export::table::Table;
use crate::sanitize::sanitize;
use crate::tui::comparison::mark_hint;
use crate::tui::state::App;
use crate::tui::views::bench::run::{BenchEnding, TrackedBench};
use crate::tui::views::bench::{BenchRow, OpenedResult};
use crate::tui::widgets::styled_lines::{StyledLine, TextStyle, wrap_lines};

/// Title of the page, and its keys.
pub fn page_title(app: &App) -> (String, &'static str) {
    let bench = &app.views.bench;
    match &bench.opened {
        Some(OpenedResult::Result(r)) => (format!("Result {}", sanitize(&r.id)), "Esc: back"),
        Some(OpenedResult::Comparison(_)) => ("Two results".into(), "Esc: back"),
        Some(OpenedResult::Loading(_) | OpenedResult::Failed(_)) => ("Result".into(), "Esc: back"),
        None => match (&bench.selected, &bench.run) {
            (BenchRow::CurrentRun, Some(run)) => (format!("Result of {}", run.plan.profile), ""),
            _ => ("Result".into(), "Enter: show, m: mark, c: compare"),
        },
    }
}

/// The page's lines for a width.
pub fn page_lines(app: &App, width: u16) -> Vec<StyledLine> {
    let bench = &app.views.bench;
    let lines = match &bench.opened {
        Some(OpenedResult::Loading(ids)) => {
            vec![(format!("reading {} …", sanitize(ids.join(" and "))), TextStyle::Dim)]
        }
        Some(OpenedResult::Failed(why)) => vec![(sanitize(why), TextStyle::Crit)],
        Some(OpenedResult::Result(report)) => report_lines(report, width),
        Some(OpenedResult::Comparison(both)) => match compare::compare_text_within(&both[0], &both[1], width.into()) {
            Ok(text) => text.lines().map(style_report_line).collect(),
            Err(why) => vec![(format!("{why}; mark a result of the same profile"), TextStyle::Crit)],
        },
        None => match (&bench.selected, &bench.run) {
            (BenchRow::CurrentRun, Some(run)) => run_outcome_lines(run, width),
            _ => selected_result_card(app),
        },
    };
    wrap_lines(lines, width.into())
}

/// Styles a line of a text report.
pub fn style_report_line(line: &str) -> StyledLine {
    let tone = match line.chars().next() {
        Some('!') => TextStyle::Warn,
        Some(c) if !c.is_whitespace() => TextStyle::Strong,
        _ => TextStyle::Plain,
    };
    (sanitize(line), tone)
}

/// A report as `bench show` prints it, with a sparkline of each measurement.
fn report_lines(report: &BenchReport, width: u16) -> Vec<StyledLine> {
    let mut out: Vec<StyledLine> = Vec::new();
    if let Some(p) = &report.reference {
        out.extend([(sanitize(&p.sentence), TextStyle::Strong), (String::new(), TextStyle::Plain)]);
    }
    out.extend(text::text_report_within(report, width.into()).lines().map(style_report_line));
    let course = sparkline::sparklines(report, usize::from(width).clamp(20, 120) - 2);
    if !course.is_empty() {
        out.push((String::new(), TextStyle::Plain));
        out.extend(course.into_iter().map(|l| style_report_line(&l)));
    }
    out
}

/// How the run of this session ended.
fn run_outcome_lines(run: &TrackedBench, width: u16) -> Vec<StyledLine> {
    match &run.ending {
        None => Vec::new(),
        Some(BenchEnding::Report(report)) => {
            let kept = match &run.stored {
                None => ("saving …".into(), TextStyle::Dim),
                Some(Ok(id)) => (format!("saved as {}", sanitize(id)), TextStyle::Dim),
                Some(Err(why)) => (format!("! not saved: {}", sanitize(why)), TextStyle::Warn),
            };
            let mut out = vec![kept];
            out.extend(report_lines(report, width));
            out
        }
        Some(BenchEnding::Refused(refused)) => vec![
            (format!("refused: {}", sanitize(&refused.reason)), TextStyle::Crit),
            ("Nothing was written. Change the plan and start again.".into(), TextStyle::Plain),
        ],
        Some(BenchEnding::Failed(why)) => {
            let mut out = vec![(format!("failed: {}", sanitize(why)), TextStyle::Crit)];
            out.push(("The file is deleted.".into(), TextStyle::Plain));
            out.extend(run.notes.iter().map(|n| (format!("! {n}"), TextStyle::Warn)));
            out
        }
    }
}

/// A stored result that is selected but not opened.
fn selected_result_card(app: &App) -> Vec<StyledLine> {
    let bench = &app.views.bench;
    let Some(k) = bench.selected_result() else { return Vec::new() };
    result_card(&k.profile, &k.id, &k.summary(), k.read_error.is_some(), bench.marked.as_ref())
}

/// Summary of a stored result: profile, name, primary metric, keys.
pub fn result_card(profile: &str, id: &str, headline: &str, damaged: bool, marked: Option<&String>) -> Vec<StyledLine> {
    vec![
        (format!("{} {}", sanitize(profile), sanitize(id)), TextStyle::Strong),
        (sanitize(headline), if damaged { TextStyle::Crit } else { TextStyle::Plain }),
        (String::new(), TextStyle::Plain),
        ("Enter shows it.".into(), TextStyle::Dim),
        (mark_hint(marked, id), TextStyle::Dim),
    ]
}

/// The page as a table for export.
pub fn build_table(app: &App) -> Table {
    let bench = &app.views.bench;
    let report = match (&bench.opened, &bench.selected, &bench.run) {
        (Some(OpenedResult::Result(r)), ..) => Some(r),
        (None, BenchRow::CurrentRun, Some(TrackedBench { ending: Some(BenchEnding::Report(r)), .. })) => Some(r),
        _ => None,
    };
    let Some(report) = report else {
        let title = format!("{} on {}, {}", page_title(app).0, app.shared.system.host.name, app.shared.timestamp());
        let mut sheet = Table::new(title, &[("", false)]);
        let text = if crate::tui::views::bench::render::is_showing_run(app) {
            run_summary_lines(app)
        } else {
            page_lines(app, u16::MAX)
        };
        sheet.rows.extend(text.into_iter().map(|l| vec![l.0]));
        return sheet;
    };
    report_table(report)
}

fn run_summary_lines(app: &App) -> Vec<StyledLine> {
    app.views.bench.active_run().map_or(Vec::new(), |run| {
        crate::tui::views::bench::running::summary_lines(run).into_iter().map(|l| (l, TextStyle::Plain)).collect()
    })
}

/// A result as a table: a row for each measurement and direction, everything else as notes.
fn report_table(report: &BenchReport) -> Table {
    let heads = markdown::COLUMN_HEADERS.map(|h| (h, !matches!(h, "part" | "what")));
    let title = format!("{} on {}, {}", sanitize(&report.plan.profile), sanitize(&report.host), sanitize(&report.time));
    let mut sheet = Table::new(title, &heads);
    sheet.rows =
        report.measurements.iter().flat_map(markdown::table_cells).map(|row| row.map(sanitize).to_vec()).collect();
    if let Some(t) = &report.target {
        sheet
            .notes
            .push(sanitize(format!("{} on {} ({}), kernel {}", t.directory, t.filesystem, t.source, report.kernel)));
    }
    sheet.notes.push(sanitize(text::describe_end(&report.end)));
    for (part, f) in report.measurements.iter().flat_map(|p| p.metrics.iter().map(move |f| (p, f))) {
        sheet.notes.push(sanitize(format!("{}: {} {}", part.label, f.name, text::format_value(f.value, &f.unit))));
    }
    sheet.notes.extend(report.reference.iter().map(|p| sanitize(&p.sentence)));
    sheet.notes.extend(report.warnings.iter().map(sanitize));
    sheet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_lines_are_sanitized_and_warnings_are_styled() {
        assert_eq!(style_report_line("! a\x1b[2J"), ("! a\\x1b[2J".into(), TextStyle::Warn));
        assert_eq!(style_report_line("  device x"), ("  device x".into(), TextStyle::Plain));
        assert_eq!(style_report_line("randrw on h"), ("randrw on h".into(), TextStyle::Strong));
        assert_eq!(style_report_line(""), (String::new(), TextStyle::Plain));
    }
}
