//! The Bench view's state, what a person can mean in it, what it wants done and what it is told.

pub mod course;
pub mod place;
pub mod run;
pub mod runner;

use crate::bench::look::Look;
use crate::bench::message::Message;
use crate::bench::params::{self, Param};
use crate::bench::plan::Plan;
use crate::bench::report::Report;
use crate::bench::store::Kept;
use crate::bench::workloads::{self, WORKLOADS, Workload};
use crate::model::disk::DevId;
use crate::tui::action::ViewId;
use crate::tui::state::App;
use crate::tui::widgets::table::Scroll;
use run::Run;
use std::path::{Path, PathBuf};

/// State of the Bench view.
#[derive(Debug)]
pub struct BenchUi {
    /// Where to measure, absolute; empty: not known yet.
    pub directory: PathBuf,
    /// Where the program was started: names typed are taken from there.
    pub started_in: PathBuf,
    /// The plan of each workload, as the person left it, in the order of the list; without a directory.
    plans: Vec<Plan>,
    /// What is selected in the list.
    pub selected: Row,
    /// First line of the list on screen, as far as the selection allows.
    pub list_offset: usize,
    /// Selection among the parameters.
    pub params: Scroll,
    /// What lies over the page of the selection.
    pub opened: Option<Opened>,
    /// First line of a page of text on screen.
    pub line: usize,
    /// The directory as a benchmark sees it, from the last look.
    pub look: Option<Result<Look, String>>,
    /// Results kept; `None` before the first answer.
    pub kept: Option<Result<Vec<Kept>, String>>,
    /// The result to compare others with.
    pub marked: Option<String>,
    /// A directory is being looked at.
    pub looking: Option<PathBuf>,
    /// The results are being listed.
    pub listing: bool,
    /// The run under way, or the last one of this session.
    pub run: Option<Run>,
    /// Runs started.
    pub runs: u64,
}

/// A row of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// The run under way, or the last one.
    Now,
    /// A profile, by its place in [`WORKLOADS`].
    Profile(usize),
    /// A kept result, by name.
    Kept(String),
}

/// A page that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Opened<R = Report> {
    /// The results of these names are being read.
    Waiting(Vec<String>),
    /// A kept result.
    Result(Box<R>),
    /// Two results side by side.
    Compared(Box<[R; 2]>),
    /// Why there is nothing to show.
    Failed(String),
}

impl<R> Opened<R> {
    /// What was read, one or two.
    pub fn of(read: Result<Vec<R>, String>) -> Self {
        let reports = match read {
            Ok(reports) => reports,
            Err(why) => return Self::Failed(why),
        };
        match <[R; 2]>::try_from(reports) {
            Ok(both) => Self::Compared(Box::new(both)),
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
    ToList,
    /// To the page beside the list.
    ToPage,
}

/// What the run loop is to do for the Bench view.
#[derive(Debug, Clone, PartialEq)]
pub enum BenchEffect {
    /// Start a run in its child.
    Start {
        /// Number of the run; its news carry it.
        run: u64,
        /// What to do.
        plan: Box<Plan>,
    },
    /// Have it end with a report.
    Cancel,
    /// End it without one.
    Kill,
}

/// What comes back.
#[derive(Debug)]
pub struct BenchNews {
    /// Of which run.
    pub run: u64,
    /// What.
    pub what: What,
}

/// News of a run.
pub type What = super::child_runner::ChildEvent<Message>;

impl Default for BenchUi {
    fn default() -> Self {
        Self {
            directory: PathBuf::new(),
            started_in: PathBuf::new(),
            plans: WORKLOADS.iter().map(|w| w.defaults()).collect(),
            selected: Row::Profile(0),
            list_offset: 0,
            params: Scroll::default(),
            opened: None,
            line: 0,
            look: None,
            kept: None,
            marked: None,
            looking: None,
            listing: false,
            run: None,
            runs: 0,
        }
    }
}

/// A line of the parameters: the directory, or one of the profile's.
#[derive(Clone, Copy)]
pub enum Line {
    /// Where.
    Directory,
    /// A figure or choice.
    Param(&'static Param),
}

impl Line {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Line::Directory => "directory",
            Line::Param(p) => p.name,
        }
    }
}

impl BenchUi {
    /// Says where the program was started, which is where it measures unless told otherwise.
    pub fn start_in(&mut self, dir: PathBuf) {
        self.directory = dir.join(&self.directory);
        // `.` of the settings leaves a tail.
        self.directory = self.directory.components().collect();
        self.started_in = dir;
    }

