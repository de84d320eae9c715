//! Block topology: sysfs joined with the mount table and the swap areas.
//!
//! A steady tick costs two poll(2), one recv(2) and a look at the device numbers in diskstats. sysfs is
//! read again when devices come or go or the kernel announces a change to one; mounts are only joined anew
//! when the mount table changes, which on a container host happens all the time.

mod join;
mod sysfs;
mod uevent;

use super::mountinfo::{MountWatch, Watched};
use super::scan::lines;
use super::swaps;
use crate::model::disk::DevId;
use crate::model::memory::SwapArea;
use crate::model::mount::Mounts;
use crate::model::section::Section;
use crate::model::topology::{BlockDev, Topology};
use crate::root::Root;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

pub(super) use join::number_of;
pub use join::{Found, devices_of};

/// sysfs tells of a RAID's rebuild or a read-only switch without an announcement.
const RESCAN: Duration = Duration::from_secs(60);
/// Where no announcement can be heard (another network namespace), look more often.
const RESCAN_DEAF: Duration = Duration::from_secs(10);
/// Thousands of LUNs that come and go must not keep a core busy: scans longer than `LONG_SCAN` take at most
/// this part of the time.
const AT_MOST_ONE_IN: u32 = 20;
const LONG_SCAN: Duration = Duration::from_millis(50);
/// Swap areas announce themselves; this is for captured trees only.
const REREAD_SWAPS: Duration = Duration::from_secs(60);

/// Keeps the topology up to date.
pub struct TopologyReader {
    root: Root,
    mounts: MountWatch,
    swaps: Watched,
    areas: Vec<SwapArea>,
    uevents: Option<uevent::Listener>,
    seen: Option<u64>,
    scanned_at: Option<Instant>,
    scan_cost: Duration,
    news: bool,
    bare: Vec<BlockDev>,
    last: Option<Section<Topology>>,
}

impl TopologyReader {
    /// Reads below `root`; nothing is read before the first refresh.
    pub fn new(root: &Root) -> Self {
        Self {
            root: root.clone(),
            mounts: MountWatch::new(root),
            swaps: Watched::new(root, root.proc("swaps"), REREAD_SWAPS),
            areas: Vec::new(),
            uevents: root.is_live().then(uevent::Listener::new).flatten(),
            seen: None,
            scanned_at: None,
            scan_cost: Duration::ZERO,
            news: false,
            bare: Vec::new(),
            last: None,
        }
    }

    /// Whether there may be something new to read; never waits.
    pub fn due(&mut self, disks_seen: &[DevId]) -> bool {
        // Each of them remembers what it was told.
        self.needs_scan(disks_seen) | self.mounts.due() | self.swaps.due()
    }

    /// The topology, if it differs from what the last call gave. `disks_seen`: the numbers in diskstats.
    pub fn refresh(&mut self, disks_seen: &[DevId]) -> Option<Section<Topology>> {
        let rescan = self.needs_scan(disks_seen);
        let moved = self.mounts.refresh();
        let swapped = self.read_swaps();
        if !rescan && !swapped && matches!(moved, Ok(false)) {
            return None;
        }
        let now = match self.scan(rescan) {
            Ok(()) => Section::Ok(join::join(&self.root, &self.bare, self.mounts.mounts(), &self.areas)),
            Err(err) => Section::from_io("/sys/block", &err),
        };
        if self.last.as_ref() == Some(&now) {
            return None;
        }
        self.last = Some(now.clone());
        Some(now)
    }

    /// The mount table as of the last refresh.
    pub fn mounts(&self) -> &Mounts {
        self.mounts.mounts()
    }

    fn needs_scan(&mut self, disks_seen: &[DevId]) -> bool {
        let mut hasher = DefaultHasher::new();
        disks_seen.hash(&mut hasher);
        let seen = Some(hasher.finish());
        let announced = self.uevents.as_mut().is_some_and(|u| u.heard());
        self.news |= announced || seen != self.seen;
        self.seen = seen;
        let Some(elapsed) = self.scanned_at.map(|at| at.elapsed()) else { return true };
        let period = if self.uevents.is_some() { RESCAN } else { RESCAN_DEAF };
        let pause = if self.scan_cost < LONG_SCAN { Duration::ZERO } else { self.scan_cost * AT_MOST_ONE_IN };
        elapsed >= period || (self.news && elapsed >= pause)
    }

    fn scan(&mut self, rescan: bool) -> std::io::Result<()> {
        if rescan {
            self.scanned_at = None;
            let begin = Instant::now();
            self.bare = sysfs::scan(&self.root)?;
            self.scanned_at = Some(Instant::now());
            self.scan_cost = begin.elapsed();
            self.news = false;
        }
        Ok(())
    }

    /// Whether the areas changed; a kernel without swap has none.
    fn read_swaps(&mut self) -> bool {
        match self.swaps.changed() {
            Ok(Some(text)) => {
                let areas: Vec<_> = lines(text).skip(1).filter_map(swaps::parse_line).collect();
                let names = |a: &[SwapArea]| a.iter().map(|a| a.name.clone()).collect::<Vec<_>>();
                let changed = names(&areas) != names(&self.areas);
                self.areas = areas;
                changed
            }
            Ok(None) => false,
            Err(_) => !std::mem::take(&mut self.areas).is_empty(),
        }
    }
}
