//! What differs between benchmarks and experiments.

use super::form_line::FormLine;
use super::state::{Run, RunTypes, RunView};
use crate::export::table::Table;
use crate::tui::view::{Action, Context, Event, Outbox, PaneId, Shared, Target};
use crate::tui::widgets::{CellBuffer, Rect, StyledLine};

/// The forms; the type itself is their state.
pub trait RunForms: RunTypes {
    /// Text of a form in the list.
    fn list_text(&self, form: usize) -> String;
    /// Title of a form's page.
    fn title(&self, form: usize) -> String;
    /// The lines of a form.
    fn lines(&self, form: usize, shared: &Shared) -> Vec<FormLine>;
    /// Sets a line other than the directory.
    /// Errors: what is wrong with the text; the form stays as it was.
    fn set_line(&mut self, form: usize, name: &str, text: &str) -> Result<(), String>;
    /// Resets a line to its default.
    /// Errors: why the plan would be invalid; the form stays as it was.
    fn reset_line(&mut self, form: usize, name: &str) -> Result<(), String>;
    /// What a run would do, and the state of the target.
    fn plan_text(&self, form: usize, shared: &Shared) -> Vec<StyledLine>;
    /// The value beside `text` in the list of values of a line that is typed, if it has one.
    fn neighbour_value(_line: usize, _text: &str, _by: isize) -> Option<&'static str> {
        None
    }
}

pub trait RunStatus: RunTypes {
    /// Takes a message of its child process.
    fn receive(run: &mut Run<Self>, message: Self::Message);
    /// The run in the header, such as `bench randrw 42 %`.
    fn status_text(run: &Run<Self>) -> String;
    /// What hangs.
    fn blocked_text(run: &Run<Self>, now_ns: u64) -> Option<String>;
    fn phase_text(run: &Run<Self>) -> String;
    /// Finished share, 0 to 1.
    fn fraction_done(run: &Run<Self>) -> Option<f64>;
    fn figure_lines(run: &Run<Self>, width: usize) -> Vec<StyledLine>;
    /// Further figures for the export.
    fn summary_lines(_run: &Run<Self>) -> Vec<StyledLine> {
        Vec::new()
    }
    /// Draws graphs below the figures.
    fn draw_graphs(run: &Run<Self>, cx: &Context, area: Rect, buf: &mut CellBuffer);
}

pub trait RunReports: RunTypes {
    /// The outcome in the list, in few words.
    fn outcome_text(report: &Self::Report) -> &'static str;
    /// How the run ended, for the message line.
    fn end_text(report: &Self::Report) -> String;
    /// A report as text for a page.
    fn report_lines(report: &Self::Report, shared: &Shared, width: u16) -> Vec<StyledLine>;
    /// Two reports side by side.
    /// Errors: why they cannot be compared, and what to do.
    fn compare(both: &[Self::Report; 2], width: u16) -> Result<String, String>;
    fn report_table(report: &Self::Report) -> Table;
}

/// Everything that differs between benchmarks and experiments.
pub trait RunKind: RunForms + RunStatus + RunReports {
    /// Panes of its tab with their areas; `focus`: index of the focused one.
    fn arrange_panes(body: Rect, focus: usize) -> Vec<(PaneId, Rect)>;
    /// Asks to start a form, or says why that is impossible.
    fn ask_start(view: &mut RunView<Self>, form: usize, cx: &Context, out: &mut Outbox);
    /// Called after another tab, or the same one again, was shown.
    fn on_tab(view: &mut RunView<Self>, cx: &Context, out: &mut Outbox);
    /// Prepares to show a target. False: it belongs to another view.
    fn on_target(view: &mut RunView<Self>, target: &Target, cx: &Context, out: &mut Outbox) -> bool;
    /// Handles an event of its child process or a reply of its store; returns that of another view.
    fn on_event(view: &mut RunView<Self>, event: Event, cx: &Context, out: &mut Outbox) -> Option<Event>;
    fn on_edited(_view: &mut RunView<Self>, _cx: &Context, _out: &mut Outbox) {}
    fn on_ended(_view: &mut RunView<Self>, _cx: &Context, _out: &mut Outbox) {}
    /// Handles an action that only this kind has. False: it has no meaning.
    fn on_action(_view: &mut RunView<Self>, _action: Action, _cx: &Context, _out: &mut Outbox) -> bool {
        false
    }
    /// Handles input that is no line of a form.
    /// Errors: what is wrong with the text.
    fn on_input(_view: &mut RunView<Self>, _text: &str, _cx: &Context, _out: &mut Outbox) -> Result<(), String> {
        Ok(())
    }
}
