//! The lines of a form.

use crate::bench::params::BenchParam;
use crate::bench::plan::BenchPlan;
use crate::bench::workloads::Workload;
use crate::tui::bench_target::BenchTarget;

/// Name of the line of the directory to measure in.
pub(super) const DIRECTORY: &str = "directory";

#[derive(Default)]
pub struct FormLine {
    /// Its name, the same as on the command line.
    pub name: &'static str,
    /// What it is, and its valid values; empty for the directory.
    pub help: String,
    /// All values of a choice; else empty.
    pub choices: &'static [&'static str],
    /// Its value, in the form in which it is typed.
    pub text: String,
    /// Its value as displayed.
    pub shown: String,
    /// Whether it differs from the default.
    pub is_changed: bool,
    /// Whether it spans the whole width; such lines come first.
    pub is_wide: bool,
}

impl FormLine {
    /// The directory to measure in, if the workload needs one.
    pub fn directory(workload: &Workload, target: &BenchTarget) -> Option<Self> {
        workload.needs_directory.then(|| Self {
            name: DIRECTORY,
            text: target.directory.to_string_lossy().into_owned(),
            shown: target.display_name(),
            is_wide: true,
            ..Self::default()
        })
    }

    /// The parameters of a workload, in order, with their values in a plan; `edited` is the plan without what follows
    /// from other values.
    pub fn params(workload: &Workload, plan: &BenchPlan, edited: &BenchPlan) -> impl Iterator<Item = Self> {
        let known = crate::bench::params::PARAMS.iter().filter(|p| workload.params().contains(&p.name));
        let defaults = workload.defaults();
        known.map(move |p| Self {
            name: p.name,
            help: format!("{}; {}", p.about, p.range),
            choices: p.choices(),
            text: p.get(plan),
            shown: format_param(p, plan),
            is_changed: p.get(edited) != p.get(&defaults),
            is_wide: false,
        })
    }
}

/// Value with its unit, or the meaning of zero, such as `no cap`.
fn format_param(p: &BenchParam, plan: &BenchPlan) -> String {
    let text = p.get(plan);
    // A range reads like `0 (no cap) or more`.
    let zero_meaning = p.range.strip_prefix("0 (").and_then(|r| r.split_once(')')).filter(|_| text == "0");
    match (zero_meaning, p.unit) {
        (Some((meaning, _)), _) => meaning.into(),
        (None, "") => text,
        (None, unit) => format!("{text} {unit}"),
    }
}
