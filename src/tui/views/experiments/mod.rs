//! Experiments: does a setting help? They are shown in place of the knobs in the Tune view, where the changes to try come
//! from.

pub(crate) mod arm_checker;
mod form;
mod progress;
mod reports;
#[cfg(test)]
mod tests;

pub use form::ExperimentForm;

use super::runs::{RunKind, RunTexts, RunTypes, RunView, list_and_page};
use crate::bench::plan::BenchPlan;
use crate::experiment::command_line::command_args;
use crate::experiment::description::describe_experiment;
use crate::experiment::message::ExperimentMessage;
use crate::experiment::report::{ExperimentReport, ExperimentReportFormat};
use crate::experiment::spec::ExperimentSpec;
use crate::jobs::atomic_write::IfExists;
use crate::jobs::bench_jobs::StoreJob;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::tui::view::{
    Action, ArmCheck, Context, Effect, Event, ExperimentAction, ExperimentArm, KeyContext, Outbox, PaneId, PaneSpec,
    PromptPurpose, Request, RunEffect, Target, ViewId, ViewRequest,
};
use form::{ARM_B, KNOBS_PENDING};
use progress::ExperimentFigures;
use ratatui::layout::Rect;

const KEYS: &[KeyContext] = &[KeyContext::Experiment, KeyContext::Scroll];
const NO_REPORT: &str = "show a report first (Enter): this key acts on its arm B";

pub(crate) type ExperimentsView = RunView<ExperimentForm>;

impl RunTypes for ExperimentForm {
    type Plan = ExperimentSpec;
    type Message = ExperimentMessage;
    type Report = ExperimentReport;
    type Progress = ExperimentFigures;

    const IS_EXPERIMENT: bool = true;
    const PANES: &'static [PaneSpec; 2] =
        &[(PaneId::ExperimentList, "experiments", KEYS), (PaneId::ExperimentPage, "experiment", KEYS)];
    const FORMS: usize = 1;
    const EFFECT: fn(RunEffect<ExperimentSpec>) -> Effect = Effect::Experiment;
    const STORE_JOB: fn(StoreJob<ExperimentReport>) -> WorkerJob = WorkerJob::ExperimentReports;
    const TEXTS: RunTexts = RunTexts {
        list: "Experiments",
        stored: "Experiments",
        columns: ["experiment", "began", "workload", "directory", "B", "outcome"],
        headings: None,
        run: "Experiment",
        noun: "experiment",
        stored_noun: "experiment",
        report_keys: ["O: to a file, Esc: back", "O: to a file"],
        report: "Report",
        purpose: "tune",
        form_lines: "lines",
        changed: "",
        nothing_to_start: "select the next experiment to start it",
        benchmark_runs: "the benchmark {} is still running: C in Bench stops it",
        experiment_runs: "an experiment is still running: C stops it",
        stopping: "stopping; the old values are restored and the report follows. C again kills it",
        killed: "killed before it could report; the tuner restores the values",
        after_refusal: "Nothing was changed or written. Change the plan and start again.",
        after_failure: "H in Tune shows the changes.",
        announcement: "experiment: ",
        shown_by: " E in Tune shows it",
    };

    fn loaded_reports(reply: WorkerReply) -> Option<Vec<ExperimentReport>> {
        if let WorkerReply::LoadedExperiments(reports) = reply { Some(reports) } else { None }
    }

    fn bench_plan(spec: &mut ExperimentSpec) -> &mut BenchPlan {
        &mut spec.plan
    }
}

impl RunKind for ExperimentForm {
    /// List and page side by side where a report fits beside the list, else stacked, with most of the height for the
    /// focused one.
    fn arrange_panes(body: Rect, focus: usize) -> Vec<(PaneId, Rect)> {
        let height = if focus == 1 { 3 } else { (body.height * 2 / 5).max(5) };
        let [list, page] = list_and_page(body, body.width >= 110, (body.width / 4).clamp(28, 44), height);
        vec![(PaneId::ExperimentList, list), (PaneId::ExperimentPage, page)]
    }

    fn ask_start(view: &mut ExperimentsView, _: usize, cx: &Context, out: &mut Outbox) {
        let spec = view.form.planned(cx.shared);
        // The page lists the reasons and what to do.
        if let Some(why) = view.form.start_refusal(&spec, cx.shared) {
            view.form.start_after_check = why == KNOBS_PENDING;
            return out.error(why);
        }
        if !cx.shared.knobs.can_write() {
            let what = "An experiment sets knobs, which";
            return out.ask(ViewRequest::OfferRootCommand { what, args: command_args(&spec) });
        }
        let Some(Ok(checked)) = view.form.check_result(&spec) else { return };
        let mut text = describe_experiment(&spec, checked);
        for warning in cx.shared.target.inspection().iter().flat_map(|found| found.warnings(spec.plan.direct)) {
            text += &format!("! {warning}\n");
        }
        text += "\nC stops it at any time, with a report of the finished rounds. If this program dies the old values are \
                 restored.";
        view.open_start_dialog("Start the experiment", text, spec, out);
    }

    fn on_tab(view: &mut ExperimentsView, cx: &Context, out: &mut Outbox) {
        if cx.screen.view == ViewId::Tune && view.is_open {
            view.restore_focus(out);
        }
    }

