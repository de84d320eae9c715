//! Derives rates from two samples, for the screen, exports and replay.

use super::control_groups::ControlGroupActivity;
use super::cpu::{CpuRate, CpuRaw};
use super::disk::{DevId, DiskRate, DiskRaw};
use super::file_io::FileActivity;
use super::io_accounting::IoAttribution;
use super::latency::TracingStatus;
use super::memory::{MemRaw, ReclaimRate, SwapArea, SwapRate, WritebackRate};
use super::memory_stalls::MemoryStalls;
use super::network::{NetFsRate, NicRate};
use super::pressure::PressureRaw;
use super::reading::{Reading, rates_of};
use super::sample::Sample;
use super::syncs::SyncActivity;
use super::task_waits::TaskWaits;
use super::timestamp::Timestamp;
use super::topology::{BlockDevice, Topology};
use super::traced;
use std::collections::HashMap;
use std::sync::Arc;

/// From this number of devices on they are ordered.
const MANY_DEVICES: usize = 64;

/// Rates of one interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// The later sample's number.
    pub seq: u64,
    /// The later sample's time.
    pub time: Timestamp,
    /// Length of the interval in seconds; the uptime if `is_since_boot`.
    pub interval_secs: f64,
    /// There was no earlier sample: rates are averages since boot.
    pub is_since_boot: bool,
    /// CPU shares.
    pub cpu: Reading<CpuRate>,
    /// Number of CPUs.
    pub cpu_count: Option<u32>,
    /// Tasks waiting for block I/O (`procs_blocked`).
    pub tasks_blocked: Option<u64>,
    /// Devices with any I/O since boot, in the kernel's order. Ticks share unchanged values: see
    /// [`Snapshot::share_unchanged`].
    pub devices: Reading<Vec<Arc<DiskRate>>>,
    /// The positions of `devices` in the order of their numbers, to find one of many; empty where there are few.
    pub device_order: Arc<[u32]>,
    /// Dirty pages and writeback.
    pub writeback: Reading<WritebackRate>,
    /// Swap space and traffic.
    pub swap: Reading<SwapRate>,
    /// Swap areas.
    pub swap_areas: Reading<Vec<SwapArea>>,
    /// Memory.
    pub mem: Reading<MemRaw>,
    /// Major faults per second of the whole machine.
    pub major_faults_per_s: Option<f64>,
    /// Memory reclaim; `None` where the kernel does not count it, and for the first sample.
    pub reclaim: Option<ReclaimRate>,
    /// Pressure stall information.
    pub pressure: Reading<Arc<PressureRaw>>,
    /// Network interfaces.
    pub nics: Reading<Vec<NicRate>>,
    /// Network file systems.
    pub netfs: Reading<Vec<NetFsRate>>,
    /// Whether latencies are traced; the values are in `devices`.
    pub tracing: Reading<TracingStatus>,
    /// Stalls by process.
    pub memory_stalls: Reading<Arc<MemoryStalls>>,
    /// Syncs by process and file; only while requested.
    pub syncs: Reading<Arc<SyncActivity>>,
    /// I/O by process and control group.
    pub io_attribution: Reading<Arc<IoAttribution>>,
    /// I/O by file; only while requested.
    pub files: Reading<Arc<FileActivity>>,
    /// What tasks wait for; only while requested.
    pub task_waits: Reading<Arc<TaskWaits>>,
    /// Control groups; only while requested.
    pub control_groups: Reading<Arc<ControlGroupActivity>>,
}

