//! Confirmation before a run; for a network mount there is a second one.

use crate::bench::description::describe_writes;
use crate::bench::plan::BenchPlan;
use crate::bench::workloads::Workload;
use crate::sanitize::sanitize;
use crate::tui::effect::Effect;
use crate::tui::state::{App, Dialog, Overlay, PendingChange};
use crate::tui::views::bench::plan::start_refusal;
use crate::tui::views::bench::run::TrackedBench;
use crate::tui::views::bench::{BenchEffect, BenchRow, workload_of_plan};

/// Asks to start the selected profile.
pub fn ask_start(app: &mut App) {
    let Some(at) = app.views.bench.selected_profile() else {
        return app.screen.error("select a profile to run");
    };
    if let Some(run) = app.views.bench.active_run() {
        let why = format!("{} is still running: x stops it", run.plan.profile);
        return app.screen.error(why);
    }
    if app.views.experiments.active_run().is_some() {
        return app.screen.error("an experiment is still running: x on its page stops it (E in Tune)");
    }
    let (workload, plan) = app.views.bench.plan(at);
    // The page lists the reasons and what to do.
    if let Some(why) = start_refusal(app, at) {
        return app.screen.error(why);
    }
    let text = confirmation_text(app, workload, &plan);
    let title = format!("Run {}", plan.profile);
    app.screen.overlay =
        Some(Overlay::Dialog(Dialog { title, text, scroll: 0, on_confirm: PendingChange::Bench(Box::new(plan)) }));
}

/// Describes what would be written where, and for how long.
fn confirmation_text(app: &App, workload: &dyn Workload, plan: &BenchPlan) -> String {
    let mut out = describe_writes(workload, plan);
    if let Some(Ok(look)) = app.views.bench.look().filter(|_| workload.needs_directory()) {
        if let Some(place) = &look.info {
            let chain: Vec<_> = place.chain.iter().map(|d| sanitize(&d.name)).collect();
            let on = if chain.is_empty() { place.source.clone() } else { chain.join(" > ") };
            out.push_str(&format!("\nThe file system is {} on {on}.", place.filesystem));
        }
        for warning in look.warnings(plan.direct) {
            out.push_str(&format!("\n! {warning}"));
        }
    }
    for line in workload.describe(plan) {
        out.push_str(&format!("\n- {line}"));
    }
    out
}

/// Starts the confirmed run.
pub fn start_confirmed(app: &mut App, plan: BenchPlan, effects: &mut Vec<Effect>) {
    if app.views.bench.active_run().is_some() || app.views.experiments.active_run().is_some() {
        return;
    }
    if let Some(dialog) = network_confirmation(app, &plan, |plan| PendingChange::Bench(Box::new(plan))) {
        app.screen.overlay = Some(Overlay::Dialog(dialog));
        return;
    }
    let bench = &mut app.views.bench;
    bench.run_count += 1;
    bench.run = Some(TrackedBench::new(bench.run_count, plan.clone(), app.shared.system.now().boot_ns));
    bench.selected = BenchRow::CurrentRun;
    (bench.opened, bench.text_offset) = (None, 0);
    crate::tui::views::bench::update::focus_pane(app, crate::tui::views::bench::update::PAGE_PANE);
    effects.push(Effect::Bench(BenchEffect::Start { run: app.views.bench.run_count, plan: Box::new(plan) }));
}

fn needs_directory(plan: &BenchPlan) -> bool {
    workload_of_plan(plan).is_some_and(|w| w.needs_directory())
}

/// Returns a second dialog if the directory is on a network mount and the user has not agreed to that yet.
pub fn network_confirmation(
    app: &App,
    plan: &BenchPlan,
    change: impl FnOnce(BenchPlan) -> PendingChange,
) -> Option<Dialog> {
    let look = app.views.bench.look()?.as_ref().ok()?;
    let place = look.info.as_ref().filter(|p| p.is_network && look.directory == plan.directory)?;
    if plan.network.is_some() || !needs_directory(plan) {
        return None;
    }
    let dir = sanitize(plan.directory.as_os_str().as_encoded_bytes());
    let text = format!(
        "{dir} is on a network mount: {} from {}.\nThe load goes over the network to a server that others use, and slows them \
         down.\nMeasure it anyway?",
        place.filesystem, place.source
    );
    let plan = BenchPlan { network: Some(plan.directory.clone()), ..plan.clone() };
    Some(Dialog { title: "Over the network?".into(), text, scroll: 0, on_confirm: change(plan) })
}
