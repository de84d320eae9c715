//! I/O of each process, and writeback attributed to the processes that dirtied the pages (`assets/trace/charge.bpf.c`).

mod account_map;
mod cgroup_paths;

use super::bpf_sys::{BpfMap, ReadingCache, sum_percpu_counter, take_dirty_flag};
use super::kernel_info::KernelInfo;
use super::loader::{self, attach_all};
use super::probe::Probe;
use super::unavailable::ProbeUnavailable;
use crate::model::io_accounting::IoAccountsRaw;
use crate::model::reading::Reading;
use crate::root::Root;
use crate::sanitize::sanitize;
use account_map::{AccountReader, IDLE_READS};
use aya::maps::MapData;
use aya::{Ebpf, include_bytes_aligned};
use cgroup_paths::CgroupPaths;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

/// The compiled programs; `assets/trace/build.sh` rebuilds them.
static BPF_OBJECT: &[u8] = include_bytes_aligned!("../../../assets/trace/charge.bpf.o");

/// `NAMES` in `assets/trace/charge.bpf.c`.
const NAME_SLOTS: u32 = 4096;
/// `SHARDS` in `assets/trace/charge.bpf.c`: CPUs with a shard of their own in each account.
const SHARDS: usize = 8;
/// Devices that take bios have no requests.
const BIO_DEVICES_NOTE: &str =
    "bio-based devices (zram, dm, md) are not counted by process; the devices below them are";

/// The loaded programs; dropping this unloads them.
pub struct IoAccountingProbe {
    /// Holds the programs and their links.
    _programs: Ebpf,
    accounts: MapData,
    names_map: MapData,
    drops: MapData,
    dirty_flag: MapData,
    root: Root,
    cpus: usize,
    account_reader: AccountReader,
    names: BTreeMap<u32, Arc<str>>,
    cgroup_paths: CgroupPaths,
    cache: ReadingCache<Arc<IoAccountsRaw>>,
    unavailable: Vec<String>,
}

impl Probe for IoAccountingProbe {
    type Output = Arc<IoAccountsRaw>;

    fn load(kernel: &KernelInfo) -> Result<Self, ProbeUnavailable> {
        load(kernel)
    }

    fn read(&mut self) -> Reading<Arc<IoAccountsRaw>> {
        match self.read_if_changed() {
            Ok(read) => Reading::Ok(read),
            Err(err) => Reading::from_io_error("reading I/O accounting", &err),
        }
    }
}

impl IoAccountingProbe {
    fn read_if_changed(&mut self) -> io::Result<Arc<IoAccountsRaw>> {
        // The maps are read at intervals even if nothing changed, to remove idle accounts.
        let is_dirty = take_dirty_flag(self.dirty_flag.fd().as_fd())?;
        if let Some(same) = self.cache.get(is_dirty, IDLE_READS) {
            return Ok(same);
        }
        let read = Arc::new(self.read_maps()?);
        self.cache.store(&read);
        Ok(read)
    }

    fn read_maps(&mut self) -> io::Result<IoAccountsRaw> {
        let accounts =
            self.account_reader.read(self.accounts.fd().as_fd(), &self.root, self.cache.reads_since_store())?;
        let pids: BTreeSet<u32> = accounts.iter().map(|a| a.key.pid).filter(|pid| *pid > 0).collect();
        self.names.retain(|pid, _| pids.contains(pid));
        // The kernel side stores the name of a process that does I/O.
        for pid in pids.iter().filter(|pid| self.account_reader.has_moved(**pid)) {
            // An exec changes the name. A name whose slot was taken by another process is kept.
            let name = self.read_name(*pid)?;
            if let Some(name) = name.filter(|new| self.names.get(pid).is_none_or(|old| **old != **new)) {
                self.names.insert(*pid, name.into());
            }
        }
        let groups =
            self.cgroup_paths.resolve(&self.root, accounts.iter().map(|a| a.key.cgroup_id).filter(|id| *id > 0));
        Ok(IoAccountsRaw {
            accounts,
            names: self.names.iter().map(|(pid, name)| (*pid, name.clone())).collect(),
            cgroups: groups,
            dropped: sum_percpu_counter(self.drops.fd().as_fd(), self.cpus)?,
            unavailable: self.unavailable.clone(),
        })
    }

    /// Returns the name that the process had when it did I/O; `None` if another process has its slot.
    fn read_name(&self, pid: u32) -> io::Result<Option<String>> {
        let map = BpfMap::<4> { fd: self.names_map.fd().as_fd(), value_len: 20 };
        let mut value = [0; 20];
        map.get(&(pid % NAME_SLOTS).to_ne_bytes(), &mut value)?;
        let (whose, name) = value.split_at(4);
        let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
        Ok((whose == pid.to_ne_bytes().as_slice()).then(|| sanitize(&name[..end])))
    }
}

/// Loads what this kernel supports.
fn load(kernel: &KernelInfo) -> Result<IoAccountingProbe, ProbeUnavailable> {
    let queue_first = |point: &str| kernel.tracepoints.argument_count(point) == Some(2);
    let settings = [
        ("RQ_INSERT_QUEUE", queue_first("block_rq_insert")),
        ("RQ_ISSUE_QUEUE", queue_first("block_rq_issue")),
        ("SHARED", kernel.cpus > SHARDS),
    ];
    let mut programs = loader::open_object(kernel, BPF_OBJECT, &settings)?;
    let mut map = |name| loader::take_map(&mut programs, name);
    let (accounts, named, lost) = (map("accounts")?, map("names")?, map("lost")?);
    let is_dirty = map(loader::BSS_MAP)?;
    let complete = ("rq_complete", "block_rq_complete");
    let requests: &[_] = match kernel.tracepoints.argument_count("block_io_start") {
        Some(_) => &[("io_start", "block_io_start"), complete],
        // The first of the two tracepoints identifies the submitter.
        None => &[("rq_insert", "block_rq_insert"), ("rq_issue", "block_rq_issue"), complete],
    };
    attach_all(&mut programs, &kernel.btf, requests)?;
    let mut unavailable = vec![BIO_DEVICES_NOTE.to_owned()];
    let folio = "writeback_dirty_folio";
    let point = if kernel.tracepoints.argument_count(folio).is_some() { folio } else { "writeback_dirty_page" };
    if let Err(ProbeUnavailable::Absent(why) | ProbeUnavailable::Denied(why)) =
        attach_all(&mut programs, &kernel.btf, &[("dirtied", point)])
    {
        unavailable.push(format!("writeback by process: {why}"));
    }
    Ok(IoAccountingProbe {
        _programs: programs,
        accounts,
        names_map: named,
        drops: lost,
        dirty_flag: is_dirty,
        root: kernel.root.clone(),
        cpus: kernel.cpus,
        account_reader: AccountReader::default(),
        names: BTreeMap::new(),
        cgroup_paths: CgroupPaths::default(),
        cache: ReadingCache::default(),
        unavailable,
    })
}
