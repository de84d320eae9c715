//! Reads the accounts of the kernel side, sums their per-CPU shards, and removes those of processes that exited long
//! ago.

use super::super::bpf_sys::BpfMap;
use super::super::layout::{read_u32, read_u64, unpack_device};
use super::super::loader::open_map;
use super::super::nvme_paths::PathHeads;
use super::super::unavailable::ProbeUnavailable;
use crate::model::io_accounting::{AccountKey, AccountKind, IoAccount, LATENCY_BUCKETS};
use crate::model::latency::SparseHistogram;
use crate::root::Root;
use aya::Ebpf;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// `struct key` in `assets/trace/charge.h`.
pub(crate) const KEY_LEN: usize = 24;
/// `struct account` in `assets/trace/account.h`.
pub(crate) const VALUE_LEN: usize = 24 + 4 * LATENCY_BUCKETS;
const MAX_ACCOUNTS: usize = 16_384;
/// An account unchanged for this many readings may be removed once its process has exited.
pub(super) const IDLE_READS: u32 = 60;
/// The same while more than half of the table is in use, so that new processes find room.
const CROWDED_IDLE_READS: u32 = 5;

/// Added to the kind by the kernel side for devices that take bios.
const STACKED: u32 = 16;

/// Kinds as numbered by the kernel side.
fn parse_kind(n: u32) -> Option<AccountKind> {
    Some(match n & !STACKED {
        0 => AccountKind::Read,
        1 => AccountKind::Write,
        2 => AccountKind::Flush,
        3 => AccountKind::Discard,
        4 => AccountKind::Writeback,
        5 => AccountKind::SwapOut,
        6 => AccountKind::Metadata,
        7 => AccountKind::OwnWriteback,
        _ => return None,
    })
}

pub(crate) fn parse_key(bytes: &[u8; KEY_LEN]) -> Option<AccountKey> {
    Some(AccountKey {
        pid: read_u32(bytes, 8),
        device: unpack_device(read_u32(bytes, 12)),
        cgroup_id: read_u64(bytes, 0),
        kind: parse_kind(read_u32(bytes, 16))?,
        is_stacked: read_u32(bytes, 16) & STACKED != 0,
    })
}

/// Sum over the shards of an account.
pub(crate) struct AccountSum<const K: usize> {
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    pub(crate) ns: u64,
    times: Option<Box<[u32; LATENCY_BUCKETS]>>,
    /// The shards.
    pub(crate) keys: Vec<[u8; K]>,
}

impl<const K: usize> Default for AccountSum<K> {
    fn default() -> Self {
        Self { requests: 0, bytes: 0, ns: 0, times: None, keys: Vec::new() }
    }
}

impl<const K: usize> AccountSum<K> {
    pub(crate) fn histogram(&self) -> SparseHistogram {
        SparseHistogram::from_dense(self.times.iter().flat_map(|times| **times))
    }

    pub(crate) fn add(&mut self, key_bytes: [u8; K], value: &[u8]) {
        self.keys.push(key_bytes);
        self.requests = self.requests.wrapping_add(read_u64(value, 0));
        self.bytes = self.bytes.wrapping_add(read_u64(value, 8));
        self.ns = self.ns.wrapping_add(read_u64(value, 16));
        let times = self.times.get_or_insert_with(|| Box::new([0; LATENCY_BUCKETS]));
        for (slot, sum) in times.iter_mut().enumerate() {
            *sum = sum.wrapping_add(read_u32(value, 24 + 4 * slot));
        }
    }
}

pub(super) struct AccountReader {
    map: BpfMap<KEY_LEN>,
    /// Bytes and requests at the last change, and the number of readings since.
    last_seen: BTreeMap<AccountKey, (u64, u64, u32)>,
    /// Processes with accounts that are new or changed in the last reading.
    moved: BTreeSet<u32>,
    heads: PathHeads,
}

impl AccountReader {
    pub(super) fn open(programs: &Ebpf, root: &Root) -> Result<Self, ProbeUnavailable> {
        let map = open_map(programs, "accounts", VALUE_LEN)?;
        Ok(Self { map, last_seen: BTreeMap::new(), moved: BTreeSet::new(), heads: PathHeads::new(root) })
    }