impl Snapshot {
    /// Rates of `cur` since `prev`; without `prev`, since boot.
    pub fn derive(prev: Option<&Sample>, cur: &Sample) -> Self {
        let secs = prev.map_or(cur.time.uptime_secs(), |p| cur.time.secs_since(p.time));
        let prev_vm = prev.and_then(|p| p.vm.ok());
        let since_boot = prev.is_none();
        let nics_before = prev.and_then(|p| p.nics.ok()).map(Vec::as_slice);
        let nics = cur.nics.as_ref().map(|now| NicRate::derive_all(nics_before, now, secs));
        Self {
            seq: cur.seq,
            time: cur.time,
            interval_secs: secs,
            is_since_boot: since_boot,
            cpu: derive_cpu(prev, cur),
            cpu_count: cur.cpu.ok().map(|c| c.cpus),
            tasks_blocked: cur.cpu.ok().map(|c| c.blocked_tasks),
            devices: derive_devices(prev, cur, secs),
            device_order: Arc::default(),
            writeback: cur.vm.as_ref().map(|vm| {
                let rate = WritebackRate::derive(prev_vm, vm, secs);
                match prev_vm.is_some() || since_boot {
                    true => rate,
                    false => WritebackRate { dirtied_bytes_per_s: None, written_bytes_per_s: None, ..rate },
                }
            }),
            swap: derive_swap(prev, cur, secs),
            swap_areas: cur.swap_areas.clone(),
            mem: cur.mem.clone(),
            major_faults_per_s: cur.vm.ok().and_then(|vm| {
                let before = prev.map_or(Some(0), |_| prev_vm?.pgmajfault)?;
                Some(vm.pgmajfault?.checked_sub(before)? as f64 / secs.max(1e-9))
            }),
            reclaim: prev_vm.zip(cur.vm.ok()).and_then(|(p, c)| ReclaimRate::derive(p, c, secs)),
            pressure: cur.pressure.clone().map(Arc::new),
            netfs: derive_netfs(prev, cur, nics.ok().map(Vec::as_slice).unwrap_or_default(), secs),
            nics,
            tracing: traced::status(prev, cur, secs),
            memory_stalls: traced::memory_stalls(prev, cur, secs),
            syncs: traced::syncs(prev, cur, secs),
            io_attribution: traced::io_attribution(prev, cur, secs),
            files: traced::files(prev, cur, secs),
            task_waits: traced::task_waits(prev, cur, secs),
            control_groups: derive_control_groups(prev, cur, secs),
        }
    }

    /// Replaces values that are equal to those of the tick before by references to them. Most devices are idle, and the
    /// history stores many ticks. Also orders the devices where there are many.
    pub fn share_unchanged(&mut self, before: &Self) {
        self.device_order = self.order_devices(before);
        if let (Some(new), Some(old)) = (self.devices.ok_mut(), before.devices.ok()) {
            new.iter_mut().zip(old).for_each(|(new, old)| share_if_equal(Some(new), Some(old)));
        }
        share_if_equal(self.pressure.ok_mut(), before.pressure.ok());
        share_if_equal(self.memory_stalls.ok_mut(), before.memory_stalls.ok());
        share_if_equal(self.files.ok_mut(), before.files.ok());
        share_if_equal(self.task_waits.ok_mut(), before.task_waits.ok());
        share_if_equal(self.io_attribution.ok_mut(), before.io_attribution.ok());
    }

    /// Bytes read and written per second by hardware devices, in 2^20 bytes. Devices on top of them (partitions,
    /// dm, md, loop) would count the same bytes again. `None` until devices and topology are known.
    pub fn disks_mb_per_s(&self, topo: Option<&Topology>) -> Option<(f64, f64)> {
        let topo = topo?;
        let is_disk = |d: &&Arc<DiskRate>| topo.get(d.id).is_some_and(BlockDevice::is_hardware);
        let disks = self.devices.ok()?.iter().filter(is_disk);
        Some(disks.fold((0.0, 0.0), |(r, w), d| (r + d.read_mb_per_s, w + d.write_mb_per_s)))
    }

    fn order_devices(&self, before: &Self) -> Arc<[u32]> {
        let devices = self.devices.ok().map(Vec::as_slice).unwrap_or_default();
        if devices.len() < MANY_DEVICES {
            return Arc::default();
        }
        let old = before.devices.ok().map(Vec::as_slice).unwrap_or_default();
        let is_ordered = before.device_order.len() == devices.len();
        if is_ordered && devices.iter().map(|d| d.id).eq(old.iter().map(|d| d.id)) {
            return before.device_order.clone();
        }
        let mut order: Vec<u32> = (0..devices.len() as u32).collect();
        order.sort_by_key(|at| devices[*at as usize].id);
        order.into()
    }

    /// The rates of a device.
    pub fn device(&self, id: DevId) -> Option<&DiskRate> {
        let devices = self.devices.ok()?;
        if self.device_order.is_empty() {
            return devices.iter().find(|d| d.id == id).map(|d| &**d);
        }
        let found = self.device_order.binary_search_by_key(&Some(id), |at| Some(devices.get(*at as usize)?.id)).ok()?;
        devices.get(self.device_order[found] as usize).map(|d| &**d)
    }
}

