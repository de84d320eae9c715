//! What the person sees and did: everything about the screen that is not about the machine.

use super::action::View;
use super::panes::PaneId;
use super::settings::Settings;
use super::widgets::table::Scroll;
use super::widgets::theme::{Theme, ThemeName};
use crate::diagnose::RuleEngine;
use crate::model::disk::DevId;
use crate::model::kernel_log::{LogClock, LogPatterns};
use crate::model::process::{ProcessColumn, ProcessFilter, IoPrio, TaskKey, ProcessWindow};
use crate::model::reading::Reading;
use crate::model::system_state::SystemState;
use std::time::Duration;

/// The program's whole state.
pub struct App {
    /// The machine.
    pub world: SystemState,
    /// The screen.
    pub ui: Ui,
    /// What is wrong.
    pub findings: RuleEngine,
}

/// The screen's state.
#[derive(Default)]
pub struct Ui {
    /// Columns and rows.
    pub size: (u16, u16),
    /// Which view.
    pub view: View,
    /// Which pane of the view has the keys.
    pub focus: usize,
    /// The focused pane alone.
    pub zoomed: bool,
    /// The tick held on screen, by its number; `None`: live.
    pub frozen: Option<u64>,
    /// What lies over the view, topmost last.
    pub overlay: Option<Overlay>,
    /// The detail page, if one is open.
    pub detail: Option<Detail>,
    /// Scrolled rows of the detail page.
    pub detail_scroll: Scroll,
    /// Time between samples.
    pub interval: Duration,
    /// The look.
    pub theme_name: ThemeName,
    /// `NO_COLOR` was set: themes do not apply.
    pub no_color: bool,
    /// Whether the mouse is used.
    pub mouse: bool,
    /// Whether latencies are traced.
    pub tracing: bool,
    /// The word at the bottom.
    pub message: Option<Message>,
    /// The Devices pane.
    pub devices: DevicesUi,
    /// The Processes pane.
    pub procs: ProcsUi,
    /// The Kernel pane.
    pub kernel: KernelUi,
    /// The Bench view.
    pub bench: super::bench::BenchUi,
    /// The Tune view.
    pub tune: super::tuning::TuneUi,
    /// Experiments, a page of the Tune view.
    pub experiment: super::experiment::ExperimentUi,
    /// The recording on screen, instead of the machine.
    pub replay: Option<super::replay::ReplayUi>,
    /// How far the recorder is, if one is at work.
    pub recording: Option<crate::record::writer::RecorderStatus>,
    /// The Findings view.
    pub findings: FindingsUi,
    /// The Syncs view.
    pub syncs: super::syncs::SyncsUi,
    /// Screenshots.
    pub shot: super::shot::ShotUi,
    /// The text searched for.
    pub search: String,
    /// The person's zone, seconds east of Greenwich.
    pub utc_offset_secs: i64,
    /// The clocks at the newest batch of kernel lines.
    pub log_clock: LogClock,
}

/// A word to the person, shown for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Cleaned text.
    pub text: String,
    /// Something went wrong.
    pub bad: bool,
    /// Ticks it stays.
    pub ticks: u8,
}

/// Something over the view.
#[derive(Debug, Clone, PartialEq)]
pub enum Overlay {
    /// The help, scrolled by so many lines.
    Help(u16),
    /// A line of input.
    Prompt(Prompt),
    /// A question.
    Dialog(Dialog),
}

/// What a line of input is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptFor {
    /// `/`
    Search,
    /// `\`
    Filter,
    /// `u`
    User,
    /// `d`
    Delay,
    /// `:`
    Command,
    /// Kernel lines to show.
    Include,
    /// Kernel lines to hide.
    Exclude,
    /// Class and level for a task.
    Ionice(TaskKey),
    /// A value for the knob that is edited.
    Knob,
    /// Seconds of a lease.
    Lease,
    /// A line of a benchmark's parameters, by its place.
    Bench(usize),
    /// A line of the next experiment, by its place.
    Experiment(usize),
    /// The file an experiment's report goes to.
    ExperimentFile,
    /// The file a screenshot goes to.
    Shot,
    /// A file to record into.
    Record,
    /// A time in the recording.
    Jump,
}

/// A line of input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// What for.
    pub what: PromptFor,
    /// What was typed.
    pub text: String,
    /// Byte offset of the cursor.
    pub cursor: usize,
    /// What was wrong with it when Enter was pressed.
    pub error: Option<String>,
}

