//! Rates of control groups, and how near their limits they are.

use super::{ControlGroupRaw, ControlGroupsRaw, GroupDeviceIo};
use crate::model::disk::DevId;
use crate::model::slow_facts::{CgroupFacts, CgroupIoLimit};
use std::collections::HashMap;

/// The groups in one interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ControlGroupActivity {
    /// Parents before their children.
    pub groups: Vec<ControlGroupRate>,
    /// Groups that were not read, because there are too many.
    pub left_out: u64,
}

/// One group in one interval. `None`: not known, or no earlier reading.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ControlGroupRate {
    /// The later reading.
    pub limits: CgroupFacts,
    /// Devices with I/O in the interval or with a limit; `None` without an earlier reading or the controller.
    pub devices: Option<Vec<GroupDeviceRate>>,
    /// Percent of the interval in which a task waited for I/O.
    pub io_stall_pct: Option<f64>,
    /// Percent of the interval in which a task waited for memory.
    pub memory_stall_pct: Option<f64>,
    /// Bytes.
    pub memory: Option<u64>,
    /// Bytes.
    pub dirty: Option<u64>,
    /// Bytes.
    pub writeback: Option<u64>,
    /// Bytes.
    pub swap: Option<u64>,
    /// How often it was throttled for exceeding `memory.high` in the interval.
    pub high_events: Option<u64>,
}

/// A group's I/O on one device.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GroupDeviceRate {
    /// The device.
    pub device: DevId,
    /// Bytes read, bytes written, reads and writes, per second.
    pub rates: [f64; 4],
    /// The limits of the same, per second.
    pub limits: [Option<u64>; 4],
}

impl GroupDeviceRate {
    /// The rate that is nearest its limit, in percent of it; `None` without a limit.
    pub fn limit_pct(&self) -> Option<f64> {
        let shares = self.rates.iter().zip(self.limits).filter_map(|(rate, limit)| Some((*rate, limit?)));
        shares.map(|(rate, limit)| percent_of(rate, limit)).reduce(f64::max)
    }
}

impl ControlGroupActivity {
    /// What happened between two readings `secs` apart.
    pub fn derive(before: Option<&ControlGroupsRaw>, now: &ControlGroupsRaw, secs: f64) -> Self {
        let known = before.map_or(&[][..], |raw| &raw.groups);
        let known: HashMap<&str, &ControlGroupRaw> = known.iter().map(|group| (group.path(), group)).collect();
        let rate = |group| ControlGroupRate::derive(known.get(ControlGroupRaw::path(group)).copied(), group, secs);
        Self { groups: now.groups.iter().map(rate).collect(), left_out: now.left_out }
    }
}

impl ControlGroupRate {
    fn derive(before: Option<&ControlGroupRaw>, now: &ControlGroupRaw, secs: f64) -> Self {
        let stall_pct = |field: fn(&ControlGroupRaw) -> Option<u64>| {
            let us = field(now)?.checked_sub(field(before?)?)?;
            (secs > 0.0).then(|| (us as f64 / 1e4 / secs).min(100.0))
        };
        let high_events = |group: &ControlGroupRaw| group.limits.high_events;
        Self {
            limits: now.limits.clone(),
            devices: before.and_then(|before| device_rates(before, now, secs)),
            io_stall_pct: stall_pct(|group| group.io_stall_us),
            memory_stall_pct: stall_pct(|group| group.memory_stall_us),
            memory: now.memory,
            dirty: now.dirty,
            writeback: now.writeback,
            swap: now.swap,
            high_events: before.and_then(|before| high_events(now)?.checked_sub(high_events(before)?)),
        }
    }

    /// Its path below the root of the hierarchy, sanitized.
    pub fn path(&self) -> &str {
        &self.limits.path
    }

    /// Bytes read, bytes written, reads or writes per second, on all devices.
    pub fn io_per_s(&self, which: usize) -> Option<f64> {
        Some(self.devices.as_ref()?.iter().map(|device| device.rates[which]).sum())
    }

    /// The I/O limit that is nearest, in percent of it.
    pub fn io_limit_pct(&self) -> Option<f64> {
        self.devices.as_ref()?.iter().filter_map(GroupDeviceRate::limit_pct).reduce(f64::max)
    }

    /// The lower one of `memory.high` and `memory.max`, in bytes.
    pub fn memory_limit(&self) -> Option<u64> {
        let limits = [self.limits.memory_high, self.limits.memory_max];
        limits.into_iter().flatten().min()
    }

    /// Memory in percent of the lower limit.
    pub fn memory_limit_pct(&self) -> Option<f64> {
        Some(percent_of(self.memory? as f64, self.memory_limit()?))
    }

