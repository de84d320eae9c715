//! A simulated kernel for tests: writing one half of a pair zeroes the other, a scheduler switch resets the queue,
//! and writes can fail.

use crate::tuning::knob_id::KnobId;
use crate::tuning::knob_io::{KnobError, KnobIo, KnobReading};
use std::collections::BTreeMap;

/// Values by knob id.
pub type ValueMap = BTreeMap<String, String>;

/// The simulated kernel.
#[derive(Debug, Clone, Default)]
pub struct FakeKnobIo {
    pub values: ValueMap,
    pub identities: BTreeMap<String, String>,
    /// Knobs whose writes fail.
    pub failing: Vec<String>,
    /// After so many writes the process is dead: each further one fails.
    pub writes_left: Option<usize>,
    /// Knobs whose writes are clamped to a value.
    pub clamped: BTreeMap<String, String>,
    /// The journal file, to record its length at each write.
    pub journal_path: Option<std::path::PathBuf>,
    /// The journal's length before each write, and all values after it.
    pub write_log: Vec<(usize, ValueMap)>,
}

impl FakeKnobIo {
    pub fn new() -> Self {
        let start = [
            ("vm.dirty_ratio", "20"),
            ("vm.dirty_bytes", "0"),
            ("vm.dirty_background_ratio", "10"),
            ("vm.dirty_background_bytes", "0"),
            ("vm.swappiness", "60"),
            ("vm.page-cluster", "3"),
            ("kernel.hung_task_warnings", "4"),
            ("vm.min_free_kbytes", "67584"),
            ("transparent_hugepage.enabled", "madvise"),
            ("scheduler@sda", "mq-deadline"),
            ("nr_requests@sda", "256"),
            ("wbt_lat_usec@sda", "75000"),
        ];
        let values = start.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
        Self { values, identities: [("sda".into(), "7".into())].into(), ..Self::default() }
    }

    pub fn get(&self, name: &str) -> &str {
        &self.values[name]
    }

    /// A write by somebody else.
    pub fn set_by_admin(&mut self, name: &str, value: &str) {
        self.set(name, value).unwrap();
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let mut put = |k: &str, v: &str| drop(self.values.insert(k.into(), v.into()));
        match name {
            "vm.dirty_bytes" | "vm.dirty_background_bytes" => {
                let least = if name == "vm.dirty_bytes" { 8192 } else { 1 };
                if value.parse::<u64>().unwrap_or(0) < least {
                    return Err("invalid argument".into());
                }
                put(name, value);
                put(&name.replace("bytes", "ratio"), "0");
            }
            "vm.dirty_background_ratio" => {
                put(name, value);
                put("vm.dirty_background_bytes", "0");
            }
            "vm.dirty_ratio" => {
                let same = self.values[name] == value;
                self.values.insert(name.into(), value.into());
                if !same {
                    self.values.insert("vm.dirty_bytes".into(), "0".into());
                }
            }
            "scheduler@sda" => {
                put(name, value);
                put("nr_requests@sda", if value == "none" { "128" } else { "256" });
                put("wbt_lat_usec@sda", if value == "bfq" { "0" } else { "75000" });
            }
            "transparent_hugepage.enabled" => {
                put(name, value);
                put("vm.min_free_kbytes", if value == "never" { "11584" } else { "67584" });
            }
            _ => put(name, value),
        }
        Ok(())
    }
}

impl KnobIo for FakeKnobIo {
    fn read(&mut self, knob_id: &KnobId) -> Result<KnobReading, KnobError> {
        let name = knob_id.to_string();
        let value = self.values.get(&name).cloned().ok_or_else(|| KnobError::Absent(format!("{knob_id}: none")))?;
        let choices = match knob_id.definition().name {
            "scheduler" => vec!["none".into(), "mq-deadline".into(), "bfq".into()],
            "transparent_hugepage.enabled" => vec!["always".into(), "madvise".into(), "never".into()],
            _ => Vec::new(),
        };
        Ok(KnobReading { value, choices, max: None })
    }

    fn write(&mut self, knob_id: &KnobId, value: &str) -> Result<(), KnobError> {
        let name = knob_id.to_string();
        let is_dead = self.writes_left == Some(0);
        self.writes_left = self.writes_left.map(|left| left.saturating_sub(1));
        if is_dead || self.failing.contains(&name) {
            return Err(KnobError::Invalid(format!("{knob_id}: broken")));
        }
        let before = self.journal_path.as_ref().map_or(0, |p| std::fs::read(p).unwrap().len());
        let value = self.clamped.get(&name).cloned().unwrap_or_else(|| value.to_owned());
        self.set(&name, &value).map_err(|why| KnobError::Invalid(format!("{knob_id}: {why}")))?;
        self.write_log.push((before, self.values.clone()));
        Ok(())
    }

    fn identity(&mut self, knob_id: &KnobId) -> Result<String, KnobError> {
        match knob_id.instance() {
            "" => Ok(String::new()),
            name => self.identities.get(name).cloned().ok_or_else(|| KnobError::Absent(format!("{knob_id}: gone"))),
        }
    }
}
