//! Machines that nearly have a problem, and rules that lack data.

use super::firing::{little_cache, missing_task};
use super::test_machine::*;
use crate::doctor::finding::{RuleSkipped, Severity};
use crate::doctor::rule_context::RuleResult;
use crate::model::memory::ReclaimRate;
use crate::model::memory_stalls::{RECLAIM, THROTTLE};
use crate::model::network::{NetFsKind, NetFsRaw};
use crate::model::observation::Observation;
use crate::model::process::IoBytes;
use crate::model::reading::Reading;
use crate::model::sample::Sample;
use crate::model::slow_facts::{BenchResultFacts, CgroupFacts, CgroupIoLimit, OpenFiles, SlowFacts};
use crate::model::snapshot::Snapshot;

/// A machine on which a rule reports no finding of `min_severity` or worse.
pub struct QuietCase {
    pub rule: &'static str,
    pub description: &'static str,
    pub min_severity: Severity,
    pub expected_result: Option<fn(&RuleResult) -> bool>,
    pub set_up: fn(&mut TestMachine),
}

impl QuietCase {
    pub const fn new(rule: &'static str, description: &'static str, set_up: fn(&mut TestMachine)) -> Self {
        Self { rule, description, min_severity: Severity::Note, expected_result: None, set_up }
    }

    pub const fn result(self, expected: fn(&RuleResult) -> bool) -> Self {
        Self { expected_result: Some(expected), ..self }
    }

    pub const fn needs_more_data(self) -> Self {
        self.result(|result| matches!(result, Err(RuleSkipped::NeedsMoreData(_))))
    }

    pub const fn unavailable(self) -> Self {
        self.result(|result| matches!(result, Err(RuleSkipped::Unavailable(_))))
    }
}

use QuietCase as Case;

fn stall_sda(t: &mut Snapshot) {
    let mut d = idle_device(SDA, "sda");
    (d.tps, d.writes_per_s, d.in_flight, d.stalled) = (0.0, 0.0, 1, true);
    set_device(t, d);
}

