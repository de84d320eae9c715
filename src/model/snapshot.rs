//! Two samples become rates: the one derivation for live screens, exports and replay.

use super::charge::Charged;
use super::clock::Clock;
use super::cpu::{CpuRate, CpuRaw};
use super::disk::{DevId, DiskRate, DiskRaw};
use super::latency::{DeviceCounts, DeviceLatency, Tracing};
use super::memory::{MemRaw, ReclaimRate, SwapArea, SwapRate, WritebackRate};
use super::network::{NetFsRate, NicRate};
use super::pressure::PressureRaw;
use super::sample::Sample;
use super::section::Section;
use super::stalls::Stalls;
use super::syncs::Syncs;
use super::topology::{BlockDev, Topology};
use std::collections::HashMap;
use std::sync::Arc;

/// What the counters say of one interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// The later sample's number.
    pub seq: u64,
    /// The later sample's clocks.
    pub at: Clock,
    /// Length of the interval; the uptime if `since_boot`.
    pub secs: f64,
    /// There was no earlier sample: rates are means since boot.
    pub since_boot: bool,
    /// CPU shares.
    pub cpu: Section<CpuRate>,
    /// CPUs there are.
    pub cpus: Option<u32>,
    /// Tasks that wait for block I/O (`procs_blocked`).
    pub tasks_blocked: Option<u64>,
    /// Devices that ever did anything, in the kernel's order. Ticks share what stayed the same: see
    /// [`Snapshot::share`].
    pub devices: Section<Vec<Arc<DiskRate>>>,
    /// Dirty pages.
    pub writeback: Section<WritebackRate>,
    /// Swap traffic and stock.
    pub swap: Section<SwapRate>,
    /// Swap areas.
    pub swaps: Section<Vec<SwapArea>>,
    /// Memory.
    pub mem: Section<MemRaw>,
    /// Major faults per second, whole machine.
    pub major_faults_per_s: Option<f64>,
    /// Memory that was looked for; `None` where the kernel does not count it, or at the first sample.
    pub reclaim: Option<ReclaimRate>,
    /// Pressure.
    pub pressure: Section<Arc<PressureRaw>>,
    /// Network interfaces.
    pub nics: Section<Vec<NicRate>>,
    /// Network file systems; their own figures first, how full their wire is last.
    pub netfs: Section<Vec<NetFsRate>>,
    /// Whether latencies are traced; the devices have them.
    pub tracing: Section<Tracing>,
    /// Who was held up by memory.
    pub stalls: Section<Arc<Stalls>>,
    /// Who waited for syncs; only while somebody wants to know.
    pub syncs: Section<Arc<Syncs>>,
    /// Who did the I/O of the devices.
    pub charged: Section<Arc<Charged>>,
}

impl Snapshot {
    /// Rates of `cur` since `prev`; without `prev`, since boot.
    pub fn derive(prev: Option<&Sample>, cur: &Sample) -> Self {
        let secs = prev.map_or(cur.at.uptime_secs(), |p| cur.at.secs_since(p.at));
        let prev_vm = prev.and_then(|p| p.vm.ok());
        let since_boot = prev.is_none();
        let nics = nics(prev, cur, secs);
        Self {
            seq: cur.seq,
            at: cur.at,
            secs,
            since_boot,
            cpu: cpu(prev, cur),
            cpus: cur.cpu.ok().map(|c| c.cpus),
            tasks_blocked: cur.cpu.ok().map(|c| c.blocked),
            devices: devices(prev, cur, secs),
            writeback: cur.vm.as_ref().map(|vm| {
                let rate = WritebackRate::derive(prev_vm, vm, secs);
                match prev_vm.is_some() || since_boot {
                    true => rate,
                    false => WritebackRate { dirtied_bytes_per_s: None, written_bytes_per_s: None, ..rate },
                }
            }),
            swap: swap(prev, cur, secs),
            swaps: cur.swaps.clone(),
            mem: cur.mem.clone(),
            major_faults_per_s: cur.vm.ok().and_then(|vm| {
                let before = prev.map_or(Some(0), |_| prev_vm?.pgmajfault)?;
                Some(vm.pgmajfault?.checked_sub(before)? as f64 / secs.max(1e-9))
            }),
            reclaim: prev_vm.zip(cur.vm.ok()).and_then(|(p, c)| ReclaimRate::derive(p, c, secs)),
            pressure: cur.pressure.clone().map(Arc::new),
            netfs: netfs(prev, cur, nics.ok().map(Vec::as_slice).unwrap_or_default(), secs),
            nics,
            tracing: tracing(prev, cur),
            stalls: stalls(prev, cur, secs),
            syncs: syncs(prev, cur, secs),
            charged: charged(prev, cur, secs),
        }
    }