    /// The directory as the settings keep it: a dot for where the program was started.
    pub fn setting(&self) -> String {
        match self.directory.to_str() {
            Some(dir) if self.directory != self.started_in && !dir.is_empty() => dir.to_owned(),
            _ => ".".into(),
        }
    }

    /// The rows of the list.
    pub fn rows(&self) -> Vec<Row> {
        let now = self.run.is_some().then_some(Row::Now);
        let kept = self.kept_results().iter().map(|k| Row::Kept(k.id.clone()));
        now.into_iter().chain((0..WORKLOADS.len()).map(Row::Profile)).chain(kept).collect()
    }

    /// Results kept, as far as they are known.
    pub fn kept_results(&self) -> &[Kept] {
        self.kept.as_ref().and_then(|k| k.as_deref().ok()).unwrap_or_default()
    }

    /// The selected result.
    pub fn selected_result(&self) -> Option<&Kept> {
        let Row::Kept(id) = &self.selected else { return None };
        self.kept_results().iter().find(|k| k.id == *id)
    }

    /// The profile the page is about: the selected one.
    pub fn profile(&self) -> Option<usize> {
        match &self.selected {
            Row::Profile(at) => Some(*at),
            Row::Now | Row::Kept(_) => None,
        }
    }

    /// Whether the page is a plan, with parameters to change.
    pub fn planning(&self) -> bool {
        self.opened.is_none() && self.profile().is_some()
    }

    /// The workload and its plan, with the directory.
    pub fn plan(&self, at: usize) -> (&'static dyn Workload, Plan) {
        let workload = WORKLOADS[at.min(WORKLOADS.len() - 1)];
        let mut plan = self.plans[at.min(WORKLOADS.len() - 1)].clone();
        if workload.needs_directory() {
            plan.directory.clone_from(&self.directory);
        }
        (workload, plan)
    }

    /// What can be changed about the profile, in order.
    pub fn lines(&self, at: usize) -> Vec<Line> {
        let workload = WORKLOADS[at.min(WORKLOADS.len() - 1)];
        let directory = workload.needs_directory().then_some(Line::Directory);
        let known = params::PARAMS.iter().filter(|p| workload.takes().contains(&p.name));
        directory.into_iter().chain(known.map(Line::Param)).collect()
    }

    /// Puts `text` into the profile's plan. The error says what is wrong with it, or with the whole.
    pub fn set(&mut self, at: usize, param: &Param, text: &str) -> Result<(), String> {
        let (workload, mut plan) = self.plan(at);
        params::set(&mut plan, param.name, text)?;
        plan.check().and_then(|()| workload.check(&plan))?;
        plan.directory = PathBuf::new();
        self.plans[at] = plan;
        Ok(())
    }

    /// Whether a parameter is not as the profile has it.
    pub fn changed(&self, at: usize, param: &Param) -> bool {
        (param.get)(&self.plans[at]) != (param.get)(&WORKLOADS[at].defaults())
    }

    /// A directory as typed, from where the program was started.
    pub fn absolute(&self, text: &str) -> PathBuf {
        self.started_in.join(Path::new(text)).components().collect()
    }

    /// The last look, if it was at this directory.
    pub fn look(&self) -> Option<&Result<Look, String>> {
        self.look.as_ref().filter(|l| l.as_ref().map_or(true, |l| l.directory == self.directory))
    }

    /// The run under way.
    pub fn running(&self) -> Option<&Run> {
        self.run.as_ref().filter(|r| r.end.is_none())
    }

    /// The device that counts the I/O of the directory.
    pub fn device(&self) -> Option<DevId> {
        self.look()?.as_ref().ok()?.place.as_ref()?.device
    }

    /// `bench randrw 42 %` while a run is on, for the line at the top.
    pub fn word(&self) -> Option<String> {
        self.running().map(Run::word)
    }
}

impl BenchNews {
    /// Whether it changes nothing that is on screen while another view is.
    pub fn is_unseen(&self, ui: &BenchUi) -> bool {
        let What::Message(Message::Progress(p)) = &self.what else { return false };
        ui.running().is_some_and(|run| run.number == self.run && run.word_at(Some(p.as_ref())) == run.word())
    }
}

impl App {
    /// Whether news of a run change nothing on the screen: then no frame is made for them.
    pub fn bench_unseen(&self, news: &BenchNews) -> bool {
        self.ui.view != ViewId::Bench && news.is_unseen(&self.ui.bench)
    }
}

/// The workload of a plan.
pub fn workload_of(plan: &Plan) -> Option<&'static dyn Workload> {
    workloads::find(&plan.profile)
}
