//! The settings of the two arms on this machine, validated before anything is written.

use super::spec::{Arm, ExperimentSpec};
use crate::root::Root;
use crate::tuning::child_io::ChildKnobIo;
use crate::tuning::knob::{KnobGroup, KnobLink};
use crate::tuning::knob_id::KnobId;
use crate::tuning::knob_io::KnobIo;
use crate::tuning::machine_limits::MachineLimits;
use crate::tuning::plan::{PlannedWrite, TuneError, plan_writes};
use crate::tuning::progress_check;
use crate::tuning::value;
use serde::{Deserialize, Serialize};

/// The values of a knob in both arms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmSetting {
    /// The knob, sanitized.
    pub knob: String,
    /// The kernel's value in A and in B.
    pub values: [String; 2],
    /// The same for display, with sizes in bytes; empty for the unused half of a pair.
    #[serde(rename = "shown")]
    pub display_values: [String; 2],
}

/// The memory that dirty thresholds apply to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirtyMemory {
    /// All of it, bytes.
    #[serde(rename = "total")]
    pub total_bytes: Option<u64>,
    /// Free and file pages, to which ratios apply, bytes.
    #[serde(rename = "dirtyable")]
    pub dirtyable_bytes: Option<u64>,
    /// Age at which a dirty page is written, hundredths of a second.
    pub expire_centisecs: Option<u64>,
    /// How often the kernel looks for such pages, hundredths of a second.
    pub writeback_centisecs: Option<u64>,
}

/// A validated spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidatedSpec {
    /// Every knob that an arm names or changes.
    pub settings: Vec<ArmSetting>,
    /// The machine's memory.
    pub memory: DirtyMemory,
    /// Whether all of it is about the page cache.
    pub only_page_cache: bool,
}

/// Validates both arms. Knobs of devices are read in a child with a deadline of seconds: not for the thread that draws.
pub fn validate(root: &Root, spec: &ExperimentSpec) -> Result<ValidatedSpec, TuneError> {
    let mut io = ChildKnobIo::new(root, Root::self_exe().into());
    let checked = validate_with(&mut io, &MachineLimits::read(root), read_dirty_memory(root), spec)?;
    for word in spec.base_assignments.iter().chain(&spec.set_assignments) {
        if let Some(Ok(at)) = word.rsplit_once('=').map(|(knob, _)| KnobId::parse(knob)) {
            progress_check::require_progress(root, &at)?;
        }
    }
    Ok(checked)
}

fn validate_with(
    io: &mut dyn KnobIo,
    machine: &MachineLimits,
    memory: DirtyMemory,
    spec: &ExperimentSpec,
) -> Result<ValidatedSpec, TuneError> {
    let (a, b) = (plan_writes(io, machine, &spec.base_assignments)?, plan_writes(io, machine, &spec.set_assignments)?);
    let mut knobs: Vec<KnobId> = Vec::new();
    for p in a.iter().chain(&b) {
        let zeroed = p.zeroed_partner.iter().map(|(at, _)| at.clone());
        for at in std::iter::once(p.knob.clone()).chain(zeroed) {
            if !knobs.contains(&at) {
                knobs.push(at);
            }
        }
    }
    let mut settings = Vec::new();
    for at in &knobs {
        let now = io.read(at)?.value;
        let values = [value_in_arm(&a, at, &now), value_in_arm(&b, at, &now)];
        settings.push(ArmSetting {
            knob: crate::sanitize::sanitize(at.to_string()),
            display_values: values.each_ref().map(|v| display_value(at, v, machine)),
            values,
        });
    }
    if settings.iter().all(|s| s.values[0] == s.values[1]) {
        return Err(TuneError::Usage(
            "A and B are the same: what B sets is in force already; choose other values, or give A values of its \
             own (--base)"
                .into(),
        ));
    }
    let page_cache = |at: &KnobId| matches!(at.definition().group, KnobGroup::Writeback | KnobGroup::Bdi);
    let only_page_cache = knobs.iter().all(page_cache);
    if spec.control && !only_page_cache {
        return Err(TuneError::Usage(
            "--control: direct I/O is a control for dirty-page knobs only; others may well act on it".into(),
        ));
    }
    Ok(ValidatedSpec { settings, memory, only_page_cache })
}

