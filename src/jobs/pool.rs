//! The parent's side: starts children, gathers replies, counts those left behind.

use super::MAX_CHILDREN;
use super::job::{WorkerJob, WorkerReply};
use crate::collect::clock;
use crate::root::Root;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};

/// A reply larger than this is cut off: a child is not trusted with our memory.
const MAX_REPLY_BYTES: u64 = 32 << 20;
/// Stack of the thread beside a child, bytes: reading a kept experiment takes much of it. What is not touched costs
/// nothing.
const STACK_BYTES: usize = 512 * 1024;
/// Jobs wait so long for the one before them in the same child; then they get a child of their own.
const REPLY_TIMEOUT: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// Takes a finished job with its reply.
pub type ReplySink = Arc<dyn Fn(WorkerJob, WorkerReply) + Send + Sync>;

/// A job that a child is at.
#[derive(Debug, Clone)]
pub struct PendingJob {
    /// What it does.
    pub job: Arc<WorkerJob>,
    /// Boot clock when it began, ns.
    pub started_boot_ns: u64,
    /// Its process; 0 while it is being started.
    pub pid: u32,
}

/// One child and what it has to do.
struct WorkerBatch {
    id: u64,
    /// Not answered yet; it is at the first.
    jobs: VecDeque<Arc<WorkerJob>>,
    /// Since when it is at the first.
    started_boot_ns: u64,
    /// 0 while it is being started, and when it is waited for.
    pid: u32,
}

#[derive(Default)]
struct PoolState {
    batches: Vec<WorkerBatch>,
    next_id: u64,
    /// Nobody wants anything any more.
    is_shut_down: bool,
}

struct PoolInner {
    program: PathBuf,
    root: Root,
    sink: ReplySink,
    state: Mutex<PoolState>,
}

/// All children of this program.
pub struct WorkerPool(Arc<PoolInner>);

impl WorkerPool {
    /// Children work below `root`; replies go to `sink`, on a thread of their own.
    pub fn new(root: Root, sink: ReplySink) -> Self {
        Self::with_program(Root::self_exe(), root, sink)
    }

    /// The same with another copy of this program in the children.
    pub fn with_program(program: &Path, root: Root, sink: ReplySink) -> Self {
        Self(Arc::new(PoolInner { program: program.into(), root, sink, state: Mutex::default() }))
    }

    /// Starts a child for `job`. Refused, with the reason, if the same work is under way already or
    /// too many children are out.
    pub fn start(&self, job: WorkerJob) -> Result<(), String> {
        self.start_all(vec![job]).pop().map_or(Ok(()), |(_, why)| Err(why))
    }

    /// Starts one child that does `jobs` in turn; each reply comes when its job is done. Those that wait
    /// behind one that does not end get another child. What was refused comes back with the reason, as with
    /// [`Self::start`]; the others go on without it.
    pub fn start_all(&self, jobs: Vec<WorkerJob>) -> Vec<(WorkerJob, String)> {
        self.0.start(jobs)
    }

    /// What children are at. A job that has not begun is not among it.
    pub fn pending(&self) -> Vec<PendingJob> {
        let at = |b: &WorkerBatch| {
            let job = b.jobs.front()?.clone();
            Some(PendingJob { job, started_boot_ns: b.started_boot_ns, pid: b.pid })
        };
        self.0.lock_state().batches.iter().filter_map(at).collect()
    }
}

impl Drop for WorkerPool {
    /// Ends what can be ended; waits for nobody.
    fn drop(&mut self) {
        let mut out = self.0.lock_state();
        out.is_shut_down = true;
        out.batches.iter().for_each(WorkerBatch::kill);
    }
}

impl WorkerBatch {
    /// Only while the lock is held: a process that was waited for may be another one by now.
    fn kill(&self) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.pid as i32) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

