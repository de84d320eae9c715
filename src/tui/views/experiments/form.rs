//! The form for the next experiment: its workload, what the arms set, the number of rounds, what to do at the end.

use crate::bench::params::{self, BenchParam};
use crate::bench::plan::BenchPlan;
use crate::bench::workloads::{WORKLOADS, Workload};
use crate::experiment::spec::{ExperimentSpec, OnComplete};
use crate::tuning::sudo::shell_quote;
use std::path::{Path, PathBuf};

/// The workload offered first; it shows the effect of page cache settings.
const DEFAULT_WORKLOAD: &str = "txlog";
/// Parameters that determine how long a round takes.
const DURATION_PARAMS: [&str; 3] = ["time", "io-size", "transactions"];
const ON_COMPLETE_CHOICES: [&str; 3] = ["undo", "keep", "lease"];

/// The next experiment.
#[derive(Debug, Clone)]
pub struct ExperimentForm {
    /// Index of the workload in [`WORKLOADS`].
    pub workload: usize,
    /// Each workload's plan without a directory, and whether the user chose the duration.
    plans: Vec<(BenchPlan, bool)>,
    /// What arm A sets, `KNOB=VALUE` each; empty: the current values.
    pub base: Vec<String>,
    /// What arm B sets.
    pub set: Vec<String>,
    rounds: u32,
    control: bool,
    /// Index in [`ON_COMPLETE_CHOICES`].
    on_complete: usize,
    baseline_ms: u64,
    drain_limit_ms: u64,
}

impl Default for ExperimentForm {
    fn default() -> Self {
        let spec = ExperimentSpec::default();
        Self {
            workload: WORKLOADS.iter().position(|w| w.name() == DEFAULT_WORKLOAD).unwrap_or(0),
            plans: WORKLOADS.iter().map(|w| (w.defaults(), false)).collect(),
            base: Vec::new(),
            set: Vec::new(),
            rounds: spec.rounds,
            control: spec.control,
            on_complete: 0,
            baseline_ms: spec.baseline_ms,
            drain_limit_ms: spec.drain_limit_ms,
        }
    }
}

/// A line of the form.
#[derive(Clone, Copy)]
pub enum ExperimentFormLine {
    /// The workload.
    Workload,
    /// The directory.
    Directory,
    /// Assignments of arm B.
    ArmB,
    /// Assignments of arm A.
    ArmA,
    /// Rounds per arm.
    Rounds,
    /// Whether to run a negative control.
    Control,
    /// What to do with B at the end.
    OnComplete,
    /// Time to observe other load before each round.
    Baseline,
    /// Time limit for writing back dirty pages before each round.
    DrainLimit,
    /// A parameter of the workload.
    Param(&'static BenchParam),
}

impl ExperimentFormLine {
    /// Name of the line; the same as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            ExperimentFormLine::Workload => "workload",
            ExperimentFormLine::Directory => "directory",
            ExperimentFormLine::ArmB => "B sets",
            ExperimentFormLine::ArmA => "A sets",
            ExperimentFormLine::Rounds => "rounds",
            ExperimentFormLine::Control => "control",
            ExperimentFormLine::OnComplete => "then",
            ExperimentFormLine::Baseline => "calm",
            ExperimentFormLine::DrainLimit => "drain-limit",
            ExperimentFormLine::Param(p) => p.name,
        }
    }

    /// Describes the line and its valid values.
    pub fn help_text(self) -> String {
        match self {
            ExperimentFormLine::Workload => "what each round does; ↑ ↓ select while typing".into(),
            ExperimentFormLine::Directory => "on the storage to tune".into(),
            ExperimentFormLine::ArmB => "KNOB[@WHERE]=VALUE, one or several".into(),
            ExperimentFormLine::ArmA => "the same for A; empty: the current values".into(),
            ExperimentFormLine::Rounds => "per arm, 1 to 50; fewer than 4 cannot show a difference".into(),
            ExperimentFormLine::Control => "repeat with direct I/O, which dirty-page knobs do not affect".into(),
            ExperimentFormLine::OnComplete => {
                "if B is better: undo, keep until the next boot, or lease (its length: L in Tune)".into()
            }
            ExperimentFormLine::Baseline => "seconds to observe other load before a round, 0 to 60".into(),
            ExperimentFormLine::DrainLimit => {
                "time limit for writing back dirty pages before a round, 1 to 3600 s".into()
            }
            ExperimentFormLine::Param(p) => format!("{}; {}", p.about, p.range),
        }
    }

    /// All valid values, if there are only a few.
    pub fn choices(self) -> &'static [&'static str] {
        match self {
            ExperimentFormLine::Control => &["off", "on"],
            ExperimentFormLine::OnComplete => &ON_COMPLETE_CHOICES,
            ExperimentFormLine::Param(p) => p.choices,
            _ => &[],
        }
    }
}

