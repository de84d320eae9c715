//! Block topology: sysfs joined with the mount table and the swap areas.
//!
//! An idle tick costs two poll(2), one recv(2) and a comparison of the device numbers in diskstats. sysfs is read
//! again when devices appear or disappear or the kernel announces a change; mounts are joined again when the mount
//! table changes, which on a container host happens all the time.

mod join;
mod sysfs;
mod uevent;

use super::mountinfo::{MountWatcher, PolledFile};
use crate::model::disk::DevId;
use crate::model::memory::SwapArea;
use crate::model::reading::Reading;
use crate::model::topology::{BlockDevice, Topology};
use crate::parse::swaps;
use crate::root::Root;
use std::time::{Duration, Instant};

pub(super) use join::dev_id_from_raw;
pub use join::{BackingDevice, devices_of};

/// RAID rebuilds and read-only changes are not announced.
const RESCAN_INTERVAL: Duration = Duration::from_secs(60);
/// Used where announcements cannot be received (in another network namespace).
const RESCAN_INTERVAL_WITHOUT_UEVENTS: Duration = Duration::from_secs(10);
/// Thousands of LUNs that come and go must not keep a core busy: after a scan longer than `LONG_SCAN`, this many times
/// its duration passes before the next.
const SCAN_PAUSE_FACTOR: u32 = 20;
const LONG_SCAN: Duration = Duration::from_millis(50);
/// Swap areas are announced; this is for captured trees only.
const SWAPS_REREAD_INTERVAL: Duration = Duration::from_secs(60);

/// Keeps the topology current.
pub struct TopologyReader {
    root: Root,
    mounts: MountWatcher,
    swaps_file: PolledFile,
    swap_areas: Vec<SwapArea>,
    uevents: Option<uevent::UeventListener>,
    seen_disks: Vec<DevId>,
    scanned_at: Option<Instant>,
    scan_cost: Duration,
    rescan_pending: bool,
    devices: Vec<BlockDevice>,
    last_result: Option<Reading<Topology>>,
}

impl TopologyReader {
    /// A reader below `root`; it reads at the first refresh.
    pub fn new(root: &Root) -> Self {
        Self {
            root: root.clone(),
            mounts: MountWatcher::new(root),
            swaps_file: PolledFile::new(root, root.proc("swaps"), SWAPS_REREAD_INTERVAL),
            swap_areas: Vec::new(),
            uevents: root.is_live().then(uevent::UeventListener::new).flatten(),
            seen_disks: Vec::new(),
            scanned_at: None,
            scan_cost: Duration::ZERO,
            rescan_pending: false,
            devices: Vec::new(),
            last_result: None,
        }
    }

    /// Whether there may be something new; never waits.
    pub fn is_due(&mut self, disks_seen: &[DevId]) -> bool {
        // All three must be called: each notes what it is given.
        self.needs_scan(disks_seen) | self.mounts.is_due() | self.swaps_file.is_due()
    }

    /// The topology, if it differs from the last result. `disks_seen`: the device numbers in diskstats.
    pub fn refresh(&mut self, disks_seen: &[DevId]) -> Option<Reading<Topology>> {
        let rescan = self.needs_scan(disks_seen);
        let moved = self.mounts.refresh();
        let swapped = self.read_swaps();
        if !rescan && !swapped && matches!(moved, Ok(false)) {
            return None;
        }
        let now = match self.rescan_if(rescan) {
            Ok(()) => {
                Reading::Ok(join::build_topology(&self.root, &self.devices, &self.mounts.mounts, &self.swap_areas))
            }
            Err(err) => Reading::from_io_error("/sys/block", &err),
        };
        if self.last_result.as_ref() == Some(&now) {
            return None;
        }
        self.last_result = Some(now.clone());
        Some(now)
    }

    fn needs_scan(&mut self, disks_seen: &[DevId]) -> bool {
        let announced = self.uevents.as_mut().is_some_and(|u| u.has_block_event());
        self.rescan_pending |= announced || self.seen_disks != disks_seen;
        self.seen_disks = disks_seen.to_vec();
        let Some(elapsed) = self.scanned_at.map(|at| at.elapsed()) else { return true };
        let period = if self.uevents.is_some() { RESCAN_INTERVAL } else { RESCAN_INTERVAL_WITHOUT_UEVENTS };
        let pause = if self.scan_cost < LONG_SCAN { Duration::ZERO } else { self.scan_cost * SCAN_PAUSE_FACTOR };
        elapsed >= period || (self.rescan_pending && elapsed >= pause)
    }

    fn rescan_if(&mut self, rescan: bool) -> std::io::Result<()> {
        if rescan {
            self.scanned_at = None;
            let begin = Instant::now();
            self.devices = sysfs::scan_block_devices(&self.root)?;
            self.scanned_at = Some(Instant::now());
            self.scan_cost = begin.elapsed();
            self.rescan_pending = false;
        }
        Ok(())
    }

    /// Reads the swap areas; true if they have changed. A kernel without swap has none.
    fn read_swaps(&mut self) -> bool {
        match self.swaps_file.read_if_changed() {
            Ok(Some(text)) => {
                let areas: Vec<_> = swaps::parse(text).collect();
                let names = |a: &[SwapArea]| a.iter().map(|a| a.name.clone()).collect::<Vec<_>>();
                let changed = names(&areas) != names(&self.swap_areas);
                self.swap_areas = areas;
                changed
            }
            Ok(None) => false,
            Err(_) => !std::mem::take(&mut self.swap_areas).is_empty(),
        }
    }
}
