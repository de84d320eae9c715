//! A system state in memory for tests of rules: healthy and idle until a test changes it.
//!
//! 24 GiB, a spinning disk `sda` with `sda1` on /srv and swap on `sda2`, a virtual disk `vda` with / on it, an
//! NVMe `nvme0n1`, a loop device on vda mounted on /mnt/lab.

use crate::doctor::finding::Finding;
use crate::doctor::rule_context::{RuleContext, RuleResult};
use crate::doctor::rules::RULES;
use crate::model::cpu::CpuRate;
use crate::model::disk::{DevId, DiskRate};
use crate::model::kernel_log::{KmsgRecord, LogClock};
use crate::model::latency::DeviceLatency;
use crate::model::memory::{MemRaw, ReclaimRate, SwapRate, WritebackRate};
use crate::model::memory_stalls::{MemoryStalls, ProcessStalls};
use crate::model::network::{NetFsRate, NicRate};
use crate::model::observation::Observation;
use crate::model::path::FilesystemSpace;
use crate::model::pressure::{PressureRaw, PsiAverages, ResourcePressure};
use crate::model::process::{IoBytes, ProcessUpdate, TaskChange, TaskIoRaw, TaskKey, TaskRaw};
use crate::model::queue::QueueAttrs;
use crate::model::reading::Reading;
use crate::model::slow_facts::{MountSpace, SpaceReport, SystemFacts};
use crate::model::snapshot::Snapshot;
use crate::model::system_state::{HostInfo, SystemState};
use crate::model::timestamp::Timestamp;
use crate::model::topology::{BlockDevice, DeviceKind, MountRef, Topology};
use std::sync::Arc;

pub const GIB: u64 = 1 << 30;
pub const MIB: f64 = 1_048_576.0;
pub const SEC: u64 = 1_000_000_000;

pub const SDA: DevId = DevId { major: 8, minor: 0 };
pub const SDA1: DevId = DevId { major: 8, minor: 1 };
pub const SDA2: DevId = DevId { major: 8, minor: 2 };
pub const VDA: DevId = DevId { major: 254, minor: 0 };
pub const NVME: DevId = DevId { major: 259, minor: 0 };
pub const LOOP0: DevId = DevId { major: 7, minor: 0 };

/// The machine with its history.
pub struct TestMachine {
    pub system: SystemState,
    seq: u64,
    process_seq: u64,
}

fn block_device(id: DevId, name: &str, kind: DeviceKind, parent: Option<DevId>) -> BlockDevice {
    BlockDevice { id, name: name.into(), kind, parent, size_bytes: Some(100 * GIB), ..BlockDevice::default() }
}

/// A mount with its options.
pub fn mount(point: &str, options: &str, super_options: &str) -> MountRef {
    MountRef {
        mount_point: point.into(),
        fs_type: "ext4".into(),
        options: options.into(),
        super_options: super_options.into(),
        ..MountRef::default()
    }
}

fn topology() -> Topology {
    let mut devices = vec![
        block_device(LOOP0, "loop0", DeviceKind::Loop, Some(VDA)),
        block_device(SDA, "sda", DeviceKind::Disk, None),
        block_device(SDA1, "sda1", DeviceKind::Partition, Some(SDA)),
        block_device(SDA2, "sda2", DeviceKind::Partition, Some(SDA)),
        block_device(VDA, "vda", DeviceKind::Disk, None),
        block_device(NVME, "nvme0n1", DeviceKind::Disk, None),
    ];
    devices[0].mounts.push(mount("/mnt/lab", "rw,relatime", "rw"));
    devices[2].mounts.push(mount("/srv", "rw,relatime", "rw"));
    devices[3].swaps.push("sda2".into());
    devices[4].mounts.push(mount("/", "rw,relatime", "rw"));
    devices.sort_by_key(|d| d.id);
    Topology { devices }
}

fn queue(scheduler: &str, rotational: bool) -> QueueAttrs {
    QueueAttrs {
        scheduler: Some(scheduler.into()),
        rotational: Some(rotational),
        read_ahead_kb: Some(128),
        ..QueueAttrs::default()
    }
}

/// A nearly idle device.
pub fn idle_device(id: DevId, name: &str) -> DiskRate {
    DiskRate {
        id,
        name: name.into(),
        tps: 1.0,
        writes_per_s: 1.0,
        await_ms: 0.5,
        queue_size: 0.01,
        util_pct: 0.2,
        ..DiskRate::default()
    }
}

