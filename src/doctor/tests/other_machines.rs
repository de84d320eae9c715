//! Machines that once led to a wrong finding: guests, shelves of disks, storage networks, hosts of containers.

use super::firing::FiringCase;
use super::quiet::QuietCase;
use super::test_machine::*;
use crate::model::health::{DeviceHealth, DiskHealth, Health};

fn disk(device: &str, state: &str, errors: u64) -> DeviceHealth {
    let (state, errors) = (state.to_owned(), Some(errors));
    DeviceHealth { device: device.to_owned(), health: Health::Disk(DiskHealth { state, errors, timeouts: None }) }
}

pub const FIRING: &[FiringCase] = &[];

pub const QUIET: &[QuietCase] = &[QuietCase::new("disk-health", "a disk of a Xen guest", |m| {
    m.change_facts(|facts| facts.health.push(disk("xvda", "Connected", 0)));
})];
