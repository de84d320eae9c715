//! What is on screen, whichever view owns it: the tab, the focus, prompts, dialogs and messages.

use super::action::ViewId;
use super::pane::PaneId;
use super::widgets::table::Scroll;
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
    /// A pane of the view that opened the prompt or dialog; `None`: the program itself has.
    pub overlay_owner: Option<PaneId>,
    /// The detail page that is open in place of the tab; its view knows what of.
    pub detail: Option<PaneId>,
    /// Scroll position of the detail page.
    pub detail_scroll: Scroll,
    /// Whether the mouse is used.
    pub mouse: bool,
    /// The message in the footer.
    pub message: Option<StatusMessage>,
    /// The text last searched for.
    pub search: String,
}

/// A message in the footer, shown for some ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusMessage {
    /// Sanitized text.
    pub text: String,
    /// It is an error.
    pub is_error: bool,
    /// Ticks until it disappears.
    pub ticks_left: u8,
}

/// What is drawn over the panes.
#[derive(Debug, Clone, PartialEq)]
pub enum Overlay {
    /// The help, scrolled by so many lines.
    Help(u16),
    /// A prompt.
    Prompt(Prompt),
    /// A confirmation.
    Dialog(Dialog),
}

/// What a prompt asks for.
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
    /// I/O class and level of a task.
    Ionice(TaskKey),
    /// Value of the edited knob.
    KnobValue,
    /// Duration of a lease, seconds.
    Lease,
    /// A line of the form on that page, by its index.
    FormLine(PaneId, usize),
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
    /// What it asks for.
    pub purpose: PromptPurpose,
    /// The text typed.
    pub text: String,
    /// Byte offset of the cursor.
    pub cursor: usize,
    /// Error found when Enter was pressed.
    pub error: Option<String>,
}

/// A confirmation before something changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialog {
    /// Title.
    pub title: String,
    /// What would be done, sanitized.
    pub text: String,
    /// Lines scrolled past, if it is longer than the screen.
    pub scroll: u16,
    /// What `y` does.
    pub on_confirm: PendingChange,
}

/// A change that waits for confirmation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PendingChange {
    /// I/O class and level of a task.
    IoPrio(TaskKey, IoPrio),
    /// A change in the Tune view.
    Tune(Confirmation),
    /// Start the benchmark or experiment whose page this is.
    Start(PaneId),
}

/// What a dialog of the Tune view asks to confirm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confirmation {
    /// Apply these assignments on a lease.
    Apply(Vec<String>),
    /// Apply these assignments without a lease.
    ApplyPermanent(Vec<String>),
    /// Revert these changes.
    Undo(Vec<u64>),
    /// Write these assignments into the files of this program, or remove them.
    Persist {
        /// `KNOB=VALUE`, or `KNOB` to remove.
        assignments: Vec<String>,
        /// Whether to remove.
        remove: bool,
    },
    /// Copy the command that does it as root.
    CopyCommand(String),
    /// Quit with leased changes; three keys answer.
    Quit,
}

impl Confirmation {
    /// The keys that answer, for the footer of the dialog.
    pub fn key_hints(&self) -> &'static str {
        match self {
            Confirmation::Quit => "u Undo  k Keep  l Let the lease run out  Esc Stay",
            Confirmation::CopyCommand(_) => "y Copy  n No",
            _ => "y Yes  n No",
        }
    }
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

    /// Counts a tick towards the end of the message.
    pub fn age_message(&mut self) {
        self.message = self.message.take().filter(|m| m.ticks_left > 1);
        if let Some(message) = &mut self.message {
            message.ticks_left -= 1;
        }
    }
}
