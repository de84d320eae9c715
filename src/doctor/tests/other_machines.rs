//! Machines that once led to a wrong finding: guests, shelves of disks, storage networks, hosts of containers.

use super::firing::{FiringCase, firing_case};
use super::quiet::QuietCase;
use super::test_machine::*;
use crate::doctor::finding::Severity::Warn;
use crate::model::health::{DeviceHealth, DiskHealth, Ext4Errors, Health, HealthLeftOut};

fn disk(device: &str, state: &str, errors: u64) -> DeviceHealth {
    let (state, errors) = (state.to_owned(), Some(errors));
    DeviceHealth { device: device.to_owned(), health: Health::Disk(DiskHealth { state, errors, timeouts: None }) }
}

pub const FIRING: &[FiringCase] = &[firing_case(
    "recorded-errors",
    "old ones of a file system that was mounted now",
    Warn,
    "ext4 on sda1 has recorded 3 errors, the last",
    |m| {
        let errors = Ext4Errors { count: 3, last_time: 1_600_000_000, last_function: "ext4_find_entry".into() };
        let found = DeviceHealth { device: "sda1".into(), health: Health::Ext4(errors) };
        m.change_facts(|facts| facts.health.push(found));
    },
)];

pub const QUIET: &[QuietCase] = &[
    QuietCase::new("disk-health", "a disk of a Xen guest", |m| {
        m.change_facts(|facts| facts.health.push(disk("xvda", "Connected", 0)));
    }),
    QuietCase::new("disk-health", "a disk that had no room in the list before", |m| {
        m.change_previous_facts(|facts| facts.health_left_out = HealthLeftOut { disks: 1, others: 0 });
        m.change_facts(|facts| facts.health.push(disk("sdxy", "running", 900)));
    }),
    QuietCase::new("disk-health", "the list of disks is cut", |m| {
        m.change_facts(|facts| facts.health_left_out = HealthLeftOut { disks: 1, others: 0 });
    })
    .unavailable(),
    QuietCase::new("recorded-errors", "the list of file systems is cut", |m| {
        m.change_facts(|facts| facts.health_left_out = HealthLeftOut { disks: 0, others: 1 });
    })
    .unavailable(),
];
