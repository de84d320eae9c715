//! Servers that fork to write a snapshot of their memory: the fork copies the page tables, and every page
//! written meanwhile is copied; with transparent huge pages that is 2 MiB for one byte.

use crate::doctor::finding::{Finding, FindingSubject, NavTarget, Rule, RuleStatus, Severity};
use crate::doctor::format;
use crate::doctor::known_servers::ServerKind;
use crate::doctor::rule_context::RuleContext;

/// Huge pages.
pub const THP_ALWAYS: Rule = Rule {
    name: "thp-always",
    description: "transparent huge pages `always` with a server that forks for snapshots",
    evaluate: evaluate_thp,
};
/// What a fork costs.
pub const FORK_COST: Rule = Rule {
    name: "fork-cost",
    description: "a large process that forks for snapshots stalls meanwhile",
    evaluate: evaluate_fork_cost,
};

/// A page table entry is 8 bytes for each 4 KiB (x86-64 and arm64 with 4 KiB pages): 24 GiB need 48 MiB.
const PAGE_TABLE_SHARE: f64 = 8.0 / 4096.0;
/// Milliseconds a GiB: physical machines and VMware 9 to 13, KVM 23 in the guides' measurements.
const FORK_MS_PER_GIB: (f64, f64) = (9.0, 23.0);
/// From here on clients notice, ms.
const NOTICEABLE_MS: f64 = 100.0;
/// Smaller processes are not worth a word, bytes.
const MIN_BYTES: u64 = 4 << 30;
const GIB: f64 = 1_073_741_824.0;

fn snapshot_servers<'c>(case: &'c RuleContext<'_>) -> impl Iterator<Item = u32> + 'c {
    case.servers(|s| s == ServerKind::ForksForSnapshots)
}

fn evaluate_thp(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    let Some(facts) = &case.system.slow_facts.latest else {
        return RuleStatus::NeedsMoreData("the kernel's settings");
    };
    let Some(thp) = &facts.thp else { return RuleStatus::Evaluated };
    if thp != "always" {
        return RuleStatus::Evaluated;
    }
    for at in snapshot_servers(case) {
        let row = case.system.processes.row(at);
        out.push(
            Finding::new(
                THP_ALWAYS.name,
                Severity::Warn,
                FindingSubject::Task(row.key(), row.comm.to_string()),
                format!("transparent huge pages are `always` while {} ({}) runs", row.comm, row.pid),
            )
            .fact("transparent_hugepage", "always")
            .fact("resident", format::bytes(row.rss_bytes as f64))
            .why(
                "While its child writes a snapshot, each first write to a page copies it: 2 MiB instead of 4 KiB. Latency \
                 jumps and memory use grows towards twice its size.",
            )
            .advise_at(
                "set transparent_hugepage to madvise (or never), then restart the server",
                "programs that gain from huge pages without asking for them lose a few per cent",
                NavTarget::Knob("transparent_hugepage.enabled".into()),
            )
            .see_also(NavTarget::Task(row.key())),
        );
    }
    RuleStatus::Evaluated
}

fn evaluate_fork_cost(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    if let Some(why) = case.system.processes_status.unavailable_reason(case.now_ns()) {
        return RuleStatus::Unavailable(why);
    }
    let measured = case.system.slow_facts.latest.as_ref().and_then(|f| f.results.iter().find_map(|r| r.fork_ms_per_gb));
    for at in snapshot_servers(case) {
        let row = case.system.processes.row(at);
        let all = row.rss_bytes + row.swap_bytes.unwrap_or(0);
        if all < MIN_BYTES {
            continue;
        }
        let gib = all as f64 / GIB;
        let (low, high) =
            measured.map_or((gib * FORK_MS_PER_GIB.0, gib * FORK_MS_PER_GIB.1), |ms| (gib * ms, gib * ms));
        let takes = match measured {
            Some(_) => format::ms(low),
            None => format!("{} to {}", format::ms(low), format::ms(high)),
        };
        out.push(
            Finding::new(
                FORK_COST.name,
                if low >= NOTICEABLE_MS { Severity::Warn } else { Severity::Note },
                FindingSubject::Task(row.key(), row.comm.to_string()),
                format!("a fork of {} ({}) stops it for about {takes}", row.comm, row.pid),
            )
            .fact("memory", format::bytes(all as f64))
            .fact("page tables to copy", format::bytes(all as f64 * PAGE_TABLE_SHARE))
            .fact(
                "cost of a fork",
                match measured {
                    Some(ms) => format!("{ms:.1} ms/GiB, measured here"),
                    None => format!("{} to {} ms/GiB, as measured elsewhere", FORK_MS_PER_GIB.0, FORK_MS_PER_GIB.1),
                },
            )
            .why("fork() copies the page tables while the server stands still: no client is answered in that time.")
            .advise_at(
                "measure what a fork costs on this machine",
                "touches 1 GiB of memory for some seconds",
                NavTarget::Bench("fork", None),
            )
            .advise("snapshot on a replica, less often, or split the data over smaller processes", "an older snapshot")
            .see_also(NavTarget::Task(row.key())),
        );
    }
    RuleStatus::Evaluated
}
