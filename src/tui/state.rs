//! What the person sees and did: everything about the screen that is not about the machine.

use super::action::ViewId;
use super::panes::PaneId;
use super::settings::Settings;
use super::widgets::table::Scroll;
use super::widgets::theme::{Theme, ThemeName};
use crate::doctor::RuleEngine;
use crate::model::disk::DevId;
use crate::model::kernel_log::{LogClock, LogPatterns};
use crate::model::process::{IoPrio, ProcessColumn, ProcessFilter, ProcessWindow, TaskKey};
use crate::model::reading::Reading;
use crate::model::system_state::SystemState;
use std::time::Duration;

/// The program's whole state.
pub struct App {
    /// The machine.
    pub system: SystemState,
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
    pub view: ViewId,
    /// Which pane of the view has the keys.
    pub focus: usize,
    /// The focused pane alone.
    pub zoomed: bool,
    /// The tick held on screen, by its number; `None`: live.
    pub frozen_seq: Option<u64>,
    /// What lies over the view, topmost last.
    pub overlay: Option<Overlay>,
    /// The detail page, if one is open.
    pub detail: Option<DetailPage>,
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
    pub message: Option<StatusMessage>,
    /// The Devices pane.
    pub devices: DevicesState,
    /// The Processes pane.
    pub processes: ProcessesState,
    /// The Kernel pane.
    pub kernel: KernelLogState,
    /// The Bench view.
    pub bench: super::bench::BenchUi,
    /// The Tune view.
    pub tune: super::tune::TuneUi,
    /// Experiments, a page of the Tune view.
    pub experiment: super::experiment::ExperimentUi,
    /// The recording on screen, instead of the machine.
    pub replay: Option<super::replay::ReplayUi>,
    /// How far the recorder is, if one is at work.
    pub recording_status: Option<crate::recording::writer::RecorderStatus>,
    /// The Findings view.
    pub findings: FindingsState,
    /// The Syncs view.
    pub syncs: super::syncs::SyncsState,
    /// Screenshots.
    pub screenshot: super::screenshot::ScreenshotState,
    /// The text searched for.
    pub search: String,
    /// The person's zone, seconds east of Greenwich.
    pub utc_offset_secs: i64,
    /// The clocks at the newest batch of kernel lines.
    pub log_clock: LogClock,
}

/// A word to the person, shown for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusMessage {
    /// Cleaned text.
    pub text: String,
    /// Something went wrong.
    pub is_error: bool,
    /// Ticks it stays.
    pub ticks_left: u8,
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
pub enum PromptPurpose {
    /// `/`
    Search,
    /// `\`
    Filter,
    /// `u`
    UserFilter,
    /// `d`
    Interval,
    /// `:`
    Command,
    /// Kernel lines to show.
    Include,
    /// Kernel lines to hide.
    Exclude,
    /// Class and level for a task.
    Ionice(TaskKey),
    /// A value for the knob that is edited.
    KnobValue,
    /// Seconds of a lease.
    Lease,
    /// A line of a benchmark's parameters, by its place.
    BenchField(usize),
    /// A line of the next experiment, by its place.
    ExperimentField(usize),
    /// The file an experiment's report goes to.
    ExperimentReportPath,
    /// The file a screenshot goes to.
    ScreenshotPath,
    /// A file to record into.
    RecordingPath,
    /// A time in the recording.
    ReplayTime,
}

/// A line of input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// What for.
    pub purpose: PromptPurpose,
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
    pub on_confirm: PendingChange,
}

/// A change that was asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PendingChange {
    /// I/O class and level of a task.
    IoPrio(TaskKey, IoPrio),
    /// Something of the Tune view.
    Tune(super::tune::Confirmation),
    /// Start measuring.
    Bench(Box<crate::bench::plan::BenchPlan>),
    /// Start an experiment.
    Experiment(Box<crate::experiment::spec::ExperimentSpec>),
}

/// A detail page.
#[derive(Debug, Clone, PartialEq)]
pub enum DetailPage {
    /// A device.
    Device(DevId),
    /// A task.
    Process(Box<ProcessDetail>),
    /// An entry of the kernel log, by its place.
    KernelLog(usize),
    /// What a directory lies on.
    Path(Box<PathDetail>),
}

/// The detail of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessDetail {
    /// Who.
    pub key: TaskKey,
    /// Facts that were asked for.
    pub facts: Option<crate::jobs::job::WorkerReply>,
    /// Mappings that were asked for.
    pub mappings: Option<crate::jobs::job::WorkerReply>,
    /// The mappings were asked for and have not come.
    pub mappings_requested: bool,
}

impl ProcessDetail {
    /// Nothing asked for yet.
    pub fn new(key: TaskKey) -> Self {
        Self { key, facts: None, mappings: None, mappings_requested: false }
    }
}

/// The answer to `:path`.
#[derive(Debug, Clone, PartialEq)]
pub struct PathDetail {
    /// As typed, raw.
    pub path: String,
    /// The answer; `None` while waiting.
    pub reply: Option<crate::jobs::job::WorkerReply>,
}

/// State of the Devices pane.
#[derive(Debug, Clone, Default)]
pub struct DevicesState {
    /// Selection.
    pub scroll: Scroll,
    /// Column sorted by (index into the shown set), largest first; `None`: the tree.
    pub sort_column: Option<usize>,
    /// Smallest first.
    pub reverse: bool,
    /// `iostat -x`.
    pub extended: bool,
    /// Hide idle ones.
    pub only_active: bool,
    /// Rows must contain this.
    pub filter: String,
    /// Columns passed over after the name.
    pub column_offset: usize,
    /// Which quantity the graphs show.
    pub graph_index: usize,
    /// A device to select as soon as it is in the list.
    pub pending_selection: Option<DevId>,
}