/// A busy device: requests per second, await in ms, queue size, KiB per request, share of reads.
pub fn busy_device(id: DevId, name: &str, (tps, ms, queue, kb, reads): (f64, f64, f64, f64, f64)) -> DiskRate {
    let mb = tps * kb / 1024.0;
    DiskRate {
        tps,
        reads_per_s: tps * reads,
        writes_per_s: tps * (1.0 - reads),
        read_mb_per_s: mb * reads,
        write_mb_per_s: mb * (1.0 - reads),
        await_ms: ms,
        queue_size: queue,
        read_request_kb: kb,
        write_request_kb: kb,
        util_pct: 100.0,
        in_flight: queue as u64,
        ..idle_device(id, name)
    }
}

/// A task without I/O.
pub fn task_counters(pid: u32, name: &str) -> TaskRaw {
    let key = TaskKey { pid, tid: pid, starttime: 100 };
    let mut comm = [0; 16];
    comm[..name.len()].copy_from_slice(name.as_bytes());
    TaskRaw {
        key,
        comm,
        state: b'S',
        kernel_thread: false,
        ioprio: None,
        ppid: 1,
        uid: Some(0),
        num_threads: 1,
        majflt: 0,
        cpu_ticks: 0,
        timeslices: 0,
        rss_bytes: 50 << 20,
        swap_bytes: Some(0),
        io: TaskIoRaw::Read(IoBytes::default()),
        delays: None,
    }
}

/// The task with these I/O counters.
pub fn task_after(raw: TaskRaw, did: IoBytes) -> TaskRaw {
    TaskRaw { io: TaskIoRaw::Read(did), timeslices: 1, ..raw }
}

/// Pressure with these avg10.
pub fn pressure(some: f64, full: f64) -> ResourcePressure {
    let stall = |avg10| Some(PsiAverages { avg10, ..PsiAverages::default() });
    ResourcePressure { some: stall(some), full: stall(full) }
}

impl TestMachine {
    /// The healthy machine, before its first tick.
    pub fn new() -> Self {
        let start = LogClock { mono_ns: 1_000 * SEC, wall_ns: 1_700_000_000 * SEC as i64 };
        let mut world =
            SystemState::new(HostInfo { name: "host".into(), kernel: "6.18".into(), program_pid: None }, start);
        world.topology = Reading::Ok(topology());
        world.kernel_log_status = Reading::Ok(());
        world.processes_status = Reading::Ok(());
        for (name, scheduler, rotational) in
            [("sda", "mq-deadline", true), ("vda", "mq-deadline", true), ("nvme0n1", "none", false)]
        {
            world.queues.insert(name.into(), queue(scheduler, rotational));
        }
        let mut facts = SystemFacts { thp: Some("madvise".into()), ..SystemFacts::default() };
        facts.knobs.insert("kernel.hung_task_warnings".into(), "10".into());
        facts.knobs.insert("kernel.task_delayacct".into(), "1".into());
        world.slow_facts.update(SystemFacts { time: Self::time_at(0), ..facts.clone() });
        world.slow_facts.update(SystemFacts { time: Self::time_at(10), ..facts });
        let mut machine = Self { system: world, seq: 0, process_seq: 0 };
        machine.disk_space("/", 100 * GIB, 60 * GIB, 1_000_000, 900_000);
        machine
    }

    fn time_at(seq: u64) -> Timestamp {
        Timestamp { boot_ns: (1_000 + seq) * SEC, wall_ns: (1_700_000_000 + seq as i64) * SEC as i64 }
    }

    /// Now.
    pub fn now(&self) -> Timestamp {
        Self::time_at(self.seq)
    }

    /// The clock of kernel messages now.
    pub fn log_clock(&self) -> LogClock {
        LogClock { mono_ns: self.now().boot_ns, wall_ns: self.now().wall_ns }
    }

