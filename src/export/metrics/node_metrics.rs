//! What node_exporter exports, too, under names of our own: for machines where it does not run.

use super::text::{MetricFamily, MetricsText, path_label};
use crate::model::disk::{DiskOpRaw, DiskRaw, SECTOR_BYTES};
use crate::model::memory::{MemRaw, VmRaw};
use crate::model::path::FilesystemSpace;
use crate::model::pressure::{PressureRaw, ResourcePressure};
use crate::model::system_state::SystemState;
use crate::sanitize::sanitize;

/// Devices that are listed, the busiest since boot, and mounts.
const MAX_DEVICES: usize = 100;

/// A family and where its value comes from; `None` where the kernel does not count it.
type FamilyOf<T> = (MetricFamily, fn(&T) -> Option<f64>);

/// A family of which each value is in what was read.
macro_rules! family {
    ($kind:ident $name:literal $unit:literal $help:literal, $value:expr) => {
        (MetricFamily::$kind($name, $unit, $help), $value)
    };
}

const DEVICES: [FamilyOf<DiskRaw>; 17] = [
    family!(counter "device_read_bytes" "bytes" "Bytes read since the device appeared.", |disk| bytes(disk.read)),
    family!(counter "device_written_bytes" "bytes" "Bytes written since the device appeared.", |disk| bytes(disk.write)),
    family!(counter "device_discarded_bytes" "bytes" "Bytes discarded since the device appeared.", |disk| {
        bytes(disk.discard?)
    }),
    family!(counter "device_reads_completed" "" "Reads completed since the device appeared.", |disk| {
        Some(disk.read.ios as f64)
    }),
    family!(counter "device_writes_completed" "" "Writes completed since the device appeared.", |disk| {
        Some(disk.write.ios as f64)
    }),
    family!(counter "device_discards_completed" "" "Discards completed since the device appeared.", |disk| {
        Some(disk.discard?.ios as f64)
    }),
    family!(counter "device_flushes_completed" "" "Flushes completed since the device appeared.", |disk| {
        Some(disk.flush?.0 as f64)
    }),
    family!(counter "device_reads_merged" "" "Reads merged into a neighbour before they were issued.", |disk| {
        Some(disk.read.merged as f64)
    }),
    family!(counter "device_writes_merged" "" "Writes merged into a neighbour before they were issued.", |disk| {
        Some(disk.write.merged as f64)
    }),
    family!(counter "device_discards_merged" "" "Discards merged into a neighbour before they were issued.", |disk| {
        Some(disk.discard?.merged as f64)
    }),
    family!(counter "device_read_seconds" "seconds" "Time of all reads, summed.", |disk| seconds(disk.read.ms)),
    family!(counter "device_write_seconds" "seconds" "Time of all writes, summed.", |disk| seconds(disk.write.ms)),
    family!(counter "device_discard_seconds" "seconds" "Time of all discards, summed.", |disk| {
        seconds(disk.discard?.ms)
    }),
    family!(counter "device_flush_seconds" "seconds" "Time of all flushes, summed.", |disk| seconds(disk.flush?.1)),
    family!(counter "device_busy_seconds" "seconds" "Time with at least one request in flight.", |disk| {
        seconds(disk.busy_ms)
    }),
    family!(counter "device_queue_seconds" "seconds" "Time weighted by the number of requests in flight.", |disk| {
        seconds(disk.queue_ms)
    }),
    family!(gauge "device_requests_in_flight" "" "Requests in flight at the end of the sample.", |disk| {
        Some(disk.in_flight as f64)
    }),
];

const MEMORY: [FamilyOf<MemRaw>; 7] = [
    family!(gauge "memory_total_bytes" "bytes" "Usable memory.", |memory| Some(memory.total as f64)),
    family!(gauge "memory_free_bytes" "bytes" "Memory that is not used at all.", |memory| Some(memory.free as f64)),
    family!(gauge "memory_available_bytes" "bytes" "Estimate of what is available without swapping.", |memory| {
        Some(memory.available? as f64)
    }),
    family!(gauge "memory_buffers_bytes" "bytes" "Page cache of block devices.", |memory| Some(memory.buffers as f64)),
    family!(gauge "memory_cached_bytes" "bytes" "Page cache of files.", |memory| Some(memory.cached as f64)),
    family!(gauge "swap_total_bytes" "bytes" "Size of all swap areas.", |memory| Some(memory.swap_total as f64)),
    family!(gauge "swap_free_bytes" "bytes" "Free swap.", |memory| Some(memory.swap_free as f64)),
];

