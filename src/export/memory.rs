//! Dirty pages, swap, pressure and memory: one list for the Memory view and for exports.

use super::table::Table;
use crate::model::memory_stalls::{ProcessStalls, RECLAIM, StallRate, THROTTLE};
use crate::model::pressure::{PsiAverages, ResourcePressure};
use crate::model::reading::Reading;
use crate::model::snapshot::Snapshot;
use crate::sanitize::sanitize;
use crate::units::{format_bytes, write_bytes};

const MAX_TASKS: usize = 10;
const STALLS: &str = "Stalled on memory";
const STALL_NAMES: [&str; 2] = ["throttled", "direct reclaim"];

/// Name and value of a quantity, and whether it deserves attention.
pub(crate) type MemoryFact = (String, String, bool);

fn fact(name: &str, value: String, warn: bool) -> MemoryFact {
    (name.to_owned(), value, warn)
}

pub(crate) fn memory_facts(snapshot: &Snapshot, now_boot_ns: u64) -> Vec<(&'static str, Vec<MemoryFact>)> {
    let now = now_boot_ns;
    vec![
        ("Dirty pages", facts_of(&snapshot.writeback, now, |_| writeback_facts(snapshot))),
        ("Swap", facts_of(&snapshot.swap, now, |_| swap_facts(snapshot))),
        (STALLS, stall_facts(snapshot, now)),
        (
            "Pressure %, some / full, 10 60 300 s",
            facts_of(&snapshot.pressure, now, |p| {
                let all = [("cpu", p.cpu), ("memory", p.memory), ("io", p.io)];
                all.map(|(name, pressure)| pressure_fact(name, pressure)).into()
            }),
        ),
        (
            "Memory",
            facts_of(&snapshot.mem, now, |m| {
                vec![
                    fact("total", format_bytes(m.total), false),
                    fact("available", level(m.available), m.available.is_some_and(|a| a < m.total / 20)),
                    fact("free", format_bytes(m.free), false),
                    fact("page cache", format_bytes(m.cached.saturating_add(m.buffers)), false),
                    fact("anonymous", level(m.anon), false),
                    fact("shared", level(m.shmem), false),
                ]
            }),
        ),
    ]
}

/// The facts of a reading, or why there is none.
fn facts_of<T>(reading: &Reading<T>, now_boot_ns: u64, facts: impl Fn(&T) -> Vec<MemoryFact>) -> Vec<MemoryFact> {
    let missing = || vec![fact("-", reading.unavailable_reason(now_boot_ns).unwrap_or_default(), true)];
    reading.ok().map_or_else(missing, facts)
}

fn level(n: Option<u64>) -> String {
    n.map_or("-".into(), format_bytes)
}

fn writeback_facts(snapshot: &Snapshot) -> Vec<MemoryFact> {
    let w = snapshot.writeback.ok().cloned().unwrap_or_default();
    let total = w.unwritten_bytes();
    let threshold = |name, limit: Option<u64>| fact(name, level(limit), total.zip(limit).is_some_and(|(t, l)| t > l));
    vec![
        fact("dirty", level(w.dirty_bytes), false),
        fact("writeback", level(w.writeback_bytes), false),
        threshold("background threshold", w.background_threshold_bytes),
        threshold("writers slowed above", w.freerun_bytes),
        threshold("limit", w.dirty_threshold_bytes),
        fact("dirtied/s", format_optional_bytes(w.dirtied_bytes_per_s), false),
        fact("written/s", format_optional_bytes(w.written_bytes_per_s), false),
    ]
}

fn swap_facts(snapshot: &Snapshot) -> Vec<MemoryFact> {
    let s = snapshot.swap.ok().cloned().unwrap_or_default();
    let rate = |name, n: Option<f64>| fact(name, format_optional_bytes(n), n.is_some_and(|n| n > 0.0));
    let mut out = vec![
        fact("used", format!("{} of {}", level(s.used_bytes), level(s.total_bytes)), false),
        rate("si/s", s.in_bytes_per_s),
        rate("so/s", s.out_bytes_per_s),
        fact("major faults/s", snapshot.major_faults_per_s.map_or("-".into(), |n| format!("{n:.0}")), false),
    ];
    out.extend(snapshot.swap_areas.ok().into_iter().flatten().map(|area| {
        let (used, size) = (format_bytes(area.used_bytes), format_bytes(area.size_bytes));
        fact(&sanitize(&area.name), format!("{used} of {size} prio {}", area.priority), false)
    }));
    out
}

