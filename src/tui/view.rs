//! The interface between the program and its views.
//!
//! A view owns its state and the panes that show it. It reads what all views share through [`Context`], changes only
//! itself, and asks for everything else (a job, another view, a prompt, a message) through [`Outbox`]. A tab is a layout
//! of panes, possibly of several views.

pub(crate) use super::action::{Action, ExperimentAction, ReplayAction, RunAction, TuneAction, ViewId};
pub(crate) use super::effect::{Effect, LeaseCommand, RecordingEffect, ReplayEffect, RunEffect, TuneEffect};
pub(crate) use super::event::{ArmCheck, Event, ReplayEvent, TuneEvent};
pub(crate) use super::keymap::KeyContext;
pub(crate) use super::screen::{
    Confirmation, Dialog, HelpState, Overlay, PaneId, PendingChange, Prompt, PromptPurpose, ScreenState,
};
pub(crate) use super::shared::{Running, Shared};
use super::widgets::{CellBuffer, ColumnState, RowSearch, Theme, draw_frame, draw_title};
use crate::export::table::Table;
use crate::model::column::{ColumnSource, ColumnSpec, FigureSpec};
use crate::model::disk::DevId;
use crate::model::observation::Change;
use crate::model::process::TaskKey;
use crate::model::raw_bytes::RawBytes;
use crossterm::event::KeyCode;
use ratatui::layout::{Position, Rect};
use std::path::PathBuf;

/// What the program must know of a pane beside what its view draws: its id, its name in the file name of a screenshot, and
/// the key contexts that apply while it is focused, most specific first; `Global` follows them.
pub(crate) type PaneSpec = (PaneId, &'static str, &'static [KeyContext]);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScreenLayout {
    pub header: Rect,
    /// The panes, in focus order.
    pub panes: Vec<(PaneId, Rect)>,
    /// The titles of the views, in the border at the bottom of the panes.
    pub tabs: Rect,
    pub footer: Rect,
    /// The timeline of a replay; empty elsewhere.
    pub timeline: Rect,
}

impl ScreenLayout {
    /// The pane at a cell, with its index in focus order. A line that two panes share belongs to the one whose title is
    /// there.
    pub fn pane_at(&self, x: u16, y: u16) -> Option<(usize, PaneId, Rect)> {
        let inside = |r: &Rect| r.contains(Position { x, y });
        let is_own = |r: &Rect| inside(r) && y + 1 < r.bottom();
        let at = self.panes.iter().position(|(_, r)| is_own(r));
        let at = at.or_else(|| self.panes.iter().position(|(_, r)| inside(r)))?;
        Some((at, self.panes[at].0, self.panes[at].1))
    }

    pub fn pane_area(&self, id: PaneId) -> Option<Rect> {
        self.panes.iter().find(|(p, _)| *p == id).map(|p| p.1)
    }
}

pub struct Context<'a> {
    /// The machine, the findings, settings.
    pub shared: &'a Shared,
    /// The tab, prompts and dialogs.
    pub screen: &'a ScreenState,
    /// The areas of the panes; empty while the layout itself is computed.
    pub layout: &'a ScreenLayout,
    pub focused: PaneId,
    pub theme: Theme,
}

impl<'a> Context<'a> {
    pub fn new(shared: &'a Shared, screen: &'a ScreenState, layout: &'a ScreenLayout, focused: PaneId) -> Self {
        Self { shared, screen, layout, focused, theme: shared.theme() }
    }

    /// Draws the frame of a pane with a title and a note; returns the inside. The borders of panes are there already.
    pub fn draw_frame(&self, buf: &mut CellBuffer, pane: PaneId, area: Rect, title: &str, note: &str) -> Rect {
        if self.layout.pane_area(pane) == Some(area) {
            return draw_title(buf, area, title, note, &self.theme);
        }
        draw_frame(buf, area, title, note, self.is_focused(pane), &self.theme)
    }

    /// Whether that tab is open to stay: its own key was pressed, or a tick has gone by since Tab came to it.
    pub fn is_settled_on(&self, view: ViewId) -> bool {
        let newest = self.shared.system.snapshot.seq;
        self.screen.view == view && self.screen.passed_at_seq.is_none_or(|seq| newest > seq)
    }

