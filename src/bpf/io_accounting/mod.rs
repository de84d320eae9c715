//! I/O of each process, and writeback attributed to the processes that dirtied the pages (`assets/trace/charge.bpf.c`).

pub(super) mod account_map;
mod cgroup_paths;

use super::bpf_sys::BpfMap;
use super::kernel_info::{KernelInfo, check_pid_namespace};
use super::layout::c_string;
use super::loader::{self, attach_all, open_map};
use super::probe::Probe;
use super::reading_cache::{ChangeMaps, ReadingCache};
use super::unavailable::{ProbeUnavailable, note_missing};
use crate::model::io_accounting::IoAccountsRaw;
use crate::root::Root;
use crate::sanitize::sanitize;
use account_map::{AccountReader, IDLE_READS};
use aya::{Ebpf, include_bytes_aligned};
use cgroup_paths::CgroupPaths;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

/// The compiled programs; `assets/trace/build.sh` rebuilds them.
static BPF_OBJECT: &[u8] = include_bytes_aligned!("../../../assets/trace/charge.bpf.o");

/// `NAMES` in `assets/trace/charge.bpf.c`.
const NAME_SLOTS: u32 = 4096;
/// A process number and a name.
const NAME_LEN: usize = 20;
/// `SHARDS` in `assets/trace/charge.bpf.c`: CPUs with a shard of their own in each account.
const SHARDS: usize = 8;
/// Devices that take bios have no requests.
const BIO_DEVICES_NOTE: &str =
    "bio-based devices (zram, dm, md) are not counted by process; the devices below them are";

pub struct IoAccountingProbe {
    _programs: Ebpf,
    accounts: AccountReader,
    names_map: BpfMap<4>,
    changes: ChangeMaps,
    root: Root,
    names: BTreeMap<u32, Arc<str>>,
    cgroup_paths: CgroupPaths,
    cache: ReadingCache<Arc<IoAccountsRaw>>,
    unavailable: Vec<String>,
}

impl Probe for IoAccountingProbe {
    type Output = Arc<IoAccountsRaw>;
    const READING: &'static str = "reading I/O accounting";

    fn load(kernel: &KernelInfo) -> Result<Self, ProbeUnavailable> {
        check_pid_namespace(&kernel.root)?;
        let arguments = |point: &str| kernel.tracepoints.argument_count(point);
        let settings = [
            ("RQ_INSERT_QUEUE", arguments("block_rq_insert") == Some(2)),
            ("RQ_ISSUE_QUEUE", arguments("block_rq_issue") == Some(2)),
            ("SHARED", kernel.cpus > SHARDS),
        ];
        let mut programs = loader::open_object(kernel, BPF_OBJECT, &settings)?;
        let accounts = AccountReader::open(&programs)?;
        let names_map = open_map(&programs, "names", NAME_LEN)?;
        let changes = ChangeMaps::open(&programs, kernel.cpus)?;
        let complete = ("rq_complete", "block_rq_complete");
        let requests: &[_] = match arguments("block_io_start") {
            Some(_) => &[("io_start", "block_io_start"), complete],
            // The first of the two tracepoints identifies the submitter.
            None => &[("rq_insert", "block_rq_insert"), ("rq_issue", "block_rq_issue"), complete],
        };
        attach_all(&mut programs, &kernel.btf, requests)?;
        let mut unavailable = vec![BIO_DEVICES_NOTE.to_owned()];
        let folio = "writeback_dirty_folio";
        let point = if arguments(folio).is_some() { folio } else { "writeback_dirty_page" };
        let dirtied = attach_all(&mut programs, &kernel.btf, &[("dirtied", point)]);
        note_missing(&mut unavailable, "writeback by process", &dirtied);
        Ok(Self {
            _programs: programs,
            accounts,
            names_map,
            changes,
            root: kernel.root.clone(),
            names: BTreeMap::new(),
            cgroup_paths: CgroupPaths::default(),
            cache: ReadingCache::default(),
            unavailable,
        })
    }

    fn read(&mut self) -> io::Result<Arc<IoAccountsRaw>> {
        // The maps are read at intervals even if nothing changed, to remove idle accounts.
        let is_dirty = self.changes.take_dirty_flag()?;
        if let Some(same) = self.cache.get(is_dirty, IDLE_READS) {
            return Ok(same);
        }
        let read = Arc::new(self.read_maps()?);
        self.cache.store(&read);
        Ok(read)
    }
}

impl IoAccountingProbe {
    fn read_maps(&mut self) -> io::Result<IoAccountsRaw> {
        let accounts = self.accounts.read(&self.root, self.cache.reads_since_store())?;
        let pids: BTreeSet<u32> = accounts.iter().map(|a| a.key.pid).filter(|pid| *pid > 0).collect();
        self.names.retain(|pid, _| pids.contains(pid));
        // The kernel side stores the name of a process that does I/O.
        for pid in pids.iter().filter(|pid| self.accounts.has_moved(**pid)) {
            // An exec changes the name. A name whose slot was taken by another process is kept.
            let name = self.read_name(*pid)?;
            if let Some(name) = name.filter(|new| self.names.get(pid).is_none_or(|old| **old != **new)) {
                self.names.insert(*pid, name.into());
            }
        }
        let group_ids = accounts.iter().map(|a| a.key.cgroup_id).filter(|id| *id > 0);
        let cgroups = self.cgroup_paths.resolve(&self.root, group_ids);
        Ok(IoAccountsRaw {
            accounts,
            names: self.names.iter().map(|(pid, name)| (*pid, name.clone())).collect(),
            cgroups,
            dropped: self.changes.dropped()?,
            unavailable: self.unavailable.clone(),
        })
    }

    /// Returns the name that the process had when it did I/O; `None` if another process has its slot.
    fn read_name(&self, pid: u32) -> io::Result<Option<String>> {
        let mut value = [0; NAME_LEN];
        self.names_map.get(&(pid % NAME_SLOTS).to_ne_bytes(), &mut value)?;
        let (whose, name) = value.split_at(4);
        Ok((whose == pid.to_ne_bytes().as_slice()).then(|| sanitize(c_string(name))))
    }
}