    fn snapshot(&self) -> Snapshot {
        let stock = MemRaw { total: 24 * GIB, free: 4 * GIB, cached: 12 * GIB, ..MemRaw::default() };
        let devices = vec![
            idle_device(SDA, "sda"),
            idle_device(SDA1, "sda1"),
            idle_device(VDA, "vda"),
            idle_device(NVME, "nvme0n1"),
            idle_device(LOOP0, "loop0"),
        ];
        Snapshot {
            seq: self.seq,
            time: self.now(),
            interval_secs: 1.0,
            cpu: Reading::Ok(CpuRate { idle_pct: 97.0, iowait_pct: 0.5, ..CpuRate::default() }),
            devices: Reading::Ok(devices.into_iter().map(Arc::new).collect()),
            writeback: Reading::Ok(WritebackRate {
                dirty_bytes: Some(40 << 20),
                writeback_bytes: Some(0),
                background_threshold_bytes: Some(2 * GIB),
                freerun_bytes: Some(3 * GIB),
                dirty_threshold_bytes: Some(4 * GIB),
                dirtied_bytes_per_s: Some(0.2 * MIB),
                written_bytes_per_s: Some(0.2 * MIB),
            }),
            swap: Reading::Ok(SwapRate {
                total_bytes: Some(4 * GIB),
                used_bytes: Some(20 << 20),
                in_bytes_per_s: Some(0.0),
                out_bytes_per_s: Some(0.0),
            }),
            mem: Reading::Ok(stock),
            major_faults_per_s: Some(0.0),
            reclaim: Some(ReclaimRate::default()),
            pressure: Reading::Ok(Arc::new(PressureRaw {
                cpu: pressure(0.0, 0.0),
                memory: pressure(0.0, 0.0),
                io: pressure(0.5, 0.1),
            })),
            nics: Reading::Ok(Vec::new()),
            netfs: Reading::Ok(Vec::new()),
            memory_stalls: Reading::Ok(Arc::new(MemoryStalls {
                totals: [Some(Default::default()); 2],
                ..MemoryStalls::default()
            })),
            ..Snapshot::default()
        }
    }

    /// Adds a tick, changed by `change`.
    pub fn tick(&mut self, change: impl FnOnce(&mut Snapshot)) -> &mut Self {
        self.seq += 1;
        let mut snap = self.snapshot();
        change(&mut snap);
        let snap = Arc::new(snap);
        self.system.snapshot = snap.clone();
        self.system.history.push(snap);
        self
    }

    /// Adds equal ticks.
    pub fn ticks(&mut self, n: usize, change: impl Fn(&mut Snapshot)) -> &mut Self {
        for _ in 0..n {
            self.tick(&change);
        }
        self
    }

    /// Adds idle ticks.
    pub fn idle_ticks(&mut self, n: usize) -> &mut Self {
        self.ticks(n, |_| {})
    }

    /// Lets time pass without ticks.
    pub fn skip_secs(&mut self, secs: u64) -> &mut Self {
        self.seq += secs;
        self
    }

    /// Adds a task by two scans a second apart, with this I/O in between.
    pub fn add_task(
        &mut self,
        pid: u32,
        name: &str,
        change: impl Fn(&mut TaskRaw),
        did: IoBytes,
        faults: u64,
    ) -> TaskKey {
        let mut raw = task_counters(pid, name);
        let key = raw.key;
        change(&mut raw);
        self.scan(vec![raw], false);
        self.scan(vec![TaskRaw { majflt: raw.majflt + faults, ..task_after(raw, did) }], false);
        key
    }

    /// Adds a scan of the tasks, a second after the one before.
    pub fn scan(&mut self, tasks: Vec<TaskRaw>, reset: bool) {
        self.process_seq += 1;
        let at = self.now();
        let since = at.boot_ns - SEC;
        let changed =
            tasks.into_iter().map(|raw| TaskChange { raw, scanned_ns: at.boot_ns, previous_scan_ns: since }).collect();
        let update = ProcessUpdate {
            seq: self.process_seq,
            time: at,
            previous_time: Some(Timestamp { boot_ns: since, ..at }),
            reset,
            changed,
            delays: Reading::Ok(()),
            ..ProcessUpdate::default()
        };
        self.system.apply(Observation::Tasks(Box::new(Reading::Ok(update))));
    }

    /// Adds a task in state D for `secs` seconds, with a tick for each.
    pub fn add_hung_task(&mut self, pid: u32, name: &str, wchan: &str, secs: usize) -> TaskKey {
        let key = self.add_task(pid, name, |t| t.state = b'D', IoBytes::default(), 0);
        for i in 0..secs {
            self.idle_ticks(1);
            let at = self.now();
            let waits = vec![(key, wchan.into())];
            let update =
                ProcessUpdate { seq: 100 + i as u64, time: at, wait_channels: waits, ..ProcessUpdate::default() };
            self.system.apply(Observation::Tasks(Box::new(Reading::Ok(update))));
        }
        key
    }

    /// Adds a message of the kernel now.
    pub fn kernel_message(&mut self, message: &str) -> &mut Self {
        self.kernel_message_from(0, message)
    }

    /// Adds a message of this syslog facility now.
    pub fn kernel_message_from(&mut self, facility: u16, message: &str) -> &mut Self {
        let clock = self.log_clock();
        let seq = self.system.kernel_log.size().0 as u64 + self.system.kernel_log.revision + 1;
        let record = KmsgRecord {
            seq,
            boot_us: clock.boot_us(),
            level: 3,
            facility,
            message: message.as_bytes().to_vec(),
            ..KmsgRecord::default()
        };
        self.system.apply(Observation::KernelLog(vec![record], clock));
        self
    }

