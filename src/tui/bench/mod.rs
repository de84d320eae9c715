//! The Bench view's state, what a person can mean in it, what it wants done and what it is told.

pub mod layout;
pub mod rate_series;
pub mod run;
pub mod runner;

use crate::bench::message::BenchMessage;
use crate::bench::params::{self, BenchParam};
use crate::bench::plan::BenchPlan;
use crate::bench::report::BenchReport;
use crate::bench::store::StoredResult;
use crate::bench::target_info::TargetInspection;
use crate::bench::workloads::{self, WORKLOADS, Workload};
use crate::model::disk::DevId;
use crate::tui::action::ViewId;
use crate::tui::state::App;
use crate::tui::widgets::table::Scroll;
use run::TrackedBench;
use std::path::{Path, PathBuf};

/// State of the Bench view.
#[derive(Debug)]
pub struct BenchUi {
    /// Where to measure, absolute; empty: not known yet.
    pub directory: PathBuf,
    /// Where the program was started: names typed are taken from there.
    pub working_directory: PathBuf,
    /// The plan of each workload, as the person left it, in the order of the list; without a directory.
    plans: Vec<BenchPlan>,
    /// What is selected in the list.
    pub selected: BenchRow,
    /// First line of the list on screen, as far as the selection allows.
    pub list_offset: usize,
    /// Selection among the parameters.
    pub params_scroll: Scroll,
    /// What lies over the page of the selection.
    pub opened: Option<OpenedResult>,
    /// First line of a page of text on screen.
    pub text_offset: usize,
    /// The directory as a benchmark sees it, from the last look.
    pub current_target: Option<Result<TargetInspection, String>>,
    /// Results kept; `None` before the first answer.
    pub stored: Option<Result<Vec<StoredResult>, String>>,
    /// The result to compare others with.
    pub marked: Option<String>,
    /// A directory is being looked at.
    pub probing_directory: Option<PathBuf>,
    /// The results are being listed.
    pub is_listing: bool,
    /// The run under way, or the last one of this session.
    pub run: Option<TrackedBench>,
    /// Runs started.
    pub run_count: u64,
}

/// A row of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BenchRow {
    /// The run under way, or the last one.
    CurrentRun,
    /// A profile, by its place in [`WORKLOADS`].
    Profile(usize),
    /// A kept result, by name.
    Stored(String),
}

/// A page that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum OpenedResult<R = BenchReport> {
    /// The results of these names are being read.
    Loading(Vec<String>),
    /// A kept result.
    Result(Box<R>),
    /// Two results side by side.
    Comparison(Box<[R; 2]>),
    /// Why there is nothing to show.
    Failed(String),
}

impl<R> OpenedResult<R> {
    /// What was read, one or two.
    pub fn from_loaded(read: Result<Vec<R>, String>) -> Self {
        let reports = match read {
            Ok(reports) => reports,
            Err(why) => return Self::Failed(why),
        };
        match <[R; 2]>::try_from(reports) {
            Ok(both) => Self::Comparison(Box::new(both)),
            Err(mut one) => match one.pop() {
                Some(report) => Self::Result(Box::new(report)),
                None => Self::Failed("the result is gone".into()),
            },
        }
    }
}

/// A request in the Bench view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BenchAction {
    /// Ask to start the selected profile.
    Run,
    /// End the run; a second time: kill it.
    Cancel,
    /// Change the selected parameter.
    Edit,
    /// The selected parameter as the profile has it.
    Reset,
    /// Mark the selected result.
    Mark,
    /// Compare the marked result with the selected one.
    Compare,
    /// To the list.
    FocusList,
    /// To the page beside the list.
    FocusPage,
}

/// What the run loop is to do for the Bench view.
#[derive(Debug, Clone, PartialEq)]
pub enum BenchEffect {
    /// Start a run in its child.
    Start {
        /// Number of the run; its news carry it.
        run: u64,
        /// What to do.
        plan: Box<BenchPlan>,
    },
    /// Have it end with a report.
    Cancel,
    /// End it without one.
    Kill,
}

/// What comes back.
#[derive(Debug)]
pub struct BenchEvent {
    /// Of which run.
    pub run: u64,
    /// What.
    pub event: BenchChildEvent,
}

/// News of a run.
pub type BenchChildEvent = crate::subprocess::runner::ChildEvent<BenchMessage>;

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

