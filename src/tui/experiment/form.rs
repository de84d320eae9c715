//! The next experiment as it is filled in: what is worked, what the arms set, how often, what becomes of it.

use crate::bench::params::{self, Param};
use crate::bench::plan::Plan;
use crate::bench::workloads::{WORKLOADS, Workload};
use crate::experiment::spec::{Spec, Then};
use crate::tune::sudo::quoted;
use std::path::{Path, PathBuf};

/// Workload that shows what settings of the page cache do, the first one offered.
const FIRST: &str = "txlog";
/// Parameters that decide how long a round lasts.
const LENGTH: [&str; 3] = ["time", "io-size", "transactions"];
const ENDS: [&str; 3] = ["undo", "keep", "lease"];

/// The next experiment.
#[derive(Debug, Clone)]
pub struct Form {
    /// Its workload, by its place in [`WORKLOADS`].
    pub workload: usize,
    /// Each workload's plan without a directory, and whether the person chose how long it lasts.
    plans: Vec<(Plan, bool)>,
    /// What A sets, `KNOB=VALUE` each; none: A is how things stand.
    pub base: Vec<String>,
    /// What B sets.
    pub set: Vec<String>,
    rounds: u32,
    control: bool,
    /// By its place in [`ENDS`].
    then: usize,
    calm_ms: u64,
    drain_limit_ms: u64,
}

impl Default for Form {
    fn default() -> Self {
        let spec = Spec::default();
        Self {
            workload: WORKLOADS.iter().position(|w| w.name() == FIRST).unwrap_or(0),
            plans: WORKLOADS.iter().map(|w| (w.defaults(), false)).collect(),
            base: Vec::new(),
            set: Vec::new(),
            rounds: spec.rounds,
            control: spec.control,
            then: 0,
            calm_ms: spec.calm_ms,
            drain_limit_ms: spec.drain_limit_ms,
        }
    }
}

/// A line of the form.
#[derive(Clone, Copy)]
pub enum Line {
    /// What is worked.
    Workload,
    /// Where.
    Directory,
    /// What B sets.
    Set,
    /// What A sets.
    Base,
    /// Rounds of each arm.
    Rounds,
    /// A negative control.
    Control,
    /// What becomes of B.
    Then,
    /// How long others are watched.
    Calm,
    /// How long draining may take.
    Drain,
    /// A figure or choice of the workload.
    Param(&'static Param),
}

impl Line {
    /// What it is called; as the command line calls it.
    pub fn name(self) -> &'static str {
        match self {
            Line::Workload => "workload",
            Line::Directory => "directory",
            Line::Set => "B sets",
            Line::Base => "A sets",
            Line::Rounds => "rounds",
            Line::Control => "control",
            Line::Then => "then",
            Line::Calm => "calm",
            Line::Drain => "drain-limit",
            Line::Param(p) => p.name,
        }
    }

    /// What it is, and what may be given.
    pub fn about(self) -> String {
        match self {
            Line::Workload => "what every round does; ↑ ↓ while typing go through them".into(),
            Line::Directory => "on the storage that is tuned".into(),
            Line::Set => "KNOB[@WHERE]=VALUE, one or several".into(),
            Line::Base => "the same for A; empty: as things stand".into(),
            Line::Rounds => "of each arm; 1 to 50, fewer than 4 can show nothing".into(),
            Line::Control => "the same again with direct I/O, on which dirty-page knobs cannot act".into(),
            Line::Then => {
                "if B is better: undo, keep until the boot, or on a lease (its length: L in Tune)".into()
            }
            Line::Calm => "seconds others are watched before a round; 0 to 60".into(),
            Line::Drain => "seconds draining may take before a round; 1 to 3600".into(),
            Line::Param(p) => format!("{}; {}", p.about, p.range),
        }
    }

    /// All it can be, where that is a handful of words.
    pub fn choices(self) -> &'static [&'static str] {
        match self {
            Line::Control => &["off", "on"],
            Line::Then => &ENDS,
            Line::Param(p) => p.choices,
            _ => &[],
        }
    }
}

/// A number within a range.
fn number(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let n = text.parse::<u64>().ok().filter(|n| (least..=most).contains(n));
    n.ok_or_else(|| format!("\"{text}\": must be {least} to {most}"))
}