    /// Sets the free space of a mount.
    pub fn disk_space(&mut self, point: &str, total: u64, left: u64, inodes: u64, inodes_left: u64) {
        let space = FilesystemSpace {
            total_bytes: total,
            free_bytes: left,
            available_bytes: left,
            inodes_total: Some(inodes),
            inodes_free: Some(inodes_left),
        };
        let mounts = vec![MountSpace { mount_point: point.into(), space: Reading::Ok(space) }];
        self.system.slow_facts.update_space(SpaceReport { time: self.now(), is_network: false, mounts });
    }

    /// Changes the newest facts.
    pub fn change_facts(&mut self, change: impl FnOnce(&mut SystemFacts)) {
        change(self.system.slow_facts.latest.as_mut().unwrap());
    }

    /// Changes the previous facts.
    pub fn change_previous_facts(&mut self, change: impl FnOnce(&mut SystemFacts)) {
        change(self.system.slow_facts.previous.as_mut().unwrap());
    }

    /// What one rule finds.
    pub fn evaluate_rule(&self, name: &str) -> (Vec<Finding>, RuleResult) {
        let rule = RULES.iter().find(|r| r.name == name).unwrap_or_else(|| panic!("no rule {name}"));
        let mut out = Vec::new();
        let result = rule.evaluate(&RuleContext::new(&self.system), &mut out);
        (out, result)
    }

    /// What all rules find.
    pub fn evaluate_all(&self) -> Vec<Finding> {
        let ctx = RuleContext::new(&self.system);
        let mut out = Vec::new();
        for rule in RULES {
            let _ = rule.evaluate(&ctx, &mut out);
        }
        out
    }
}

/// Replaces a device's rates.
pub fn set_device(snap: &mut Snapshot, rate: DiskRate) {
    let devices = snap.devices.ok_mut().unwrap();
    match devices.iter_mut().find(|d| d.id == rate.id) {
        Some(slot) => *slot = Arc::new(rate),
        None => devices.push(Arc::new(rate)),
    }
}

/// Sets a network mount over `eth0`, a link of this speed.
pub fn set_network_mount(snap: &mut Snapshot, mb: f64, speed_bits: Option<u64>, change: impl FnOnce(&mut NetFsRate)) {
    let used = speed_bits.map(|b| mb * MIB * 800.0 / b as f64);
    snap.nics = Reading::Ok(vec![NicRate { name: "eth0".into(), speed_bits, used_pct: used }]);
    let mut fs = NetFsRate {
        mount: "/mnt/nfs".into(),
        server: "server:/export".into(),
        read_mb_per_s: Some(mb),
        write_mb_per_s: Some(0.0),
        rtt_ms: Some(1.0),
        retransmits_per_s: Some(0.0),
        interface: Some("eth0".into()),
        link_used_pct: used,
        ops_per_s: Some(100.0),
        ..NetFsRate::default()
    };
    change(&mut fs);
    snap.netfs = Reading::Ok(vec![fs]);
}

/// Stalls a process for `ms_per_s`; `kind` is an index as in `model::memory_stalls`.
pub fn set_stalled(snap: &mut Snapshot, pid: u32, name: &str, kind: usize, ms_per_s: f64, longest_ms: f64) {
    let stalls = Arc::make_mut(snap.memory_stalls.ok_mut().unwrap());
    let key = TaskKey { pid, tid: pid, starttime: 100 };
    let mut stalls_of_process = ProcessStalls { key, comm: name.into(), bdi: "8:0".into(), ..ProcessStalls::default() };
    stalls_of_process.rates[kind].count = 5;
    (stalls_of_process.rates[kind].ms_per_s, stalls_of_process.rates[kind].max_ms) = (ms_per_s, longest_ms);
    let all = stalls.totals[kind].as_mut().unwrap();
    (all.count, all.ms_per_s) = (all.count + 5, all.ms_per_s + ms_per_s);
    stalls.processes.push(stalls_of_process);
}

/// Adds traced requests of 4 KiB to a device.
pub fn with_traced_requests(rate: DiskRate, sequential: u32, random: u32) -> DiskRate {
    let mut latency = DeviceLatency::default();
    let shape = &mut latency.kinds[0].pattern;
    (shape.sequential, shape.random, shape.sizes[3]) = (sequential, random, sequential + random);
    DiskRate { latency: Some(Arc::new(latency)), ..rate }
}