    /// Takes over from the tick before what looks the same: most of a machine's devices are idle, and many ticks are
    /// kept.
    pub fn share(&mut self, before: &Self) {
        if let (Some(new), Some(old)) = (self.devices.ok_mut(), before.devices.ok()) {
            new.iter_mut().zip(old).for_each(|(new, old)| share(new, old));
        }
        if let (Some(new), Some(old)) = (self.pressure.ok_mut(), before.pressure.ok()) {
            share(new, old);
        }
        if let (Some(new), Some(old)) = (self.stalls.ok_mut(), before.stalls.ok()) {
            share(new, old);
        }
        if let (Some(new), Some(old)) = (self.charged.ok_mut(), before.charged.ok()) {
            share(new, old);
        }
    }

    /// Read and written per second by the disks themselves, 2^20 bytes; what lies on them (partitions,
    /// dm, md, loop) would count the same bytes again. `None` while devices or topology are not known.
    pub fn disks_mb_per_s(&self, topo: Option<&Topology>) -> Option<(f64, f64)> {
        let topo = topo?;
        let is_disk = |d: &&Arc<DiskRate>| topo.get(d.id).is_some_and(BlockDev::is_hardware);
        let disks = self.devices.ok()?.iter().filter(is_disk);
        Some(disks.fold((0.0, 0.0), |(r, w), d| (r + d.read_mb_per_s, w + d.write_mb_per_s)))
    }

    /// The rates of a device.
    pub fn device(&self, id: DevId) -> Option<&DiskRate> {
        self.devices.ok()?.iter().find(|d| d.id == id).map(|d| &**d)
    }
}

fn share<T: PartialEq>(new: &mut Arc<T>, old: &Arc<T>) {
    if new == old {
        *new = old.clone();
    }
}

fn devices(prev: Option<&Sample>, cur: &Sample, secs: f64) -> Section<Vec<Arc<DiskRate>>> {
    if prev.is_some_and(|p| p.disks.ok().is_none()) && cur.disks.ok().is_some() {
        return Section::Absent("/proc/diskstats: no earlier reading to compare with".into());
    }
    let before = index(prev);
    cur.disks.as_ref().map(|disks| {
        let used = disks.iter().filter(|d| ever_used(d));
        let rate = |d: &DiskRaw| {
            let rate = DiskRate::derive(before.get(&d.id).copied(), d, secs);
            Arc::new(DiskRate { latency: latency(prev, cur, d.id), ..rate })
        };
        used.map(rate).collect()
    })
}

/// Of a device, if it is measured. Histograms that were not there at the earlier sample began to count since.
fn latency(prev: Option<&Sample>, cur: &Sample, id: DevId) -> Option<Arc<DeviceLatency>> {
    let now = counts(cur, id).filter(|_| !unread_before(prev))?;
    let before = prev.and_then(|p| counts(p, id));
    // Where nothing was counted at all it is even the same reading.
    let same = |before: &DeviceCounts| std::ptr::eq(before, now) || before == now;
    if before.is_some_and(same) {
        return Some(DeviceLatency::idle());
    }
    Some(Arc::new(DeviceLatency::derive(before, now)))
}

