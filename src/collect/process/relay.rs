//! Threads that take looks at the tasks, one after the other in the same look if need be.
//!
//! One thread does everything, because handing each read to another costs more than most reads; where looks
//! are short it is the caller's own, a [`Guest`], because a thread that wakes costs more than many reads. What
//! is known is in [`Tasks`], let go of while a file is read that may not return. A timer is set for
//! the look, and a second thread sleeps on it: if the look makes no progress within the deadline, that one
//! puts the stuck read down as such and starts a fresh thread, which goes on with the same look from there.
//! The one left behind ends when its read returns. These waits are killable, so it does not keep the process
//! from exiting.

use super::Wants;
use super::guard::{DEADLINE, Hand, MAX_STUCK, Step};
use super::probe::Asker;
use super::reader::{Reader, Reading};
use super::stage::Job;
use super::stuck::is_runnable;
use super::tasks::Tasks;
use super::taskstats::Answer;
use crate::collect::clock::boot_ns;
use crate::collect::sampler::THREAD_STACK_BYTES;
use crate::model::process::ProcUpdate;
use crate::model::section::Section;
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
pub trait Client: Send + Sync + 'static {
    /// Waits until a look is wanted; `None`: no more.
    fn wants(&self) -> Option<Wants>;
    /// The look that was wanted begins.
    fn begun(&self) {}
    /// Takes the look; returns false when no more are wanted.
    fn looked(&self, look: Section<ProcUpdate>) -> bool;
}

struct State {
    tasks: Tasks,
    /// The thread in charge of the look under way; one with another number was left behind.
    owner: u64,
    /// It is a guest.
    guest: bool,
    /// What it is doing that may not return.
    doing: Option<Doing>,
}

struct Doing {
    job: Job,
    /// Boot clock when it was begun, ns.
    since: u64,
    step: Arc<Step>,
    thread: u32,
}

struct Shared {
    state: Mutex<State>,
    client: Arc<dyn Client>,
    timer: OwnedFd,
    quit: AtomicBool,
}

/// The threads.
pub struct Relay {
    /// Until it is started.
    idle: Option<(Tasks, Arc<dyn Client>)>,
    shared: Option<Arc<Shared>>,
}

impl Relay {
    /// Not started yet.
    pub fn new(tasks: Tasks, client: Arc<dyn Client>) -> Self {
        Self { idle: Some((tasks, client)), shared: None }
    }

    /// Starts the threads, once: after a failure there is no client any more, and nobody waits for it.
    pub fn start(&mut self) -> io::Result<()> {
        let Some((tasks, client)) = self.idle.take() else { return Ok(()) };
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        let state = State { tasks, owner: 0, guest: false, doing: None };
        let shared =
            Arc::new(Shared { state: Mutex::new(state), client, timer, quit: AtomicBool::new(false) });
        let watched = shared.clone();
        spawn("proc-watch", 128 * 1024, move || watch(&watched))?;
        let run = shared.clone();
        let started = spawn("tasks", THREAD_STACK_BYTES, move || serve(&run, None));
        match &started {
            Ok(()) => self.shared = Some(shared),
            Err(_) => shared.end(),
        }
        started
    }

    /// For a thread that wants to take looks by itself; `None` before the start.
    pub fn guest(&self) -> Option<Guest> {
        Some(Guest { shared: self.shared.clone()?, hands: Mutex::default() })
    }

    /// Tasks that the kernel told itself.
    #[cfg(test)]
    pub fn walked(&self) -> usize {
        let told = |s: &Arc<Shared>| lock(&s.state).tasks.entries.iter().filter(|e| e.exec.is_some()).count();
        self.shared.as_ref().map_or(0, told)
    }

    /// Reads that hang at this moment.
    #[cfg(test)]
    pub fn hanging(&self) -> usize {
        self.shared.as_ref().map_or(0, |s| lock(&s.state).tasks.hanging)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            // The other thread ends with its client.
            shared.end();
        }
    }
}

/// Takes looks on the caller's thread.
pub struct Guest {
    shared: Arc<Shared>,
    /// What earlier looks read with; a thread left behind keeps its own.
    hands: Mutex<Vec<Hands>>,
}

/// A look that has begun.
pub struct Begun<'g> {
    guest: &'g Guest,
    owner: u64,
}

impl Guest {
    /// Begins a look; `None` if one is under way, or if `/proc` cannot be read, which the client is told.
    pub fn begin(&self, wants: Wants) -> Option<Begun<'_>> {
        match self.shared.begin(wants, true) {
            Ok(owner) => owner.map(|owner| Begun { guest: self, owner }),
            Err(err) => {
                self.shared.client.looked(Section::from_io("/proc", &err));
                None
            }
        }
    }
}

impl Begun<'_> {
    /// Takes the look; the client gets it. Returns false when no more are wanted. Where this thread was left
    /// behind in a read that hung, another one has taken, or takes, the look to its end.
    pub fn take(self) -> bool {
        let shared = &self.guest.shared;
        let mut hands = lock(&self.guest.hands).pop().unwrap_or_default();
        let look = look(shared, self.owner, &mut hands);
        lock(&self.guest.hands).push(hands);
        look.is_none_or(|look| shared.client.looked(look))
    }
}

