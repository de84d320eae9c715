//! A pool of request children: queues batches of jobs, delivers replies, counts children that are stuck.

use super::budget::{ChildBudget, ChildSlot, MAX_CHILDREN};
use super::frame::FrameError;
use super::request::RequestChild;
use crate::root::Root;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Stack of the thread beside a child, bytes: parsing a stored experiment takes much of it. Untouched pages cost
/// nothing.
const STACK_BYTES: usize = 512 * 1024;
/// Jobs wait this long for the one before them in the same child; then they get a child of their own.
const REPLY_TIMEOUT: Duration = Duration::from_secs(2);

/// What children of a pool do.
pub trait PoolJob: Serialize + Clone + Send + Sync + 'static {
    /// The hidden subcommand that does these jobs.
    const SUBCOMMAND: &'static str;
    /// What comes back.
    type Reply: DeserializeOwned;
    /// Names the work. A second job with the same key is refused while the first is under way.
    fn key(&self) -> String;
    /// The reply in place of one that never came.
    fn failure(why: String) -> Self::Reply;
}

/// Takes a finished job with its reply.
pub type ReplySink<J> = Arc<dyn Fn(J, <J as PoolJob>::Reply) + Send + Sync>;

/// A job that a child is doing.
#[derive(Debug, Clone)]
pub struct PendingJob<J> {
    /// What it does.
    pub job: Arc<J>,
    /// CLOCK_BOOTTIME when it began, ns.
    pub started_boot_ns: u64,
    /// The child's process; 0 while it is being started.
    pub pid: u32,
}

/// One child and its jobs.
struct Batch<J> {
    id: u64,
    /// Jobs without a reply; the child is doing the first.
    jobs: VecDeque<Arc<J>>,
    /// When the first one began.
    started_boot_ns: u64,
    /// 0 while the child is being started, and while it is being reaped.
    pid: u32,
    _slot: ChildSlot,
}

struct PoolState<J> {
    batches: Vec<Batch<J>>,
    next_id: u64,
    budget: ChildBudget,
    is_shut_down: bool,
}

struct PoolInner<J: PoolJob> {
    program: PathBuf,
    root: Root,
    sink: ReplySink<J>,
    state: Mutex<PoolState<J>>,
}

/// The children that do jobs of one kind. Dropping it kills them and waits for none.
pub struct Pool<J: PoolJob>(Arc<PoolInner<J>>);

impl<J: PoolJob> Pool<J> {
    /// A pool below `root`. Replies go to `sink`, on threads of the pool.
    pub fn new(root: Root, sink: ReplySink<J>) -> Self {
        Self::with_program(Root::self_exe(), ChildBudget::shared(), root, sink)
    }

    /// A pool with another program in its children and a budget of its own.
    pub fn with_program(program: &Path, budget: ChildBudget, root: Root, sink: ReplySink<J>) -> Self {
        let state = Mutex::new(PoolState { batches: Vec::new(), next_id: 0, budget, is_shut_down: false });
        Self(Arc::new(PoolInner { program: program.into(), root, sink, state }))
    }

    /// Starts a child for `job`.
    ///
    /// # Errors
    /// The reason if the same work is under way, or too many children are.
    pub fn start(&self, job: J) -> Result<(), String> {
        self.start_all(vec![job]).pop().map_or(Ok(()), |(_, why)| Err(why))
    }

    /// Starts one child that does `jobs` in order; each reply comes when its job is done. Jobs behind one that does
    /// not end get another child. Refused jobs come back with the reason, as from [`Self::start`].
    pub fn start_all(&self, jobs: Vec<J>) -> Vec<(J, String)> {
        self.0.start(jobs)
    }

    /// The jobs that children are doing; jobs that have not begun are not among them.
    pub fn pending(&self) -> Vec<PendingJob<J>> {
        let current = |b: &Batch<J>| {
            let job = b.jobs.front()?.clone();
            Some(PendingJob { job, started_boot_ns: b.started_boot_ns, pid: b.pid })
        };
        self.0.lock_state().batches.iter().filter_map(current).collect()
    }
}

impl<J: PoolJob> Drop for Pool<J> {
    fn drop(&mut self) {
        let mut state = self.0.lock_state();
        state.is_shut_down = true;
        state.batches.iter().for_each(Batch::kill);
    }
}

