//! Runs jobs that may never return, without ever waiting for one of them.
//!
//! Some files of a stuck task block whoever reads them, killably but for as long as the task is stuck.
//! So they are read by a thread of their own that takes job after job from a shared list. The caller
//! waits for the list; when one job makes no progress within the deadline, that thread is left behind
//! with its job, and a fresh one goes on with the rest. Threads left behind are bounded, remember
//! what they hang in, and end by themselves when the read returns. They do not keep the process from
//! exiting, because these waits are killable.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Threads left behind at most; with more tasks stuck than that, no further blocking read is begun.
pub const MAX_STUCK_THREADS: usize = 8;

/// How long one job may make no progress.
pub const DEADLINE: Duration = Duration::from_millis(100);

/// Does the jobs; made anew for every thread.
pub trait JobWorker: Send + 'static {
    /// What to do.
    type Job: Copy + Send + 'static;
    /// What came of it.
    type Output: Send + 'static;
    /// Does one job. `step` publishes what is being read at any moment.
    fn run(&mut self, job: &Self::Job, step: &ProgressMarker) -> Self::Output;
}

/// What a thread is doing, for the one that waits for it.
#[derive(Debug, Default)]
pub struct ProgressMarker(AtomicUsize);

impl ProgressMarker {
    /// Publishes a step by number.
    pub fn set(&self, step: usize) {
        self.0.store(step, Relaxed);
    }

    /// The step published last.
    pub fn get(&self) -> usize {
        self.0.load(Relaxed)
    }
}

/// How a job ended.
#[derive(Debug)]
pub enum JobOutcome<O> {
    /// It came back.
    Done(O),
    /// It did not, in this step; the thread's id tells what it waits on.
    Stuck { marker: usize, thread_id: u32 },
    /// It was not begun: too many are stuck.
    Refused,
}

struct JobBatch<H: JobWorker> {
    jobs: Vec<H::Job>,
    outcomes: Vec<JobOutcome<H::Output>>,
    /// Which thread owns the batch; one with another number was left behind.
    owner_id: u64,
    is_running: bool,
    should_quit: bool,
}

struct ExecutorShared<H: JobWorker> {
    batch: Mutex<JobBatch<H>>,
    work_available: Condvar,
    batch_done: Condvar,
    stuck_threads: AtomicUsize,
    /// Jobs that came back after their thread had been left behind.
    returned_jobs: Mutex<Vec<H::Job>>,
}

struct WorkerThread {
    marker: Arc<ProgressMarker>,
    thread_id: Arc<AtomicU32>,
}

/// The caller's side.
pub struct DeadlineExecutor<H: JobWorker> {
    shared: Arc<ExecutorShared<H>>,
    make_worker: Box<dyn FnMut() -> H + Send>,
    current_thread: Option<WorkerThread>,
    deadline: Duration,
    owner_id: u64,
}

impl<H: JobWorker> DeadlineExecutor<H> {
    /// No thread is started before the first job.
    pub fn new(deadline: Duration, make: impl FnMut() -> H + Send + 'static) -> Self {
        let batch =
            JobBatch { jobs: Vec::new(), outcomes: Vec::new(), owner_id: 0, is_running: false, should_quit: false };
        let shared = ExecutorShared {
            batch: Mutex::new(batch),
            work_available: Condvar::new(),
            batch_done: Condvar::new(),
            stuck_threads: AtomicUsize::new(0),
            returned_jobs: Mutex::new(Vec::new()),
        };
        Self { shared: Arc::new(shared), make_worker: Box::new(make), current_thread: None, deadline, owner_id: 0 }
    }

    /// Threads that hang at this moment.
    pub fn stuck_threads(&self) -> usize {
        self.shared.stuck_threads.load(Relaxed)
    }

    /// Jobs that hung and have come back since the last call.
    pub fn take_returned_jobs(&self) -> Vec<H::Job> {
        std::mem::take(&mut *lock(&self.shared.returned_jobs))
    }

