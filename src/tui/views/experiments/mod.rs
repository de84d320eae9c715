//! State, actions, effects and events of experiments. They are shown in place of the knobs in the Tune view, where the
//! changes to try come from.

pub mod form;
pub mod form_page;
pub mod layout;
pub mod list;
pub mod page;
pub mod render;
pub mod run;
pub mod runner;
pub mod running;
pub mod update;

use crate::experiment::arm_settings::ValidatedSpec;
use crate::experiment::message::ExperimentMessage;
use crate::experiment::report::ExperimentReport;
use crate::experiment::spec::ExperimentSpec;
use crate::experiment::stored::StoredExperiment;
use crate::subprocess::runner::ChildEvent;
pub use crate::tui::action::ExperimentAction;
use crate::tui::action::ViewId;
pub use crate::tui::effect::ExperimentEffect;
pub use crate::tui::event::{ArmCheck, ArmSettings, ExperimentEvent};
use crate::tui::state::App;
use crate::tui::views::bench::OpenedResult;
use crate::tui::widgets::table::Scroll;
use form::ExperimentForm;
use run::{ExperimentEnding, TrackedExperiment};

/// State of the experiments.
#[derive(Debug, Default)]
pub struct ExperimentUi {
    /// Whether they are shown in place of the knobs.
    pub is_open: bool,
    /// The form for the next experiment.
    pub form: ExperimentForm,
    /// Result of the last check of the arms on this machine.
    pub arm_check: Option<ArmCheck>,
    /// The arms a start was requested for while they were still being checked; the confirmation follows the check.
    pub start_after_check: Option<ArmSettings>,
    /// The selected row of the list.
    pub selected: ExperimentRow,
    /// First visible row of the list.
    pub list_offset: usize,
    /// Selection among the lines of the form.
    pub form_scroll: Scroll,
    /// A result shown instead of the page of the selected row.
    pub opened: Option<OpenedResult<ExperimentReport>>,
    /// First visible line of a page of text.
    pub text_offset: usize,
    /// Stored experiments; `None` until they are loaded.
    pub stored: Option<Result<Vec<StoredExperiment>, String>>,
    /// The experiment marked for comparison.
    pub marked: Option<String>,
    /// Whether the stored experiments are being loaded.
    pub is_listing: bool,
    /// The experiment under way, or the last one of this session.
    pub run: Option<TrackedExperiment>,
    /// Number of experiments started.
    pub run_count: u64,
}

/// A row of the list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ExperimentRow {
    /// The experiment under way, or the last one.
    CurrentRun,
    /// The form for the next one.
    #[default]
    Next,
    /// A stored experiment, by its name.
    Stored(String),
}

impl ExperimentUi {
    /// The rows of the list.
    pub fn rows(&self) -> Vec<ExperimentRow> {
        let now = self.run.is_some().then_some(ExperimentRow::CurrentRun);
        let kept = self.stored_experiments().iter().map(|k| ExperimentRow::Stored(k.id.clone()));
        now.into_iter().chain([ExperimentRow::Next]).chain(kept).collect()
    }

    /// Stored experiments, as far as they are loaded.
    pub fn stored_experiments(&self) -> &[StoredExperiment] {
        self.stored.as_ref().and_then(|k| k.as_deref().ok()).unwrap_or_default()
    }

    /// The selected stored experiment.
    pub fn selected_stored(&self) -> Option<&StoredExperiment> {
        let ExperimentRow::Stored(id) = &self.selected else { return None };
        self.stored_experiments().iter().find(|k| k.id == *id)
    }

    /// Whether the page shows the form.
    pub fn is_planning(&self) -> bool {
        self.opened.is_none() && self.selected == ExperimentRow::Next
    }

    /// The experiment under way.
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

    /// Result of checking the arms of `spec`; `None` if they have not been checked.
    pub fn check_result(&self, spec: &ExperimentSpec) -> Option<&Result<ValidatedSpec, String>> {
        self.arm_check.as_ref().filter(|c| c.arms == ArmSettings::from_spec(spec)).map(|c| &c.result)
    }

    /// Status for the header while an experiment is under way: `experiment txlog 3/8 B 42 %`.
    pub fn status_text(&self) -> Option<String> {
        self.active_run().map(TrackedExperiment::status_text)
    }
}

impl App {
    /// The experiment of the form, with the duration its rounds will have.
    pub fn planned_experiment(&self) -> ExperimentSpec {
        let ui = &self.views.experiments;
        let mut spec = ui.form.to_spec(&self.views.bench.directory, self.views.tune.lease_secs);
        if let (Some(Ok(checked)), false) = (ui.check_result(&spec), ui.form.has_custom_duration()) {
            crate::experiment::description::extend_past_dirty_expire(&mut spec, checked);
        }
        spec
    }

    /// Whether an event changes nothing on screen, so that no frame need be drawn.
    pub fn is_experiment_event_invisible(&self, news: &ExperimentEvent) -> bool {
        let ui = &self.views.experiments;
        let ExperimentEvent::Child(number, ChildEvent::Message(ExperimentMessage::Progress(p))) = news else {
            return false;
        };
        let same = ui.active_run().is_some_and(|r| r.number == *number && r.status_text_at(Some(p)) == r.status_text());
        (self.screen.view != ViewId::Tune || !ui.is_open) && same
    }
}
