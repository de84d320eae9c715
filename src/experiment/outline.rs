//! What an experiment is going to do, in words, before it does: the same for the command line and the screen.

use super::arms::Checked;
use super::live;
use super::spec::{Arm, Spec, Then};
use crate::bench::outline::{outline as of_work, will_write};
use crate::bench::plan::Plan;
use crate::bench::workloads;
use crate::units::{format_bytes_long, format_duration};

/// A page is written by its age at most so much later than dirty_expire says: a round lasts by this factor longer
/// unless its time is given.
const OUTLAST: f64 = 1.3;

/// Makes rounds of a buffered workload longer than pages stay dirty. Not for rounds whose length somebody chose,
/// nor for work that has an end of its own.
pub fn outlast(spec: &mut Spec, checked: &Checked) {
    let plan = &mut spec.plan;
    let txlog = plan.profile == "txlog";
    let timed = txlog || (plan.time_ms > 0 && plan.profile != "sweep");
    let Some(expire) = checked.memory.expire_centisecs.filter(|_| checked.only_page_cache) else { return };
    if !timed || plan.direct {
        return;
    }
    let least = (expire as f64 / 100.0 * OUTLAST).ceil() as u64 * 1000;
    plan.time_ms = plan.time_ms.max(least);
    if txlog {
        plan.txlog.transactions = 0;
    }
}

/// Everything that is going to happen, a line each.
pub fn outline(spec: &Spec, checked: &Checked) -> String {
    let mut out = format!("Experiment, {} rounds of each arm\n", spec.rounds);
    let stands = if spec.base.is_empty() { "as it stands: " } else { "" };
    out.push_str(&format!("A {stands}{}\nB {}\n", checked.line(Arm::A), checked.line(Arm::B)));
    for plan in std::iter::once(spec.plan.clone()).chain(spec.control_plan()) {
        if let Some(workload) = workloads::find(&plan.profile) {
            out.push_str(&of_work(workload, &plan));
            out.push_str(&format!("  each round: {}\n", will_write(workload, &plan)));
        }
    }
    let order: Vec<&str> = spec.order().into_iter().map(Arm::name).collect();
    out.push_str(&format!(
        "order {}{}\n",
        order.join(" "),
        if spec.control { ", then the same with the control" } else { "" }
    ));
    out.push_str(&format!("time: {}\n", time(spec)));
    out.push_str(&format!(
        "before each round dirty pages are drained (at most {}) and others watched for {} s; values are on a lease of {} \
         that is renewed only while this runs, and put back after each round\n",
        format_duration(spec.drain_limit_ms / 1000),
        spec.calm_ms as f64 / 1e3,
        format_duration(live::LEASE.as_secs())
    ));
    out.push_str(&match spec.then {
        Then::Undo => "at the end the old values are back\n".to_owned(),
        Then::Keep => "at the end B is set until the boot if it is shown to be better\n".to_owned(),
        Then::Lease(s) => {
            format!("at the end B is set on a lease of {} if it is shown to be better\n", format_duration(s))
        }
    });
    out
}

/// How long all of it takes, as far as anybody can know.
fn time(spec: &Spec) -> String {
    let one = |plan: &Plan| (plan.time_ms + plan.ramp_ms + spec.calm_ms) * u64::from(2 * spec.rounds) / 1000;
    let plans: Vec<Plan> = std::iter::once(spec.plan.clone()).chain(spec.control_plan()).collect();
    let files = plans.iter().filter_map(|p| workloads::find(&p.profile).map(|w| w.footprint(p))).max();
    let files = files.filter(|bytes| *bytes > 0);
    let rounds = spec.all_rounds();
    let bytes =
        files.map_or(String::new(), |b| format!(", and making a file of up to {} each time", format_bytes_long(b)));
    match plans.iter().all(|p| p.time_ms > 0) {
        true => format!("{} of measuring in {rounds} rounds{bytes}", format_duration(plans.iter().map(one).sum())),
        false => format!("{rounds} rounds until their work is done{bytes}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::arms::Memory;
    use super::*;

    fn checked(only_page_cache: bool) -> Checked {
        let memory = Memory { expire_centisecs: Some(3000), ..Memory::default() };
        Checked { settings: Vec::new(), memory, only_page_cache }
    }

    #[test]
    fn rounds_outlast_the_age_of_dirty_pages_where_that_counts() {
        let time = |profile: &str, direct, only| {
            let mut spec = Spec { plan: workloads::find(profile).unwrap().defaults(), ..Spec::default() };
            spec.plan.direct = direct;
            outlast(&mut spec, &checked(only));
            (spec.plan.time_ms / 1000, spec.plan.txlog.transactions)
        };
        assert_eq!(time("randwrite", false, true), (39, 100));
        assert_eq!(time("randwrite", true, true), (30, 100), "direct I/O leaves no dirty pages");
        assert_eq!(time("randwrite", false, false), (30, 100), "other knobs do not wait for age");
        assert_eq!(time("txlog", false, true), (39, 0), "as many transactions as the time allows");
        assert_eq!(time("sweep", false, true).1, 100);
    }

    #[test]
    fn everything_is_said_beforehand() {
        let plan = Plan { directory: "/data".into(), ..workloads::find("fsync").unwrap().defaults() };
        let set = vec!["vm.dirty_ratio=80".into()];
        let spec = Spec { plan, set, control: true, then: Then::Lease(600), ..Spec::default() };
        let said = outline(&spec, &checked(true));
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
