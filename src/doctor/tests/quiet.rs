//! Nearly trouble, and nothing is said; or not enough is known to say anything.

use super::firing::{little_cache, missing_task};
use super::test_machine::*;
use crate::doctor::finding::{RuleStatus, Severity};
use crate::model::memory::ReclaimRate;
use crate::model::memory_stalls::{RECLAIM, THROTTLE};
use crate::model::network::{NetFsKind, NetFsRaw};
use crate::model::observation::Observation;
use crate::model::process::IoBytes;
use crate::model::reading::Reading;
use crate::model::sample::Sample;
use crate::model::slow_facts::{BenchResultFacts, CgroupFacts, CgroupIoLimit, OpenFiles, SlowFacts};
use crate::model::snapshot::Snapshot;

/// A case: nothing of that severity or worse is found.
pub struct QuietCase {
    pub rule: &'static str,
    pub description: &'static str,
    pub min_severity: Severity,
    pub expected_status: Option<fn(&RuleStatus) -> bool>,
    pub set_up: fn(&mut TestMachine),
}

const fn quiet_case(rule: &'static str, what: &'static str, make: fn(&mut TestMachine)) -> QuietCase {
    QuietCase { rule, description: what, min_severity: Severity::Note, expected_status: None, set_up: make }
}

const fn quiet_below(rule: &'static str, from: Severity, what: &'static str, make: fn(&mut TestMachine)) -> QuietCase {
    QuietCase { rule, description: what, min_severity: from, expected_status: None, set_up: make }
}

fn needs_more_data(j: &RuleStatus) -> bool {
    matches!(j, RuleStatus::NeedsMoreData(_))
}

fn is_unavailable(j: &RuleStatus) -> bool {
    matches!(j, RuleStatus::Unavailable(_))
}

const fn early_case(rule: &'static str, what: &'static str, make: fn(&mut TestMachine)) -> QuietCase {
    QuietCase {
        rule,
        description: what,
        min_severity: Severity::Note,
        expected_status: Some(needs_more_data),
        set_up: make,
    }
}

const fn unavailable_case(rule: &'static str, what: &'static str, make: fn(&mut TestMachine)) -> QuietCase {
    QuietCase {
        rule,
        description: what,
        min_severity: Severity::Note,
        expected_status: Some(is_unavailable),
        set_up: make,
    }
}

fn stall_sda(t: &mut Snapshot) {
    let mut d = idle_device(SDA, "sda");
    (d.tps, d.writes_per_s, d.in_flight, d.stalled) = (0.0, 0.0, 1, true);
    set_device(t, d);
}