impl<J> Batch<J> {
    /// Call only under the state's lock: the number of a reaped process may belong to another one.
    fn kill(&self) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.pid as i32) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

fn boot_ns() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn unwrap_all<J: Clone>(jobs: impl IntoIterator<Item = Arc<J>>) -> Vec<J> {
    jobs.into_iter().map(Arc::unwrap_or_clone).collect()
}

impl<J: PoolJob> PoolState<J> {
    /// One batch of the jobs that can be done, and the refused ones with the reason. No batch after the shutdown.
    fn admit(&mut self, jobs: Vec<J>) -> (Option<Batch<J>>, Vec<(J, String)>) {
        let slot = self.budget.acquire();
        let (mut taken, mut refused) = (VecDeque::<Arc<J>>::new(), Vec::new());
        for job in jobs {
            let key = job.key();
            if self.batches.iter().flat_map(|b| &b.jobs).chain(&taken).any(|j| j.key() == key) {
                refused.push((job, format!("{key}: still under way")));
            } else if slot.is_none() {
                refused.push((job, format!("{key}: {MAX_CHILDREN} children are stuck already")));
            } else {
                taken.push_back(Arc::new(job));
            }
        }
        let Some(slot) = slot.filter(|_| !taken.is_empty() && !self.is_shut_down) else { return (None, refused) };
        self.next_id += 1;
        (Some(Batch { id: self.next_id, jobs: taken, started_boot_ns: boot_ns(), pid: 0, _slot: slot }), refused)
    }

    fn batch(&mut self, id: u64) -> Option<&mut Batch<J>> {
        self.batches.iter_mut().find(|b| b.id == id)
    }

    /// Takes the job that has been answered; the next one begins.
    fn finish_first_job(&mut self, id: u64) -> Option<J> {
        let batch = self.batch(id)?;
        batch.started_boot_ns = boot_ns();
        batch.jobs.pop_front().map(Arc::unwrap_or_clone)
    }

    /// Takes the jobs that have not begun.
    fn take_waiting(&mut self, id: u64) -> Vec<J> {
        unwrap_all(self.batch(id).filter(|b| b.jobs.len() > 1).map(|b| b.jobs.split_off(1)).into_iter().flatten())
    }

    /// Removes the batch; its jobs without a reply come back.
    fn remove(&mut self, id: u64) -> Vec<J> {
        let index = self.batches.iter().position(|b| b.id == id);
        unwrap_all(index.map(|i| self.batches.swap_remove(i).jobs).into_iter().flatten())
    }
}

