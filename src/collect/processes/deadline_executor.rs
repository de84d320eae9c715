//! Runs a job that may never return, such as a read of a file on a dead file system, and waits for it only so long.
//!
//! Each job gets a thread of its own. A thread whose job does not return in time is abandoned; it ends when the job
//! returns after all. Reads of `/proc` and of files block killably, so such a thread does not keep the process from
//! exiting. While one is abandoned no further job is started: at most one thread per executor hangs.

use super::stuck_read::is_thread_runnable;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// How long a job may take. A thread that waits for a CPU at that moment gets the same time again.
pub(super) const DEADLINE: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(super) struct DeadlineExecutor {
    is_busy: Arc<AtomicBool>,
}

impl DeadlineExecutor {
    /// Returns what `job` returns; `None` if it hangs, if an earlier one still hangs, or if there is no thread for it.
    pub(super) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        if self.is_busy.swap(true, Relaxed) {
            return None;
        }
        let (sender, receiver) = sync_channel(1);
        let (is_busy, thread_id) = (self.is_busy.clone(), Arc::new(AtomicU32::new(0)));
        let id = thread_id.clone();
        let spawned = std::thread::Builder::new().name("proc-read".into()).stack_size(256 * 1024).spawn(move || {
            id.store(rustix::thread::gettid().as_raw_nonzero().get() as u32, Relaxed);
            let result = job();
            is_busy.store(false, Relaxed);
            let _ = sender.send(result);
        });
        if spawned.is_err() {
            self.is_busy.store(false, Relaxed);
        }
        loop {
            let id = thread_id.load(Relaxed);
            match receiver.recv_timeout(DEADLINE) {
                Err(RecvTimeoutError::Timeout) if id == 0 || is_thread_runnable(id) => {}
                result => return result.ok(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_hanging_job_is_abandoned_and_blocks_further_jobs_until_it_returns() {
        let executor = DeadlineExecutor::default();
        assert_eq!(executor.run(|| 1), Some(1));
        let (release, wait) = channel::<()>();
        assert_eq!(executor.run(move || wait.recv().is_ok()), None);
        assert_eq!(executor.run(|| 2), None, "one still hangs");
        drop(release);
        while executor.is_busy.load(Relaxed) {
            std::thread::yield_now();
        }
        assert_eq!(executor.run(|| 3), Some(3));
    }
}