/// Parses a number within a range.
fn parse_number(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let n = text.parse::<u64>().ok().filter(|n| (least..=most).contains(n));
    n.ok_or_else(|| format!("\"{text}\": must be {least} to {most}"))
}

impl ExperimentForm {
    /// The selected workload.
    pub fn selected_workload(&self) -> &'static dyn Workload {
        WORKLOADS[self.workload]
    }

    /// The lines that span the whole width, then the others.
    pub fn lines(&self) -> (Vec<ExperimentFormLine>, Vec<ExperimentFormLine>) {
        let place = self.selected_workload().needs_directory().then_some(ExperimentFormLine::Directory);
        let wide = [ExperimentFormLine::Workload]
            .into_iter()
            .chain(place)
            .chain([ExperimentFormLine::ArmB, ExperimentFormLine::ArmA])
            .collect();
        let own = [
            ExperimentFormLine::Rounds,
            ExperimentFormLine::Control,
            ExperimentFormLine::OnComplete,
            ExperimentFormLine::Baseline,
            ExperimentFormLine::DrainLimit,
        ];
        let params = params::PARAMS.iter().filter(|p| self.selected_workload().params().contains(&p.name));
        (wide, own.into_iter().chain(params.map(ExperimentFormLine::Param)).collect())
    }

    /// The line at an index among all lines.
    pub fn line_at(&self, at: usize) -> Option<ExperimentFormLine> {
        let (wide, others) = self.lines();
        wide.into_iter().chain(others).nth(at)
    }

    /// Index of a line.
    pub fn line_index(&self, name: &str) -> Option<usize> {
        let (wide, others) = self.lines();
        wide.into_iter().chain(others).position(|l| l.name() == name)
    }

    /// Number of lines.
    pub fn line_count(&self) -> usize {
        let (wide, others) = self.lines();
        wide.len() + others.len()
    }

    /// The experiment described by the form. `lease_secs` is the lease of values left in effect at the end.
    pub fn to_spec(&self, directory: &Path, lease_secs: u64) -> ExperimentSpec {
        let mut plan = self.plans[self.workload].0.clone();
        if self.selected_workload().needs_directory() {
            plan.directory = directory.to_owned();
        }
        ExperimentSpec {
            plan,
            base_assignments: self.base.clone(),
            set_assignments: self.set.clone(),
            rounds: self.rounds,
            control: self.control,
            on_complete: [OnComplete::Undo, OnComplete::Keep, OnComplete::Lease(lease_secs)][self.on_complete],
            drain_limit_ms: self.drain_limit_ms,
            baseline_ms: self.baseline_ms,
        }
    }

    /// Whether the user chose how long a round takes.
    pub fn has_custom_duration(&self) -> bool {
        self.plans[self.workload].1
    }

    /// The value of a line in the form [`ExperimentForm::set_line`] takes. The directory is not part of the form.
    pub fn line_text(&self, line: ExperimentFormLine) -> String {
        match line {
            ExperimentFormLine::Workload => self.selected_workload().name().into(),
            ExperimentFormLine::Directory => String::new(),
            ExperimentFormLine::ArmB => shell_join(&self.set),
            ExperimentFormLine::ArmA => shell_join(&self.base),
            ExperimentFormLine::Rounds => self.rounds.to_string(),
            ExperimentFormLine::Control => line.choices()[usize::from(self.control)].into(),
            ExperimentFormLine::OnComplete => ON_COMPLETE_CHOICES[self.on_complete].into(),
            ExperimentFormLine::Baseline => (self.baseline_ms / 1000).to_string(),
            ExperimentFormLine::DrainLimit => (self.drain_limit_ms / 1000).to_string(),
            ExperimentFormLine::Param(p) => (p.get)(&self.plans[self.workload].0),
        }
    }

    /// Sets a line.
    ///
    /// # Errors
    ///
    /// When the text is invalid; the form stays as it was.
    pub fn set_line(&mut self, line: ExperimentFormLine, text: &str) -> Result<(), String> {
        let choice = |text: &str| {
            let at = line.choices().iter().position(|c| *c == text);
            at.ok_or_else(|| format!("\"{text}\": must be one of {}", line.choices().join(", ")))
        };
        match line {
            ExperimentFormLine::Workload => {
                let at = WORKLOADS.iter().position(|w| w.name() == text);
                let names = || WORKLOADS.map(|w| w.name()).join(" ");
                self.workload = at.ok_or_else(|| format!("no workload \"{text}\"; {}", names()))?;
            }
            ExperimentFormLine::Directory => {}
            ExperimentFormLine::ArmB => self.set = shell_split(text)?,
            ExperimentFormLine::ArmA => self.base = shell_split(text)?,
            ExperimentFormLine::Rounds => self.rounds = parse_number(text, 1, 50)? as u32,
            ExperimentFormLine::Control => self.control = choice(text)? == 1,
            ExperimentFormLine::OnComplete => self.on_complete = choice(text)?,
            ExperimentFormLine::Baseline => self.baseline_ms = parse_number(text, 0, 60)? * 1000,
            ExperimentFormLine::DrainLimit => self.drain_limit_ms = parse_number(text, 1, 3600)? * 1000,
            ExperimentFormLine::Param(p) => {
                let (plan, length) = &mut self.plans[self.workload];
                let mut new = plan.clone();
                params::set_param(&mut new, p.name, text)?;
                // As on the command line: with a time limit, the number of transactions is unlimited.
                let untouched = new.txlog.transactions == WORKLOADS[self.workload].defaults().txlog.transactions;
                if p.name == "time" && new.time_ms > 0 && new.profile == "txlog" && untouched {
                    new.txlog.transactions = 0;
                }
                let whole = BenchPlan { directory: PathBuf::from("/"), ..new.clone() };
                whole.check().and_then(|()| WORKLOADS[self.workload].check(&whole))?;
                *plan = new;
                *length |= DURATION_PARAMS.contains(&p.name);
            }
        }
        Ok(())
    }

    /// Resets a line to its default.
    pub fn reset_line(&mut self, line: ExperimentFormLine) {
        let fresh = Self { workload: self.workload, ..Self::default() };
        match line {
            ExperimentFormLine::Workload | ExperimentFormLine::Directory | ExperimentFormLine::ArmB => {}
            ExperimentFormLine::Param(p) => {
                let (plan, length) = &mut self.plans[self.workload];
                // A default is always valid.
                let _ = (p.set)(plan, &fresh.line_text(line));
                *length &= DURATION_PARAMS.iter().any(|name| {
                    params::find_param(name).is_some_and(|p| (p.get)(plan) != (p.get)(&fresh.plans[self.workload].0))
                });
            }
            _ => drop(self.set_line(line, &fresh.line_text(line))),
        }
    }

    /// Whether a line differs from its default.
    pub fn is_line_changed(&self, line: ExperimentFormLine) -> bool {
        let fresh = Self { workload: self.workload, ..Self::default() };
        match line {
            ExperimentFormLine::Workload | ExperimentFormLine::Directory | ExperimentFormLine::ArmB => false,
            _ => self.line_text(line) != fresh.line_text(line),
        }
    }

    /// The workload `by` places after the one called `name`.
    pub fn neighbour_workload(name: &str, by: isize) -> &'static str {
        let at = WORKLOADS.iter().position(|w| w.name() == name).unwrap_or(0) as isize;
        WORKLOADS[(at + by).rem_euclid(WORKLOADS.len() as isize) as usize].name()
    }
}

