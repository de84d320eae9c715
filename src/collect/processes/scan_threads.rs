//! Threads that take looks at the tasks, one after the other in the same look if need be.
//!
//! One thread does everything, because handing each read to another costs more than most reads; where looks
//! are short it is the caller's own, a [`Guest`], because a thread that wakes costs more than many reads. What
//! is known is in [`Tasks`], let go of while a file is read that may not return. A timer is set for
//! the look, and a second thread sleeps on it: if the look makes no progress within the deadline, that one
//! puts the stuck read down as such and starts a fresh thread, which goes on with the same look from there.
//! The one left behind ends when its read returns. These waits are killable, so it does not keep the process
//! from exiting.

use super::ScanOptions;
use super::activity_filter::TaskstatsClient;
use super::deadline_executor::DEADLINE;
use super::file_reader::{ProgressMarker, TaskFileReader, TaskFiles};
use super::scan::ScanJob;
use super::stuck_read::{MAX_STUCK_THREADS, is_thread_runnable};
use super::task_scanner::TaskScanner;
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
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// The one who wants looks.
pub trait ScanConsumer: Send + Sync + 'static {
    /// Waits until a look is wanted; `None`: no more.
    fn next_request(&self) -> Option<ScanOptions>;
    /// The look that was wanted begins.
    fn scan_started(&self) {}
    /// Takes the look; returns false when no more are wanted.
    fn scan_finished(&self, look: Reading<ProcessUpdate>) -> bool;
}

struct ScanState {
    tasks: TaskScanner,
    /// The thread in charge of the look under way; one with another number was left behind.
    owner_id: u64,
    /// It is a guest.
    is_inline: bool,
    /// What it is doing that may not return.
    running_job: Option<RunningJob>,
}

struct RunningJob {
    job: ScanJob,
    /// Boot clock when it was begun, ns.
    started_ns: u64,
    marker: Arc<ProgressMarker>,
    thread_id: u32,
}

struct ScanShared {
    state: Mutex<ScanState>,
    consumer: Arc<dyn ScanConsumer>,
    timer: OwnedFd,
    should_quit: AtomicBool,
}

/// The threads.
pub struct ScanThreads {
    /// Until it is started.
    not_started: Option<(TaskScanner, Arc<dyn ScanConsumer>)>,
    shared: Option<Arc<ScanShared>>,
}

impl ScanThreads {
    /// Not started yet.
    pub fn new(tasks: TaskScanner, client: Arc<dyn ScanConsumer>) -> Self {
        Self { not_started: Some((tasks, client)), shared: None }
    }

    /// Starts the threads, once: after a failure there is no client any more, and nobody waits for it.
    pub fn start(&mut self) -> io::Result<()> {
        let Some((tasks, client)) = self.not_started.take() else { return Ok(()) };
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        let state = ScanState { tasks, owner_id: 0, is_inline: false, running_job: None };
        let shared = Arc::new(ScanShared {
            state: Mutex::new(state),
            consumer: client,
            timer,
            should_quit: AtomicBool::new(false),
        });
        let watched = shared.clone();
        spawn_thread("proc-watch", 128 * 1024, move || watch_deadline(&watched))?;
        let run = shared.clone();
        let started = spawn_thread("tasks", THREAD_STACK_BYTES, move || scan_loop(&run, None));
        match &started {
            Ok(()) => self.shared = Some(shared),
            Err(_) => shared.shut_down(),
        }
        started
    }

    /// For a thread that wants to take looks by itself; `None` before the start.
    pub fn inline_scanner(&self) -> Option<InlineScanner> {
        Some(InlineScanner { shared: self.shared.clone()?, workers: Mutex::default() })
    }

    /// Tasks that the kernel told itself.
    #[cfg(test)]
    pub fn tasks_from_iter(&self) -> usize {
        let told = |s: &Arc<ScanShared>| lock(&s.state).tasks.tasks.iter().filter(|e| e.exec_count.is_some()).count();
        self.shared.as_ref().map_or(0, told)
    }

