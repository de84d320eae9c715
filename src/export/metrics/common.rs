//! What node_exporter exports, too, under names of our own: for machines where it does not run.

use super::text::{MetricFamily, MetricsText};
use crate::model::disk::{DiskOpRaw, DiskRaw, SECTOR_BYTES};
use crate::model::pressure::ResourcePressure;
use crate::model::system_state::SystemState;
use crate::sanitize::sanitize;

/// Devices that are listed, the busiest since boot.
const MAX_DEVICES: usize = 100;

type DeviceValue = (MetricFamily, fn(&DiskRaw) -> f64);

const DEVICES: [DeviceValue; 7] = [
    (MetricFamily::counter("device_read_bytes", "bytes", "Bytes read since the device appeared."), |disk| {
        bytes(disk.read)
    }),
    (MetricFamily::counter("device_written_bytes", "bytes", "Bytes written since the device appeared."), |disk| {
        bytes(disk.write)
    }),
    (MetricFamily::counter("device_reads_completed", "", "Reads completed since the device appeared."), |disk| {
        disk.read.ios as f64
    }),
    (MetricFamily::counter("device_writes_completed", "", "Writes completed since the device appeared."), |disk| {
        disk.write.ios as f64
    }),
    (MetricFamily::counter("device_busy_seconds", "seconds", "Time with at least one request in flight."), |disk| {
        disk.busy_ms as f64 / 1e3
    }),
    (
        MetricFamily::counter("device_queue_seconds", "seconds", "Time weighted by the number of requests in flight."),
        |disk| disk.queue_ms as f64 / 1e3,
    ),
    (MetricFamily::gauge("device_requests_in_flight", "", "Requests in flight at the end of the sample."), |disk| {
        disk.in_flight as f64
    }),
];

const WAITING: MetricFamily = MetricFamily::counter(
    "pressure_waiting_seconds",
    "seconds",
    "Time in which at least one task waited for a resource.",
);
const STALLED: MetricFamily =
    MetricFamily::counter("pressure_stalled_seconds", "seconds", "Time in which all tasks waited for a resource.");

fn bytes(operation: DiskOpRaw) -> f64 {
    operation.sectors.saturating_mul(SECTOR_BYTES) as f64
}

pub(super) fn write(system: &SystemState, text: &mut MetricsText) {
    let Some(sample) = &system.last_sample else { return };
    if let Some(disks) = sample.disks.ok() {
        let is_used = |disk: &&DiskRaw| system.snapshot.device(disk.id).is_some();
        let mut used: Vec<_> = disks.iter().filter(is_used).collect();
        used.sort_by_key(|disk| std::cmp::Reverse(disk.read.sectors.saturating_add(disk.write.sectors)));
        for (family, value) in &DEVICES {
            text.begin(family);
            for disk in used.iter().take(MAX_DEVICES) {
                text.sample(family, &[("device", &sanitize(&*disk.name))], value(disk));
            }
        }
    }
    if let Some(pressure) = sample.pressure.ok() {
        let resources = [("cpu", &pressure.cpu), ("io", &pressure.io), ("memory", &pressure.memory)];
        let some = |resource: &ResourcePressure| resource.some.map(|psi| psi.total_us);
        let full = |resource: &ResourcePressure| resource.full.map(|psi| psi.total_us);
        for (family, total_us) in [(WAITING, some as fn(&_) -> _), (STALLED, full)] {
            text.begin(&family);
            for (name, resource) in resources {
                if let Some(us) = total_us(resource) {
                    text.sample(&family, &[("resource", name)], us as f64 / 1e6);
                }
            }
        }
    }
}
