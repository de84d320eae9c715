//! The class of a device, and what is slow for that class.

use crate::model::disk::DevId;
use crate::model::system_state::SystemState;
use crate::model::topology::{BlockDevice, DeviceKind};

/// Kinds of storage that differ in speed by orders of magnitude. A device on several disks has the class that
/// comes first here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StorageClass {
    Spinning,
    /// An SD card or eMMC.
    Card,
    /// A virtual or cloud disk.
    Virtual,
    /// SATA or SAS flash.
    Flash,
    Nvme,
    Network,
    Memory,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ClassLimits {
    /// A request that takes longer with few in the queue is slow.
    pub(super) slow_ms: f64,
    /// A request that takes longer hurts whatever waits for it, however deep the queue.
    pub(super) critical_ms: f64,
    /// With a full queue, fewer small requests per second than this are slow.
    pub(super) min_tps: f64,
    /// Requests in the queue from which on queueing dominates the await.
    pub(super) deep_queue: f64,
}

impl StorageClass {
    /// The limits of the class. Reference values for random 4 KiB at depth 64: disk 66 IOPS (15 ms each), cloud volume
    /// 3,000 (21 ms of queue), laptop SSD 26,800 (2.4 ms), NVMe 205,000 (0.3 ms). `slow_ms` is at least three times the
    /// service time, `critical_ms` is noticeable to people; `min_tps` is below the slowest device sold as that class
    /// (an EBS gp2 volume has at least 100 IOPS).
    pub(super) fn limits(self) -> ClassLimits {
        let limits =
            |slow_ms, critical_ms, min_tps, deep_queue| ClassLimits { slow_ms, critical_ms, min_tps, deep_queue };
        match self {
            StorageClass::Spinning => limits(60.0, 500.0, 40.0, 2.0),
            // A card may be busy for 250 ms at once (SD specification), and a slow one writes some dozen blocks per second.
            StorageClass::Card => limits(100.0, 1_000.0, 20.0, 2.0),
            StorageClass::Virtual => limits(20.0, 200.0, 90.0, 4.0),
            StorageClass::Flash => limits(20.0, 200.0, 1_000.0, 4.0),
            StorageClass::Nvme => limits(10.0, 100.0, 1_000.0, 8.0),
            StorageClass::Network => limits(60.0, 500.0, 40.0, 4.0),
            StorageClass::Memory => limits(10.0, 100.0, 1_000.0, 4.0),
        }
    }

    /// The class as a label of the metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            StorageClass::Spinning => "hdd",
            StorageClass::Card => "card",
            StorageClass::Virtual => "virtual",
            StorageClass::Flash => "ssd",
            StorageClass::Nvme => "nvme",
            StorageClass::Network => "network",
            StorageClass::Memory => "memory",
        }
    }

    /// The class with its article: `a virtual disk`.
    pub(super) fn description(self) -> &'static str {
        match self {
            StorageClass::Spinning => "a spinning disk",
            StorageClass::Card => "an SD card or eMMC",
            StorageClass::Virtual => "a virtual disk",
            StorageClass::Flash => "a solid-state disk",
            StorageClass::Nvme => "an NVMe disk",
            StorageClass::Network => "a network disk",
            StorageClass::Memory => "a device in memory",
        }
    }
}

/// Parts of the model names of hypervisors and clouds, in lower case, separated by commas. Volumes that clouds attach as NVMe
/// are as slow as their price: `nvme_card-pd` is Google's Persistent Disk, while its local disks are `nvme_card`; Azure's remote
/// disks are `MSFT NVMe Accelerator`, its local ones `Microsoft NVMe Direct Disk`.
const VIRTUAL_MODELS: &str = "qemu,vbox,vmware,virtual,msft,persistentdisk,persistent disk,nvme_card-pd,\
                              amazon elastic block store,alibaba cloud elastic block storage,ephemeraldisk,blockvolume";

/// The class of a device, from the disks below it; virtual if they are unknown.
pub(crate) fn storage_class(system: &SystemState, id: DevId) -> StorageClass {
    let Some(topology) = system.topology.ok() else { return StorageClass::Virtual };
    let classes = topology.physical_disks(id).map(|disk| disk_class(system, disk));
    classes.min_by_key(|class| *class as u8).unwrap_or(StorageClass::Virtual)
}

fn is_virtual_disk(dev: &BlockDevice) -> bool {
    let model = dev.model.as_deref().unwrap_or_default().to_ascii_lowercase();
    let is_virtual_model = VIRTUAL_MODELS.split(',').any(|part| model.contains(part));
    dev.name.starts_with("vd") || dev.name.starts_with("xvd") || is_virtual_model
}

fn disk_class(system: &SystemState, dev: &BlockDevice) -> StorageClass {
    match dev.kind {
        DeviceKind::Zram | DeviceKind::Ram | DeviceKind::Pmem => StorageClass::Memory,
        DeviceKind::Nbd | DeviceKind::Drbd => StorageClass::Network,
        // The device that holds the backing file is unknown.
        DeviceKind::Loop | DeviceKind::Zvol => StorageClass::Virtual,
        _ if is_virtual_disk(dev) => StorageClass::Virtual,
        _ if dev.name.starts_with("nvme") => StorageClass::Nvme,
        _ if dev.name.starts_with("mmcblk") => StorageClass::Card,
        _ if dev.name.starts_with("rbd") => StorageClass::Network,
        _ => match system.queues.get(&dev.name).and_then(|q| q.rotational) {
            Some(true) => StorageClass::Spinning,
            Some(false) => StorageClass::Flash,
            None => StorageClass::Virtual,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_of_clouds_are_virtual_and_local_disks_are_not() {
        let is = |name: &str, model: &str| {
            is_virtual_disk(&BlockDevice { name: name.into(), model: Some(model.into()), ..BlockDevice::default() })
        };
        for model in [
            "MSFT NVMe Accelerator v1.0",
            "nvme_card-pd",
            "Alibaba Cloud Elastic Block Storage",
            "Amazon Elastic Block Store",
            "QEMU NVMe Ctrl",
            "Virtual Disk",
            "VMware Virtual S",
        ] {
            assert!(is("nvme0n1", model), "{model}");
        }
        for model in ["nvme_card", "Microsoft NVMe Direct Disk v2", "Amazon EC2 NVMe Instance Storage", "SSD 980"] {
            assert!(!is("nvme0n1", model), "{model}");
        }
        assert!(is("xvda", ""));
    }
}
