//! Nearly trouble, and nothing is said; or not enough is known to say anything.

use super::firing::{little_cache, nobody};
use super::stage::*;
use crate::diagnose::finding::{Judged, Severity};
use crate::model::slow_facts::{CgroupFacts, CgroupIoLimit, SlowFacts, OpenFiles, BenchResultFacts};
use crate::model::memory::ReclaimRate;
use crate::model::network::{NetFsKind, NetFsRaw};
use crate::model::process::IoBytes;
use crate::model::sample::Sample;
use crate::model::reading::Reading;
use crate::model::snapshot::Snapshot;
use crate::model::memory_stalls::{RECLAIM, THROTTLE};

/// A case: nothing of that severity or worse is found.
pub struct Quiet {
    pub rule: &'static str,
    pub what: &'static str,
    pub from: Severity,
    pub judged: Option<fn(&Judged) -> bool>,
    pub make: fn(&mut Stage),
}

const fn quiet(rule: &'static str, what: &'static str, make: fn(&mut Stage)) -> Quiet {
    Quiet { rule, what, from: Severity::Note, judged: None, make }
}

const fn below(rule: &'static str, from: Severity, what: &'static str, make: fn(&mut Stage)) -> Quiet {
    Quiet { rule, what, from, judged: None, make }
}

fn not_yet(j: &Judged) -> bool {
    matches!(j, Judged::NotYet(_))
}

fn cannot(j: &Judged) -> bool {
    matches!(j, Judged::Cannot(_))
}

const fn early(rule: &'static str, what: &'static str, make: fn(&mut Stage)) -> Quiet {
    Quiet { rule, what, from: Severity::Note, judged: Some(not_yet), make }
}

const fn blind(rule: &'static str, what: &'static str, make: fn(&mut Stage)) -> Quiet {
    Quiet { rule, what, from: Severity::Note, judged: Some(cannot), make }
}

fn stalled(t: &mut Snapshot) {
    let mut d = idle(SDA, "sda");
    (d.tps, d.writes_per_s, d.in_flight, d.stalled) = (0.0, 0.0, 1, true);
    with(t, d);
}

