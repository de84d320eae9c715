//! Before a run: what would happen, asked about; a network mount asked about twice.

use crate::bench::outline::will_write;
use crate::bench::plan::Plan;
use crate::bench::workloads::Workload;
use crate::text::sanitize;
use crate::tui::bench::run::Run;
use crate::tui::bench::{BenchEffect, Row, workload_of};
use crate::tui::effect::Effect;
use crate::tui::panes::bench::plan::start_refusal;
use crate::tui::state::{App, PendingChange, Dialog, Overlay};

/// Asks to start the selected profile.
pub fn start(app: &mut App) {
    let Some(at) = app.ui.bench.profile() else {
        return app.ui.error("select a profile to run");
    };
    if let Some(run) = app.ui.bench.running() {
        let why = format!("{} is still on: x ends it", run.plan.profile);
        return app.ui.error(why);
    }
    if app.ui.experiment.running().is_some() {
        return app.ui.error("an experiment is still on: x on its page ends it (E in Tune)");
    }
    let (workload, plan) = app.ui.bench.plan(at);
    // The reasons stand on the page, with what to do.
    if let Some(why) = start_refusal(app, at) {
        return app.ui.error(why);
    }
    let text = question(app, workload, &plan);
    let title = format!("Run {}", plan.profile);
    app.ui.overlay =
        Some(Overlay::Dialog(Dialog { title, text, scroll: 0, on_confirm: PendingChange::Bench(Box::new(plan)) }));
}

/// What would be written where, and for how long.
fn question(app: &App, workload: &dyn Workload, plan: &Plan) -> String {
    let mut out = will_write(workload, plan);
    if let Some(Ok(look)) = app.ui.bench.look().filter(|_| workload.needs_directory()) {
        if let Some(place) = &look.place {
            let chain: Vec<_> = place.chain.iter().map(|d| sanitize(&d.name)).collect();
            let on = if chain.is_empty() { place.source.clone() } else { chain.join(" > ") };
            out.push_str(&format!("\nThat is {} on {on}.", place.filesystem));
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

/// The person said yes.
pub fn confirmed(app: &mut App, plan: Plan, effects: &mut Vec<Effect>) {
    if app.ui.bench.running().is_some() || app.ui.experiment.running().is_some() {
        return;
    }
    if let Some(dialog) = once_more(app, &plan, |plan| PendingChange::Bench(Box::new(plan))) {
        app.ui.overlay = Some(Overlay::Dialog(dialog));
        return;
    }
    let bench = &mut app.ui.bench;
    bench.runs += 1;
    bench.run = Some(Run::new(bench.runs, plan.clone(), app.system.now().boot_ns));
    bench.selected = Row::Now;
    (bench.opened, bench.line) = (None, 0);
    super::focus(app, super::PAGE);
    effects.push(Effect::Bench(BenchEffect::Start { run: app.ui.bench.runs, plan: Box::new(plan) }));
}

fn needs_directory(plan: &Plan) -> bool {
    workload_of(plan).is_some_and(|w| w.needs_directory())
}

/// A network mount is measured only by those who mean it: the question to those who have not said so.
pub fn once_more(app: &App, plan: &Plan, change: impl FnOnce(Plan) -> PendingChange) -> Option<Dialog> {
    let look = app.ui.bench.look()?.as_ref().ok()?;
    let place = look.place.as_ref().filter(|p| p.network && look.directory == plan.directory)?;
    if plan.network.is_some() || !needs_directory(plan) {
        return None;
    }
    let dir = sanitize(plan.directory.as_os_str().as_encoded_bytes());
    let text = format!(
        "{dir} is on a network mount: {} from {}.\nThe load goes to a server that others use, and through the network \
         between. They will feel it.\nMeasure it all the same?",
        place.filesystem, place.source
    );
    let plan = Plan { network: Some(plan.directory.clone()), ..plan.clone() };
    Some(Dialog { title: "Over the network?".into(), text, scroll: 0, on_confirm: change(plan) })
}
