//! The form of the next experiment: its workload, what the arms set, the number of rounds, what to do at the end.

use crate::bench::params;
use crate::bench::plan::BenchPlan;
use crate::bench::workloads::{WORKLOADS, Workload, find_workload};
use crate::experiment::arm_settings::ValidatedSpec;
use crate::experiment::description::{describe_experiment, extend_past_dirty_expire};
use crate::experiment::spec::{ExperimentSpec, OnComplete};
use crate::sanitize::sanitize;
use crate::tui::view::{Action, ArmCheck, RunAction, Shared};
use crate::tui::views::runs::{FormLine, RunForms};
use crate::tui::widgets::{StyledLine, TextStyle};
use crate::tuning::sudo::shell_quote;
use smart_default::SmartDefault;

/// The workload offered first; it shows the effect of page cache settings.
const DEFAULT_WORKLOAD: &str = "txlog";
/// Parameters that determine how long a round takes.
const DURATION_PARAMS: [&str; 3] = ["time", "io-size", "transactions"];
const WORKLOAD: &str = "workload";
/// The line of what arm B sets.
pub(super) const ARM_B: &str = "B sets";
const ARM_A: &str = "A sets";
/// Shown when a start is requested while the arms are still being checked.
pub(super) const KNOBS_PENDING: &str = "the knobs are still being read; confirmation follows";

/// The next experiment.
#[derive(SmartDefault)]
pub struct ExperimentForm {
    /// Index of the workload in [`WORKLOADS`].
    #[default(WORKLOADS.iter().position(|w| w.name == DEFAULT_WORKLOAD).unwrap_or(0))]
    pub workload: usize,
    /// Each workload's plan without a directory, and whether the user chose the duration.
    #[default(WORKLOADS.iter().map(|w| (w.defaults(), false)).collect())]
    plans: Vec<(BenchPlan, bool)>,
    /// Everything else; its plan is not used.
    pub spec: ExperimentSpec,
    /// Result of the last check of the arms on this machine.
    pub arm_check: Option<ArmCheck>,
    /// Whether a start was requested while the arms were still being checked; the confirmation follows the check.
    pub start_after_check: bool,
}

/// The lines that set something of the experiment itself: name, description, choices, unit. What the arms set comes first.
const SPEC_LINES: [(&str, &str, &[&str], &str); 7] = [
    (ARM_B, "KNOB[@WHERE]=VALUE, one or several", &[], ""),
    (ARM_A, "the same for A; empty: the current values", &[], ""),
    ("rounds", "per arm, 1 to 50; fewer than 4 cannot show a difference", &[], ""),
    ("control", "repeat with direct I/O, which dirty-page knobs do not affect", &["off", "on"], ""),
    (
        "then",
        "if B is better: undo, keep until the next boot, or lease (its length is set in Tune)",
        &["undo", "keep", "lease"],
        "",
    ),
    ("baseline", "seconds to observe other load before a round, 0 to 60", &[], " s"),
    ("drain-limit", "time limit for writing back dirty pages before a round, 1 to 3600 s", &[], " s"),
];

/// The value of a line, in the form in which it is typed.
fn spec_value(spec: &ExperimentSpec, name: &str) -> String {
    match name {
        ARM_B => shell_join(&spec.set_assignments),
        ARM_A => shell_join(&spec.base_assignments),
        "rounds" => spec.rounds.to_string(),
        "control" => if spec.control { "on" } else { "off" }.into(),
        "then" => match spec.on_complete {
            OnComplete::Undo => "undo".into(),
            OnComplete::Keep => "keep".into(),
            OnComplete::Lease(_) => "lease".into(),
        },
        "baseline" => (spec.baseline_ms / 1000).to_string(),
        _ => (spec.drain_limit_ms / 1000).to_string(),
    }
}

