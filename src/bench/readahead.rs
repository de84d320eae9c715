//! Changes the read-ahead of the disk below a directory for one series of measurements.
//!
//! A tuner makes the change on a lease: it restores the value when the series is over, when this process ends in
//! whatever way (the tuner's pipe closes), and at the latest when the lease expires. The file systems that are
//! refused do not use the read-ahead of a disk but of a bdi of their own (mm/readahead.c uses
//! `inode_to_bdi`), which no knob here changes.

use super::session::RunError;
use super::target::TargetDirectory;
use super::target::filesystem::FilesystemKind;
use super::target::refusal::refuse;
use super::target::size_hints;
use crate::model::reading::describe_io_error;
use crate::root::Root;
use crate::sanitize::sanitize;
use crate::tuning::plan::TuneError;
use crate::tuning::protocol::{TunerReply, TunerRequest};
use crate::tuning::tuner_client::LeaseHandle;
use std::time::Duration;

/// The kernel's default, KiB: used for a disk whose read-ahead is off.
const DEFAULT_READAHEAD_KB: u64 = 128;

/// A disk whose read-ahead can be changed.
pub(crate) struct ReadaheadDisk {
    pub name: String,
    /// Present read-ahead, KiB.
    pub current_kb: u64,
}

/// A changed read-ahead; dropping it restores the value.
pub(crate) struct ReadaheadLease {
    lease: LeaseHandle,
    lease_secs: u64,
    disk: String,
}

impl ReadaheadDisk {
    /// The disk whose read-ahead applies to files in `place`; of a partition, the whole disk.
    pub(crate) fn for_target(root: &Root, place: &TargetDirectory) -> Result<Self, TuneError> {
        let fs = &place.filesystem;
        let path = sanitize(place.path.as_os_str().as_encoded_bytes());
        let is_its_own =
            matches!(fs.kind, FilesystemKind::Network | FilesystemKind::Stacked) || fs.report.filesystem == "fuseblk";
        let Some(id) = fs.own_device.filter(|_| !is_its_own) else {
            return refuse(format!(
                "{path} is on {}, which is not one disk's: it has a read-ahead of its own that no device's \
                 read_ahead_kb changes. Name a directory on a file system that lies on one device, such as ext4 or xfs",
                fs.report.filesystem
            ));
        };
        let name = size_hints::disk_name(root, id);
        let now = name.as_ref().and_then(|name| {
            let file = root.sys(&format!("block/{name}/queue/read_ahead_kb"));
            std::fs::read_to_string(file).ok()?.trim().parse().ok()
        });
        match (name, now) {
            (Some(name), Some(now_kb)) => Ok(Self { name, current_kb: now_kb }),
            _ => refuse(format!("{path}: the read-ahead of device {id} could not be read from sysfs")),
        }
    }

    /// The two settings, KiB: off, and the disk's present value or, if that is 0, the kernel's default.
    pub(crate) fn settings(&self) -> [u64; 2] {
        [0, if self.current_kb > 0 { self.current_kb } else { DEFAULT_READAHEAD_KB }]
    }

    pub(crate) fn check_permission(&self, root: &Root) -> Result<(), TuneError> {
        if rustix::process::geteuid().is_root() || !root.is_live() {
            return Ok(());
        }
        let (disk, now) = (sanitize(self.name.as_bytes()), self.current_kb);
        Err(TuneError::Privilege(format!("changing the read-ahead of {disk} needs root (it is {now} KiB now)")))
    }

    /// Changes it to `kb` on a lease of `lease_secs`. `None` if it has that value already.
    pub(crate) fn lease_value(
        &self,
        root: &Root,
        kb: u64,
        lease_secs: u64,
    ) -> Result<Option<ReadaheadLease>, RunError> {
        if kb == self.current_kb {
            return Ok(None);
        }
        let words = vec![format!("read_ahead_kb@{}={kb}K", self.name)];
        let failed = |why: String| RunError::Failed(format!("read-ahead not changed: {why}"));
        let (held, reply) = LeaseHandle::start(Root::self_exe(), root, words, Some(lease_secs))
            .map_err(|err| failed(describe_io_error(&err)))?;
        match reply {
            TunerReply::Applied { .. } => Ok(Some(ReadaheadLease { lease: held, lease_secs, disk: self.name.clone() })),
            TunerReply::Refused(refused @ (TuneError::Privilege(_) | TuneError::Unsafe(_))) => Err(refused.into()),
            TunerReply::Refused(other) => Err(failed(other.to_string())),
            other => Err(failed(format!("the tuner said {other:?}"))),
        }
    }
}

impl ReadaheadLease {
    /// Renews the lease. Fails if the tuner no longer holds the change.
    pub(crate) fn renew(&mut self) -> Result<(), RunError> {
        let disk = sanitize(self.disk.as_bytes());
        let lost = |why| RunError::Failed(format!("the read-ahead of {disk} is no longer ours: {why}"));
        self.lease.renew(self.lease_secs, Duration::ZERO).map_err(lost)
    }

    /// Restores the value. The error says what went wrong and what to do.
    pub(crate) fn restore(mut self) -> Result<(), RunError> {
        let why = match self.lease.request(&TunerRequest::Undo) {
            Ok(TunerReply::Restored(all)) => match all.iter().find(|(_, result)| result.needs_attention()) {
                Some((at, undone)) => format!("{at}: {undone}"),
                None => return Ok(()),
            },
            Ok(other) => format!("the tuner said {other:?}"),
            Err(err) => describe_io_error(&err),
        };
        Err(RunError::Failed(format!(
            "read-ahead not given back: {why}; see `iotop-plus tune status` and `iotop-plus tune undo`"
        )))
    }
}