    /// Whether a pane is drawn as the focused one: it is, or it is the only one.
    pub fn is_focused(&self, pane: PaneId) -> bool {
        self.focused == pane || self.layout.panes.len() == 1
    }

    /// Area of a pane without its frame; empty if it is not visible.
    pub fn inner_area(&self, pane: PaneId) -> Rect {
        let area = self.layout.pane_area(pane).unwrap_or_default();
        area.inner(ratatui::layout::Margin::new(1, 1))
    }
}

/// A column of a list, for the menu of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnInfo {
    pub header: &'static str,
    /// Meaning and unit.
    pub help: &'static str,
    pub source: &'static ColumnSource,
    pub is_sorted: bool,
    pub can_sort: bool,
}

impl ColumnInfo {
    /// The columns of a table, the one of index `sorted` marked.
    pub(crate) fn of_table<C: Copy, V: Copy>(
        columns: &[ColumnSpec<C, V>],
        sorted: Option<usize>,
        source: impl Fn(C) -> &'static ColumnSource,
    ) -> Vec<Self> {
        let info = |(i, c): (usize, &ColumnSpec<C, V>)| Self {
            is_sorted: sorted == Some(i),
            can_sort: true,
            ..Self::new(c, source(c.id))
        };
        columns.iter().enumerate().map(info).collect()
    }

    pub(crate) fn new<C, V>(column: &ColumnSpec<C, V>, source: &'static ColumnSource) -> Self {
        Self { header: column.header, help: column.help, source, is_sorted: false, can_sort: false }
    }

    /// Figures that are in no table, to be explained only.
    pub(crate) fn of_figures(figures: &'static [FigureSpec]) -> impl Iterator<Item = Self> {
        figures.iter().map(|figure| Self::new(figure, figure.value))
    }
}

/// A column that a list can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnChoice {
    pub header: &'static str,
    pub help: &'static str,
    pub is_shown: bool,
}

impl ColumnChoice {
    /// The columns shown, then those of the others that are not among them.
    pub(crate) fn list<C: Copy + PartialEq + 'static, V: Copy + 'static>(
        shown: &[ColumnSpec<C, V>],
        others: impl Iterator<Item = &'static ColumnSpec<C, V>>,
    ) -> Vec<Self> {
        let choice = |c: &ColumnSpec<C, V>, is_shown| Self { header: c.header, help: c.help, is_shown };
        let mut out: Vec<Self> = shown.iter().map(|c| choice(c, true)).collect();
        for column in others {
            if !shown.iter().any(|c| c.id == column.id) && !out.iter().any(|c| c.header == column.header) {
                out.push(choice(column, false));
            }
        }
        out
    }
}

/// A click inside the frame of a pane.
#[derive(Debug, Clone, Copy)]
pub struct PaneClick {
    pub pane: PaneId,
    /// The pane without its frame.
    pub inner: Rect,
    pub x: u16,
    pub y: u16,
}

/// A place in the program that a view can send the user to.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// A tab.
    Tab(ViewId),
    /// The page of a device.
    Device(DevId),
    /// The page of a device, with the quantity of that index in its graphs.
    DeviceGraph(DevId, usize),
    /// The page of a task.
    Task(TaskKey),
    /// The Processes tab, with this filter.
    Processes(String),
    /// The control groups, in place of the processes.
    Groups,
    /// The page of a directory.
    Path(String),
    /// The Kernel log tab, at the record of this sequence number if it is still stored.
    KernelLogRecord(Option<u64>),
    /// The Tune tab, at the first of these knobs.
    Knobs(Vec<String>),
    /// The Bench tab, at a profile, to be run in a directory.
    Profile {
        /// Name of the workload.
        name: &'static str,
        /// Where to run it; `None`: the directory already chosen.
        directory: Option<RawBytes>,
    },
    /// The experiments, in place of the knobs; with assignments, the form for the next one.
    Experiments(Option<ExperimentArm>),
    /// Something that another view does.
    Ask(ViewRequest),
}

/// What arm B of the next experiment is to set.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentArm {
    /// `KNOB=VALUE` each.
    pub assignments: Vec<String>,
    /// Whether the user still has to choose a value.
    pub edit: bool,
}

