//! The list of all knobs.
//!
//! Descriptions follow Documentation/admin-guide/sysctl/{vm,kernel}.rst, Documentation/ABI/stable/sysfs-block,
//! Documentation/ABI/testing/sysfs-class-bdi and Documentation/admin-guide/mm/transhuge.rst.

use super::knob::AllowedValues::{self, Range};
use super::knob::RangeBound::{Fixed, HwSectorsKb, Memory, MemoryKb, PageKb, Pages};
use super::knob::{Knob, KnobGroup, KnobLink, KnobLocation, KnobUnit, PersistMethod};

const INT_MAX: i64 = i32::MAX as i64;
const ROOT_ONLY: &str = "euid 0";

const fn fixed_range(min: i64, max: i64) -> AllowedValues {
    Range(Fixed(min), Fixed(max))
}

/// A sysctl knob; entries set the remaining fields.
const fn sysctl_knob(name: &'static str, group: KnobGroup, unit: KnobUnit, values: AllowedValues) -> Knob {
    Knob {
        name,
        group,
        unit,
        values,
        default: None,
        default_text: "",
        description: "",
        source: "Documentation/admin-guide/sysctl/vm.rst",
        location: KnobLocation::Sysctl,
        link: KnobLink::Independent,
        persist_method: PersistMethod::Sysctl,
        requires: ROOT_ONLY,
    }
}

const fn queue_knob(name: &'static str, unit: KnobUnit, values: AllowedValues) -> Knob {
    Knob {
        location: KnobLocation::Queue,
        persist_method: PersistMethod::Udev,
        source: "Documentation/ABI/stable/sysfs-block",
        ..sysctl_knob(name, KnobGroup::Device, unit, values)
    }
}

const fn bdi_knob(name: &'static str, unit: KnobUnit, values: AllowedValues) -> Knob {
    Knob {
        location: KnobLocation::Bdi,
        persist_method: PersistMethod::Udev,
        source: "Documentation/ABI/testing/sysfs-class-bdi",
        ..sysctl_knob(name, KnobGroup::Bdi, unit, values)
    }
}

/// The knob with this name. The part after the last dot suffices if it is unambiguous.
pub fn find_knob(name: &str) -> Option<&'static Knob> {
    if let Some(knob) = KNOBS.iter().find(|k| k.name == name) {
        return Some(knob);
    }
    let mut short = KNOBS.iter().filter(|k| k.name.rsplit('.').next() == Some(name));
    match (short.next(), short.next()) {
        (Some(knob), None) => Some(knob),
        _ => None,
    }
}

