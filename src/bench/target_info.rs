//! What is known about a directory before a run: its file system, free space, reasons against it.

use super::report::ReportTarget;
use super::target::checks;
use crate::model::disk::DevId;
use crate::model::path::DeviceChainEntry;
use crate::tuning::plan::TuneError;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The result of inspecting a directory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetInspection {
    /// The directory.
    pub directory: PathBuf,
    /// Why nothing may be measured there.
    pub refusal: Option<TuneError>,
    /// Its file system; `None` if the directory was refused before it was inspected.
    pub info: Option<TargetInfo>,
}

/// The file system of a directory. All names are sanitized.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetInfo {
    /// What reports say of it.
    pub report: ReportTarget,
    /// The device whose counters include its I/O.
    pub device: Option<DevId>,
    /// From the file system down to the physical disks.
    pub chain: Vec<DeviceChainEntry>,
    /// Bytes of the file system.
    pub size: u64,
    /// Bytes free for this user.
    pub free: u64,
}

impl TargetInspection {
    /// Why a run that takes `bytes` is refused, if it is. A network mount is not refused here but asked about.
    pub(crate) fn refusal_for_size(&self, bytes: u64) -> Option<TuneError> {
        if self.refusal.is_some() {
            return self.refusal.clone();
        }
        let place = self.info.as_ref()?;
        checks::check_space(&self.directory, place.size, place.free, bytes).err()
    }

    /// Conditions that distort the results.
    pub fn warnings(&self, direct: bool) -> Vec<String> {
        let Some(TargetInfo { report, device, .. }) = &self.info else { return Vec::new() };
        let (fs, source) = (&report.filesystem, &report.source);
        let all = [
            (report.is_memory, "in memory (tmpfs): the figures say nothing about a disk".into()),
            (
                report.is_network,
                format!("a network mount ({fs} from {source}): the load hits a server that others use"),
            ),
            (report.is_stacked, format!("{fs} passes I/O on to other file systems: their caches take part")),
            (
                device.is_some_and(|d| d.major == 7),
                "on a loop device: the cache of the file system below it may answer".into(),
            ),
            (!direct, "through the page cache, which takes part in the figures".into()),
        ];
        all.into_iter().filter(|(applies, _)| *applies).map(|(_, text)| text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_depends_on_the_size_of_the_run() {
        const GIB: u64 = 1 << 30;
        let place = TargetInfo { size: 100 * GIB, free: 7 * GIB, ..TargetInfo::default() };
        let mut look = TargetInspection { directory: "/d".into(), info: Some(place), refusal: None };
        assert_eq!(look.refusal_for_size(2 * GIB), None);
        assert!(look.refusal_for_size(3 * GIB).is_some_and(|r| r.to_string().contains("reserve of 5.00 GiB")));
        look.refusal = Some(TuneError::Unsafe("no".into()));
        assert_eq!(look.refusal_for_size(0).map(|r| r.to_string()), Some("no".into()));
    }

    #[test]
    fn distorting_conditions_are_warned_about() {
        let said = |change: &dyn Fn(&mut TargetInfo), direct| {
            let mut place = TargetInfo::default();
            change(&mut place);
            TargetInspection { info: Some(place), ..TargetInspection::default() }.warnings(direct).join("; ")
        };
        assert_eq!(said(&|_| {}, true), "");
        assert!(said(&|place| place.report.is_memory = true, true).contains("memory"));
        assert!(said(&|place| place.report.is_network = true, true).contains("server"));
        assert!(said(&|place| place.device = Some(DevId { major: 7, minor: 1 }), true).contains("loop"));
        assert!(said(&|_| {}, false).contains("page cache"));
    }
}