/// What one view asks another one to do.
#[derive(Debug, Clone, PartialEq)]
pub enum ViewRequest {
    /// Tune: ask whether to apply assignments, on a lease or for good.
    ApplyKnobs {
        /// `KNOB=VALUE` each.
        assignments: Vec<String>,
        /// Whether they revert by themselves.
        on_lease: bool,
    },
    /// Tune: keep a leased change.
    KeepChange(u64),
    /// Tune: offer to copy the command line that does something as root.
    OfferRootCommand {
        /// What needs root, the start of a sentence.
        what: &'static str,
        args: Vec<String>,
    },
    /// Tune: read the knobs and the changes again.
    RefreshKnobs,
    /// Experiments: check the arms again, because knobs may have changed.
    CheckArms,
}

/// What a view asks of the program above it.
#[derive(Debug)]
pub enum Request {
    Navigate(Target),
    Info(String),
    Error(String),
    /// Ask for a line of input or a confirmation; the view of this pane gets it by [`View::on_input`] or
    /// [`View::on_confirm`].
    Open(Option<PaneId>, Overlay),
    /// Show a detail page in place of the tab.
    OpenPage(PaneId),
    FocusPane(usize),
    /// Show a pane of the tab, not zoomed, and focus it.
    ShowPane(PaneId),
    SetDirectory(PathBuf),
    InspectTarget,
}

/// What a view wants done after it has handled something.
#[derive(Debug, Default)]
pub struct Outbox {
    /// A pane of the view that asks.
    pub owner: Option<PaneId>,
    pub effects: Vec<Effect>,
    /// For the program above the views, in order.
    pub requests: Vec<Request>,
}

impl Outbox {
    pub(crate) fn request(&mut self, request: Request) {
        self.requests.push(request);
    }

    pub fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    pub fn navigate(&mut self, target: Target) {
        self.request(Request::Navigate(target));
    }

    pub fn info(&mut self, text: impl Into<String>) {
        self.request(Request::Info(text.into()));
    }

    pub fn error(&mut self, text: impl Into<String>) {
        self.request(Request::Error(text.into()));
    }

    pub(crate) fn open_prompt(&mut self, purpose: PromptPurpose, label: impl Into<String>, text: impl Into<String>) {
        self.request(Request::Open(self.owner, Overlay::Prompt(Prompt::new(purpose, label, text))));
    }

    pub fn open_dialog(&mut self, dialog: Dialog) {
        self.request(Request::Open(self.owner, Overlay::Dialog(dialog)));
    }

    pub fn focus_pane(&mut self, index: usize) {
        self.request(Request::FocusPane(index));
    }

    pub fn ask(&mut self, request: ViewRequest) {
        self.request(Request::Navigate(Target::Ask(request)));
    }
}

/// Sorts or scrolls so many columns if the key is for that; says whether it is.
pub(crate) fn change_columns(columns: &mut ColumnState, action: Action, count: usize) -> bool {
    match action {
        Action::SortLeft => columns.move_sorted(-1, count),
        Action::SortRight => columns.move_sorted(1, count),
        Action::ColumnsLeft => columns.scroll(-1, count),
        Action::ColumnsRight => columns.scroll(1, count),
        Action::ReverseSort => columns.reverse = !columns.reverse,
        _ => return false,
    }
    true
}

/// A view. Only `panes`, `render` and `table` are required.
pub trait View {
    fn panes(&self) -> &'static [PaneSpec];

    /// Panes of its tab with their areas in `body`, in focus order. Default: the first pane fills it.
    fn layout(&self, _cx: &Context, body: Rect) -> Vec<(PaneId, Rect)> {
        vec![(self.panes()[0].0, body)]
    }

    /// Draws a pane with its frame.
    fn render(&self, pane: PaneId, cx: &Context, area: Rect, buf: &mut CellBuffer);

    /// The content of a pane as a table, for the clipboard and for screenshots.
    fn table(&self, pane: PaneId, cx: &Context) -> Table;

    /// Rows that a detail page can be scrolled by.
    fn row_count(&self, _pane: PaneId, _cx: &Context) -> usize {
        0
    }

    /// Moves the selection of a pane, or scrolls it. False: it has none.
    fn move_selection(&mut self, _pane: PaneId, _by: isize, _cx: &Context) -> bool {
        false
    }