fn share_if_equal<T: PartialEq>(new: Option<&mut Arc<T>>, old: Option<&Arc<T>>) {
    if let (Some(new), Some(old)) = (new, old)
        && new == old
    {
        *new = old.clone();
    }
}

fn derive_devices(prev: Option<&Sample>, cur: &Sample, secs: f64) -> Reading<Vec<Arc<DiskRate>>> {
    let before = disks_by_id(prev);
    let rate = |d: &DiskRaw| {
        let rate = DiskRate::derive(before.get(&d.id).copied(), d, secs);
        Arc::new(DiskRate { latency: traced::latency(prev, cur, &rate), ..rate })
    };
    let has_earlier = prev.is_none_or(|p| p.disks.ok().is_some());
    rates_of("/proc/diskstats", has_earlier, &cur.disks, |disks| {
        disks.iter().filter(|d| was_ever_used(d)).map(rate).collect()
    })
}

/// Without an earlier reading there are no rates.
fn derive_control_groups(prev: Option<&Sample>, cur: &Sample, secs: f64) -> Reading<Arc<ControlGroupActivity>> {
    let before = prev.and_then(|p| p.control_groups.ok()).map(|p| &**p);
    cur.control_groups.as_ref().map(|now| Arc::new(ControlGroupActivity::derive(before, now, secs)))
}

fn derive_cpu(prev: Option<&Sample>, cur: &Sample) -> Reading<CpuRate> {
    let zero = CpuRaw::default();
    let before = prev.map_or(Some(&zero), |p| p.cpu.ok());
    let rate = before.zip(cur.cpu.ok()).and_then(|(before, now)| CpuRate::derive(before, now));
    rates_of("/proc/stat", rate.is_some(), &cur.cpu, |_| rate.unwrap_or_default())
}

fn derive_swap(prev: Option<&Sample>, cur: &Sample, secs: f64) -> Reading<SwapRate> {
    let (mem, vm) = (cur.mem.ok(), cur.vm.ok());
    if mem.is_none() && vm.is_none() {
        return cur.mem.as_ref().map(|_| SwapRate::default());
    }
    let before = prev.and_then(|p| p.vm.ok());
    // Rates since boot only without an earlier sample, never because one could not be read.
    let vm = vm.filter(|_| prev.is_none() || before.is_some());
    Reading::Ok(SwapRate::derive(mem, before, vm, secs))
}

fn derive_netfs(prev: Option<&Sample>, cur: &Sample, nics: &[NicRate], secs: f64) -> Reading<Vec<NetFsRate>> {
    let before = prev.and_then(|p| p.netfs.ok()).map(Vec::as_slice);
    // Without an earlier reading, the rates of a mount would cover the time since it was mounted.
    let has_earlier = prev.is_none() || before.is_some() || cur.netfs.ok().is_some_and(Vec::is_empty);
    rates_of("/proc/self/mountstats", has_earlier, &cur.netfs, |now| NetFsRate::derive_all(before, now, nics, secs))
}

fn disks_by_id(prev: Option<&Sample>) -> HashMap<DevId, &DiskRaw> {
    prev.and_then(|p| p.disks.ok()).map(|d| d.iter().map(|d| (d.id, d)).collect()).unwrap_or_default()
}

/// iostat omits devices without any I/O; a machine has many unused loop devices.
fn was_ever_used(d: &DiskRaw) -> bool {
    let all = [d.read.ios, d.write.ios, d.discard.map_or(0, |o| o.ios), d.flush.map_or(0, |f| f.0), d.in_flight];
    all.iter().any(|n| *n > 0)
}

#[cfg(test)]
mod tests {
    use super::super::disk::DiskOpRaw;
    use super::super::memory::VmRaw;
    use super::*;

    fn sample(boot_s: u64, reads: u64) -> Sample {
        Sample {
            time: Timestamp { boot_ns: boot_s * 1_000_000_000, wall_ns: 0 },
            disks: Reading::Ok(vec![
                DiskRaw {
                    id: DevId { major: 8, minor: 0 },
                    name: "sda".into(),
                    read: DiskOpRaw { ios: reads, ..Default::default() },
                    ..Default::default()
                },
                DiskRaw { id: DevId { major: 7, minor: 0 }, name: "loop0".into(), ..Default::default() },
            ]),
            vm: Reading::Ok(VmRaw { page_size: 4096, pgmajfault: Some(reads), ..Default::default() }),
            ..Default::default()
        }
    }

