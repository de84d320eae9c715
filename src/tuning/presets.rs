//! Presets: settings for common workloads, with their purpose, cost and source.

use super::knob::KnobGroup;
use super::knob_id::KnobId;
use super::knob_io::{KnobError, KnobIo};
use super::knobs::KNOBS;
use super::plan::TuneError;

/// Settings that belong together.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Preset {
    pub name: &'static str,
    /// The workload it is for.
    pub title: &'static str,
    /// What it does and what it costs.
    pub description: &'static str,
    /// The documents it follows.
    pub source: &'static str,
    /// Knobs and values; empty: the kernel's defaults for every writeback and memory knob.
    pub settings: &'static [(&'static str, &'static str)],
}

pub(crate) static PRESETS: &[Preset] = &[
    Preset {
        name: "database",
        title: "Database with a large store",
        description: "For a store that is mapped or written through the page cache, with a log that is synced. Pages \
                that are dirtied again and again stay in memory instead of being written each time: several \
                times the transactions on a slow disk. Costs: up to 80 % of file memory may be lost in a crash \
                but for what was synced, a checkpoint or `sync` takes much longer, and whoever writes \
                at the ceiling then waits long. No gain where the default background threshold already exceeds \
                the store.",
        source: "Documentation/admin-guide/sysctl/vm.rst; Documentation/admin-guide/mm/transhuge.rst",
        settings: &[
            ("vm.dirty_background_ratio", "50"),
            ("vm.dirty_ratio", "80"),
            ("vm.swappiness", "10"),
            ("transparent_hugepage.enabled", "madvise"),
        ],
    },
    Preset {
        name: "latency",
        title: "Latency-sensitive key-value store",
        description: "For a store in memory that forks to write a snapshot and syncs a log. Few dirty pages wait at any \
                time, so an fsync is short; nothing is swapped while file pages can be dropped; no huge page \
                is copied after the fork. Costs: less write throughput where pages are rewritten, and the file \
                cache shrinks first when memory is short.",
        source: "Documentation/admin-guide/sysctl/vm.rst; redis.io, Diagnosing latency issues",
        settings: &[
            ("vm.dirty_background_bytes", "64M"),
            ("vm.dirty_bytes", "512M"),
            ("vm.dirty_expire_centisecs", "1000"),
            ("vm.dirty_writeback_centisecs", "100"),
            ("vm.swappiness", "1"),
            ("vm.page-cluster", "0"),
            ("transparent_hugepage.enabled", "never"),
        ],
    },
    Preset {
        name: "ingest",
        title: "Bulk ingest",
        description: "For large files written once, one after the other. Writing begins early and goes on steadily, and \
                the ceiling is high enough for a burst. Costs: other programs' syncs on the same disk wait \
                behind the stream, and up to 40 % of file memory may be dirty when the power fails.",
        source: "Documentation/admin-guide/sysctl/vm.rst",
        settings: &[
            ("vm.dirty_background_ratio", "3"),
            ("vm.dirty_ratio", "40"),
            ("vm.dirty_expire_centisecs", "1500"),
            ("vm.dirty_writeback_centisecs", "100"),
            ("vm.vfs_cache_pressure", "200"),
        ],
    },
    Preset {
        name: "defaults",
        title: "Kernel defaults",
        description: "Writeback and memory as the kernel itself starts, whatever a distribution or an administrator \
                made of them. Knobs whose default depends on the machine, huge pages, devices and mounts are \
                left as they are.",
        source: "mm/page-writeback.c, mm/vmscan.c, mm/swap.c, fs/dcache.c",
        settings: &[],
    },
];

pub(crate) fn find_preset(name: &str) -> Result<&'static Preset, TuneError> {
    let names = || PRESETS.iter().map(|p| p.name).collect::<Vec<_>>().join(", ");
    PRESETS
        .iter()
        .find(|p| p.name == name)
        .ok_or_else(|| TuneError::Usage(format!("{name}: no such preset; there are {}", names())))
}