    /// Reads that hang at this moment.
    #[cfg(test)]
    pub fn hung_reads(&self) -> usize {
        self.shared.as_ref().map_or(0, |s| lock(&s.state).tasks.hung_threads)
    }
}

impl Drop for ScanThreads {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            // The other thread ends with its client.
            shared.shut_down();
        }
    }
}

/// Takes looks on the caller's thread.
pub struct InlineScanner {
    shared: Arc<ScanShared>,
    /// What earlier looks read with; a thread left behind keeps its own.
    workers: Mutex<Vec<WorkerState>>,
}

/// A look that has begun.
pub struct RunningScan<'g> {
    scanner: &'g InlineScanner,
    owner_id: u64,
}

impl InlineScanner {
    /// Begins a look; `None` if one is under way, or if `/proc` cannot be read, which the client is told.
    pub fn begin_scan(&self, wants: ScanOptions) -> Option<RunningScan<'_>> {
        match self.shared.begin_scan(wants, true) {
            Ok(owner) => owner.map(|owner| RunningScan { scanner: self, owner_id: owner }),
            Err(err) => {
                self.shared.consumer.scan_finished(Reading::from_io_error("/proc", &err));
                None
            }
        }
    }
}

impl RunningScan<'_> {
    /// Takes the look; the client gets it. Returns false when no more are wanted. Where this thread was left
    /// behind in a read that hung, another one has taken, or takes, the look to its end.
    pub fn run(self) -> bool {
        let shared = &self.scanner.shared;
        let mut hands = lock(&self.scanner.workers).pop().unwrap_or_default();
        let look = run_scan(shared, self.owner_id, &mut hands);
        lock(&self.scanner.workers).push(hands);
        look.is_none_or(|look| shared.consumer.scan_finished(look))
    }
}

impl ScanShared {
    /// Begins a look and gives the number of the thread in charge; `None` if one is under way.
    fn begin_scan(&self, wants: ScanOptions, guest: bool) -> io::Result<Option<u64>> {
        let mut state = lock(&self.state);
        if state.tasks.is_scanning() {
            return Ok(None);
        }
        state.tasks.begin_scan(wants)?;
        state.owner_id += 1;
        state.is_inline = guest;
        let owner = state.owner_id;
        drop(state);
        self.set_timer(DEADLINE);
        Ok(Some(owner))
    }

    /// Wakes the watching thread, which ends.
    fn shut_down(&self) {
        self.should_quit.store(true, Relaxed);
        self.set_timer(Duration::from_nanos(1));
    }

    /// Fires after `first`, and from then on again and again; zero: never.
    fn set_timer(&self, first: Duration) {
        let spec = |t: Duration| Timespec { tv_sec: t.as_secs() as i64, tv_nsec: t.subsec_nanos().into() };
        let timer = Itimerspec { it_interval: spec(first / 4), it_value: spec(first) };
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &timer);
    }
}

fn spawn_thread(name: &str, stack: usize, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.into()).stack_size(stack).spawn(body).map(drop)
}

/// A thread's life: look after look, until nobody wants more or it finds itself given up. With an owner's
/// number it takes on the look under way first.
fn scan_loop(shared: &Arc<ScanShared>, mut under_way: Option<u64>) {
    let mut hands = WorkerState::default();
    loop {
        let owner = match under_way.take() {
            Some(owner) => owner,
            None => {
                let Some(wants) = shared.consumer.next_request() else { return };
                match shared.begin_scan(wants, false) {
                    Ok(Some(owner)) => {
                        shared.consumer.scan_started();
                        owner
                    }
                    // Whoever takes it tells what there is to tell.
                    Ok(None) => continue,
                    Err(err) if shared.consumer.scan_finished(Reading::from_io_error("/proc", &err)) => {
                        continue;
                    }
                    Err(_) => return,
                }
            }
        };
        let Some(look) = run_scan(shared, owner, &mut hands) else { return };
        if !shared.consumer.scan_finished(look) {
            return;
        }
    }
}

