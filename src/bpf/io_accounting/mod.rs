//! I/O of each process, and writeback attributed to the processes that dirtied the pages (`assets/trace/charge.h`).

pub(super) mod account_map;
mod cgroup_paths;

use super::bpf_sys::{BpfMap, clock_ns};
use super::chain::{self, Chained};
use super::kernel_info::KernelInfo;
use super::layout::c_string;
use super::loader::{attach_all, open_map};
use super::probe::Probe;
use super::reading_cache::{ChangeMaps, ReadingCache};
use super::unavailable::{ProbeUnavailable, note_missing};
use crate::model::io_accounting::IoAccountsRaw;
use crate::root::Root;
use crate::sanitize::sanitize;
use account_map::{AccountReader, IDLE_READS};
use aya::Ebpf;
use cgroup_paths::CgroupPaths;
use rustix::time::ClockId;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// `NAMES` in `assets/trace/owner.h`.
const NAME_SLOTS: u32 = 4096;
/// A process number and a name.
pub(super) const NAME_LEN: usize = 20;
/// `SHARDS` in `assets/trace/account.h`: CPUs with a shard of their own in each account.
const SHARDS: usize = 8;
/// Devices that take bios have no requests, for which files are counted.
const BIO_DEVICES_NOTE: &str = "bio-based devices (zram, dm, md) are not counted by file; the devices below them are";

pub struct IoAccountingProbe {
    _programs: Arc<Mutex<Ebpf>>,
    accounts: AccountReader,
    names_map: BpfMap<4>,
    changes: ChangeMaps,
    root: Root,
    began_ns: u64,
    names: BTreeMap<u32, Arc<str>>,
    cgroup_paths: CgroupPaths,
    cache: ReadingCache<Arc<IoAccountsRaw>>,
    unavailable: Vec<String>,
}

impl Probe for IoAccountingProbe {
    type Output = Arc<IoAccountsRaw>;
    const READING: &'static str = "reading I/O accounting";

