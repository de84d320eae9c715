//! The table of control groups, and the lines about one.

use super::table::Table;
use crate::model::control_groups::columns::CONTROL_GROUP_COLUMNS;
use crate::model::control_groups::list::{self, ControlGroupQuery};
use crate::model::control_groups::{ControlGroupRate, GroupDeviceRate};
use crate::model::syncs::list::device_name;
use crate::model::system_state::SystemState;
use crate::model::topology::Topology;
use crate::units::format_bytes;

/// The groups as a tree. The notes say what is missing.
pub(crate) fn build_table(title: String, system: &SystemState, query: &ControlGroupQuery<'_>) -> Table {
    let mut table = Table::with_columns(title, CONTROL_GROUP_COLUMNS);
    let groups = &system.snapshot.control_groups;
    for row in &list::tree_rows(system, query) {
        table.push_values(CONTROL_GROUP_COLUMNS, |column| (column.value)(row));
    }
    match groups.ok() {
        Some(groups) => table.notes = list::notes(groups),
        None => table.notes.extend(groups.unavailable_reason(system.snapshot.time.boot_ns)),
    }
    table
}

/// The lines about one group: its devices with their limits, its memory.
pub(crate) fn describe(rate: &ControlGroupRate, topology: Option<&Topology>) -> Vec<String> {
    let mut lines: Vec<String> = match &rate.devices {
        None => vec!["I/O: no io or blkio controller for it, or no earlier reading".into()],
        Some(devices) if devices.is_empty() => vec!["I/O: none in the interval, and no limit".into()],
        Some(devices) => devices.iter().map(|device| describe_device(device, topology)).collect(),
    };
    lines.push(describe_memory(rate));
    if let Some((us, period)) = rate.limits.cpu_max {
        lines.push(format!("cpu.max: {us} of {period} microseconds"));
    }
    lines
}

/// `sda: write 900K/s (90 % of 1M), 9 writes/s`.
fn describe_device(device: &GroupDeviceRate, topology: Option<&Topology>) -> String {
    let names = ["read", "write", "reads", "writes"];
    let part = |at: usize| {
        let (rate, limit) = (device.rates[at], device.limits[at]);
        if rate == 0.0 && limit.is_none() {
            return None;
        }
        let text = |n: f64| if at < 2 { format_bytes(n as u64) } else { format!("{n:.0}") };
        let near = limit.map_or_else(String::new, |limit| {
            format!(" ({:.0} % of {})", rate * 100.0 / limit.max(1) as f64, text(limit as f64))
        });
        Some(format!("{} {}/s{near}", names[at], text(rate)))
    };
    let parts: Vec<String> = (0..4).filter_map(part).collect();
    format!("{}: {}", device_name(Some(device.device), topology), parts.join(", "))
}

fn describe_memory(rate: &ControlGroupRate) -> String {
    let bytes = |n: Option<u64>| n.map_or_else(|| "-".into(), format_bytes);
    let mut text = format!(
        "memory: {}, dirty {}, writeback {}, swap {}",
        bytes(rate.memory),
        bytes(rate.dirty),
        bytes(rate.writeback),
        bytes(rate.swap)
    );
    let max_name = if rate.limits.is_v1_memory { "memory.limit_in_bytes" } else { "memory.max" };
    for (name, limit) in [("memory.high", rate.limits.memory_high), (max_name, rate.limits.memory_max)] {
        if let Some(limit) = limit {
            let share =
                rate.memory.map_or_else(|| "-".into(), |n| format!("{:.0}", n as f64 * 100.0 / limit.max(1) as f64));
            text += &format!(", {share} % of {name} {}", format_bytes(limit));
        }
    }
    if let Some(times) = rate.high_events.filter(|n| *n > 0) {
        text += &format!(", held back {times} times in the interval for memory.high");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::disk::DevId;
    use crate::model::slow_facts::CgroupFacts;

    #[test]
    fn a_group_is_described_with_what_its_limits_leave() {
        let device = GroupDeviceRate {
            device: DevId { major: 8, minor: 0 },
            rates: [0.0, 943_718.4, 0.0, 9.0],
            limits: [None, Some(1 << 20), Some(50), None],
        };
        let limits = CgroupFacts { memory_high: Some(400 << 20), ..CgroupFacts::default() };
        let rate = ControlGroupRate {
            limits,
            devices: Some(vec![device]),
            memory: Some(300 << 20),
            high_events: Some(3),
            ..ControlGroupRate::default()
        };
        assert_eq!(
            describe(&rate, None),
            [
                "8:0: write 922K/s (90 % of 1.00M), reads 0/s (0 % of 50), writes 9/s",
                "memory: 300M, dirty -, writeback -, swap -, 75 % of memory.high 400M, held back 3 times in the interval \
                 for memory.high",
            ]
        );
        assert!(describe(&ControlGroupRate::default(), None)[0].contains("no io or blkio controller"));
    }
}