/// The value for display; empty for a half of a pair that is 0, as the other half is in use.
fn display_value(at: &KnobId, value: &str, machine: &MachineLimits) -> String {
    match at.definition().link {
        KnobLink::Pair(_) if value == "0" => String::new(),
        _ => crate::sanitize::sanitize(value::format_with_meaning(at.definition(), value, machine)),
    }
}

/// A knob's value in an arm: the planned one, 0 if the other half of its pair is planned, else the present one.
fn value_in_arm(planned: &[PlannedWrite], at: &KnobId, now: &str) -> String {
    if let Some(p) = planned.iter().find(|p| p.knob == *at) {
        return p.target.clone();
    }
    let zeroed = planned.iter().any(|p| p.zeroed_partner.as_ref().is_some_and(|(other, _)| other == at));
    if zeroed { "0".into() } else { now.to_owned() }
}

fn read_dirty_memory(root: &Root) -> DirtyMemory {
    let machine = MachineLimits::read(root);
    let number = |file: &str| std::fs::read_to_string(root.proc(file)).ok()?.trim().parse().ok();
    DirtyMemory {
        total_bytes: machine.memory_bytes,
        dirtyable_bytes: machine.dirtyable_bytes,
        expire_centisecs: number("sys/vm/dirty_expire_centisecs"),
        writeback_centisecs: number("sys/vm/dirty_writeback_centisecs"),
    }
}

impl ValidatedSpec {
    pub(crate) fn arm_line(&self, arm: Arm) -> String {
        settings_line(&self.settings, arm)
    }
}

/// `knob = value, knob = value`, those that differ between the arms first.
pub(crate) fn settings_line(settings: &[ArmSetting], arm: Arm) -> String {
    let different = settings.iter().filter(|s| s.values[0] != s.values[1]);
    let same = settings.iter().filter(|s| s.values[0] == s.values[1]);
    let all = different.chain(same).filter(|s| !s.display_values[arm.index()].is_empty());
    all.map(|s| format!("{} = {}", s.knob, s.display_values[arm.index()])).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuning::tests::fake_knob_io::FakeKnobIo;

    fn validate_words(base: &[&str], set: &[&str], control: bool) -> Result<ValidatedSpec, TuneError> {
        let words = |all: &[&str]| all.iter().map(|w| w.to_string()).collect();
        let spec = ExperimentSpec {
            base_assignments: words(base),
            set_assignments: words(set),
            control,
            ..ExperimentSpec::default()
        };
        let machine = MachineLimits {
            page_bytes: 4096,
            dirtyable_bytes: Some(1 << 30),
            memory_bytes: Some(2 << 30),
            ..MachineLimits::default()
        };
        validate_with(&mut FakeKnobIo::new(), &machine, DirtyMemory::default(), &spec)
    }

    #[test]
    fn both_arms_have_every_knob_and_halves_of_pairs_become_zero() {
        let got = validate_words(
            &["vm.dirty_background_bytes=16M", "vm.dirty_bytes=256M"],
            &["vm.dirty_background_ratio=50", "vm.dirty_ratio=80"],
            true,
        );
        let got = got.unwrap();
        let value = |knob: &str| {
            got.settings.iter().find(|s| s.knob == knob).map(|s| (s.values[0].as_str(), s.values[1].as_str()))
        };
        assert_eq!(value("vm.dirty_background_bytes"), Some(("16777216", "0")));
        assert_eq!(value("vm.dirty_background_ratio"), Some(("0", "50")));
        assert_eq!(value("vm.dirty_ratio"), Some(("0", "80")));
        let line = got.arm_line(Arm::A);
        assert!(line.contains("16.0 MiB") && !line.contains("ratio"), "{line}");
    }

    #[test]
    fn invalid_experiments_are_refused() {
        let why = |base: &[&str], set: &[&str], control| match validate_words(base, set, control) {
            Err(TuneError::Usage(why)) => why,
            other => panic!("{other:?}"),
        };
        assert!(why(&[], &["vm.swappiness=60"], false).contains("A and B are the same"));
        assert!(why(&["vm.swappiness=1"], &["vm.swappiness=1"], false).contains("the same"));
        assert!(why(&[], &["vm.swappiness=1"], true).contains("--control"));
        assert!(why(&[], &["vm.bogus=1"], false).contains("no such knob"));
        assert!(why(&["vm.swappiness=x"], &["vm.swappiness=1"], false).contains("vm.swappiness"));
        assert!(validate_words(&[], &["vm.swappiness=1"], false).is_ok());
    }
}
