//! The state of experiments on the screen, what a person can mean there, what is wanted done and what is told.
//! They are a page of the Tune view: the change that is tried comes from there, and goes back there.

pub mod form;
pub mod place;
pub mod run;
pub mod runner;

use crate::experiment::arms::Checked;
use crate::experiment::kept::Kept;
use crate::experiment::message::Message;
use crate::experiment::report::Report;
use crate::experiment::spec::Spec;
use crate::tui::action::ViewId;
use crate::tui::bench::Opened;
use crate::tui::child_runner::ChildEvent;
use crate::tui::state::App;
use crate::tui::widgets::table::Scroll;
use form::Form;
use run::{Ended, Run};

/// State of the experiments.
#[derive(Debug, Default)]
pub struct ExperimentUi {
    /// They stand in the place of the knobs.
    pub open: bool,
    /// The next one.
    pub form: Form,
    /// What is known of its arms on this machine.
    pub checked: Option<Judged>,
    /// It was to be started while these were still being looked at: the question follows the look.
    pub wished: Option<Arms>,
    /// What is selected in the list.
    pub selected: Row,
    /// First line of the list on screen, as far as the selection allows.
    pub list_offset: usize,
    /// Selection among the lines of the form.
    pub lines: Scroll,
    /// What lies over the page of the selection.
    pub opened: Option<Opened<Report>>,
    /// First line of a page of text on screen.
    pub line: usize,
    /// Those kept; `None` before the first answer.
    pub kept: Option<Result<Vec<Kept>, String>>,
    /// The one to compare others with.
    pub marked: Option<String>,
    /// They are being listed.
    pub listing: bool,
    /// The one under way, or the last one of this session.
    pub run: Option<Run>,
    /// Experiments started.
    pub runs: u64,
}

/// What decides what the arms come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arms {
    /// What A sets.
    pub base: Vec<String>,
    /// What B sets.
    pub set: Vec<String>,
    /// Direct I/O is a control for some knobs only.
    pub control: bool,
}

/// What a look at the machine found about arms.
#[derive(Debug, Clone)]
pub struct Judged {
    /// Which.
    pub arms: Arms,
    /// Their values here, or why they make no experiment.
    pub found: Result<Checked, String>,
}

/// A row of the list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Row {
    /// The one under way, or the last one.
    Now,
    /// The next one.
    #[default]
    Plan,
    /// A kept one, by name.
    Kept(String),
}

/// A request about experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExperimentAction {
    /// From the knobs: try what is proposed, the preset, or the selected knob.
    Try,
    /// From the knobs: to the experiments as they were left.
    Return,
    /// Ask to start.
    Start,
    /// End it; a second time: kill it.
    Cancel,
    /// Change the selected line of the form.
    Edit,
    /// The selected line as it is by itself.
    Reset,
    /// Mark the selected one.
    Mark,
    /// Compare the marked one with the selected one.
    Compare,
    /// To the list.
    ToList,
    /// To the page.
    ToPage,
    /// Write the report shown to a file.
    Export,
    /// Set the B shown, on a lease.
    Apply,
    /// Let the B shown stay.
    Keep,
}

/// What the run loop is to do.
#[derive(Debug, Clone, PartialEq)]
pub enum ExperimentEffect {
    /// Find out what the arms come to here.
    Check(Box<Spec>),
    /// Start it in its child.
    Start {
        /// Its number; its news carry it.
        run: u64,
        /// What to do.
        spec: Box<Spec>,
    },
    /// Have it end with a report.
    Cancel,
    /// End it without one; the tuner takes the values back.
    Kill,
}

/// What comes back.
#[derive(Debug)]
pub enum ExperimentNews {
    /// What the arms come to.
    Checked(Judged),
    /// From the child of that number.
    Run(u64, ChildEvent<Message>),
}

impl Arms {
    /// Those of an experiment.
    pub fn of(spec: &Spec) -> Self {
        Self { base: spec.base.clone(), set: spec.set.clone(), control: spec.control }
    }
}

impl ExperimentUi {
    /// The rows of the list.
    pub fn rows(&self) -> Vec<Row> {
        let now = self.run.is_some().then_some(Row::Now);
        let kept = self.kept_ones().iter().map(|k| Row::Kept(k.id.clone()));
        now.into_iter().chain([Row::Plan]).chain(kept).collect()
    }

    /// Those kept, as far as they are known.
    pub fn kept_ones(&self) -> &[Kept] {
        self.kept.as_ref().and_then(|k| k.as_deref().ok()).unwrap_or_default()
    }

    /// The kept one that is selected.
    pub fn selected_kept(&self) -> Option<&Kept> {
        let Row::Kept(id) = &self.selected else { return None };
        self.kept_ones().iter().find(|k| k.id == *id)
    }

    /// Whether the page is the form.
    pub fn planning(&self) -> bool {
        self.opened.is_none() && self.selected == Row::Plan
    }

    /// The one under way.
    pub fn running(&self) -> Option<&Run> {
        self.run.as_ref().filter(|r| r.end.is_none())
    }

    /// The report on the page.
    pub fn shown(&self) -> Option<&Report> {
        match (&self.opened, &self.selected, &self.run) {
            (Some(Opened::Result(report)), ..) => Some(report),
            (None, Row::Now, Some(Run { end: Some(Ended::Report(report)), .. })) => Some(report),
            _ => None,
        }
    }

    /// What is known of the arms of `spec`; `None`: not looked at yet.
    pub fn found(&self, spec: &Spec) -> Option<&Result<Checked, String>> {
        self.checked.as_ref().filter(|c| c.arms == Arms::of(spec)).map(|c| &c.found)
    }

    /// `experiment txlog 3/8 B 42 %` while one is on, for the line at the top.
    pub fn word(&self) -> Option<String> {
        self.running().map(Run::word)
    }
}

impl App {
    /// The experiment of the form, with the length its rounds will have.
    pub fn planned_experiment(&self) -> Spec {
        let ui = &self.ui.experiment;
        let mut spec = ui.form.spec(&self.ui.bench.directory, self.ui.tune.lease_secs);
        if let (Some(Ok(checked)), false) = (ui.found(&spec), ui.form.has_length()) {
            crate::experiment::outline::outlast(&mut spec, checked);
        }
        spec
    }

    /// Whether news of an experiment change nothing on the screen: then no frame is made for them.
    pub fn experiment_unseen(&self, news: &ExperimentNews) -> bool {
        let ui = &self.ui.experiment;
        let ExperimentNews::Run(number, ChildEvent::Message(Message::Progress(p))) = news else { return false };
        let same = ui.running().is_some_and(|r| r.number == *number && r.word_at(Some(p)) == r.word());
        (self.ui.view != ViewId::Tune || !ui.open) && same
    }
}