fn counts(s: &Sample, id: DevId) -> Option<&DeviceCounts> {
    let devices = &s.latency.ok()?.devices;
    devices.binary_search_by_key(&id, |d| d.id).ok().map(|at| &devices[at])
}

/// The histograms were there at the earlier sample, but could not be read: what is new is not known.
fn unread_before(prev: Option<&Sample>) -> bool {
    prev.is_some_and(|p| matches!(p.latency, Section::Denied(_) | Section::Blocked(_)))
}

fn tracing(prev: Option<&Sample>, cur: &Sample) -> Section<Tracing> {
    if cur.latency.ok().is_some() && unread_before(prev) {
        return Section::Absent("tracing: no earlier reading to compare with".into());
    }
    let lost = prev.and_then(|p| p.latency.ok()).map_or(0, |p| p.lost);
    cur.latency
        .as_ref()
        .map(|now| Tracing { lost: now.lost.saturating_sub(lost), without: now.without.clone() })
}

/// Rates since boot would say nothing; but what was not loaded at the earlier sample began to count since.
fn stalls(prev: Option<&Sample>, cur: &Sample, secs: f64) -> Section<Arc<Stalls>> {
    let unknown = prev.is_none_or(|p| matches!(p.stalls, Section::Denied(_) | Section::Blocked(_)));
    if unknown && cur.stalls.ok().is_some() {
        return Section::Absent("tracing of stalls: no earlier reading to compare with".into());
    }
    let before = prev.and_then(|p| p.stalls.ok());
    cur.stalls.as_ref().map(|now| Arc::new(Stalls::derive(before, now, secs)))
}

/// Counts begin with tracing, so an earlier reading is not needed; one that failed makes rates of a longer time.
fn syncs(prev: Option<&Sample>, cur: &Sample, secs: f64) -> Section<Arc<Syncs>> {
    let before = prev.and_then(|p| p.syncs.ok());
    cur.syncs.as_ref().map(|now| Arc::new(Syncs::derive(before, now, secs)))
}

/// Accounts that were not there at the earlier sample began to count since.
fn charged(prev: Option<&Sample>, cur: &Sample, secs: f64) -> Section<Arc<Charged>> {
    let unread = prev.is_some_and(|p| matches!(p.charge, Section::Denied(_) | Section::Blocked(_)));
    match &cur.charge {
        Section::Ok(_) if unread => {
            Section::Absent("tracing by process: no earlier reading to compare with".into())
        }
        Section::Ok(now) => {
            Section::Ok(Arc::new(Charged::derive(prev.and_then(|p| p.charge.ok()).map(|p| &**p), now, secs)))
        }
        other => other.as_ref().map(|_| Arc::default()),
    }
}

fn cpu(prev: Option<&Sample>, cur: &Sample) -> Section<CpuRate> {
    match &cur.cpu {
        Section::Ok(now) => {
            let zero = CpuRaw::default();
            let before = match prev {
                Some(p) => p.cpu.ok(),
                None => Some(&zero),
            };
            match before.and_then(|b| CpuRate::derive(b, now)) {
                Some(rate) => Section::Ok(rate),
                None => Section::Absent("/proc/stat: no earlier reading to compare with".into()),
            }
        }
        other => other.as_ref().map(|_| CpuRate::default()),
    }
}

fn swap(prev: Option<&Sample>, cur: &Sample, secs: f64) -> Section<SwapRate> {
    let (mem, vm) = (cur.mem.ok(), cur.vm.ok());
    if mem.is_none() && vm.is_none() {
        return cur.mem.as_ref().map(|_| SwapRate::default());
    }
    let before = prev.and_then(|p| p.vm.ok());
    // A rate since boot only when there was no earlier sample, never because one could not be read.
    let vm = vm.filter(|_| prev.is_none() || before.is_some());
    Section::Ok(SwapRate::derive(mem, before, vm, secs))
}

