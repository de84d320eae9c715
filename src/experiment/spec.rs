//! The specification of an experiment: everything it will do.

use crate::bench::plan::{BenchPlan, PlanError, require};
use crate::bench::workloads;
use serde::{Deserialize, Serialize};

/// The arm of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
pub enum Arm {
    /// The present settings, or the base assignments.
    A,
    /// The change.
    B,
}

impl Arm {
    /// `A` or `B`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// 0 or 1.
    pub fn index(self) -> usize {
        self as usize
    }
}

/// What to do with the change at the end of a complete experiment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnComplete {
    /// Keep the old values.
    #[default]
    Undo,
    /// If B is shown to be better, set it again until the next boot.
    Keep,
    /// If B is shown to be better, set it again on a lease of this many seconds.
    Lease(u64),
}

/// An experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExperimentSpec {
    /// The workload of every round.
    pub plan: BenchPlan,
    /// Assignments of A, `KNOB[@WHERE]=VALUE`; none: A is the present state.
    #[serde(rename = "base")]
    pub base_assignments: Vec<String>,
    /// Assignments of B.
    #[serde(rename = "set")]
    pub set_assignments: Vec<String>,
    /// Rounds of each arm, fixed beforehand: continuing until a result looks good would prove nothing.
    #[serde(deserialize_with = "read_rounds")]
    pub rounds: u32,
    /// Run a negative control with direct I/O, which knobs of the page cache do not affect.
    pub control: bool,
    /// What to do with the change at the end.
    #[serde(rename = "then")]
    pub on_complete: OnComplete,
    /// Limit for writing back dirty pages before a round, ms.
    pub drain_limit_ms: u64,
    /// How long the activity of other processes is measured before a round, ms.
    #[serde(rename = "calm_ms")]
    pub baseline_ms: u64,
}

impl Default for ExperimentSpec {
    fn default() -> Self {
        Self {
            plan: BenchPlan::default(),
            base_assignments: Vec::new(),
            set_assignments: Vec::new(),
            rounds: super::stats::MIN_ROUNDS as u32,
            control: false,
            on_complete: OnComplete::default(),
            drain_limit_ms: 300_000,
            baseline_ms: 1000,
        }
    }
}

fn check_rounds(rounds: u32) -> Result<(), PlanError> {
    let most = super::stats::MAX_ROUNDS;
    require((1..=most).contains(&(rounds as usize)), format!("rounds {rounds}: must be 1 to {most} of each arm"))
}

/// Refuses rounds that no experiment has: the order of the arms is shown in full.
fn read_rounds<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let rounds = u32::deserialize(from)?;
    check_rounds(rounds).map(|()| rounds).map_err(serde::de::Error::custom)
}

impl ExperimentSpec {
    /// Checks the spec, whatever the machine.
    pub fn check(&self) -> Result<(), PlanError> {
        require(!self.set_assignments.is_empty(), "nothing to compare: --set KNOB=VALUE says what B changes")?;
        check_rounds(self.rounds)?;
        require(
            (1000..=3_600_000).contains(&self.drain_limit_ms) && self.baseline_ms <= 60_000,
            "drain limit: 1 to 3600 s; watching before a round: at most 60 s",
        )?;
        let is_lease_valid = !matches!(self.on_complete, OnComplete::Lease(s) if !(1..=86_400).contains(&s));
        require(is_lease_valid, "a lease lasts 1s to 24h")?;
        require(
            !self.control || !self.plan.directory.as_os_str().is_empty(),
            format!("{} has no directory for the control's file", self.plan.profile),
        )?;
        let plans = std::iter::once(self.plan.clone()).chain(self.control_plan());
        for plan in plans {
            let workload = workloads::find_workload(&plan.profile).ok_or(format!("no profile {}", plan.profile))?;
            plan.check().and_then(|()| (workload.check)(&plan))?;
        }
        Ok(())
    }

    /// The order of arms: A B B A A B B A ..., so that a drift over time affects both alike.
    pub fn arm_order(&self) -> Vec<Arm> {
        (0..self.rounds).flat_map(|n| if n % 2 == 0 { [Arm::A, Arm::B] } else { [Arm::B, Arm::A] }).collect()
    }