    #[test]
    fn the_first_snapshot_covers_the_time_since_boot() {
        let snap = Snapshot::derive(None, &sample(100, 500));
        assert!(snap.is_since_boot);
        assert_eq!(snap.devices.ok().unwrap()[0].tps, 5.0);
        assert_eq!(snap.major_faults_per_s, Some(5.0));
    }

    #[test]
    fn later_snapshots_cover_their_interval_and_omit_unused_devices() {
        let snap = Snapshot::derive(Some(&sample(100, 500)), &sample(102, 520));
        assert_eq!((snap.interval_secs, snap.is_since_boot), (2.0, false));
        let devices = snap.devices.ok().unwrap();
        assert_eq!((devices.len(), devices[0].tps), (1, 10.0));
    }

    #[test]
    fn ticks_share_unchanged_devices() {
        let rate = |minor, tps| {
            let id = DevId { major: 8, minor };
            Arc::new(DiskRate { id, tps, latency: Some(Arc::default()), ..Default::default() })
        };
        let tick = |rates: Vec<_>| Snapshot { devices: Reading::Ok(rates), ..Default::default() };
        let before = tick(vec![rate(0, 5.0), rate(1, 0.0), rate(2, 0.0)]);
        let mut now = tick(vec![rate(0, 6.0), rate(1, 0.0), rate(3, 0.0), rate(4, 0.0)]);
        let whole = now.clone();
        now.share_unchanged(&before);
        assert_eq!(now, whole, "nothing looks different");
        let shared = now.devices.ok().unwrap().iter().zip(before.devices.ok().unwrap());
        let shared: Vec<bool> = shared.map(|(new, old)| Arc::ptr_eq(new, old)).collect();
        assert_eq!(shared, [false, true, false]);
    }

    #[test]
    fn one_of_many_devices_is_found_in_any_order() {
        let rate = |minor| {
            let id = DevId { major: 8, minor };
            Arc::new(DiskRate { id, tps: f64::from(minor), ..Default::default() })
        };
        let minors = [3, 1, 4, 15, 9, 2, 6].into_iter().chain(100..200).chain(20..90);
        let tick = || Snapshot { devices: Reading::Ok(minors.clone().map(rate).collect()), ..Default::default() };
        let mut first = tick();
        first.share_unchanged(&Snapshot::default());
        let mut second = tick();
        second.share_unchanged(&first);
        assert!(!first.device_order.is_empty() && Arc::ptr_eq(&first.device_order, &second.device_order));
        for minor in 0..210 {
            let found = second.device(DevId { major: 8, minor }).map(|d| d.tps);
            assert_eq!(found, minors.clone().any(|m| m == minor).then_some(f64::from(minor)), "{minor}");
        }
    }

    #[test]
    fn bytes_are_counted_once_for_stacked_devices() {
        use super::super::topology::DeviceKind;
        let dev = |minor, kind, parent: Option<u32>| BlockDevice {
            id: DevId { major: 8, minor },
            kind,
            parent: parent.map(|minor| DevId { major: 8, minor }),
            ..Default::default()
        };
        let topo = Topology {
            devices: vec![
                dev(0, DeviceKind::Disk, None),
                dev(1, DeviceKind::Partition, Some(0)),
                dev(2, DeviceKind::Lvm, Some(1)),
                dev(3, DeviceKind::Loop, None),
                dev(4, DeviceKind::Zram, None),
            ],
        };
        let rate = |minor| DiskRate {
            id: DevId { major: 8, minor },
            read_mb_per_s: 1.0,
            write_mb_per_s: 2.0,
            ..Default::default()
        };
        let snap = Snapshot { devices: Reading::Ok((0..5).map(rate).map(Arc::new).collect()), ..Default::default() };
        assert_eq!(snap.disks_mb_per_s(Some(&topo)), Some((1.0, 2.0)));
        assert_eq!(snap.disks_mb_per_s(None), None);
    }

    #[test]
    fn an_unreadable_earlier_sample_gives_no_rate() {
        let mut before = sample(100, 500);
        before.vm = Reading::Denied("no".into());
        before.disks = Reading::Denied("no".into());
        let snap = Snapshot::derive(Some(&before), &sample(102, 520));
        assert_eq!(snap.major_faults_per_s, None);
        assert_eq!(snap.writeback.ok().unwrap().dirtied_bytes_per_s, None);
        assert!(snap.cpu.ok().is_none() && snap.devices.ok().is_none());
    }
}
