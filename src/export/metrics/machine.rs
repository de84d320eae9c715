//! What concerns the machine: stalled devices, dirty pages, the kernel log, and which sources could be read.

use super::text::{MetricFamily, MetricsText};
use crate::doctor::storage_class::storage_class;
use crate::model::kernel_log::{KernelLogClass, LogClock};
use crate::model::system_state::SystemState;
use crate::model::topology::DeviceKind;
use crate::sanitize::sanitize;
use strum::VariantArray as _;

/// Devices that are listed one by one.
const MAX_DEVICES: usize = 100;

const BUILD: MetricFamily = MetricFamily::info("build", "Version of iotop-plus that wrote these metrics.");
const HOST: MetricFamily = MetricFamily::info("host", "Name and kernel of the machine.");
const DEVICE: MetricFamily = MetricFamily::info("device", "Kind, class and model of a device.");
const TIME: MetricFamily = MetricFamily::gauge(
    "sample_timestamp_seconds",
    "seconds",
    "When the newest sample was read, in seconds since 1970.",
);
const INTERVAL: MetricFamily =
    MetricFamily::gauge("sample_interval_seconds", "seconds", "Length of the newest sample.");
const AVAILABLE: MetricFamily = MetricFamily::gauge(
    "source_available",
    "",
    "1 if a source could be read for the newest sample, 0 if not: its metrics are missing.",
);
const BLOCKED: MetricFamily =
    MetricFamily::gauge("blocked_reads", "", "Reads of the kernel's files that do not return.");
const STALLED: MetricFamily = MetricFamily::gauge(
    "device_stalled",
    "",
    "1 if requests were in flight throughout the newest sample and none completed.",
);
const STALLED_ALL: MetricFamily = MetricFamily::gauge(
    "stalled_devices",
    "",
    "Devices with requests in flight of which none completed in the newest sample.",
);
const HUNG: MetricFamily = MetricFamily::gauge(
    "hung_tasks",
    "",
    "Tasks in uninterruptible sleep for too long, whether or not the kernel reports them.",
);
const MESSAGES: MetricFamily =
    MetricFamily::counter("kernel_messages", "", "Kernel messages by class since the oldest one in the ring buffer.");

/// Writes what the program says of itself, the host and its sources; the sample was read `clock_offset_ns` later than it says.
pub(super) fn write_sources(system: &SystemState, clock_offset_ns: i64, text: &mut MetricsText) {
    text.begin(&BUILD);
    text.sample(&BUILD, &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    text.begin(&HOST);
    text.sample(&HOST, &[("host", &system.host.name), ("kernel", &system.host.kernel)], 1.0);
    text.begin(&TIME);
    text.sample(&TIME, &[], system.now().wall_ns.saturating_add(clock_offset_ns) as f64 / 1e9);
    text.begin(&INTERVAL);
    text.sample(&INTERVAL, &[], system.snapshot.interval_secs);
    let snapshot = &*system.snapshot;
    let sources = [
        ("devices", snapshot.devices.ok().is_some()),
        ("kernel_log", system.kernel_log_status.ok().is_some()),
        ("latency", snapshot.tracing.ok().is_some()),
        ("processes", system.processes_status.ok().is_some()),
        ("processes_by_device", snapshot.io_attribution.ok().is_some()),
        ("stalls", snapshot.memory_stalls.ok().is_some()),
        ("syncs", snapshot.syncs.ok().is_some()),
        ("writeback", snapshot.writeback.ok().is_some()),
    ];
    text.begin(&AVAILABLE);
    for (source, is_available) in sources {
        text.sample(&AVAILABLE, &[("source", source)], f64::from(u8::from(is_available)));
    }
    text.begin(&BLOCKED);
    text.sample(&BLOCKED, &[], system.blocked_reads.len() as f64);
}

/// Writes what the devices are, and which are stalled: stalled ones first, then in the kernel's order.
pub(super) fn write_devices(system: &SystemState, text: &mut MetricsText) {
    let Some(devices) = system.snapshot.devices.ok() else { return };
    let topology = system.topology.ok();
    let is_partition = |id| topology.and_then(|t| t.get(id)).is_some_and(|d| d.kind == DeviceKind::Partition);
    let mut whole: Vec<_> = devices.iter().filter(|device| !is_partition(device.id)).collect();
    whole.sort_by_key(|device| !device.stalled);
    if let Some(topology) = topology {
        text.begin(&DEVICE);
        for found in whole.iter().take(MAX_DEVICES).filter_map(|device| topology.get(device.id)) {
            let labels = [
                ("device", &*sanitize(&*found.name)),
                ("kind", found.kind.name()),
                ("class", storage_class(system, found.id).name()),
                ("model", found.model.as_deref().unwrap_or_default().trim()),
            ];
            text.sample(&DEVICE, &labels, 1.0);
        }
    }
    text.begin(&STALLED);
    for device in whole.iter().take(MAX_DEVICES) {
        text.sample(&STALLED, &[("device", &sanitize(&*device.name))], f64::from(u8::from(device.stalled)));
    }
    text.begin(&STALLED_ALL);
    text.sample(&STALLED_ALL, &[], whole.iter().filter(|device| device.stalled).count() as f64);
}

/// Writes dirty pages against their thresholds. What the kernel does not have is left out.
pub(super) fn write_writeback(system: &SystemState, text: &mut MetricsText) {
    let Some(writeback) = system.snapshot.writeback.ok() else { return };
    let bytes = |pages: fn(&crate::model::memory::VmRaw) -> Option<u64>| {
        let vm = system.last_sample.as_ref()?.vm.ok()?;
        Some(pages(vm)?.saturating_mul(vm.page_size))
    };
    let values = [
        (MetricFamily::gauge("dirty_bytes", "bytes", "Dirty page cache."), writeback.dirty_bytes),
        (MetricFamily::gauge("writeback_bytes", "bytes", "Page cache under writeback."), writeback.writeback_bytes),
        (
            MetricFamily::gauge("dirty_background_threshold_bytes", "bytes", "Background writeback starts above this."),
            writeback.background_threshold_bytes,
        ),
        (
            MetricFamily::gauge("dirty_throttle_threshold_bytes", "bytes", "Writers are slowed above this."),
            writeback.freerun_bytes,
        ),
        (
            MetricFamily::gauge("dirty_threshold_bytes", "bytes", "The limit of dirty pages, at which writers wait."),
            writeback.dirty_threshold_bytes,
        ),
        (MetricFamily::counter("dirtied_bytes", "bytes", "Page cache dirtied since boot."), bytes(|vm| vm.nr_dirtied)),
        (
            MetricFamily::counter("written_back_bytes", "bytes", "Page cache written back since boot."),
            bytes(|vm| vm.nr_written),
        ),
    ];
    for (family, value) in values {
        if let Some(value) = value {
            text.begin(&family);
            text.sample(&family, &[], value as f64);
        }
    }
}

/// Writes kernel messages by class, and hung tasks.
pub(super) fn write_kernel_log(system: &SystemState, text: &mut MetricsText) {
    if system.processes_status.ok().is_some() {
        text.begin(&HUNG);
        text.sample(&HUNG, &[], system.hung_tasks.len() as f64);
    }
    if system.kernel_log_status.ok().is_none() {
        return;
    }
    text.begin(&MESSAGES);
    for class in KernelLogClass::VARIANTS {
        let count = system.kernel_log.count(*class, LogClock::default());
        // Lines that the kernel left out for their number belong to the class, too.
        let total = count.total.saturating_add(count.suppressed);
        text.sample(&MESSAGES, &[("class", class.name())], total as f64);
    }
}