    /// The assignments of an arm.
    pub fn assignments(&self, arm: Arm) -> &[String] {
        match arm {
            Arm::A => &self.base_assignments,
            Arm::B => &self.set_assignments,
        }
    }

    /// The workload of the negative control: random 4 KiB direct writes in the same directory.
    pub(crate) fn control_plan(&self) -> Option<BenchPlan> {
        let p = &self.plan;
        self.control.then(|| BenchPlan {
            profile: "randwrite".into(),
            directory: p.directory.clone(),
            network: p.network.clone(),
            size: p.size.max(4096),
            depth: 16,
            read_pct: 0,
            direct: true,
            time_ms: if p.time_ms > 0 { p.time_ms } else { 30_000 },
            stall_limit_ms: p.stall_limit_ms,
            idle: p.idle,
            rate_iops: p.rate_iops,
            rate_bytes: p.rate_bytes,
            seed: p.seed,
            ..BenchPlan::default()
        })
    }

    /// All rounds, including those of the control.
    pub fn total_rounds(&self) -> u32 {
        2 * self.rounds * if self.control { 2 } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_experiment_with_impossible_rounds_is_refused() {
        let read = |rounds: u32| serde_json::from_value::<ExperimentSpec>(serde_json::json!({ "rounds": rounds }));
        assert_eq!(read(50).map(|spec| spec.arm_order().len()).ok(), Some(100));
        for rounds in [0, 51, 16_777_216, u32::MAX] {
            let why = read(rounds).unwrap_err().to_string();
            assert!(why.contains("must be 1 to 50 of each arm"), "{why}");
        }
    }

    fn spec() -> ExperimentSpec {
        ExperimentSpec { set_assignments: vec!["vm.swappiness=1".into()], ..ExperimentSpec::default() }
    }

    #[test]
    fn arms_alternate_and_are_balanced() {
        let order = |rounds| {
            ExperimentSpec { rounds, ..spec() }.arm_order().into_iter().map(Arm::name).collect::<Vec<_>>().join("")
        };
        assert_eq!(order(1), "AB");
        assert_eq!(order(2), "ABBA");
        assert_eq!(order(4), "ABBAABBA");
        assert_eq!(order(5), "ABBAABBAAB");
        assert_eq!(ExperimentSpec { control: true, ..spec() }.total_rounds(), 16);
    }

    #[test]
    fn invalid_specs_are_rejected_by_name() {
        assert_eq!(spec().check(), Ok(()));
        let why = |change: fn(&mut ExperimentSpec)| {
            let mut s = spec();
            change(&mut s);
            s.check().expect_err("accepted").0
        };
        assert!(why(|s| s.set_assignments.clear()).contains("--set"));
        assert!(why(|s| s.rounds = 0).contains("rounds 0"));
        assert!(why(|s| s.rounds = 51).contains("1 to 50"));
        assert!(why(|s| s.on_complete = OnComplete::Lease(0)).contains("lease"));
        assert!(why(|s| s.control = true).contains("directory"));
        assert!(why(|s| s.plan.profile = "x".into()).contains("no profile"));
        assert!(why(|s| s.plan.depth = 0).contains("depth"));
        assert!(serde_json::from_str::<ExperimentSpec>(r#"{"shell":"rm"}"#).is_err());
    }

    #[test]
    fn the_control_uses_direct_io_in_the_same_directory() {
        let plan = BenchPlan {
            directory: "/x".into(),
            profile: "txlog".into(),
            direct: false,
            block: 33,
            ..BenchPlan::default()
        };
        let s = ExperimentSpec { plan: BenchPlan { depth: 1, ..plan }, control: true, ..spec() };
        assert_eq!(s.check(), Ok(()));
        let control = s.control_plan().unwrap();
        assert!(control.direct && control.directory.as_os_str() == "/x" && control.block == 4096);
        assert_eq!(spec().control_plan(), None);
    }
}
