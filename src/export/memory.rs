//! Dirty pages, swap, pressure and memory: one list for the Memory view and for exports.

use super::table::Table;
use crate::model::memory_stalls::{self, ProcessStalls, RECLAIM, THROTTLE};
use crate::model::pressure::PsiAverages;
use crate::model::snapshot::Snapshot;
use crate::sanitize::sanitize;
use crate::units::{format_bytes, write_bytes};

/// Stalled tasks listed.
const MAX_TASKS: usize = 10;

/// Name and value of a quantity, and whether it deserves attention.
pub type MemoryFact = (String, String, bool);

/// All quantities by group.
pub fn memory_facts(snapshot: &Snapshot, now_boot_ns: u64) -> Vec<(&'static str, Vec<MemoryFact>)> {
    let now = now_boot_ns;
    let level = |n: Option<u64>| n.map_or("-".into(), format_bytes);
    let fact = |name: &str, value: String, warn: bool| (name.to_owned(), value, warn);
    let mut groups = Vec::new();
    let missing = |why: Option<String>| vec![fact("-", why.unwrap_or_default(), true)];
    groups.push((
        "Dirty pages",
        match snapshot.writeback.ok() {
            None => missing(snapshot.writeback.unavailable_reason(now)),
            Some(w) => {
                let total = w.dirty_bytes.zip(w.writeback_bytes).map(|(d, b)| d + b);
                let over = |limit: Option<u64>| total.zip(limit).is_some_and(|(t, l)| t > l);
                vec![
                    fact("dirty", level(w.dirty_bytes), false),
                    fact("writeback", level(w.writeback_bytes), false),
                    fact("background from", level(w.background_threshold_bytes), over(w.background_threshold_bytes)),
                    fact("throttled from", level(w.freerun_bytes), over(w.freerun_bytes)),
                    fact("limit", level(w.dirty_threshold_bytes), over(w.dirty_threshold_bytes)),
                    fact("dirtied/s", format_optional_bytes(w.dirtied_bytes_per_s), false),
                    fact("written/s", format_optional_bytes(w.written_bytes_per_s), false),
                ]
            }
        },
    ));
    groups.push((
        "Swap",
        match snapshot.swap.ok() {
            None => missing(snapshot.swap.unavailable_reason(now)),
            Some(s) => {
                let moving = |n: Option<f64>| n.is_some_and(|n| n > 0.0);
                let mut list = vec![
                    fact("used", format!("{} of {}", level(s.used_bytes), level(s.total_bytes)), false),
                    fact("si/s", format_optional_bytes(s.in_bytes_per_s), moving(s.in_bytes_per_s)),
                    fact("so/s", format_optional_bytes(s.out_bytes_per_s), moving(s.out_bytes_per_s)),
                    fact(
                        "major faults/s",
                        snapshot.major_faults_per_s.map_or("-".into(), |n| format!("{n:.0}")),
                        false,
                    ),
                ];
                for area in snapshot.swap_areas.ok().into_iter().flatten() {
                    let text = format!(
                        "{} of {} prio {}",
                        format_bytes(area.used_bytes),
                        format_bytes(area.size_bytes),
                        area.priority
                    );
                    list.push(fact(&sanitize(&area.name), text, false));
                }
                list
            }
        },
    ));
    groups.push(("Held up by memory", stall_facts(snapshot, now)));
    groups.push((
        "Pressure %, some / full, 10 60 300 s",
        match snapshot.pressure.ok() {
            None => missing(snapshot.pressure.unavailable_reason(now)),
            Some(p) => [("cpu", p.cpu), ("memory", p.memory), ("io", p.io)]
                .into_iter()
                .map(|(name, p)| {
                    let part = |s: Option<PsiAverages>| {
                        s.map_or("-".into(), |s| format!("{:.1} {:.1} {:.1}", s.avg10, s.avg60, s.avg300))
                    };
                    let high = p.full.is_some_and(|s| s.avg10 >= 10.0) && name != "cpu";
                    fact(name, format!("{} / {}", part(p.some), part(p.full)), high)
                })
                .collect(),
        },
    ));
    groups.push((
        "Memory",
        match snapshot.mem.ok() {
            None => missing(snapshot.mem.unavailable_reason(now)),
            Some(m) => vec![
                fact("total", format_bytes(m.total), false),
                fact("available", level(m.available), m.available.is_some_and(|a| a < m.total / 20)),
                fact("free", format_bytes(m.free), false),
                fact("page cache", format_bytes(m.cached + m.buffers), false),
                fact("anonymous", level(m.anon), false),
                fact("shared", level(m.shmem), false),
            ],
        },
    ));
    groups
}

/// Stalls of all tasks together.
fn stall_facts(snapshot: &Snapshot, now_boot_ns: u64) -> Vec<MemoryFact> {
    let Some(stalls) = snapshot.memory_stalls.ok() else {
        return vec![("-".into(), snapshot.memory_stalls.unavailable_reason(now_boot_ns).unwrap_or_default(), false)];
    };
    let fact = |name: &str, kind: usize| {
        let all = stalls.totals[kind];
        (name.to_owned(), all.map_or("-".into(), format_stall), stalls.has_stalls(kind))
    };
    let mut out = vec![fact("throttled", THROTTLE), fact("direct reclaim", RECLAIM)];
    out.extend(stalls.unavailable.iter().map(|why| ("-".into(), why.clone(), true)));
    if stalls.dropped > 0 {
        out.push(("not counted".into(), format!("{}: too many processes", stalls.dropped), true));
    }
    out
}

/// `812 ms/s, longest 200`, or `none`.
fn format_stall(s: memory_stalls::StallRate) -> String {
    match s.count {
        0 => "none".into(),
        _ => format!("{} ms/s, longest {}", format_millis(s.ms_per_s), format_millis(s.max_ms)),
    }
}

/// Milliseconds with the significant decimals.
pub fn format_millis(ms: f64) -> String {
    match ms {
        ms if ms >= 9.95 => format!("{ms:.0}"),
        ms if ms >= 0.0995 => format!("{ms:.1}"),
        ms => format!("{ms:.3}"),
    }
}

/// The stalls of one task.
fn format_task_stalls(task: &ProcessStalls) -> String {
    let names = ["throttled", "direct reclaim"];
    let kinds = names.iter().zip(task.rates).filter(|(_, k)| k.count > 0);
    kinds.map(|(name, k)| format!("{name} {}", format_stall(k))).collect::<Vec<_>>().join("; ")
}

/// `12.3M`, or `-`.
pub fn format_optional_bytes(n: Option<f64>) -> String {
    let mut out = String::new();
    match n {
        Some(n) => write_bytes(&mut out, n),
        None => out.push('-'),
    }
    out
}

/// The quantities as a table.
pub fn build_table(title: String, snapshot: &Snapshot, now_boot_ns: u64) -> Table {
    let mut table = Table::new(title, &[("Group", false), ("Quantity", false), ("Value", true)]);
    for (group, list) in memory_facts(snapshot, now_boot_ns) {
        for (name, value, _) in list {
            table.rows.push(vec![group.to_owned(), name, value]);
        }
    }
    for task in snapshot.memory_stalls.ok().into_iter().flat_map(|s| s.processes.iter().take(MAX_TASKS)) {
        table.rows.push(vec!["Held up by memory".into(), task.label(), format_task_stalls(task)]);
    }
    table
}
