//! Rules against machines made up for the purpose: each rule fires where it should and not where it nearly
//! should; the healthy machine, idle and under a full-speed benchmark, has nothing critical.

mod engine;
mod firing;
mod firing_stalls;
mod io_attribution;
mod quiet;
mod syncs;
mod test_machine;

use super::finding::{NavTarget, Severity};
use super::incident::CAUSAL_RULES;
use super::rules::RULES;
use firing::FiringCase;
use quiet::QuietCase;
use std::collections::BTreeSet;
use test_machine::TestMachine;

fn firing_cases() -> impl Iterator<Item = &'static FiringCase> {
    firing::FIRING.iter().chain(firing_stalls::FIRING).chain(syncs::FIRING)
}

fn quiet_cases() -> impl Iterator<Item = &'static QuietCase> {
    quiet::QUIET.iter().chain(syncs::QUIET)
}

#[test]
fn every_rule_has_a_firing_and_a_quiet_case() {
    for rule in RULES {
        assert_eq!(RULES.iter().filter(|r| r.name == rule.name).count(), 1, "{} twice", rule.name);
        assert!(firing_cases().any(|c| c.rule == rule.name), "{}: no case that fires", rule.name);
        assert!(quiet_cases().any(|c| c.rule == rule.name), "{}: no case that does not", rule.name);
    }
}

#[test]
fn rules_fire_in_firing_cases() {
    for case in firing_cases() {
        let mut stage = TestMachine::new();
        (case.set_up)(&mut stage);
        let (found, _) = stage.evaluate_rule(case.rule);
        let told: Vec<_> = found.iter().map(|f| (f.severity, f.title.as_str())).collect();
        let hit = found.iter().find(|f| f.severity == case.severity && f.title.contains(case.title_part));
        let Some(f) = hit else {
            panic!(
                "{} ({}): wanted {:?} {:?}, found {told:?}",
                case.rule, case.description, case.severity, case.title_part
            )
        };
        assert_eq!(f.rule, case.rule);
        assert!(!f.why.is_empty() && !f.remedies.is_empty(), "{}: what now?", f.title);
        assert!(f.remedies.iter().all(|r| !r.cost.is_empty()), "{}: at what cost?", f.title);
        assert!(f.title.chars().all(crate::sanitize::is_safe), "{:?}", f.title);
    }
}

#[test]
fn rules_stay_silent_in_quiet_cases() {
    for case in quiet_cases() {
        let mut stage = TestMachine::new();
        (case.set_up)(&mut stage);
        let (found, judged) = stage.evaluate_rule(case.rule);
        let loud: Vec<_> = found.iter().filter(|f| f.severity >= case.min_severity).map(|f| &f.title).collect();
        assert!(loud.is_empty(), "{} ({}): {loud:?}", case.rule, case.description);
        if let Some(wanted) = &case.expected_status {
            assert!(wanted(&judged), "{} ({}): {judged:?}", case.rule, case.description);
        }
    }
}

#[test]
fn finding_texts_match_the_snapshot() {
    let mut all = String::new();
    for case in firing_cases() {
        let mut stage = TestMachine::new();
        (case.set_up)(&mut stage);
        for f in stage.evaluate_rule(case.rule).0 {
            let figures: Vec<String> = f.evidence.iter().map(|e| format!("{} {}", e.name, e.value)).collect();
            all.push_str(&format!("{} [{}] {}\n    {}\n", f.rule, f.severity.name(), f.title, figures.join(" · ")));
            for r in &f.remedies {
                let at = r.nav_target.as_ref().map_or(String::new(), |j| format!("  → {}", j.label()));
                all.push_str(&format!("    try {}{at}\n", r.action));
            }
        }
    }
    insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!("what_rules_say", all) });
}

#[test]
fn idle_machine_has_no_findings() {
    let mut stage = TestMachine::new();
    stage.idle_ticks(60);
    stage.add_task(500, "redis-server", |_| {}, Default::default(), 0);
    stage.add_task(501, "postgres", |_| {}, Default::default(), 0);
    assert_eq!(stage.evaluate_all(), []);
}

#[test]
fn healthy_benchmark_at_full_speed_is_at_most_a_note() {
    for (id, name, load) in [
        (test_machine::NVME, "nvme0n1", (205_000.0, 0.31, 63.8, 4.0, 0.5)),
        (test_machine::VDA, "vda", (30_000.0, 2.1, 64.0, 4.0, 0.5)),
        (test_machine::VDA, "vda", (3_030.0, 18.0, 64.0, 4.0, 0.5)),
        (test_machine::NVME, "nvme0n1", (14_000.0, 2.0, 28.0, 256.0, 1.0)),
    ] {
        let mut stage = TestMachine::new();
        stage.ticks(30, |s| test_machine::set_device(s, test_machine::busy_device(id, name, load)));
        let bytes = (load.0 * load.3 * 1024.0) as u64;
        let did = crate::model::process::IoBytes { read: bytes / 2, write: bytes / 2, cancelled: 0 };
        stage.add_task(700, "fio", |_| {}, did, 0);
        let worse: Vec<_> = stage.evaluate_all().into_iter().filter(|f| f.severity > Severity::Note).collect();
        assert_eq!(worse, [], "{name} {load:?}");
    }
}

#[test]
fn every_knob_and_benchmark_target_exists() {
    let mut knobs = BTreeSet::new();
    for case in firing_cases() {
        let mut stage = TestMachine::new();
        (case.set_up)(&mut stage);
        for f in stage.evaluate_rule(case.rule).0 {
            for jump in f.nav_targets() {
                match jump {
                    NavTarget::Knob(at) => {
                        crate::tuning::knob_id::KnobId::parse(at).unwrap_or_else(|why| panic!("{}: {why}", f.rule));
                        knobs.insert(at.split('@').next().unwrap().to_owned());
                    }
                    NavTarget::Bench(profile, _) => {
                        assert!(crate::bench::workloads::find_workload(profile).is_some(), "{}: {profile}", f.rule);
                    }
                    _ => {}
                }
            }
        }
    }
    for knob in ["vm.dirty_bytes", "scheduler", "read_ahead_kb", "nofile", "atime", "transparent_hugepage.enabled"] {
        assert!(knobs.contains(knob), "no finding leads to {knob}: {knobs:?}");
    }
}

#[test]
fn causal_rules_exist_and_have_no_cycle() {
    for (i, (cause, effects)) in CAUSAL_RULES.iter().enumerate() {
        assert!(RULES.iter().any(|r| r.name == *cause), "{cause}");
        for effect in *effects {
            assert!(RULES.iter().any(|r| r.name == *effect), "{cause} -> {effect}");
            // An effect told before its cause would stand alone.
            let before = CAUSAL_RULES[..i].iter().any(|(c, _)| c == effect);
            assert!(!before, "{effect} is told before its cause {cause}");
        }
    }
}
