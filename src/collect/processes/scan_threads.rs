//! Threads that scan tasks, and continue each other's scan when a read hangs.
//!
//! One thread does everything, because handing each read to another thread costs more than most reads. Where scans are
//! short the caller's own thread does it ([`InlineScanner`]), because waking a thread costs more than many reads. State
//! is in [`TaskScanner`], unlocked while a file is read that may not return. A timer runs during a scan, and a second
//! thread waits for it: if a job exceeds the deadline, that thread records the stuck read and starts a new thread,
//! which continues the same scan. The abandoned thread ends when its read returns. Such reads are killable, so they do
//! not keep the process from exiting.

use super::activity_filter::TaskstatsClient;
use super::file_reader::{TaskFileReader, TaskFiles};
use super::stuck_read::{DEADLINE, MAX_STUCK_THREADS, is_thread_runnable};
use super::task_scanner::{ScanJob, ScanOptions, TaskScanner};
use super::taskstats::TaskstatsAnswer;
use crate::collect::clock::boot_ns;
use crate::collect::sampler::THREAD_STACK_BYTES;
use crate::model::process::ProcessUpdate;
use crate::model::reading::Reading;
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// Requests scans and receives their results.
pub trait ScanConsumer: Send + Sync + 'static {
    /// Waits until a scan is requested; `None` ends the thread.
    fn next_request(&self) -> Option<ScanOptions>;
    /// The requested scan starts.
    fn scan_started(&self) {}
    /// Receives the result; returns false if no more scans are needed.
    fn scan_finished(&self, update: Reading<ProcessUpdate>) -> bool;
}

struct ScanState {
    tasks: TaskScanner,
    /// ID of the thread that runs the scan; a thread with another ID was abandoned.
    owner_id: u64,
    /// The scan runs on the caller's thread.
    is_inline: bool,
    /// The job that may not return.
    running_job: Option<RunningJob>,
}

struct RunningJob {
    job: ScanJob,
    /// CLOCK_BOOTTIME, ns.
    started_ns: u64,
    /// See [`TaskFileReader::current_file`].
    current_file: Arc<AtomicUsize>,
    thread_id: u32,
}

struct ScanShared {
    state: Mutex<ScanState>,
    consumer: Arc<dyn ScanConsumer>,
    timer: OwnedFd,
    should_quit: AtomicBool,
}

/// The scanning threads.
pub struct ScanThreads {
    shared: Arc<ScanShared>,
}

impl ScanThreads {
    /// Starts the threads.
    ///
    /// # Errors
    ///
    /// There is no timer or no thread.
    pub fn start(tasks: TaskScanner, consumer: Arc<dyn ScanConsumer>) -> io::Result<Self> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        let state = Mutex::new(ScanState { tasks, owner_id: 0, is_inline: false, running_job: None });
        let shared = Arc::new(ScanShared { state, consumer, timer, should_quit: AtomicBool::new(false) });
        let threads = Self { shared: shared.clone() };
        let watched = shared.clone();
        spawn_thread("proc-watch", 128 * 1024, move || watch_deadline(&watched))?;
        spawn_thread("tasks", THREAD_STACK_BYTES, move || scan_loop(&shared, None))?;
        Ok(threads)
    }

    /// Returns a handle for scanning on the caller's thread.
    pub(crate) fn inline_scanner(&self) -> InlineScanner {
        InlineScanner { shared: self.shared.clone(), workers: Mutex::default() }
    }

    /// Number of tasks reported by the BPF iterator.
    #[cfg(test)]
    pub fn tasks_from_iter(&self) -> usize {
        lock(&self.shared.state).tasks.tasks.iter().filter(|task| task.exec_count.is_some()).count()
    }

    /// Number of reads that hang right now.
    #[cfg(test)]
    pub fn hung_reads(&self) -> usize {
        lock(&self.shared.state).tasks.hung_threads
    }
}

impl Drop for ScanThreads {
    fn drop(&mut self) {
        // The scanning thread ends with its consumer.
        self.shared.shut_down();
    }
}

/// Scans on the caller's thread.
pub(crate) struct InlineScanner {
    shared: Arc<ScanShared>,
    /// Buffers of earlier scans; an abandoned thread keeps its own.
    workers: Mutex<Vec<WorkerState>>,
}

impl InlineScanner {
    /// Scans and passes the result to the consumer; `on_start` is called when the scan has started. Returns false if no
    /// more scans are needed. If this thread is abandoned in a hung read, another one completes the scan. `None` if a
    /// scan is running already, or if `/proc` cannot be read; the consumer gets the reason.
    pub(crate) fn scan(&self, options: ScanOptions, on_start: impl FnOnce()) -> Option<bool> {
        let owner_id = match self.shared.begin_scan(options, true) {
            Ok(owner_id) => owner_id?,
            Err(err) => {
                self.shared.consumer.scan_finished(Reading::from_io_error("/proc", &err));
                return None;
            }
        };
        on_start();
        let mut worker = lock(&self.workers).pop().unwrap_or_default();
        let update = run_scan(&self.shared, owner_id, &mut worker);
        lock(&self.workers).push(worker);
        Some(update.is_none_or(|update| self.shared.consumer.scan_finished(update)))
    }
}

impl ScanShared {
    /// Starts a scan and returns the ID of its thread; `None` if one is running.
    fn begin_scan(&self, options: ScanOptions, is_inline: bool) -> io::Result<Option<u64>> {
        let mut state = lock(&self.state);
        if state.tasks.is_scanning() {
            return Ok(None);
        }
        state.tasks.begin_scan(options)?;
        state.owner_id += 1;
        state.is_inline = is_inline;
        let owner_id = state.owner_id;
        drop(state);
        self.set_timer(DEADLINE);
        Ok(Some(owner_id))
    }

