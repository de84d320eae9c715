//! I/O of control groups, and so of containers, by device.

use super::text::{MetricFamily, MetricsText, path_label};
use super::top_series::{Count, TopSeries};
use crate::model::io_accounting::{IoAccountsRaw, IoAttribution, IoRates};
use crate::model::process::container_hint;
use crate::model::system_state::SystemState;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Pairs of a control group and a device with series of their own.
const MAX_GROUPS: usize = 50;

type GroupValue = (MetricFamily, fn(&IoRates) -> f64);

/// What is counted, in this order.
const FAMILIES: [GroupValue; 5] = [
    (
        MetricFamily::counter(
            "cgroup_read_bytes",
            "bytes",
            "Bytes read from a device by the processes of a control group.",
        ),
        |io| io.read_bytes_per_s,
    ),
    (
        MetricFamily::counter(
            "cgroup_written_bytes",
            "bytes",
            "Bytes written to a device by the processes of a control group.",
        ),
        |io| io.write_bytes_per_s,
    ),
    (
        MetricFamily::counter(
            "cgroup_writeback_bytes",
            "bytes",
            "Page cache of a control group written back, by any process.",
        ),
        |io| io.writeback_bytes_per_s,
    ),
    (MetricFamily::counter("cgroup_reads", "", "Reads completed for the processes of a control group."), |io| {
        io.reads_per_s
    }),
    (MetricFamily::counter("cgroup_writes", "", "Writes completed for the processes of a control group."), |io| {
        io.writes_per_s
    }),
];

/// By [`FAMILIES`].
#[derive(Default)]
struct GroupIo([f64; FAMILIES.len()]);

impl Count for GroupIo {
    fn add(&mut self, increment: &Self) {
        self.0.iter_mut().zip(increment.0).for_each(|(sum, n)| *sum += n);
    }

    fn weight(&self) -> f64 {
        self.0[..3].iter().sum()
    }
}

/// The I/O counted so far.
pub(super) struct CgroupMetrics {
    /// By control group, container and device.
    groups: TopSeries<3, GroupIo>,
    /// The newest reading.
    before: Option<Arc<IoAccountsRaw>>,
    is_current: bool,
}

impl CgroupMetrics {
    pub(super) fn new() -> Self {
        Self { groups: TopSeries::new(MAX_GROUPS), before: None, is_current: false }
    }

    pub(super) fn update(&mut self, system: &SystemState) {
        let reading = system.last_sample.as_ref().and_then(|sample| sample.io_accounts.ok());
        self.is_current = reading.is_some();
        let Some(now) = reading else { return };
        let containers = system.processes.container_names();
        let mut increments: BTreeMap<_, GroupIo> = BTreeMap::new();
        // Over one second, a rate is what was counted.
        for group in IoAttribution::derive(self.before.as_deref(), now, 1.0).cgroups {
            let hint = container_hint(&group.owner).unwrap_or_default();
            let container = containers.find(&hint).map_or(hint.clone(), |known| known.label.to_string());
            for on in &group.devices {
                let labels = [path_label(&group.owner), container.clone(), system.device_name(on.device)];
                let io = GroupIo(FAMILIES.map(|(_, count)| count(&on.rates)));
                increments.entry(labels).or_default().add(&io);
            }
        }
        self.groups.add(increments, system.now().boot_ns);
        self.before = Some(now.clone());
    }

    pub(super) fn write(&self, text: &mut MetricsText) {
        if !self.is_current {
            return;
        }
        for (at, (family, _)) in FAMILIES.iter().enumerate() {
            text.begin(family);
            for ([cgroup, container, device], io) in self.groups.iter() {
                let labels = [("cgroup", cgroup), ("container", container), ("device", device)];
                text.sample(family, &labels, io.0[at]);
            }
        }
    }
}
