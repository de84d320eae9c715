//! Machines with one problem each, and the finding they lead to.

use super::test_machine::*;
use crate::doctor::finding::Severity::{self, Critical, Note, Warn};
use crate::model::memory::{MemRaw, ReclaimRate};
use crate::model::network::{NetFsKind, NetFsRaw};
use crate::model::process::{IoBytes, TaskKey, TaskRaw};
use crate::model::reading::Reading;
use crate::model::sample::Sample;
use crate::model::slow_facts::{BenchResultFacts, CgroupFacts, CgroupIoLimit, OpenFiles};
use crate::model::snapshot::Snapshot;

/// A machine on which a rule reports a finding of this severity with this text in its title.
pub struct FiringCase {
    pub rule: &'static str,
    pub description: &'static str,
    pub severity: Severity,
    pub title_part: &'static str,
    pub set_up: fn(&mut TestMachine),
}

pub const fn firing_case(
    rule: &'static str,
    description: &'static str,
    severity: Severity,
    title_part: &'static str,
    set_up: fn(&mut TestMachine),
) -> FiringCase {
    FiringCase { rule, description, severity, title_part, set_up }
}

fn written(bytes: u64) -> IoBytes {
    IoBytes { write: bytes, ..IoBytes::default() }
}

pub fn read(bytes: u64) -> IoBytes {
    IoBytes { read: bytes, ..IoBytes::default() }
}

pub fn set_dirty(s: &mut Snapshot, dirty: u64, dirtied: f64, wrote: f64) {
    let w = s.writeback.ok_mut().unwrap();
    w.dirty_bytes = Some(dirty);
    w.dirtied_bytes_per_s = Some(dirtied);
    w.written_bytes_per_s = Some(wrote);
}

fn add_cgroup(machine: &mut TestMachine, before: CgroupFacts, now: CgroupFacts) {
    machine.change_previous_facts(|f| f.cgroups.push(before));
    machine.change_facts(|f| f.cgroups.push(now));
}

