//! State, actions, effects and events of the Bench view.

pub mod layout;
pub mod list;
pub mod page;
pub mod plan;
pub mod rate_series;
pub mod render;
pub mod run;
pub mod runner;
pub mod running;
pub mod update;

use crate::bench::message::BenchMessage;
use crate::bench::params::{self, BenchParam};
use crate::bench::plan::BenchPlan;
use crate::bench::report::BenchReport;
use crate::bench::store::StoredResult;
use crate::bench::target_info::TargetInspection;
use crate::bench::workloads::{self, WORKLOADS, Workload};
use crate::model::disk::DevId;
pub use crate::tui::action::BenchAction;
use crate::tui::action::ViewId;
pub use crate::tui::effect::BenchEffect;
pub use crate::tui::event::{BenchChildEvent, BenchEvent};
use crate::tui::state::App;
use crate::tui::widgets::table::Scroll;
use run::TrackedBench;
use std::path::{Path, PathBuf};

/// State of the Bench view.
#[derive(Debug)]
pub struct BenchUi {
    /// Directory to measure in, absolute; empty until the working directory is known.
    pub directory: PathBuf,
    /// Working directory of the program, against which typed paths are resolved.
    pub working_directory: PathBuf,
    /// The plan of each workload as edited, in the order of the list, without a directory.
    plans: Vec<BenchPlan>,
    /// The selected row of the list.
    pub selected: BenchRow,
    /// First visible row of the list.
    pub list_offset: usize,
    /// Selection among the parameters.
    pub params_scroll: Scroll,
    /// A result shown instead of the page of the selected row.
    pub opened: Option<OpenedResult>,
    /// First visible line of a page of text.
    pub text_offset: usize,
    /// What a benchmark would find in the directory, from the last probe.
    pub current_target: Option<Result<TargetInspection, String>>,
    /// Stored results; `None` until they are loaded.
    pub stored: Option<Result<Vec<StoredResult>, String>>,
    /// The result marked for comparison.
    pub marked: Option<String>,
    /// The directory being probed.
    pub probing_directory: Option<PathBuf>,
    /// Whether the stored results are being loaded.
    pub is_listing: bool,
    /// The run under way, or the last one of this session.
    pub run: Option<TrackedBench>,
    /// Number of runs started.
    pub run_count: u64,
}

/// A row of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BenchRow {
    /// The run under way, or the last one.
    CurrentRun,
    /// A profile, by its index in [`WORKLOADS`].
    Profile(usize),
    /// A stored result, by its name.
    Stored(String),
}

/// Stored results opened for display.
#[derive(Debug, Clone, PartialEq)]
pub enum OpenedResult<R = BenchReport> {
    /// The results of these names are being loaded.
    Loading(Vec<String>),
    /// One result.
    Result(Box<R>),
    /// Two results to compare.
    Comparison(Box<[R; 2]>),
    /// Why nothing can be shown.
    Failed(String),
}

impl<R> OpenedResult<R> {
    /// Makes a page of one result, or a comparison of two.
    pub fn from_loaded(read: Result<Vec<R>, String>) -> Self {
        let reports = match read {
            Ok(reports) => reports,
            Err(why) => return Self::Failed(why),
        };
        match <[R; 2]>::try_from(reports) {
            Ok(both) => Self::Comparison(Box::new(both)),
            Err(mut one) => match one.pop() {
                Some(report) => Self::Result(Box::new(report)),
                None => Self::Failed("the result no longer exists".into()),
            },
        }
    }
}

impl Default for BenchUi {
    fn default() -> Self {
        Self {
            directory: PathBuf::new(),
            working_directory: PathBuf::new(),
            plans: WORKLOADS.iter().map(|w| w.defaults()).collect(),
            selected: BenchRow::Profile(0),
            list_offset: 0,
            params_scroll: Scroll::default(),
            opened: None,
            text_offset: 0,
            current_target: None,
            stored: None,
            marked: None,
            probing_directory: None,
            is_listing: false,
            run: None,
            run_count: 0,
        }
    }
}

/// A line of the parameters.
#[derive(Clone, Copy)]
pub enum BenchParamLine {
    /// The directory.
    Directory,
    /// A parameter of the profile.
    Param(&'static BenchParam),
}

impl BenchParamLine {
    /// Name of the parameter.
    pub fn name(self) -> &'static str {
        match self {
            BenchParamLine::Directory => "directory",
            BenchParamLine::Param(p) => p.name,
        }
    }
}

impl BenchUi {
    /// Sets the working directory. A relative directory of the settings is resolved against it.
    pub fn set_working_directory(&mut self, dir: PathBuf) {
        self.directory = dir.join(&self.directory);
        // Normalizes a trailing `.`, the default of the settings.
        self.directory = self.directory.components().collect();
        self.working_directory = dir;
    }

