//! What to expect of a device: its class, and what is slow for that.

use crate::model::disk::DevId;
use crate::model::system_state::SystemState;
use crate::model::topology::{BlockDevice, DeviceKind};

/// Kinds of storage that differ by orders of magnitude.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageClass {
    /// It spins.
    Spinning,
    /// A virtual or cloud disk: whatever the host gives.
    Virtual,
    /// SATA or SAS flash.
    Flash,
    /// NVMe.
    Nvme,
    /// Over the network.
    Network,
    /// Memory.
    Memory,
}

/// What is slow for a class.
#[derive(Debug, Clone, Copy)]
pub struct ClassLimits {
    /// A request that takes longer, with few in the queue, is slow: several times the class's own service
    /// time.
    pub slow_ms: f64,
    /// A request that takes longer hurts whoever waits for it, however deep the queue.
    pub critical_ms: f64,
    /// With requests waiting, fewer small ones per second than this are not the class's doing.
    pub min_tps: f64,
    /// Requests in the queue from which on it is the queue that makes them wait.
    pub deep_queue: f64,
}

impl StorageClass {
    /// What to expect. Guide figures for random 4 KiB at depth 64: disk 66 IOPS (15 ms each), cloud volume 3,000
    /// (21 ms of queue), laptop SSD 26,800 (2.4 ms), NVMe 205,000 (0.3 ms). `slow_ms` is at least three times
    /// what one request alone takes there, `bad_ms` is what a person notices; the least rates are below the
    /// slowest device sold as that class (a gp2 volume has 100 IOPS at least).
    pub fn limits(self) -> ClassLimits {
        let limits = |slow_ms, bad_ms, least_tps, deep| ClassLimits {
            slow_ms,
            critical_ms: bad_ms,
            min_tps: least_tps,
            deep_queue: deep,
        };
        match self {
            StorageClass::Spinning => limits(60.0, 500.0, 40.0, 2.0),
            StorageClass::Virtual => limits(20.0, 200.0, 90.0, 4.0),
            StorageClass::Flash => limits(20.0, 200.0, 1_000.0, 4.0),
            StorageClass::Nvme => limits(10.0, 100.0, 1_000.0, 8.0),
            StorageClass::Network => limits(60.0, 500.0, 40.0, 4.0),
            StorageClass::Memory => limits(10.0, 100.0, 1_000.0, 4.0),
        }
    }

    /// How it reads: `a virtual disk`.
    pub fn description(self) -> &'static str {
        match self {
            StorageClass::Spinning => "a spinning disk",
            StorageClass::Virtual => "a virtual disk",
            StorageClass::Flash => "a solid-state disk",
            StorageClass::Nvme => "an NVMe disk",
            StorageClass::Network => "a network disk",
            StorageClass::Memory => "a device in memory",
        }
    }
}

/// Words in a model name that hypervisors and clouds use.
const VIRTUAL_MODEL_WORDS: &[&str] = &[
    "QEMU",
    "VBOX",
    "VMware",
    "Virtual",
    "VIRTUAL",
    "Msft",
    "PersistentDisk",
    "Persistent Disk",
    "Amazon Elastic Block Store",
    "EphemeralDisk",
    "BlockVolume",
];

/// The class of a device: its own, or the slowest of the disks it lies on.
pub fn storage_class(world: &SystemState, id: DevId) -> StorageClass {
    let Some(topo) = world.topology.ok() else { return StorageClass::Virtual };
    let classes = topo.physical_disks(id).map(|d| disk_class(world, d));
    classes.min_by_key(|c| *c as u8).unwrap_or(StorageClass::Virtual)
}

/// Whether the device, or a disk it lies on, is one that a hypervisor offers.
pub fn is_virtual_disk(dev: &BlockDevice) -> bool {
    let model = dev.model.as_deref().unwrap_or_default();
    dev.name.starts_with("vd")
        || dev.name.starts_with("xvd")
        || VIRTUAL_MODEL_WORDS.iter().any(|word| model.contains(word))
}

fn disk_class(world: &SystemState, dev: &BlockDevice) -> StorageClass {
    match dev.kind {
        DeviceKind::Zram | DeviceKind::Ram | DeviceKind::Pmem => StorageClass::Memory,
        DeviceKind::Nbd | DeviceKind::Drbd => StorageClass::Network,
        // A file whose own device is not known: whatever that is.
        DeviceKind::Loop | DeviceKind::Zvol => StorageClass::Virtual,
        _ if is_virtual_disk(dev) => StorageClass::Virtual,
        _ if dev.name.starts_with("nvme") => StorageClass::Nvme,
        _ if dev.name.starts_with("rbd") => StorageClass::Network,
        _ => match world.queues.get(&dev.name).and_then(|q| q.rotational) {
            Some(true) => StorageClass::Spinning,
            Some(false) => StorageClass::Flash,
            None => StorageClass::Virtual,
        },
    }
}
