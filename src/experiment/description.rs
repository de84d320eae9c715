//! Text about what an experiment will do, for the command line and the screen.

use super::arm_settings::ValidatedSpec;
use super::spec::{Arm, ExperimentSpec, OnComplete};
use super::system_environment;
use crate::bench::description::{describe_run as of_work, describe_writes};
use crate::bench::plan::BenchPlan;
use crate::bench::workloads;
use crate::units::{format_bytes_long, format_duration};

/// Rounds last longer than dirty_expire by this factor, because pages are written some time after they expire,
/// unless their time is given.
const EXPIRE_MARGIN: f64 = 1.3;

/// Makes rounds of a buffered workload longer than pages stay dirty, unless it ends by itself.
pub(crate) fn extend_past_dirty_expire(spec: &mut ExperimentSpec, checked: &ValidatedSpec) {
    let plan = &mut spec.plan;
    let txlog = plan.profile == "txlog";
    let timed = txlog || (plan.time_ms > 0 && plan.profile != "sweep");
    let Some(expire) = checked.memory.expire_centisecs.filter(|_| checked.only_page_cache) else { return };
    if !timed || plan.direct {
        return;
    }
    let least = (expire as f64 / 100.0 * EXPIRE_MARGIN).ceil() as u64 * 1000;
    plan.time_ms = plan.time_ms.max(least);
    if txlog {
        plan.txlog.transactions = 0;
    }
}

pub(crate) fn describe_experiment(spec: &ExperimentSpec, checked: &ValidatedSpec) -> String {
    let mut out = format!("Experiment, {} rounds of each arm\n", spec.rounds);
    let stands = if spec.base_assignments.is_empty() { "as it stands: " } else { "" };
    out.push_str(&format!("A {stands}{}\nB {}\n", checked.arm_line(Arm::A), checked.arm_line(Arm::B)));
    for plan in std::iter::once(spec.plan.clone()).chain(spec.control_plan()) {
        if let Some(workload) = workloads::find_workload(&plan.profile) {
            out.push_str(&of_work(workload, &plan));
            out.push_str(&format!("  each round: {}\n", describe_writes(workload, &plan)));
        }
    }
    let order: Vec<&str> = spec.arm_order().into_iter().map(Arm::name).collect();
    let control = if spec.control { ", then the same with the control" } else { "" };
    out.push_str(&format!("order {}{control}\ntime: {}\n", order.join(" "), describe_duration(spec)));
    let (limit, calm) = (format_duration(spec.drain_limit_ms / 1000), spec.baseline_ms as f64 / 1e3);
    let lease = format_duration(system_environment::LEASE_DURATION.as_secs());
    out.push_str(&format!(
        "before each round dirty pages are drained (at most {limit}) and others watched for {calm} s; values are on a \
         lease of {lease} that is renewed only while this runs, and put back after each round\n"
    ));
    out.push_str(&match spec.on_complete {
        OnComplete::Undo => "at the end the old values are back\n".to_owned(),
        OnComplete::Keep => "at the end B is set until the boot if it is shown to be better\n".to_owned(),
        OnComplete::Lease(s) => {
            format!("at the end B is set on a lease of {} if it is shown to be better\n", format_duration(s))
        }
    });
    out
}

fn describe_duration(spec: &ExperimentSpec) -> String {
    let one = |plan: &BenchPlan| (plan.time_ms + plan.ramp_ms + spec.baseline_ms) * u64::from(2 * spec.rounds) / 1000;
    let plans: Vec<BenchPlan> = std::iter::once(spec.plan.clone()).chain(spec.control_plan()).collect();
    let footprint = |p: &BenchPlan| Some((workloads::find_workload(&p.profile)?.footprint)(p));
    let files = plans.iter().filter_map(footprint).max().filter(|bytes| *bytes > 0);
    let files = files.map(|b| format!(", and making a file of up to {} each time", format_bytes_long(b)));
    let (rounds, files) = (spec.total_rounds(), files.unwrap_or_default());
    match plans.iter().all(|p| p.time_ms > 0) {
        true => format!("{} of measuring in {rounds} rounds{files}", format_duration(plans.iter().map(one).sum())),
        false => format!("{rounds} rounds until their work is done{files}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::arm_settings::DirtyMemory;
    use super::*;

    fn validated_spec(only_page_cache: bool) -> ValidatedSpec {
        let memory = DirtyMemory { expire_centisecs: Some(3000), ..DirtyMemory::default() };
        ValidatedSpec { settings: Vec::new(), memory, only_page_cache }
    }

    #[test]
    fn buffered_rounds_are_longer_than_the_dirty_expire_time() {
        let time = |profile: &str, direct, only| {
            let mut spec = ExperimentSpec {
                plan: workloads::find_workload(profile).unwrap().defaults(),
                ..ExperimentSpec::default()
            };
            spec.plan.direct = direct;
            extend_past_dirty_expire(&mut spec, &validated_spec(only));
            (spec.plan.time_ms / 1000, spec.plan.txlog.transactions)
        };
        assert_eq!(time("randwrite", false, true), (39, 100));
        assert_eq!(time("randwrite", true, true), (30, 100), "direct I/O leaves no dirty pages");
        assert_eq!(time("randwrite", false, false), (30, 100), "other knobs do not wait for age");
        assert_eq!(time("txlog", false, true), (39, 0), "as many transactions as the time allows");
        assert_eq!(time("sweep", false, true).1, 100);
    }

    #[test]
    fn description_names_everything_that_will_happen() {
        let plan = BenchPlan { directory: "/data".into(), ..workloads::find_workload("fsync").unwrap().defaults() };
        let set = vec!["vm.dirty_ratio=80".into()];
        let spec = ExperimentSpec {
            plan,
            set_assignments: set,
            control: true,
            on_complete: OnComplete::Lease(600),
            ..ExperimentSpec::default()
        };
        let said = describe_experiment(&spec, &validated_spec(true));
        for part in [
            "4 rounds of each arm",
            "order A B B A A B B A, then the same with the control",
            "in /data",
            "each round: Writes",
            "nothing stays",
            "drained (at most 5m00s)",
            "put back after each round",
            "on a lease of 10m00s if it is shown to be better",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
