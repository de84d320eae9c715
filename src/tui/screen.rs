//! What is on screen, whichever view owns it: the tab, the focus, prompts, dialogs and messages.

use super::action::ViewId;
use super::effect::TuneEffect;
use super::widgets::table::Scroll;
use crate::model::process::{IoPrio, TaskKey};
use crate::sanitize::sanitize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum PaneId {
    Devices,
    DeviceGraphs,
    Processes,
    Writeback,
    Memory,
    KernelLog,
    BenchResults,
    BenchPage,
    TuneKnobs,
    KnobPage,
    ChangeHistory,
    ExperimentList,
    ExperimentPage,
    Findings,
    IncidentPage,
    FindingsSummary,
    DeviceDetail,
    ProcessDetail,
    KernelLogDetail,
    PathDetail,
    Syncs,
    SlowSyncs,
    Files,
    Directories,
    ControlGroups,
    ControlGroupPage,
}

#[derive(Default)]
pub struct ScreenState {
    pub size: (u16, u16),
    pub view: ViewId,
    /// The tick at which Tab came to this view; `None`: its own key did. Tab passes views that are not meant.
    pub passed_at_seq: Option<u64>,
    /// Index of the focused pane among the visible ones.
    pub focus: usize,
    /// The focused pane fills the body.
    pub zoomed: bool,
    /// The help, a prompt or a dialog over the panes.
    pub overlay: Option<Overlay>,
    /// A pane of the view that opened the prompt or dialog; `None`: the program itself has.
    pub overlay_owner: Option<PaneId>,
    /// The detail page that is open in place of the tab; its view knows what of.
    pub detail: Option<PaneId>,
    pub detail_scroll: Scroll,
    pub mouse: bool,
    pub message: Option<StatusMessage>,
    pub search: String,
}

/// A message in the footer, shown for some ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusMessage {
    /// Sanitized text.
    pub text: String,
    pub is_error: bool,
    /// Ticks until it disappears.
    pub ticks_left: u8,
}

/// What is drawn over the panes.
#[derive(Debug, Clone, PartialEq)]
pub enum Overlay {
    Help(HelpState),
    Prompt(Prompt),
    Dialog(Dialog),
}

/// The help over the panes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelpState {
    /// Lines scrolled past.
    pub scroll: u16,
    /// The text that the lines shown contain.
    pub search: Prompt,
    /// The text is being typed.
    pub is_typing: bool,
}

impl Default for HelpState {
    fn default() -> Self {
        Self { scroll: 0, search: Prompt::new(PromptPurpose::Search, "search the help: ", ""), is_typing: false }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptPurpose {
    Search,
    Filter,
    UserFilter,
    Interval,
    Command,
    /// The column to sort by.
    Sort,
    /// The column to explain.
    Explain,
    /// The columns to show.
    Columns,
    Include,
    Exclude,
    /// I/O class and level of a task.
    Ionice(TaskKey),
    KnobValue,
    /// Duration of a lease, seconds.
    Lease,
    /// A line of the form on that page, by its index.
    FormLine(PaneId, usize),
    ExperimentReportPath,
    ScreenshotPath,
    RecordingPath,
    ReplayTime,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    pub purpose: PromptPurpose,
    pub label: String,
    pub text: String,
    /// The text when it was opened.
    pub original: String,
    /// Byte offset of the cursor.
    pub cursor: usize,
    /// Error found when Enter was pressed.
    pub error: Option<String>,
    /// Index of the entry chosen with the arrows, among those that match, in a prompt with a list.
    pub choice: Option<usize>,
}

/// A confirmation before something changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialog {
    pub title: String,
    /// What would be done, sanitized.
    pub text: String,
    /// Lines scrolled past, if it is longer than the screen.
    pub scroll: u16,
    /// What `y` does.
    pub on_confirm: PendingChange,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PendingChange {
    /// I/O class and level of a task.
    IoPrio(TaskKey, IoPrio),
    Tune(Confirmation),
    /// Start the benchmark or experiment whose page this is.
    Start(PaneId),
}

/// What a dialog of the Tune view asks to confirm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confirmation {
    Run(TuneEffect),
    /// Write these assignments into the files of this program, or remove them.
    Persist {
        /// `KNOB=VALUE`, or `KNOB` to remove.
        assignments: Vec<String>,
        remove: bool,
    },
    /// Copy the command that does it as root.
    CopyCommand(String),
    /// Quit with leased changes; three keys answer.
    Quit,
}

impl PendingChange {
    /// The keys that answer, for the footer of the dialog.
    pub fn key_hints(&self) -> &'static str {
        match self {
            PendingChange::IoPrio(..) | PendingChange::Start(_) => "y Yes   n No",
            PendingChange::Tune(Confirmation::Quit) => "u Undo  k Keep  l Let the lease run out  Esc Stay",
            PendingChange::Tune(Confirmation::CopyCommand(_)) => "y Copy  n No",
            PendingChange::Tune(_) => "y Yes  n No",
        }
    }
}

impl Prompt {
    pub(crate) fn new(purpose: PromptPurpose, label: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            purpose,
            label: label.into(),
            cursor: text.len(),
            original: text.clone(),
            text,
            error: None,
            choice: None,
        }
    }

    /// Replaces the text, with the cursor at its end.
    pub(crate) fn set_text(&mut self, text: impl Into<String>) {
        self.text = text.into();
        (self.cursor, self.error) = (self.text.len(), None);
    }
}

impl ScreenState {
    pub fn info(&mut self, text: impl AsRef<str>) {
        self.message = Some(StatusMessage { text: sanitize(text.as_ref()), is_error: false, ticks_left: 4 });
    }

    pub fn error(&mut self, text: impl AsRef<str>) {
        self.message = Some(StatusMessage { text: sanitize(text.as_ref()), is_error: true, ticks_left: 8 });
    }

    /// Counts a tick towards the end of the message.
    pub fn age_message(&mut self) {
        self.message = self.message.take().filter(|m| m.ticks_left > 1);
        if let Some(message) = &mut self.message {
            message.ticks_left -= 1;
        }
    }
}