impl PoolState {
    /// One batch of what can be done, if anything can; once all is over nothing is.
    fn admit(&mut self, jobs: Vec<WorkerJob>) -> (Option<WorkerBatch>, Vec<(WorkerJob, String)>) {
        let full = self.batches.len() >= MAX_CHILDREN;
        let (mut taken, mut refused) = (VecDeque::<Arc<WorkerJob>>::new(), Vec::new());
        for job in jobs {
            let key = job.key();
            if self.batches.iter().flat_map(|b| &b.jobs).chain(&taken).any(|j| j.key() == key) {
                refused.push((job, format!("{key}: still under way")));
            } else if full {
                refused.push((job, format!("{key}: {MAX_CHILDREN} children are stuck already")));
            } else {
                taken.push_back(Arc::new(job));
            }
        }
        if taken.is_empty() || self.is_shut_down {
            return (None, refused);
        }
        self.next_id += 1;
        let since_boot_ns = clock::now().boot_ns;
        (Some(WorkerBatch { id: self.next_id, jobs: taken, started_boot_ns: since_boot_ns, pid: 0 }), refused)
    }

    fn batch(&mut self, id: u64) -> Option<&mut WorkerBatch> {
        self.batches.iter_mut().find(|b| b.id == id)
    }

    /// The job that was answered; the next one begins.
    fn finish_first_job(&mut self, id: u64) -> Option<WorkerJob> {
        let batch = self.batch(id)?;
        batch.started_boot_ns = clock::now().boot_ns;
        batch.jobs.pop_front().map(Arc::unwrap_or_clone)
    }

    /// What has not begun, if there is any.
    fn take_waiting(&mut self, id: u64) -> Vec<WorkerJob> {
        let waiting = self.batch(id).filter(|b| b.jobs.len() > 1).map(|b| b.jobs.split_off(1));
        waiting.into_iter().flatten().map(Arc::unwrap_or_clone).collect()
    }

    /// What it still had to do.
    fn remove(&mut self, id: u64) -> Vec<WorkerJob> {
        let at = self.batches.iter().position(|b| b.id == id);
        let jobs = at.map(|at| self.batches.swap_remove(at).jobs);
        jobs.into_iter().flatten().map(Arc::unwrap_or_clone).collect()
    }
}

impl PoolInner {
    fn lock_state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn start(self: &Arc<Self>, jobs: Vec<WorkerJob>) -> Vec<(WorkerJob, String)> {
        let (id, jobs, mut refused) = {
            let mut out = self.lock_state();
            let (batch, refused) = out.admit(jobs);
            let Some(batch) = batch else { return refused };
            let (id, jobs) = (batch.id, batch.jobs.clone());
            out.batches.push(batch);
            (id, jobs, refused)
        };
        let me = self.clone();
        let thread = std::thread::Builder::new().name("worker".into()).stack_size(STACK_BYTES);
        if let Err(err) = thread.spawn(move || me.run_child(id, jobs)) {
            let left = self.lock_state().remove(id);
            refused.extend(left.into_iter().map(|job| {
                let why = format!("{}: no thread: {err}", job.key());
                (job, why)
            }));
        }
        refused
    }

    /// A child from its beginning to its end.
    fn run_child(self: &Arc<Self>, id: u64, jobs: VecDeque<Arc<WorkerJob>>) {
        let done = self.spawn_and_exchange(id, jobs);
        let left = self.lock_state().remove(id);
        let why = match done {
            Ok(status) => format!("ended without an answer ({status})"),
            Err(err) => err.to_string(),
        };
        for job in left {
            let why = format!("{}: child process: {why}", job.key());
            (self.sink)(job, WorkerReply::Failed(why));
        }
    }

    fn spawn_and_exchange(self: &Arc<Self>, id: u64, jobs: VecDeque<Arc<WorkerJob>>) -> anyhow::Result<ExitStatus> {
        let mut requests = Vec::new();
        for job in jobs {
            serde_json::to_writer(&mut requests, &*job)?;
            requests.push(b'\n');
        }
        let mut child = Command::new(&self.program)
            // What a person sees of it in a process list, ours too.
            .arg0("iotop-plus")
            .arg("worker")
            .arg("--root")
            .arg(self.root.base())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        self.set_pid(id, child.id());
        let read = self.exchange_messages(id, &mut child, &requests);
        self.set_pid(id, 0);
        // It has said all that is wanted of it, or its pipe is closed, so it has finished or is being killed: the
        // wait is short.
        let _ = child.kill();
        let status = child.wait()?;
        read.map(|()| status)
    }

    /// The process of a child.
    fn set_pid(&self, id: u64, pid: u32) {
        let mut out = self.lock_state();
        let ended = out.is_shut_down;
        if let Some(batch) = out.batch(id) {
            batch.pid = pid;
            if ended {
                batch.kill();
            }
        }
    }

