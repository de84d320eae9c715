//! Trouble, and what is said of it.

use super::stage::*;
use crate::diagnose::finding::Severity::{self, Critical, Note, Warn};
use crate::model::slow_facts::{CgroupFacts, CgroupIoLimit, OpenFiles, BenchResultFacts};
use crate::model::memory::{MemRaw, ReclaimRate};
use crate::model::network::{NetFsKind, NetFsRaw};
use crate::model::process::{IoBytes, TaskKey, TaskRaw};
use crate::model::sample::Sample;
use crate::model::reading::Reading;
use crate::model::snapshot::Snapshot;

/// A case.
pub struct Fires {
    pub rule: &'static str,
    pub what: &'static str,
    pub severity: Severity,
    pub says: &'static str,
    pub make: fn(&mut Stage),
}

pub const fn fires(
    rule: &'static str,
    what: &'static str,
    severity: Severity,
    says: &'static str,
    make: fn(&mut Stage),
) -> Fires {
    Fires { rule, what, severity, says, make }
}

fn written(bytes: u64) -> IoBytes {
    IoBytes { write: bytes, ..IoBytes::default() }
}

pub fn read(bytes: u64) -> IoBytes {
    IoBytes { read: bytes, ..IoBytes::default() }
}

pub fn dirty(s: &mut Snapshot, dirty: u64, dirtied: f64, wrote: f64) {
    let w = s.writeback.ok_mut().unwrap();
    w.dirty_bytes = Some(dirty);
    w.dirtied_bytes_per_s = Some(dirtied);
    w.written_bytes_per_s = Some(wrote);
}

fn group(stage: &mut Stage, before: CgroupFacts, now: CgroupFacts) {
    stage.facts_before(|f| f.cgroups.push(before));
    stage.facts(|f| f.cgroups.push(now));
}

