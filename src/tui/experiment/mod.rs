//! The state of experiments on the screen, what a person can mean there, what is wanted done and what is told.
//! They are a page of the Tune view: the change that is tried comes from there, and goes back there.

pub mod form;
pub mod layout;
pub mod run;
pub mod runner;

use crate::experiment::arm_settings::ValidatedSpec;
use crate::experiment::message::ExperimentMessage;
use crate::experiment::report::ExperimentReport;
use crate::experiment::spec::ExperimentSpec;
use crate::experiment::stored::StoredExperiment;
use crate::subprocess::runner::ChildEvent;
use crate::tui::action::ViewId;
use crate::tui::bench::OpenedResult;
use crate::tui::state::App;
use crate::tui::widgets::table::Scroll;
use form::ExperimentForm;
use run::{ExperimentEnding, TrackedExperiment};

/// State of the experiments.
#[derive(Debug, Default)]
pub struct ExperimentUi {
    /// They stand in the place of the knobs.
    pub is_open: bool,
    /// The next one.
    pub form: ExperimentForm,
    /// What is known of its arms on this machine.
    pub arm_check: Option<ArmCheck>,
    /// It was to be started while these were still being looked at: the question follows the look.
    pub start_after_check: Option<ArmSettings>,
    /// What is selected in the list.
    pub selected: ExperimentRow,
    /// First line of the list on screen, as far as the selection allows.
    pub list_offset: usize,
    /// Selection among the lines of the form.
    pub form_scroll: Scroll,
    /// What lies over the page of the selection.
    pub opened: Option<OpenedResult<ExperimentReport>>,
    /// First line of a page of text on screen.
    pub text_offset: usize,
    /// Those kept; `None` before the first answer.
    pub stored: Option<Result<Vec<StoredExperiment>, String>>,
    /// The one to compare others with.
    pub marked: Option<String>,
    /// They are being listed.
    pub is_listing: bool,
    /// The one under way, or the last one of this session.
    pub run: Option<TrackedExperiment>,
    /// Experiments started.
    pub run_count: u64,
}

/// What decides what the arms come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArmSettings {
    /// What A sets.
    pub base: Vec<String>,
    /// What B sets.
    pub set: Vec<String>,
    /// Direct I/O is a control for some knobs only.
    pub control: bool,
}

/// What a look at the machine found about arms.
#[derive(Debug, Clone)]
pub struct ArmCheck {
    /// Which.
    pub arms: ArmSettings,
    /// Their values here, or why they make no experiment.
    pub result: Result<ValidatedSpec, String>,
}

/// A row of the list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ExperimentRow {
    /// The one under way, or the last one.
    CurrentRun,
    /// The next one.
    #[default]
    Next,
    /// A kept one, by name.
    Stored(String),
}

/// A request about experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExperimentAction {
    /// From the knobs: try what is proposed, the preset, or the selected knob.
    TryPending,
    /// From the knobs: to the experiments as they were left.
    Reopen,
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
    FocusList,
    /// To the page.
    FocusPage,
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
    CheckArms(Box<ExperimentSpec>),
    /// Start it in its child.
    Start {
        /// Its number; its news carry it.
        run: u64,
        /// What to do.
        spec: Box<ExperimentSpec>,
    },
    /// Have it end with a report.
    Cancel,
    /// End it without one; the tuner takes the values back.
    Kill,
}

/// What comes back.
#[derive(Debug)]
pub enum ExperimentEvent {
    /// What the arms come to.
    ArmsChecked(ArmCheck),
    /// From the child of that number.
    Child(u64, ChildEvent<ExperimentMessage>),
}

impl ArmSettings {
    /// Those of an experiment.
    pub fn from_spec(spec: &ExperimentSpec) -> Self {
        Self { base: spec.base_assignments.clone(), set: spec.set_assignments.clone(), control: spec.control }
    }
}

impl ExperimentUi {
    /// The rows of the list.
    pub fn rows(&self) -> Vec<ExperimentRow> {
        let now = self.run.is_some().then_some(ExperimentRow::CurrentRun);
        let kept = self.stored_experiments().iter().map(|k| ExperimentRow::Stored(k.id.clone()));
        now.into_iter().chain([ExperimentRow::Next]).chain(kept).collect()
    }

    /// Those kept, as far as they are known.
    pub fn stored_experiments(&self) -> &[StoredExperiment] {
        self.stored.as_ref().and_then(|k| k.as_deref().ok()).unwrap_or_default()
    }

    /// The kept one that is selected.
    pub fn selected_stored(&self) -> Option<&StoredExperiment> {
        let ExperimentRow::Stored(id) = &self.selected else { return None };
        self.stored_experiments().iter().find(|k| k.id == *id)
    }

    /// Whether the page is the form.
    pub fn is_planning(&self) -> bool {
        self.opened.is_none() && self.selected == ExperimentRow::Next
    }

    /// The one under way.
    pub fn active_run(&self) -> Option<&TrackedExperiment> {
        self.run.as_ref().filter(|r| r.ending.is_none())
    }

    /// The report on the page.
    pub fn shown_report(&self) -> Option<&ExperimentReport> {
        match (&self.opened, &self.selected, &self.run) {
            (Some(OpenedResult::Result(report)), ..) => Some(report),
            (
                None,
                ExperimentRow::CurrentRun,
                Some(TrackedExperiment { ending: Some(ExperimentEnding::Report(report)), .. }),
            ) => Some(report),
            _ => None,
        }
    }

    /// What is known of the arms of `spec`; `None`: not looked at yet.
    pub fn check_result(&self, spec: &ExperimentSpec) -> Option<&Result<ValidatedSpec, String>> {
        self.arm_check.as_ref().filter(|c| c.arms == ArmSettings::from_spec(spec)).map(|c| &c.result)
    }

    /// `experiment txlog 3/8 B 42 %` while one is on, for the line at the top.
    pub fn status_text(&self) -> Option<String> {
        self.active_run().map(TrackedExperiment::status_text)
    }
}

impl App {
    /// The experiment of the form, with the length its rounds will have.
    pub fn planned_experiment(&self) -> ExperimentSpec {
        let ui = &self.views.experiments;
        let mut spec = ui.form.to_spec(&self.views.bench.directory, self.views.tune.lease_secs);
        if let (Some(Ok(checked)), false) = (ui.check_result(&spec), ui.form.has_custom_duration()) {
            crate::experiment::description::extend_past_dirty_expire(&mut spec, checked);
        }
        spec
    }

    /// Whether news of an experiment change nothing on the screen: then no frame is made for them.
    pub fn is_experiment_event_invisible(&self, news: &ExperimentEvent) -> bool {
        let ui = &self.views.experiments;
        let ExperimentEvent::Child(number, ChildEvent::Message(ExperimentMessage::Progress(p))) = news else {
            return false;
        };
        let same = ui.active_run().is_some_and(|r| r.number == *number && r.status_text_at(Some(p)) == r.status_text());
        (self.screen.view != ViewId::Tune || !ui.is_open) && same
    }
}