pub const QUIET: &[Quiet] = &[
    quiet("device-saturated", "100 % busy, but a short queue", |s| {
        s.ticks(8, |t| with(t, load(NVME, "nvme0n1", (9_000.0, 0.11, 1.0, 4.0, 0.5))));
    }),
    quiet("device-saturated", "a burst of two seconds", |s| {
        s.quiet(8);
        s.ticks(2, |t| with(t, load(SDA, "sda", (119.0, 480.0, 57.0, 4.0, 0.6))));
    }),
    quiet("device-saturated", "over since four seconds", |s| {
        s.ticks(20, |t| with(t, load(SDA, "sda", (119.0, 480.0, 57.0, 4.0, 0.6))));
        s.quiet(4);
    }),
    quiet("device-saturated", "what lies on it is not told twice", |s| {
        s.ticks(8, |t| {
            let busy = (119.0, 480.0, 57.0, 4.0, 0.6);
            with(t, load(LOOP0, "loop0", busy));
        });
        s.world.snapshot.devices.ok().unwrap();
        s.ticks(8, |t| {
            t.devices.ok_mut().unwrap().retain(|d| d.id != LOOP0);
        });
    }),
    early("device-saturated", "two ticks", |s| {
        s.ticks(2, |t| with(t, load(SDA, "sda", (119.0, 480.0, 57.0, 4.0, 0.6))));
    }),
    blind("device-saturated", "no counters", |s| {
        s.ticks(8, |t| t.devices = Reading::Denied("/proc/diskstats: permission denied".into()));
    }),
    quiet("device-stalled", "one slow tick", |s| {
        s.quiet(6);
        s.tick(stalled);
    }),
    quiet("device-stalled", "stalled, and on again", |s| {
        s.ticks(6, stalled);
        s.quiet(1);
    }),
    quiet("slow-device", "a spinning disk at its own pace", |s| {
        s.ticks(8, |t| with(t, load(SDA, "sda", (66.0, 15.0, 1.0, 4.0, 0.5))));
    }),
    quiet("slow-device", "few large requests are bandwidth", |s| {
        s.ticks(8, |t| with(t, load(VDA, "vda", (80.0, 100.0, 8.0, 1024.0, 0.0))));
    }),
    quiet("slow-device", "a full queue that moves", |s| {
        s.ticks(8, |t| with(t, load(VDA, "vda", (3_000.0, 21.0, 64.0, 4.0, 0.5))));
    }),
    quiet("writeback-storm", "below the threshold", |s| {
        s.ticks(8, |t| {
            let w = t.writeback.ok_mut().unwrap();
            (w.dirty_bytes, w.dirtied_bytes_per_s, w.written_bytes_per_s) =
                (Some(GIB), Some(200.0 * MIB), Some(20.0 * MIB));
        });
    }),
    quiet("writeback-storm", "a copy that ends", |s| {
        s.quiet(8);
        s.ticks(3, |t| {
            let w = t.writeback.ok_mut().unwrap();
            (w.dirty_bytes, w.dirtied_bytes_per_s, w.written_bytes_per_s) =
                (Some(5 * GIB / 2), Some(200.0 * MIB), Some(200.0 * MIB));
        });
    }),
    blind("writeback-storm", "no counters", |s| {
        s.ticks(8, |t| t.writeback = Reading::Absent("/proc/vmstat: no such file".into()));
    }),
    quiet("writers-throttled", "just at the ceiling", |s| {
        s.ticks(8, |t| t.writeback.ok_mut().unwrap().dirty_bytes = Some(3 * GIB));
    }),
    quiet("writers-throttled", "far above the ceiling, and nobody is put to sleep", |s| {
        s.ticks(8, |t| t.writeback.ok_mut().unwrap().dirty_bytes = Some(7 * GIB / 2));
    }),
    quiet("writers-throttled", "fine steering", |s| {
        s.ticks(8, |t| {
            t.writeback.ok_mut().unwrap().dirty_bytes = Some(7 * GIB / 2);
            hold_up(t, 911, "dd", THROTTLE, 40.0, 8.0);
        });
    }),
    quiet("reclaim-stalls", "a stream that recycles its own cache", |s| {
        s.ticks(8, |t| hold_up(t, 911, "cat", RECLAIM, 90.0, 2.0));
    }),
    blind("reclaim-stalls", "not traced", |s| {
        s.ticks(8, |t| t.memory_stalls = Reading::Denied("tracing needs CAP_BPF".into()));
    }),
    early("reclaim-stalls", "one tick", |s| {
        s.ticks(1, |t| hold_up(t, 911, "cat", RECLAIM, 900.0, 2.0));
    }),
    early("writers-throttled", "one tick", |s| {
        s.ticks(1, |t| t.writeback.ok_mut().unwrap().dirty_bytes = Some(7 * GIB / 2));
    }),
    quiet("slow-drain", "below the background threshold nobody hurries", |s| {
        s.ticks(12, |t| {
            let w = t.writeback.ok_mut().unwrap();
            (w.dirty_bytes, w.written_bytes_per_s) = (Some(GIB), Some(0.1 * MIB));
        });
    }),
    quiet("slow-drain", "a fast device", |s| {
        s.ticks(12, |t| {
            let w = t.writeback.ok_mut().unwrap();
            (w.dirty_bytes, w.written_bytes_per_s) = (Some(3 * GIB), Some(500.0 * MIB));
        });
    }),
    quiet("swapping", "a page now and then", |s| {
        s.ticks(8, |t| t.swap.ok_mut().unwrap().in_bytes_per_s = Some(40_960.0));
    }),
    quiet("swapping", "put away once", |s| {
        s.quiet(6).ticks(2, |t| t.swap.ok_mut().unwrap().out_bytes_per_s = Some(90.0 * MIB)).quiet(2);
    }),
    quiet("swapping", "used, but still", |s| {
        s.ticks(8, |t| t.swap.ok_mut().unwrap().used_bytes = Some(3 * GIB));
    }),
    quiet("swapped-idle", "a little", |s| {
        s.ticks(15, |t| t.swap.ok_mut().unwrap().used_bytes = Some(GIB / 2));
    }),
    quiet("swapped-idle", "it moves", |s| {
        s.ticks(15, |t| {
            let swap = t.swap.ok_mut().unwrap();
            (swap.used_bytes, swap.in_bytes_per_s) = (Some(3 * GIB), Some(5.0 * MIB));
        });
    }),
    quiet("server-swapped", "156 kB of a large server", |s| {
        s.quiet(8);
        s.task(
            920,
            "redis-server",
            |t| (t.swap_bytes, t.rss_bytes) = (Some(156 << 10), GIB),
            IoBytes::default(),
            0,
        );
    }),
    quiet("server-swapped", "a stranger that misses nothing", |s| {
        s.quiet(8);
        s.task(921, "python3", |t| t.swap_bytes = Some(GIB), IoBytes::default(), 0);
    }),
    quiet("cache-pressure", "the cache recycles itself", |s| {
        s.ticks(8, |t| {
            with(t, load(SDA, "sda", (200.0, 5.0, 1.0, 1024.0, 1.0)));
            t.reclaim = Some(ReclaimRate { background_bytes_per_s: 200.0 * MIB, ..ReclaimRate::default() });
        });
    }),
    quiet("cache-pressure", "programs fill the memory, not the cache", |s| {
        s.ticks(8, |t| {
            with(t, load(SDA, "sda", (200.0, 5.0, 1.0, 1024.0, 1.0)));
            t.swap.ok_mut().unwrap().out_bytes_per_s = Some(4.0 * MIB);
            t.reclaim = Some(ReclaimRate { background_bytes_per_s: 200.0 * MIB, ..ReclaimRate::default() });
            t.mem = Reading::Ok(little_cache());
        });
    }),
    quiet("hung-task", "a thread of a driver that sleeps so for good", |s| {
        s.task(40, "vmmemctl", |t| (t.state, t.kernel_thread) = (b'D', true), IoBytes::default(), 0);
        s.quiet(30);
        let at = s.now();
        let update = crate::model::process::ProcessUpdate { seq: 99, time: at, ..Default::default() };
        s.world.apply_processes(Reading::Ok(update));
        assert!(!s.world.hung_tasks.is_empty());
    }),
    early("hung-task", "in D, and watched for a moment only", |s| {
        s.hang(930, "dd", "io_schedule", 3);
    }),
    quiet("hung-task", "four seconds", |s| {
        s.hang(930, "dd", "io_schedule", 4);
    }),
    quiet("hung-task", "reported an hour ago, and gone", |s| {
        s.quiet(1);
        s.kernel("INFO: task dd:931 blocked for more than 120 seconds.");
        s.quiet(3600);
    }),
    blind("hung-task", "tasks cannot be listed", |s| {
        s.quiet(8);
        s.world.processes_status = Reading::Denied("/proc: permission denied".into());
    }),
    quiet("hung-task-silent", "no limit", |s| {
        s.facts(|f| drop(f.knobs.insert("kernel.hung_task_warnings".into(), "-1".into())));
    }),
    early("hung-task-silent", "settings not read", |s| s.world.slow_facts = SlowFacts::default()),
    quiet("device-reset", "a program that writes to the log", |s| {
        s.quiet(2);
        s.kernel_as(1, "ata4: hard resetting link");
    }),
    quiet("io-error", "a program that writes to the log", |s| {
        s.quiet(2);
        s.kernel_as(1, "I/O error, dev sda, sector 81239");
    }),
    quiet("io-error", "said of the file that lay behind the loop device before", |s| {
        s.kernel("I/O error, dev loop0, sector 81239 op 0x1:(WRITE)").quiet(3);
        s.kernel("loop0: detected capacity change from 0 to 409600");
    }),
    quiet("filesystem-error", "said of a device that has another beneath it since", |s| {
        s.kernel("EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm ls").quiet(3);
        s.kernel("sda: detected capacity change from 0 to 409600");
    }),
    quiet("io-error", "an hour ago", |s| {
        s.quiet(2);
        s.kernel("I/O error, dev sda, sector 81239");
        s.quiet(3600);
    }),
    blind("io-error", "no kernel log", |s| {
        s.quiet(2);
        s.world.kernel_log_status = Reading::Denied("/dev/kmsg: operation not permitted".into());
    }),
    quiet("filesystem-error", "a mount", |s| {
        s.quiet(2);
        s.kernel("EXT4-fs (sda1): mounted filesystem with ordered data mode");
    }),
    quiet("filesystem-error", "advice", |s| {
        s.quiet(2);
        s.kernel("EXT4-fs warning (device sda1): maximal mount count reached, running e2fsck is recommended");
    }),
    quiet("read-only", "meant so", |s| {
        s.world.topology.ok_mut().unwrap().devices.iter_mut().find(|d| d.id == SDA1).unwrap().mounts =
            vec![mount("/srv", "ro,relatime", "ro")];
        s.quiet(1);
    }),
    blind("read-only", "no mount table", |s| {
        s.world.topology = Reading::Denied("/proc/self/mountinfo: permission denied".into());
    }),
    quiet("oom", "nobody died", |s| {
        s.quiet(2);
        s.kernel("I/O error, dev sda, sector 81239");
    }),
    quiet("thp-always", "madvise", |s| {
        s.quiet(1);
        s.task(920, "redis-server", |_| {}, IoBytes::default(), 0);
    }),
    quiet("thp-always", "always, but nobody forks", |s| {
        s.quiet(1);
        s.facts(|f| f.thp = Some("always".into()));
        s.task(950, "postgres", |_| {}, IoBytes::default(), 0);
    }),
    early("thp-always", "settings not read", |s| s.world.slow_facts = SlowFacts::default()),
    quiet("fork-cost", "small", |s| {
        s.quiet(1);
        s.task(920, "redis-server", |t| t.rss_bytes = GIB, IoBytes::default(), 0);
    }),
    quiet("fork-cost", "large, but it does not fork", |s| {
        s.quiet(1);
        s.task(950, "postgres", |t| t.rss_bytes = 40 * GIB, IoBytes::default(), 0);
    }),
    quiet("atime-mount", "noatime", |s| {
        s.world.topology.ok_mut().unwrap().devices.iter_mut().find(|d| d.id == SDA1).unwrap().mounts =
            vec![mount("/srv", "rw,noatime", "rw")];
        s.ticks(8, |t| with(t, load(SDA1, "sda1", (120.0, 8.0, 1.0, 8.0, 1.0))));
        s.task(950, "postgres", |_| {}, IoBytes { read: 4 << 20, ..IoBytes::default() }, 0);
    }),
    quiet("atime-mount", "nobody reads", |s| {
        s.ticks(8, |_| {});
        s.task(950, "postgres", |_| {}, IoBytes::default(), 0);
    }),
    below("atime-mount", Severity::Warn, "relatime is worth a note only", |s| {
        s.ticks(8, |t| with(t, load(SDA1, "sda1", (120.0, 8.0, 1.0, 8.0, 1.0))));
        s.task(950, "postgres", |_| {}, IoBytes { read: 4 << 20, ..IoBytes::default() }, 0);
    }),
    quiet("scheduler-unsuitable", "as it should be", |s| {
        s.ticks(8, |t| with(t, load(SDA, "sda", (119.0, 100.8, 12.0, 4.0, 0.6))));
    }),
    quiet("scheduler-unsuitable", "virtual, so it only says that it spins", |s| {
        s.world.queues.get_mut("vda").unwrap().scheduler = Some("none".into());
        s.ticks(8, |t| with(t, load(VDA, "vda", (3_000.0, 21.0, 64.0, 4.0, 0.5))));
    }),
    early("scheduler-unsuitable", "settings not read", |s| {
        s.world.queues.clear();
        s.ticks(8, |t| with(t, load(SDA, "sda", (119.0, 100.8, 12.0, 4.0, 0.6))));
    }),
    quiet("readahead-small", "large enough", |s| {
        s.world.queues.get_mut("sda").unwrap().read_ahead_kb = Some(4096);
        s.ticks(8, |t| with(t, load(SDA, "sda", (100.0, 9.0, 1.0, 1024.0, 1.0))));
    }),
    quiet("readahead-small", "direct reads larger than it", |s| {
        s.ticks(8, |t| with(t, load(SDA, "sda", (100.0, 9.0, 1.0, 1024.0, 1.0))));
    }),
    quiet("readahead-large", "a stream", |s| {
        s.world.queues.get_mut("vda").unwrap().read_ahead_kb = Some(8192);
        s.ticks(8, |t| {
            with(t, load(VDA, "vda", (500.0, 3.0, 1.5, 512.0, 1.0)));
            t.major_faults_per_s = Some(1.0);
        });
    }),
    quiet("open-files", "half", |s| {
        s.quiet(1);
        let key = s.task(950, "postgres", |_| {}, IoBytes::default(), 0);
        s.facts(|f| f.open_files.push(OpenFiles { key, open: 512, soft: Some(1024), hard: None }));
    }),
    quiet("open-files", "a task that ended since", |s| {
        s.facts(|f| f.open_files.push(OpenFiles { key: nobody(), open: 1024, soft: Some(1024), hard: None }));
    }),
    early("open-files", "not read", |s| s.world.slow_facts = SlowFacts::default()),
    quiet("filesystem-full", "much is left of much", |s| s.room("/", 2_000 * GIB, 100 * GIB, 0, 0)),
    quiet("filesystem-full", "a small one full by design", |s| s.room("/boot", 200 << 20, 1 << 20, 0, 0)),
    early("filesystem-full", "not read", |s| s.world.slow_facts = SlowFacts::default()),
    quiet("network-link-full", "half of a gigabit", |s| {
        s.ticks(14, |t| over_network(t, 60.0, Some(1_000_000_000), |_| {}));
    }),
    quiet("network-link-full", "a rate that wanders", |s| {
        for i in 0..14 {
            s.tick(|t| over_network(t, if i % 2 == 0 { 12.0 } else { 8.0 }, None, |_| {}));
        }
    }),
    quiet("nfs-retransmits", "a stray packet", |s| {
        s.ticks(8, |t| over_network(t, 5.0, None, |fs| fs.retransmits_per_s = Some(0.1)));
    }),
    quiet("cifs-version-1", "a new share", |s| {
        s.ticks(2, |t| over_network(t, 1.0, None, |fs| fs.kind = NetFsKind::Cifs));
        let share = NetFsRaw { kind: NetFsKind::Cifs, version: Some("3.1.1".into()), ..NetFsRaw::default() };
        s.world.last_sample = Some(Sample { netfs: Reading::Ok(vec![share]), ..Sample::default() });
    }),
    quiet("burst-credits", "known, but the device rests", |s| {
        s.quiet(8);
        s.facts(|f| {
            let known = BenchResultFacts {
                device: Some("254:0".into()),
                burst: Some((3000.0, 100.0)),
                ..BenchResultFacts::default()
            };
            f.results.push(known);
        });
    }),
    early("burst-credits", "not read", |s| s.world.slow_facts = SlowFacts::default()),
    quiet("delay-accounting-off", "off, but nobody waits", |s| {
        s.quiet(8);
        s.facts(|f| drop(f.knobs.insert("kernel.task_delayacct".into(), "0".into())));
    }),
    quiet("cgroup-io", "half of what is allowed", |s| {
        let at = |moved| CgroupFacts {
            io: vec![CgroupIoLimit {
                device: VDA,
                reads_per_s: Some(66),
                transferred: Some(moved),
                ..CgroupIoLimit::default()
            }],
            ..CgroupFacts::default()
        };
        s.facts_before(|f| f.cgroups.push(at([0, 0, 100, 0])));
        s.facts(|f| f.cgroups.push(at([0, 0, 430, 0])));
    }),
    early("cgroup-io", "one look", |s| s.world.slow_facts.previous = None),
    quiet("cgroup-memory", "held in the past", |s| {
        let group = CgroupFacts { memory_high: Some(GIB), high_events: Some(900), ..CgroupFacts::default() };
        s.facts_before(|f| f.cgroups.push(group.clone()));
        s.facts(|f| f.cgroups.push(group));
    }),
    quiet("cgroup-cpu", "seldom stopped", |s| {
        let at = |periods| CgroupFacts {
            cpu_max: Some((50_000, 100_000)),
            cpu_periods: Some(periods),
            ..CgroupFacts::default()
        };
        s.facts_before(|f| f.cgroups.push(at((100, 0))));
        s.facts(|f| f.cgroups.push(at((200, 5))));
    }),
];