impl Form {
    /// The workload.
    pub fn work(&self) -> &'static dyn Workload {
        WORKLOADS[self.workload]
    }

    /// The lines that take the whole width, then the others.
    pub fn lines(&self) -> (Vec<Line>, Vec<Line>) {
        let place = self.work().needs_directory().then_some(Line::Directory);
        let wide = [Line::Workload].into_iter().chain(place).chain([Line::Set, Line::Base]).collect();
        let own = [Line::Rounds, Line::Control, Line::Then, Line::Calm, Line::Drain];
        let params = params::PARAMS.iter().filter(|p| self.work().takes().contains(&p.name));
        (wide, own.into_iter().chain(params.map(Line::Param)).collect())
    }

    /// The line at a place among all of them.
    pub fn line(&self, at: usize) -> Option<Line> {
        let (wide, others) = self.lines();
        wide.into_iter().chain(others).nth(at)
    }

    /// Where a line stands.
    pub fn place_of(&self, name: &str) -> Option<usize> {
        let (wide, others) = self.lines();
        wide.into_iter().chain(others).position(|l| l.name() == name)
    }

    /// How many lines there are.
    pub fn count(&self) -> usize {
        let (wide, others) = self.lines();
        wide.len() + others.len()
    }

    /// The experiment, in `directory`; `lease_secs` for what may be left on a lease.
    pub fn spec(&self, directory: &Path, lease_secs: u64) -> Spec {
        let mut plan = self.plans[self.workload].0.clone();
        if self.work().needs_directory() {
            plan.directory = directory.to_owned();
        }
        Spec {
            plan,
            base: self.base.clone(),
            set: self.set.clone(),
            rounds: self.rounds,
            control: self.control,
            then: [Then::Undo, Then::Keep, Then::Lease(lease_secs)][self.then],
            drain_limit_ms: self.drain_limit_ms,
            calm_ms: self.calm_ms,
        }
    }

    /// Whether the person chose how long a round lasts.
    pub fn has_length(&self) -> bool {
        self.plans[self.workload].1
    }

    /// A line's value in a form that [`Form::set`] takes; the directory is not the form's.
    pub fn text(&self, line: Line) -> String {
        match line {
            Line::Workload => self.work().name().into(),
            Line::Directory => String::new(),
            Line::Set => joined(&self.set),
            Line::Base => joined(&self.base),
            Line::Rounds => self.rounds.to_string(),
            Line::Control => line.choices()[usize::from(self.control)].into(),
            Line::Then => ENDS[self.then].into(),
            Line::Calm => (self.calm_ms / 1000).to_string(),
            Line::Drain => (self.drain_limit_ms / 1000).to_string(),
            Line::Param(p) => (p.get)(&self.plans[self.workload].0),
        }
    }

    /// Puts a text into a line. The error says what is wrong with it.
    pub fn put(&mut self, line: Line, text: &str) -> Result<(), String> {
        let choice = |text: &str| {
            let at = line.choices().iter().position(|c| *c == text);
            at.ok_or_else(|| format!("\"{text}\": one of {}", line.choices().join(", ")))
        };
        match line {
            Line::Workload => {
                let at = WORKLOADS.iter().position(|w| w.name() == text);
                let names = || WORKLOADS.map(|w| w.name()).join(" ");
                self.workload = at.ok_or_else(|| format!("no workload \"{text}\"; {}", names()))?;
            }
            Line::Directory => {}
            Line::Set => self.set = split(text)?,
            Line::Base => self.base = split(text)?,
            Line::Rounds => self.rounds = number(text, 1, 50)? as u32,
            Line::Control => self.control = choice(text)? == 1,
            Line::Then => self.then = choice(text)?,
            Line::Calm => self.calm_ms = number(text, 0, 60)? * 1000,
            Line::Drain => self.drain_limit_ms = number(text, 1, 3600)? * 1000,
            Line::Param(p) => {
                let (plan, length) = &mut self.plans[self.workload];
                let mut new = plan.clone();
                params::set(&mut new, p.name, text)?;
                // As the command line has it: with a time, as many transactions as that allows.
                let untouched =
                    new.txlog.transactions == WORKLOADS[self.workload].defaults().txlog.transactions;
                if p.name == "time" && new.time_ms > 0 && new.profile == "txlog" && untouched {
                    new.txlog.transactions = 0;
                }
                let whole = Plan { directory: PathBuf::from("/"), ..new.clone() };
                whole.check().and_then(|()| WORKLOADS[self.workload].check(&whole))?;
                *plan = new;
                *length |= LENGTH.contains(&p.name);
            }
        }
        Ok(())
    }

    /// A line as it is by itself.
    pub fn reset(&mut self, line: Line) {
        let fresh = Self { workload: self.workload, ..Self::default() };
        match line {
            Line::Workload | Line::Directory | Line::Set => {}
            Line::Param(p) => {
                let (plan, length) = &mut self.plans[self.workload];
                // It is what it was when nobody had touched it: it cannot be wrong.
                let _ = (p.set)(plan, &fresh.text(line));
                *length &= LENGTH.iter().any(|name| {
                    params::find(name)
                        .is_some_and(|p| (p.get)(plan) != (p.get)(&fresh.plans[self.workload].0))
                });
            }
            _ => drop(self.put(line, &fresh.text(line))),
        }
    }

    /// Whether a line is not as it is by itself.
    pub fn changed(&self, line: Line) -> bool {
        let fresh = Self { workload: self.workload, ..Self::default() };
        match line {
            Line::Workload | Line::Directory | Line::Set => false,
            _ => self.text(line) != fresh.text(line),
        }
    }

    /// The workload `by` places on from the one called `name`, for typing it.
    pub fn neighbour(name: &str, by: isize) -> &'static str {
        let at = WORKLOADS.iter().position(|w| w.name() == name).unwrap_or(0) as isize;
        WORKLOADS[(at + by).rem_euclid(WORKLOADS.len() as isize) as usize].name()
    }
}

