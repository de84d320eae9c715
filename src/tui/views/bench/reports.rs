//! Results: as text for a page, compared, and as tables.

use super::BenchForm;
use super::charts::report_charts;
use crate::bench::compare::compare_text;
use crate::bench::report::{BenchReport, markdown, text};
use crate::export::table::Table;
use crate::sanitize::sanitize;
use crate::tui::view::Shared;
use crate::tui::views::runs::{RunReports, report_text};
use crate::tui::widgets::{StyledLine, TextStyle};

impl RunReports for BenchForm {
    fn outcome_text(_: &BenchReport) -> &'static str {
        "its result"
    }

    fn end_text(report: &BenchReport) -> String {
        text::describe_end(&report.end)
    }

    /// A report as `bench show` prints it, with charts of each measurement over time.
    fn report_lines(report: &BenchReport, shared: &Shared, width: u16) -> Vec<StyledLine> {
        let blank = || (String::new(), TextStyle::Plain);
        let mut out: Vec<StyledLine> = Vec::new();
        if let Some(place) = &report.reference {
            out.extend([(sanitize(&place.sentence), TextStyle::Strong), blank()]);
        }
        out.extend(report_text(&text::text_report(report, width.into())));
        out.extend(report_charts(report, shared, width));
        out
    }

    fn compare([a, b]: &[BenchReport; 2], width: u16) -> Result<String, String> {
        compare_text(a, b, width.into()).map_err(|why| format!("{why}; mark a result of the same profile"))
    }

    /// A row for each measurement and direction, everything else as notes.
    fn report_table(report: &BenchReport) -> Table {
        let heads = markdown::COLUMN_HEADERS.map(|h| (h, !matches!(h, "part" | "what")));
        let title = format!("{} on {}, {}", report.plan.profile, report.host, report.time);
        let mut table = Table::new(sanitize(title), &heads);
        let rows = report.measurements.iter().flat_map(markdown::table_cells);
        table.rows = rows.map(|row| row.map(sanitize).to_vec()).collect();
        let target = report.target.iter();
        let mut notes: Vec<String> = target
            .map(|t| format!("{} on {} ({}), kernel {}", t.directory, t.filesystem, t.source, report.kernel))
            .collect();
        notes.push(text::describe_end(&report.end));
        for (part, metric) in report.measurements.iter().flat_map(|p| p.metrics.iter().map(move |m| (p, m))) {
            notes.push(format!("{}: {} {}", part.label, metric.name, text::format_value(metric.value, &metric.unit)));
        }
        notes.extend(report.reference.iter().map(|place| place.sentence.clone()));
        notes.extend(report.warnings.iter().cloned());
        table.notes = notes.iter().map(sanitize).collect();
        table
    }
}