    fn exchange_messages(self: &Arc<Self>, id: u64, child: &mut Child, requests: &[u8]) -> anyhow::Result<()> {
        if let Some(mut stdin) = child.stdin.take()
            && let Err(err) = stdin.write_all(requests)
            // Of one that died at once its end tells more.
            && err.kind() != ErrorKind::BrokenPipe
        {
            return Err(err.into());
        }
        let Some(stdout) = child.stdout.take() else { return Ok(()) };
        let (mut stdout, mut text) = (BufReader::new(stdout), Vec::new());
        while self.lock_state().batch(id).is_some_and(|b| !b.jobs.is_empty()) {
            if stdout.buffer().is_empty() {
                self.wait_or_reassign(id, stdout.get_ref());
            }
            text.clear();
            (&mut stdout).take(MAX_REPLY_BYTES).read_until(b'\n', &mut text)?;
            match text.pop() {
                Some(b'\n') => {}
                Some(_) => anyhow::bail!("its answer is cut off"),
                None => break,
            }
            let answered = self.lock_state().finish_first_job(id);
            let Some(job) = answered else { break };
            let reply = serde_json::from_slice(&text)
                .unwrap_or_else(|err| WorkerReply::Failed(format!("{}: child process: {err}", job.key())));
            (self.sink)(job, reply);
        }
        Ok(())
    }

    /// Waits for a reply. If it does not come, the jobs behind it are given to another child.
    fn wait_or_reassign(self: &Arc<Self>, id: u64, reply: &impl AsFd) {
        if self.lock_state().batch(id).is_none_or(|b| b.jobs.len() < 2) {
            return;
        }
        let mut watched = [PollFd::new(reply, PollFlags::IN)];
        if retry_on_intr(|| poll(&mut watched, Some(&REPLY_TIMEOUT))) != Ok(0) {
            return;
        }
        let waiting = self.lock_state().take_waiting(id);
        for (job, why) in self.start(waiting) {
            (self.sink)(job, WorkerReply::Failed(why));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(pid: u32) -> WorkerJob {
        WorkerJob::Mappings { pid, starttime: 0 }
    }

    /// Why jobs are refused.
    fn refusal_reasons(out: &mut PoolState, pids: &[u32]) -> Vec<String> {
        let (batch, refused) = out.admit(pids.iter().map(|pid| job(*pid)).collect());
        let taken = batch.as_ref().map_or(0, |b| b.jobs.len());
        assert_eq!(taken + refused.len(), pids.len());
        out.batches.extend(batch);
        refused.into_iter().map(|(_, why)| why).collect()
    }

    #[test]
    fn duplicate_jobs_and_excess_children_are_refused() {
        let mut out = PoolState::default();
        let same = |pid| format!("reading the mappings of {pid}: still under way");
        assert_eq!(refusal_reasons(&mut out, &[1, 2, 1]), [same(1)]);
        // Also of what has not begun yet; the rest goes on.
        assert_eq!(refusal_reasons(&mut out, &[2, 3]), [same(2)]);
        assert_eq!(out.batches.len(), 2);
        for n in 2..MAX_CHILDREN as u32 {
            assert_eq!(refusal_reasons(&mut out, &[10 * n, 10 * n + 1]), [""; 0], "children are counted, not jobs");
        }
        let full = "reading the mappings of 99: 8 children are stuck already";
        assert_eq!(refusal_reasons(&mut out, &[99, 1]), [full.to_owned(), same(1)]);
        let id = out.batches[0].id;
        assert_eq!(out.remove(id), [job(1), job(2)]);
        assert_eq!(refusal_reasons(&mut out, &[99, 1]), [""; 0]);
    }

    #[test]
    fn waiting_jobs_can_be_taken_from_a_batch() {
        let mut out = PoolState::default();
        refusal_reasons(&mut out, &[1, 2, 3]);
        let id = out.batches[0].id;
        assert_eq!(out.finish_first_job(id), Some(job(1)));
        assert_eq!(out.take_waiting(id), [job(3)]);
        assert_eq!(out.take_waiting(id), []);
        assert_eq!(out.finish_first_job(id), Some(job(2)));
        assert_eq!(out.finish_first_job(id), None);
    }
}