fn pressure_fact(name: &str, p: ResourcePressure) -> MemoryFact {
    let part =
        |psi: Option<PsiAverages>| psi.map_or("-".into(), |s| format!("{:.1} {:.1} {:.1}", s.avg10, s.avg60, s.avg300));
    let high = p.full.is_some_and(|psi| psi.avg10 >= 10.0) && name != "cpu";
    fact(name, format!("{} / {}", part(p.some), part(p.full)), high)
}

fn stall_facts(snapshot: &Snapshot, now_boot_ns: u64) -> Vec<MemoryFact> {
    let Some(stalls) = snapshot.memory_stalls.ok() else {
        return vec![fact("-", snapshot.memory_stalls.unavailable_reason(now_boot_ns).unwrap_or_default(), false)];
    };
    let mut out: Vec<MemoryFact> = [THROTTLE, RECLAIM]
        .map(|kind| {
            let total = stalls.totals[kind].map_or("-".into(), format_stall);
            fact(STALL_NAMES[kind], total, stalls.has_stalls(kind))
        })
        .into();
    out.extend(stalls.unavailable.iter().map(|why| fact("-", why.clone(), true)));
    if stalls.dropped > 0 {
        out.push(fact("not counted", format!("{}: too many processes", stalls.dropped), true));
    }
    out
}

/// `812 ms/s, max 200`, or `none`.
fn format_stall(s: StallRate) -> String {
    match s.count {
        0 => "none".into(),
        _ => format!("{} ms/s, max {}", format_millis(s.ms_per_s), format_millis(s.max_ms)),
    }
}

/// Milliseconds with the significant decimals.
pub(crate) fn format_millis(ms: f64) -> String {
    match ms {
        ms if ms >= 9.95 => format!("{ms:.0}"),
        ms if ms >= 0.0995 => format!("{ms:.1}"),
        ms => format!("{ms:.3}"),
    }
}

fn format_task_stalls(task: &ProcessStalls) -> String {
    let kinds = STALL_NAMES.iter().zip(task.rates).filter(|(_, rate)| rate.count > 0);
    kinds.map(|(name, rate)| format!("{name} {}", format_stall(rate))).collect::<Vec<_>>().join("; ")
}

/// `12.3M`, or `-`.
pub(crate) fn format_optional_bytes(n: Option<f64>) -> String {
    let mut out = String::new();
    match n {
        Some(n) => write_bytes(&mut out, n),
        None => out.push('-'),
    }
    out
}

pub(crate) fn build_table(title: String, snapshot: &Snapshot, now_boot_ns: u64) -> Table {
    let mut table = Table::new(title, &[("Group", false), ("Quantity", false), ("Value", true)]);
    for (group, list) in memory_facts(snapshot, now_boot_ns) {
        table.rows.extend(list.into_iter().map(|(name, value, _)| vec![group.to_owned(), name, value]));
    }
    for task in snapshot.memory_stalls.ok().into_iter().flat_map(|s| s.processes.iter().take(MAX_TASKS)) {
        table.rows.push(vec![STALLS.into(), task.label(), format_task_stalls(task)]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::memory::{MemRaw, WritebackRate};

    #[test]
    fn sizes_of_a_damaged_recording_do_not_overflow() {
        let mem = MemRaw { cached: u64::MAX, buffers: 4096, ..Default::default() };
        let dirty = WritebackRate { dirty_bytes: Some(u64::MAX), writeback_bytes: Some(4096), ..Default::default() };
        let snapshot = Snapshot { mem: Reading::Ok(mem), writeback: Reading::Ok(dirty), ..Default::default() };
        let facts = memory_facts(&snapshot, 0);
        let (_, memory) = facts.iter().find(|(group, _)| *group == "Memory").unwrap();
        assert!(memory.iter().any(|(name, value, _)| name == "page cache" && value == "16.0E"), "{memory:?}");
    }
}
