//! Reports of experiments: as text for a page, compared, and as tables.

use super::ExperimentForm;
use crate::bench::report::text::describe_end;
use crate::experiment::report::{ExperimentReport, compare, tables, text};
use crate::experiment::spec::Arm;
use crate::export::table::Table;
use crate::sanitize::sanitize;
use crate::tui::knob_snapshot::ChangeStatus;
use crate::tui::view::{Action, ExperimentAction, Shared, TuneAction};
use crate::tui::views::runs::{RunReports, report_text};
use crate::tui::widgets::{StyledLine, TextStyle};
use crate::units::format_duration;

impl RunReports for ExperimentForm {
    fn outcome_text(report: &ExperimentReport) -> &'static str {
        report.trials.first().map_or("-", |trial| trial.verdict.outcome.brief())
    }

    fn end_text(report: &ExperimentReport) -> String {
        let verdict = report.trials.first().map_or("", |t| t.verdict.text.as_str());
        format!("{}. {verdict}", describe_end(&report.end))
    }

    /// The verdict, whose values are in effect and the keys to change that, then the report as `experiment show` prints it.
    fn report_lines(report: &ExperimentReport, shared: &Shared, width: u16) -> Vec<StyledLine> {
        let mut out: Vec<StyledLine> = Vec::new();
        out.extend(report.trials.first().map(|trial| (sanitize(&trial.verdict.text), TextStyle::Strong)));
        out.push((change_status_text(report, shared), TextStyle::Dim));
        out.push((String::new(), TextStyle::Plain));
        out.extend(report_text(&text::text_report(report, width.into())));
        out
    }

    fn compare([a, b]: &[ExperimentReport; 2], _: u16) -> Result<String, String> {
        compare::compare_text(a, b).map_err(|why| why.to_string())
    }

    /// A row for each round, everything else as notes.
    fn report_table(report: &ExperimentReport) -> Table {
        let title = sanitize(format!("{} on {}, {}", report.spec.plan.profile, report.host, report.time));
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
}

/// Whose values are in effect, and the keys that change that.
fn change_status_text(report: &ExperimentReport, shared: &Shared) -> String {
    let apply = shared.key(Action::Experiment(ExperimentAction::Apply));
    let keep = shared.key(Action::Experiment(ExperimentAction::Keep));
    let undo = shared.key(Action::Tune(TuneAction::Undo));
    let knobs = &shared.knobs;
    let stands = |i: usize| {
        report.settings.iter().all(|s| {
            let row = knobs.rows().iter().find(|r| r.display_name == s.knob);
            row.is_some_and(|r| r.reading.as_ref().is_ok_and(|v| v.value == s.values[i]))
        })
    };
    if !stands(1) {
        let whose = if stands(0) { "A's values are in effect" } else { "neither A's nor B's values are in effect" };
        return format!("Now: {whose}. Press {apply} to apply B on a lease, {keep} for good.");
    }
    let open = knobs.changes().iter().find(|c| c.belongs_to(report) && !matches!(c.status, ChangeStatus::Closed(_)));
    match open.map(|c| (c.id, &c.status)) {
        Some((id, ChangeStatus::Leased(left))) => {
            // The countdown of this screen's own leases is exact to the second.
            let left = knobs.leases.iter().find(|l| l.id == id).map_or(left, |l| &l.secs_left);
            let left = format_duration(*left);
            format!("Now: B is in effect, change {id} reverts in {left}. {keep} keeps it, {undo} reverts it.")
        }
        Some((id, _)) => format!("Now: B is in effect by change {id}. {undo} reverts it."),
        None => "Now: B's values are in effect, not by a change of this program.".into(),
    }
}
