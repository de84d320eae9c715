//! Dialogs of experiments: before a start, what to do with arm B, where to write a report.

use crate::experiment::command_line::command_args;
use crate::experiment::description::describe_experiment;
use crate::experiment::report::ExperimentReportFormat;
use crate::experiment::spec::ExperimentSpec;
use crate::jobs::atomic_write::IfExists;
use crate::jobs::job::WorkerJob;
use crate::tui::action::ViewId;
use crate::tui::effect::Effect;
use crate::tui::knob_snapshot::ChangeRow;
use crate::tui::state::{App, Dialog, Overlay, PendingChange, Prompt, PromptPurpose};
use crate::tui::views::experiments::form_page::{KNOBS_PENDING, start_refusal};
use crate::tui::views::experiments::run::TrackedExperiment;
use crate::tui::views::experiments::update::{PAGE_PANE, focus_pane, tune};
use crate::tui::views::experiments::{ArmSettings, ExperimentEffect, ExperimentRow};

/// Asks to start the planned experiment.
pub fn ask_start(app: &mut App) {
    if !app.views.experiments.is_planning() {
        return app.screen.error("select the next experiment to start it");
    }
    if let Some(run) = app.views.bench.active_run() {
        let why = format!("the benchmark {} is still running: x in Bench stops it", run.plan.profile);
        return app.screen.error(why);
    }
    if app.views.experiments.active_run().is_some() {
        return app.screen.error("an experiment is still running: x stops it");
    }
    let spec = app.planned_experiment();
    // The page lists the reasons and what to do.
    if let Some(why) = start_refusal(app) {
        app.views.experiments.start_after_check = (why == KNOBS_PENDING).then(|| ArmSettings::from_spec(&spec));
        return app.screen.error(why);
    }
    if !tune::can_write(app) {
        return tune::offer_root_command(app, "An experiment sets knobs, which", command_args(&spec));
    }
    let Some(Ok(checked)) = app.views.experiments.check_result(&spec) else { return };
    let mut text = describe_experiment(&spec, checked);
    if let Some(Ok(look)) =
        app.views.bench.look().filter(|l| l.as_ref().is_ok_and(|l| l.directory == spec.plan.directory))
    {
        for warning in look.warnings(spec.plan.direct) {
            text += &format!("! {warning}\n");
        }
    }
    text += "\nx stops it at any time, with a report of the finished rounds. If this program dies the old values are \
             restored.";
    open_confirmation(app, "Start the experiment", text, spec);
}

/// Called after the arms were checked: asks to start, if a start was requested meanwhile and the form is still shown.
pub fn on_arms_checked(app: &mut App) {
    let wished =
        app.views.experiments.start_after_check.take() == Some(ArmSettings::from_spec(&app.planned_experiment()));
    let here = app.screen.view == ViewId::Tune && app.views.experiments.is_open && app.screen.overlay.is_none();
    if wished && here && app.views.experiments.is_planning() {
        app.screen.message = None;
        ask_start(app);
    }
}

fn open_confirmation(app: &mut App, title: &str, text: String, spec: ExperimentSpec) {
    let change = PendingChange::Experiment(Box::new(spec));
    app.screen.overlay = Some(Overlay::Dialog(Dialog { title: title.into(), text, scroll: 0, on_confirm: change }));
}

/// Starts the confirmed experiment.
pub fn start_confirmed(app: &mut App, spec: ExperimentSpec, effects: &mut Vec<Effect>) {
    if app.views.bench.active_run().is_some() || app.views.experiments.active_run().is_some() {
        return;
    }
    let again = |plan| PendingChange::Experiment(Box::new(ExperimentSpec { plan, ..spec.clone() }));
    if let Some(dialog) = crate::tui::views::bench::update::network_confirmation(app, &spec.plan, again) {
        app.screen.overlay = Some(Overlay::Dialog(dialog));
        return;
    }
    let now = app.shared.system.now().boot_ns;
    let ui = &mut app.views.experiments;
    ui.run_count += 1;
    let run = ui.run_count;
    ui.run = Some(TrackedExperiment::new(run, spec.clone(), now));
    (ui.selected, ui.opened, ui.text_offset) = (ExperimentRow::CurrentRun, None, 0);
    focus_pane(app, PAGE_PANE);
    effects.push(Effect::Experiment(ExperimentEffect::Start { run, spec: Box::new(spec) }));
}

/// The assignments of arm B of the report on the page, if there is one.
fn shown_arm_b(app: &mut App) -> Option<Vec<String>> {
    let words = app.views.experiments.shown_report().map(|r| r.spec.set_assignments.clone());
    if words.is_none() {
        app.screen.error("show a report first (Enter): this key acts on its arm B");
    }
    words
}

/// Asks to apply arm B of the report on the page, on a lease.
pub fn apply_arm_b(app: &mut App) {
    if let Some(words) = shown_arm_b(app) {
        tune::ask_apply_assignments(app, words, true);
    }
}

/// Keeps arm B of the report on the page: keeps its leased change if there is one, else asks to apply it for good.
pub fn keep_arm_b(app: &mut App, effects: &mut Vec<Effect>) {
    let Some(words) = shown_arm_b(app) else { return };
    let of_b = |c: &ChangeRow| app.views.experiments.shown_report().is_some_and(|r| c.belongs_to(r));
    match app.views.tune.changes().iter().find(|c| tune::is_on_lease(c) && of_b(c)).map(|c| c.id) {
        Some(id) => tune::keep_change(app, id, effects),
        None => tune::ask_apply_assignments(app, words, false),
    }
}

/// Asks for the file to write the report to.
pub fn ask_report_file(app: &mut App) {
    let Some(id) = app.views.experiments.shown_report().map(|r| r.id.clone()) else {
        return app.screen.error("show a report first (Enter), then o writes it to a file");
    };
    let text = format!("experiment-{}.md", crate::sanitize::sanitize(id));
    let cursor = text.len();
    let what = PromptPurpose::ExperimentReportPath;
    app.screen.overlay = Some(Overlay::Prompt(Prompt { purpose: what, text, cursor, error: None }));
}

/// Writes the report to the typed file, whose extension decides the format.
pub fn write_report(app: &mut App, text: &str, effects: &mut Vec<Effect>) -> Result<(), String> {
    if text.is_empty() {
        return Err("enter a file name: NAME.md, NAME.json or NAME.txt".into());
    }
    let Some(report) = app.views.experiments.shown_report() else { return Ok(()) };
    let form = match text.rsplit('.').next() {
        Some("md") => ExperimentReportFormat::Markdown,
        Some("json") => ExperimentReportFormat::Json,
        _ => ExperimentReportFormat::Text,
    };
    let path = app.views.bench.absolute_path(text);
    let contents = report.render(form).into();
    effects.push(Effect::RunJob(WorkerJob::WriteFile { path, contents, existing: IfExists::Fail, make_dir: false }));
    Ok(())
}
