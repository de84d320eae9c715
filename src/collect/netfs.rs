//! Network file systems: NFS and CIFS mounts with their counters and the interface towards the server.
//!
//! Without such a mount a tick costs one poll(2) on the mount table. The counters come from memory: a
//! server that is gone does not block their reading.

use super::mountinfo::MountWatch;
use super::read::Kept;
use super::route::Routes;
use super::{Patch, Source, cifs, nfs};
use crate::model::mount::{is_cifs, is_nfs};
use crate::model::network::NetFsRaw;
use crate::model::sample::Sample;
use crate::model::section::{Blocked, Section};
use crate::root::Root;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Routes change without a word to us.
const ROUTE_PERIOD: Duration = Duration::from_secs(30);

/// Reads `/proc/self/mountstats` and `/proc/fs/cifs/Stats` where there is something to read.
pub struct NetFs {
    root: Root,
    mounts: MountWatch,
    nfs: Kept,
    cifs: Kept,
    buf: Vec<u8>,
    has_nfs: bool,
    has_cifs: bool,
    routes: Option<(Instant, Routes)>,
    /// Told to whoever reads the interfaces.
    any: Arc<AtomicBool>,
}

impl NetFs {
    /// Reads below `root`.
    pub fn new(root: &Root, any: Arc<AtomicBool>) -> Self {
        Self {
            root: root.clone(),
            mounts: MountWatch::network(root),
            nfs: Kept::new(root.proc("self/mountstats")),
            cifs: Kept::new(root.proc("fs/cifs/Stats")),
            buf: Vec::new(),
            has_nfs: false,
            has_cifs: false,
            routes: None,
            any,
        }
    }

    fn rows(&mut self) -> Section<Vec<NetFsRaw>> {
        match self.mounts.refresh() {
            Ok(true) => {
                let has =
                    |is: fn(&[u8]) -> bool| self.mounts.mounts().0.iter().any(|m| is(m.fs_type.bytes()));
                (self.has_nfs, self.has_cifs) = (has(is_nfs), has(is_cifs));
                self.any.store(self.has_nfs || self.has_cifs, Ordering::Relaxed);
                self.routes = None;
            }
            Ok(false) => {}
            Err(err) => return Section::from_io("/proc/self/mountinfo", &err),
        }
        let mut rows = Vec::new();
        if self.has_nfs {
            match self.nfs.read(&mut self.buf) {
                Ok(text) => rows.extend(nfs::parse(text, self.mounts.mounts())),
                Err(err) => return Section::from_io("/proc/self/mountstats", &err),
            }
        }
        if self.has_cifs {
            match self.cifs.read(&mut self.buf) {
                Ok(text) => rows.extend(cifs::parse(text, self.mounts.mounts())),
                Err(err) => return Section::from_io("/proc/fs/cifs/Stats", &err),
            }
        }
        if !rows.is_empty() {
            self.route(&mut rows);
        }
        Section::Ok(rows)
    }

    fn route(&mut self, rows: &mut [NetFsRaw]) {
        if self.routes.as_ref().is_none_or(|(at, _)| at.elapsed() >= ROUTE_PERIOD) {
            self.routes = Some((Instant::now(), Routes::read(&self.root)));
        }
        let Some((_, routes)) = &self.routes else { return };
        for row in rows {
            row.interface = row.address.as_deref().and_then(|a| routes.interface_to(a));
        }
    }
}

impl Source for NetFs {
    fn name(&self) -> &'static str {
        "/proc/self/mountstats"
    }

    fn blocked(&self) -> fn(&mut Sample, Blocked) {
        |s, why| s.netfs = Section::Blocked(why)
    }

    fn read(&mut self) -> Patch {
        let rows = self.rows();
        Box::new(move |s| s.netfs = rows)
    }
}
