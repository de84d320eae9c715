//! Time that programs lose to memory: throttled writers, and direct reclaim.

use super::text::{MetricFamily, MetricsText, path_label};
use super::top_series::{Count, OTHER, TopSeries};
use crate::model::memory_stalls::{MemoryStalls, MemoryStallsRaw, RECLAIM, THROTTLE};
use crate::model::system_state::SystemState;
use std::collections::BTreeMap;

/// Programs in a control group with series of their own.
const MAX_PROGRAMS: usize = 50;

const FAMILIES: [(usize, MetricFamily); 2] = [
    (
        THROTTLE,
        MetricFamily::counter(
            "throttled_seconds",
            "seconds",
            "Time that writers paused because too many pages were dirty, summed over threads.",
        ),
    ),
    (
        RECLAIM,
        MetricFamily::counter("reclaim_seconds", "seconds", "Time in direct reclaim of memory, summed over threads."),
    ),
];

/// Seconds by [`THROTTLE`] and [`RECLAIM`].
#[derive(Default)]
struct StallSeconds([f64; 2]);

impl Count for StallSeconds {
    fn add(&mut self, increment: &Self) {
        self.0.iter_mut().zip(increment.0).for_each(|(sum, seconds)| *sum += seconds);
    }

    fn weight(&self) -> f64 {
        self.0.iter().sum()
    }
}

/// The stalls counted so far.
pub(super) struct StallMetrics {
    /// By program, control group and container.
    programs: TopSeries<3, StallSeconds>,
    /// The newest reading.
    before: Option<MemoryStallsRaw>,
    is_counted: [bool; 2],
}

impl StallMetrics {
    pub(super) fn new() -> Self {
        Self { programs: TopSeries::new(MAX_PROGRAMS), before: None, is_counted: [false; 2] }
    }

    pub(super) fn update(&mut self, system: &SystemState) {
        let reading = system.last_sample.as_ref().and_then(|sample| sample.memory_stalls.ok());
        self.is_counted = reading.map_or([false; 2], |now| now.is_counted);
        let Some(now) = reading else { return };
        // Over one second, a rate is what was counted.
        let stalls = MemoryStalls::derive(self.before.as_ref(), now, 1.0);
        let mut increments: BTreeMap<_, StallSeconds> = BTreeMap::new();
        for process in stalls.processes {
            let row = system.processes.get(&process.key);
            let cgroup = row.as_ref().and_then(|row| row.cgroup()).map(path_label).unwrap_or_default();
            let container = row.and_then(|row| row.container()).unwrap_or_default().to_owned();
            let seconds = StallSeconds(process.rates.map(|rate| rate.ms_per_s / 1e3));
            increments.entry([process.comm, cgroup, container]).or_default().add(&seconds);
        }
        self.programs.add(increments, system.now().boot_ns);
        self.before = Some(now.clone());
    }

    pub(super) fn write(&self, text: &mut MetricsText) {
        for (kind, family) in FAMILIES.iter().filter(|(kind, _)| self.is_counted[*kind]) {
            text.begin(family);
            for (labels @ [program, cgroup, container], seconds) in self.programs.iter() {
                if seconds.0[*kind] > 0.0 || labels == [OTHER; 3] {
                    let labels = [("program", program), ("cgroup", cgroup), ("container", container)];
                    text.sample(family, &labels, seconds.0[*kind]);
                }
            }
        }
    }
}
