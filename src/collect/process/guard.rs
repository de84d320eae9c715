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
pub const MAX_STUCK: usize = 8;

/// How long one job may make no progress.
pub const DEADLINE: Duration = Duration::from_millis(100);

/// Does the jobs; made anew for every thread.
pub trait Hand: Send + 'static {
    /// What to do.
    type Job: Copy + Send + 'static;
    /// What came of it.
    type Out: Send + 'static;
    /// Does one job. `step` publishes what is being read at any moment.
    fn run(&mut self, job: &Self::Job, step: &Step) -> Self::Out;
}

/// What a thread is doing, for the one that waits for it.
#[derive(Debug, Default)]
pub struct Step(AtomicUsize);

impl Step {
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
pub enum Outcome<O> {
    /// It came back.
    Done(O),
    /// It did not, in this step; the thread's id tells what it waits on.
    Stuck { step: usize, thread: u32 },
    /// It was not begun: too many are stuck.
    Refused,
}

struct Batch<H: Hand> {
    jobs: Vec<H::Job>,
    done: Vec<Outcome<H::Out>>,
    /// Which thread owns the batch; one with another number was left behind.
    owner: u64,
    running: bool,
    quit: bool,
}

struct Shared<H: Hand> {
    batch: Mutex<Batch<H>>,
    work: Condvar,
    ready: Condvar,
    stuck: AtomicUsize,
    /// Jobs that came back after their thread had been left behind.
    returned: Mutex<Vec<H::Job>>,
}

struct Live {
    step: Arc<Step>,
    thread: Arc<AtomicU32>,
}

/// The caller's side.
pub struct Guard<H: Hand> {
    shared: Arc<Shared<H>>,
    make: Box<dyn FnMut() -> H + Send>,
    live: Option<Live>,
    deadline: Duration,
    owner: u64,
}

impl<H: Hand> Guard<H> {
    /// No thread is started before the first job.
    pub fn new(deadline: Duration, make: impl FnMut() -> H + Send + 'static) -> Self {
        let batch = Batch { jobs: Vec::new(), done: Vec::new(), owner: 0, running: false, quit: false };
        let shared = Shared {
            batch: Mutex::new(batch),
            work: Condvar::new(),
            ready: Condvar::new(),
            stuck: AtomicUsize::new(0),
            returned: Mutex::new(Vec::new()),
        };
        Self { shared: Arc::new(shared), make: Box::new(make), live: None, deadline, owner: 0 }
    }

    /// Threads that hang at this moment.
    pub fn stuck(&self) -> usize {
        self.shared.stuck.load(Relaxed)
    }

    /// Jobs that hung and have come back since the last call.
    pub fn returned(&self) -> Vec<H::Job> {
        std::mem::take(&mut *lock(&self.shared.returned))
    }

    /// Runs `jobs` and hands every outcome to `take`, in order. `alive` is asked, when the deadline
    /// has passed, whether the thread is only waiting for a CPU.
    pub fn run(
        &mut self,
        jobs: &[H::Job],
        mut alive: impl FnMut(u32) -> bool,
        mut take: impl FnMut(&H::Job, Outcome<H::Out>),
    ) {
        if jobs.is_empty() {
            return;
        }
        let shared = self.shared.clone();
        let mut batch = lock(&shared.batch);
        batch.jobs.clear();
        batch.jobs.extend_from_slice(jobs);
        batch.done.clear();
        batch.running = true;
        self.ensure_thread(&mut batch);
        shared.work.notify_one();
        while batch.done.len() < batch.jobs.len() {
            if self.live.is_none() {
                batch.done.push(Outcome::Refused);
                continue;
            }
            let before = batch.done.len();
            let timed_out;
            (batch, timed_out) = wait(&shared.ready, batch, self.deadline);
            if !timed_out || batch.done.len() != before || batch.done.len() == batch.jobs.len() {
                continue;
            }
            let thread = self.live.as_ref().map_or(0, |live| live.thread.load(Relaxed));
            if thread == 0 || alive(thread) {
                continue;
            }
            self.abandon(&mut batch);
        }
        batch.running = false;
        let Batch { jobs, done, .. } = &mut *batch;
        for (job, outcome) in jobs.iter().zip(done.drain(..)) {
            take(job, outcome);
        }
    }

    fn abandon(&mut self, batch: &mut MutexGuard<'_, Batch<H>>) {
        let Some(live) = self.live.take() else { return };
        batch.done.push(Outcome::Stuck { step: live.step.get(), thread: live.thread.load(Relaxed) });
        // Any number but the thread's own tells it, when it comes back, that it was given up.
        self.owner += 1;
        batch.owner = self.owner;
        self.shared.stuck.fetch_add(1, Relaxed);
        if batch.done.len() < batch.jobs.len() {
            self.ensure_thread(batch);
        }
    }

    fn ensure_thread(&mut self, batch: &mut MutexGuard<'_, Batch<H>>) {
        if self.live.is_some() || self.stuck() >= MAX_STUCK {
            return;
        }
        self.owner += 1;
        batch.owner = self.owner;
        let live = Live { step: Arc::default(), thread: Arc::default() };
        let (shared, step, thread, owner) =
            (self.shared.clone(), live.step.clone(), live.thread.clone(), self.owner);
        let hand = (self.make)();
        let spawned = std::thread::Builder::new()
            .name("proc-read".into())
            .stack_size(256 * 1024)
            .spawn(move || serve(&shared, hand, owner, &step, &thread));
        if spawned.is_ok() {
            self.live = Some(live);
        }
    }
}

impl<H: Hand> Drop for Guard<H> {
    fn drop(&mut self) {
        lock(&self.shared.batch).quit = true;
        self.shared.work.notify_all();
    }
}

/// A thread's life: job after job until it is told to quit or finds itself given up.
fn serve<H: Hand>(shared: &Shared<H>, mut hand: H, owner: u64, step: &Step, thread: &AtomicU32) {
    thread.store(rustix::thread::gettid().as_raw_nonzero().get() as u32, Relaxed);
    let mut batch = lock(&shared.batch);
    loop {
        if batch.quit || batch.owner != owner {
            return;
        }
        if !batch.running || batch.done.len() >= batch.jobs.len() {
            batch = shared.work.wait(batch).unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        let job = batch.jobs[batch.done.len()];
        drop(batch);
        let out = hand.run(&job, step);
        batch = lock(&shared.batch);
        if batch.owner != owner {
            drop(batch);
            lock(&shared.returned).push(job);
            shared.stuck.fetch_sub(1, Relaxed);
            return;
        }
        batch.done.push(Outcome::Done(out));
        if batch.done.len() == batch.jobs.len() {
            shared.ready.notify_one();
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
