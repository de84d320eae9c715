//! Every knob there is, one entry each.
//!
//! Texts follow Documentation/admin-guide/sysctl/{vm,kernel}.rst, Documentation/ABI/stable/sysfs-block,
//! Documentation/ABI/testing/sysfs-class-bdi and Documentation/admin-guide/mm/transhuge.rst.

use super::knob::{Bound, Group, Knob, Link, Persist, Place, Unit, Values};

const INT_MAX: i64 = i32::MAX as i64;
const EUID0: &str = "euid 0";

const fn fixed(min: i64, max: i64) -> Values {
    Values::Range(Bound::Fixed(min), Bound::Fixed(max))
}

/// A sysctl; the rest is said per entry.
const fn sysctl(name: &'static str, file: &'static str, group: Group, unit: Unit, values: Values) -> Knob {
    Knob {
        name,
        group,
        unit,
        values,
        default: None,
        default_text: "",
        about: "",
        source: "Documentation/admin-guide/sysctl/vm.rst",
        place: Place::Sysctl(file),
        link: Link::Alone,
        persist: Persist::Sysctl,
        needs: EUID0,
    }
}

const fn queue(name: &'static str, file: &'static str, unit: Unit, values: Values) -> Knob {
    Knob {
        place: Place::Queue(file),
        persist: Persist::Udev,
        source: "Documentation/ABI/stable/sysfs-block",
        ..sysctl(name, "", Group::Device, unit, values)
    }
}

const fn bdi(name: &'static str, file: &'static str, unit: Unit, values: Values) -> Knob {
    Knob {
        place: Place::Bdi(file),
        persist: Persist::Udev,
        source: "Documentation/ABI/testing/sysfs-class-bdi",
        ..sysctl(name, "", Group::Bdi, unit, values)
    }
}

/// The knob of that name; the part after the last dot is enough where it is unambiguous.
pub fn find(name: &str) -> Option<&'static Knob> {
    if let Some(knob) = KNOBS.iter().find(|k| k.name == name) {
        return Some(knob);
    }
    let mut short = KNOBS.iter().filter(|k| k.name.rsplit('.').next() == Some(name));
    match (short.next(), short.next()) {
        (Some(knob), None) => Some(knob),
        _ => None,
    }
}

