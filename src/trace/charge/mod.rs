//! Who does the I/O of the devices, and for whom page cache is written back (`assets/trace/charge.bpf.c`).

mod accounts;
mod groups;

use super::ground::Ground;
use super::kernel::{Map, Unchanged, sum_of_cpus, take_news};
use super::object::{self, attach};
use super::{Probe, Without};
use crate::model::charge::ChargeRaw;
use crate::model::section::Section;
use crate::root::Root;
use crate::text::sanitize;
use accounts::{Accounts, IDLE};
use aya::maps::MapData;
use aya::{Ebpf, include_bytes_aligned};
use groups::Groups;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

/// The programs, compiled; `assets/trace/build.sh` makes it anew.
static OBJECT: &[u8] = include_bytes_aligned!("../../../assets/trace/charge.bpf.o");

/// Places for names: `NAMES` in `assets/trace/charge.bpf.c`.
const NAMES: u32 = 4096;
/// CPUs that have a shard of each account to themselves: `SHARDS` there.
const SHARDS: usize = 8;
/// Devices that take bios have no requests.
const BIOS: &str =
    "devices that work without requests (zram, dm, md) are not counted by process; what lies below them is";

/// Programs that count, as long as this lives.
pub struct Charge {
    /// Holds the programs and what attaches them.
    _programs: Ebpf,
    accounts: MapData,
    named: MapData,
    lost: MapData,
    news: MapData,
    root: Root,
    cpus: usize,
    known: Accounts,
    names: BTreeMap<u32, Arc<str>>,
    groups: Groups,
    unchanged: Unchanged<Arc<ChargeRaw>>,
    without: Vec<String>,
}

impl Probe for Charge {
    type Read = Arc<ChargeRaw>;

    fn load(ground: &Ground) -> Result<Self, Without> {
        load(ground)
    }

    fn read(&mut self) -> Section<Arc<ChargeRaw>> {
        match self.all() {
            Ok(read) => Section::Ok(read),
            Err(err) => Section::from_io("reading who does the I/O", &err),
        }
    }
}

impl Charge {
    fn all(&mut self) -> io::Result<Arc<ChargeRaw>> {
        // Now and then all the same: accounts of what has ended are closed.
        let news = take_news(self.news.fd().as_fd())?;
        if let Some(same) = self.unchanged.get(news, IDLE) {
            return Ok(same);
        }
        let read = Arc::new(self.look()?);
        self.unchanged.keep(&read);
        Ok(read)
    }

    fn look(&mut self) -> io::Result<ChargeRaw> {
        let accounts = self.known.read(self.accounts.fd().as_fd(), &self.root, self.unchanged.asked())?;
        let pids: BTreeSet<u32> = accounts.iter().map(|a| a.key.pid).filter(|pid| *pid > 0).collect();
        self.names.retain(|pid, _| pids.contains(pid));
        // The kernel keeps a name when the process does I/O.
        for pid in pids.iter().filter(|pid| self.known.moved(**pid)) {
            // An exec gives another name; a name whose place another has taken stays.
            let name = self.name(*pid)?;
            if let Some(name) = name.filter(|new| self.names.get(pid).is_none_or(|old| **old != **new)) {
                self.names.insert(*pid, name.into());
            }
        }
        let groups = self.groups.of(&self.root, accounts.iter().map(|a| a.key.group).filter(|id| *id > 0));
        Ok(ChargeRaw {
            accounts,
            names: self.names.iter().map(|(pid, name)| (*pid, name.clone())).collect(),
            groups,
            lost: sum_of_cpus(self.lost.fd().as_fd(), self.cpus)?,
            without: self.without.clone(),
        })
    }

    /// The name the process had when it did I/O; `None` where another has its place.
    fn name(&self, pid: u32) -> io::Result<Option<String>> {
        let map = Map::<4> { fd: self.named.fd().as_fd(), value_len: 20 };
        let mut value = [0; 20];
        map.get(&(pid % NAMES).to_ne_bytes(), &mut value)?;
        let (whose, name) = value.split_at(4);
        let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
        Ok((whose == pid.to_ne_bytes().as_slice()).then(|| sanitize(&name[..end])))
    }
}

/// Brings in what can be brought in.
fn load(ground: &Ground) -> Result<Charge, Without> {
    let queue_first = |point: &str| ground.points.arguments(point) == Some(2);
    let settings = [
        ("RQ_INSERT_QUEUE", queue_first("block_rq_insert")),
        ("RQ_ISSUE_QUEUE", queue_first("block_rq_issue")),
        ("SHARED", ground.cpus > SHARDS),
    ];
    let mut programs = object::open(ground, OBJECT, &settings)?;
    let mut map = |name| object::take_map(&mut programs, name);
    let (accounts, named, lost) = (map("accounts")?, map("names")?, map("lost")?);
    let news = map(object::GLOBALS)?;
    let complete = ("rq_complete", "block_rq_complete");
    let requests: &[_] = match ground.points.arguments("block_io_start") {
        Some(_) => &[("io_start", "block_io_start"), complete],
        // Whichever comes first tells who submits it.
        None => &[("rq_insert", "block_rq_insert"), ("rq_issue", "block_rq_issue"), complete],
    };
    attach(&mut programs, &ground.btf, requests)?;
    let mut without = vec![BIOS.to_owned()];
    let folio = "writeback_dirty_folio";
    let point = if ground.points.arguments(folio).is_some() { folio } else { "writeback_dirty_page" };
    if let Err(Without::Absent(why) | Without::Denied(why)) =
        attach(&mut programs, &ground.btf, &[("dirtied", point)])
    {
        without.push(format!("for whom page cache is written back: {why}"));
    }
    Ok(Charge {
        _programs: programs,
        accounts,
        named,
        lost,
        news,
        root: ground.root.clone(),
        cpus: ground.cpus,
        known: Accounts::default(),
        names: BTreeMap::new(),
        groups: Groups::default(),
        unchanged: Unchanged::default(),
        without,
    })
}