    /// The device with most bytes in the interval.
    pub fn busiest_device(&self) -> Option<DevId> {
        let bytes = |device: &GroupDeviceRate| device.rates[0] + device.rates[1];
        let devices = self.devices.as_ref()?.iter().filter(|device| bytes(device) > 0.0);
        devices.max_by(|a, b| bytes(a).total_cmp(&bytes(b))).map(|device| device.device)
    }
}

fn percent_of(value: f64, limit: u64) -> f64 {
    value * 100.0 / limit.max(1) as f64
}

fn device_rates(before: &ControlGroupRaw, now: &ControlGroupRaw, secs: f64) -> Option<Vec<GroupDeviceRate>> {
    let (earlier, io) = (before.io.as_ref()?, now.io.as_ref()?);
    let mut out: Vec<GroupDeviceRate> = io.iter().filter_map(|io| device_rate(earlier, io, secs)).collect();
    for limit in &now.limits.io {
        let at = out.iter().position(|rate| rate.device == limit.device).unwrap_or_else(|| {
            out.push(GroupDeviceRate { device: limit.device, ..GroupDeviceRate::default() });
            out.len() - 1
        });
        out[at].limits = limits_of(limit);
    }
    Some(out.into_iter().filter(|rate| rate.rates != [0.0; 4] || rate.limits != [None; 4]).collect())
}

/// A counter that went backwards is of another device with the same number.
fn device_rate(earlier: &[GroupDeviceIo], io: &GroupDeviceIo, secs: f64) -> Option<GroupDeviceRate> {
    let before = earlier.iter().find(|before| before.device == io.device).map_or([0; 4], |before| before.counts);
    let mut rates = [0.0; 4];
    for (rate, (now, before)) in rates.iter_mut().zip(io.counts.into_iter().zip(before)) {
        *rate = now.checked_sub(before).filter(|_| secs > 0.0)? as f64 / secs;
    }
    Some(GroupDeviceRate { device: io.device, rates, limits: [None; 4] })
}

fn limits_of(limit: &CgroupIoLimit) -> [Option<u64>; 4] {
    [limit.read_bytes_per_s, limit.write_bytes_per_s, limit.reads_per_s, limit.writes_per_s]
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: DevId = DevId { major: 8, minor: 0 };

    fn group(written: u64, stall_us: u64) -> ControlGroupRaw {
        let io = CgroupIoLimit { device: DISK, write_bytes_per_s: Some(1000), ..CgroupIoLimit::default() };
        ControlGroupRaw {
            limits: CgroupFacts {
                path: "/a".into(),
                io: vec![io],
                memory_high: Some(200),
                memory_max: Some(400),
                high_events: Some(7),
                ..CgroupFacts::default()
            },
            io: Some(vec![GroupDeviceIo { device: DISK, counts: [0, written, 0, written / 100] }]),
            io_stall_us: Some(stall_us),
            memory: Some(150),
            ..ControlGroupRaw::default()
        }
    }

    fn derive(before: Option<ControlGroupRaw>, now: ControlGroupRaw) -> ControlGroupRate {
        let raw = |group| ControlGroupsRaw { groups: vec![group], left_out: 0 };
        ControlGroupActivity::derive(before.map(raw).as_ref(), &raw(now), 2.0).groups.remove(0)
    }

    #[test]
    fn rates_are_by_device_and_in_percent_of_the_limits() {
        let rate = derive(Some(group(1000, 0)), group(2800, 500_000));
        let device = rate.devices.as_ref().unwrap()[0];
        assert_eq!(device.rates, [0.0, 900.0, 0.0, 9.0]);
        assert_eq!((device.limit_pct(), rate.io_limit_pct(), rate.io_stall_pct), (Some(90.0), Some(90.0), Some(25.0)));
        assert_eq!((rate.memory_limit(), rate.memory_limit_pct()), (Some(200), Some(75.0)));
        assert_eq!((rate.high_events, rate.busiest_device(), rate.io_per_s(1)), (Some(0), Some(DISK), Some(900.0)));
    }

    #[test]
    fn without_an_earlier_reading_there_are_no_rates() {
        let rate = derive(None, group(2800, 500_000));
        assert_eq!((rate.io_per_s(1), rate.io_stall_pct, rate.high_events), (None, None, None));
        assert_eq!(rate.memory, Some(150), "what is no rate is there");
        let off = derive(Some(group(0, 0)), ControlGroupRaw { io: None, io_stall_us: None, ..group(0, 0) });
        assert_eq!((off.io_per_s(0), off.io_stall_pct), (None, None), "the controller was turned off");
    }

    #[test]
    fn a_limit_without_io_is_listed_and_a_counter_that_went_back_is_not() {
        let idle = derive(Some(group(1000, 0)), group(1000, 0));
        assert_eq!(idle.devices.as_ref().unwrap()[0].limit_pct(), Some(0.0));
        let back = derive(Some(group(1000, 9)), group(10, 0));
        assert_eq!((back.io_per_s(1), back.io_stall_pct), (Some(0.0), None));
    }
}
