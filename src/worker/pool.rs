//! The parent's side: starts children, gathers replies, counts those left behind.

use super::MAX_CHILDREN;
use super::job::{Job, Reply};
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
const MAX_REPLY: u64 = 32 << 20;
/// Stack of the thread beside a child, bytes: reading a kept experiment takes much of it. What is not touched costs
/// nothing.
const STACK: usize = 512 * 1024;
/// Jobs wait so long for the one before them in the same child; then they get a child of their own.
const PATIENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// Takes a finished job with its reply.
pub type Sink = Arc<dyn Fn(Job, Reply) + Send + Sync>;

/// A job that a child is at.
#[derive(Debug, Clone)]
pub struct Pending {
    /// What it does.
    pub job: Arc<Job>,
    /// Boot clock when it began, ns.
    pub since_boot_ns: u64,
    /// Its process; 0 while it is being started.
    pub pid: u32,
}

/// One child and what it has to do.
struct Batch {
    id: u64,
    /// Not answered yet; it is at the first.
    jobs: VecDeque<Arc<Job>>,
    /// Since when it is at the first.
    since_boot_ns: u64,
    /// 0 while it is being started, and when it is waited for.
    pid: u32,
}

#[derive(Default)]
struct Out {
    batches: Vec<Batch>,
    next_id: u64,
    /// Nobody wants anything any more.
    ended: bool,
}

struct Inner {
    program: PathBuf,
    root: Root,
    sink: Sink,
    out: Mutex<Out>,
}

/// All children of this program.
pub struct Pool(Arc<Inner>);

impl Pool {
    /// Children work below `root`; replies go to `sink`, on a thread of their own.
    pub fn new(root: Root, sink: Sink) -> Self {
        Self::of(Root::self_exe(), root, sink)
    }

    /// The same with another copy of this program in the children.
    pub fn of(program: &Path, root: Root, sink: Sink) -> Self {
        Self(Arc::new(Inner { program: program.into(), root, sink, out: Mutex::default() }))
    }

    /// Starts a child for `job`. Refused, with the reason, if the same work is under way already or
    /// too many children are out.
    pub fn start(&self, job: Job) -> Result<(), String> {
        self.start_all(vec![job]).pop().map_or(Ok(()), |(_, why)| Err(why))
    }

    /// Starts one child that does `jobs` in turn; each reply comes when its job is done. Those that wait
    /// behind one that does not end get another child. What was refused comes back with the reason, as with
    /// [`Self::start`]; the others go on without it.
    pub fn start_all(&self, jobs: Vec<Job>) -> Vec<(Job, String)> {
        self.0.start(jobs)
    }

    /// What children are at. A job that has not begun is not among it.
    pub fn pending(&self) -> Vec<Pending> {
        let at = |b: &Batch| {
            let job = b.jobs.front()?.clone();
            Some(Pending { job, since_boot_ns: b.since_boot_ns, pid: b.pid })
        };
        self.0.out().batches.iter().filter_map(at).collect()
    }
}

impl Drop for Pool {
    /// Ends what can be ended; waits for nobody.
    fn drop(&mut self) {
        let mut out = self.0.out();
        out.ended = true;
        out.batches.iter().for_each(Batch::kill);
    }
}

impl Batch {
    /// Only while the lock is held: a process that was waited for may be another one by now.
    fn kill(&self) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.pid as i32) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

impl Out {
    /// One batch of what can be done, if anything can; once all is over nothing is.
    fn admit(&mut self, jobs: Vec<Job>) -> (Option<Batch>, Vec<(Job, String)>) {
        let full = self.batches.len() >= MAX_CHILDREN;
        let (mut taken, mut refused) = (VecDeque::<Arc<Job>>::new(), Vec::new());
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
        if taken.is_empty() || self.ended {
            return (None, refused);
        }
        self.next_id += 1;
        let since_boot_ns = clock::now().boot_ns;
        (Some(Batch { id: self.next_id, jobs: taken, since_boot_ns, pid: 0 }), refused)
    }

    fn batch(&mut self, id: u64) -> Option<&mut Batch> {
        self.batches.iter_mut().find(|b| b.id == id)
    }

    /// The job that was answered; the next one begins.
    fn answered(&mut self, id: u64) -> Option<Job> {
        let batch = self.batch(id)?;
        batch.since_boot_ns = clock::now().boot_ns;
        batch.jobs.pop_front().map(Arc::unwrap_or_clone)
    }

    /// What has not begun, if there is any.
    fn waiting(&mut self, id: u64) -> Vec<Job> {
        let waiting = self.batch(id).filter(|b| b.jobs.len() > 1).map(|b| b.jobs.split_off(1));
        waiting.into_iter().flatten().map(Arc::unwrap_or_clone).collect()
    }

    /// What it still had to do.
    fn remove(&mut self, id: u64) -> Vec<Job> {
        let at = self.batches.iter().position(|b| b.id == id);
        let jobs = at.map(|at| self.batches.swap_remove(at).jobs);
        jobs.into_iter().flatten().map(Arc::unwrap_or_clone).collect()
    }
}

impl Inner {
    fn out(&self) -> MutexGuard<'_, Out> {
        self.out.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn start(self: &Arc<Self>, jobs: Vec<Job>) -> Vec<(Job, String)> {
        let (id, jobs, mut refused) = {
            let mut out = self.out();
            let (batch, refused) = out.admit(jobs);
            let Some(batch) = batch else { return refused };
            let (id, jobs) = (batch.id, batch.jobs.clone());
            out.batches.push(batch);
            (id, jobs, refused)
        };
        let me = self.clone();
        let thread = std::thread::Builder::new().name("worker".into()).stack_size(STACK);
        if let Err(err) = thread.spawn(move || me.work(id, jobs)) {
            let left = self.out().remove(id);
            refused.extend(left.into_iter().map(|job| {
                let why = format!("{}: no thread: {err}", job.key());
                (job, why)
            }));
        }
        refused
    }