    fn on_target(view: &mut ExperimentsView, target: &Target, cx: &Context, out: &mut Outbox) -> bool {
        match target {
            Target::Experiments(arm) => open(view, arm.as_ref(), cx, out),
            Target::Ask(ViewRequest::CheckArms) => request_arm_check(view, cx, out),
            Target::Knobs(_) => view.is_open = false,
            // The key of the tab that is shown: back to the knobs.
            Target::Tab(tab) => view.is_open &= cx.screen.view != *tab,
            _ => {}
        }
        matches!(target, Target::Experiments(_) | Target::Ask(ViewRequest::CheckArms))
    }

    fn on_event(view: &mut ExperimentsView, event: Event, cx: &Context, out: &mut Outbox) -> Option<Event> {
        match event {
            Event::Experiment(run, event) => view.on_child_event(run, *event, cx, out),
            Event::JobReply(WorkerJob::ExperimentReports(job), reply) => view.on_store_reply(&job, reply, out),
            Event::ArmsChecked(check) => on_arms_checked(view, *check, cx, out),
            other => return Some(other),
        }
        None
    }

    fn on_edited(view: &mut ExperimentsView, cx: &Context, out: &mut Outbox) {
        view.form.start_after_check = false;
        request_arm_check(view, cx, out);
    }

    fn on_ended(view: &mut ExperimentsView, cx: &Context, out: &mut Outbox) {
        // The experiment has added changes, and perhaps left one on a lease.
        out.ask(ViewRequest::RefreshKnobs);
        request_arm_check(view, cx, out);
    }

    fn on_action(view: &mut ExperimentsView, action: Action, cx: &Context, out: &mut Outbox) -> bool {
        let Action::Experiment(action) = action else { return false };
        let report = view.shown_report();
        match (action, report) {
            (ExperimentAction::TryPending | ExperimentAction::Reopen, _) => return false,
            (ExperimentAction::Export, None) => out.error("show a report first (Enter), then O writes it to a file"),
            (ExperimentAction::Apply | ExperimentAction::Keep, None) => out.error(NO_REPORT),
            (ExperimentAction::Export, Some(report)) => {
                let name = format!("experiment-{}.md", crate::sanitize::sanitize(&report.id));
                let label = "write the report to (.md, .json, else text; a new file): ";
                out.open_prompt(PromptPurpose::ExperimentReportPath, label, name);
            }
            (ExperimentAction::Apply, Some(report)) => out.ask(apply_request(report, true)),
            (ExperimentAction::Keep, Some(report)) => {
                let changes = cx.shared.knobs.changes();
                let of_b = changes.iter().find(|change| change.is_on_lease() && change.belongs_to(report));
                out.ask(of_b.map_or_else(|| apply_request(report, false), |c| ViewRequest::KeepChange(c.id)));
            }
        }
        true
    }

    /// Writes the report to the typed file, whose extension decides the format.
    fn on_input(view: &mut ExperimentsView, text: &str, cx: &Context, out: &mut Outbox) -> Result<(), String> {
        if text.is_empty() {
            return Err("enter a file name: NAME.md, NAME.json or NAME.txt".into());
        }
        let Some(report) = view.shown_report() else { return Ok(()) };
        let format = match text.rsplit('.').next() {
            Some("md") => ExperimentReportFormat::Markdown,
            Some("json") => ExperimentReportFormat::Json,
            _ => ExperimentReportFormat::Text,
        };
        let path = cx.shared.target.absolute_path(text);
        let contents = report.render(format).into();
        out.push(Effect::RunJob(WorkerJob::WriteFile { path, contents, existing: IfExists::Fail, make_dir: false }));
        Ok(())
    }
}

fn apply_request(report: &ExperimentReport, on_lease: bool) -> ViewRequest {
    ViewRequest::ApplyKnobs { assignments: report.spec.set_assignments.clone(), on_lease }
}

/// Shows the experiments in place of the knobs; with assignments, the form for an experiment with them.
fn open(view: &mut ExperimentsView, arm: Option<&ExperimentArm>, cx: &Context, out: &mut Outbox) {
    view.is_open = true;
    let is_running = view.active_run().is_some();
    if is_running {
        view.show_current_run();
    }
    if let Some(arm) = arm {
        view.form.spec.set_assignments.clone_from(&arm.assignments);
        view.form.start_after_check = false;
    }
    view.request_list(out);
    out.request(Request::InspectTarget);
    request_arm_check(view, cx, out);
    view.restore_focus(out);
    match arm {
        Some(_) if is_running => out.info("an experiment is running; this form is for the next one"),
        Some(arm) => {
            view.show_form(ARM_B, cx, out);
            if arm.edit {
                view.edit_line(cx, out);
            }
        }
        None => {}
    }
}

/// Checks the arms again, if there are any: values may have changed meanwhile.
fn request_arm_check(view: &ExperimentsView, cx: &Context, out: &mut Outbox) {
    if view.is_open && !view.form.spec.set_assignments.is_empty() {
        out.push(Effect::CheckArms(Box::new(view.form.to_spec(cx.shared))));
    }
}

/// Takes the result of a check of the arms; asks to start, if a start was requested meanwhile and the form is still shown.
fn on_arms_checked(view: &mut ExperimentsView, check: ArmCheck, cx: &Context, out: &mut Outbox) {
    if !check.holds_for(&view.form.spec) {
        return;
    }
    view.form.arm_check = Some(check);
    let is_wanted = std::mem::take(&mut view.form.start_after_check);
    let is_shown = cx.screen.view == ViewId::Tune && view.is_open && cx.screen.overlay.is_none();
    if is_wanted && is_shown && view.shown_form().is_some() {
        view.ask_start(cx, out);
    }
}