pub const FIRING: &[FiringCase] = &[
    firing_case(
        "device-saturated",
        "traced small sequential requests",
        Warn,
        "vda is saturated by small sequential I/O: 113 tps, await 48.3 ms, aqu-sz 3.9",
        |s| {
            s.ticks(8, |t| {
                set_device(t, with_traced_requests(busy_device(VDA, "vda", (113.0, 48.3, 3.9, 4.0, 0.5)), 100, 13))
            });
        },
    ),
    firing_case(
        "device-saturated",
        "a short queue with a long await",
        Warn,
        "vda is saturated by small random I/O: 113 tps, await 48.3 ms, aqu-sz 3.9",
        |s| {
            s.ticks(8, |t| set_device(t, busy_device(VDA, "vda", (113.0, 48.3, 3.9, 4.0, 0.5))));
        },
    ),
    firing_case(
        "device-saturated",
        "small random I/O on a spinning disk",
        Warn,
        "sda is saturated by small random I/O: 119 tps, await 101 ms, aqu-sz 12",
        |s| {
            s.ticks(8, |t| set_device(t, busy_device(SDA, "sda", (119.0, 100.8, 12.0, 4.0, 0.6))));
        },
    ),
    firing_case("device-saturated", "a very deep queue", Critical, "await 610 ms", |s| {
        s.ticks(8, |t| set_device(t, busy_device(SDA, "sda", (119.0, 610.0, 73.0, 4.0, 0.6))));
    }),
    firing_case("device-saturated", "a stream", Warn, "saturated by large requests", |s| {
        s.ticks(8, |t| set_device(t, busy_device(SDA, "sda", (150.0, 110.0, 16.0, 1024.0, 1.0))));
    }),
    firing_case("device-saturated", "one task", Warn, "dd (900) has 100% of its bytes", |s| {
        s.ticks(8, |t| set_device(t, busy_device(VDA, "vda", (800.0, 40.0, 32.0, 512.0, 0.0))));
        s.add_task(900, "dd", |_| {}, written(400 << 20), 0);
    }),
    firing_case("device-saturated", "a benchmark", Note, "vda runs at full speed with small random I/O", |s| {
        s.ticks(8, |t| set_device(t, busy_device(VDA, "vda", (30_000.0, 2.1, 64.0, 4.0, 0.5))));
    }),
    firing_case(
        "device-stalled",
        "nothing completes",
        Critical,
        "sda is stalled: 3 requests in flight, none completed for 6.0 s",
        |s| {
            s.idle_ticks(3);
            s.ticks(6, |t| {
                let mut d = idle_device(SDA, "sda");
                (d.tps, d.writes_per_s, d.in_flight, d.stalled, d.util_pct) = (0.0, 0.0, 3, true, 100.0);
                set_device(t, d);
            });
        },
    ),
    firing_case(
        "slow-device",
        "long service, short queue",
        Warn,
        "vda is slow for a virtual disk: await 66.0 ms with aqu-sz 1.0",
        |s| {
            s.ticks(8, |t| set_device(t, busy_device(VDA, "vda", (15.0, 66.0, 1.0, 4.0, 0.5))));
        },
    ),
    firing_case(
        "slow-device",
        "66 IOPS through a loop",
        Critical,
        "loop0 is slow for a virtual disk: only 66 tps with aqu-sz 32",
        |s| {
            s.ticks(8, |t| set_device(t, busy_device(LOOP0, "loop0", (66.0, 480.0, 32.0, 4.0, 0.5))));
        },
    ),
    firing_case(
        "writeback-storm",
        "data larger than the background threshold",
        Warn,
        "neo4j (910) dirties 60.0 MiB/s while the flushers write 40.0 MiB/s",
        |s| {
            s.ticks(8, |t| set_dirty(t, 5 * GIB / 2, 60.0 * MIB, 40.0 * MIB));
            s.add_task(910, "neo4j", |_| {}, written(60 << 20), 0);
        },
    ),
    firing_case(
        "writeback-storm",
        "a flusher that dirties metadata for others is not named",
        Warn,
        "60.0 MiB/s are dirtied, 25% of it by dd (911), while",
        |s| {
            s.ticks(8, |t| set_dirty(t, 5 * GIB / 2, 60.0 * MIB, 40.0 * MIB));
            let flusher = TaskRaw { kernel_thread: true, ..task_counters(12, "kworker/u8:5-fl") };
            s.scan(vec![flusher, task_counters(911, "dd")], false);
            let wrote = |task, mib: u64| task_after(task, written(mib << 20));
            s.scan(vec![wrote(flusher, 30), wrote(task_counters(911, "dd"), 10)], false);
        },
    ),
    firing_case(
        "slow-drain",
        "a slow device",
        Critical,
        "3.00 GiB of dirty pages take 51m12s to write at the current 1.00 MiB/s",
        |s| {
            s.ticks(10, |t| set_dirty(t, 3 * GIB, 1.0 * MIB, 1.0 * MIB));
        },
    ),
    firing_case("slow-drain", "nothing is written", Critical, "of dirty pages are not being written", |s| {
        s.ticks(10, |t| set_dirty(t, 3 * GIB, 0.0, 0.0));
    }),
    firing_case("swapping", "in and out", Warn, "the machine is swapping: si 2.00 MiB/s, so 3.00 MiB/s", |s| {
        s.ticks(8, |t| {
            let swap = t.swap.ok_mut().unwrap();
            (swap.in_bytes_per_s, swap.out_bytes_per_s) = (Some(2.0 * MIB), Some(3.0 * MIB));
        });
    }),
    firing_case("swapping", "no task makes progress", Critical, "the machine is swapping", |s| {
        s.ticks(8, |t| {
            t.swap.ok_mut().unwrap().in_bytes_per_s = Some(20.0 * MIB);
            std::sync::Arc::make_mut(t.pressure.ok_mut().unwrap()).memory = pressure(80.0, 60.0);
        });
    }),
    firing_case("swapping", "out only, in bursts", Note, "pages are swapped out again and again: so 2.00 MiB/s", |s| {
        for n in 0..9 {
            let out = if n % 3 == 0 { 6.0 * MIB } else { 0.0 };
            s.tick(|t| t.swap.ok_mut().unwrap().out_bytes_per_s = Some(out));
        }
    }),
    firing_case("swapped-idle", "swapped out long ago", Note, "3.00 GiB in swap, none of it moving", |s| {
        s.ticks(15, |t| t.swap.ok_mut().unwrap().used_bytes = Some(3 * GIB));
    }),
    firing_case(
        "server-swapped",
        "a known server",
        Warn,
        "server redis-server (920) has 1.00 GiB of its memory in swap (50%)",
        |s| {
            s.idle_ticks(8);
            s.add_task(920, "redis-server", |t| (t.swap_bytes, t.rss_bytes) = (Some(GIB), GIB), IoBytes::default(), 0);
        },
    ),
    firing_case(
        "server-swapped",
        "a program that misses its memory",
        Warn,
        "python3 (921) has 256 MiB of its memory in swap",
        |s| {
            s.ticks(8, |t| t.swap.ok_mut().unwrap().in_bytes_per_s = Some(2.0 * MIB));
            s.add_task(
                921,
                "python3",
                |t| (t.swap_bytes, t.rss_bytes) = (Some(256 << 20), 64 << 20),
                IoBytes::default(),
                200,
            );
        },
    ),
    firing_case("cache-pressure", "a backup", Warn, "streaming I/O fills the page cache (50% of memory)", |s| {
        s.ticks(8, |t| {
            set_device(t, busy_device(SDA, "sda", (200.0, 5.0, 1.0, 1024.0, 1.0)));
            t.swap.ok_mut().unwrap().out_bytes_per_s = Some(4.0 * MIB);
            t.reclaim = Some(ReclaimRate { background_bytes_per_s: 200.0 * MIB, ..ReclaimRate::default() });
        });
    }),
    firing_case(
        "hung-task",
        "seen in task scans only",
        Critical,
        "dd (930) hangs: in state D for at least 12s in submit_bio_wait",
        |s| {
            s.add_hung_task(930, "dd", "submit_bio_wait", 12);
        },
    ),
    firing_case("hung-task", "not for long yet", Warn, "in state D for at least 6.0 s", |s| {
        s.add_hung_task(930, "dd", "submit_bio_wait", 6);
    }),
    firing_case("hung-task-silent", "no warnings left", Note, "the kernel no longer reports hung tasks", |s| {
        s.change_facts(|f| drop(f.knobs.insert("kernel.hung_task_warnings".into(), "0".into())));
    }),
    firing_case(
        "hung-task-silent",
        "no warnings left while tasks hang",
        Warn,
        "the kernel no longer reports hung tasks",
        |s| {
            s.change_facts(|f| drop(f.knobs.insert("kernel.hung_task_warnings".into(), "0".into())));
            s.add_hung_task(930, "dd", "io_schedule", 8);
        },
    ),
    firing_case("device-reset", "a link", Warn, "resets or timeouts on ata4: ata4: hard resetting link", |s| {
        s.idle_ticks(2);
        s.kernel_message("ata4: hard resetting link");
    }),
    firing_case("device-reset", "again and again", Critical, "nvme0, 3 times in 10 minutes", |s| {
        s.idle_ticks(2);
        for _ in 0..3 {
            s.kernel_message("nvme nvme0: I/O 12 QID 3 timeout, reset controller");
        }
    }),
    firing_case("device-reset", "every nine minutes", Warn, "on ata4, 2 times in 10 minutes: ata4: hard", |s| {
        for _ in 0..20 {
            s.skip_secs(9 * 60).idle_ticks(2).kernel_message("ata4: hard resetting link");
        }
    }),
    firing_case("io-error", "a sector", Critical, "I/O errors on sda: I/O error, dev sda, sector 81239", |s| {
        s.idle_ticks(2);
        s.kernel_message("I/O error, dev sda, sector 81239 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2");
    }),
    firing_case(
        "io-error",
        "a swap device",
        Critical,
        "I/O errors on sda: Write-error on swap-device (8:0:81239)",
        |s| {
            s.idle_ticks(2);
            s.kernel_message("Write-error on swap-device (8:0:81239)");
        },
    ),
    firing_case("filesystem-error", "damaged directory", Critical, "file system errors on sda1", |s| {
        s.idle_ticks(2);
        s.kernel_message(
            "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm ls: reading directory lblock 0",
        );
    }),
    firing_case("read-only", "ext4 emergency_ro", Critical, "/srv (ext4 on sda1) is read-only after an error", |s| {
        s.system.topology.ok_mut().unwrap().devices.iter_mut().find(|d| d.id == SDA1).unwrap().mounts =
            vec![mount("/srv", "rw,relatime", "rw,emergency_ro")];
        s.idle_ticks(1);
    }),
    firing_case("read-only", "remounted, with a kernel message", Critical, "/srv (ext4 on sda1) is read-only", |s| {
        s.system.topology.ok_mut().unwrap().devices.iter_mut().find(|d| d.id == SDA1).unwrap().mounts =
            vec![mount("/srv", "ro,relatime", "ro")];
        s.idle_ticks(1);
        s.kernel_message("EXT4-fs (sda1): Remounting filesystem read-only");
    }),
    firing_case("oom", "a killed process", Critical, "the kernel killed keydb-server (940)", |s| {
        s.idle_ticks(2);
        s.kernel_message("Out of memory: Killed process 940 (keydb-server) total-vm:30000000kB, anon-rss:20000000kB");
    }),
    firing_case(
        "thp-always",
        "with a forking server",
        Warn,
        "transparent huge pages are `always` while redis-server (920) runs",
        |s| {
            s.idle_ticks(1);
            s.change_facts(|f| f.thp = Some("always".into()));
            s.add_task(920, "redis-server", |_| {}, IoBytes::default(), 0);
        },
    ),
    firing_case("fork-cost", "24 GiB", Warn, "fork() stops redis-server (920) for about 216 ms to 552 ms", |s| {
        s.idle_ticks(1);
        s.add_task(920, "redis-server", |t| t.rss_bytes = 24 * GIB, IoBytes::default(), 0);
    }),
    firing_case("fork-cost", "measured here", Note, "stops redis-server (920) for about 60.0 ms", |s| {
        s.idle_ticks(1);
        s.change_facts(|f| {
            f.results.push(BenchResultFacts { fork_ms_per_gb: Some(10.0), ..BenchResultFacts::default() })
        });
        s.add_task(920, "redis-server", |t| t.rss_bytes = 6 * GIB, IoBytes::default(), 0);
    }),
    firing_case("atime-mount", "strict", Warn, "/srv, read by postgres (950), keeps access times", |s| {
        s.system.topology.ok_mut().unwrap().devices.iter_mut().find(|d| d.id == SDA1).unwrap().mounts =
            vec![mount("/srv", "rw", "rw")];
        s.ticks(8, |t| {
            set_device(t, busy_device(SDA1, "sda1", (120.0, 8.0, 1.0, 8.0, 1.0)));
        });
        s.add_task(950, "postgres", |_| {}, read(4 << 20), 0);
    }),
    firing_case(
        "scheduler-unsuitable",
        "a spinning disk with none",
        Warn,
        "sda is a spinning disk with scheduler none",
        |s| {
            s.system.queues.get_mut("sda").unwrap().scheduler = Some("none".into());
            s.ticks(8, |t| set_device(t, busy_device(SDA, "sda", (119.0, 100.8, 12.0, 4.0, 0.6))));
        },
    ),
    firing_case(
        "readahead-small",
        "a stream in small requests",
        Note,
        "sda streams 100 MB/s in requests as small as its read-ahead of 128 KiB",
        |s| {
            s.ticks(8, |t| set_device(t, busy_device(SDA, "sda", (800.0, 1.2, 1.0, 128.0, 1.0))));
        },
    ),
    firing_case(
        "readahead-large",
        "random reads of mapped files",
        Warn,
        "vda reads 512 KiB for each of 400 page faults/s",
        |s| {
            s.system.queues.get_mut("vda").unwrap().read_ahead_kb = Some(8192);
            s.ticks(8, |t| {
                set_device(t, busy_device(VDA, "vda", (500.0, 3.0, 1.5, 512.0, 1.0)));
                t.major_faults_per_s = Some(400.0);
            });
        },
    ),
    firing_case("open-files", "near the limit", Warn, "postgres (950) has 900 of 1024 files open", |s| {
        s.idle_ticks(1);
        let key = s.add_task(950, "postgres", |_| {}, IoBytes::default(), 0);
        s.change_facts(|f| f.open_files.push(OpenFiles { key, open: 900, soft: Some(1024), hard: Some(4096) }));
    }),
    firing_case("open-files", "at the limit", Critical, "has 1020 of 1024 files open", |s| {
        s.idle_ticks(1);
        let key = s.add_task(950, "postgres", |_| {}, IoBytes::default(), 0);
        s.change_facts(|f| f.open_files.push(OpenFiles { key, open: 1020, soft: Some(1024), hard: None }));
    }),
    firing_case("filesystem-full", "nearly full", Warn, "/ is 93% full: 7.00 GiB of 100 GiB free", |s| {
        s.disk_space("/", 100 * GIB, 7 * GIB, 0, 0);
    }),
    firing_case("filesystem-full", "out of inodes", Critical, "/ is nearly out of inodes: 50 of 10000 free", |s| {
        s.disk_space("/", 100 * GIB, 60 * GIB, 10_000, 50);
    }),
    firing_case(
        "network-link-full",
        "a 100 Mbit port",
        Warn,
        "/mnt/nfs is limited by its link: eth0, a 100 Mbit/s link, is 95% full",
        |s| {
            s.ticks(8, |t| set_network_mount(t, 11.35, Some(100_000_000), |_| {}));
        },
    ),
    firing_case(
        "network-link-full",
        "a slow port elsewhere on the path",
        Warn,
        "transfers a steady 9.60 MB/s, as through a 100 Mbit/s port",
        |s| {
            s.ticks(14, |t| set_network_mount(t, 9.6, None, |_| {}));
        },
    ),
    firing_case("nfs-retransmits", "packet loss", Warn, "/mnt/nfs retransmits 5% of its NFS requests", |s| {
        s.ticks(8, |t| set_network_mount(t, 5.0, Some(1_000_000_000), |fs| fs.retransmits_per_s = Some(5.0)));
    }),
    firing_case("cifs-version-1", "an old share", Warn, "/mnt/share is mounted with SMB 1.0", |s| {
        s.ticks(2, |t| set_network_mount(t, 1.0, None, |fs| fs.kind = NetFsKind::Cifs));
        let share = NetFsRaw {
            kind: NetFsKind::Cifs,
            mount: "/mnt/share".into(),
            server: "//server/share".into(),
            version: Some("1.0".into()),
            ..NetFsRaw::default()
        };
        s.system.last_sample = Some(Sample { netfs: Reading::Ok(vec![share]), ..Sample::default() });
    }),
    firing_case(
        "burst-credits",
        "credits spent",
        Warn,
        "vda gives 3000 IOPS at first and 100 IOPS later, and runs at the slow rate now",
        |s| {
            s.ticks(8, |t| set_device(t, busy_device(VDA, "vda", (100.0, 10.0, 1.0, 4.0, 0.5))));
            s.change_facts(|f| {
                f.results.push(BenchResultFacts {
                    profile: "randrw".into(),
                    time: "2026-01-01T00:00:00Z".into(),
                    device: Some("254:0".into()),
                    burst: Some((3000.0, 100.0)),
                    ..BenchResultFacts::default()
                })
            });
        },
    ),
    firing_case("delay-accounting-off", "while tasks wait", Note, "it is not recorded which ones", |s| {
        s.ticks(8, |t| t.cpu.ok_mut().unwrap().iowait_pct = 40.0);
        s.change_facts(|f| drop(f.knobs.insert("kernel.task_delayacct".into(), "0".into())));
    }),
    firing_case(
        "cgroup-io",
        "66 reads per second",
        Warn,
        "control group /slow is at its limit of 66/s for reads on vda",
        |s| {
            s.idle_ticks(2);
            let at = |moved| CgroupFacts {
                path: "/slow".into(),
                io: vec![CgroupIoLimit {
                    device: VDA,
                    reads_per_s: Some(66),
                    transferred: Some(moved),
                    ..CgroupIoLimit::default()
                }],
                ..CgroupFacts::default()
            };
            add_cgroup(s, at([0, 0, 100, 0]), at([0, 0, 760, 0]));
        },
    ),
    firing_case(
        "cgroup-memory",
        "at memory.high",
        Warn,
        "control group /db is at its memory.high of 1.00 GiB: its tasks reclaim 50/s",
        |s| {
            s.idle_ticks(2);
            let at = |events| CgroupFacts {
                path: "/db".into(),
                memory_high: Some(GIB),
                high_events: Some(events),
                max_events: Some(0),
                ..CgroupFacts::default()
            };
            add_cgroup(s, at(100), at(600));
        },
    ),
    firing_case("cgroup-cpu", "half of a CPU", Warn, "control group /web is throttled in 60% of its periods", |s| {
        s.idle_ticks(2);
        let at = |periods| CgroupFacts {
            path: "/web".into(),
            cpu_max: Some((50_000, 100_000)),
            cpu_periods: Some(periods),
            ..CgroupFacts::default()
        };
        add_cgroup(s, at((100, 0)), at((200, 60)));
    }),
];

/// A key that no task has.
pub fn missing_task() -> TaskKey {
    TaskKey { pid: 1, tid: 1, starttime: 0 }
}

/// Memory in which the cache is small.
pub fn little_cache() -> MemRaw {
    MemRaw { total: 24 * GIB, free: GIB, cached: 2 * GIB, ..MemRaw::default() }
}