    /// Reads all accounts, by key, and removes idle ones of exited processes. `reads`: number of readings that this one
    /// stands for.
    pub(super) fn read(&mut self, root: &Root, reads: u32) -> io::Result<Vec<IoAccount>> {
        let mut sums: BTreeMap<AccountKey, AccountSum<KEY_LEN>> = BTreeMap::new();
        self.heads.start_reading();
        // An account created meanwhile may be missed; the next reading has it.
        self.map.for_each(MAX_ACCOUNTS, |key_bytes, value| {
            if let Some(key) = parse_key(key_bytes) {
                let key = AccountKey { device: self.heads.head(key.device), ..key };
                sums.entry(key).or_default().add(*key_bytes, value);
            }
        })?;
        self.close_ended(&mut sums, root, reads)?;
        // The bios of a head are the requests of its paths.
        sums.retain(|key, _| !key.is_stacked || !self.heads.is_head(key.device));
        let account = |(key, sum): (AccountKey, AccountSum<KEY_LEN>)| IoAccount {
            key,
            requests: sum.requests,
            bytes: sum.bytes,
            total_ns: sum.ns,
            histogram: sum.histogram(),
        };
        Ok(sums.into_iter().map(account).collect())
    }

    /// Whether the process did I/O before the last reading.
    pub(super) fn has_moved(&self, pid: u32) -> bool {
        self.moved.contains(&pid)
    }

    fn close_ended(
        &mut self,
        sums: &mut BTreeMap<AccountKey, AccountSum<KEY_LEN>>,
        root: &Root,
        reads: u32,
    ) -> io::Result<()> {
        self.last_seen.retain(|key, _| sums.contains_key(key));
        self.moved.clear();
        let in_use: usize = sums.values().map(|sum| sum.keys.len()).sum();
        let limit = if in_use > MAX_ACCOUNTS / 2 { CROWDED_IDLE_READS } else { IDLE_READS };
        let mut ended: BTreeMap<u32, bool> = BTreeMap::new();
        let mut closed = Vec::new();
        sums.retain(|key, sum| {
            let seen = self.last_seen.entry(*key).or_insert((sum.bytes, sum.requests, 0));
            if (seen.0, seen.1) != (sum.bytes, sum.requests) {
                *seen = (sum.bytes, sum.requests, 0);
            }
            let before = seen.2;
            if before == 0 {
                self.moved.insert(key.pid);
            }
            seen.2 = before.saturating_add(reads);
            // Exits are checked rarely.
            let is_check_due = key.pid > 0 && seen.2 / limit > before / limit;
            let has_exited = is_check_due && *ended.entry(key.pid).or_insert_with(|| has_ended(root, key.pid));
            if has_exited {
                closed.append(&mut sum.keys);
            }
            !has_exited
        });
        closed.iter().try_for_each(|key_bytes| self.map.remove(key_bytes))
    }
}

fn has_ended(root: &Root, pid: u32) -> bool {
    let found = rustix::fs::stat(root.proc(&pid.to_string()));
    matches!(found, Err(err) if err == rustix::io::Errno::NOENT)
}

#[cfg(test)]
mod tests {
    use super::super::super::bpf_sys::tests::create_hash_map;
    use super::super::super::layout::pack_device;
    use super::super::super::nvme_paths::tests::{HEAD, write_diskstats};
    use super::*;
    use crate::model::disk::DevId;

    #[test]
    fn a_table_more_than_half_full_is_emptied_of_ended_processes_sooner() {
        let Some(map) = create_hash_map::<KEY_LEN>(MAX_ACCOUNTS as u32, VALUE_LEN) else {
            return println!(
                "skipped a_table_more_than_half_full_is_emptied_of_ended_processes_sooner: may not make maps"
            );
        };
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        for pid in 1..=MAX_ACCOUNTS as u32 / 2 + 1 {
            let mut key = [0; KEY_LEN];
            key[8..12].copy_from_slice(&pid.to_ne_bytes());
            map.insert(&key, &mut [0; VALUE_LEN]).unwrap();
        }
        let heads = PathHeads::new(&root);
        let mut accounts = AccountReader { map, last_seen: BTreeMap::new(), moved: BTreeSet::new(), heads };
        let mut left = |reads| accounts.read(&root, reads).unwrap().len();
        assert_eq!(left(CROWDED_IDLE_READS - 1), MAX_ACCOUNTS / 2 + 1);
        assert_eq!(left(1), 0);
    }

