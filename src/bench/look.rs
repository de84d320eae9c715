//! What a directory has to say about a run before it starts: where it lies, how much room there is, what
//! speaks against it. Plain data, found by a child process, judged wherever a plan changes.

use super::target::refuse::{self, Refused};
use crate::model::disk::DevId;
use crate::model::path::DeviceChainEntry;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A directory as a benchmark sees it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Which.
    pub directory: PathBuf,
    /// Why nothing may be measured there, however small.
    pub refused: Option<Refused>,
    /// What it lies on; `None` where that was refused before it was looked at.
    pub place: Option<Seen>,
}

/// What a directory lies on. All names are cleaned.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// File system type.
    pub filesystem: String,
    /// What it was mounted from.
    pub source: String,
    /// Mount point.
    pub mount: String,
    /// Mount and superblock options.
    pub options: String,
    /// The device that counts its I/O.
    pub device: Option<DevId>,
    /// From the file system down to the physical disks.
    pub chain: Vec<DeviceChainEntry>,
    /// Its files live in memory.
    pub memory: bool,
    /// A network is in between: a run needs the person's word twice.
    pub network: bool,
    /// It passes I/O on to other file systems.
    pub stacked: bool,
    /// Bytes of the file system.
    pub size: u64,
    /// Bytes free for this user.
    pub free: u64,
}

impl Look {
    /// Why a run that takes `bytes` there is refused, if it is. A network mount is not: that is a question.
    pub fn refuses(&self, bytes: u64) -> Option<Refused> {
        if self.refused.is_some() {
            return self.refused.clone();
        }
        let place = self.place.as_ref()?;
        refuse::for_space(&self.directory, place.size, place.free, bytes).err()
    }

    /// What to know before believing figures from there; sentences.
    pub fn warnings(&self, direct: bool) -> Vec<String> {
        let Some(place) = &self.place else { return Vec::new() };
        let mut all = Vec::new();
        let mut warn = |on: bool, text: String| {
            if on {
                all.push(text);
            }
        };
        warn(place.memory, "in memory (tmpfs): the figures say nothing about a disk".into());
        warn(
            place.network,
            format!(
                "a network mount ({} from {}): the load hits a server that others use",
                place.filesystem, place.source
            ),
        );
        warn(
            place.stacked,
            format!("{} passes I/O on to other file systems: their caches take part", place.filesystem),
        );
        let looped = place.device.is_some_and(|d| d.major == 7);
        warn(looped, "on a loop device: the cache of the file system below it may answer".into());
        warn(!direct, "through the page cache, which takes part in the figures".into());
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_judged_by_what_the_run_takes() {
        const GIB: u64 = 1 << 30;
        let place = Seen { size: 100 * GIB, free: 7 * GIB, ..Seen::default() };
        let mut look = Look { directory: "/d".into(), place: Some(place), refused: None };
        assert_eq!(look.refuses(2 * GIB), None);
        assert!(look.refuses(3 * GIB).is_some_and(|r| r.why.contains("reserve of 5.00 GiB")));
        look.refused = Some(Refused { why: "no".into(), privilege: false });
        assert_eq!(look.refuses(0).map(|r| r.why), Some("no".into()));
    }

    #[test]
    fn what_distorts_is_told() {
        let said =
            |place: Seen, direct| Look { place: Some(place), ..Look::default() }.warnings(direct).join("; ");
        assert_eq!(said(Seen::default(), true), "");
        assert!(said(Seen { memory: true, ..Seen::default() }, true).contains("memory"));
        assert!(said(Seen { network: true, ..Seen::default() }, true).contains("server"));
        assert!(
            said(Seen { device: Some(DevId { major: 7, minor: 1 }), ..Seen::default() }, true)
                .contains("loop")
        );
        assert!(said(Seen::default(), false).contains("page cache"));
    }
}
