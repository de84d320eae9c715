//! Who suffers from an incident: the tasks that its findings name, those stalled by what it is about, and those that wait
//! for its device.

use super::task::{Task, is_kernel_thread, task_label};
use crate::doctor::finding::FindingSubject;
use crate::doctor::incident::Incident;
use crate::model::columns::stalls;
use crate::model::disk::DevId;
use crate::model::memory_stalls::{MemoryStalls, ProcessStalls, RECLAIM, THROTTLE};
use crate::model::process::ProcessRow;
use crate::model::waited_for::WaitedFor;
use crate::sanitize::sanitize;
use crate::tui::view::Shared;

/// Rules about dirty pages, whose victims are throttled.
pub(super) const DIRTY_PAGE_RULES: &[&str] = &["writeback-storm", "writers-throttled", "slow-drain"];
/// Rules about memory, whose victims are in reclaim.
pub(super) const MEMORY_RULES: &[&str] = &["swapping", "reclaim-stalls", "cache-pressure", "cgroup-memory"];
/// A task that is stalled for less of its time goes on nearly as fast as without, ms/s.
const MIN_STALL_MS_PER_S: f64 = 10.0;
/// A writer to another device is a victim of the dirty limit only if it is throttled for this long, ms/s.
const MIN_THROTTLE_ELSEWHERE_MS_PER_S: f64 = 200.0;
/// A sync in flight for less than this is not slow, ns.
const MIN_SYNC_NS: u64 = 100_000_000;

/// The tasks that the findings name as victims, then those stalled by what the findings are about.
pub(super) fn victims(shared: &Shared, incident: &Incident, device: Option<DevId>) -> Vec<Task> {
    let mut out: Vec<Task> = Vec::new();
    for finding in &incident.findings {
        out.extend(finding.victims.iter().map(|task| Task::from_label(&task.name)));
        if matches!(finding.subject, FindingSubject::Task(..) | FindingSubject::Pid(..)) {
            out.push(Task::from_label(&finding.subject.name()));
        }
    }
    let has_rule = |rules: &[&str]| incident.findings.iter().any(|f| rules.contains(&f.rule));
    let stalls = shared.snapshot().memory_stalls.ok();
    if let Some(stalls) = stalls.filter(|_| has_rule(DIRTY_PAGE_RULES)) {
        out.extend(throttled(shared, stalls, device));
    }
    if let Some(stalls) = stalls.filter(|_| has_rule(MEMORY_RULES)) {
        out.extend(reclaiming(shared, stalls, incident.cause().cgroup.as_deref()));
    }
    if has_rule(MEMORY_RULES) {
        out.extend(most_faulting(shared));
    }
    out
}

fn stalled_task(process: &ProcessStalls) -> Task {
    Task { name: sanitize(&process.comm), pid: process.key.pid.to_string() }
}

/// Those throttled for the device, the longest first, then those throttled long for others: the dirty limit is one for all
/// devices, yet writers to a fast one are hardly held up.
fn throttled(shared: &Shared, stalls: &MemoryStalls, device: Option<DevId>) -> Vec<Task> {
    let is_elsewhere = |p: &ProcessStalls| p.device().zip(device).is_some_and(|(a, b)| !depends_on(shared, a, b));
    let (elsewhere, here): (Vec<_>, Vec<_>) =
        stalls.processes_by_kind(THROTTLE).into_iter().partition(|p| is_elsewhere(p));
    let here = here.into_iter().filter(|p| p.rates[THROTTLE].ms_per_s >= MIN_STALL_MS_PER_S);
    let elsewhere = elsewhere.into_iter().filter(|p| p.rates[THROTTLE].ms_per_s >= MIN_THROTTLE_ELSEWHERE_MS_PER_S);
    here.chain(elsewhere).map(stalled_task).collect()
}

/// Those in reclaim, the longest first; of the control group whose memory limit is the cause, if one is.
fn reclaiming(shared: &Shared, stalls: &MemoryStalls, cgroup: Option<&str>) -> Vec<Task> {
    let is_in_group = |p: &&ProcessStalls| match (cgroup, shared.system.processes.get(&p.key)) {
        (Some(limited), Some(row)) => row.cgroup().is_none_or(|path| path.starts_with(limited)),
        _ => true,
    };
    let long =
        stalls.processes_by_kind(RECLAIM).into_iter().filter(|p| p.rates[RECLAIM].ms_per_s >= MIN_STALL_MS_PER_S);
    long.filter(is_in_group).map(stalled_task).collect()
}

