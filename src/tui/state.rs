//! What the person sees and did: everything about the screen that is not about the machine.

use super::action::ViewId;
use super::panes::PaneId;
use super::settings::Settings;
use super::view::Shared;
use super::widgets::table::Scroll;
use crate::model::disk::DevId;
use crate::model::kernel_log::LogPatterns;
use crate::model::process::{IoPrio, ProcessColumn, ProcessFilter, ProcessWindow, TaskKey};
use crate::model::system_state::SystemState;
use crate::sanitize::sanitize;
use std::time::Duration;

/// The whole state of the full-screen program.
pub struct App {
    /// What all views read: the machine, the findings, the clock, settings.
    pub shared: Shared,
    /// What is on screen, whichever view owns it.
    pub screen: ScreenState,
    /// The views, each with its own state.
    pub views: Views,
}

/// What is on screen: the tab, the focused pane, overlays and messages.
#[derive(Default)]
pub struct ScreenState {
    /// Columns and rows.
    pub size: (u16, u16),
    /// The tab shown.
    pub view: ViewId,
    /// Index of the focused pane among the visible ones.
    pub focus: usize,
    /// The focused pane fills the body.
    pub zoomed: bool,
    /// The help, a prompt or a dialog over the panes.
    pub overlay: Option<Overlay>,
    /// The detail page that is open.
    pub detail: Option<DetailPage>,
    /// Scroll position of the detail page.
    pub detail_scroll: Scroll,
    /// Whether the mouse is used.
    pub mouse: bool,
    /// The message in the footer.
    pub message: Option<StatusMessage>,
    /// The text last searched for.
    pub search: String,
    /// Screenshots.
    pub screenshot: super::screenshot::ScreenshotState,
}

/// Every view.
#[derive(Default)]
pub struct Views {
    /// Block devices and network file systems.
    pub devices: DevicesState,
    /// Processes and threads.
    pub processes: ProcessesState,
    /// The kernel log.
    pub kernel_log: KernelLogState,
    /// Benchmarks.
    pub bench: super::bench::BenchUi,
    /// Kernel settings.
    pub tune: super::tune::TuneUi,
    /// Experiments, shown in place of the Tune view.
    pub experiments: super::experiment::ExperimentUi,
    /// Findings.
    pub findings: FindingsState,
    /// Syncs.
    pub syncs: super::syncs::SyncsState,
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

impl ScreenState {
    /// Shows a message in the footer.
    pub fn info(&mut self, text: impl AsRef<str>) {
        self.message = Some(StatusMessage { text: sanitize(text.as_ref()), is_error: false, ticks_left: 4 });
    }

    /// Shows an error in the footer.
    pub fn error(&mut self, text: impl AsRef<str>) {
        self.message = Some(StatusMessage { text: sanitize(text.as_ref()), is_error: true, ticks_left: 8 });
    }
}

impl App {
    /// The state at start, with these settings.
    pub fn new(system: SystemState, size: (u16, u16), settings: &Settings, no_color: bool) -> Self {
        let mut app = Self {
            shared: Shared::new(system, no_color),
            screen: ScreenState { size, ..ScreenState::default() },
            views: Views::default(),
        };
        app.views.kernel_log.follows_newest = true;
        app.apply_settings(settings);
        app
    }

    /// Applies settings.
    pub fn apply_settings(&mut self, s: &Settings) {
        let (shared, screen, views) = (&mut self.shared, &mut self.screen, &mut self.views);
        shared.interval = Duration::from_secs_f64(s.interval);
        shared.theme_name = s.theme;
        shared.tracing = s.tracing;
        screen.view = s.view;
        screen.mouse = s.mouse;
        screen.screenshot.select_format(&s.screenshot.format);
        screen.screenshot.directory = s.screenshot.directory.clone();
        views.bench.directory = s.bench.directory.clone().into();
        views.devices.extended = s.devices.extended;
        views.devices.only_active = s.devices.only_active;
        views.processes.sort_column =
            super::panes::processes::sort_column_by_name(&s.processes.sort).unwrap_or_default();
        views.processes.reverse = s.processes.reverse;
        views.processes.filter.only_active = s.processes.only_active;
        views.processes.show_totals = s.processes.accumulated;
        views.processes.show_threads = s.processes.threads;
        views.tune.lease_secs = s.tune.lease;
        views.syncs.threshold_ms = s.syncs.threshold_ms;
        views.kernel_log.include = s.kernel.include.clone();
        views.kernel_log.exclude = s.kernel.exclude.clone();
        // Settings::parse has compiled the patterns already.
        views.kernel_log.patterns =
            LogPatterns::new(s.kernel.include.as_deref(), s.kernel.exclude.as_deref()).unwrap_or_default();
    }

    /// The settings in force.
    pub fn settings(&self) -> Settings {
        let (shared, screen, views) = (&self.shared, &self.screen, &self.views);
        let mut s = Settings {
            interval: shared.interval.as_secs_f64(),
            theme: shared.theme_name,
            view: screen.view,
            mouse: screen.mouse,
            tracing: shared.tracing,
            ..Settings::default()
        };
        s.screenshot.format = screen.screenshot.format().name.into();
        s.screenshot.directory = screen.screenshot.directory.clone();
        s.bench.directory = views.bench.directory_setting();
        s.devices.extended = views.devices.extended;
        s.devices.only_active = views.devices.only_active;
        s.processes.sort = super::panes::processes::sort_column_name(views.processes.sort_column).into();
        s.processes.reverse = views.processes.reverse;
        s.processes.only_active = views.processes.filter.only_active;
        s.processes.accumulated = views.processes.show_totals;
        s.processes.threads = views.processes.show_threads;
        s.tune.lease = views.tune.lease_secs;
        s.syncs.threshold_ms = views.syncs.threshold_ms;
        s.kernel.include = views.kernel_log.include.clone();
        s.kernel.exclude = views.kernel_log.exclude.clone();
        s
    }

    /// The focused pane.
    pub fn focused_pane(&self) -> PaneId {
        let panes = super::layout::visible_panes(self);
        panes.get(self.screen.focus.min(panes.len().saturating_sub(1))).copied().unwrap_or(PaneId::Devices)
    }
}
