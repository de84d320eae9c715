//! Waits of tasks as differences to the tick before: the lists of files, processes and keys only where they changed, then
//! the accounts with new waits.

use super::codec::{Coded, DecodeError, Wire};
use super::file_io::{file_id, file_name, process_name};
use super::table::{DeltaRow, code_accounts, code_sorted_list};
use crate::model::memory_stalls::StallCounter;
use crate::model::task_waits::{TaskWaitsRaw, WaitAccount, WaitKey, WaitReason};
use std::sync::Arc;
use strum::VariantArray as _;

pub(crate) fn task_waits(w: &mut Wire, base: &Arc<TaskWaitsRaw>, cur: &mut Arc<TaskWaitsRaw>) -> Coded {
    let cur = Arc::make_mut(cur);
    w.nums([&mut cur.tracing_started_ns, &mut cur.read_ns, &mut cur.dropped])?;
    w.reasons(&mut cur.unavailable)?;
    code_sorted_list(w, &base.processes, &mut cur.processes, process_name)?;
    code_sorted_list(w, &base.files, &mut cur.files, file_name)?;
    let empty = |key| WaitAccount { key, waits: StallCounter::default() };
    code_accounts(w, (&base.accounts, &mut cur.accounts), |account| &account.key, wait_key, empty)
}

fn wait_key(w: &mut Wire, key: &mut WaitKey) -> Coded {
    let mut reason = key.reason as u64;
    w.num(&mut key.pid)?;
    w.nums([&mut key.starttime, &mut reason])?;
    key.reason = *WaitReason::VARIANTS.get(reason as usize).ok_or(DecodeError("a wait has an unknown reason"))?;
    file_id(w, &mut key.file)?;
    w.nums([&mut key.device.major, &mut key.device.minor, &mut key.holder])?;
    w.shown_text(&mut key.function)
}

impl DeltaRow for WaitAccount {
    fn differs(&self, base: &Self) -> bool {
        self != base
    }

    fn values(&mut self, base: &Self, w: &mut Wire) -> Coded {
        let cells = |account: &Self| [account.waits.count, account.waits.total_ns, account.waits.max_ns];
        let [count, total_ns, max_ns] = w.cells(cells(base), cells(self))?;
        self.waits = StallCounter { count, total_ns, max_ns };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_damage_is_harmless, round_trip};
    use super::*;
    use crate::model::disk::DevId;
    use crate::model::file_io::{FileId, FileName};
    use crate::model::reading::Reading;
    use proptest::prelude::*;

    fn any_waits() -> impl Strategy<Value = Reading<Arc<TaskWaitsRaw>>> {
        let id = |(minor, ino)| FileId { file_system: DevId { major: 8, minor }, ino, generation: 1 };
        let key = (0..5u32, 0..2u64, 0..WaitReason::VARIANTS.len(), (0..2u32, 0..3u64), 0..3u32, "[a-z]{0,5}")
            .prop_map(move |(pid, starttime, reason, file, holder, function)| WaitKey {
                pid,
                starttime,
                reason: WaitReason::VARIANTS[reason],
                file: id(file),
                device: DevId { major: 7, minor: holder },
                holder,
                function: function.into(),
            });
        let counter =
            any::<(u64, u64, u64)>().prop_map(|(count, total_ns, max_ns)| StallCounter { count, total_ns, max_ns });
        let accounts = proptest::collection::btree_map(key, counter, 0..6);
        let files = proptest::collection::btree_map((0..2u32, 0..3u64), "[a-z/]{0,9}", 0..4);
        let processes = proptest::collection::btree_map(0..9u32, "[a-z]{0,9}", 0..4);
        (accounts, files, processes, any::<[u64; 3]>()).prop_map(
            move |(accounts, files, processes, [start, read, dropped])| {
                let file = |(file, path): ((u32, u64), String)| {
                    Arc::new(FileName { id: id(file), path_tail: path.as_str().into(), is_full_path: true })
                };
                Reading::Ok(Arc::new(TaskWaitsRaw {
                    tracing_started_ns: start,
                    read_ns: read,
                    accounts: accounts.into_iter().map(|(key, waits)| WaitAccount { key, waits }).collect(),
                    files: files.into_iter().map(file).collect(),
                    processes: processes.into_iter().map(|(pid, name)| (pid, name.into())).collect(),
                    dropped,
                    unavailable: vec!["locks: no".into()],
                }))
            },
        )
    }

    proptest! {
        #[test]
        fn waits_round_trip(a in any_waits(), b in any_waits()) {
            prop_assert_eq!(round_trip(&a, &b, task_waits).1, b.clone());
            prop_assert_eq!(round_trip(&Reading::default(), &b, task_waits).1, b);
        }

        #[test]
        fn damage_is_rejected_or_read(
            waits in (any_waits(), any_waits()), at in any::<proptest::sample::Index>(), to in any::<u8>(),
        ) {
            assert_damage_is_harmless(&waits, at, to, task_waits);
        }
    }
}
