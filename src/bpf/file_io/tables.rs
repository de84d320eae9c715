//! Reads the accounts and paths of the kernel side, and removes those that were idle for long.
//!
//! Layouts are those of the structs in `assets/trace/files.bpf.c`.

use super::super::bpf_sys::BpfMap;
use super::super::io_accounting::account_map::{AccountSum, VALUE_LEN};
use super::super::io_accounting::{NAME_LEN, read_name};
use super::super::layout::{PART_LEN, PARTS_OFFSET, parse_path_tail, read_u32, read_u64, unpack_device};
use super::super::loader::open_map;
use super::super::nvme_paths::PathHeads;
use super::super::unavailable::ProbeUnavailable;
use crate::model::file_io::{FileClass, FileId, FileIoAccount, FileIoKey, FileIoRaw, FileName};
use crate::root::Root;
use aya::Ebpf;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use strum::VariantArray as _;

pub(crate) const KEY_LEN: usize = 32;
/// `struct file_key` in `assets/trace/paths.h`.
pub(crate) const PATH_KEY_LEN: usize = 16;
/// `PARTS` in `assets/trace/files.bpf.c`.
const PATH_PARTS: usize = 10;
/// `struct path_tail`.
pub(crate) const PATH_LEN: usize = PARTS_OFFSET + PATH_PARTS * PART_LEN;
/// `max_entries` of `accounts`.
const MAX_ACCOUNTS: usize = 8192;
/// `max_entries` of `paths` in `assets/trace/paths.h`.
const MAX_PATHS: usize = 4096;
/// An account unchanged for this many readings may be removed.
pub(super) const IDLE_READS: u32 = 120;

pub(crate) fn parse_key(bytes: &[u8; KEY_LEN]) -> Option<FileIoKey> {
    let kind = read_u32(bytes, 20);
    Some(FileIoKey {
        device: unpack_device(read_u32(bytes, 12)),
        class: *FileClass::VARIANTS.get(kind as usize >> 1)?,
        file: FileId {
            file_system: unpack_device(read_u32(bytes, 8)),
            ino: read_u64(bytes, 0),
            generation: read_u32(bytes, 28),
        },
        pid: read_u32(bytes, 16),
        is_write: kind & 1 == 1,
    })
}

pub(crate) fn parse_file_id(key: &[u8; PATH_KEY_LEN]) -> FileId {
    let file_system = unpack_device(read_u32(key, 8));
    FileId { file_system, ino: read_u64(key, 0), generation: read_u32(key, 12) }
}

fn path_key(id: FileId) -> [u8; PATH_KEY_LEN] {
    let mut key = [0; PATH_KEY_LEN];
    key[..8].copy_from_slice(&id.ino.to_ne_bytes());
    key[8..12].copy_from_slice(&super::super::layout::pack_device(id.file_system).to_ne_bytes());
    key[12..].copy_from_slice(&id.generation.to_ne_bytes());
    key
}

/// Parses a path; `value` has [`PATH_LEN`] bytes.
pub(crate) fn parse_name(id: FileId, value: &[u8]) -> FileName {
    let (path_tail, is_full_path) = parse_path_tail(value);
    FileName { id, path_tail, is_full_path }
}

/// Adds the paths of the wanted files that are new, forgets those of others, and removes most of these from the table.
pub(crate) fn read_paths(
    paths: &BpfMap<PATH_KEY_LEN>,
    files: &mut BTreeMap<FileId, Arc<FileName>>,
    wanted: &BTreeSet<FileId>,
) -> io::Result<()> {
    files.retain(|id, _| wanted.contains(id));
    if files.len() == wanted.len() {
        return Ok(());
    }
    let mut unused = Vec::new();
    paths.for_each(MAX_PATHS, |key, value| {
        let id = parse_file_id(key);
        match wanted.contains(&id) {
            true => drop(files.entry(id).or_insert_with(|| Arc::new(parse_name(id, value)))),
            false => unused.push(id),
        }
    })?;
    // What it is for may have been counted after the accounts were read, so a few are left.
    for id in unused.iter().take(unused.len().saturating_sub(MAX_PATHS / 4)) {
        paths.remove(&path_key(*id))?;
    }
    Ok(())
}

/// Requests, bytes and the number of readings since they changed.
type LastSeen = (u64, u64, u32);

/// The maps of the kernel side, and what is kept between readings.
pub(super) struct FileTables {
    accounts: BpfMap<KEY_LEN>,
    paths: BpfMap<PATH_KEY_LEN>,
    names: BpfMap<4>,
    last_seen: BTreeMap<FileIoKey, LastSeen>,
    files: BTreeMap<FileId, Arc<FileName>>,
    processes: BTreeMap<u32, Arc<str>>,
    heads: PathHeads,
}

impl FileTables {
    pub(super) fn open(programs: &Ebpf, root: &Root) -> Result<Self, ProbeUnavailable> {
        Ok(Self {
            accounts: open_map(programs, "accounts", VALUE_LEN)?,
            paths: open_map(programs, "paths", PATH_LEN)?,
            names: open_map(programs, "names", NAME_LEN)?,
            last_seen: BTreeMap::new(),
            files: BTreeMap::new(),
            processes: BTreeMap::new(),
            heads: PathHeads::new(root),
        })
    }