const PAGING: [FamilyOf<VmRaw>; 6] = [
    family!(counter "paged_in_bytes" "bytes" "Read from block devices since boot.", |vm| kib(vm.pgpgin)),
    family!(counter "paged_out_bytes" "bytes" "Written to block devices since boot.", |vm| kib(vm.pgpgout)),
    family!(counter "swapped_in_bytes" "bytes" "Swapped in since boot.", |vm| pages(vm, vm.pswpin)),
    family!(counter "swapped_out_bytes" "bytes" "Swapped out since boot.", |vm| pages(vm, vm.pswpout)),
    family!(counter "major_faults" "" "Page faults that read a file or swap, since boot.", |vm| Some(vm.pgmajfault? as f64)),
    family!(counter "oom_kills" "" "Processes killed for lack of memory since boot.", |vm| Some(vm.oom_kill? as f64)),
];

const SPACE: [FamilyOf<FilesystemSpace>; 5] = [
    family!(gauge "filesystem_size_bytes" "bytes" "Size of a file system.", |space| Some(space.total_bytes as f64)),
    family!(gauge "filesystem_free_bytes" "bytes" "Free space of a file system.", |space| Some(space.free_bytes as f64)),
    family!(gauge "filesystem_available_bytes" "bytes" "Free space for unprivileged users.", |space| {
        Some(space.available_bytes as f64)
    }),
    family!(gauge "filesystem_inodes" "" "Inodes of a file system, where their number is fixed.", |space| {
        Some(space.inodes_total? as f64)
    }),
    family!(gauge "filesystem_inodes_free" "" "Free inodes of a file system.", |space| {
        Some(space.inodes_free? as f64)
    }),
];

const WAITING: MetricFamily = MetricFamily::counter(
    "pressure_waiting_seconds",
    "seconds",
    "Time in which at least one task waited for a resource.",
);
const STALLED: MetricFamily =
    MetricFamily::counter("pressure_stalled_seconds", "seconds", "Time in which all tasks waited for a resource.");

fn bytes(operation: DiskOpRaw) -> Option<f64> {
    Some(operation.sectors.saturating_mul(SECTOR_BYTES) as f64)
}

fn seconds(ms: u64) -> Option<f64> {
    Some(ms as f64 / 1e3)
}

fn kib(count: Option<u64>) -> Option<f64> {
    Some(count?.saturating_mul(1 << 10) as f64)
}

fn pages(vm: &VmRaw, count: Option<u64>) -> Option<f64> {
    Some(count?.saturating_mul(vm.page_size) as f64)
}

/// Writes the families of one thing, such as the memory.
fn write_all<T>(families: &[FamilyOf<T>], of: &T, text: &mut MetricsText) {
    for (family, value) in families {
        if let Some(value) = value(of) {
            text.begin(family);
            text.sample(family, &[], value);
        }
    }
}

/// Writes the families of several things, each with its name as a label.
fn write_each<T>(families: &[FamilyOf<T>], label: &'static str, all: &[(String, &T)], text: &mut MetricsText) {
    for (family, value) in families {
        text.begin(family);
        for (name, of) in all {
            if let Some(value) = value(of) {
                text.sample(family, &[(label, name)], value);
            }
        }
    }
}

pub(super) fn write(system: &SystemState, text: &mut MetricsText) {
    let Some(sample) = &system.last_sample else { return };
    if let Some(disks) = sample.disks.ok() {
        let is_used = |disk: &&DiskRaw| system.snapshot.device(disk.id).is_some();
        let mut used: Vec<_> = disks.iter().filter(is_used).collect();
        used.sort_by_key(|disk| std::cmp::Reverse(disk.read.sectors.saturating_add(disk.write.sectors)));
        let named: Vec<_> = used.into_iter().take(MAX_DEVICES).map(|disk| (sanitize(&*disk.name), disk)).collect();
        write_each(&DEVICES, "device", &named, text);
    }
    if let Some(pressure) = sample.pressure.ok() {
        write_pressure(pressure, text);
    }
    if let Some(memory) = sample.mem.ok() {
        write_all(&MEMORY, memory, text);
    }
    if let Some(vm) = sample.vm.ok() {
        write_all(&PAGING, vm, text);
    }
    write_space(system, text);
}

fn write_pressure(pressure: &PressureRaw, text: &mut MetricsText) {
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

/// Writes free space. What was mounted over another one is not listed; one that does not answer is left out.
fn write_space(system: &SystemState, text: &mut MetricsText) {
    let facts = &system.slow_facts;
    let mounts = [&facts.local_space, &facts.network_space].into_iter().flatten().flat_map(|report| &report.mounts);
    let named = mounts.filter_map(|mount| {
        let point = sanitize(mount.mount_point.as_bytes());
        Some((path_label(&point), mount.space.ok()?))
    });
    let mut named: Vec<_> = named.collect();
    named.sort_by(|a, b| a.0.cmp(&b.0));
    named.dedup_by(|a, b| a.0 == b.0);
    named.truncate(MAX_DEVICES);
    write_each(&SPACE, "mount_point", &named, text);
}