fn nics(prev: Option<&Sample>, cur: &Sample, secs: f64) -> Section<Vec<NicRate>> {
    let before = prev.and_then(|p| p.nics.ok()).map(Vec::as_slice);
    cur.nics.as_ref().map(|now| NicRate::derive_all(before, now, secs))
}

fn netfs(prev: Option<&Sample>, cur: &Sample, nics: &[NicRate], secs: f64) -> Section<Vec<NetFsRate>> {
    // Without an earlier reading a mount's rates would silently cover the time since it was mounted.
    if prev.is_some_and(|p| p.netfs.ok().is_none()) && cur.netfs.ok().is_some_and(|n| !n.is_empty()) {
        return Section::Absent("/proc/self/mountstats: no earlier reading to compare with".into());
    }
    let before = prev.and_then(|p| p.netfs.ok()).map(Vec::as_slice);
    cur.netfs.as_ref().map(|now| NetFsRate::derive_all(before, now, nics, secs))
}

fn index(prev: Option<&Sample>) -> HashMap<DevId, &DiskRaw> {
    prev.and_then(|p| p.disks.ok()).map(|d| d.iter().map(|d| (d.id, d)).collect()).unwrap_or_default()
}

/// iostat leaves out devices that never did anything; a machine has many unused loop devices.
fn ever_used(d: &DiskRaw) -> bool {
    let all =
        [d.read.ios, d.write.ios, d.discard.map_or(0, |o| o.ios), d.flush.map_or(0, |f| f.0), d.in_flight];
    all.iter().any(|n| *n > 0)
}

#[cfg(test)]
mod tests {
    use super::super::disk::OpRaw;
    use super::super::memory::VmRaw;
    use super::*;

    fn sample(boot_s: u64, reads: u64) -> Sample {
        Sample {
            at: Clock { boot_ns: boot_s * 1_000_000_000, wall_ns: 0 },
            disks: Section::Ok(vec![
                DiskRaw {
                    id: DevId { major: 8, minor: 0 },
                    name: "sda".into(),
                    read: OpRaw { ios: reads, ..Default::default() },
                    ..Default::default()
                },
                DiskRaw { id: DevId { major: 7, minor: 0 }, name: "loop0".into(), ..Default::default() },
            ]),
            vm: Section::Ok(VmRaw { page_size: 4096, pgmajfault: Some(reads), ..Default::default() }),
            ..Default::default()
        }
    }

    #[test]
    fn the_first_look_covers_the_time_since_boot() {
        let snap = Snapshot::derive(None, &sample(100, 500));
        assert!(snap.since_boot);
        assert_eq!(snap.devices.ok().unwrap()[0].tps, 5.0);
        assert_eq!(snap.major_faults_per_s, Some(5.0));
    }

    #[test]
    fn later_looks_cover_their_interval_and_unused_devices_stay_out() {
        let snap = Snapshot::derive(Some(&sample(100, 500)), &sample(102, 520));
        assert_eq!((snap.secs, snap.since_boot), (2.0, false));
        let devices = snap.devices.ok().unwrap();
        assert_eq!((devices.len(), devices[0].tps), (1, 10.0));
    }

    #[test]
    fn ticks_share_the_devices_that_stayed_the_same() {
        let rate = |minor, tps| {
            let id = DevId { major: 8, minor };
            Arc::new(DiskRate { id, tps, latency: Some(DeviceLatency::idle()), ..Default::default() })
        };
        let tick = |rates: Vec<_>| Snapshot { devices: Section::Ok(rates), ..Default::default() };
        let before = tick(vec![rate(0, 5.0), rate(1, 0.0), rate(2, 0.0)]);
        let mut now = tick(vec![rate(0, 6.0), rate(1, 0.0), rate(3, 0.0), rate(4, 0.0)]);
        let whole = now.clone();
        now.share(&before);
        assert_eq!(now, whole, "nothing looks different");
        let shared = now.devices.ok().unwrap().iter().zip(before.devices.ok().unwrap());
        let shared: Vec<bool> = shared.map(|(new, old)| Arc::ptr_eq(new, old)).collect();
        assert_eq!(shared, [false, true, false]);
    }

