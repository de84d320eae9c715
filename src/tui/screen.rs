//! What is on screen, whichever view owns it: the tab, the focus, prompts, dialogs and messages.

use super::action::ViewId;
use super::widgets::table::Scroll;
use crate::model::disk::DevId;
use crate::model::process::{IoPrio, TaskKey};
use crate::sanitize::sanitize;

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
