//! The next experiment as it is filled in: what is worked, what the arms set, how often, what becomes of it.

use crate::bench::params::{self, BenchParam};
use crate::bench::plan::BenchPlan;
use crate::bench::workloads::{WORKLOADS, Workload};
use crate::experiment::spec::{ExperimentSpec, OnComplete};
use crate::tuning::sudo::shell_quote;
use std::path::{Path, PathBuf};

/// Workload that shows what settings of the page cache do, the first one offered.
const DEFAULT_WORKLOAD: &str = "txlog";
/// Parameters that decide how long a round lasts.
const DURATION_PARAMS: [&str; 3] = ["time", "io-size", "transactions"];
const ON_COMPLETE_CHOICES: [&str; 3] = ["undo", "keep", "lease"];

/// The next experiment.
#[derive(Debug, Clone)]
pub struct ExperimentForm {
    /// Its workload, by its place in [`WORKLOADS`].
    pub workload: usize,
    /// Each workload's plan without a directory, and whether the person chose how long it lasts.
    plans: Vec<(BenchPlan, bool)>,
    /// What A sets, `KNOB=VALUE` each; none: A is how things stand.
    pub base: Vec<String>,
    /// What B sets.
    pub set: Vec<String>,
    rounds: u32,
    control: bool,
    /// By its place in [`ENDS`].
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
    /// What is worked.
    Workload,
    /// Where.
    Directory,
    /// What B sets.
    ArmB,
    /// What A sets.
    ArmA,
    /// Rounds of each arm.
    Rounds,
    /// A negative control.
    Control,
    /// What becomes of B.
    OnComplete,
    /// How long others are watched.
    Baseline,
    /// How long draining may take.
    DrainLimit,
    /// A figure or choice of the workload.
    Param(&'static BenchParam),
}

impl ExperimentFormLine {
    /// What it is called; as the command line calls it.
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

    /// What it is, and what may be given.
    pub fn help_text(self) -> String {
        match self {
            ExperimentFormLine::Workload => "what every round does; ↑ ↓ while typing go through them".into(),
            ExperimentFormLine::Directory => "on the storage that is tuned".into(),
            ExperimentFormLine::ArmB => "KNOB[@WHERE]=VALUE, one or several".into(),
            ExperimentFormLine::ArmA => "the same for A; empty: as things stand".into(),
            ExperimentFormLine::Rounds => "of each arm; 1 to 50, fewer than 4 can show nothing".into(),
            ExperimentFormLine::Control => {
                "the same again with direct I/O, on which dirty-page knobs cannot act".into()
            }
            ExperimentFormLine::OnComplete => {
                "if B is better: undo, keep until the boot, or on a lease (its length: L in Tune)".into()
            }
            ExperimentFormLine::Baseline => "seconds others are watched before a round; 0 to 60".into(),
            ExperimentFormLine::DrainLimit => "seconds draining may take before a round; 1 to 3600".into(),
            ExperimentFormLine::Param(p) => format!("{}; {}", p.about, p.range),
        }
    }

    /// All it can be, where that is a handful of words.
    pub fn choices(self) -> &'static [&'static str] {
        match self {
            ExperimentFormLine::Control => &["off", "on"],
            ExperimentFormLine::OnComplete => &ON_COMPLETE_CHOICES,
            ExperimentFormLine::Param(p) => p.choices,
            _ => &[],
        }
    }
}

/// A number within a range.
fn parse_number(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let n = text.parse::<u64>().ok().filter(|n| (least..=most).contains(n));
    n.ok_or_else(|| format!("\"{text}\": must be {least} to {most}"))
}

impl ExperimentForm {
    /// The workload.
    pub fn selected_workload(&self) -> &'static dyn Workload {
        WORKLOADS[self.workload]
    }

    /// The lines that take the whole width, then the others.
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

    /// The line at a place among all of them.
    pub fn line_at(&self, at: usize) -> Option<ExperimentFormLine> {
        let (wide, others) = self.lines();
        wide.into_iter().chain(others).nth(at)
    }

    /// Where a line stands.
    pub fn line_index(&self, name: &str) -> Option<usize> {
        let (wide, others) = self.lines();
        wide.into_iter().chain(others).position(|l| l.name() == name)
    }

    /// How many lines there are.
    pub fn line_count(&self) -> usize {
        let (wide, others) = self.lines();
        wide.len() + others.len()
    }

    /// The experiment, in `directory`; `lease_secs` for what may be left on a lease.
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

    /// Whether the person chose how long a round lasts.
    pub fn has_custom_duration(&self) -> bool {
        self.plans[self.workload].1
    }

    /// A line's value in a form that [`Form::set`] takes; the directory is not the form's.
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

    /// Puts a text into a line. The error says what is wrong with it.
    pub fn set_line(&mut self, line: ExperimentFormLine, text: &str) -> Result<(), String> {
        let choice = |text: &str| {
            let at = line.choices().iter().position(|c| *c == text);
            at.ok_or_else(|| format!("\"{text}\": one of {}", line.choices().join(", ")))
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
                // As the command line has it: with a time, as many transactions as that allows.
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

    /// A line as it is by itself.
    pub fn reset_line(&mut self, line: ExperimentFormLine) {
        let fresh = Self { workload: self.workload, ..Self::default() };
        match line {
            ExperimentFormLine::Workload | ExperimentFormLine::Directory | ExperimentFormLine::ArmB => {}
            ExperimentFormLine::Param(p) => {
                let (plan, length) = &mut self.plans[self.workload];
                // It is what it was when nobody had touched it: it cannot be wrong.
                let _ = (p.set)(plan, &fresh.line_text(line));
                *length &= DURATION_PARAMS.iter().any(|name| {
                    params::find_param(name).is_some_and(|p| (p.get)(plan) != (p.get)(&fresh.plans[self.workload].0))
                });
            }
            _ => drop(self.set_line(line, &fresh.line_text(line))),
        }
    }

    /// Whether a line is not as it is by itself.
    pub fn is_line_changed(&self, line: ExperimentFormLine) -> bool {
        let fresh = Self { workload: self.workload, ..Self::default() };
        match line {
            ExperimentFormLine::Workload | ExperimentFormLine::Directory | ExperimentFormLine::ArmB => false,
            _ => self.line_text(line) != fresh.line_text(line),
        }
    }

    /// The workload `by` places on from the one called `name`, for typing it.
    pub fn neighbour_workload(name: &str, by: isize) -> &'static str {
        let at = WORKLOADS.iter().position(|w| w.name() == name).unwrap_or(0) as isize;
        WORKLOADS[(at + by).rem_euclid(WORKLOADS.len() as isize) as usize].name()
    }
}

/// Words in a line, as a shell would take them.
pub fn shell_join(words: &[String]) -> String {
    words.iter().map(|w| shell_quote(w)).collect::<Vec<_>>().join(" ")
}

/// The words of a line: split at blanks, but not within quotes; a backslash makes the next character plain.
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