/// Sets a line; `text` is one of its choices, if there are any.
fn set_spec_value(spec: &mut ExperimentSpec, name: &str, text: &str) -> Result<(), String> {
    match name {
        ARM_B => spec.set_assignments = shell_split(text)?,
        ARM_A => spec.base_assignments = shell_split(text)?,
        "rounds" => spec.rounds = parse_number(text, 1, 50)? as u32,
        "control" => spec.control = text == "on",
        "then" if text == "keep" => spec.on_complete = OnComplete::Keep,
        "then" if text == "lease" => spec.on_complete = OnComplete::Lease(0),
        "then" => spec.on_complete = OnComplete::Undo,
        "baseline" => spec.baseline_ms = parse_number(text, 0, 60)? * 1000,
        _ => spec.drain_limit_ms = parse_number(text, 1, 3600)? * 1000,
    }
    Ok(())
}

fn parse_number(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let n = text.parse::<u64>().ok().filter(|n| (least..=most).contains(n));
    n.ok_or_else(|| format!("\"{text}\": must be {least} to {most}"))
}

impl ExperimentForm {
    fn selected_workload(&self) -> &'static Workload {
        WORKLOADS[self.workload]
    }

    /// The experiment described by the form.
    pub fn to_spec(&self, shared: &Shared) -> ExperimentSpec {
        let mut plan = self.plans[self.workload].0.clone();
        if self.selected_workload().needs_directory {
            plan.directory.clone_from(&shared.target.directory);
        }
        let on_complete = match self.spec.on_complete {
            OnComplete::Lease(_) => OnComplete::Lease(shared.knobs.lease_secs),
            other => other,
        };
        ExperimentSpec { plan, on_complete, ..self.spec.clone() }
    }

    /// The same, with the duration its rounds will have.
    pub fn planned(&self, shared: &Shared) -> ExperimentSpec {
        let mut spec = self.to_spec(shared);
        if let (Some(Ok(checked)), false) = (self.check_result(&spec), self.has_custom_duration()) {
            extend_past_dirty_expire(&mut spec, checked);
        }
        spec
    }

    fn has_custom_duration(&self) -> bool {
        self.plans[self.workload].1
    }

    /// Result of checking the arms of `spec`; `None` if they have not been checked.
    pub fn check_result(&self, spec: &ExperimentSpec) -> Option<&Result<ValidatedSpec, String>> {
        self.arm_check.as_ref().filter(|check| check.holds_for(spec)).map(|check| &check.result)
    }

    /// Why the experiment cannot be started now, and what to do.
    pub fn start_refusal(&self, spec: &ExperimentSpec, shared: &Shared) -> Option<String> {
        if spec.set_assignments.is_empty() {
            return Some("nothing to compare: fill in what B sets, as in vm.dirty_ratio=80".into());
        }
        if let Err(why) = spec.check() {
            return Some(sanitize(why.0));
        }
        let refusal = |plan: &BenchPlan| shared.target.refusal(find_workload(&plan.profile)?, plan);
        if let Some(why) = refusal(&spec.plan).or_else(|| refusal(&spec.control_plan()?)) {
            return Some(why);
        }
        match self.check_result(spec) {
            None => Some(KNOBS_PENDING.into()),
            Some(Err(why)) => Some(why.clone()),
            Some(Ok(_)) => None,
        }
    }

    fn set_workload(&mut self, name: &str) -> Result<(), String> {
        let at = WORKLOADS.iter().position(|w| w.name == name);
        self.workload = at.ok_or_else(|| format!("no workload \"{name}\"; {}", WORKLOADS.map(|w| w.name).join(" ")))?;
        Ok(())
    }

    fn set_param(&mut self, name: &str, text: &str) -> Result<(), String> {
        let workload = self.selected_workload();
        let (plan, is_custom) = &mut self.plans[self.workload];
        let mut new = plan.clone();
        params::set_param(&mut new, name, text).map_err(|err| err.0)?;
        // As on the command line: with a time limit, the number of transactions is unlimited.
        let untouched = new.txlog.transactions == workload.defaults().txlog.transactions;
        if name == "time" && new.time_ms > 0 && new.profile == "txlog" && untouched {
            new.txlog.transactions = 0;
        }
        new.check().and_then(|()| (workload.check)(&new)).map_err(|err| err.0)?;
        *plan = new;
        *is_custom |= DURATION_PARAMS.contains(&name);
        Ok(())
    }

    fn reset_param(&mut self, name: &str) {
        let defaults = self.selected_workload().defaults();
        let (plan, is_custom) = &mut self.plans[self.workload];
        let Some(param) = params::find_param(name) else { return };
        // A default is always valid.
        let _ = param.set(plan, &param.get(&defaults));
        let differs = |name: &&str| params::find_param(name).is_some_and(|p| p.get(plan) != p.get(&defaults));
        *is_custom &= DURATION_PARAMS.iter().any(differs);
    }
}