impl Preset {
    /// The assignments, `KNOB=VALUE` each. Of a pair, only the half in force is included.
    pub(crate) fn assignments(&self) -> Vec<String> {
        if !self.settings.is_empty() {
            return self.settings.iter().map(|(knob, value)| format!("{knob}={value}")).collect();
        }
        let wide = |g| matches!(g, KnobGroup::Writeback | KnobGroup::Memory);
        let zero_half = |name: &str, value: &str| name.ends_with("_bytes") && value == "0";
        KNOBS
            .iter()
            .filter(|k| wide(k.group))
            .filter_map(|k| Some((k.name, k.default?)))
            .filter(|(name, value)| !zero_half(name, value))
            .map(|(name, value)| format!("{name}={value}"))
            .collect()
    }

    /// The assignments for knobs that this kernel has, and those for knobs it lacks.
    pub(crate) fn available_assignments(&self, io: &mut dyn KnobIo) -> (Vec<String>, Vec<String>) {
        let absent = |assignment: &String| {
            let knob = assignment.split('=').next().unwrap_or_default();
            KnobId::parse(knob).is_ok_and(|knob_id| matches!(io.read(&knob_id), Err(KnobError::Absent(_))))
        };
        let (missing, there) = self.assignments().into_iter().partition(absent);
        (there, missing)
    }
}

#[cfg(test)]
mod tests {
    use super::super::machine_limits::MachineLimits;
    use super::super::plan::plan_writes;
    use super::super::tests::fake_knob_io::FakeKnobIo;
    use super::*;

    fn kernel_with_all_knobs() -> FakeKnobIo {
        let mut fake = FakeKnobIo::new();
        for knob in KNOBS.iter().filter(|k| k.instance_kind().is_none()) {
            fake.values.entry(knob.name.into()).or_insert_with(|| knob.default.unwrap_or("64").into());
        }
        fake
    }

    fn machine_limits() -> MachineLimits {
        MachineLimits {
            page_bytes: 4096,
            memory_bytes: Some(24 << 30),
            dirtyable_bytes: Some(20 << 30),
            ..MachineLimits::default()
        }
    }

    #[test]
    fn every_preset_is_documented_and_valid() {
        for preset in PRESETS {
            assert!(preset.description.ends_with('.') && !preset.source.is_empty(), "{}", preset.name);
            assert!(preset.name == "defaults" || preset.description.contains("Costs: "), "{}", preset.name);
            let planned = plan_writes(&mut kernel_with_all_knobs(), &machine_limits(), &preset.assignments()).unwrap();
            assert_eq!(planned.len(), preset.assignments().len());
        }
        assert!(find_preset("bogus").unwrap_err().to_string().contains("database, latency, ingest, defaults"));
    }

    #[test]
    fn the_defaults_preset_reverses_every_other_preset() {
        let start = kernel_with_all_knobs();
        for preset in PRESETS {
            let mut kernel = start.clone();
            for assignments in [preset.assignments(), find_preset("defaults").unwrap().assignments()] {
                for p in plan_writes(&mut kernel, &machine_limits(), &assignments).unwrap() {
                    kernel.write(&p.knob, &p.target).unwrap();
                }
            }
            let of = |k: &FakeKnobIo| {
                let all = KNOBS.iter().filter(|k| matches!(k.group, KnobGroup::Writeback | KnobGroup::Memory));
                let set = all.filter(|k| k.default.is_some());
                set.map(|knob| (knob.name, k.values[knob.name].clone())).collect::<Vec<_>>()
            };
            assert_eq!(of(&kernel), of(&start), "{}", preset.name);
        }
    }

    #[test]
    fn knobs_missing_from_this_kernel_are_skipped_and_named() {
        let mut kernel = kernel_with_all_knobs();
        kernel.values.remove("transparent_hugepage.enabled");
        let (assignments, missing) = find_preset("latency").unwrap().available_assignments(&mut kernel);
        assert_eq!(missing, ["transparent_hugepage.enabled=never"]);
        assert_eq!(assignments.len(), 6);
    }
}