/// A line of the parameters: the directory, or one of the profile's.
#[derive(Clone, Copy)]
pub enum BenchParamLine {
    /// Where.
    Directory,
    /// A figure or choice.
    Param(&'static BenchParam),
}

impl BenchParamLine {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            BenchParamLine::Directory => "directory",
            BenchParamLine::Param(p) => p.name,
        }
    }
}

impl BenchUi {
    /// Says where the program was started, which is where it measures unless told otherwise.
    pub fn set_working_directory(&mut self, dir: PathBuf) {
        self.directory = dir.join(&self.directory);
        // `.` of the settings leaves a tail.
        self.directory = self.directory.components().collect();
        self.working_directory = dir;
    }

    /// The directory as the settings keep it: a dot for where the program was started.
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

    /// Results kept, as far as they are known.
    pub fn stored_results(&self) -> &[StoredResult] {
        self.stored.as_ref().and_then(|k| k.as_deref().ok()).unwrap_or_default()
    }

    /// The selected result.
    pub fn selected_result(&self) -> Option<&StoredResult> {
        let BenchRow::Stored(id) = &self.selected else { return None };
        self.stored_results().iter().find(|k| k.id == *id)
    }

    /// The profile the page is about: the selected one.
    pub fn selected_profile(&self) -> Option<usize> {
        match &self.selected {
            BenchRow::Profile(at) => Some(*at),
            BenchRow::CurrentRun | BenchRow::Stored(_) => None,
        }
    }

    /// Whether the page is a plan, with parameters to change.
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

    /// What can be changed about the profile, in order.
    pub fn param_lines(&self, at: usize) -> Vec<BenchParamLine> {
        let workload = WORKLOADS[at.min(WORKLOADS.len() - 1)];
        let directory = workload.needs_directory().then_some(BenchParamLine::Directory);
        let known = params::PARAMS.iter().filter(|p| workload.params().contains(&p.name));
        directory.into_iter().chain(known.map(BenchParamLine::Param)).collect()
    }

    /// Puts `text` into the profile's plan. The error says what is wrong with it, or with the whole.
    pub fn set_param(&mut self, at: usize, param: &BenchParam, text: &str) -> Result<(), String> {
        let (workload, mut plan) = self.plan(at);
        params::set_param(&mut plan, param.name, text)?;
        plan.check().and_then(|()| workload.check(&plan))?;
        plan.directory = PathBuf::new();
        self.plans[at] = plan;
        Ok(())
    }

    /// Whether a parameter is not as the profile has it.
    pub fn is_param_changed(&self, at: usize, param: &BenchParam) -> bool {
        (param.get)(&self.plans[at]) != (param.get)(&WORKLOADS[at].defaults())
    }

    /// A directory as typed, from where the program was started.
    pub fn absolute_path(&self, text: &str) -> PathBuf {
        self.working_directory.join(Path::new(text)).components().collect()
    }

    /// The last look, if it was at this directory.
    pub fn look(&self) -> Option<&Result<TargetInspection, String>> {
        self.current_target.as_ref().filter(|l| l.as_ref().map_or(true, |l| l.directory == self.directory))
    }

    /// The run under way.
    pub fn active_run(&self) -> Option<&TrackedBench> {
        self.run.as_ref().filter(|r| r.ending.is_none())
    }

    /// The device that counts the I/O of the directory.
    pub fn target_device(&self) -> Option<DevId> {
        self.look()?.as_ref().ok()?.info.as_ref()?.device
    }

    /// `bench randrw 42 %` while a run is on, for the line at the top.
    pub fn status_text(&self) -> Option<String> {
        self.active_run().map(TrackedBench::status_text)
    }
}

impl BenchEvent {
    /// Whether it changes nothing that is on screen while another view is.
    pub fn leaves_status_unchanged(&self, ui: &BenchUi) -> bool {
        let BenchChildEvent::Message(BenchMessage::Progress(p)) = &self.event else { return false };
        ui.active_run()
            .is_some_and(|run| run.number == self.run && run.status_text_at(Some(p.as_ref())) == run.status_text())
    }
}

impl App {
    /// Whether news of a run change nothing on the screen: then no frame is made for them.
    pub fn is_bench_event_invisible(&self, news: &BenchEvent) -> bool {
        self.screen.view != ViewId::Bench && news.leaves_status_unchanged(&self.views.bench)
    }
}

/// The workload of a plan.
pub fn workload_of_plan(plan: &BenchPlan) -> Option<&'static dyn Workload> {
    workloads::find_workload(&plan.profile)
}