    /// Reads all tables; the rest of the reading is empty. `reads`: number of readings that this one stands for.
    pub(super) fn read(&mut self, reads: u32) -> io::Result<FileIoRaw> {
        let mut sums: BTreeMap<FileIoKey, AccountSum<KEY_LEN>> = BTreeMap::new();
        self.heads.start_reading();
        // An account created meanwhile may be missed; the next reading has it.
        self.accounts.for_each(MAX_ACCOUNTS, |key_bytes, value| {
            if let Some(key) = parse_key(key_bytes) {
                let key = FileIoKey { device: self.heads.head(key.device), ..key };
                sums.entry(key).or_default().add(*key_bytes, value);
            }
        })?;
        self.remove_idle(&mut sums, reads)?;
        self.read_files(&sums)?;
        self.read_processes(&sums)?;
        let account = |(key, sum): (FileIoKey, AccountSum<KEY_LEN>)| FileIoAccount {
            key,
            requests: sum.requests,
            bytes: sum.bytes,
            total_ns: sum.ns,
            histogram: sum.histogram(),
        };
        Ok(FileIoRaw {
            files: self.files.values().cloned().collect(),
            processes: self.processes.iter().map(|(pid, name)| (*pid, name.clone())).collect(),
            accounts: sums.into_iter().map(account).collect(),
            ..FileIoRaw::default()
        })
    }

    /// Removes accounts that were idle for long; those idle longest first if the table is almost full.
    fn remove_idle(&mut self, sums: &mut BTreeMap<FileIoKey, AccountSum<KEY_LEN>>, reads: u32) -> io::Result<()> {
        self.last_seen.retain(|key, _| sums.contains_key(key));
        let mut shards = 0;
        for (key, sum) in &*sums {
            shards += sum.keys.len();
            let seen = self.last_seen.entry(*key).or_insert((sum.requests, sum.bytes, 0));
            let is_idle = (seen.0, seen.1) == (sum.requests, sum.bytes);
            *seen = (sum.requests, sum.bytes, if is_idle { seen.2.saturating_add(reads) } else { 0 });
        }
        let mut idle: Vec<(u32, FileIoKey)> =
            self.last_seen.iter().filter(|(_, seen)| seen.2 > 1).map(|(key, seen)| (seen.2, *key)).collect();
        idle.sort_unstable_by_key(|(reads, _)| std::cmp::Reverse(*reads));
        for (reads, key) in idle {
            if reads < IDLE_READS && shards <= MAX_ACCOUNTS / 2 {
                break;
            }
            let Some(sum) = sums.remove(&key) else { continue };
            shards -= sum.keys.len();
            sum.keys.iter().try_for_each(|key_bytes| self.accounts.remove(key_bytes))?;
            self.last_seen.remove(&key);
        }
        Ok(())
    }

    fn read_files(&mut self, sums: &BTreeMap<FileIoKey, AccountSum<KEY_LEN>>) -> io::Result<()> {
        let wanted = sums.keys().map(|key| key.file).filter(|id| id.ino > 0).collect();
        read_paths(&self.paths, &mut self.files, &wanted)
    }

    fn read_processes(&mut self, sums: &BTreeMap<FileIoKey, AccountSum<KEY_LEN>>) -> io::Result<()> {
        let pids: BTreeSet<u32> = sums.keys().map(|key| key.pid).filter(|pid| *pid > 0).collect();
        self.processes.retain(|pid, _| pids.contains(pid));
        for pid in pids {
            if let Some(name) = read_name(&self.names, pid)?
                && self.processes.get(&pid).is_none_or(|old| **old != *name)
            {
                self.processes.insert(pid, name.into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::bpf_sys::tests::create_hash_map;
    use super::super::super::layout::pack_device;
    use super::super::super::nvme_paths::tests::{HEAD, PATH, write_diskstats};
    use super::*;
    use crate::model::disk::DevId;

    #[test]
    fn requests_of_the_path_of_an_nvme_disk_are_its_own() {
        let maps = (create_hash_map(4, VALUE_LEN), create_hash_map(4, PATH_LEN), create_hash_map(4, NAME_LEN));
        let (Some(accounts), Some(paths), Some(names)) = maps else {
            return println!("skipped requests_of_the_path_of_an_nvme_disk_are_its_own: may not make maps");
        };
        let dir = tempfile::tempdir().unwrap();
        write_diskstats(&Root::at(dir.path()), 3);
        let mut key = [0; KEY_LEN];
        key[12..16].copy_from_slice(&pack_device(PATH).to_ne_bytes());
        accounts.insert(&key, &mut [0; VALUE_LEN]).unwrap();
        let mut tables = FileTables {
            accounts,
            paths,
            names,
            last_seen: BTreeMap::new(),
            files: BTreeMap::new(),
            processes: BTreeMap::new(),
            heads: PathHeads::new(&Root::at(dir.path())),
        };
        let read = tables.read(1).unwrap();
        assert_eq!(read.accounts.iter().map(|account| account.key.device).collect::<Vec<_>>(), [HEAD]);
    }

    #[test]
    fn keys_are_parsed_as_the_bpf_program_lays_them_out() {
        let mut bytes = [0; KEY_LEN];
        bytes[..8].copy_from_slice(&12u64.to_ne_bytes());
        bytes[8..12].copy_from_slice(&(8u32 << 20 | 1).to_ne_bytes());
        bytes[12..16].copy_from_slice(&(8u32 << 20).to_ne_bytes());
        bytes[16..20].copy_from_slice(&77u32.to_ne_bytes());
        bytes[20..24].copy_from_slice(&(1u32 << 1 | 1).to_ne_bytes());
        bytes[28..].copy_from_slice(&5u32.to_ne_bytes());
        let file = FileId { file_system: DevId { major: 8, minor: 1 }, ino: 12, generation: 5 };
        assert_eq!(
            parse_key(&bytes),
            Some(FileIoKey {
                device: DevId { major: 8, minor: 0 },
                class: FileClass::Metadata,
                file,
                pid: 77,
                is_write: true
            })
        );
        assert_eq!(parse_file_id(&path_key(file)), file);
        bytes[20] = 14;
        assert_eq!(parse_key(&bytes), None, "there are seven classes");
    }
}