    /// The directory as saved in the settings: `.` for the working directory.
    pub fn directory_setting(&self) -> String {
        match self.directory.to_str() {
            Some(dir) if self.directory != self.working_directory && !dir.is_empty() => dir.to_owned(),
            _ => ".".into(),
        }
    }

    /// The rows of the list.
    pub fn rows(&self) -> Vec<BenchRow> {
        let now = self.run.is_some().then_some(BenchRow::CurrentRun);
        let kept = self.stored_results().iter().map(|k| BenchRow::Stored(k.id.clone()));
        now.into_iter().chain((0..WORKLOADS.len()).map(BenchRow::Profile)).chain(kept).collect()
    }

    /// Stored results, as far as they are loaded.
    pub fn stored_results(&self) -> &[StoredResult] {
        self.stored.as_ref().and_then(|k| k.as_deref().ok()).unwrap_or_default()
    }

    /// The selected stored result.
    pub fn selected_result(&self) -> Option<&StoredResult> {
        let BenchRow::Stored(id) = &self.selected else { return None };
        self.stored_results().iter().find(|k| k.id == *id)
    }

    /// Index of the selected profile.
    pub fn selected_profile(&self) -> Option<usize> {
        match &self.selected {
            BenchRow::Profile(at) => Some(*at),
            BenchRow::CurrentRun | BenchRow::Stored(_) => None,
        }
    }

    /// Whether the page shows a plan, whose parameters can be edited.
    pub fn is_planning(&self) -> bool {
        self.opened.is_none() && self.selected_profile().is_some()
    }

    /// The workload and its plan, with the directory.
    pub fn plan(&self, at: usize) -> (&'static dyn Workload, BenchPlan) {
        let workload = WORKLOADS[at.min(WORKLOADS.len() - 1)];
        let mut plan = self.plans[at.min(WORKLOADS.len() - 1)].clone();
        if workload.needs_directory() {
            plan.directory.clone_from(&self.directory);
        }
        (workload, plan)
    }

    /// The parameters of the profile, in order.
    pub fn param_lines(&self, at: usize) -> Vec<BenchParamLine> {
        let workload = WORKLOADS[at.min(WORKLOADS.len() - 1)];
        let directory = workload.needs_directory().then_some(BenchParamLine::Directory);
        let known = params::PARAMS.iter().filter(|p| workload.params().contains(&p.name));
        directory.into_iter().chain(known.map(BenchParamLine::Param)).collect()
    }

    /// Sets a parameter of the profile's plan.
    ///
    /// # Errors
    ///
    /// When the text is invalid, or the plan would be; the plan stays as it was.
    pub fn set_param(&mut self, at: usize, param: &BenchParam, text: &str) -> Result<(), String> {
        let (workload, mut plan) = self.plan(at);
        params::set_param(&mut plan, param.name, text)?;
        plan.check().and_then(|()| workload.check(&plan))?;
        plan.directory = PathBuf::new();
        self.plans[at] = plan;
        Ok(())
    }

    /// Whether a parameter differs from the profile's default.
    pub fn is_param_changed(&self, at: usize, param: &BenchParam) -> bool {
        (param.get)(&self.plans[at]) != (param.get)(&WORKLOADS[at].defaults())
    }

    /// Resolves a typed path against the working directory.
    pub fn absolute_path(&self, text: &str) -> PathBuf {
        self.working_directory.join(Path::new(text)).components().collect()
    }

    /// Result of the last probe, if it was of the current directory.
    pub fn look(&self) -> Option<&Result<TargetInspection, String>> {
        self.current_target.as_ref().filter(|l| l.as_ref().map_or(true, |l| l.directory == self.directory))
    }

    /// The run under way.
    pub fn active_run(&self) -> Option<&TrackedBench> {
        self.run.as_ref().filter(|r| r.ending.is_none())
    }

    /// The block device below the directory.
    pub fn target_device(&self) -> Option<DevId> {
        self.look()?.as_ref().ok()?.info.as_ref()?.device
    }

    /// Status for the header while a run is under way: `bench randrw 42 %`.
    pub fn status_text(&self) -> Option<String> {
        self.active_run().map(TrackedBench::status_text)
    }
}

impl BenchEvent {
    /// Whether the status text stays the same, which is all that other views show of a run.
    pub fn leaves_status_unchanged(&self, ui: &BenchUi) -> bool {
        let BenchChildEvent::Message(BenchMessage::Progress(p)) = &self.event else { return false };
        ui.active_run()
            .is_some_and(|run| run.number == self.run && run.status_text_at(Some(p.as_ref())) == run.status_text())
    }
}

impl App {
    /// Whether an event changes nothing on screen, so that no frame need be drawn.
    pub fn is_bench_event_invisible(&self, news: &BenchEvent) -> bool {
        self.screen.view != ViewId::Bench && news.leaves_status_unchanged(&self.views.bench)
    }
}

/// Finds the workload of a plan.
pub fn workload_of_plan(plan: &BenchPlan) -> Option<&'static dyn Workload> {
    workloads::find_workload(&plan.profile)
}