/// The task with most major faults of those that have memory in swap and, where it is counted, wait for it.
fn most_faulting(shared: &Shared) -> Option<Task> {
    let faults = |row: &ProcessRow<'_>| row.rates().major_faults_per_s.filter(|n| *n > 0.0);
    let is_swapped = |row: &ProcessRow<'_>| row.raw.swap_bytes.is_some_and(|bytes| bytes > 0);
    let waits = |row: &ProcessRow<'_>| row.rates().swapin_delay_pct.is_none_or(|pct| pct > 0.0);
    let rows = shared.system.processes.iter().filter(|row| is_swapped(row) && waits(row));
    let most = rows.filter_map(|row| Some((faults(&row)?, row))).max_by(|a, b| a.0.total_cmp(&b.0));
    most.map(|(_, row)| Task::from_label(&row.label()))
}

/// Tasks that hang, are stalled, or are in a slow sync, if what they wait for is on the device; programs come first, as a
/// person looks for those. While the device is stalled and no other one is, those that hang with no known device, too.
pub(super) fn waiting_for_device(shared: &Shared, incident: &Incident, device: DevId) -> Vec<Task> {
    let stalled = shared.snapshot().devices.ok().map_or(0, |all| all.iter().filter(|rate| rate.stalled).count());
    let is_only_stalled = incident.cause().rule == "device-stalled" && stalled == 1;
    let waits_here = |row: &ProcessRow<'_>| {
        let on = WaitedFor::find(&shared.system, shared.snapshot(), row).device;
        on.map(|id| depends_on(shared, id, device))
    };
    let mut out: Vec<(bool, Task)> = Vec::new();
    for hung in &shared.system.hung_tasks {
        let row = shared.system.processes.row_or_process(&hung.key);
        if row.and_then(|row| waits_here(&row)).unwrap_or(is_only_stalled) {
            // Of a thread without a row its process.
            let process = row.filter(|row| row.key() != hung.key).map(|row| row.comm().into_owned());
            let name = process.unwrap_or_else(|| sanitize(&hung.comm));
            let label = Task { name, pid: hung.key.pid.to_string() };
            out.push((is_kernel_thread(shared, hung.key.pid), label));
        }
    }
    out.sort_by_key(|(is_kernel, _)| *is_kernel);
    let hung = out.into_iter().map(|(_, task)| task);
    let rows = shared.system.processes.iter().filter(|row| stalls::is_stalled(row) && waits_here(row) == Some(true));
    let mut rows: Vec<ProcessRow<'_>> = rows.collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.state_duration_ns()));
    let stalled = rows.iter().map(|row| Task::from_label(&row.label()));
    hung.chain(in_slow_sync(shared, device)).chain(stalled).collect()
}

/// Processes in a sync of a file on the device, the longest first.
fn in_slow_sync(shared: &Shared, device: DevId) -> Vec<Task> {
    let Some(syncs) = shared.snapshot().syncs.ok() else { return Vec::new() };
    let is_slow = |started_ns: u64| syncs.read_ns.saturating_sub(started_ns) >= MIN_SYNC_NS;
    let is_here = |id: &DevId| depends_on(shared, *id, device);
    let here = syncs
        .in_flight
        .iter()
        .filter(|sync| is_slow(sync.started_ns) && sync.file.devices(shared.system.topology.ok()).iter().any(is_here));
    here.map(|sync| Task::from_label(&task_label(shared, sync.file.pid))).collect()
}

