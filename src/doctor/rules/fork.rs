//! Servers that fork to save their memory: fork() copies the page tables, and every page written meanwhile is copied.
//! With transparent huge pages, writing one byte copies 2 MiB.

use super::prelude::*;
use crate::doctor::known_servers::ServerKind;

/// A page table entry is 8 bytes for each 4 KiB (x86-64, and arm64 with 4 KiB pages): 48 MiB for 24 GiB.
const PAGE_TABLE_SHARE: f64 = 8.0 / 4096.0;
/// As published by Redis: physical machines and VMware 9 to 13, KVM 23.
const FORK_MS_PER_GIB: (f64, f64) = (9.0, 23.0);
/// From here on clients notice.
const NOTICEABLE_MS: f64 = 100.0;
/// Smaller processes fork fast enough.
const MIN_BYTES: u64 = 4 << 30;
const GIB: f64 = 1_073_741_824.0;

pub(super) fn evaluate_thp(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let facts = ctx.require_facts("kernel settings")?;
    if facts.thp.as_deref() != Some("always") {
        return Ok(());
    }
    let servers = ctx.servers(ServerKind::ForksForSnapshots);
    for row in servers.filter(|row| !facts.without_thp.contains(&row.key())) {
        let title = format!("transparent huge pages are `always` while {} runs", row.label());
        Finding::of_task(Severity::Warn, row.key(), &row.comm(), title)
            .fact("transparent_hugepage", "always")
            .fact("resident", format::bytes(row.raw.rss_bytes as f64))
            .why(
                "While its child saves a snapshot, the first write to each page copies 2 MiB instead of 4 KiB: \
                 latency rises, and memory use grows up to double.",
            )
            .advise_at(
                "set transparent_hugepage to madvise (or never), then restart the server",
                knob("transparent_hugepage.enabled"),
            )
            .costs("programs that gain from huge pages without asking for them lose a few per cent")
            .report(out);
    }
    Ok(())
}

pub(super) fn evaluate_fork_cost(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    ctx.require(&ctx.system.processes_status)?;
    let facts = ctx.system.slow_facts.latest.as_ref();
    let measured = facts.and_then(|facts| facts.results.iter().find_map(|result| result.fork_ms_per_gb));
    for row in ctx.servers(ServerKind::ForksForSnapshots) {
        let bytes = row.raw.rss_bytes + row.raw.swap_bytes.unwrap_or(0);
        if bytes < MIN_BYTES {
            continue;
        }
        let gib = bytes as f64 / GIB;
        let (low, duration, cost) = match measured {
            Some(ms) => (gib * ms, format::ms(gib * ms), format!("{ms:.1} ms/GiB, measured here")),
            None => {
                let (low, high) = (gib * FORK_MS_PER_GIB.0, gib * FORK_MS_PER_GIB.1);
                let cost = format!("{} to {} ms/GiB, measured elsewhere", FORK_MS_PER_GIB.0, FORK_MS_PER_GIB.1);
                (low, format!("{} to {}", format::ms(low), format::ms(high)), cost)
            }
        };
        let severity = if low >= NOTICEABLE_MS { Severity::Warn } else { Severity::Note };
        let title = format!("fork() stops {} for about {duration}", row.label());
        Finding::of_task(severity, row.key(), &row.comm(), title)
            .fact("memory", format::bytes(bytes as f64))
            .fact("page tables to copy", format::bytes(bytes as f64 * PAGE_TABLE_SHARE))
            .fact("cost of fork()", cost)
            .why("fork() copies the page tables while the server is stopped: no client is answered meanwhile.")
            .advise_at("measure what fork() costs on this machine", NavTarget::Bench("fork", None))
            .costs("uses 1 GiB of memory for some seconds")
            .advise("snapshot on a replica, less often, or split the data over smaller processes")
            .costs("an older snapshot")
            .report(out);
    }
    Ok(())
}