/// Words in a line, as a shell would take them.
pub fn joined(words: &[String]) -> String {
    words.iter().map(|w| quoted(w)).collect::<Vec<_>>().join(" ")
}

/// The words of a line: split at blanks, but not within quotes; a backslash makes the next character plain.
pub fn split(text: &str) -> Result<Vec<String>, String> {
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
    fn words_are_split_as_a_shell_would() {
        let of = |text: &str| split(text).unwrap().join("|");
        assert_eq!(of("  a=1  b=2 "), "a=1|b=2");
        assert_eq!(of("'atime@/a b'=noatime c=1"), "atime@/a b=noatime|c=1");
        assert_eq!(of(r"atime@/a\ b'\'c''"), r"atime@/a b\c");
        assert_eq!(of(""), "");
        assert!(split("a 'b").unwrap_err().contains("not closed"));
    }

    proptest! {
        #[test]
        fn what_is_shown_is_what_is_taken(words in proptest::collection::vec("\\PC*", 0..4)) {
            prop_assert_eq!(split(&joined(&words)).unwrap(), words);
        }
    }

    #[test]
    fn every_line_takes_what_it_shows_and_goes_back() {
        for at in 0..WORKLOADS.len() {
            let mut form = Form { workload: at, ..Form::default() };
            for i in 0..form.count() {
                let line = form.line(i).unwrap();
                let text = form.text(line);
                assert_eq!(form.put(line, &text), Ok(()), "{} {}", form.work().name(), line.name());
                assert!(!form.changed(line) && !line.about().is_empty());
            }
            form.put(Line::Rounds, "9").unwrap();
            assert!(form.changed(Line::Rounds));
            form.reset(Line::Rounds);
            assert!(!form.changed(Line::Rounds));
        }
    }

    #[test]
    fn a_length_that_was_chosen_is_known_until_it_is_taken_back() {
        let mut form = Form::default();
        let time = params::find("time").unwrap();
        assert!(!form.has_length());
        form.put(Line::Param(time), "5").unwrap();
        let plan = form.spec(Path::new("/d"), 60).plan;
        assert_eq!((form.has_length(), plan.time_ms, plan.txlog.transactions), (true, 5000, 0));
        form.reset(Line::Param(time));
        assert!(form.has_length(), "the number of transactions is another still");
        form.reset(Line::Param(params::find("transactions").unwrap()));
        assert!(!form.has_length());
    }

    #[test]
    fn wrong_texts_are_named() {
        let mut form = Form::default();
        for (line, text, has) in [
            (Line::Workload, "x", "randrw"),
            (Line::Rounds, "0", "1 to 50"),
            (Line::Rounds, "x", "1 to 50"),
            (Line::Control, "maybe", "off, on"),
            (Line::Then, "x", "undo, keep, lease"),
            (Line::Calm, "61", "0 to 60"),
            (Line::Drain, "0", "1 to 3600"),
            (Line::Set, "'a", "quote"),
        ] {
            let why = form.put(line, text).expect_err(text);
            assert!(why.contains(has), "{text}: {why}");
        }
        assert_eq!(form.spec(Path::new("/d"), 60), Form::default().spec(Path::new("/d"), 60));
        form.put(Line::Then, "lease").unwrap();
        assert_eq!(form.spec(Path::new("/d"), 60).then, Then::Lease(60));
    }
}