pub const FIRING: &[Fires] = &[
    fires(
        "device-saturated",
        "traced: small, but one after the other",
        Warn,
        "vda is saturated by small sequential I/O: 113 tps, 48.3 ms await, queue 3.9",
        |s| {
            s.ticks(8, |t| with(t, traced(load(VDA, "vda", (113.0, 48.3, 3.9, 4.0, 0.5)), 100, 13)));
        },
    ),
    fires(
        "device-saturated",
        "a short queue that waits long",
        Warn,
        "vda is saturated by small random I/O: 113 tps, 48.3 ms await, queue 3.9",
        |s| {
            s.ticks(8, |t| with(t, load(VDA, "vda", (113.0, 48.3, 3.9, 4.0, 0.5))));
        },
    ),
    fires(
        "device-saturated",
        "small random I/O on a spinning disk",
        Warn,
        "sda is saturated by small random I/O: 119 tps, 101 ms await, queue 12",
        |s| {
            s.ticks(8, |t| with(t, load(SDA, "sda", (119.0, 100.8, 12.0, 4.0, 0.6))));
        },
    ),
    fires("device-saturated", "so deep that it hurts", Critical, "610 ms await", |s| {
        s.ticks(8, |t| with(t, load(SDA, "sda", (119.0, 610.0, 73.0, 4.0, 0.6))));
    }),
    fires("device-saturated", "a stream", Warn, "saturated by bandwidth", |s| {
        s.ticks(8, |t| with(t, load(SDA, "sda", (150.0, 110.0, 16.0, 1024.0, 1.0))));
    }),
    fires("device-saturated", "one task", Warn, "dd (900) makes 100 % of it", |s| {
        s.ticks(8, |t| with(t, load(VDA, "vda", (800.0, 40.0, 32.0, 512.0, 0.0))));
        s.task(900, "dd", |_| {}, written(400 << 20), 0);
    }),
    fires("device-saturated", "a benchmark", Note, "vda works at full speed on small random I/O", |s| {
        s.ticks(8, |t| with(t, load(VDA, "vda", (30_000.0, 2.1, 64.0, 4.0, 0.5))));
    }),
    fires(
        "device-stalled",
        "nothing completes",
        Critical,
        "sda is stalled: 3 requests in flight, none completed for 6.0 s",
        |s| {
            s.quiet(3);
            s.ticks(6, |t| {
                let mut d = idle(SDA, "sda");
                (d.tps, d.writes_per_s, d.in_flight, d.stalled, d.util_pct) = (0.0, 0.0, 3, true, 100.0);
                with(t, d);
            });
        },
    ),
    fires(
        "slow-device",
        "long service, short queue",
        Warn,
        "vda is slow for a virtual disk: 66.0 ms a request with a queue of only 1.0",
        |s| {
            s.ticks(8, |t| with(t, load(VDA, "vda", (15.0, 66.0, 1.0, 4.0, 0.5))));
        },
    ),
    fires(
        "slow-device",
        "66 IOPS through a loop",
        Critical,
        "loop0 is slow for a virtual disk: only 66 requests/s out of a queue of 32",
        |s| {
            s.ticks(8, |t| with(t, load(LOOP0, "loop0", (66.0, 480.0, 32.0, 4.0, 0.5))));
        },
    ),
    fires(
        "writeback-storm",
        "a store larger than the background threshold",
        Warn,
        "60.0 MiB/s are dirtied by neo4j (910) while the flushers write 40.0 MiB/s",
        |s| {
            s.ticks(8, |t| dirty(t, 5 * GIB / 2, 60.0 * MIB, 40.0 * MIB));
            s.task(910, "neo4j", |_| {}, written(60 << 20), 0);
        },
    ),
    fires(
        "writeback-storm",
        "a flusher that dirties metadata for others is not named",
        Warn,
        "60.0 MiB/s are dirtied, 25 % of it by dd (911), while",
        |s| {
            s.ticks(8, |t| dirty(t, 5 * GIB / 2, 60.0 * MIB, 40.0 * MIB));
            let flusher = TaskRaw { kernel_thread: true, ..raw(12, "kworker/u8:5-fl") };
            s.look(vec![flusher, raw(911, "dd")], false);
            let wrote = |task, mib: u64| after(task, written(mib << 20));
            s.look(vec![wrote(flusher, 30), wrote(raw(911, "dd"), 10)], false);
        },
    ),
    fires(
        "slow-drain",
        "a slow device",
        Critical,
        "3.00 GiB of dirty pages take 51m12s to write at the present 1.00 MiB/s",
        |s| {
            s.ticks(10, |t| dirty(t, 3 * GIB, 1.0 * MIB, 1.0 * MIB));
        },
    ),
    fires("slow-drain", "nothing goes out", Critical, "do not get less", |s| {
        s.ticks(10, |t| dirty(t, 3 * GIB, 0.0, 0.0));
    }),
    fires("swapping", "both ways", Warn, "the machine is swapping: si 2.00 MiB/s, so 3.00 MiB/s", |s| {
        s.ticks(8, |t| {
            let swap = t.swap.ok_mut().unwrap();
            (swap.in_bytes_per_s, swap.out_bytes_per_s) = (Some(2.0 * MIB), Some(3.0 * MIB));
        });
    }),
    fires("swapping", "nothing else gets done", Critical, "the machine is swapping", |s| {
        s.ticks(8, |t| {
            t.swap.ok_mut().unwrap().in_bytes_per_s = Some(20.0 * MIB);
            std::sync::Arc::make_mut(t.pressure.ok_mut().unwrap()).memory = pressed(80.0, 60.0);
        });
    }),
    fires(
        "swapping",
        "out only, now and then",
        Note,
        "pages go out to swap again and again: so 2.00 MiB/s",
        |s| {
            for n in 0..9 {
                let out = if n % 3 == 0 { 6.0 * MIB } else { 0.0 };
                s.tick(|t| t.swap.ok_mut().unwrap().out_bytes_per_s = Some(out));
            }
        },
    ),
    fires("swapped-idle", "put away long ago", Note, "3.00 GiB in swap, and none of it is moving", |s| {
        s.ticks(15, |t| t.swap.ok_mut().unwrap().used_bytes = Some(3 * GIB));
    }),
    fires(
        "server-swapped",
        "a known server",
        Warn,
        "the server redis-server (920) has 1.00 GiB of its memory in swap (50 %)",
        |s| {
            s.quiet(8);
            s.task(
                920,
                "redis-server",
                |t| (t.swap_bytes, t.rss_bytes) = (Some(GIB), GIB),
                IoBytes::default(),
                0,
            );
        },
    ),
    fires(
        "server-swapped",
        "a program that misses its memory",
        Warn,
        "python3 (921) has 256 MiB of its memory in swap",
        |s| {
            s.ticks(8, |t| t.swap.ok_mut().unwrap().in_bytes_per_s = Some(2.0 * MIB));
            s.task(
                921,
                "python3",
                |t| (t.swap_bytes, t.rss_bytes) = (Some(256 << 20), 64 << 20),
                IoBytes::default(),
                200,
            );
        },
    ),
    fires("cache-pressure", "a backup", Warn, "streaming I/O fills the page cache (50 % of memory)", |s| {
        s.ticks(8, |t| {
            with(t, load(SDA, "sda", (200.0, 5.0, 1.0, 1024.0, 1.0)));
            t.swap.ok_mut().unwrap().out_bytes_per_s = Some(4.0 * MIB);
            t.reclaim = Some(ReclaimRate { background_bytes_per_s: 200.0 * MIB, ..ReclaimRate::default() });
        });
    }),
    fires(
        "hung-task",
        "stuck, the kernel silent",
        Critical,
        "dd (930) hangs: in state D for at least 12s in submit_bio_wait",
        |s| {
            s.hang(930, "dd", "submit_bio_wait", 12);
        },
    ),
    fires("hung-task", "not yet long", Warn, "in state D for at least 6.0 s", |s| {
        s.hang(930, "dd", "submit_bio_wait", 6);
    }),
    fires(
        "hung-task",
        "the kernel's word",
        Warn,
        "the kernel reported that dd (931) hung; it has gone on",
        |s| {
            s.quiet(3);
            s.kernel("INFO: task dd:931 blocked for more than 120 seconds.");
        },
    ),
    fires("hung-task-silent", "used up", Note, "the kernel has gone silent", |s| {
        s.facts(|f| drop(f.knobs.insert("kernel.hung_task_warnings".into(), "0".into())));
    }),
    fires("hung-task-silent", "used up while tasks hang", Warn, "the kernel has gone silent", |s| {
        s.facts(|f| drop(f.knobs.insert("kernel.hung_task_warnings".into(), "0".into())));
        s.hang(930, "dd", "io_schedule", 8);
    }),
    fires("device-reset", "a link", Warn, "resets or timeouts on ata4: ata4: hard resetting link", |s| {
        s.quiet(2);
        s.kernel("ata4: hard resetting link");
    }),
    fires("device-reset", "again and again", Critical, "nvme0, 3 times in 10 minutes", |s| {
        s.quiet(2);
        for _ in 0..3 {
            s.kernel("nvme nvme0: I/O 12 QID 3 timeout, reset controller");
        }
    }),
    fires("io-error", "a sector", Critical, "I/O errors on sda: I/O error, dev sda, sector 81239", |s| {
        s.quiet(2);
        s.kernel("I/O error, dev sda, sector 81239 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2");
    }),
    fires("filesystem-error", "damage", Critical, "file system errors on sda1", |s| {
        s.quiet(2);
        s.kernel("EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm ls: reading directory lblock 0");
    }),
    fires(
        "read-only",
        "ext4's emergency",
        Critical,
        "/srv (ext4, sda1) went read-only after an error",
        |s| {
            s.world.topology.ok_mut().unwrap().devices.iter_mut().find(|d| d.id == SDA1).unwrap().mounts =
                vec![mount("/srv", "rw,relatime", "rw,emergency_ro")];
            s.quiet(1);
        },
    ),
    fires(
        "read-only",
        "remounted, and the kernel said so",
        Critical,
        "/srv (ext4, sda1) went read-only",
        |s| {
            s.world.topology.ok_mut().unwrap().devices.iter_mut().find(|d| d.id == SDA1).unwrap().mounts =
                vec![mount("/srv", "ro,relatime", "ro")];
            s.quiet(1);
            s.kernel("EXT4-fs (sda1): Remounting filesystem read-only");
        },
    ),
    fires("oom", "a victim", Critical, "the kernel killed keydb-server (940)", |s| {
        s.quiet(2);
        s.kernel("Out of memory: Killed process 940 (keydb-server) total-vm:30000000kB, anon-rss:20000000kB");
    }),
    fires(
        "thp-always",
        "with a forking server",
        Warn,
        "transparent huge pages are `always` while redis-server (920) runs",
        |s| {
            s.quiet(1);
            s.facts(|f| f.thp = Some("always".into()));
            s.task(920, "redis-server", |_| {}, IoBytes::default(), 0);
        },
    ),
    fires(
        "fork-cost",
        "24 GiB",
        Warn,
        "a fork of redis-server (920) stops it for about 216 ms to 552 ms",
        |s| {
            s.quiet(1);
            s.task(920, "redis-server", |t| t.rss_bytes = 24 * GIB, IoBytes::default(), 0);
        },
    ),
    fires("fork-cost", "measured here", Note, "stops it for about 60.0 ms", |s| {
        s.quiet(1);
        s.facts(|f| f.results.push(BenchResultFacts { fork_ms_per_gb: Some(10.0), ..BenchResultFacts::default() }));
        s.task(920, "redis-server", |t| t.rss_bytes = 6 * GIB, IoBytes::default(), 0);
    }),
    fires("atime-mount", "strict", Warn, "/srv keeps access times under postgres (950)", |s| {
        s.world.topology.ok_mut().unwrap().devices.iter_mut().find(|d| d.id == SDA1).unwrap().mounts =
            vec![mount("/srv", "rw", "rw")];
        s.ticks(8, |t| {
            with(t, load(SDA1, "sda1", (120.0, 8.0, 1.0, 8.0, 1.0)));
        });
        s.task(950, "postgres", |_| {}, read(4 << 20), 0);
    }),
    fires(
        "scheduler-unsuitable",
        "a spinning disk unsorted",
        Warn,
        "sda is a spinning disk with the scheduler none",
        |s| {
            s.world.queues.get_mut("sda").unwrap().scheduler = Some("none".into());
            s.ticks(8, |t| with(t, load(SDA, "sda", (119.0, 100.8, 12.0, 4.0, 0.6))));
        },
    ),
    fires(
        "readahead-small",
        "a stream in small pieces",
        Note,
        "sda streams 100 MB/s in pieces of its read-ahead of 128 KiB",
        |s| {
            s.ticks(8, |t| with(t, load(SDA, "sda", (800.0, 1.2, 1.0, 128.0, 1.0))));
        },
    ),
    fires(
        "readahead-large",
        "mapped files at random",
        Warn,
        "vda reads 512 KiB for each of 400 page faults a second",
        |s| {
            s.world.queues.get_mut("vda").unwrap().read_ahead_kb = Some(8192);
            s.ticks(8, |t| {
                with(t, load(VDA, "vda", (500.0, 3.0, 1.5, 512.0, 1.0)));
                t.major_faults_per_s = Some(400.0);
            });
        },
    ),
    fires("open-files", "near", Warn, "postgres (950) has 900 of 1024 files open", |s| {
        s.quiet(1);
        let key = s.task(950, "postgres", |_| {}, IoBytes::default(), 0);
        s.facts(|f| f.open_files.push(OpenFiles { key, open: 900, soft: Some(1024), hard: Some(4096) }));
    }),
    fires("open-files", "at it", Critical, "has 1020 of 1024 files open", |s| {
        s.quiet(1);
        let key = s.task(950, "postgres", |_| {}, IoBytes::default(), 0);
        s.facts(|f| f.open_files.push(OpenFiles { key, open: 1020, soft: Some(1024), hard: None }));
    }),
    fires("filesystem-full", "nearly", Warn, "/ is 93 % full: 7.00 GiB of 100 GiB left", |s| {
        s.room("/", 100 * GIB, 7 * GIB, 0, 0);
    }),
    fires("filesystem-full", "of inodes", Critical, "/ is out of inodes soon: 50 of 10000 left", |s| {
        s.room("/", 100 * GIB, 60 * GIB, 10_000, 50);
    }),
    fires(
        "network-link-full",
        "a 100 Mbit port",
        Warn,
        "/mnt/nfs is limited by its wire: eth0, a 100 Mbit link is 95 % full",
        |s| {
            s.ticks(8, |t| over_network(t, 11.35, Some(100_000_000), |_| {}));
        },
    ),
    fires(
        "network-link-full",
        "a port somewhere else",
        Warn,
        "moves a flat 9.60 MB/s: as through a 100 Mbit port",
        |s| {
            s.ticks(14, |t| over_network(t, 9.6, None, |_| {}));
        },
    ),
    fires("nfs-retransmits", "loss on the way", Warn, "/mnt/nfs: 5 % of NFS requests are sent again", |s| {
        s.ticks(8, |t| over_network(t, 5.0, Some(1_000_000_000), |fs| fs.retransmits_per_s = Some(5.0)));
    }),
    fires("cifs-version-1", "an old share", Warn, "/mnt/share is mounted with SMB 1.0", |s| {
        s.ticks(2, |t| over_network(t, 1.0, None, |fs| fs.kind = NetFsKind::Cifs));
        let share = NetFsRaw {
            kind: NetFsKind::Cifs,
            mount: "/mnt/share".into(),
            server: "//server/share".into(),
            version: Some("1.0".into()),
            ..NetFsRaw::default()
        };
        s.world.last_sample = Some(Sample { netfs: Reading::Ok(vec![share]), ..Sample::default() });
    }),
    fires(
        "burst-credits",
        "spent",
        Warn,
        "vda gives 3000 IOPS at first and 100 later, and it is at its slow rate now",
        |s| {
            s.ticks(8, |t| with(t, load(VDA, "vda", (100.0, 10.0, 1.0, 4.0, 0.5))));
            s.facts(|f| {
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
    fires("delay-accounting-off", "while tasks wait", Note, "which ones is not counted", |s| {
        s.ticks(8, |t| t.cpu.ok_mut().unwrap().iowait_pct = 40.0);
        s.facts(|f| drop(f.knobs.insert("kernel.task_delayacct".into(), "0".into())));
    }),
    fires(
        "cgroup-io",
        "66 reads a second",
        Warn,
        "control group /slow is held to 66/s of reads on vda",
        |s| {
            s.quiet(2);
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
            group(s, at([0, 0, 100, 0]), at([0, 0, 760, 0]));
        },
    ),
    fires(
        "cgroup-memory",
        "held at memory.high",
        Warn,
        "control group /db is at its memory.high of 1.00 GiB: its tasks are made to wait 50 times",
        |s| {
            s.quiet(2);
            let at = |events| CgroupFacts {
                path: "/db".into(),
                memory_high: Some(GIB),
                high_events: Some(events),
                max_events: Some(0),
                ..CgroupFacts::default()
            };
            group(s, at(100), at(600));
        },
    ),
    fires("cgroup-cpu", "half of a CPU", Warn, "control group /web is stopped in 60 % of its periods", |s| {
        s.quiet(2);
        let at = |periods| CgroupFacts {
            path: "/web".into(),
            cpu_max: Some((50_000, 100_000)),
            cpu_periods: Some(periods),
            ..CgroupFacts::default()
        };
        group(s, at((100, 0)), at((200, 60)));
    }),
];

/// A key that no task has.
pub fn nobody() -> TaskKey {
    TaskKey { pid: 1, tid: 1, starttime: 0 }
}

/// Memory in which the cache is small.
pub fn little_cache() -> MemRaw {
    MemRaw { total: 24 * GIB, free: GIB, cached: 2 * GIB, ..MemRaw::default() }
}
