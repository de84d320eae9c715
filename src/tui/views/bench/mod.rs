//! The Bench view: profiles with their parameters, the run under way, stored results; below them devices and writeback.

mod charts;
mod figures;
mod form;
mod progress;
mod reports;
#[cfg(test)]
mod tests;

pub use form::BenchForm;

use super::runs::{RunKind, RunRow, RunTexts, RunTypes, RunView, list_and_page};
use crate::bench::message::BenchMessage;
use crate::bench::plan::BenchPlan;
use crate::bench::report::BenchReport;
use crate::bench::workloads::WORKLOADS;
use crate::jobs::bench_jobs::StoreJob;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::tui::view::{
    Context, Effect, Event, KeyContext, Outbox, PaneId, PaneSpec, Request, RunEffect, Target, ViewId,
};
use crate::tui::widgets::{split_columns, split_rows};
use figures::BenchFigures;
use ratatui::layout::Rect;

const KEYS: &[KeyContext] = &[KeyContext::Bench, KeyContext::Scroll];

pub(crate) type BenchView = RunView<BenchForm>;

impl RunTypes for BenchForm {
    type Plan = BenchPlan;
    type Message = BenchMessage;
    type Report = BenchReport;
    type Progress = BenchFigures;

    const IS_EXPERIMENT: bool = false;
    const PANES: &'static [PaneSpec; 2] =
        &[(PaneId::BenchResults, "profiles", KEYS), (PaneId::BenchPage, "bench", KEYS)];
    const FORMS: usize = WORKLOADS.len();
    const EFFECT: fn(RunEffect<BenchPlan>) -> Effect = Effect::Bench;
    const STORE_JOB: fn(StoreJob<BenchReport>) -> WorkerJob = WorkerJob::BenchReports;
    const TEXTS: RunTexts = RunTexts {
        list: "Bench",
        stored: "Benchmarks",
        columns: ["result", "began", "profile", "directory", "IOPS", "per s"],
        headings: Some(["Profiles", "Results, newest first"]),
        run: "Run",
        noun: "benchmark",
        stored_noun: "result",
        report_keys: ["Esc: back", ""],
        report: "Result",
        purpose: "measure",
        form_lines: "parameters",
        changed: "* differs from the profile",
        nothing_to_start: "select a profile to run",
        benchmark_runs: "{} is still running: C stops it",
        experiment_runs: "an experiment is still running: C on its page stops it (E in Tune)",
        stopping: "stopping; the results so far follow. C again kills the run",
        killed: "killed before it could report; its file is deleted",
        after_refusal: "Nothing was written. Change the plan and start again.",
        after_failure: "The file is deleted.",
        announcement: "bench {}: ",
        shown_by: "; b shows the result",
    };

    fn loaded_reports(reply: WorkerReply) -> Option<Vec<BenchReport>> {
        if let WorkerReply::LoadedResults(reports) = reply { Some(reports) } else { None }
    }

    fn bench_plan(plan: &mut BenchPlan) -> &mut BenchPlan {
        plan
    }
}

impl RunKind for BenchForm {
    /// The list, the page beside it, and devices and writeback below. As the window shrinks, writeback is left out
    /// first, then devices; then list and page are stacked, and the focused one gets most of the height.
    fn arrange_panes(body: Rect, focus: usize) -> Vec<(PaneId, Rect)> {
        let below = if body.height >= 30 { (body.height / 4).clamp(8, 12) } else { 0 };
        let [top, strip] = split_rows(body, body.height - below);
        let height = if focus == 1 { 3 } else { top.height * 3 / 5 };
        let [list, page] = list_and_page(top, body.width >= 70, (body.width / 4).clamp(26, 44), height);
        let side = if body.width >= 110 { body.width * 2 / 5 } else { 0 };
        let [devices, writeback] = split_columns(strip, strip.width - side);
        vec![
            (PaneId::BenchResults, list),
            (PaneId::BenchPage, page),
            (PaneId::Devices, devices),
            (PaneId::Writeback, writeback),
        ]
    }

    fn ask_start(view: &mut BenchView, form: usize, cx: &Context, out: &mut Outbox) {
        let (workload, plan) = view.form.plan(form, &cx.shared.target.directory);
        match view.form.start_refusal(form, cx.shared) {
            // The page lists the reasons and what to do.
            Some(why) => out.error(why),
            None => {
                let text = form::confirmation_text(workload, &plan, cx.shared);
                view.open_start_dialog(format!("Run {}", plan.profile), text, plan, out);
            }
        }
    }

    fn on_tab(view: &mut BenchView, cx: &Context, out: &mut Outbox) {
        if cx.screen.view == ViewId::Bench {
            if view.active_run().is_some() {
                view.show_current_run();
            }
            view.request_list(out);
            out.request(Request::InspectTarget);
        }
    }

    fn on_target(view: &mut BenchView, target: &Target, _: &Context, out: &mut Outbox) -> bool {
        let Target::Profile { name, .. } = target else { return false };
        // A run under way stays on screen.
        if view.active_run().is_none()
            && let Some(form) = WORKLOADS.iter().position(|w| w.name == *name)
        {
            (view.selected, view.opened) = (RunRow::Form(form), None);
        }
        out.navigate(Target::Tab(ViewId::Bench));
        true
    }

    fn on_event(view: &mut BenchView, event: Event, cx: &Context, out: &mut Outbox) -> Option<Event> {
        match event {
            Event::Bench(run, event) => view.on_child_event(run, *event, cx, out),
            Event::JobReply(WorkerJob::BenchReports(job), reply) => view.on_store_reply(&job, reply, out),
            other => return Some(other),
        }
        None
    }
}