/// Joins words into a line, quoted for a shell.
pub fn shell_join(words: &[String]) -> String {
    words.iter().map(|w| shell_quote(w)).collect::<Vec<_>>().join(" ")
}

/// Splits a line into words as a shell does: at blanks outside quotes; a backslash quotes the next character.
pub fn shell_split(text: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            '\\' if !quoted => word.get_or_insert_default().extend(chars.next()),
            c if c.is_whitespace() && !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    if quoted {
        return Err("a quote (') is not closed".into());
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
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

    #[test]
    fn every_line_accepts_its_own_text_and_can_be_reset() {
        for at in 0..WORKLOADS.len() {
            let mut form = ExperimentForm { workload: at, ..ExperimentForm::default() };
            for i in 0..form.line_count() {
                let line = form.line_at(i).unwrap();
                let text = form.line_text(line);
                assert_eq!(form.set_line(line, &text), Ok(()), "{} {}", form.selected_workload().name(), line.name());
                assert!(!form.is_line_changed(line) && !line.help_text().is_empty());
            }
            form.set_line(ExperimentFormLine::Rounds, "9").unwrap();
            assert!(form.is_line_changed(ExperimentFormLine::Rounds));
            form.reset_line(ExperimentFormLine::Rounds);
            assert!(!form.is_line_changed(ExperimentFormLine::Rounds));
        }
    }

    #[test]
    fn a_chosen_duration_is_remembered_until_reset() {
        let mut form = ExperimentForm::default();
        let time = params::find_param("time").unwrap();
        assert!(!form.has_custom_duration());
        form.set_line(ExperimentFormLine::Param(time), "5").unwrap();
        let plan = form.to_spec(Path::new("/d"), 60).plan;
        assert_eq!((form.has_custom_duration(), plan.time_ms, plan.txlog.transactions), (true, 5000, 0));
        form.reset_line(ExperimentFormLine::Param(time));
        assert!(form.has_custom_duration(), "the number of transactions is another still");
        form.reset_line(ExperimentFormLine::Param(params::find_param("transactions").unwrap()));
        assert!(!form.has_custom_duration());
    }

    #[test]
    fn invalid_texts_are_rejected_with_the_allowed_values() {
        let mut form = ExperimentForm::default();
        for (line, text, has) in [
            (ExperimentFormLine::Workload, "x", "randrw"),
            (ExperimentFormLine::Rounds, "0", "1 to 50"),
            (ExperimentFormLine::Rounds, "x", "1 to 50"),
            (ExperimentFormLine::Control, "maybe", "off, on"),
            (ExperimentFormLine::OnComplete, "x", "undo, keep, lease"),
            (ExperimentFormLine::Baseline, "61", "0 to 60"),
            (ExperimentFormLine::DrainLimit, "0", "1 to 3600"),
            (ExperimentFormLine::ArmB, "'a", "quote"),
        ] {
            let why = form.set_line(line, text).expect_err(text);
            assert!(why.contains(has), "{text}: {why}");
        }
        assert_eq!(form.to_spec(Path::new("/d"), 60), ExperimentForm::default().to_spec(Path::new("/d"), 60));
        form.set_line(ExperimentFormLine::OnComplete, "lease").unwrap();
        assert_eq!(form.to_spec(Path::new("/d"), 60).on_complete, OnComplete::Lease(60));
    }
}