    /// Runs `jobs` and hands every outcome to `take`, in order. `alive` is asked, when the deadline
    /// has passed, whether the thread is only waiting for a CPU.
    pub fn run(
        &mut self,
        jobs: &[H::Job],
        mut alive: impl FnMut(u32) -> bool,
        mut take: impl FnMut(&H::Job, JobOutcome<H::Output>),
    ) {
        if jobs.is_empty() {
            return;
        }
        let shared = self.shared.clone();
        let mut batch = lock(&shared.batch);
        batch.jobs.clear();
        batch.jobs.extend_from_slice(jobs);
        batch.outcomes.clear();
        batch.is_running = true;
        self.ensure_thread(&mut batch);
        shared.work_available.notify_one();
        while batch.outcomes.len() < batch.jobs.len() {
            if self.current_thread.is_none() {
                batch.outcomes.push(JobOutcome::Refused);
                continue;
            }
            let before = batch.outcomes.len();
            let timed_out;
            (batch, timed_out) = wait(&shared.batch_done, batch, self.deadline);
            if !timed_out || batch.outcomes.len() != before || batch.outcomes.len() == batch.jobs.len() {
                continue;
            }
            let thread = self.current_thread.as_ref().map_or(0, |live| live.thread_id.load(Relaxed));
            if thread == 0 || alive(thread) {
                continue;
            }
            self.abandon(&mut batch);
        }
        batch.is_running = false;
        let JobBatch { jobs, outcomes: done, .. } = &mut *batch;
        for (job, outcome) in jobs.iter().zip(done.drain(..)) {
            take(job, outcome);
        }
    }

    fn abandon(&mut self, batch: &mut MutexGuard<'_, JobBatch<H>>) {
        let Some(live) = self.current_thread.take() else { return };
        batch.outcomes.push(JobOutcome::Stuck { marker: live.marker.get(), thread_id: live.thread_id.load(Relaxed) });
        // Any number but the thread's own tells it, when it comes back, that it was given up.
        self.owner_id += 1;
        batch.owner_id = self.owner_id;
        self.shared.stuck_threads.fetch_add(1, Relaxed);
        if batch.outcomes.len() < batch.jobs.len() {
            self.ensure_thread(batch);
        }
    }

    fn ensure_thread(&mut self, batch: &mut MutexGuard<'_, JobBatch<H>>) {
        if self.current_thread.is_some() || self.stuck_threads() >= MAX_STUCK_THREADS {
            return;
        }
        self.owner_id += 1;
        batch.owner_id = self.owner_id;
        let live = WorkerThread { marker: Arc::default(), thread_id: Arc::default() };
        let (shared, step, thread, owner) =
            (self.shared.clone(), live.marker.clone(), live.thread_id.clone(), self.owner_id);
        let hand = (self.make_worker)();
        let spawned = std::thread::Builder::new()
            .name("proc-read".into())
            .stack_size(256 * 1024)
            .spawn(move || worker_loop(&shared, hand, owner, &step, &thread));
        if spawned.is_ok() {
            self.current_thread = Some(live);
        }
    }
}

impl<H: JobWorker> Drop for DeadlineExecutor<H> {
    fn drop(&mut self) {
        lock(&self.shared.batch).should_quit = true;
        self.shared.work_available.notify_all();
    }
}

/// A thread's life: job after job until it is told to quit or finds itself given up.
fn worker_loop<H: JobWorker>(
    shared: &ExecutorShared<H>,
    mut hand: H,
    owner: u64,
    step: &ProgressMarker,
    thread: &AtomicU32,
) {
    thread.store(rustix::thread::gettid().as_raw_nonzero().get() as u32, Relaxed);
    let mut batch = lock(&shared.batch);
    loop {
        if batch.should_quit || batch.owner_id != owner {
            return;
        }
        if !batch.is_running || batch.outcomes.len() >= batch.jobs.len() {
            batch = shared.work_available.wait(batch).unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        let job = batch.jobs[batch.outcomes.len()];
        drop(batch);
        let out = hand.run(&job, step);
        batch = lock(&shared.batch);
        if batch.owner_id != owner {
            drop(batch);
            lock(&shared.returned_jobs).push(job);
            shared.stuck_threads.fetch_sub(1, Relaxed);
            return;
        }
        batch.outcomes.push(JobOutcome::Done(out));
        if batch.outcomes.len() == batch.jobs.len() {
            shared.batch_done.notify_one();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait<'a, T>(cond: &Condvar, guard: MutexGuard<'a, T>, time: Duration) -> (MutexGuard<'a, T>, bool) {
    let (guard, timeout) = cond.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner);
    (guard, timeout.timed_out())
}