pub const QUIET: &[QuietCase] = &[
    Case::new("device-reset", "a SCSI disk was attached", |s| {
        s.idle_ticks(8);
        s.kernel_message("sd 6:0:1:0: Power-on or device reset occurred");
    }),
    Case::new("io-error", "a SCSI disk and a mirror were attached", |s| {
        s.idle_ticks(8);
        s.kernel_message("sd 6:0:1:0: [sdb] Mode Sense: 63 00 00 08");
        s.kernel_message("md/raid1:md0: active with 2 out of 2 mirrors");
    }),
    Case::new("device-saturated", "100% busy with a short queue", |s| {
        s.ticks(8, |t| set_device(t, busy_device(NVME, "nvme0n1", (9_000.0, 0.11, 1.0, 4.0, 0.5))));
    }),
    Case::new("device-saturated", "a burst of two seconds", |s| {
        s.idle_ticks(8);
        s.ticks(2, |t| set_device(t, busy_device(SDA, "sda", (119.0, 480.0, 57.0, 4.0, 0.6))));
    }),
    Case::new("device-saturated", "over for four seconds", |s| {
        s.ticks(20, |t| set_device(t, busy_device(SDA, "sda", (119.0, 480.0, 57.0, 4.0, 0.6))));
        s.idle_ticks(4);
    }),
    Case::new("device-saturated", "only the lowest device is reported", |s| {
        s.ticks(8, |t| {
            let busy = (119.0, 480.0, 57.0, 4.0, 0.6);
            set_device(t, busy_device(LOOP0, "loop0", busy));
        });
        s.system.snapshot.devices.ok().unwrap();
        s.ticks(8, |t| {
            t.devices.ok_mut().unwrap().retain(|d| d.id != LOOP0);
        });
    }),
    Case::new("device-saturated", "two ticks", |s| {
        s.ticks(2, |t| set_device(t, busy_device(SDA, "sda", (119.0, 480.0, 57.0, 4.0, 0.6))));
    })
    .needs_more_data(),
    Case::new("device-saturated", "no counters", |s| {
        s.ticks(8, |t| t.devices = Reading::Denied("/proc/diskstats: permission denied".into()));
    })
    .unavailable(),
    Case::new("device-stalled", "one slow tick", |s| {
        s.idle_ticks(6);
        s.tick(stall_sda);
    }),
    Case::new("device-stalled", "stalled before", |s| {
        s.ticks(6, stall_sda);
        s.idle_ticks(1);
    }),
    Case::new("slow-device", "a spinning disk at its normal speed", |s| {
        s.ticks(8, |t| set_device(t, busy_device(SDA, "sda", (66.0, 15.0, 1.0, 4.0, 0.5))));
    }),
    Case::new("slow-device", "few large requests", |s| {
        s.ticks(8, |t| set_device(t, busy_device(VDA, "vda", (80.0, 100.0, 8.0, 1024.0, 0.0))));
    }),
    Case::new("slow-device", "a full queue at a good rate", |s| {
        s.ticks(8, |t| set_device(t, busy_device(VDA, "vda", (3_000.0, 21.0, 64.0, 4.0, 0.5))));
    }),
    Case::new("writeback-storm", "below the threshold", |s| {
        s.ticks(8, |t| {
            let w = t.writeback.ok_mut().unwrap();
            (w.dirty_bytes, w.dirtied_bytes_per_s, w.written_bytes_per_s) =
                (Some(GIB), Some(200.0 * MIB), Some(20.0 * MIB));
        });
    }),
    Case::new("writeback-storm", "a copy that ends", |s| {
        s.idle_ticks(8);
        s.ticks(3, |t| {
            let w = t.writeback.ok_mut().unwrap();
            (w.dirty_bytes, w.dirtied_bytes_per_s, w.written_bytes_per_s) =
                (Some(5 * GIB / 2), Some(200.0 * MIB), Some(200.0 * MIB));
        });
    }),
    Case::new("writeback-storm", "no counters", |s| {
        s.ticks(8, |t| t.writeback = Reading::Absent("/proc/vmstat: no such file".into()));
    })
    .unavailable(),
    Case::new("writers-throttled", "just at the ceiling", |s| {
        s.ticks(8, |t| t.writeback.ok_mut().unwrap().dirty_bytes = Some(3 * GIB));
    }),
    Case::new("writers-throttled", "far above the ceiling without sleeping writers", |s| {
        s.ticks(8, |t| t.writeback.ok_mut().unwrap().dirty_bytes = Some(7 * GIB / 2));
    }),
    Case::new("writers-throttled", "short sleeps", |s| {
        s.ticks(8, |t| {
            t.writeback.ok_mut().unwrap().dirty_bytes = Some(7 * GIB / 2);
            set_stalled(t, 911, "dd", THROTTLE, 40.0, 8.0);
        });
    }),
    Case::new("reclaim-stalls", "a stream that recycles its own cache", |s| {
        s.ticks(8, |t| set_stalled(t, 911, "cat", RECLAIM, 90.0, 2.0));
    }),
    Case::new("reclaim-stalls", "not traced", |s| {
        s.ticks(8, |t| t.memory_stalls = Reading::Denied("tracing needs CAP_BPF".into()));
    })
    .unavailable(),
    Case::new("reclaim-stalls", "one tick", |s| {
        s.ticks(1, |t| set_stalled(t, 911, "cat", RECLAIM, 900.0, 2.0));
    })
    .needs_more_data(),
    Case::new("writers-throttled", "one tick", |s| {
        s.ticks(1, |t| t.writeback.ok_mut().unwrap().dirty_bytes = Some(7 * GIB / 2));
    })
    .needs_more_data(),
    Case::new("slow-drain", "slow writeback below the background threshold", |s| {
        s.ticks(12, |t| {
            let w = t.writeback.ok_mut().unwrap();
            (w.dirty_bytes, w.written_bytes_per_s) = (Some(GIB), Some(0.1 * MIB));
        });
    }),
    Case::new("slow-drain", "a fast device", |s| {
        s.ticks(12, |t| {
            let w = t.writeback.ok_mut().unwrap();
            (w.dirty_bytes, w.written_bytes_per_s) = (Some(3 * GIB), Some(500.0 * MIB));
        });
    }),
    Case::new("swapping", "a page now and then", |s| {
        s.ticks(8, |t| t.swap.ok_mut().unwrap().in_bytes_per_s = Some(40_960.0));
    }),
    Case::new("swapping", "swapped out once", |s| {
        s.idle_ticks(6).ticks(2, |t| t.swap.ok_mut().unwrap().out_bytes_per_s = Some(90.0 * MIB)).idle_ticks(2);
    }),
    Case::new("swapping", "used, but idle", |s| {
        s.ticks(8, |t| t.swap.ok_mut().unwrap().used_bytes = Some(3 * GIB));
    }),
    Case::new("swapped-idle", "a little", |s| {
        s.ticks(15, |t| t.swap.ok_mut().unwrap().used_bytes = Some(GIB / 2));
    }),
    Case::new("swapped-idle", "traffic", |s| {
        s.ticks(15, |t| {
            let swap = t.swap.ok_mut().unwrap();
            (swap.used_bytes, swap.in_bytes_per_s) = (Some(3 * GIB), Some(5.0 * MIB));
        });
    }),
    Case::new("server-swapped", "156 kB of a large server", |s| {
        s.idle_ticks(8);
        s.add_task(
            920,
            "redis-server",
            |t| (t.swap_bytes, t.rss_bytes) = (Some(156 << 10), GIB),
            IoBytes::default(),
            0,
        );
    }),
    Case::new("server-swapped", "an unknown program without faults", |s| {
        s.idle_ticks(8);
        s.add_task(921, "python3", |t| t.swap_bytes = Some(GIB), IoBytes::default(), 0);
    }),
    Case::new("cache-pressure", "the cache recycles itself", |s| {
        s.ticks(8, |t| {
            set_device(t, busy_device(SDA, "sda", (200.0, 5.0, 1.0, 1024.0, 1.0)));
            t.reclaim = Some(ReclaimRate { background_bytes_per_s: 200.0 * MIB, ..ReclaimRate::default() });
        });
    }),
    Case::new("cache-pressure", "programs fill memory", |s| {
        s.ticks(8, |t| {
            set_device(t, busy_device(SDA, "sda", (200.0, 5.0, 1.0, 1024.0, 1.0)));
            t.swap.ok_mut().unwrap().out_bytes_per_s = Some(4.0 * MIB);
            t.reclaim = Some(ReclaimRate { background_bytes_per_s: 200.0 * MIB, ..ReclaimRate::default() });
            t.mem = Reading::Ok(little_cache());
        });
    }),
    Case::new("hung-task", "a driver's kernel thread that always sleeps", |s| {
        s.add_task(40, "vmmemctl", |t| (t.state, t.kernel_thread) = (b'D', true), IoBytes::default(), 0);
        s.idle_ticks(30);
        let at = s.now();
        let update = crate::model::process::ProcessUpdate { seq: 99, time: at, ..Default::default() };
        s.system.apply(Observation::Tasks(Box::new(Reading::Ok(update))));
        assert!(!s.system.hung_tasks.is_empty());
    }),
    Case::new("hung-task", "in state D, watched for three seconds", |s| {
        s.add_hung_task(930, "dd", "io_schedule", 3);
    })
    .needs_more_data(),
    Case::new("hung-task", "four seconds", |s| {
        s.add_hung_task(930, "dd", "io_schedule", 4);
    }),
    Case::new("hung-task", "reported an hour ago", |s| {
        s.idle_ticks(1);
        s.kernel_message("INFO: task dd:931 blocked for more than 120 seconds.");
        s.idle_ticks(3600);
    }),
    Case::new("hung-task", "tasks cannot be listed", |s| {
        s.idle_ticks(8);
        s.system.processes_status = Reading::Denied("/proc: permission denied".into());
    })
    .unavailable(),
    Case::new("hung-task-silent", "no limit", |s| {
        s.change_facts(|f| drop(f.knobs.insert("kernel.hung_task_warnings".into(), "-1".into())));
    }),
    Case::new("hung-task-silent", "settings not read", |s| s.system.slow_facts = SlowFacts::default())
        .needs_more_data(),
    Case::new("device-reset", "a program that writes to the log", |s| {
        s.idle_ticks(2);
        s.kernel_message_from(1, "ata4: hard resetting link");
    }),
    Case::new("io-error", "a program that writes to the log", |s| {
        s.idle_ticks(2);
        s.kernel_message_from(1, "I/O error, dev sda, sector 81239");
    }),
    Case::new("io-error", "about the previous backing file of the loop device", |s| {
        s.kernel_message("I/O error, dev loop0, sector 81239 op 0x1:(WRITE)").idle_ticks(3);
        s.kernel_message("loop0: detected capacity change from 0 to 409600");
    }),
    Case::new("filesystem-error", "about a medium that was replaced", |s| {
        s.kernel_message("EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm ls").idle_ticks(3);
        s.kernel_message("sda: detected capacity change from 0 to 409600");
    }),
    Case::new("io-error", "an hour ago", |s| {
        s.idle_ticks(2);
        s.kernel_message("I/O error, dev sda, sector 81239");
        s.idle_ticks(3600);
    }),
    Case::new("io-error", "no kernel log", |s| {
        s.idle_ticks(2);
        s.system.kernel_log_status = Reading::Denied("/dev/kmsg: operation not permitted".into());
    })
    .unavailable(),
    Case::new("filesystem-error", "a mount", |s| {
        s.idle_ticks(2);
        s.kernel_message("EXT4-fs (sda1): mounted filesystem with ordered data mode");
    }),
    Case::new("filesystem-error", "advice", |s| {
        s.idle_ticks(2);
        s.kernel_message("EXT4-fs warning (device sda1): maximal mount count reached, running e2fsck is recommended");
    }),
    Case::new("read-only", "remounted on purpose", |s| {
        s.system.topology.ok_mut().unwrap().devices.iter_mut().find(|d| d.id == SDA1).unwrap().mounts =
            vec![mount("/srv", "ro,relatime", "ro")];
        s.idle_ticks(1);
    }),
    Case::new("read-only", "no mount table", |s| {
        s.system.topology = Reading::Denied("/proc/self/mountinfo: permission denied".into());
    })
    .unavailable(),
    Case::new("oom", "nothing killed", |s| {
        s.idle_ticks(2);
        s.kernel_message("I/O error, dev sda, sector 81239");
    }),
    Case::new("thp-always", "madvise", |s| {
        s.idle_ticks(1);
        s.add_task(920, "redis-server", |_| {}, IoBytes::default(), 0);
    }),
    Case::new("thp-always", "always, with a server that does not fork", |s| {
        s.idle_ticks(1);
        s.change_facts(|f| f.thp = Some("always".into()));
        s.add_task(950, "postgres", |_| {}, IoBytes::default(), 0);
    }),
    Case::new("thp-always", "settings not read", |s| s.system.slow_facts = SlowFacts::default()).needs_more_data(),
    Case::new("fork-cost", "small", |s| {
        s.idle_ticks(1);
        s.add_task(920, "redis-server", |t| t.rss_bytes = GIB, IoBytes::default(), 0);
    }),
    Case::new("fork-cost", "large, but it does not fork", |s| {
        s.idle_ticks(1);
        s.add_task(950, "postgres", |t| t.rss_bytes = 40 * GIB, IoBytes::default(), 0);
    }),
    Case::new("atime-mount", "noatime", |s| {
        s.system.topology.ok_mut().unwrap().devices.iter_mut().find(|d| d.id == SDA1).unwrap().mounts =
            vec![mount("/srv", "rw,noatime", "rw")];
        s.ticks(8, |t| set_device(t, busy_device(SDA1, "sda1", (120.0, 8.0, 1.0, 8.0, 1.0))));
        s.add_task(950, "postgres", |_| {}, IoBytes { read: 4 << 20, ..IoBytes::default() }, 0);
    }),
    Case::new("atime-mount", "no reads", |s| {
        s.ticks(8, |_| {});
        s.add_task(950, "postgres", |_| {}, IoBytes::default(), 0);
    }),
    Case {
        min_severity: Severity::Warn,
        ..Case::new("atime-mount", "relatime is worth a note only", |s| {
            s.ticks(8, |t| set_device(t, busy_device(SDA1, "sda1", (120.0, 8.0, 1.0, 8.0, 1.0))));
            s.add_task(950, "postgres", |_| {}, IoBytes { read: 4 << 20, ..IoBytes::default() }, 0);
        })
    },
    Case::new("scheduler-unsuitable", "a suitable scheduler", |s| {
        s.ticks(8, |t| set_device(t, busy_device(SDA, "sda", (119.0, 100.8, 12.0, 4.0, 0.6))));
    }),
    Case::new("scheduler-unsuitable", "a virtual disk that claims to spin", |s| {
        s.system.queues.get_mut("vda").unwrap().scheduler = Some("none".into());
        s.ticks(8, |t| set_device(t, busy_device(VDA, "vda", (3_000.0, 21.0, 64.0, 4.0, 0.5))));
    }),
    Case::new("scheduler-unsuitable", "settings not read", |s| {
        s.system.queues.clear();
        s.ticks(8, |t| set_device(t, busy_device(SDA, "sda", (119.0, 100.8, 12.0, 4.0, 0.6))));
    })
    .needs_more_data(),
    Case::new("readahead-small", "large enough", |s| {
        s.system.queues.get_mut("sda").unwrap().read_ahead_kb = Some(4096);
        s.ticks(8, |t| set_device(t, busy_device(SDA, "sda", (100.0, 9.0, 1.0, 1024.0, 1.0))));
    }),
    Case::new("readahead-small", "direct reads larger than read-ahead", |s| {
        s.ticks(8, |t| set_device(t, busy_device(SDA, "sda", (100.0, 9.0, 1.0, 1024.0, 1.0))));
    }),
    Case::new("readahead-large", "a stream", |s| {
        s.system.queues.get_mut("vda").unwrap().read_ahead_kb = Some(8192);
        s.ticks(8, |t| {
            set_device(t, busy_device(VDA, "vda", (500.0, 3.0, 1.5, 512.0, 1.0)));
            t.major_faults_per_s = Some(1.0);
        });
    }),
    Case::new("open-files", "half", |s| {
        s.idle_ticks(1);
        let key = s.add_task(950, "postgres", |_| {}, IoBytes::default(), 0);
        s.change_facts(|f| f.open_files.push(OpenFiles { key, open: 512, soft: Some(1024), hard: None }));
    }),
    Case::new("open-files", "a task that has exited", |s| {
        s.change_facts(|f| {
            f.open_files.push(OpenFiles { key: missing_task(), open: 1024, soft: Some(1024), hard: None })
        });
    }),
    Case::new("open-files", "not read", |s| s.system.slow_facts = SlowFacts::default()).needs_more_data(),
    Case::new("filesystem-full", "much free space", |s| s.disk_space("/", 2_000 * GIB, 100 * GIB, 0, 0)),
    Case::new("filesystem-full", "a small one full by design", |s| s.disk_space("/boot", 200 << 20, 1 << 20, 0, 0)),
    Case::new("filesystem-full", "not read", |s| s.system.slow_facts = SlowFacts::default()).needs_more_data(),
    Case::new("network-link-full", "half of 1 Gbit/s", |s| {
        s.ticks(14, |t| set_network_mount(t, 60.0, Some(1_000_000_000), |_| {}));
    }),
    Case::new("network-link-full", "a varying rate", |s| {
        for i in 0..14 {
            s.tick(|t| set_network_mount(t, if i % 2 == 0 { 12.0 } else { 8.0 }, None, |_| {}));
        }
    }),
    Case::new("nfs-retransmits", "a stray packet", |s| {
        s.ticks(8, |t| set_network_mount(t, 5.0, None, |fs| fs.retransmits_per_s = Some(0.1)));
    }),
    Case::new("cifs-version-1", "a new share", |s| {
        s.ticks(2, |t| set_network_mount(t, 1.0, None, |fs| fs.kind = NetFsKind::Cifs));
        let share = NetFsRaw { kind: NetFsKind::Cifs, version: Some("3.1.1".into()), ..NetFsRaw::default() };
        s.system.last_sample = Some(Sample { netfs: Reading::Ok(vec![share]), ..Sample::default() });
    }),
    Case::new("burst-credits", "an idle device", |s| {
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
    Case::new("burst-credits", "not read", |s| s.system.slow_facts = SlowFacts::default()).needs_more_data(),
    Case::new("delay-accounting-off", "off, but no task waits", |s| {
        s.idle_ticks(8);
        s.change_facts(|f| drop(f.knobs.insert("kernel.task_delayacct".into(), "0".into())));
    }),
    Case::new("cgroup-io", "half of the limit", |s| {
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
    Case::new("cgroup-io", "one reading", |s| s.system.slow_facts.previous = None).needs_more_data(),
    Case::new("cgroup-memory", "limited in the past", |s| {
        let group = CgroupFacts { memory_high: Some(GIB), high_events: Some(900), ..CgroupFacts::default() };
        s.change_previous_facts(|f| f.cgroups.push(group.clone()));
        s.change_facts(|f| f.cgroups.push(group));
    }),
    Case::new("cgroup-cpu", "rarely throttled", |s| {
        let at = |periods| CgroupFacts {
            cpu_max: Some((50_000, 100_000)),
            cpu_periods: Some(periods),
            ..CgroupFacts::default()
        };
        s.change_previous_facts(|f| f.cgroups.push(at((100, 0))));
        s.change_facts(|f| f.cgroups.push(at((200, 5))));
    }),
];