    /// Wakes the watching thread, which ends.
    fn shut_down(&self) {
        self.should_quit.store(true, Relaxed);
        self.set_timer(Duration::from_nanos(1));
    }

    /// Fires after `first` and then repeatedly; zero disarms it.
    fn set_timer(&self, first: Duration) {
        let spec = |t: Duration| Timespec { tv_sec: t.as_secs() as i64, tv_nsec: t.subsec_nanos().into() };
        let timer = Itimerspec { it_interval: spec(first / 4), it_value: spec(first) };
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &timer);
    }
}

pub(crate) fn spawn_thread(name: &str, stack: usize, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.into()).stack_size(stack).spawn(body).map(drop)
}

/// Scans until no more scans are needed or the thread was abandoned. With an `owner_id` it first completes the running
/// scan.
fn scan_loop(shared: &Arc<ScanShared>, mut under_way: Option<u64>) {
    let mut worker = WorkerState::default();
    loop {
        let owner_id = match under_way.take() {
            Some(owner_id) => owner_id,
            None => {
                let Some(options) = shared.consumer.next_request() else { return };
                match shared.begin_scan(options, false) {
                    Ok(Some(owner_id)) => {
                        shared.consumer.scan_started();
                        owner_id
                    }
                    // The thread that runs the scan reports the result.
                    Ok(None) => continue,
                    Err(err) if shared.consumer.scan_finished(Reading::from_io_error("/proc", &err)) => {
                        continue;
                    }
                    Err(_) => return,
                }
            }
        };
        let Some(update) = run_scan(shared, owner_id, &mut worker) else { return };
        if !shared.consumer.scan_finished(update) {
            return;
        }
    }
}

/// Completes a running scan whose thread was abandoned.
fn take_over(shared: &Arc<ScanShared>, owner_id: u64, is_inline: bool) {
    match is_inline {
        // The caller's own thread is not replaced.
        true => {
            if let Some(update) = run_scan(shared, owner_id, &mut WorkerState::default()) {
                shared.consumer.scan_finished(update);
            }
        }
        false => scan_loop(shared, Some(owner_id)),
    }
}

/// Runs the scan to its end; `None` if this thread was abandoned meanwhile.
fn run_scan(shared: &ScanShared, owner_id: u64, worker: &mut WorkerState) -> Option<Reading<ProcessUpdate>> {
    worker.thread_id = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let mut state = lock(&shared.state);
    loop {
        let Some(job) = state.tasks.next_job() else {
            shared.set_timer(Duration::ZERO);
            return Some(state.tasks.finish_scan());
        };
        if state.tasks.hung_threads >= MAX_STUCK_THREADS {
            state.tasks.refuse_job(&job);
            continue;
        }
        if worker.reader.is_none() {
            worker.reader = state.tasks.new_reader();
        }
        let current_file = worker.reader.as_ref().map(|reader| reader.current_file.clone()).unwrap_or_default();
        state.running_job = Some(RunningJob { job, started_ns: boot_ns(), current_file, thread_id: worker.thread_id });
        drop(state);
        let reading = worker.run(&job);
        state = lock(&shared.state);
        if state.owner_id != owner_id {
            state.tasks.hung_threads -= 1;
            if let ScanJob::Files(job) = job {
                state.tasks.returned_jobs.push(job);
            }
            return None;
        }
        state.running_job = None;
        match reading {
            Some(reading) => state.tasks.apply_read(reading),
            None => state.tasks.apply_answers(&worker.answers),
        }
    }
}

/// Waits for the timer and abandons the scanning thread when its job takes too long.
fn watch_deadline(shared: &Arc<ScanShared>) {
    let mut expired = [0; 8];
    while let Ok(_) | Err(Errno::INTR) = rustix::io::read(&shared.timer, &mut expired) {
        if shared.should_quit.load(Relaxed) {
            return;
        }
        // If the state is locked, the scanning thread makes progress.
        let mut state = match shared.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(state)) => state.into_inner(),
            Err(TryLockError::WouldBlock) => continue,
        };
        let late = |d: &RunningJob| boot_ns().saturating_sub(d.started_ns) >= DEADLINE.as_nanos() as u64;
        if state.running_job.as_ref().is_none_or(|d| !late(d) || is_thread_runnable(d.thread_id)) {
            continue;
        }
        let Some(running) = state.running_job.take() else { continue };
        state.owner_id += 1;
        let (owner_id, is_inline) = (state.owner_id, state.is_inline);
        state.tasks.hung_threads += 1;
        state.tasks.abandon_job(&running.job, running.current_file.load(Relaxed), running.thread_id);
        drop(state);
        let next = shared.clone();
        if spawn_thread("tasks", THREAD_STACK_BYTES, move || take_over(&next, owner_id, is_inline)).is_err() {
            // There is no other thread: this one scans, unwatched.
            return take_over(shared, owner_id, is_inline);
        }
    }
}

/// What a thread reads with.
#[derive(Default)]
struct WorkerState {
    reader: Option<TaskFileReader>,
    taskstats: TaskstatsClient,
    answers: Vec<TaskstatsAnswer>,
    /// The thread that uses it in this scan.
    thread_id: u32,
}

impl WorkerState {
    /// Runs the job; the answers to a query are in `answers`.
    fn run(&mut self, job: &ScanJob) -> Option<TaskFiles> {
        match (job, &mut self.reader) {
            (ScanJob::Files(job), Some(reader)) => Some(reader.run(job)),
            (ScanJob::Files(_), None) => Some(TaskFiles::default()),
            (ScanJob::Taskstats(ask), _) => {
                self.taskstats.query(ask, &mut self.answers);
                None
            }
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
