//! The device and the file that a task waits for, from what is known already: its sync in flight, its system call while it
//! is in state D, its traced waits, its requests.

use super::disk::DevId;
use super::process::ProcessRow;
use super::snapshot::Snapshot;
use super::system_state::SystemState;
use super::task_waits::list::longest_file;
use super::topology::Topology;

/// What a task waits for; `None` for what is not known or does not exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WaitedFor {
    pub(crate) device: Option<DevId>,
    /// Path, sanitized.
    pub(crate) file: Option<String>,
}

impl WaitedFor {
    /// Of a task of the newest scan, with syncs and waits of `snapshot`.
    pub(crate) fn find(system: &SystemState, snapshot: &Snapshot, row: &ProcessRow<'_>) -> Self {
        let topology = system.topology.ok();
        let sync = || Self::sync_in_flight(snapshot, topology, row);
        let mut on = sync().or_else(|| Self::system_call(system, row)).unwrap_or_default();
        on.file = on.file.or_else(|| longest_file(snapshot, topology, row.key()));
        on.device = on.device.or_else(|| row.main_device());
        on
    }

    fn sync_in_flight(snapshot: &Snapshot, topology: Option<&Topology>, row: &ProcessRow<'_>) -> Option<Self> {
        let file = &snapshot.syncs.ok()?.in_flight.iter().find(|sync| sync.file.pid == row.pid())?.file;
        Some(Self { device: file.devices(topology).first().copied(), file: Some(file.display_path(topology)) })
    }

    /// The file of the system call that it has been in since the slow facts were read.
    fn system_call(system: &SystemState, row: &ProcessRow<'_>) -> Option<Self> {
        let facts = system.slow_facts.latest.as_ref()?;
        let is_same_wait = row.is_in_d_state() && row.state_since_ns() <= facts.time.boot_ns;
        let wait = facts.waits.iter().find(|wait| wait.key == row.key() && is_same_wait)?;
        let devices = &system.topology.ok()?.devices;
        let device = devices.iter().find(|device| device.mounts.iter().any(|mount| mount.id == wait.mount_id));
        Some(Self { device: device.map(|device| device.id), file: Some(wait.path.sanitized()) })
    }
}
