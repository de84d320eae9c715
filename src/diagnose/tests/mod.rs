//! Rules against machines made up for the purpose: each rule fires where it should and not where it nearly
//! should; the healthy machine, idle and under a full-speed benchmark, has nothing critical.

mod charged;
mod engine;
mod firing;
mod firing_stalls;
mod quiet;
mod stage;
mod syncs;

use super::finding::{Jump, Severity};
use super::rules::RULES;
use super::story::CAUSES;
use firing::Fires;
use quiet::Quiet;
use stage::Stage;
use std::collections::BTreeSet;

fn all_firing() -> impl Iterator<Item = &'static Fires> {
    firing::FIRING.iter().chain(firing_stalls::FIRING).chain(syncs::FIRING)
}

fn all_quiet() -> impl Iterator<Item = &'static Quiet> {
    quiet::QUIET.iter().chain(syncs::QUIET)
}

#[test]
fn every_rule_has_a_case_that_fires_and_one_that_nearly_does() {
    for rule in RULES {
        assert_eq!(RULES.iter().filter(|r| r.name == rule.name).count(), 1, "{} twice", rule.name);
        assert!(all_firing().any(|c| c.rule == rule.name), "{}: no case that fires", rule.name);
        assert!(all_quiet().any(|c| c.rule == rule.name), "{}: no case that does not", rule.name);
    }
}

#[test]
fn rules_fire_where_they_should() {
    for case in all_firing() {
        let mut stage = Stage::new();
        (case.make)(&mut stage);
        let (found, _) = stage.rule(case.rule);
        let told: Vec<_> = found.iter().map(|f| (f.severity, f.title.as_str())).collect();
        let hit = found.iter().find(|f| f.severity == case.severity && f.title.contains(case.says));
        let Some(f) = hit else {
            panic!(
                "{} ({}): wanted {:?} {:?}, found {told:?}",
                case.rule, case.what, case.severity, case.says
            )
        };
        assert_eq!(f.rule, case.rule);
        assert!(!f.why.is_empty() && !f.remedies.is_empty(), "{}: what now?", f.title);
        assert!(f.remedies.iter().all(|r| !r.cost.is_empty()), "{}: at what cost?", f.title);
        assert!(f.title.chars().all(crate::text::is_safe), "{:?}", f.title);
    }
}

#[test]
fn rules_keep_quiet_where_they_should() {
    for case in all_quiet() {
        let mut stage = Stage::new();
        (case.make)(&mut stage);
        let (found, judged) = stage.rule(case.rule);
        let loud: Vec<_> = found.iter().filter(|f| f.severity >= case.from).map(|f| &f.title).collect();
        assert!(loud.is_empty(), "{} ({}): {loud:?}", case.rule, case.what);
        if let Some(wanted) = &case.judged {
            assert!(wanted(&judged), "{} ({}): {judged:?}", case.rule, case.what);
        }
    }
}

#[test]
fn what_they_say() {
    let mut all = String::new();
    for case in all_firing() {
        let mut stage = Stage::new();
        (case.make)(&mut stage);
        for f in stage.rule(case.rule).0 {
            let figures: Vec<String> = f.evidence.iter().map(|e| format!("{} {}", e.name, e.value)).collect();
            all.push_str(&format!(
                "{} [{}] {}\n    {}\n",
                f.rule,
                f.severity.name(),
                f.title,
                figures.join(" · ")
            ));
            for r in &f.remedies {
                let at = r.jump.as_ref().map_or(String::new(), |j| format!("  → {}", j.label()));
                all.push_str(&format!("    try {}{at}\n", r.what));
            }
        }
    }
    insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!("what_rules_say", all) });
}

#[test]
fn the_idle_machine_has_nothing() {
    let mut stage = Stage::new();
    stage.quiet(60);
    stage.task(500, "redis-server", |_| {}, Default::default(), 0);
    stage.task(501, "postgres", |_| {}, Default::default(), 0);
    assert_eq!(stage.all(), []);
}

#[test]
fn a_healthy_benchmark_at_full_speed_is_a_note() {
    for (id, name, load) in [
        (stage::NVME, "nvme0n1", (205_000.0, 0.31, 63.8, 4.0, 0.5)),
        (stage::VDA, "vda", (30_000.0, 2.1, 64.0, 4.0, 0.5)),
        (stage::VDA, "vda", (3_030.0, 18.0, 64.0, 4.0, 0.5)),
        (stage::NVME, "nvme0n1", (14_000.0, 2.0, 28.0, 256.0, 1.0)),
    ] {
        let mut stage = Stage::new();
        stage.ticks(30, |s| stage::with(s, stage::load(id, name, load)));
        let bytes = (load.0 * load.3 * 1024.0) as u64;
        let did = crate::model::process::IoBytes { read: bytes / 2, write: bytes / 2, cancelled: 0 };
        stage.task(700, "fio", |_| {}, did, 0);
        let worse: Vec<_> = stage.all().into_iter().filter(|f| f.severity > Severity::Note).collect();
        assert_eq!(worse, [], "{name} {load:?}");
    }
}

#[test]
fn every_jump_to_a_knob_or_a_benchmark_leads_somewhere() {
    let mut knobs = BTreeSet::new();
    for case in all_firing() {
        let mut stage = Stage::new();
        (case.make)(&mut stage);
        for f in stage.rule(case.rule).0 {
            for jump in f.jumps() {
                match jump {
                    Jump::Knob(at) => {
                        crate::tune::address::Address::parse(at)
                            .unwrap_or_else(|why| panic!("{}: {why}", f.rule));
                        knobs.insert(at.split('@').next().unwrap().to_owned());
                    }
                    Jump::Bench(profile, _) => {
                        assert!(crate::bench::workloads::find(profile).is_some(), "{}: {profile}", f.rule);
                    }
                    _ => {}
                }
            }
        }
    }
    for knob in
        ["vm.dirty_bytes", "scheduler", "read_ahead_kb", "nofile", "atime", "transparent_hugepage.enabled"]
    {
        assert!(knobs.contains(knob), "no finding leads to {knob}: {knobs:?}");
    }
}

#[test]
fn the_order_of_causes_names_rules_only_and_has_no_circle() {
    for (i, (cause, effects)) in CAUSES.iter().enumerate() {
        assert!(RULES.iter().any(|r| r.name == *cause), "{cause}");
        for effect in *effects {
            assert!(RULES.iter().any(|r| r.name == *effect), "{cause} -> {effect}");
            // An effect told before its cause would stand alone.
            let before = CAUSES[..i].iter().any(|(c, _)| c == effect);
            assert!(!before, "{effect} is told before its cause {cause}");
        }
    }
}
