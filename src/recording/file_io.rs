//! I/O by file as differences to the tick before: the lists of files, processes and accounts only where they changed,
//! then the accounts with new counts.

use super::codec::{Coded, DecodeError, Wire};
use super::table::{DeltaRow, code_accounts, code_sorted_list};
use crate::model::file_io::{FileClass, FileId, FileIoAccount, FileIoKey, FileIoRaw, FileName};
use crate::model::io_accounting::LATENCY_BUCKETS;
use std::sync::Arc;
use strum::VariantArray as _;

pub(crate) fn file_io(w: &mut Wire, base: &Arc<FileIoRaw>, cur: &mut Arc<FileIoRaw>) -> Coded {
    let cur = Arc::make_mut(cur);
    w.nums([&mut cur.tracing_started_ns, &mut cur.read_ns, &mut cur.dropped])?;
    w.reasons(&mut cur.unavailable)?;
    code_sorted_list(w, &base.processes, &mut cur.processes, process_name)?;
    code_sorted_list(w, &base.files, &mut cur.files, file_name)?;
    let empty = |key| FileIoAccount { key, ..FileIoAccount::default() };
    code_accounts(w, (&base.accounts, &mut cur.accounts), |account| &account.key, account_key, empty)
}

pub(super) fn process_name(w: &mut Wire, (pid, name): &mut (u32, Arc<str>)) -> Coded {
    w.num(pid)?;
    w.shown_text(name)
}

pub(super) fn file_name(w: &mut Wire, file: &mut Arc<FileName>) -> Coded {
    let file = Arc::make_mut(file);
    file_id(w, &mut file.id)?;
    w.blob(&mut file.path_tail)?;
    w.flag(&mut file.is_full_path)
}

pub(super) fn file_id(w: &mut Wire, id: &mut FileId) -> Coded {
    w.nums([&mut id.file_system.major, &mut id.file_system.minor, &mut id.generation])?;
    w.num(&mut id.ino)
}

fn account_key(w: &mut Wire, key: &mut FileIoKey) -> Coded {
    let mut class = key.class as u64;
    w.nums([&mut key.device.major, &mut key.device.minor, &mut key.pid])?;
    w.num(&mut class)?;
    key.class = *FileClass::VARIANTS.get(class as usize).ok_or(DecodeError("I/O of files is of an unknown class"))?;
    w.flag(&mut key.is_write)?;
    file_id(w, &mut key.file)
}

impl DeltaRow for FileIoAccount {
    fn differs(&self, base: &Self) -> bool {
        self != base
    }

    fn values(&mut self, base: &Self, w: &mut Wire) -> Coded {
        w.delta(base.requests, &mut self.requests)?;
        w.delta(base.bytes, &mut self.bytes)?;
        w.delta(base.total_ns, &mut self.total_ns)?;
        w.histogram(&base.histogram, &mut self.histogram, LATENCY_BUCKETS)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_damage_is_harmless, round_trip};
    use super::*;
    use crate::model::disk::DevId;
    use crate::model::latency::SparseHistogram;
    use crate::model::reading::Reading;
    use proptest::prelude::*;

    fn any_id() -> impl Strategy<Value = FileId> {
        (0..3u32, 0..4u64, 0..2u32).prop_map(|(minor, ino, generation)| FileId {
            file_system: DevId { major: 8, minor },
            ino,
            generation,
        })
    }

    fn any_files() -> impl Strategy<Value = Reading<Arc<FileIoRaw>>> {
        let key = (any_id(), 0..3u32, 0..FileClass::VARIANTS.len(), 0..9u32, any::<bool>()).prop_map(
            |(file, minor, class, pid, is_write)| FileIoKey {
                device: DevId { major: 8, minor },
                class: FileClass::VARIANTS[class],
                file,
                pid,
                is_write,
            },
        );
        let times = proptest::collection::btree_map(0..LATENCY_BUCKETS as u16, 1..=u32::MAX, 0..4)
            .prop_map(SparseHistogram::from_sparse);
        let accounts = proptest::collection::btree_map(key, (any::<u64>(), any::<u64>(), any::<u64>(), times), 0..6);
        let files = proptest::collection::btree_map(any_id(), ("[a-z/]{0,9}", any::<bool>()), 0..4);
        let processes = proptest::collection::btree_map(0..9u32, "[a-z]{0,9}", 0..4);
        (accounts, files, processes, any::<[u64; 3]>()).prop_map(
            |(accounts, files, processes, [start, read, dropped])| {
                let account = |(key, (requests, bytes, total_ns, histogram))| FileIoAccount {
                    key,
                    requests,
                    bytes,
                    total_ns,
                    histogram,
                };
                let file = |(id, (path, is_full_path)): (FileId, (String, bool))| {
                    Arc::new(FileName { id, path_tail: path.as_str().into(), is_full_path })
                };
                Reading::Ok(Arc::new(FileIoRaw {
                    tracing_started_ns: start,
                    read_ns: read,
                    accounts: accounts.into_iter().map(account).collect(),
                    files: files.into_iter().map(file).collect(),
                    processes: processes.into_iter().map(|(pid, name)| (pid, name.into())).collect(),
                    dropped,
                    unavailable: vec!["zram: no".into()],
                }))
            },
        )
    }

    proptest! {
        #[test]
        fn files_round_trip(a in any_files(), b in any_files()) {
            prop_assert_eq!(round_trip(&a, &b, file_io).1, b.clone());
            prop_assert_eq!(round_trip(&Reading::default(), &b, file_io).1, b);
        }

        #[test]
        fn damage_is_rejected_or_read(
            files in (any_files(), any_files()), at in any::<proptest::sample::Index>(), to in any::<u8>(),
        ) {
            assert_damage_is_harmless(&files, at, to, file_io);
        }
    }
}