/// All knobs, sorted by group.
pub static KNOBS: &[Knob] = &[
    Knob {
        default: Some("20"),
        link: KnobLink::Pair("vm.dirty_bytes"),
        description: "Share of dirtyable memory (free and file pages, not RAM) at which a process that writes must \
                wait for the disk. High lets bursts run at memory speed and makes the later stall, the data lost \
                in a crash and the time of an fsync larger.",
        ..sysctl_knob("vm.dirty_ratio", KnobGroup::Writeback, KnobUnit::Percent, fixed_range(1, 100))
    },
    Knob {
        default: Some("0"),
        link: KnobLink::Pair("vm.dirty_ratio"),
        description: "The same limit in bytes; writing it sets dirty_ratio to 0. Costs what the ratio costs, but does \
                not grow with memory: the choice for big machines with slow disks.",
        ..sysctl_knob("vm.dirty_bytes", KnobGroup::Writeback, KnobUnit::Bytes, Range(Pages(2), Memory))
    },
    Knob {
        default: Some("10"),
        link: KnobLink::Pair("vm.dirty_background_bytes"),
        description: "Share of dirtyable memory at which the kernel starts writing in the background. Low spreads the \
                writing out and writes again what changes again; high collects rewrites into one write and \
                leaves more to do at once.",
        ..sysctl_knob("vm.dirty_background_ratio", KnobGroup::Writeback, KnobUnit::Percent, fixed_range(1, 100))
    },
    Knob {
        default: Some("0"),
        link: KnobLink::Pair("vm.dirty_background_ratio"),
        description: "The same threshold in bytes; writing it sets dirty_background_ratio to 0. Small values keep an \
                fsync short and cost throughput where pages are rewritten often.",
        ..sysctl_knob("vm.dirty_background_bytes", KnobGroup::Writeback, KnobUnit::Bytes, Range(Pages(1), Memory))
    },
    Knob {
        default: Some("3000"),
        description: "Age at which a dirty page is written whatever the thresholds say. Long saves rewrites and loses \
                more data in a crash.",
        ..sysctl_knob("vm.dirty_expire_centisecs", KnobGroup::Writeback, KnobUnit::Centisecs, fixed_range(0, 8_640_000))
    },
    Knob {
        default: Some("500"),
        description: "How often the flusher threads wake up to look for old pages; 0 stops periodic writeback. Rare \
                wake-ups write in larger lumps, and with 0 dirty pages stay until a threshold or an fsync.",
        ..sysctl_knob(
            "vm.dirty_writeback_centisecs",
            KnobGroup::Writeback,
            KnobUnit::Centisecs,
            fixed_range(0, 8_640_000),
        )
    },
    Knob {
        default: Some("60"),
        description: "Assumed cost of swapping against dropping file pages when memory is short: 100 is equal, 200 \
                favours swapping. Low keeps programs in memory and costs file cache; 0 does not forbid swap.",
        ..sysctl_knob("vm.swappiness", KnobGroup::Memory, KnobUnit::Count, fixed_range(0, 200))
    },
    Knob {
        default: Some("3"),
        description: "Pages read from swap at once, as a power of two: 3 is 8 pages, 0 one page. 0 suits zram and fast \
                disks; on a spinning disk it costs a seek for every page.",
        ..sysctl_knob("vm.page-cluster", KnobGroup::Memory, KnobUnit::Count, fixed_range(0, 10))
    },
    Knob {
        default: Some("100"),
        description: "How eagerly directory entries and inodes are dropped, in percent of a fair share. Low keeps \
                metadata in memory at the file cache's cost, and 0 never drops it, which can end in out of memory.",
        ..sysctl_knob("vm.vfs_cache_pressure", KnobGroup::Memory, KnobUnit::Count, fixed_range(0, 10_000))
    },
    Knob {
        default_text: "computed from memory size",
        description: "Memory kept free for allocations that cannot wait. More avoids direct reclaim in bursts and is \
                lost to everything else.",
        ..sysctl_knob("vm.min_free_kbytes", KnobGroup::Memory, KnobUnit::KiB, Range(Fixed(1024), MemoryKb(10)))
    },
    Knob {
        default: Some("10"),
        description: "Distance between the watermarks in 1/10000 of memory: how early kswapd starts and how long it \
                goes on. More lets fewer programs stall in direct reclaim and keeps more memory free.",
        ..sysctl_knob("vm.watermark_scale_factor", KnobGroup::Memory, KnobUnit::Count, fixed_range(1, 3000))
    },
    Knob {
        default_text: "set by the kernel's build",
        description: "Whether programs get 2 MiB pages: always, only where they ask (madvise), or never. `always` makes \
                fork-and-snapshot databases copy 2 MiB for every page they touch and stall.",
        source: "Documentation/admin-guide/mm/transhuge.rst",
        location: KnobLocation::Sys("kernel/mm/transparent_hugepage/enabled"),
        link: KnobLink::Recomputes(&["vm.min_free_kbytes"]),
        persist_method: PersistMethod::Tmpfiles,
        ..sysctl_knob("transparent_hugepage.enabled", KnobGroup::HugePages, KnobUnit::Word, AllowedValues::Listed)
    },
    Knob {
        default_text: "madvise",
        description: "Whether a page fault may stop to make a huge page. `always` trades stalls in the fault for more \
                huge pages; `defer` leaves the work to the background.",
        source: "Documentation/admin-guide/mm/transhuge.rst",
        location: KnobLocation::Sys("kernel/mm/transparent_hugepage/defrag"),
        persist_method: PersistMethod::Tmpfiles,
        ..sysctl_knob("transparent_hugepage.defrag", KnobGroup::HugePages, KnobUnit::Word, AllowedValues::Listed)
    },
    Knob {
        default: Some("0"),
        description: "Counts how long each task waits for its disk, swap and memory. Costs a few percent of a context \
                switch; tasks are counted only from the moment it is on.",
        source: "Documentation/accounting/delay-accounting.rst",
        ..sysctl_knob("kernel.task_delayacct", KnobGroup::Kernel, KnobUnit::Switch, fixed_range(0, 1))
    },
    Knob {
        default: Some("120"),
        description: "After how long in uninterruptible sleep a task is reported in the kernel log; 0 never. Short \
                reports more and spends hung_task_warnings sooner.",
        source: "Documentation/admin-guide/sysctl/kernel.rst",
        ..sysctl_knob("kernel.hung_task_timeout_secs", KnobGroup::Kernel, KnobUnit::Seconds, fixed_range(0, 31_536_000))
    },
    Knob {
        default: Some("10"),
        description: "How many hung tasks will still be reported; counts down, -1 is without end. At 0 the kernel is \
                silent about every further one.",
        source: "Documentation/admin-guide/sysctl/kernel.rst",
        ..sysctl_knob("kernel.hung_task_warnings", KnobGroup::Kernel, KnobUnit::Count, fixed_range(-1, INT_MAX))
    },
    Knob {
        default_text: "mq-deadline on one hardware queue, none on several",
        description: "Who orders the requests: none, mq-deadline, kyber, bfq. Only some know I/O priorities and cgroup \
                weights, each costs CPU per request, and a switch empties the queue and resets nr_requests.",
        link: KnobLink::Recomputes(&["nr_requests", "wbt_lat_usec"]),
        ..queue_knob("scheduler", KnobUnit::Word, AllowedValues::Listed)
    },
    Knob {
        default: Some("128"),
        description: "How far ahead of a sequential reader the kernel reads. More helps streams on slow or striped \
                disks and wastes bandwidth and cache on random readers.",
        ..queue_knob("read_ahead_kb", KnobUnit::KiB, fixed_range(0, 1 << 20))
    },
    Knob {
        default_text: "what the device and scheduler choose",
        description: "Requests a queue may hold for each direction. More lets the scheduler merge and sort more and \
                lets one writer put more in front of everybody else.",
        ..queue_knob("nr_requests", KnobUnit::Count, fixed_range(4, 65_536))
    },
    Knob {
        default_text: "75000 on spinning disks, 2000 elsewhere",
        description: "Read latency that background writeback is throttled to keep; 0 off, -1 the default. Low protects \
                readers and costs write throughput.",
        ..queue_knob("wbt_lat_usec", KnobUnit::Microsecs, fixed_range(-1, 10_000_000))
    },
    Knob {
        default_text: "1280, or less if the device takes less",
        description: "Largest request sent to the device, at most max_hw_sectors_kb. Large suits streams; small keeps \
                a big request from holding up small ones.",
        ..queue_knob("max_sectors_kb", KnobUnit::KiB, Range(PageKb, HwSectorsKb))
    },
    Knob {
        default: Some("100"),
        description: "Largest share of the dirty limit this device may fill. Keeps a slow stick or a network mount \
                from using up everybody's dirty memory, at the price of its own write speed.",
        ..bdi_knob("bdi.max_ratio", KnobUnit::Percent, fixed_range(1, 100))
    },
    Knob {
        default: Some("0"),
        description: "Share of the dirty limit kept for this device. What is kept for one is missing for the others, \
                and all shares together stay below 100.",
        ..bdi_knob("bdi.min_ratio", KnobUnit::Percent, fixed_range(0, 99))
    },
    Knob {
        default: Some("0"),
        description: "Holds the device to its share even while the machine has few dirty pages. Bounds what is lost \
                when it is pulled, and costs burst speed.",
        ..bdi_knob("bdi.strict_limit", KnobUnit::Switch, fixed_range(0, 1))
    },
    Knob {
        default: Some("relatime"),
        description: "Whether reading a file writes its access time. noatime saves those writes and breaks the few \
                programs that compare access with modification times.",
        source: "mount(8), mount_setattr(2)",
        location: KnobLocation::Atime,
        persist_method: PersistMethod::Manual("put the option into the mount's line in /etc/fstab or its mount unit"),
        requires: "euid 0, Linux 5.12",
        ..sysctl_knob("atime", KnobGroup::Mount, KnobUnit::Word, AllowedValues::Atime)
    },
    Knob {
        default: Some("1024:4096"),
        description: "Open files a process may have, SOFT or SOFT:HARD. Too low fails with EMFILE under load; programs \
                that close every possible descriptor at start get slow with a huge one.",
        source: "prlimit(2)",
        location: KnobLocation::Nofile,
        persist_method: PersistMethod::Manual("set LimitNOFILE= in the service's unit, or limits.conf for logins"),
        requires: "euid 0 (raising the hard limit: CAP_SYS_RESOURCE)",
        ..sysctl_knob("nofile", KnobGroup::Process, KnobUnit::Count, AllowedValues::Nofile)
    },
    Knob {
        default: Some("none"),
        description: "I/O class and level of a process and all its threads: rt/0-7, be/0-7, idle, none. Obeyed by bfq \
                and in part by mq-deadline, and rt can starve everybody else.",
        source: "ioprio_set(2), Documentation/block/ioprio.rst",
        location: KnobLocation::IoPrio,
        persist_method: PersistMethod::Manual("set IOSchedulingClass= and IOSchedulingPriority= in the service's unit"),
        requires: "euid 0",
        ..sysctl_knob("ioprio", KnobGroup::Process, KnobUnit::Word, AllowedValues::IoPrio)
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_links_resolve() {
        for (n, knob) in KNOBS.iter().enumerate() {
            assert!(KNOBS[..n].iter().all(|k| k.name != knob.name), "{}", knob.name);
            for other in knob.linked() {
                assert!(KNOBS.iter().any(|k| k.name == *other), "{other}");
            }
            if let KnobLink::Pair(other) = knob.link {
                assert_eq!(find_knob(other).unwrap().link, KnobLink::Pair(knob.name));
            }
        }
    }

    #[test]
    fn every_knob_is_documented() {
        for knob in KNOBS {
            assert!(knob.description.matches(". ").count() >= 1 && knob.description.ends_with('.'), "{}", knob.name);
            assert!(!knob.default_display().is_empty() && !knob.source.is_empty(), "{}", knob.name);
        }
        assert!(KNOBS.windows(2).all(|w| w[0].group <= w[1].group), "groups stand together");
    }

    #[test]
    fn unambiguous_short_names_resolve() {
        assert_eq!(find_knob("dirty_ratio").unwrap().name, "vm.dirty_ratio");
        assert_eq!(find_knob("max_ratio").unwrap().name, "bdi.max_ratio");
        assert!(find_knob("ratio").is_none() && find_knob("").is_none() && find_knob("vm.bogus").is_none());
    }
}
