//! What kernel threads do at a device belongs to the processes that they do it for.

use super::test_machine::*;
use crate::doctor::device_users::{DeviceUsers, Requests};
use crate::doctor::rule_context::RuleContext;
use crate::model::disk::DevId;
use crate::model::io_accounting::rates::{DeviceIo, IoAttribution, IoRates, OwnerIo};
use crate::model::process::TaskRaw;
use crate::model::reading::Reading;
use crate::model::topology::DeviceKind;
use std::sync::Arc;

const FLUSHER: u32 = 12;
const JOURNAL: u32 = 13;
const SERVER: [u32; 2] = [14, 15];

fn kernel_threads(machine: &mut TestMachine) {
    let names = [(FLUSHER, "kworker/u8:5"), (JOURNAL, "jbd2/sda1-8"), (SERVER[0], "nfsd"), (SERVER[1], "nfsd")];
    let tasks = names.map(|(pid, name)| TaskRaw { kernel_thread: true, ..task_counters(pid, name) });
    machine.scan(tasks.to_vec(), false);
}

/// Shares of the queue of a device after ticks with these rates, in percent.
fn shares(id: DevId, requests: Requests, rates: &[(u32, DevId, IoRates)]) -> Vec<(u32, u32)> {
    shares_on(TestMachine::new(), id, requests, rates)
}

fn shares_on(
    mut machine: TestMachine,
    id: DevId,
    requests: Requests,
    rates: &[(u32, DevId, IoRates)],
) -> Vec<(u32, u32)> {
    machine.ticks(8, |tick| {
        let io = |(pid, device, rates): &(u32, DevId, IoRates)| {
            let devices = vec![DeviceIo { device: *device, is_stacked: false, rates: *rates }];
            OwnerIo { owner: *pid, total: *rates, devices }
        };
        let name = |pid| if SERVER.contains(&pid) { "nfsd".into() } else { format!("task{pid}").into() };
        let names = rates.iter().map(|(pid, ..)| (*pid, name(*pid))).collect();
        let processes = rates.iter().map(io).collect();
        tick.io_attribution = Reading::Ok(Arc::new(IoAttribution { processes, names, ..IoAttribution::default() }));
    });
    kernel_threads(&mut machine);
    let users = DeviceUsers::traced(&RuleContext::new(&machine.system), id, 5.0, requests).unwrap();
    users.users.iter().map(|user| (user.pid, (user.share * 100.0).round() as u32)).collect()
}

fn writes(in_flight: f64, mb_per_s: f64) -> IoRates {
    let writes_per_s = mb_per_s * 10.0;
    IoRates { writes_in_flight: in_flight, writes_per_s, write_bytes_per_s: mb_per_s * MIB, ..IoRates::default() }
}

/// A process whose pages a flusher writes.
fn buffered(in_flight: f64, mb_per_s: f64) -> IoRates {
    IoRates { writeback_in_flight: in_flight, writeback_bytes_per_s: mb_per_s * MIB, ..IoRates::default() }
}

/// A process that syncs: it writes its pages itself.
fn syncing(in_flight: f64, mb_per_s: f64) -> IoRates {
    let bytes = mb_per_s * MIB;
    let own = IoRates { writeback_bytes_per_s: bytes, own_writeback_bytes_per_s: bytes, ..writes(in_flight, mb_per_s) };
    IoRates { own_writebacks_per_s: 20.0, ..own }
}

#[test]
fn page_cache_belongs_to_who_dirtied_it_by_the_time_of_its_requests() {
    let rates = [(FLUSHER, SDA, writes(10.0, 40.0)), (900, SDA, buffered(8.0, 10.0)), (901, SDA, buffered(2.0, 30.0))];
    assert_eq!(shares(SDA, Requests::Writes, &rates), [(900, 80), (901, 20)]);
}

#[test]
fn pages_that_a_process_writes_itself_are_no_part_of_the_flushers_queue() {
    let rates = [(FLUSHER, SDA, writes(30.0, 20.0)), (900, SDA, syncing(1.0, 20.0)), (901, SDA, buffered(30.0, 20.0))];
    assert_eq!(shares(SDA, Requests::Writes, &rates), [(901, 97), (900, 3)]);
}

