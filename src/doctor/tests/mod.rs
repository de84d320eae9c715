//! Rules on machines built for the purpose: each rule reports in its firing cases and stays silent in its quiet cases;
//! the healthy machine, idle and under a full-speed benchmark, has no warning.

mod causes;
mod device_users;
mod directions;
mod engine;
mod false_causes;
mod firing;
mod firing_stalls;
mod health;
mod hung_threads;
mod journal;
mod kernel_errors;
mod kernel_io;
mod layers;
mod other_machines;
mod own_processes;
mod quiet;
mod servers;
mod situations;
mod syncs;
pub(crate) mod test_machine;

use super::finding::{Finding, NavTarget, Severity};
use super::incident::CAUSAL_RULES;
use super::rules::RULES;
use firing::FiringCase;
use quiet::QuietCase;
use std::collections::BTreeSet;
use test_machine::TestMachine;

fn firing_cases() -> impl Iterator<Item = &'static FiringCase> {
    firing::FIRING
        .iter()
        .chain(firing_stalls::FIRING)
        .chain(syncs::FIRING)
        .chain(health::FIRING)
        .chain(directions::FIRING)
        .chain(layers::FIRING)
        .chain(hung_threads::FIRING)
        .chain(other_machines::FIRING)
        .chain(kernel_errors::FIRING)
        .chain(servers::FIRING)
}

fn quiet_cases() -> impl Iterator<Item = &'static QuietCase> {
    quiet::QUIET
        .iter()
        .chain(syncs::QUIET)
        .chain(health::QUIET)
        .chain(directions::QUIET)
        .chain(layers::QUIET)
        .chain(hung_threads::QUIET)
        .chain(other_machines::QUIET)
        .chain(kernel_errors::QUIET)
        .chain(servers::QUIET)
}

/// What the case's rule finds on the case's machine.
fn findings(case: &FiringCase) -> Vec<Finding> {
    let mut machine = TestMachine::new();
    (case.set_up)(&mut machine);
    machine.evaluate_rule(case.rule).0
}

#[test]
fn every_rule_has_a_firing_and_a_quiet_case() {
    for rule in RULES {
        assert_eq!(RULES.iter().filter(|r| r.name == rule.name).count(), 1, "{} twice", rule.name);
        assert!(firing_cases().any(|c| c.rule == rule.name), "{}: no firing case", rule.name);
        assert!(quiet_cases().any(|c| c.rule == rule.name), "{}: no quiet case", rule.name);
    }
}

#[test]
fn rules_fire_in_firing_cases() {
    for case in firing_cases() {
        let found = findings(case);
        let hit = found.iter().find(|f| f.severity == case.severity && f.title.contains(case.title_part));
        let Some(f) = hit else {
            let titles: Vec<_> = found.iter().map(|f| (f.severity, f.title.as_str())).collect();
            let expected = (case.severity, case.title_part);
            panic!("{} ({}): expected {expected:?}, found {titles:?}", case.rule, case.description)
        };
        assert_eq!(f.rule, case.rule);
        assert!(!f.why.is_empty() && !f.remedies.is_empty(), "{}: no remedy", f.title);
        assert!(f.remedies.iter().all(|r| !r.cost.is_empty()), "{}: no cost", f.title);
        assert!(f.title.chars().all(crate::sanitize::is_safe), "{:?}", f.title);
    }
}

#[test]
fn rules_stay_silent_in_quiet_cases() {
    for case in quiet_cases() {
        let mut machine = TestMachine::new();
        (case.set_up)(&mut machine);
        let (found, result) = machine.evaluate_rule(case.rule);
        let titles: Vec<_> = found.iter().filter(|f| f.severity >= case.min_severity).map(|f| &f.title).collect();
        assert!(titles.is_empty(), "{} ({}): {titles:?}", case.rule, case.description);
        if let Some(is_expected) = &case.expected_result {
            assert!(is_expected(&result), "{} ({}): {result:?}", case.rule, case.description);
        }
    }
}