/// Whether a device is the other one, or above it.
fn depends_on(shared: &Shared, id: DevId, below: DevId) -> bool {
    let chain = || shared.system.topology.ok().map(|topology| topology.chain(id));
    id == below || chain().is_some_and(|chain| chain.iter().any(|link| link.device.id == below))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::{Finding, InvolvedTask, Severity};
    use crate::doctor::tests::test_machine::{
        LOOP0, SDA, SDA1, SEC, TestMachine, VDA, idle_device, set_device, set_stalled,
    };
    use crate::model::io_accounting::rates::{DeviceIo, IoAttribution, IoRates, OwnerIo};
    use crate::model::reading::Reading;
    use crate::model::snapshot::Snapshot;
    use crate::model::syncs::{InFlightSync, SyncActivity, SyncFile};
    use crate::tui::views::findings::involved;
    use std::sync::Arc;

    /// The machine with an incident of this rule on sda, whose culprit is dd (900).
    fn shared(machine: TestMachine, rule: &'static str) -> Shared {
        let mut shared = Shared::new(machine.system);
        let culprit = InvolvedTask { name: "dd (900)".into(), share_pct: None, group: None };
        let finding = Finding { rule, devices: vec![SDA], culprits: vec![culprit], ..Finding::default() };
        shared.findings.incidents = vec![Incident { severity: Severity::Warn, findings: vec![finding] }];
        shared
    }

    fn line(machine: TestMachine, rule: &'static str) -> String {
        involved::worst_line(&shared(machine, rule), 120).unwrap()
    }

    /// Each process has requests on one device.
    fn use_devices(machine: &mut TestMachine, users: &[(u32, DevId)]) {
        let rates = IoRates { write_bytes_per_s: 4096.0, writes_per_s: 1.0, ..IoRates::default() };
        let io = |(pid, device): &(u32, DevId)| OwnerIo {
            owner: *pid,
            total: rates,
            devices: vec![DeviceIo { device: *device, is_stacked: false, rates }],
        };
        let attribution = IoAttribution { processes: users.iter().map(io).collect(), ..IoAttribution::default() };
        machine.system.processes.set_io_attribution(Some(Arc::new(attribution)));
    }

    /// Syncs in flight: process, device, seconds since they began.
    fn set_syncs(t: &mut Snapshot, syncs: &[(u32, DevId, f64)]) {
        let read_ns = 100 * SEC;
        let in_flight = syncs.iter().map(|(pid, device, secs)| InFlightSync {
            file: Arc::new(SyncFile { pid: *pid, device: *device, ..SyncFile::default() }),
            started_ns: read_ns - (secs * 1e9) as u64,
            ..InFlightSync::default()
        });
        let in_flight = in_flight.collect();
        t.syncs = Reading::Ok(Arc::new(SyncActivity { read_ns, in_flight, ..SyncActivity::default() }));
    }

    #[test]
    fn who_is_in_a_slow_sync_of_the_device_or_of_one_above_it_is_a_victim() {
        let mut machine = TestMachine::new();
        for (pid, name) in [(812, "postgres"), (813, "etcd"), (814, "compiler"), (815, "mail")] {
            machine.add_task(pid, name, |_| {}, Default::default(), 0);
        }
        machine.tick(|t| set_syncs(t, &[(812, SDA1, 4.0), (813, SDA, 0.5), (814, VDA, 9.0), (815, SDA, 0.01)]));
        let line = line(machine, "device-saturated");
        assert_eq!(line, "device sda · culprit dd (900) · victim postgres (812), etcd (813)");
    }

    #[test]
    fn a_sync_of_a_file_system_with_a_number_of_its_own_is_on_its_device() {
        let file_system = DevId { major: 0, minor: 44 };
        let mut machine = TestMachine::new();
        machine.add_task(812, "postgres", |_| {}, Default::default(), 0);
        machine.add_hung_task(814, "etcd", "wait_on_page_bit", 8);
        let topology = machine.system.topology.ok_mut().unwrap();
        topology.devices.iter_mut().find(|device| device.id == SDA1).unwrap().mounts[0].file_system = file_system;
        machine.tick(|t| set_syncs(t, &[(812, file_system, 4.0), (814, file_system, 0.01)]));
        let line = line(machine, "device-saturated");
        assert_eq!(line, "device sda · culprit dd (900) · victim etcd (814), postgres (812)");
    }

    #[test]
    fn who_hangs_with_the_device_as_its_main_one_is_a_victim() {
        let mut machine = TestMachine::new();
        machine.add_hung_task(812, "postgres", "jbd2_log_wait_commit", 8);
        machine.add_hung_task(814, "compiler", "folio_wait_bit", 8);
        use_devices(&mut machine, &[(812, SDA1), (814, LOOP0)]);
        assert_eq!(machine.system.hung_tasks.len(), 2);
        let line = line(machine, "writeback-storm");
        assert_eq!(line, "device sda · culprit dd (900) · victim postgres (812)", "the compiler hangs elsewhere");
    }

    #[test]
    fn a_device_that_left_has_its_last_known_name_or_says_that_it_left() {
        let gone = DevId { major: 7, minor: 101_066 };
        let named = |machine: TestMachine| {
            let mut shared = shared(machine, "device-saturated");
            shared.findings.incidents[0].findings[0].devices = vec![gone];
            involved::worst_line(&shared, 120).unwrap()
        };
        let mut machine = TestMachine::new();
        machine.idle_ticks(1);
        assert_eq!(named(machine), "device that has left (7:101066) · culprit dd (900)");
        let mut machine = TestMachine::new();
        machine.tick(|t| set_device(t, idle_device(gone, "loop101066"))).idle_ticks(3);
        assert_eq!(named(machine), "device loop101066 · culprit dd (900)");
    }

    #[test]
    fn writers_to_another_device_are_victims_only_if_they_are_throttled_long() {
        let mut machine = TestMachine::new();
        machine.tick(|t| {
            for (pid, name, bdi, ms_per_s) in
                [(812, "rustc", "254:0", 90.0), (813, "mail", "254:0", 300.0), (814, "rsync", "8:0", 40.0)]
            {
                set_stalled(t, pid, name, THROTTLE, ms_per_s, 200.0);
                Arc::make_mut(t.memory_stalls.ok_mut().unwrap()).processes.last_mut().unwrap().bdi = bdi.into();
            }
        });
        assert_eq!(line(machine, "writeback-storm"), "device sda · culprit dd (900) · victim rsync (814), mail (813)");
    }
}