/// Takes on the look under way, where its thread was left behind.
fn take_over(shared: &Arc<ScanShared>, owner: u64, guest: bool) {
    match guest {
        // The guest's place is not ours to fill.
        true => {
            if let Some(look) = run_scan(shared, owner, &mut WorkerState::default()) {
                shared.consumer.scan_finished(look);
            }
        }
        false => scan_loop(shared, Some(owner)),
    }
}

/// Takes the look under way to its end; `None` if this thread was given up meanwhile.
fn run_scan(shared: &ScanShared, owner: u64, hands: &mut WorkerState) -> Option<Reading<ProcessUpdate>> {
    hands.thread_id = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    if let Some(reader) = &mut hands.reader {
        reader.begin_scan();
    }
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
        if hands.reader.is_none() {
            hands.reader = state.tasks.new_reader();
        }
        state.running_job = Some(hands.start_job(job));
        drop(state);
        let reading = hands.run(&job);
        state = lock(&shared.state);
        if state.owner_id != owner {
            state.tasks.hung_threads -= 1;
            if let ScanJob::Files(job) = job {
                state.tasks.returned_jobs.push(job);
            }
            return None;
        }
        state.running_job = None;
        match reading {
            Some(reading) => state.tasks.apply_read(reading),
            None => state.tasks.apply_answers(&hands.answers),
        }
    }
}

/// Sleeps on the timer and gives up the thread in charge when what it does takes too long.
fn watch_deadline(shared: &Arc<ScanShared>) {
    let mut expired = [0; 8];
    while let Ok(_) | Err(Errno::INTR) = rustix::io::read(&shared.timer, &mut expired) {
        if shared.should_quit.load(Relaxed) {
            return;
        }
        // Whoever holds the state is at work.
        let mut state = match shared.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(state)) => state.into_inner(),
            Err(TryLockError::WouldBlock) => continue,
        };
        let late = |d: &RunningJob| boot_ns().saturating_sub(d.started_ns) >= DEADLINE.as_nanos() as u64;
        if state.running_job.as_ref().is_none_or(|d| !late(d) || is_thread_runnable(d.thread_id)) {
            continue;
        }
        let Some(doing) = state.running_job.take() else { continue };
        state.owner_id += 1;
        let (owner, guest) = (state.owner_id, state.is_inline);
        state.tasks.hung_threads += 1;
        state.tasks.abandon_job(&doing.job, doing.marker.get(), doing.thread_id);
        drop(state);
        let next = shared.clone();
        if spawn_thread("tasks", THREAD_STACK_BYTES, move || take_over(&next, owner, guest)).is_err() {
            // No more threads to be had: this one takes the looks, and nobody watches it.
            return take_over(shared, owner, guest);
        }
    }
}

/// What a thread reads with.
#[derive(Default)]
struct WorkerState {
    reader: Option<TaskFileReader>,
    taskstats: TaskstatsClient,
    answers: Vec<TaskstatsAnswer>,
    marker: Arc<ProgressMarker>,
    /// Whose they are in this look.
    thread_id: u32,
}

impl WorkerState {
    fn start_job(&self, job: ScanJob) -> RunningJob {
        RunningJob { job, started_ns: boot_ns(), marker: self.marker.clone(), thread_id: self.thread_id }
    }

    /// Does the job; the answers to a question are in `answers`.
    fn run(&mut self, job: &ScanJob) -> Option<TaskFiles> {
        match (job, &mut self.reader) {
            (ScanJob::Files(job), Some(reader)) => Some(reader.run(job, &self.marker)),
            (ScanJob::Files(_), None) => Some(TaskFiles::default()),
            (ScanJob::Taskstats(ask), _) => {
                self.taskstats.query(ask, &mut self.answers);
                None
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