    fn load(kernel: &KernelInfo) -> Result<Self, ProbeUnavailable> {
        let shared = chain::requests(&kernel.requests)?;
        let mut programs = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let accounts = AccountReader::open(&programs, &kernel.root)?;
        let names_map = open_map(&programs, "names", NAME_LEN)?;
        let changes = ChangeMaps::open_second(&programs, kernel.cpus, "accounts_dirty")?;
        let unavailable = OwnerPrograms::new(kernel).attach_submitters(&mut programs, kernel)?;
        count_losses(&programs)?;
        drop(programs);
        let began_ns = clock_ns(ClockId::Boottime);
        Ok(Self {
            _programs: shared,
            accounts,
            names_map,
            changes,
            root: kernel.root.clone(),
            began_ns,
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
            let name = read_name(&self.names_map, *pid)?;
            if let Some(name) = name.filter(|new| self.names.get(pid).is_none_or(|old| **old != **new)) {
                self.names.insert(*pid, name.into());
            }
        }
        let group_ids = accounts.iter().map(|a| a.key.cgroup_id).filter(|id| *id > 0);
        let cgroups = self.cgroup_paths.resolve(&self.root, group_ids);
        Ok(IoAccountsRaw {
            tracing_started_ns: self.began_ns,
            accounts,
            names: self.names.iter().map(|(pid, name)| (*pid, name.clone())).collect(),
            cgroups,
            dropped: self.changes.dropped()?,
            unavailable: self.unavailable.clone(),
        })
    }
}

/// Has requests counted as lost whose issue or submitter is not found, because all are followed from now on.
pub(super) fn count_losses(programs: &Ebpf) -> Result<(), ProbeUnavailable> {
    let since = open_map(programs, "followed_since", 8)?;
    let set: io::Result<()> = since.insert(&[0; 4], &mut clock_ns(ClockId::Monotonic).to_ne_bytes());
    set.map_err(|err| ProbeUnavailable::from_io_error("counting lost requests", &err))
}

/// Returns the name that a process had when it did I/O; `None` if another process has its slot.
pub(super) fn read_name(names: &BpfMap<4>, pid: u32) -> io::Result<Option<String>> {
    let mut value = [0; NAME_LEN];
    names.get(&(pid % NAME_SLOTS).to_ne_bytes(), &mut value)?;
    let (whose, name) = value.split_at(4);
    Ok((whose == pid.to_ne_bytes().as_slice()).then(|| sanitize(c_string(name))))
}

/// Attaches the programs that know who submits and who dirties (`assets/trace/owner.h`). `settings` has the constants that
/// they need.
pub(super) struct OwnerPrograms {
    has_io_start: bool,
    has_dirty_folio: bool,
    pub(super) settings: [(&'static str, bool); 3],
}

impl OwnerPrograms {
    pub(super) fn new(kernel: &KernelInfo) -> Self {
        let arguments = |point: &str| kernel.tracepoints.argument_count(point);
        Self {
            has_io_start: arguments("block_io_start").is_some(),
            has_dirty_folio: arguments("writeback_dirty_folio").is_some(),
            settings: [
                ("RQ_INSERT_QUEUE", arguments("block_rq_insert") == Some(2)),
                ("RQ_ISSUE_QUEUE", arguments("block_rq_issue") == Some(2)),
                ("SHARED", kernel.cpus > SHARDS),
            ],
        }
    }

    pub(super) fn has_io_start(&self) -> bool {
        self.has_io_start
    }

    /// Attaches those that store submitters and dirtiers, for programs that are attached to the issue and the completion of
    /// requests already. Returns notes on what could not be attached.
    pub(super) fn attach_submitters(
        &self,
        programs: &mut Ebpf,
        kernel: &KernelInfo,
    ) -> Result<Vec<String>, ProbeUnavailable> {
        let requests = if self.has_io_start { IO_START } else { RQ_INSERT };
        self.attach_points(programs, kernel, &[requests])
    }

    /// Has all called after those for requests, whose maps they use then, or attaches them. Open their maps afterwards. Returns
    /// notes on what could not be attached, and what ends the calls.
    pub(super) fn attach(
        &self,
        programs: &mut Ebpf,
        kernel: &KernelInfo,
    ) -> Result<(Vec<String>, Option<Chained>), ProbeUnavailable> {
        let complete = ("rq_complete", "block_rq_complete");
        let places = [("after_complete", "block_rq_complete", "after_complete")];
        let requests = chain::requests(&kernel.requests).ok().filter(|_| self.has_io_start);
        if let Some(requests) = requests
            && let Ok(chained) = Chained::new(&requests, programs, &kernel.btf, &places, &LOOKED_UP)
        {
            return Ok((vec![BIO_DEVICES_NOTE.to_owned()], Some(chained)));
        }
        let points: &[_] = match self.has_io_start {
            true => &[IO_START, complete],
            // The first of the two tracepoints identifies the submitter.
            false => &[RQ_INSERT, ("rq_issue", "block_rq_issue"), complete],
        };
        let mut unavailable = self.attach_points(programs, kernel, points)?;
        unavailable.insert(0, BIO_DEVICES_NOTE.to_owned());
        Ok((unavailable, None))
    }

    fn attach_points(
        &self,
        programs: &mut Ebpf,
        kernel: &KernelInfo,
        requests: &[(&str, &str)],
    ) -> Result<Vec<String>, ProbeUnavailable> {
        attach_all(programs, &kernel.btf, requests)?;
        let mut unavailable = Vec::new();
        let point = if self.has_dirty_folio { "writeback_dirty_folio" } else { "writeback_dirty_page" };
        let dirtied = attach_all(programs, &kernel.btf, &[("dirtied", point)]);
        note_missing(&mut unavailable, "writeback by process", &dirtied);
        Ok(unavailable)
    }
}

/// Maps of the programs for requests in which those for files look up what these have found: what completes, who dirtied a
/// file, and names of processes.
const LOOKED_UP: [&str; 3] = ["completed", "dirtiers", "names"];

/// Programs that store who submits a request, and their tracepoints: the second one before 6.5.
pub(super) const IO_START: (&str, &str) = ("io_start", "block_io_start");
pub(super) const RQ_INSERT: (&str, &str) = ("rq_insert", "block_rq_insert");