    #[test]
    fn bytes_are_counted_once_however_deep_the_stack() {
        use super::super::topology::DeviceKind;
        let dev = |minor, kind, parent: Option<u32>| BlockDev {
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
        let snap =
            Snapshot { devices: Section::Ok((0..5).map(rate).map(Arc::new).collect()), ..Default::default() };
        assert_eq!(snap.disks_mb_per_s(Some(&topo)), Some((1.0, 2.0)));
        assert_eq!(snap.disks_mb_per_s(None), None);
    }

    #[test]
    fn latencies_cover_the_interval_or_what_there_was_of_it() {
        use super::super::latency::{Counts, KindCounts, LatencyRaw};
        let counted = |n: u32| {
            let read = KindCounts { total: Counts::sparse([(100, n)]), ..KindCounts::default() };
            let kinds = [read, KindCounts::default(), KindCounts::default()];
            let devices = vec![DeviceCounts { id: DevId { major: 8, minor: 0 }, kinds }];
            Section::Ok(Arc::new(LatencyRaw { devices, lost: u64::from(n) / 10, without: Vec::new() }))
        };
        let at = |boot_s, latency| Sample { latency, ..sample(boot_s, 500) };
        let loading = Section::Absent("being loaded".into());
        let stuck = Section::Blocked(super::super::section::Blocked { since_boot_ns: 1, on: "x".into() });
        for (before, samples) in [(counted(10), Some(20)), (loading, Some(30)), (stuck, None)] {
            let snap = Snapshot::derive(Some(&at(100, before)), &at(101, counted(30)));
            let latency = snap.device(DevId { major: 8, minor: 0 }).unwrap().latency.clone();
            assert_eq!(latency.map(|l| l.kinds[0].total.unwrap().samples), samples);
            assert_eq!(snap.tracing.ok().is_some(), samples.is_some());
        }
        let snap = Snapshot::derive(Some(&at(100, counted(10))), &at(101, counted(30)));
        assert_eq!(snap.tracing.ok().unwrap().lost, 2);
    }

    #[test]
    fn stalls_cover_the_interval_or_what_there_was_of_it() {
        use super::super::stalls::{StallsRaw, TaskStalls};
        let counted = |n: u64| {
            let mut task = TaskStalls { pid: 7, ..TaskStalls::default() };
            task.kinds[0].count = n;
            Section::Ok(StallsRaw { tasks: vec![task], counted: [true; 2], ..StallsRaw::default() })
        };
        let at = |boot_s, stalls| Sample { stalls, ..sample(boot_s, 500) };
        let count = |before: Option<Section<StallsRaw>>| {
            let prev = before.map(|b| at(100, b));
            let snap = Snapshot::derive(prev.as_ref(), &at(101, counted(30)));
            snap.stalls.ok().map(|s| s.all[0].unwrap().count)
        };
        assert_eq!(count(Some(counted(10))), Some(20));
        assert_eq!(count(Some(Section::Absent("being loaded".into()))), Some(30));
        assert_eq!((count(Some(Section::Denied("no".into()))), count(None)), (None, None));
    }

    #[test]
    fn an_unread_earlier_sample_gives_no_rate() {
        let mut before = sample(100, 500);
        before.vm = Section::Denied("no".into());
        before.disks = Section::Denied("no".into());
        let snap = Snapshot::derive(Some(&before), &sample(102, 520));
        assert_eq!(snap.major_faults_per_s, None);
        assert_eq!(snap.writeback.ok().unwrap().dirtied_bytes_per_s, None);
        assert!(snap.cpu.ok().is_none() && snap.devices.ok().is_none());
    }
}