/// A question before something changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialog {
    /// Title.
    pub title: String,
    /// Exactly what would be done, cleaned.
    pub text: String,
    /// Lines passed over, where it is longer than the screen.
    pub scroll: u16,
    /// What `y` does.
    pub change: Change,
}

/// A change that was asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// I/O class and level of a task.
    IoPrio(TaskKey, IoPrio),
    /// Something of the Tune view.
    Tune(super::tuning::Ask),
    /// Start measuring.
    Bench(Box<crate::bench::plan::Plan>),
    /// Start an experiment.
    Experiment(Box<crate::experiment::spec::Spec>),
}

/// A detail page.
#[derive(Debug, Clone, PartialEq)]
pub enum Detail {
    /// A device.
    Device(DevId),
    /// A task.
    Process(Box<ProcessDetail>),
    /// An entry of the kernel log, by its place.
    Kernel(usize),
    /// What a directory lies on.
    Path(Box<PathDetail>),
}

/// The detail of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessDetail {
    /// Who.
    pub key: TaskKey,
    /// Facts that were asked for.
    pub facts: Option<crate::worker::job::Reply>,
    /// Mappings that were asked for.
    pub mappings: Option<crate::worker::job::Reply>,
    /// The mappings were asked for and have not come.
    pub loading: bool,
}

impl ProcessDetail {
    /// Nothing asked for yet.
    pub fn new(key: TaskKey) -> Self {
        Self { key, facts: None, mappings: None, loading: false }
    }
}

/// The answer to `:path`.
#[derive(Debug, Clone, PartialEq)]
pub struct PathDetail {
    /// As typed, raw.
    pub path: String,
    /// The answer; `None` while waiting.
    pub reply: Option<crate::worker::job::Reply>,
}

/// State of the Devices pane.
#[derive(Debug, Clone, Default)]
pub struct DevicesUi {
    /// Selection.
    pub scroll: Scroll,
    /// Column sorted by (index into the shown set), largest first; `None`: the tree.
    pub sort: Option<usize>,
    /// Smallest first.
    pub reverse: bool,
    /// `iostat -x`.
    pub extended: bool,
    /// Hide idle ones.
    pub only_active: bool,
    /// Rows must contain this.
    pub filter: String,
    /// Columns passed over after the name.
    pub shift: usize,
    /// Which quantity the graphs show.
    pub graph: usize,
    /// A device to select as soon as it is in the list.
    pub wanted: Option<DevId>,
}

/// State of the Processes pane.
#[derive(Debug, Clone, Default)]
pub struct ProcsUi {
    /// Selection within the rows that match.
    pub scroll: Scroll,
    /// The task the selection follows.
    pub selected: Option<TaskKey>,
    /// Sort column.
    pub by: ProcessColumn,
    /// Smallest first.
    pub reverse: bool,
    /// Which rows.
    pub filter: ProcessFilter,
    /// Columns passed over after the first.
    pub shift: usize,
    /// Sums instead of rates.
    pub accumulated: bool,
    /// Threads instead of processes.
    pub threads: bool,
    /// The rows on screen, from the last update.
    pub window: ProcessWindow,
    /// The rows the collector was last told of.
    pub focused: Vec<TaskKey>,
}

/// State of the Kernel pane.
#[derive(Debug, Default)]
pub struct KernelUi {
    /// Selection among the visible entries, newest last.
    pub scroll: Scroll,
    /// The selection stays at the newest entry.
    pub pinned: bool,
    /// Include and exclude.
    pub patterns: LogPatterns,
    /// As typed.
    pub include: Option<String>,
    /// As typed; `None`: the default.
    pub exclude: Option<String>,
    /// Rows must contain this.
    pub filter: String,
    /// Show what is folded under entries.
    pub unfolded: bool,
    /// Places of the entries that pattern and filter let through, ascending.
    pub shown: Vec<u32>,
    /// How often they were picked.
    pub refreshed: u64,
}

/// State of the Findings view, and of what the diagnosis asked for.
#[derive(Debug, Default)]
pub struct FindingsUi {
    /// Selection among the stories.
    pub scroll: Scroll,
    /// Selection among the ways on from the story.
    pub jump: usize,
    /// CLOCK_BOOTTIME in ns when slow facts were asked for last.
    pub asked_ns: Option<u64>,
    /// What has not been answered.
    pub asked: Asked,
}