/// State of the Processes pane.
#[derive(Debug, Clone, Default)]
pub struct ProcessesState {
    /// Selection within the rows that match.
    pub scroll: Scroll,
    /// The task the selection follows.
    pub selected: Option<TaskKey>,
    /// Sort column.
    pub sort_column: ProcessColumn,
    /// Smallest first.
    pub reverse: bool,
    /// Which rows.
    pub filter: ProcessFilter,
    /// Columns passed over after the first.
    pub column_offset: usize,
    /// Sums instead of rates.
    pub show_totals: bool,
    /// Threads instead of processes.
    pub show_threads: bool,
    /// The rows on screen, from the last update.
    pub window: ProcessWindow,
    /// The rows the collector was last told of.
    pub watched_tasks: Vec<TaskKey>,
}

/// State of the Kernel pane.
#[derive(Debug, Default)]
pub struct KernelLogState {
    /// Selection among the visible entries, newest last.
    pub scroll: Scroll,
    /// The selection stays at the newest entry.
    pub follows_newest: bool,
    /// Include and exclude.
    pub patterns: LogPatterns,
    /// As typed.
    pub include: Option<String>,
    /// As typed; `None`: the default.
    pub exclude: Option<String>,
    /// Rows must contain this.
    pub filter: String,
    /// Show what is folded under entries.
    pub is_unfolded: bool,
    /// Places of the entries that pattern and filter let through, ascending.
    pub visible_entries: Vec<u32>,
    /// How often they were picked.
    pub refresh_count: u64,
}

/// State of the Findings view, and of what the diagnosis asked for.
#[derive(Debug, Default)]
pub struct FindingsState {
    /// Selection among the stories.
    pub scroll: Scroll,
    /// Selection among the ways on from the story.
    pub selected_target: usize,
    /// CLOCK_BOOTTIME in ns when slow facts were asked for last.
    pub requested_at_ns: Option<u64>,
    /// What has not been answered.
    pub pending: PendingFacts,
}

/// Children of the diagnosis that are under way.
#[derive(Debug, Default)]
pub struct PendingFacts {
    /// Settings and limits.
    pub facts: bool,
    /// Room on local file systems.
    pub local_disk_space: bool,
    /// Room on those of the network.
    pub network_disk_space: bool,
}

impl Ui {
    /// A fresh screen with these settings.
    pub fn new(size: (u16, u16), settings: &Settings, no_color: bool) -> Self {
        let mut ui = Self { size, no_color, ..Self::default() };
        ui.kernel.follows_newest = true;
        ui.apply_settings(settings);
        ui
    }

    /// Takes over settings.
    pub fn apply_settings(&mut self, s: &Settings) {
        self.interval = Duration::from_secs_f64(s.interval);
        self.theme_name = s.theme;
        self.view = s.view;
        self.mouse = s.mouse;
        self.screenshot.select_format(&s.screenshot.format);
        self.screenshot.directory = s.screenshot.directory.clone();
        self.tracing = s.tracing;
        self.bench.directory = s.bench.directory.clone().into();
        self.devices.extended = s.devices.extended;
        self.devices.only_active = s.devices.only_active;
        self.processes.sort_column =
            super::panes::processes::sort_column_by_name(&s.processes.sort).unwrap_or_default();
        self.processes.reverse = s.processes.reverse;
        self.processes.filter.only_active = s.processes.only_active;
        self.processes.show_totals = s.processes.accumulated;
        self.processes.show_threads = s.processes.threads;
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
        s.screenshot.format = self.screenshot.format().name.into();
        s.screenshot.directory = self.screenshot.directory.clone();
        s.bench.directory = self.bench.directory_setting();
        s.devices.extended = self.devices.extended;
        s.devices.only_active = self.devices.only_active;
        s.processes.sort = super::panes::processes::sort_column_name(self.processes.sort_column).into();
        s.processes.reverse = self.processes.reverse;
        s.processes.only_active = self.processes.filter.only_active;
        s.processes.accumulated = self.processes.show_totals;
        s.processes.threads = self.processes.show_threads;
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
    pub fn info(&mut self, text: impl AsRef<str>) {
        self.message =
            Some(StatusMessage { text: crate::sanitize::sanitize(text.as_ref()), is_error: false, ticks_left: 4 });
    }

    /// Says what went wrong.
    pub fn error(&mut self, text: impl AsRef<str>) {
        self.message =
            Some(StatusMessage { text: crate::sanitize::sanitize(text.as_ref()), is_error: true, ticks_left: 8 });
    }
}

impl App {
    /// The state at start.
    pub fn new(world: SystemState, ui: Ui) -> Self {
        Self { system: world, ui, findings: RuleEngine::default() }
    }

    /// The pane that has the keys.
    pub fn focused_pane(&self) -> PaneId {
        let panes = super::layout::visible_panes(self);
        panes.get(self.ui.focus.min(panes.len().saturating_sub(1))).copied().unwrap_or(PaneId::Devices)
    }

    /// Why processes cannot be shown, if they cannot.
    pub fn processes_unavailable_reason(&self) -> Option<String> {
        match &self.system.processes_status {
            Reading::Ok(()) => None,
            other => other.unavailable_reason(self.system.now().boot_ns),
        }
    }
}