#[test]
fn commits_belong_to_who_syncs_not_to_who_writes_most() {
    let flush = IoRates { flushes_in_flight: 0.8, flushes_per_s: 20.0, ..writes(0.1, 0.1) };
    let rates = [
        (FLUSHER, SDA, writes(0.1, 2.0)),
        (JOURNAL, SDA, flush),
        (900, SDA, syncing(0.1, 0.1)),
        (901, SDA, buffered(0.1, 2.0)),
    ];
    assert_eq!(shares(SDA, Requests::All, &rates)[0], (900, 91));
}

#[test]
fn users_of_a_loop_device_have_no_more_than_they_do_there() {
    let reads = |in_flight: f64, mb_per_s: f64| {
        let (reads_per_s, read_bytes_per_s) = (mb_per_s * 100.0, mb_per_s * MIB);
        IoRates { reads_in_flight: in_flight, reads_per_s, read_bytes_per_s, ..IoRates::default() }
    };
    let rates = [(FLUSHER, VDA, reads(4.0, 40.0)), (900, LOOP0, reads(0.1, 4.0)), (901, VDA, reads(1.0, 1.0))];
    assert_eq!(shares(VDA, Requests::All, &rates), [(901, 20), (900, 8)], "the rest is nobody's");
}

#[test]
fn threads_of_a_server_are_one_user_with_their_own_name() {
    let rates =
        [(SERVER[0], SDA, writes(4.0, 1.0)), (SERVER[1], SDA, writes(4.0, 1.0)), (900, SDA, buffered(0.0, 9.0))];
    assert_eq!(shares(SDA, Requests::All, &rates), [(SERVER[0], 100)]);
}

/// A machine whose loop0 is of another kind and lies on these devices.
fn with_device_on(kind: DeviceKind, below: &[DevId]) -> TestMachine {
    let mut machine = TestMachine::new();
    let devices = &mut machine.system.topology.ok_mut().unwrap().devices;
    let upper = devices.iter_mut().find(|device| device.id == LOOP0).unwrap();
    (upper.kind, upper.parent, upper.slaves) = (kind, None, below.to_vec());
    machine
}

#[test]
fn what_is_done_for_encryption_belongs_to_its_users() {
    let rates = [
        (FLUSHER, VDA, writes(9.0, 1.0)),
        (900, LOOP0, buffered(8.0, 1.0)),
        (FLUSHER, LOOP0, writes(8.0, 1.0)),
        (901, LOOP0, writes(2.0, 0.1)),
        (901, VDA, writes(2.0, 0.1)),
    ];
    let machine = with_device_on(DeviceKind::Crypt, &[VDA]);
    assert_eq!(shares_on(machine, VDA, Requests::All, &rates), [(900, 82), (901, 18)], "901 does its own here");
}

#[test]
fn devices_above_each_other_in_a_circle_end_the_search() {
    let mut machine = with_device_on(DeviceKind::Dm, &[VDA]);
    let devices = &mut machine.system.topology.ok_mut().unwrap().devices;
    let lower = devices.iter_mut().find(|device| device.id == VDA).unwrap();
    (lower.kind, lower.slaves) = (DeviceKind::Dm, vec![LOOP0]);
    let rates = [(FLUSHER, VDA, writes(1.0, 1.0)), (FLUSHER, LOOP0, writes(1.0, 1.0)), (900, VDA, writes(1.0, 1.0))];
    assert_eq!(shares_on(machine, VDA, Requests::All, &rates), [(900, 50)]);
}

#[test]
fn users_of_a_disk_are_a_partitions_own_if_little_else_lies_there() {
    let is_named = |others_mb_per_s: f64| {
        let mut machine = with_device_on(DeviceKind::Partition, &[SDA]);
        machine.ticks(8, |tick| {
            set_device(tick, busy_device(SDA, "sda", (100.0, 9.0, 2.0, 100.0, 1.0)));
            set_device(tick, busy_device(LOOP0, "sda2", (others_mb_per_s, 9.0, 2.0, 1024.0, 1.0)));
            let rates = writes(2.0, 9.0);
            let devices = vec![DeviceIo { device: SDA, is_stacked: false, rates }];
            let processes = vec![OwnerIo { owner: 900, total: rates, devices }];
            tick.io_attribution = Reading::Ok(Arc::new(IoAttribution { processes, ..IoAttribution::default() }));
        });
        DeviceUsers::traced(&RuleContext::new(&machine.system), SDA1, 5.0, Requests::All).is_some()
    };
    assert_eq!((is_named(0.5), is_named(9.0)), (true, false));
}