impl RunForms for ExperimentForm {
    fn list_text(&self, _: usize) -> String {
        let b = sanitize(self.spec.set_assignments.join(" "));
        format!("+ next: {} {b}", self.selected_workload().name)
    }

    fn title(&self, _: usize) -> String {
        "Next experiment".into()
    }

    fn lines(&self, _: usize, shared: &Shared) -> Vec<FormLine> {
        let workload = self.selected_workload();
        let mut lines = vec![FormLine {
            name: WORKLOAD,
            help: "what each round does; ↑ ↓ select while typing".into(),
            text: workload.name.into(),
            shown: format!("{}: {}", workload.name, workload.about),
            is_wide: true,
            ..FormLine::default()
        }];
        lines.extend(FormLine::directory(workload, &shared.target));
        lines.extend(SPEC_LINES.map(|(name, help, choices, unit)| {
            let text = spec_value(&self.spec, name);
            FormLine {
                name,
                help: help.into(),
                choices,
                shown: match (name, text.as_str()) {
                    (ARM_A, "") => "nothing: the current values".into(),
                    _ => sanitize(format!("{text}{unit}")),
                },
                is_changed: name != ARM_B && text != spec_value(&ExperimentSpec::default(), name),
                is_wide: matches!(name, ARM_A | ARM_B),
                text,
            }
        }));
        lines.extend(FormLine::params(workload, &self.planned(shared).plan, &self.plans[self.workload].0));
        lines
    }

    fn set_line(&mut self, _: usize, name: &str, text: &str) -> Result<(), String> {
        match SPEC_LINES.iter().find(|line| line.0 == name) {
            Some((_, _, choices, _)) if choices.is_empty() || choices.contains(&text) => {
                set_spec_value(&mut self.spec, name, text)
            }
            Some((_, _, choices, _)) => Err(format!("\"{text}\": must be one of {}", choices.join(", "))),
            None if name == WORKLOAD => self.set_workload(text),
            None => self.set_param(name, text),
        }
    }

    fn reset_line(&mut self, _: usize, name: &str) -> Result<(), String> {
        match SPEC_LINES.iter().any(|line| line.0 == name) {
            true if name == ARM_B => {}
            true => set_spec_value(&mut self.spec, name, &spec_value(&ExperimentSpec::default(), name))?,
            false => self.reset_param(name),
        }
        Ok(())
    }

    fn plan_text(&self, _: usize, shared: &Shared) -> Vec<StyledLine> {
        let spec = self.planned(shared);
        let mut out: Vec<StyledLine> = Vec::new();
        if let Some(why) = self.start_refusal(&spec, shared) {
            out.push((format!("Cannot start: {why}"), TextStyle::Crit));
        }
        match self.check_result(&spec) {
            Some(Ok(checked)) => {
                out.extend(describe_experiment(&spec, checked).lines().map(|l| (sanitize(l), TextStyle::Plain)));
            }
            _ => out.push((self.selected_workload().about.into(), TextStyle::Dim)),
        }
        let inspection = shared.target.inspection().filter(|_| self.selected_workload().needs_directory);
        let warnings = inspection.iter().flat_map(|found| found.warnings(spec.plan.direct));
        out.extend(warnings.map(|w| (format!("! {w}"), TextStyle::Warn)));
        if shared.knobs.snapshot.is_some() && !shared.knobs.can_write() {
            let start = shared.key(Action::Run(RunAction::Start));
            out.push((format!("! not root: {start} shows the sudo command"), TextStyle::Warn));
        }
        out
    }

    /// The workload before or after the one typed.
    fn neighbour_value(line: usize, text: &str, by: isize) -> Option<&'static str> {
        let at = WORKLOADS.iter().position(|w| w.name == text).unwrap_or(0) as isize;
        (line == 0).then(|| WORKLOADS[(at + by).rem_euclid(WORKLOADS.len() as isize) as usize].name)
    }
}