#[test]
fn finding_texts_match_the_snapshot() {
    let mut text = String::new();
    for f in firing_cases().flat_map(findings) {
        let evidence: Vec<String> = f.evidence.iter().map(|e| format!("{} {}", e.name, e.value)).collect();
        text.push_str(&format!("{} [{}] {}\n    {}\n", f.rule, f.severity.name(), f.title, evidence.join(" · ")));
        for r in &f.remedies {
            let target = r.nav_target.as_ref().map_or(String::new(), |target| format!("  → {}", target.label()));
            text.push_str(&format!("    try {}{target}\n", r.action));
        }
    }
    insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!("what_rules_say", text) });
}

#[test]
fn idle_machine_has_no_findings() {
    let mut machine = TestMachine::new();
    machine.idle_ticks(60);
    machine.add_task(500, "redis-server", |_| {}, Default::default(), 0);
    machine.add_task(501, "postgres", |_| {}, Default::default(), 0);
    assert_eq!(machine.evaluate_all(), []);
}

#[test]
fn healthy_benchmark_at_full_speed_is_at_most_a_note() {
    for (id, name, load) in [
        (test_machine::NVME, "nvme0n1", (205_000.0, 0.31, 63.8, 4.0, 0.5)),
        (test_machine::VDA, "vda", (30_000.0, 2.1, 64.0, 4.0, 0.5)),
        (test_machine::VDA, "vda", (3_030.0, 18.0, 64.0, 4.0, 0.5)),
        (test_machine::NVME, "nvme0n1", (14_000.0, 2.0, 28.0, 256.0, 1.0)),
    ] {
        let mut machine = TestMachine::new();
        machine.ticks(30, |s| test_machine::set_device(s, test_machine::busy_device(id, name, load)));
        let bytes = (load.0 * load.3 * 1024.0) as u64;
        let io = crate::model::process::IoBytes { read: bytes / 2, write: bytes / 2, cancelled: 0 };
        machine.add_task(700, "fio", |_| {}, io, 0);
        let worse: Vec<_> = machine.evaluate_all().into_iter().filter(|f| f.severity > Severity::Note).collect();
        assert_eq!(worse, [], "{name} {load:?}");
    }
}

#[test]
fn every_knob_and_benchmark_target_exists() {
    let mut knobs = BTreeSet::new();
    for f in firing_cases().flat_map(findings) {
        for target in f.remedies.iter().filter_map(|r| r.nav_target.as_ref()).chain(&f.see_also) {
            match target {
                NavTarget::Knob(id) => {
                    crate::tuning::knob_id::KnobId::parse(id).unwrap_or_else(|why| panic!("{}: {why}", f.rule));
                    knobs.insert(id.split('@').next().unwrap().to_owned());
                }
                NavTarget::Bench(profile, _) => {
                    assert!(crate::bench::workloads::find_workload(profile).is_some(), "{}: {profile}", f.rule);
                }
                _ => {}
            }
        }
    }
    for knob in ["vm.dirty_bytes", "scheduler", "read_ahead_kb", "nofile", "atime", "transparent_hugepage.enabled"] {
        assert!(knobs.contains(knob), "no finding links to {knob}: {knobs:?}");
    }
}

#[test]
fn causal_rules_exist_and_have_no_cycle() {
    for (i, (cause, _, effects)) in CAUSAL_RULES.iter().enumerate() {
        assert!(RULES.iter().any(|r| r.name == *cause), "{cause}");
        for effect in effects.split(' ') {
            assert!(RULES.iter().any(|r| r.name == effect), "{cause} -> {effect}");
            let is_before = CAUSAL_RULES[..i].iter().any(|(c, ..)| *c == effect);
            assert!(!is_before, "{effect} is listed before its cause {cause}");
        }
    }
}