impl<J: PoolJob> PoolInner<J> {
    fn lock_state(&self) -> MutexGuard<'_, PoolState<J>> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn start(self: &Arc<Self>, jobs: Vec<J>) -> Vec<(J, String)> {
        let (id, jobs, mut refused) = {
            let mut state = self.lock_state();
            let (batch, refused) = state.admit(jobs);
            let Some(batch) = batch else { return refused };
            let (id, jobs) = (batch.id, batch.jobs.clone());
            state.batches.push(batch);
            (id, jobs, refused)
        };
        let inner = self.clone();
        let thread = std::thread::Builder::new().name("worker".into()).stack_size(STACK_BYTES);
        if let Err(err) = thread.spawn(move || inner.run_child(id, jobs)) {
            let left = self.lock_state().remove(id);
            refused.extend(left.into_iter().map(|job| {
                let why = format!("{}: no thread: {err}", job.key());
                (job, why)
            }));
        }
        refused
    }

    /// A child from start to end.
    fn run_child(self: &Arc<Self>, id: u64, jobs: VecDeque<Arc<J>>) {
        let done = self.spawn_and_exchange(id, jobs);
        let left = self.lock_state().remove(id);
        let why = match done {
            Ok(status) => format!("ended without an answer ({status})"),
            Err(err) => err.to_string(),
        };
        for job in left {
            let why = format!("{}: child process: {why}", job.key());
            (self.sink)(job, J::failure(why));
        }
    }

    fn spawn_and_exchange(self: &Arc<Self>, id: u64, jobs: VecDeque<Arc<J>>) -> Result<ExitStatus, FrameError> {
        let mut child = RequestChild::start(&self.program, &self.root, &[J::SUBCOMMAND])?;
        self.set_pid(id, child.pid());
        let sent = child.send(jobs.iter().map(|job| &**job));
        drop(jobs);
        let read = sent.map_err(FrameError::from).and_then(|()| self.read_replies(id, &mut child));
        self.set_pid(id, 0);
        let status = child.finish()?;
        read.map(|()| status)
    }

    fn set_pid(&self, id: u64, pid: u32) {
        let mut state = self.lock_state();
        let is_shut_down = state.is_shut_down;
        if let Some(batch) = state.batch(id) {
            batch.pid = pid;
            if is_shut_down {
                batch.kill();
            }
        }
    }

    fn read_replies(self: &Arc<Self>, id: u64, child: &mut RequestChild) -> Result<(), FrameError> {
        loop {
            let waiting = self.lock_state().batch(id).map_or(0, |b| b.jobs.len());
            if waiting == 0 {
                return Ok(());
            }
            if waiting > 1 && !child.wait_for_reply(REPLY_TIMEOUT) {
                self.reassign_waiting(id);
            }
            let reply = match child.read_reply::<J::Reply>() {
                Ok(None) => return Ok(()),
                Err(err @ (FrameError::Io(_) | FrameError::CutOff)) => return Err(err),
                Ok(Some(reply)) => Ok(reply),
                Err(FrameError::Malformed(err)) => Err(err),
            };
            let finished = self.lock_state().finish_first_job(id);
            let Some(job) = finished else { return Ok(()) };
            let reply = reply.unwrap_or_else(|err| J::failure(format!("{}: child process: {err}", job.key())));
            (self.sink)(job, reply);
        }
    }

    /// Gives the jobs behind one that does not end to another child.
    fn reassign_waiting(self: &Arc<Self>, id: u64) {
        let waiting = self.lock_state().take_waiting(id);
        for (job, why) in self.start(waiting) {
            (self.sink)(job, J::failure(why));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct TestJob(u32);

    impl PoolJob for TestJob {
        const SUBCOMMAND: &'static str = "none";
        type Reply = String;

        fn key(&self) -> String {
            format!("job {}", self.0)
        }

        fn failure(why: String) -> String {
            why
        }
    }

    fn new_state() -> PoolState<TestJob> {
        PoolState { batches: Vec::new(), next_id: 0, budget: ChildBudget::default(), is_shut_down: false }
    }

    /// Admits jobs of these numbers; the reasons of the refused ones.
    fn refusal_reasons(state: &mut PoolState<TestJob>, numbers: &[u32]) -> Vec<String> {
        let (batch, refused) = state.admit(numbers.iter().copied().map(TestJob).collect());
        let taken = batch.as_ref().map_or(0, |b| b.jobs.len());
        assert_eq!(taken + refused.len(), numbers.len());
        state.batches.extend(batch);
        refused.into_iter().map(|(_, why)| why).collect()
    }

    #[test]
    fn duplicate_jobs_and_excess_children_are_refused() {
        let mut state = new_state();
        let same = |n| format!("job {n}: still under way");
        assert_eq!(refusal_reasons(&mut state, &[1, 2, 1]), [same(1)]);
        // A duplicate of a job that has not begun is refused, too; the other jobs are done.
        assert_eq!(refusal_reasons(&mut state, &[2, 3]), [same(2)]);
        assert_eq!(state.batches.len(), 2);
        for n in 2..MAX_CHILDREN as u32 {
            assert_eq!(refusal_reasons(&mut state, &[10 * n, 10 * n + 1]), [""; 0], "children are counted, not jobs");
        }
        let full = "job 99: 8 children are stuck already";
        assert_eq!(refusal_reasons(&mut state, &[99, 1]), [full.to_owned(), same(1)]);
        let id = state.batches[0].id;
        assert_eq!(state.remove(id), [TestJob(1), TestJob(2)]);
        assert_eq!(refusal_reasons(&mut state, &[99, 1]), [""; 0]);
    }

    #[test]
    fn waiting_jobs_can_be_taken_from_a_batch() {
        let mut state = new_state();
        refusal_reasons(&mut state, &[1, 2, 3]);
        let id = state.batches[0].id;
        assert_eq!(state.finish_first_job(id), Some(TestJob(1)));
        assert_eq!(state.take_waiting(id), [TestJob(3)]);
        assert_eq!(state.take_waiting(id), []);
        assert_eq!(state.finish_first_job(id), Some(TestJob(2)));
        assert_eq!(state.finish_first_job(id), None);
    }
}