pub(super) fn shell_join(words: &[String]) -> String {
    words.iter().map(|w| shell_quote(w)).collect::<Vec<_>>().join(" ")
}

fn shell_split(text: &str) -> Result<Vec<String>, String> {
    shlex::split(text).ok_or_else(|| "a quote is not closed".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::kernel_log::LogClock;
    use crate::model::system_state::{HostInfo, SystemState};
    use proptest::prelude::*;

    #[test]
    fn words_are_split_as_in_a_shell() {
        let of = |text: &str| shell_split(text).unwrap().join("|");
        assert_eq!(of("  a=1  b=2 "), "a=1|b=2");
        assert_eq!(of("'atime@/a b'=noatime c=1"), "atime@/a b=noatime|c=1");
        assert_eq!(of(r"atime@/a\ b'\'c''"), r"atime@/a b\c");
        assert_eq!(of(""), "");
        assert!(shell_split("a 'b").unwrap_err().contains("not closed"));
    }

    proptest! {
        #[test]
        fn what_is_shown_is_what_is_taken(words in proptest::collection::vec("\\PC*", 0..4)) {
            prop_assert_eq!(shell_split(&shell_join(&words)).unwrap(), words);
        }
    }

    /// The defaults of a machine of which nothing is known.
    fn shared() -> Shared {
        Shared::new(SystemState::new(HostInfo::default(), LogClock::default()))
    }

    fn is_changed(form: &ExperimentForm, name: &str) -> bool {
        form.lines(0, &shared()).iter().find(|line| line.name == name).is_some_and(|line| line.is_changed)
    }

    #[test]
    fn every_line_accepts_its_own_text_and_can_be_reset() {
        let shared = shared();
        for at in 0..WORKLOADS.len() {
            let mut form = ExperimentForm { workload: at, ..ExperimentForm::default() };
            for line in form.lines(0, &shared).iter().filter(|line| line.name != "directory") {
                let workload = form.selected_workload().name;
                assert_eq!(form.set_line(0, line.name, &line.text), Ok(()), "{workload} {}", line.name);
                assert!(!is_changed(&form, line.name) && !line.help.is_empty());
            }
            form.set_line(0, "rounds", "9").unwrap();
            assert!(is_changed(&form, "rounds"));
            form.reset_line(0, "rounds").unwrap();
            assert!(!is_changed(&form, "rounds"));
        }
    }

    #[test]
    fn a_chosen_duration_is_remembered_until_reset() {
        let mut form = ExperimentForm::default();
        assert!(!form.has_custom_duration());
        form.set_line(0, "time", "5").unwrap();
        let plan = form.to_spec(&shared()).plan;
        assert_eq!((form.has_custom_duration(), plan.time_ms, plan.txlog.transactions), (true, 5000, 0));
        form.reset_line(0, "time").unwrap();
        assert!(form.has_custom_duration(), "the number of transactions is another still");
        form.reset_line(0, "transactions").unwrap();
        assert!(!form.has_custom_duration());
    }

    #[test]
    fn invalid_texts_are_rejected_with_the_allowed_values() {
        let mut form = ExperimentForm::default();
        for (line, text, has) in [
            (WORKLOAD, "x", "randrw"),
            ("rounds", "0", "1 to 50"),
            ("rounds", "x", "1 to 50"),
            ("control", "maybe", "off, on"),
            ("then", "x", "undo, keep, lease"),
            ("baseline", "61", "0 to 60"),
            ("drain-limit", "0", "1 to 3600"),
            (ARM_B, "'a", "quote"),
        ] {
            let why = form.set_line(0, line, text).expect_err(text);
            assert!(why.contains(has), "{text}: {why}");
        }
        let mut shared = shared();
        assert_eq!(form.to_spec(&shared), ExperimentForm::default().to_spec(&shared));
        form.set_line(0, "then", "lease").unwrap();
        shared.knobs.lease_secs = 60;
        assert_eq!(form.to_spec(&shared).on_complete, OnComplete::Lease(60));
    }
}
