//! Network file systems: NFS and CIFS mounts with their counters and the interface towards the server.
//!
//! Without such a mount a tick costs one poll(2) on the mount table. The counters are in memory: reading them does not
//! block if the server is gone.

use super::kernel_file::PersistentFile;
use super::mountinfo::MountWatcher;
use super::route::RouteTable;
use super::source::Source;
use super::{cifs, nfs};
use crate::model::mount::{is_cifs, is_nfs};
use crate::model::network::NetFsRaw;
use crate::model::reading::Reading;
use crate::root::Root;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Changes of routes are not announced.
const ROUTE_REREAD_INTERVAL: Duration = Duration::from_secs(30);

/// Reads `/proc/self/mountstats` and `/proc/fs/cifs/Stats` if there are such mounts.
pub(super) fn source(root: &Root, has_network_mounts: Arc<AtomicBool>) -> Source {
    let mut reader = NetFsReader::new(root, has_network_mounts);
    Source::new("/proc/self/mountstats", |s| &mut s.netfs, move || reader.read_rows())
}

struct NetFsReader {
    root: Root,
    mounts: MountWatcher,
    nfs: PersistentFile,
    cifs: PersistentFile,
    buf: Vec<u8>,
    has_nfs: bool,
    has_cifs: bool,
    routes: Option<(Instant, RouteTable)>,
    has_network_mounts: Arc<AtomicBool>,
}

impl NetFsReader {
    fn new(root: &Root, has_network_mounts: Arc<AtomicBool>) -> Self {
        Self {
            root: root.clone(),
            mounts: MountWatcher::network_only(root),
            nfs: PersistentFile::new(root.mount_table("mountstats")),
            cifs: PersistentFile::new(root.proc("fs/cifs/Stats")),
            buf: Vec::new(),
            has_nfs: false,
            has_cifs: false,
            routes: None,
            has_network_mounts,
        }
    }

    fn read_rows(&mut self) -> Reading<Vec<NetFsRaw>> {
        match self.mounts.refresh() {
            Ok(true) => {
                let has = |is: fn(&[u8]) -> bool| self.mounts.mounts.0.iter().any(|m| is(m.fs_type.as_bytes()));
                (self.has_nfs, self.has_cifs) = (has(is_nfs), has(is_cifs));
                self.has_network_mounts.store(self.has_nfs || self.has_cifs, Ordering::Relaxed);
                self.routes = None;
            }
            Ok(false) => {}
            Err(err) => return Reading::from_io_error("/proc/self/mountinfo", &err),
        }
        let mut rows = Vec::new();
        if self.has_nfs {
            match self.nfs.read(&mut self.buf) {
                Ok(text) => rows.extend(nfs::parse(text, &self.mounts.mounts)),
                Err(err) => return Reading::from_io_error("/proc/self/mountstats", &err),
            }
        }
        if self.has_cifs {
            match self.cifs.read(&mut self.buf) {
                Ok(text) => rows.extend(cifs::parse(text, &self.mounts.mounts)),
                Err(err) => return Reading::from_io_error("/proc/fs/cifs/Stats", &err),
            }
        }
        if !rows.is_empty() {
            self.set_interfaces(&mut rows);
        }
        Reading::Ok(rows)
    }

    fn set_interfaces(&mut self, rows: &mut [NetFsRaw]) {
        if self.routes.as_ref().is_none_or(|(at, _)| at.elapsed() >= ROUTE_REREAD_INTERVAL) {
            self.routes = Some((Instant::now(), RouteTable::read(&self.root)));
        }
        let Some((_, routes)) = &self.routes else { return };
        for row in rows {
            row.interface = row.address.as_deref().and_then(|a| routes.interface_to(a));
        }
    }
}
