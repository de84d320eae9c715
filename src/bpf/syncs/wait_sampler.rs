//! Samples 100 times a second in which kernel function each sync in flight sleeps.
//!
//! `/proc/PID/task/TID/wchan` names the function and never blocks (fs/proc/base.c). A sync shorter than the interval
//! may be missed; then nothing is reported for it. While no sync is in flight a sample is one system call.

use super::super::bpf_sys::BpfMap;
use crate::model::syncs::ON_CPU;
use crate::root::Root;
use std::collections::HashMap;
use std::io;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// `max_entries` of `flying` in `assets/trace/syncs.bpf.c`.
pub(super) const MAX_IN_FLIGHT: usize = 4096;
/// `struct begun`: start time and key of a sync.
pub(super) const IN_FLIGHT_LEN: usize = 8 + 24;
/// `struct slow_key`: start time and thread.
pub(super) const SLOW_KEY_LEN: usize = 16;
const SAMPLE_INTERVAL: Duration = Duration::from_millis(10);
const MAX_PER_SAMPLE: usize = 256;
const MAX_SYNCS: usize = 2 * MAX_IN_FLIGHT;

type SlowSyncKey = [u8; SLOW_KEY_LEN];
/// Number of samples by function, for each sync.
type WaitCounts = HashMap<SlowSyncKey, Vec<(String, u32)>>;

/// The sampling thread; dropping this ends it.
pub(super) struct WaitSampler {
    counts: Arc<Mutex<WaitCounts>>,
    _stop: SyncSender<()>,
}

impl WaitSampler {
    /// Starts sampling the map of syncs in flight.
    pub(super) fn start(root: &Root, in_flight: BpfMap<8>) -> io::Result<Self> {
        let (end, ended) = sync_channel(0);
        let (counts, root) = (Arc::new(Mutex::new(WaitCounts::new())), root.clone());
        let shared = counts.clone();
        std::thread::Builder::new().name("sync-waits".into()).stack_size(128 * 1024).spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(SAMPLE_INTERVAL) {
                sample(&root, &in_flight, &shared);
            }
        })?;
        Ok(Self { counts, _stop: end })
    }

    /// Returns the function in which a sync was seen most often.
    pub(super) fn most_frequent(&self, key: &SlowSyncKey) -> Option<String> {
        let seen = lock(&self.counts);
        seen.get(key)?.iter().max_by_key(|(_, n)| *n).map(|(function, _)| function.clone())
    }

    /// Forgets all syncs but these, which are in flight.
    pub(super) fn retain(&self, in_flight: &[SlowSyncKey]) {
        lock(&self.counts).retain(|key, _| in_flight.contains(key));
    }
}

/// Returns the key that a sync in flight will have among slow syncs: start time and thread.
pub(super) fn slow_key(id: &[u8; 8], started: &[u8]) -> [u8; SLOW_KEY_LEN] {
    let mut key = [0; SLOW_KEY_LEN];
    key[..8].copy_from_slice(&started[..8]);
    key[8..].copy_from_slice(id);
    key
}

fn lock(seen: &Mutex<WaitCounts>) -> MutexGuard<'_, WaitCounts> {
    seen.lock().unwrap_or_else(|e| e.into_inner())
}

fn sample(root: &Root, in_flight: &BpfMap<8>, seen: &Mutex<WaitCounts>) {
    let mut ids = Vec::new();
    if in_flight.for_each(MAX_PER_SAMPLE, |id, _| ids.push(*id)).is_err() {
        return;
    }
    let mut started = vec![0; IN_FLIGHT_LEN];
    for id in ids {
        // Process in the upper half, thread in the lower half.
        let id_word = u64::from_ne_bytes(id);
        let (pid, tid) = (id_word >> 32, id_word & 0xffff_ffff);
        let Some(function) = wait_function(root, pid, tid) else { continue };
        // Read afterwards: the same sync is still in flight.
        if let Ok(true) = in_flight.get(&id, &mut started) {
            add_sample(&mut lock(seen), slow_key(&id, &started), function);
        }
    }
}

/// Returns the function in which a thread sleeps, or that it is running; `None` if unknown.
fn wait_function(root: &Root, pid: u64, tid: u64) -> Option<String> {
    let read = |name: &str| std::fs::read_to_string(root.proc(&format!("{pid}/task/{tid}/{name}"))).ok();
    let function = read("wchan")?;
    if !matches!(function.as_str(), "" | "0") {
        return Some(function);
    }
    // 0 may also mean that we may not see it: the state decides.
    let stat = read("stat")?;
    let state = stat.rsplit_once(") ")?.1.chars().next()?;
    (state == 'R').then(|| ON_CPU.to_owned())
}

fn add_sample(seen: &mut WaitCounts, key: SlowSyncKey, function: String) {
    if seen.len() >= MAX_SYNCS && !seen.contains_key(&key) {
        return;
    }
    let functions = seen.entry(key).or_default();
    match functions.iter_mut().find(|p| p.0 == function) {
        Some(function) => function.1 += 1,
        None => functions.push((function, 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_wait_function_is_reported() {
        let (end, _ended) = sync_channel(0);
        let waits = WaitSampler { counts: Arc::default(), _stop: end };
        let key = [1; SLOW_KEY_LEN];
        for function in ["folio_wait_bit", "jbd2_log_wait_commit", "jbd2_log_wait_commit"] {
            add_sample(&mut lock(&waits.counts), key, function.into());
        }
        assert_eq!(waits.most_frequent(&key).as_deref(), Some("jbd2_log_wait_commit"));
        waits.retain(&[]);
        assert_eq!(waits.most_frequent(&key), None);
    }

    #[test]
    fn a_running_thread_differs_from_a_hidden_one() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let task = root.proc("7/task/8");
        std::fs::create_dir_all(&task).unwrap();
        let put = |name: &str, text: &str| std::fs::write(task.join(name), text).unwrap();
        assert_eq!(wait_function(&root, 7, 8), None);
        for (wchan, stat, is) in [
            ("jbd2_log_wait_commit", "8 (a) D 1", Some("jbd2_log_wait_commit")),
            ("0", "8 (a) R) R 1", Some(ON_CPU)),
            ("0", "8 (a) D 1", None),
        ] {
            put("wchan", wchan);
            put("stat", stat);
            assert_eq!(wait_function(&root, 7, 8).as_deref(), is);
        }
    }
}