pub const QUIET: &[QuietCase] = &[
    quiet_case("device-saturated", "100 % busy, but a short queue", |s| {
        s.ticks(8, |t| set_device(t, busy_device(NVME, "nvme0n1", (9_000.0, 0.11, 1.0, 4.0, 0.5))));
    }),
    quiet_case("device-saturated", "a burst of two seconds", |s| {
        s.idle_ticks(8);
        s.ticks(2, |t| set_device(t, busy_device(SDA, "sda", (119.0, 480.0, 57.0, 4.0, 0.6))));
    }),
    quiet_case("device-saturated", "over since four seconds", |s| {
        s.ticks(20, |t| set_device(t, busy_device(SDA, "sda", (119.0, 480.0, 57.0, 4.0, 0.6))));
        s.idle_ticks(4);
    }),
    quiet_case("device-saturated", "what lies on it is not told twice", |s| {
        s.ticks(8, |t| {
            let busy = (119.0, 480.0, 57.0, 4.0, 0.6);
            set_device(t, busy_device(LOOP0, "loop0", busy));
        });
        s.system.snapshot.devices.ok().unwrap();
        s.ticks(8, |t| {
            t.devices.ok_mut().unwrap().retain(|d| d.id != LOOP0);
        });
    }),
    early_case("device-saturated", "two ticks", |s| {
        s.ticks(2, |t| set_device(t, busy_device(SDA, "sda", (119.0, 480.0, 57.0, 4.0, 0.6))));
    }),
    unavailable_case("device-saturated", "no counters", |s| {
        s.ticks(8, |t| t.devices = Reading::Denied("/proc/diskstats: permission denied".into()));
    }),
    quiet_case("device-stalled", "one slow tick", |s| {
        s.idle_ticks(6);
        s.tick(stall_sda);
    }),
    quiet_case("device-stalled", "stalled, and on again", |s| {
        s.ticks(6, stall_sda);
        s.idle_ticks(1);
    }),
    quiet_case("slow-device", "a spinning disk at its own pace", |s| {
        s.ticks(8, |t| set_device(t, busy_device(SDA, "sda", (66.0, 15.0, 1.0, 4.0, 0.5))));
    }),
    quiet_case("slow-device", "few large requests are bandwidth", |s| {
        s.ticks(8, |t| set_device(t, busy_device(VDA, "vda", (80.0, 100.0, 8.0, 1024.0, 0.0))));
    }),
    quiet_case("slow-device", "a full queue that moves", |s| {
        s.ticks(8, |t| set_device(t, busy_device(VDA, "vda", (3_000.0, 21.0, 64.0, 4.0, 0.5))));
    }),
    quiet_case("writeback-storm", "below the threshold", |s| {
        s.ticks(8, |t| {
            let w = t.writeback.ok_mut().unwrap();
            (w.dirty_bytes, w.dirtied_bytes_per_s, w.written_bytes_per_s) =
                (Some(GIB), Some(200.0 * MIB), Some(20.0 * MIB));
        });
    }),
    quiet_case("writeback-storm", "a copy that ends", |s| {
        s.idle_ticks(8);
        s.ticks(3, |t| {
            let w = t.writeback.ok_mut().unwrap();
            (w.dirty_bytes, w.dirtied_bytes_per_s, w.written_bytes_per_s) =
                (Some(5 * GIB / 2), Some(200.0 * MIB), Some(200.0 * MIB));
        });
    }),
    unavailable_case("writeback-storm", "no counters", |s| {
        s.ticks(8, |t| t.writeback = Reading::Absent("/proc/vmstat: no such file".into()));
    }),
    quiet_case("writers-throttled", "just at the ceiling", |s| {
        s.ticks(8, |t| t.writeback.ok_mut().unwrap().dirty_bytes = Some(3 * GIB));
    }),
    quiet_case("writers-throttled", "far above the ceiling, and nobody is put to sleep", |s| {
        s.ticks(8, |t| t.writeback.ok_mut().unwrap().dirty_bytes = Some(7 * GIB / 2));
    }),
    quiet_case("writers-throttled", "fine steering", |s| {
        s.ticks(8, |t| {
            t.writeback.ok_mut().unwrap().dirty_bytes = Some(7 * GIB / 2);
            set_stalled(t, 911, "dd", THROTTLE, 40.0, 8.0);
        });
    }),
    quiet_case("reclaim-stalls", "a stream that recycles its own cache", |s| {
        s.ticks(8, |t| set_stalled(t, 911, "cat", RECLAIM, 90.0, 2.0));
    }),
    unavailable_case("reclaim-stalls", "not traced", |s| {
        s.ticks(8, |t| t.memory_stalls = Reading::Denied("tracing needs CAP_BPF".into()));
    }),
    early_case("reclaim-stalls", "one tick", |s| {
        s.ticks(1, |t| set_stalled(t, 911, "cat", RECLAIM, 900.0, 2.0));
    }),
    early_case("writers-throttled", "one tick", |s| {
        s.ticks(1, |t| t.writeback.ok_mut().unwrap().dirty_bytes = Some(7 * GIB / 2));
    }),
    quiet_case("slow-drain", "below the background threshold nobody hurries", |s| {
        s.ticks(12, |t| {
            let w = t.writeback.ok_mut().unwrap();
            (w.dirty_bytes, w.written_bytes_per_s) = (Some(GIB), Some(0.1 * MIB));
        });
    }),
    quiet_case("slow-drain", "a fast device", |s| {
        s.ticks(12, |t| {
            let w = t.writeback.ok_mut().unwrap();
            (w.dirty_bytes, w.written_bytes_per_s) = (Some(3 * GIB), Some(500.0 * MIB));
        });
    }),
    quiet_case("swapping", "a page now and then", |s| {
        s.ticks(8, |t| t.swap.ok_mut().unwrap().in_bytes_per_s = Some(40_960.0));
    }),
    quiet_case("swapping", "put away once", |s| {
        s.idle_ticks(6).ticks(2, |t| t.swap.ok_mut().unwrap().out_bytes_per_s = Some(90.0 * MIB)).idle_ticks(2);
    }),
    quiet_case("swapping", "used, but still", |s| {
        s.ticks(8, |t| t.swap.ok_mut().unwrap().used_bytes = Some(3 * GIB));
    }),
    quiet_case("swapped-idle", "a little", |s| {
        s.ticks(15, |t| t.swap.ok_mut().unwrap().used_bytes = Some(GIB / 2));
    }),
    quiet_case("swapped-idle", "it moves", |s| {
        s.ticks(15, |t| {
            let swap = t.swap.ok_mut().unwrap();
            (swap.used_bytes, swap.in_bytes_per_s) = (Some(3 * GIB), Some(5.0 * MIB));
        });
    }),
    quiet_case("server-swapped", "156 kB of a large server", |s| {
        s.idle_ticks(8);
        s.add_task(
            920,
            "redis-server",
            |t| (t.swap_bytes, t.rss_bytes) = (Some(156 << 10), GIB),
            IoBytes::default(),
            0,
        );
    }),
    quiet_case("server-swapped", "a stranger that misses nothing", |s| {
        s.idle_ticks(8);
        s.add_task(921, "python3", |t| t.swap_bytes = Some(GIB), IoBytes::default(), 0);
    }),
    quiet_case("cache-pressure", "the cache recycles itself", |s| {
        s.ticks(8, |t| {
            set_device(t, busy_device(SDA, "sda", (200.0, 5.0, 1.0, 1024.0, 1.0)));
            t.reclaim = Some(ReclaimRate { background_bytes_per_s: 200.0 * MIB, ..ReclaimRate::default() });
        });
    }),
    quiet_case("cache-pressure", "programs fill the memory, not the cache", |s| {
        s.ticks(8, |t| {
            set_device(t, busy_device(SDA, "sda", (200.0, 5.0, 1.0, 1024.0, 1.0)));
            t.swap.ok_mut().unwrap().out_bytes_per_s = Some(4.0 * MIB);
            t.reclaim = Some(ReclaimRate { background_bytes_per_s: 200.0 * MIB, ..ReclaimRate::default() });
            t.mem = Reading::Ok(little_cache());
        });
    }),
    quiet_case("hung-task", "a thread of a driver that sleeps so for good", |s| {
        s.add_task(40, "vmmemctl", |t| (t.state, t.kernel_thread) = (b'D', true), IoBytes::default(), 0);
        s.idle_ticks(30);
        let at = s.now();
        let update = crate::model::process::ProcessUpdate { seq: 99, time: at, ..Default::default() };
        s.system.apply(Observation::Tasks(Box::new(Reading::Ok(update))));
        assert!(!s.system.hung_tasks.is_empty());
    }),
    early_case("hung-task", "in D, and watched for a moment only", |s| {
        s.add_hung_task(930, "dd", "io_schedule", 3);
    }),
    quiet_case("hung-task", "four seconds", |s| {
        s.add_hung_task(930, "dd", "io_schedule", 4);
    }),
    quiet_case("hung-task", "reported an hour ago, and gone", |s| {
        s.idle_ticks(1);
        s.kernel_message("INFO: task dd:931 blocked for more than 120 seconds.");
        s.idle_ticks(3600);
    }),
    unavailable_case("hung-task", "tasks cannot be listed", |s| {
        s.idle_ticks(8);
        s.system.processes_status = Reading::Denied("/proc: permission denied".into());
    }),
    quiet_case("hung-task-silent", "no limit", |s| {
        s.change_facts(|f| drop(f.knobs.insert("kernel.hung_task_warnings".into(), "-1".into())));
    }),
    early_case("hung-task-silent", "settings not read", |s| s.system.slow_facts = SlowFacts::default()),
    quiet_case("device-reset", "a program that writes to the log", |s| {
        s.idle_ticks(2);
        s.kernel_message_from(1, "ata4: hard resetting link");
    }),
    quiet_case("io-error", "a program that writes to the log", |s| {
        s.idle_ticks(2);
        s.kernel_message_from(1, "I/O error, dev sda, sector 81239");
    }),
    quiet_case("io-error", "said of the file that lay behind the loop device before", |s| {
        s.kernel_message("I/O error, dev loop0, sector 81239 op 0x1:(WRITE)").idle_ticks(3);
        s.kernel_message("loop0: detected capacity change from 0 to 409600");
    }),
    quiet_case("filesystem-error", "said of a device that has another beneath it since", |s| {
        s.kernel_message("EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm ls").idle_ticks(3);
        s.kernel_message("sda: detected capacity change from 0 to 409600");
    }),
    quiet_case("io-error", "an hour ago", |s| {
        s.idle_ticks(2);
        s.kernel_message("I/O error, dev sda, sector 81239");
        s.idle_ticks(3600);
    }),
    unavailable_case("io-error", "no kernel log", |s| {
        s.idle_ticks(2);
        s.system.kernel_log_status = Reading::Denied("/dev/kmsg: operation not permitted".into());
    }),
    quiet_case("filesystem-error", "a mount", |s| {
        s.idle_ticks(2);
        s.kernel_message("EXT4-fs (sda1): mounted filesystem with ordered data mode");
    }),
    quiet_case("filesystem-error", "advice", |s| {
        s.idle_ticks(2);
        s.kernel_message("EXT4-fs warning (device sda1): maximal mount count reached, running e2fsck is recommended");
    }),
    quiet_case("read-only", "meant so", |s| {
        s.system.topology.ok_mut().unwrap().devices.iter_mut().find(|d| d.id == SDA1).unwrap().mounts =
            vec![mount("/srv", "ro,relatime", "ro")];
        s.idle_ticks(1);
    }),
    unavailable_case("read-only", "no mount table", |s| {
        s.system.topology = Reading::Denied("/proc/self/mountinfo: permission denied".into());
    }),
    quiet_case("oom", "nobody died", |s| {
        s.idle_ticks(2);
        s.kernel_message("I/O error, dev sda, sector 81239");
    }),
    quiet_case("thp-always", "madvise", |s| {
        s.idle_ticks(1);
        s.add_task(920, "redis-server", |_| {}, IoBytes::default(), 0);
    }),
    quiet_case("thp-always", "always, but nobody forks", |s| {
        s.idle_ticks(1);
        s.change_facts(|f| f.thp = Some("always".into()));
        s.add_task(950, "postgres", |_| {}, IoBytes::default(), 0);
    }),
    early_case("thp-always", "settings not read", |s| s.system.slow_facts = SlowFacts::default()),
    quiet_case("fork-cost", "small", |s| {
        s.idle_ticks(1);
        s.add_task(920, "redis-server", |t| t.rss_bytes = GIB, IoBytes::default(), 0);
    }),
    quiet_case("fork-cost", "large, but it does not fork", |s| {
        s.idle_ticks(1);
        s.add_task(950, "postgres", |t| t.rss_bytes = 40 * GIB, IoBytes::default(), 0);
    }),
    quiet_case("atime-mount", "noatime", |s| {
        s.system.topology.ok_mut().unwrap().devices.iter_mut().find(|d| d.id == SDA1).unwrap().mounts =
            vec![mount("/srv", "rw,noatime", "rw")];
        s.ticks(8, |t| set_device(t, busy_device(SDA1, "sda1", (120.0, 8.0, 1.0, 8.0, 1.0))));
        s.add_task(950, "postgres", |_| {}, IoBytes { read: 4 << 20, ..IoBytes::default() }, 0);
    }),
    quiet_case("atime-mount", "nobody reads", |s| {
        s.ticks(8, |_| {});
        s.add_task(950, "postgres", |_| {}, IoBytes::default(), 0);
    }),
    quiet_below("atime-mount", Severity::Warn, "relatime is worth a note only", |s| {
        s.ticks(8, |t| set_device(t, busy_device(SDA1, "sda1", (120.0, 8.0, 1.0, 8.0, 1.0))));
        s.add_task(950, "postgres", |_| {}, IoBytes { read: 4 << 20, ..IoBytes::default() }, 0);
    }),
    quiet_case("scheduler-unsuitable", "as it should be", |s| {
        s.ticks(8, |t| set_device(t, busy_device(SDA, "sda", (119.0, 100.8, 12.0, 4.0, 0.6))));
    }),
    quiet_case("scheduler-unsuitable", "virtual, so it only says that it spins", |s| {
        s.system.queues.get_mut("vda").unwrap().scheduler = Some("none".into());
        s.ticks(8, |t| set_device(t, busy_device(VDA, "vda", (3_000.0, 21.0, 64.0, 4.0, 0.5))));
    }),
    early_case("scheduler-unsuitable", "settings not read", |s| {
        s.system.queues.clear();
        s.ticks(8, |t| set_device(t, busy_device(SDA, "sda", (119.0, 100.8, 12.0, 4.0, 0.6))));
    }),
    quiet_case("readahead-small", "large enough", |s| {
        s.system.queues.get_mut("sda").unwrap().read_ahead_kb = Some(4096);
        s.ticks(8, |t| set_device(t, busy_device(SDA, "sda", (100.0, 9.0, 1.0, 1024.0, 1.0))));
    }),
    quiet_case("readahead-small", "direct reads larger than it", |s| {
        s.ticks(8, |t| set_device(t, busy_device(SDA, "sda", (100.0, 9.0, 1.0, 1024.0, 1.0))));
    }),
    quiet_case("readahead-large", "a stream", |s| {
        s.system.queues.get_mut("vda").unwrap().read_ahead_kb = Some(8192);
        s.ticks(8, |t| {
            set_device(t, busy_device(VDA, "vda", (500.0, 3.0, 1.5, 512.0, 1.0)));
            t.major_faults_per_s = Some(1.0);
        });
    }),
    quiet_case("open-files", "half", |s| {
        s.idle_ticks(1);
        let key = s.add_task(950, "postgres", |_| {}, IoBytes::default(), 0);
        s.change_facts(|f| f.open_files.push(OpenFiles { key, open: 512, soft: Some(1024), hard: None }));
    }),
    quiet_case("open-files", "a task that ended since", |s| {
        s.change_facts(|f| {
            f.open_files.push(OpenFiles { key: missing_task(), open: 1024, soft: Some(1024), hard: None })
        });
    }),
    early_case("open-files", "not read", |s| s.system.slow_facts = SlowFacts::default()),
    quiet_case("filesystem-full", "much is left of much", |s| s.disk_space("/", 2_000 * GIB, 100 * GIB, 0, 0)),
    quiet_case("filesystem-full", "a small one full by design", |s| s.disk_space("/boot", 200 << 20, 1 << 20, 0, 0)),
    early_case("filesystem-full", "not read", |s| s.system.slow_facts = SlowFacts::default()),
    quiet_case("network-link-full", "half of a gigabit", |s| {
        s.ticks(14, |t| set_network_mount(t, 60.0, Some(1_000_000_000), |_| {}));
    }),
    quiet_case("network-link-full", "a rate that wanders", |s| {
        for i in 0..14 {
            s.tick(|t| set_network_mount(t, if i % 2 == 0 { 12.0 } else { 8.0 }, None, |_| {}));
        }
    }),
    quiet_case("nfs-retransmits", "a stray packet", |s| {
        s.ticks(8, |t| set_network_mount(t, 5.0, None, |fs| fs.retransmits_per_s = Some(0.1)));
    }),
    quiet_case("cifs-version-1", "a new share", |s| {
        s.ticks(2, |t| set_network_mount(t, 1.0, None, |fs| fs.kind = NetFsKind::Cifs));
        let share = NetFsRaw { kind: NetFsKind::Cifs, version: Some("3.1.1".into()), ..NetFsRaw::default() };
        s.system.last_sample = Some(Sample { netfs: Reading::Ok(vec![share]), ..Sample::default() });
    }),
    quiet_case("burst-credits", "known, but the device rests", |s| {
        s.idle_ticks(8);
        s.change_facts(|f| {
            let known = BenchResultFacts {
                device: Some("254:0".into()),
                burst: Some((3000.0, 100.0)),
                ..BenchResultFacts::default()
            };
            f.results.push(known);
        });
    }),
    early_case("burst-credits", "not read", |s| s.system.slow_facts = SlowFacts::default()),
    quiet_case("delay-accounting-off", "off, but nobody waits", |s| {
        s.idle_ticks(8);
        s.change_facts(|f| drop(f.knobs.insert("kernel.task_delayacct".into(), "0".into())));
    }),
    quiet_case("cgroup-io", "half of what is allowed", |s| {
        let at = |moved| CgroupFacts {
            io: vec![CgroupIoLimit {
                device: VDA,
                reads_per_s: Some(66),
                transferred: Some(moved),
                ..CgroupIoLimit::default()
            }],
            ..CgroupFacts::default()
        };
        s.change_previous_facts(|f| f.cgroups.push(at([0, 0, 100, 0])));
        s.change_facts(|f| f.cgroups.push(at([0, 0, 430, 0])));
    }),
    early_case("cgroup-io", "one look", |s| s.system.slow_facts.previous = None),
    quiet_case("cgroup-memory", "held in the past", |s| {
        let group = CgroupFacts { memory_high: Some(GIB), high_events: Some(900), ..CgroupFacts::default() };
        s.change_previous_facts(|f| f.cgroups.push(group.clone()));
        s.change_facts(|f| f.cgroups.push(group));
    }),
    quiet_case("cgroup-cpu", "seldom stopped", |s| {
        let at = |periods| CgroupFacts {
            cpu_max: Some((50_000, 100_000)),
            cpu_periods: Some(periods),
            ..CgroupFacts::default()
        };
        s.change_previous_facts(|f| f.cgroups.push(at((100, 0))));
        s.change_facts(|f| f.cgroups.push(at((200, 5))));
    }),
];
