//! Block devices by the names that the kernel log has for them: their own, or that of what they are behind.

use super::rule_context::RuleContext;
use crate::model::disk::DevId;
use crate::model::nvme_path::{head_behind, is_namespace_of};

impl RuleContext<'_> {
    /// The block device with this name in the kernel log: `sda`, `dm-0`, a partition, a journal `sda1-8`, a swap device by
    /// its number `8:16`.
    pub(super) fn find_device(&self, name: &str) -> Option<DevId> {
        if let Some(id) = DevId::parse(name.as_bytes()) {
            return self.system.topology.ok()?.get(id).map(|device| device.id);
        }
        let find = |name: &str| {
            let in_topology = self.system.topology.ok().and_then(|t| t.by_name(name)).map(|device| device.id);
            let rates = self.system.snapshot.devices.ok().map(Vec::as_slice).unwrap_or_default();
            in_topology.or_else(|| rates.iter().find(|rate| &*rate.name == name).map(|rate| rate.id))
        };
        find(name).or_else(|| find(name.rsplit_once('-')?.0))
    }

    /// The disks behind a controller, port or device of a bus, each once: `nvme0`, `ata4` and its devices `ata4.00`, `3-3`
    /// of USB, `2:0:0:0` of SCSI, a PCI address. None if there are none, or where their places are not known.
    pub(super) fn disks_behind(&self, name: &str) -> Vec<DevId> {
        let Some(topology) = self.system.topology.ok() else { return Vec::new() };
        // The device of a port has no directory, and its name would not tell several disks of a port multiplier apart.
        let part = if name.starts_with("ata") { name.split('.').next().unwrap_or(name) } else { name };
        // The words `block` and `devices` are directories as well.
        if !part.contains(|c: char| c.is_ascii_digit()) {
            return Vec::new();
        }
        let mut found: Vec<DevId> = topology.disks_behind(part).map(|disk| disk.id).collect();
        found.extend(self.nvme_heads_behind(name));
        if found.is_empty() {
            // The head of a multipath disk is behind no controller, and recordings may have no places at all.
            let namespaces = topology.devices.iter().filter(|disk| is_namespace_of(name, &disk.name));
            found.extend(namespaces.filter(|disk| disk.sysfs_path.is_none()).map(|disk| disk.id));
        }
        found.sort();
        found.dedup();
        found
    }

    /// The multipath disks with a path through this NVMe controller.
    fn nvme_heads_behind(&self, controller: &str) -> Vec<DevId> {
        let sample = self.system.last_sample.as_ref();
        let disks = sample.and_then(|sample| sample.disks.ok()).map(Vec::as_slice).unwrap_or_default();
        let heads = disks.iter().filter_map(|disk| head_behind(controller, &disk.name));
        heads.filter_map(|head| self.find_device(&head)).collect()
    }
}