/// All knobs, grouped.
pub static KNOBS: &[Knob] = &[
    Knob {
        default: Some("20"),
        link: Link::Pair("vm.dirty_bytes"),
        about: "Share of dirtyable memory (free and file pages, not RAM) at which a process that writes must \
                wait for the disk. High lets bursts run at memory speed and makes the later stall, the data lost \
                in a crash and the time of an fsync larger.",
        ..sysctl("vm.dirty_ratio", "vm/dirty_ratio", Group::Writeback, Unit::Percent, fixed(1, 100))
    },
    Knob {
        default: Some("0"),
        link: Link::Pair("vm.dirty_ratio"),
        about: "The same limit in bytes; writing it sets dirty_ratio to 0. Costs what the ratio costs, but does \
                not grow with memory: the choice for big machines with slow disks.",
        ..sysctl(
            "vm.dirty_bytes",
            "vm/dirty_bytes",
            Group::Writeback,
            Unit::Bytes,
            Values::Range(Bound::Pages(2), Bound::Memory),
        )
    },
    Knob {
        default: Some("10"),
        link: Link::Pair("vm.dirty_background_bytes"),
        about: "Share of dirtyable memory at which the kernel starts writing in the background. Low spreads the \
                writing out and writes again what changes again; high collects rewrites into one write and \
                leaves more to do at once.",
        ..sysctl(
            "vm.dirty_background_ratio",
            "vm/dirty_background_ratio",
            Group::Writeback,
            Unit::Percent,
            fixed(1, 100),
        )
    },
    Knob {
        default: Some("0"),
        link: Link::Pair("vm.dirty_background_ratio"),
        about: "The same threshold in bytes; writing it sets dirty_background_ratio to 0. Small values keep an \
                fsync short and cost throughput where pages are rewritten often.",
        ..sysctl(
            "vm.dirty_background_bytes",
            "vm/dirty_background_bytes",
            Group::Writeback,
            Unit::Bytes,
            Values::Range(Bound::Pages(1), Bound::Memory),
        )
    },
    Knob {
        default: Some("3000"),
        about: "Age at which a dirty page is written whatever the thresholds say. Long saves rewrites and loses \
                more data in a crash.",
        ..sysctl(
            "vm.dirty_expire_centisecs",
            "vm/dirty_expire_centisecs",
            Group::Writeback,
            Unit::Centisecs,
            fixed(0, 8_640_000),
        )
    },
    Knob {
        default: Some("500"),
        about: "How often the flusher threads wake up to look for old pages; 0 stops periodic writeback. Rare \
                wake-ups write in larger lumps, and with 0 dirty pages stay until a threshold or an fsync.",
        ..sysctl(
            "vm.dirty_writeback_centisecs",
            "vm/dirty_writeback_centisecs",
            Group::Writeback,
            Unit::Centisecs,
            fixed(0, 8_640_000),
        )
    },
    Knob {
        default: Some("60"),
        about: "Assumed cost of swapping against dropping file pages when memory is short: 100 is equal, 200 \
                favours swapping. Low keeps programs in memory and costs file cache; 0 does not forbid swap.",
        ..sysctl("vm.swappiness", "vm/swappiness", Group::Memory, Unit::Count, fixed(0, 200))
    },
    Knob {
        default: Some("3"),
        about: "Pages read from swap at once, as a power of two: 3 is 8 pages, 0 one page. 0 suits zram and fast \
                disks; on a spinning disk it costs a seek for every page.",
        ..sysctl("vm.page-cluster", "vm/page-cluster", Group::Memory, Unit::Count, fixed(0, 10))
    },
    Knob {
        default: Some("100"),
        about: "How eagerly directory entries and inodes are dropped, in percent of a fair share. Low keeps \
                metadata in memory at the file cache's cost, and 0 never drops it, which can end in out of memory.",
        ..sysctl(
            "vm.vfs_cache_pressure",
            "vm/vfs_cache_pressure",
            Group::Memory,
            Unit::Count,
            fixed(0, 10_000),
        )
    },
    Knob {
        default_text: "computed from memory size",
        about: "Memory kept free for allocations that cannot wait. More avoids direct reclaim in bursts and is \
                lost to everything else.",
        ..sysctl(
            "vm.min_free_kbytes",
            "vm/min_free_kbytes",
            Group::Memory,
            Unit::KiB,
            Values::Range(Bound::Fixed(1024), Bound::MemoryKb(10)),
        )
    },
    Knob {
        default: Some("10"),
        about: "Distance between the watermarks in 1/10000 of memory: how early kswapd starts and how long it \
                goes on. More lets fewer programs stall in direct reclaim and keeps more memory free.",
        ..sysctl(
            "vm.watermark_scale_factor",
            "vm/watermark_scale_factor",
            Group::Memory,
            Unit::Count,
            fixed(1, 3000),
        )
    },
    Knob {
        default_text: "set by the kernel's build",
        about: "Whether programs get 2 MiB pages: always, only where they ask (madvise), or never. `always` makes \
                fork-and-snapshot databases copy 2 MiB for every page they touch and stall.",
        source: "Documentation/admin-guide/mm/transhuge.rst",
        place: Place::Sys("kernel/mm/transparent_hugepage/enabled"),
        link: Link::Moves(&["vm.min_free_kbytes"]),
        persist: Persist::Tmpfiles,
        ..sysctl("transparent_hugepage.enabled", "", Group::HugePages, Unit::Word, Values::Listed)
    },
    Knob {
        default_text: "madvise",
        about: "Whether a page fault may stop to make a huge page. `always` trades stalls in the fault for more \
                huge pages; `defer` leaves the work to the background.",
        source: "Documentation/admin-guide/mm/transhuge.rst",
        place: Place::Sys("kernel/mm/transparent_hugepage/defrag"),
        persist: Persist::Tmpfiles,
        ..sysctl("transparent_hugepage.defrag", "", Group::HugePages, Unit::Word, Values::Listed)
    },
    Knob {
        default: Some("0"),
        about: "Counts how long each task waits for its disk, swap and memory. Costs a few percent of a context \
                switch; tasks are counted only from the moment it is on.",
        source: "Documentation/accounting/delay-accounting.rst",
        ..sysctl("kernel.task_delayacct", "kernel/task_delayacct", Group::Kernel, Unit::Switch, fixed(0, 1))
    },
    Knob {
        default: Some("120"),
        about: "After how long in uninterruptible sleep a task is reported in the kernel log; 0 never. Short \
                reports more and spends hung_task_warnings sooner.",
        source: "Documentation/admin-guide/sysctl/kernel.rst",
        ..sysctl(
            "kernel.hung_task_timeout_secs",
            "kernel/hung_task_timeout_secs",
            Group::Kernel,
            Unit::Seconds,
            fixed(0, 31_536_000),
        )
    },
    Knob {
        default: Some("10"),
        about: "How many hung tasks will still be reported; counts down, -1 is without end. At 0 the kernel is \
                silent about every further one.",
        source: "Documentation/admin-guide/sysctl/kernel.rst",
        ..sysctl(
            "kernel.hung_task_warnings",
            "kernel/hung_task_warnings",
            Group::Kernel,
            Unit::Count,
            fixed(-1, INT_MAX),
        )
    },
    Knob {
        default_text: "mq-deadline on one hardware queue, none on several",
        about: "Who orders the requests: none, mq-deadline, kyber, bfq. Only some know I/O priorities and cgroup \
                weights, each costs CPU per request, and a switch empties the queue and resets nr_requests.",
        link: Link::Moves(&["nr_requests", "wbt_lat_usec"]),
        ..queue("scheduler", "scheduler", Unit::Word, Values::Listed)
    },
    Knob {
        default: Some("128"),
        about: "How far ahead of a sequential reader the kernel reads. More helps streams on slow or striped \
                disks and wastes bandwidth and cache on random readers.",
        ..queue("read_ahead_kb", "read_ahead_kb", Unit::KiB, fixed(0, 1 << 20))
    },
    Knob {
        default_text: "what the device and scheduler choose",
        about: "Requests a queue may hold for each direction. More lets the scheduler merge and sort more and \
                lets one writer put more in front of everybody else.",
        ..queue("nr_requests", "nr_requests", Unit::Count, fixed(4, 65_536))
    },
    Knob {
        default_text: "75000 on spinning disks, 2000 elsewhere",
        about: "Read latency that background writeback is throttled to keep; 0 off, -1 the default. Low protects \
                readers and costs write throughput.",
        ..queue("wbt_lat_usec", "wbt_lat_usec", Unit::Microsecs, fixed(-1, 10_000_000))
    },
    Knob {
        default_text: "1280, or less if the device takes less",
        about: "Largest request sent to the device, at most max_hw_sectors_kb. Large suits streams; small keeps \
                a big request from holding up small ones.",
        ..queue(
            "max_sectors_kb",
            "max_sectors_kb",
            Unit::KiB,
            Values::Range(Bound::PageKb, Bound::HwSectorsKb),
        )
    },
    Knob {
        default: Some("100"),
        about: "Largest share of the dirty limit this device may fill. Keeps a slow stick or a network mount \
                from using up everybody's dirty memory, at the price of its own write speed.",
        ..bdi("bdi.max_ratio", "max_ratio", Unit::Percent, fixed(1, 100))
    },
    Knob {
        default: Some("0"),
        about: "Share of the dirty limit kept for this device. What is kept for one is missing for the others, \
                and all shares together stay below 100.",
        ..bdi("bdi.min_ratio", "min_ratio", Unit::Percent, fixed(0, 99))
    },
    Knob {
        default: Some("0"),
        about: "Holds the device to its share even while the machine has few dirty pages. Bounds what is lost \
                when it is pulled, and costs burst speed.",
        ..bdi("bdi.strict_limit", "strict_limit", Unit::Switch, fixed(0, 1))
    },
    Knob {
        default: Some("relatime"),
        about: "Whether reading a file writes its access time. noatime saves those writes and breaks the few \
                programs that compare access with modification times.",
        source: "mount(8), mount_setattr(2)",
        place: Place::Atime,
        persist: Persist::Elsewhere("put the option into the mount's line in /etc/fstab or its mount unit"),
        needs: "euid 0, Linux 5.12",
        ..sysctl("atime", "", Group::Mount, Unit::Word, Values::Atime)
    },
    Knob {
        default: Some("1024:4096"),
        about: "Open files a process may have, SOFT or SOFT:HARD. Too low fails with EMFILE under load; programs \
                that close every possible descriptor at start get slow with a huge one.",
        source: "prlimit(2)",
        place: Place::Nofile,
        persist: Persist::Elsewhere("set LimitNOFILE= in the service's unit, or limits.conf for logins"),
        needs: "euid 0 (raising the hard limit: CAP_SYS_RESOURCE)",
        ..sysctl("nofile", "", Group::Process, Unit::Count, Values::Nofile)
    },
    Knob {
        default: Some("none"),
        about: "I/O class and level of a process and all its threads: rt/0-7, be/0-7, idle, none. Obeyed by bfq \
                and in part by mq-deadline, and rt can starve everybody else.",
        source: "ioprio_set(2), Documentation/block/ioprio.rst",
        place: Place::IoPrio,
        persist: Persist::Elsewhere("set IOSchedulingClass= and IOSchedulingPriority= in the service's unit"),
        needs: "euid 0",
        ..sysctl("ioprio", "", Group::Process, Unit::Word, Values::IoPrio)
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_links_lead_somewhere() {
        for (n, knob) in KNOBS.iter().enumerate() {
            assert!(KNOBS[..n].iter().all(|k| k.name != knob.name), "{}", knob.name);
            for other in knob.linked() {
                assert!(KNOBS.iter().any(|k| k.name == other), "{other}");
            }
            if let Link::Pair(other) = knob.link {
                assert_eq!(find(other).unwrap().link, Link::Pair(knob.name));
            }
        }
    }

    #[test]
    fn every_entry_explains_itself() {
        for knob in KNOBS {
            assert!(knob.about.matches(". ").count() >= 1 && knob.about.ends_with('.'), "{}", knob.name);
            assert!(!knob.default_words().is_empty() && !knob.source.is_empty(), "{}", knob.name);
        }
        assert!(KNOBS.windows(2).all(|w| w[0].group <= w[1].group), "groups stand together");
    }

    #[test]
    fn short_names_work_where_they_are_unambiguous() {
        assert_eq!(find("dirty_ratio").unwrap().name, "vm.dirty_ratio");
        assert_eq!(find("max_ratio").unwrap().name, "bdi.max_ratio");
        assert!(find("ratio").is_none() && find("").is_none() && find("vm.bogus").is_none());
    }
}