    /// A child from its beginning to its end.
    fn work(self: &Arc<Self>, id: u64, jobs: VecDeque<Arc<Job>>) {
        let done = self.converse(id, jobs);
        let left = self.out().remove(id);
        let why = match done {
            Ok(status) => format!("ended without an answer ({status})"),
            Err(err) => err.to_string(),
        };
        for job in left {
            let why = format!("{}: child process: {why}", job.key());
            (self.sink)(job, Reply::Failed(why));
        }
    }

    fn converse(self: &Arc<Self>, id: u64, jobs: VecDeque<Arc<Job>>) -> anyhow::Result<ExitStatus> {
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
        self.is(id, child.id());
        let read = self.exchange(id, &mut child, &requests);
        self.is(id, 0);
        // It has said all that is wanted of it, or its pipe is closed, so it has finished or is being killed: the
        // wait is short.
        let _ = child.kill();
        let status = child.wait()?;
        read.map(|()| status)
    }

    /// The process of a child.
    fn is(&self, id: u64, pid: u32) {
        let mut out = self.out();
        let ended = out.ended;
        if let Some(batch) = out.batch(id) {
            batch.pid = pid;
            if ended {
                batch.kill();
            }
        }
    }

    fn exchange(self: &Arc<Self>, id: u64, child: &mut Child, requests: &[u8]) -> anyhow::Result<()> {
        if let Some(mut stdin) = child.stdin.take()
            && let Err(err) = stdin.write_all(requests)
            // Of one that died at once its end tells more.
            && err.kind() != ErrorKind::BrokenPipe
        {
            return Err(err.into());
        }
        let Some(stdout) = child.stdout.take() else { return Ok(()) };
        let (mut stdout, mut text) = (BufReader::new(stdout), Vec::new());
        while self.out().batch(id).is_some_and(|b| !b.jobs.is_empty()) {
            if stdout.buffer().is_empty() {
                self.wait(id, stdout.get_ref());
            }
            text.clear();
            (&mut stdout).take(MAX_REPLY).read_until(b'\n', &mut text)?;
            match text.pop() {
                Some(b'\n') => {}
                Some(_) => anyhow::bail!("its answer is cut off"),
                None => break,
            }
            let answered = self.out().answered(id);
            let Some(job) = answered else { break };
            let reply = serde_json::from_slice(&text)
                .unwrap_or_else(|err| Reply::Failed(format!("{}: child process: {err}", job.key())));
            (self.sink)(job, reply);
        }
        Ok(())
    }

    /// Waits for a reply. If it does not come, the jobs behind it are given to another child.
    fn wait(self: &Arc<Self>, id: u64, reply: &impl AsFd) {
        if self.out().batch(id).is_none_or(|b| b.jobs.len() < 2) {
            return;
        }
        let mut watched = [PollFd::new(reply, PollFlags::IN)];
        if retry_on_intr(|| poll(&mut watched, Some(&PATIENCE))) != Ok(0) {
            return;
        }
        let waiting = self.out().waiting(id);
        for (job, why) in self.start(waiting) {
            (self.sink)(job, Reply::Failed(why));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(pid: u32) -> Job {
        Job::Mappings { pid, starttime: 0 }
    }

    /// Why jobs are refused.
    fn whys(out: &mut Out, pids: &[u32]) -> Vec<String> {
        let (batch, refused) = out.admit(pids.iter().map(|pid| job(*pid)).collect());
        let taken = batch.as_ref().map_or(0, |b| b.jobs.len());
        assert_eq!(taken + refused.len(), pids.len());
        out.batches.extend(batch);
        refused.into_iter().map(|(_, why)| why).collect()
    }

    #[test]
    fn the_same_work_is_refused_and_so_is_a_child_too_many_but_no_job_too_many() {
        let mut out = Out::default();
        let same = |pid| format!("reading the mappings of {pid}: still under way");
        assert_eq!(whys(&mut out, &[1, 2, 1]), [same(1)]);
        // Also of what has not begun yet; the rest goes on.
        assert_eq!(whys(&mut out, &[2, 3]), [same(2)]);
        assert_eq!(out.batches.len(), 2);
        for n in 2..MAX_CHILDREN as u32 {
            assert_eq!(whys(&mut out, &[10 * n, 10 * n + 1]), [""; 0], "children are counted, not jobs");
        }
        let full = "reading the mappings of 99: 8 children are stuck already";
        assert_eq!(whys(&mut out, &[99, 1]), [full.to_owned(), same(1)]);
        let id = out.batches[0].id;
        assert_eq!(out.remove(id), [job(1), job(2)]);
        assert_eq!(whys(&mut out, &[99, 1]), [""; 0]);
    }

    #[test]
    fn what_waits_leaves_what_has_begun() {
        let mut out = Out::default();
        whys(&mut out, &[1, 2, 3]);
        let id = out.batches[0].id;
        assert_eq!(out.answered(id), Some(job(1)));
        assert_eq!(out.waiting(id), [job(3)]);
        assert_eq!(out.waiting(id), []);
        assert_eq!(out.answered(id), Some(job(2)));
        assert_eq!(out.answered(id), None);
    }
}
