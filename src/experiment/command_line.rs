//! An experiment as a command line, for users without the privilege to run it.

use super::spec::{ExperimentSpec, OnComplete};
use crate::bench::params::PARAMS;
use crate::bench::plan::BenchPlan;
use crate::bench::workloads;

/// Parameters of txlog that the command line can only switch off.
const NEGATED_FLAGS: [(&str, &str); 5] = [
    ("mmap", "--no-mmap"),
    ("readrecords", "--noread"),
    ("writelog", "--nowritelog"),
    ("synclog", "--nosync"),
    ("writestore", "--nowritestore"),
];
const TX_PARAMS: [&str; 3] = ["transactions", "min", "max"];

/// The arguments after the program's name, without defaults, except those that decide how long a round lasts.
pub(crate) fn command_args(spec: &ExperimentSpec) -> Vec<String> {
    let mut out = vec!["experiment".to_owned(), "--workload".into(), spec.plan.profile.clone()];
    let mut put = |words: &[&str]| out.extend(words.iter().map(|w| (*w).to_owned()));
    let needs = workloads::find_workload(&spec.plan.profile).is_some_and(|w| w.needs_directory);
    if needs {
        put(&["--dir", &spec.plan.directory.to_string_lossy()]);
    }
    if let Some(network) = &spec.plan.network {
        put(&["--network", &network.to_string_lossy()]);
    }
    for (option, words) in [("--set", &spec.set_assignments), ("--base", &spec.base_assignments)] {
        if !words.is_empty() {
            put(&[option]);
            put(&words.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
    let default = ExperimentSpec::default();
    if spec.rounds != default.rounds {
        put(&["--rounds", &spec.rounds.to_string()]);
    }
    if spec.control {
        put(&["--control"]);
    }
    if spec.on_complete != OnComplete::Undo {
        put(&["--then", &spec.on_complete.to_arg()]);
    }
    if spec.baseline_ms != default.baseline_ms {
        put(&["--baseline", &(spec.baseline_ms / 1000).to_string()]);
    }
    if spec.drain_limit_ms != default.drain_limit_ms {
        put(&["--drain-limit", &(spec.drain_limit_ms / 1000).to_string()]);
    }
    out.extend(workload_args(&spec.plan));
    out
}

fn workload_args(plan: &BenchPlan) -> Vec<String> {
    let Some(workload) = workloads::find_workload(&plan.profile) else { return Vec::new() };
    let default = workload.defaults();
    let mut out = Vec::new();
    for p in PARAMS.iter().filter(|p| workload.params().contains(&p.name)) {
        let text = p.get(plan);
        let decides = p.name == "time" || p.name == "transactions";
        if text == p.get(&default) && !decides {
            continue;
        }
        // The read-ahead option implies it.
        if p.name == "direct" && plan.readahead != default.readahead {
            continue;
        }
        let off = NEGATED_FLAGS.iter().find(|(name, _)| *name == p.name);
        match (p.name, text.as_str(), off) {
            ("direct", "off", _) => out.push("--buffered".into()),
            (_, "on", _) => out.push(format!("--{}", p.name)),
            (_, "off", Some((_, option))) => out.push((*option).into()),
            // Off is the default.
            (_, "off", None) => {}
            (name, _, _) if TX_PARAMS.contains(&name) => out.extend(["--tx".into(), format!("{name}={text}")]),
            (name, _, _) => out.extend([format!("--{name}"), text]),
        }
    }
    out
}

impl OnComplete {
    /// As the command line takes it: `undo`, `keep`, `lease=600s`.
    pub(crate) fn to_arg(self) -> String {
        match self {
            OnComplete::Undo => "undo".into(),
            OnComplete::Keep => "keep".into(),
            OnComplete::Lease(secs) => format!("lease={secs}s"),
        }
    }
}