/// Children of the diagnosis that are under way.
#[derive(Debug, Default)]
pub struct Asked {
    /// Settings and limits.
    pub facts: bool,
    /// Room on local file systems.
    pub local: bool,
    /// Room on those of the network.
    pub network: bool,
}

impl Ui {
    /// A fresh screen with these settings.
    pub fn new(size: (u16, u16), settings: &Settings, no_color: bool) -> Self {
        let mut ui = Self { size, no_color, ..Self::default() };
        ui.kernel.pinned = true;
        ui.adopt(settings);
        ui
    }

    /// Takes over settings.
    pub fn adopt(&mut self, s: &Settings) {
        self.interval = Duration::from_secs_f64(s.interval);
        self.theme_name = s.theme;
        self.view = s.view;
        self.mouse = s.mouse;
        self.shot.choose(&s.screenshot.format);
        self.shot.directory = s.screenshot.directory.clone();
        self.tracing = s.tracing;
        self.bench.directory = s.bench.directory.clone().into();
        self.devices.extended = s.devices.extended;
        self.devices.only_active = s.devices.only_active;
        self.procs.by = super::panes::processes::sort_by_name(&s.processes.sort).unwrap_or_default();
        self.procs.reverse = s.processes.reverse;
        self.procs.filter.only_active = s.processes.only_active;
        self.procs.accumulated = s.processes.accumulated;
        self.procs.threads = s.processes.threads;
        self.tune.lease_secs = s.tune.lease;
        self.syncs.threshold_ms = s.syncs.threshold_ms;
        self.kernel.include = s.kernel.include.clone();
        self.kernel.exclude = s.kernel.exclude.clone();
        // Settings::parse has compiled them already.
        self.kernel.patterns =
            LogPatterns::new(s.kernel.include.as_deref(), s.kernel.exclude.as_deref()).unwrap_or_default();
    }

    /// The settings as they are now.
    pub fn settings(&self) -> Settings {
        let mut s = Settings {
            interval: self.interval.as_secs_f64(),
            theme: self.theme_name,
            view: self.view,
            mouse: self.mouse,
            tracing: self.tracing,
            ..Settings::default()
        };
        s.screenshot.format = self.shot.form().name.into();
        s.screenshot.directory = self.shot.directory.clone();
        s.bench.directory = self.bench.setting();
        s.devices.extended = self.devices.extended;
        s.devices.only_active = self.devices.only_active;
        s.processes.sort = super::panes::processes::sort_name(self.procs.by).into();
        s.processes.reverse = self.procs.reverse;
        s.processes.only_active = self.procs.filter.only_active;
        s.processes.accumulated = self.procs.accumulated;
        s.processes.threads = self.procs.threads;
        s.tune.lease = self.tune.lease_secs;
        s.syncs.threshold_ms = self.syncs.threshold_ms;
        s.kernel.include = self.kernel.include.clone();
        s.kernel.exclude = self.kernel.exclude.clone();
        s
    }

    /// The look in force.
    pub fn theme(&self) -> Theme {
        Theme::new(if self.no_color { ThemeName::Mono } else { self.theme_name })
    }

    /// Says something to the person.
    pub fn say(&mut self, text: impl AsRef<str>) {
        self.message = Some(Message { text: crate::text::sanitize(text.as_ref()), bad: false, ticks: 4 });
    }

    /// Says what went wrong.
    pub fn complain(&mut self, text: impl AsRef<str>) {
        self.message = Some(Message { text: crate::text::sanitize(text.as_ref()), bad: true, ticks: 8 });
    }
}

impl App {
    /// The state at start.
    pub fn new(world: SystemState, ui: Ui) -> Self {
        Self { world, ui, findings: RuleEngine::default() }
    }

    /// The pane that has the keys.
    pub fn focused(&self) -> PaneId {
        let panes = super::layout::panes(self);
        panes.get(self.ui.focus.min(panes.len().saturating_sub(1))).copied().unwrap_or(PaneId::Devices)
    }

    /// Why processes cannot be shown, if they cannot.
    pub fn procs_missing(&self) -> Option<String> {
        match &self.world.processes_status {
            Reading::Ok(()) => None,
            other => other.unavailable_reason(self.world.now().boot_ns),
        }
    }
}
