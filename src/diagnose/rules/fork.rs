//! Servers that fork to write a snapshot of their memory: the fork copies the page tables, and every page
//! written meanwhile is copied; with transparent huge pages that is 2 MiB for one byte.

use crate::diagnose::case::Case;
use crate::diagnose::finding::{Finding, Judged, Jump, Rule, Severity, Subject};
use crate::diagnose::known::Server;
use crate::diagnose::words;

/// Huge pages.
pub const PAGES: Rule = Rule {
    name: "thp-always",
    about: "transparent huge pages `always` with a server that forks for snapshots",
    look: pages,
};
/// What a fork costs.
pub const COST: Rule = Rule {
    name: "fork-cost",
    about: "a large process that forks for snapshots stalls meanwhile",
    look: cost,
};

/// A page table entry is 8 bytes for each 4 KiB (x86-64 and arm64 with 4 KiB pages): 24 GiB need 48 MiB.
const TABLE_SHARE: f64 = 8.0 / 4096.0;
/// Milliseconds a GiB: physical machines and VMware 9 to 13, KVM 23 in the guides' measurements.
const MS_PER_GB: (f64, f64) = (9.0, 23.0);
/// From here on clients notice, ms.
const NOTICED_MS: f64 = 100.0;
/// Smaller processes are not worth a word, bytes.
const LARGE: u64 = 4 << 30;
const GIB: f64 = 1_073_741_824.0;

fn forkers<'c>(case: &'c Case<'_>) -> impl Iterator<Item = u32> + 'c {
    case.servers(|s| s == Server::Forker)
}

fn pages(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    let Some(facts) = &case.world.slow_facts.latest else { return Judged::NotYet("the kernel's settings") };
    let Some(thp) = &facts.thp else { return Judged::Yes };
    if thp != "always" {
        return Judged::Yes;
    }
    for at in forkers(case) {
        let row = case.world.processes.row(at);
        out.push(
            Finding::new(
                PAGES.name,
                Severity::Warn,
                Subject::Task(row.key(), row.comm.to_string()),
                format!("transparent huge pages are `always` while {} ({}) runs", row.comm, row.pid),
            )
            .fact("transparent_hugepage", "always")
            .fact("resident", words::bytes(row.rss_bytes as f64))
            .why(
                "While its child writes a snapshot, each first write to a page copies it: 2 MiB instead of 4 KiB. Latency \
                 jumps and memory use grows towards twice its size.",
            )
            .advise_at(
                "set transparent_hugepage to madvise (or never), then restart the server",
                "programs that gain from huge pages without asking for them lose a few per cent",
                Jump::Knob("transparent_hugepage.enabled".into()),
            )
            .look_at(Jump::Task(row.key())),
        );
    }
    Judged::Yes
}

fn cost(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    if let Some(why) = case.world.processes_status.unavailable_reason(case.now_ns()) {
        return Judged::Cannot(why);
    }
    let measured =
        case.world.slow_facts.latest.as_ref().and_then(|f| f.results.iter().find_map(|r| r.fork_ms_per_gb));
    for at in forkers(case) {
        let row = case.world.processes.row(at);
        let all = row.rss_bytes + row.swap_bytes.unwrap_or(0);
        if all < LARGE {
            continue;
        }
        let gib = all as f64 / GIB;
        let (low, high) = measured.map_or((gib * MS_PER_GB.0, gib * MS_PER_GB.1), |ms| (gib * ms, gib * ms));
        let takes = match measured {
            Some(_) => words::ms(low),
            None => format!("{} to {}", words::ms(low), words::ms(high)),
        };
        out.push(
            Finding::new(
                COST.name,
                if low >= NOTICED_MS { Severity::Warn } else { Severity::Note },
                Subject::Task(row.key(), row.comm.to_string()),
                format!("a fork of {} ({}) stops it for about {takes}", row.comm, row.pid),
            )
            .fact("memory", words::bytes(all as f64))
            .fact("page tables to copy", words::bytes(all as f64 * TABLE_SHARE))
            .fact(
                "cost of a fork",
                match measured {
                    Some(ms) => format!("{ms:.1} ms/GiB, measured here"),
                    None => format!("{} to {} ms/GiB, as measured elsewhere", MS_PER_GB.0, MS_PER_GB.1),
                },
            )
            .why("fork() copies the page tables while the server stands still: no client is answered in that time.")
            .advise_at(
                "measure what a fork costs on this machine",
                "touches 1 GiB of memory for some seconds",
                Jump::Bench("fork", None),
            )
            .advise("snapshot on a replica, less often, or split the data over smaller processes", "an older snapshot")
            .look_at(Jump::Task(row.key())),
        );
    }
    Judged::Yes
}