    #[test]
    fn accounts_of_ended_processes_are_removed_from_the_kernel() {
        let Some(map) = create_hash_map::<KEY_LEN>(4, VALUE_LEN) else {
            return println!("skipped accounts_of_ended_processes_are_removed_from_the_kernel: may not make maps");
        };
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        std::fs::create_dir_all(root.proc("77")).unwrap();
        for pid in [77u32, 78] {
            let mut key = [0; KEY_LEN];
            key[8..12].copy_from_slice(&pid.to_ne_bytes());
            map.insert(&key, &mut [0; VALUE_LEN]).unwrap();
        }
        let (in_kernel, heads) = (map.try_clone().unwrap(), PathHeads::new(&root));
        let mut accounts = AccountReader { map, last_seen: BTreeMap::new(), moved: BTreeSet::new(), heads };
        let mut pids = || -> Vec<u32> {
            accounts.read(&root, IDLE_READS - 1).unwrap().iter().map(|account| account.key.pid).collect()
        };
        assert_eq!(pids(), [77, 78], "not idle for long");
        assert_eq!(pids(), [77]);
        let mut left = 0;
        in_kernel.for_each(9, |_, _| left += 1).unwrap();
        assert_eq!(left, 1);
    }

    #[test]
    fn requests_of_all_paths_of_an_nvme_disk_are_its_own() {
        let Some(map) = create_hash_map::<KEY_LEN>(4, VALUE_LEN) else {
            return println!("skipped requests_of_all_paths_of_an_nvme_disk_are_its_own: may not make maps");
        };
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        write_diskstats(&root, 3);
        for minor in 0..2u32 {
            let (mut key, mut value) = ([0; KEY_LEN], [0; VALUE_LEN]);
            key[12..16].copy_from_slice(&(259 << 20 | minor).to_ne_bytes());
            value[..8].copy_from_slice(&u64::from(3 + minor).to_ne_bytes());
            map.insert(&key, &mut value).unwrap();
        }
        let mut of_bios = [0; KEY_LEN];
        of_bios[12..16].copy_from_slice(&pack_device(HEAD).to_ne_bytes());
        of_bios[16..20].copy_from_slice(&STACKED.to_ne_bytes());
        map.insert(&of_bios, &mut [1; VALUE_LEN]).unwrap();
        let heads = PathHeads::new(&root);
        let mut accounts = AccountReader { map, last_seen: BTreeMap::new(), moved: BTreeSet::new(), heads };
        let read = accounts.read(&root, 1).unwrap();
        let counted = read.iter().map(|account| (account.key.device, account.key.is_stacked, account.requests));
        assert_eq!(counted.collect::<Vec<_>>(), [(HEAD, false, 7)]);
    }

    #[test]
    fn keys_are_parsed_as_the_bpf_program_lays_them_out() {
        let mut bytes = [0; KEY_LEN];
        bytes[..8].copy_from_slice(&0x1_0000_0002u64.to_ne_bytes());
        bytes[8..12].copy_from_slice(&77u32.to_ne_bytes());
        bytes[12..16].copy_from_slice(&(259u32 << 20 | 5).to_ne_bytes());
        bytes[16..20].copy_from_slice(&4u32.to_ne_bytes());
        let dev = DevId { major: 259, minor: 5 };
        assert_eq!(
            parse_key(&bytes),
            Some(AccountKey {
                pid: 77,
                device: dev,
                cgroup_id: 0x1_0000_0002,
                kind: AccountKind::Writeback,
                is_stacked: false
            })
        );
        bytes[16] = 3;
        assert_eq!(parse_key(&bytes).map(|key| key.kind), Some(AccountKind::Discard));
        bytes[16] = 7;
        assert_eq!(parse_key(&bytes).map(|key| key.kind), Some(AccountKind::OwnWriteback));
        bytes[16] = 8;
        assert_eq!(parse_key(&bytes), None);
        bytes[16] = 17;
        let stacked = parse_key(&bytes).unwrap();
        assert_eq!((stacked.kind, stacked.is_stacked), (AccountKind::Write, true));
    }

    #[test]
    fn shards_are_summed_and_buckets_may_wrap() {
        let mut value = [0; VALUE_LEN];
        value[..8].copy_from_slice(&3u64.to_ne_bytes());
        value[24..28].copy_from_slice(&u32::MAX.to_ne_bytes());
        let mut sum = AccountSum::<KEY_LEN>::default();
        sum.add([0; KEY_LEN], &value);
        sum.add([1; KEY_LEN], &value);
        assert_eq!((sum.requests, sum.times.unwrap()[0], sum.keys.len()), (6, u32::MAX - 1, 2));
    }
}