impl Shared {
    /// Begins a look and gives the number of the thread in charge; `None` if one is under way.
    fn begin(&self, wants: Wants, guest: bool) -> io::Result<Option<u64>> {
        let mut state = lock(&self.state);
        if state.tasks.is_looking() {
            return Ok(None);
        }
        state.tasks.begin(wants)?;
        state.owner += 1;
        state.guest = guest;
        let owner = state.owner;
        drop(state);
        self.set_timer(DEADLINE);
        Ok(Some(owner))
    }

    /// Wakes the watching thread, which ends.
    fn end(&self) {
        self.quit.store(true, Relaxed);
        self.set_timer(Duration::from_nanos(1));
    }

    /// Fires after `first`, and from then on again and again; zero: never.
    fn set_timer(&self, first: Duration) {
        let spec = |t: Duration| Timespec { tv_sec: t.as_secs() as i64, tv_nsec: t.subsec_nanos().into() };
        let timer = Itimerspec { it_interval: spec(first / 4), it_value: spec(first) };
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &timer);
    }
}

fn spawn(name: &str, stack: usize, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.into()).stack_size(stack).spawn(body).map(drop)
}

/// A thread's life: look after look, until nobody wants more or it finds itself given up. With an owner's
/// number it takes on the look under way first.
fn serve(shared: &Arc<Shared>, mut under_way: Option<u64>) {
    let mut hands = Hands::default();
    loop {
        let owner = match under_way.take() {
            Some(owner) => owner,
            None => {
                let Some(wants) = shared.client.wants() else { return };
                match shared.begin(wants, false) {
                    Ok(Some(owner)) => {
                        shared.client.begun();
                        owner
                    }
                    // Whoever takes it tells what there is to tell.
                    Ok(None) => continue,
                    Err(err) if shared.client.looked(Section::from_io("/proc", &err)) => continue,
                    Err(_) => return,
                }
            }
        };
        let Some(look) = look(shared, owner, &mut hands) else { return };
        if !shared.client.looked(look) {
            return;
        }
    }
}

/// Takes on the look under way, where its thread was left behind.
fn relieve(shared: &Arc<Shared>, owner: u64, guest: bool) {
    match guest {
        // The guest's place is not ours to fill.
        true => {
            if let Some(look) = look(shared, owner, &mut Hands::default()) {
                shared.client.looked(look);
            }
        }
        false => serve(shared, Some(owner)),
    }
}

/// Takes the look under way to its end; `None` if this thread was given up meanwhile.
fn look(shared: &Shared, owner: u64, hands: &mut Hands) -> Option<Section<ProcUpdate>> {
    hands.thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    if let Some(reader) = &mut hands.reader {
        reader.begin();
    }
    let mut state = lock(&shared.state);
    loop {
        let Some(job) = state.tasks.next() else {
            shared.set_timer(Duration::ZERO);
            return Some(state.tasks.end());
        };
        if state.tasks.hanging >= MAX_STUCK {
            state.tasks.refused(&job);
            continue;
        }
        if hands.reader.is_none() {
            hands.reader = state.tasks.reader();
        }
        state.doing = Some(hands.doing(job));
        drop(state);
        let reading = hands.run(&job);
        state = lock(&shared.state);
        if state.owner != owner {
            state.tasks.hanging -= 1;
            if let Job::Read(job) = job {
                state.tasks.returned.push(job);
            }
            return None;
        }
        state.doing = None;
        match reading {
            Some(reading) => state.tasks.read(reading),
            None => state.tasks.answered(&hands.answers),
        }
    }
}

/// Sleeps on the timer and gives up the thread in charge when what it does takes too long.
fn watch(shared: &Arc<Shared>) {
    let mut expired = [0; 8];
    while let Ok(_) | Err(Errno::INTR) = rustix::io::read(&shared.timer, &mut expired) {
        if shared.quit.load(Relaxed) {
            return;
        }
        // Whoever holds the state is at work.
        let mut state = match shared.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(state)) => state.into_inner(),
            Err(TryLockError::WouldBlock) => continue,
        };
        let late = |d: &Doing| boot_ns().saturating_sub(d.since) >= DEADLINE.as_nanos() as u64;
        if state.doing.as_ref().is_none_or(|d| !late(d) || is_runnable(d.thread)) {
            continue;
        }
        let Some(doing) = state.doing.take() else { continue };
        state.owner += 1;
        let (owner, guest) = (state.owner, state.guest);
        state.tasks.hanging += 1;
        state.tasks.give_up(&doing.job, doing.step.get(), doing.thread);
        drop(state);
        let next = shared.clone();
        if spawn("tasks", THREAD_STACK_BYTES, move || relieve(&next, owner, guest)).is_err() {
            // No more threads to be had: this one takes the looks, and nobody watches it.
            return relieve(shared, owner, guest);
        }
    }
}

/// What a thread reads with.
#[derive(Default)]
struct Hands {
    reader: Option<Reader>,
    asker: Asker,
    answers: Vec<Answer>,
    step: Arc<Step>,
    /// Whose they are in this look.
    thread: u32,
}

impl Hands {
    fn doing(&self, job: Job) -> Doing {
        Doing { job, since: boot_ns(), step: self.step.clone(), thread: self.thread }
    }

    /// Does the job; the answers to a question are in `answers`.
    fn run(&mut self, job: &Job) -> Option<Reading> {
        match (job, &mut self.reader) {
            (Job::Read(job), Some(reader)) => Some(reader.run(job, &self.step)),
            (Job::Read(_), None) => Some(Reading::default()),
            (Job::Ask(ask), _) => {
                self.asker.ask(ask, &mut self.answers);
                None
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