    /// Handles an action while one of its panes is focused. False: the action means nothing there.
    fn on_action(&mut self, _pane: PaneId, _action: Action, _cx: &Context, _out: &mut Outbox) -> bool {
        false
    }

    fn on_click(&mut self, _click: PaneClick, _cx: &Context, _out: &mut Outbox) {}

    /// Called for every new sample, and after every change that may alter which rows are visible.
    fn refresh(&mut self, _cx: &Context, _out: &mut Outbox) {}

    /// Called after another tab, or the same one again, was shown: `cx.screen.view`.
    fn on_tab(&mut self, _cx: &Context, _out: &mut Outbox) {}

    /// Prepares to show a target of its own. False: it belongs to another view. Called before the tab changes.
    fn on_target(&mut self, _target: &Target, _cx: &Context, _out: &mut Outbox) -> bool {
        false
    }

    /// Called after an observation has changed the machine in [`Context::shared`].
    fn on_change(&mut self, _change: Change, _cx: &Context, _out: &mut Outbox) {}

    /// Handles an event of its own child process, or the reply to one of its jobs; returns the event of another view.
    fn on_event(&mut self, event: Event, _cx: &Context, _out: &mut Outbox) -> Option<Event> {
        Some(event)
    }

    /// Called before the program ends. True: the view asks first.
    fn on_quit(&mut self, _cx: &Context, _out: &mut Outbox) -> bool {
        false
    }

    /// Writes what other views read of it; called after every change of the view.
    fn publish(&self, _shared: &mut Shared) {}

    /// Does what was confirmed in its own dialog.
    fn on_confirm(&mut self, _change: PendingChange, _cx: &Context, _out: &mut Outbox) {}

    /// Handles the up or down arrow in its own prompt. False: it means nothing there.
    fn on_prompt_key(&mut self, _prompt: &mut Prompt, _key: KeyCode) -> bool {
        false
    }

    /// Draws its own prompt in place. False: it is drawn in the footer.
    fn draw_prompt(&self, _prompt: &Prompt, _cx: &Context, _buf: &mut CellBuffer) -> bool {
        false
    }

    /// Handles the line typed into its own prompt.
    /// Errors: what is wrong with the text; the prompt stays open and shows it.
    fn on_input(&mut self, _: PromptPurpose, _text: &str, _cx: &Context, _out: &mut Outbox) -> Result<(), String> {
        Ok(())
    }

    /// Runs its own command, as typed after `:`; `None`: it is none of this view.
    fn on_command(&mut self, _: &str, _args: &str, _cx: &Context, _out: &mut Outbox) -> Option<Result<(), String>> {
        None
    }

    /// Text that rows of a pane must contain.
    fn filter(&self, _pane: PaneId) -> &str {
        ""
    }

    /// Shows only rows that contain a text.
    fn set_filter(&mut self, _pane: PaneId, _text: &str, _cx: &Context) {}

    /// Shows all rows again.
    fn clear_filter(&mut self, pane: PaneId, cx: &Context) {
        self.set_filter(pane, "", cx);
    }

    /// The columns of a list, to sort by and to explain; the figures of a page, to explain.
    fn columns(&self, _pane: PaneId, _cx: &Context) -> Vec<ColumnInfo> {
        Vec::new()
    }

    /// Sorts a list by that column among those of [`View::columns`] that can be sorted by; `None`: its default order.
    fn sort_by(&mut self, _pane: PaneId, _column: Option<usize>, _cx: &Context) {}

    /// The columns that a list can show, those shown first and in their order; empty: they cannot be chosen.
    fn column_choices(&self, _pane: PaneId, _cx: &Context) -> Vec<ColumnChoice> {
        Vec::new()
    }

    /// Shows the columns of these headings, in this order; none: as at first.
    fn set_columns(&mut self, _pane: PaneId, _headers: &[&str], _cx: &Context) {}

    /// The place among [`View::columns`] of the column under the mouse.
    fn column_at(&self, _click: PaneClick, _cx: &Context) -> Option<usize> {
        None
    }

    /// Selects the row of a pane that a search finds. False: there is none.
    fn find_row(&mut self, _pane: PaneId, _search: &RowSearch, _cx: &Context) -> bool {
        false
    }
}
