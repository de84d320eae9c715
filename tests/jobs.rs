//! Children of the pool, real ones: their replies, those that hang on a file that never opens, those that die.

use iotop_plus::jobs::WorkerPool;
use iotop_plus::jobs::bench_jobs::StoreJob;
use iotop_plus::jobs::job::{WorkerJob, WorkerReply};
use iotop_plus::root::Root;
use iotop_plus::subprocess::budget::ChildBudget;
use iotop_plus::subprocess::pool::{PendingJob, PoolJob as _};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Whatever is waited for has come by then, or never will.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);

/// A pool over a tree of its own.
struct TestPool {
    pool: Option<WorkerPool>,
    replies: Receiver<(WorkerJob, WorkerReply)>,
    dir: tempfile::TempDir,
}

impl TestPool {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("note"), "text").unwrap();
        std::fs::create_dir(dir.path().join("etc")).unwrap();
        mknodat(CWD, dir.path().join("etc/sysctl.conf"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let (tx, replies) = channel();
        let sink = Arc::new(move |job, reply| drop(tx.send((job, reply))));
        let program = Path::new(env!("CARGO_BIN_EXE_iotop-plus"));
        Self {
            pool: Some(WorkerPool::with_program(program, ChildBudget::default(), Root::at(dir.path()), sink)),
            replies,
            dir,
        }
    }

    fn pool(&self) -> &WorkerPool {
        self.pool.as_ref().unwrap()
    }

    /// Done at once.
    fn quick_job(&self) -> WorkerJob {
        WorkerJob::ReadConfig(self.dir.path().join("note"))
    }

    /// Opened by jobs that read what is set at boot: they wait for a writer.
    fn fifo(&self) -> PathBuf {
        self.dir.path().join("etc/sysctl.conf")
    }

    /// Lets the hanging jobs go on.
    fn release_hanging_jobs(&self) {
        // Opens as soon as a child is there to read.
        open(self.fifo(), OFlags::WRONLY, Mode::empty()).unwrap();
    }

    fn reply(&self) -> (WorkerJob, WorkerReply) {
        self.replies.recv_timeout(REPLY_TIMEOUT).expect("a reply")
    }

    /// What is pending, when its child is there.
    fn running_jobs(&self) -> Vec<PendingJob<WorkerJob>> {
        let start = Instant::now();
        loop {
            let pending = self.pool().pending();
            if pending.iter().all(|p| p.pid != 0) {
                return pending;
            }
            assert!(start.elapsed() < REPLY_TIMEOUT, "{pending:?}");
        }
    }

    fn kill_children(&self) {
        for p in self.running_jobs() {
            let pid = rustix::process::Pid::from_raw(p.pid as i32).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// Does not end before [`Lab::release`].
fn hanging_job() -> WorkerJob {
    WorkerJob::BootValues(Vec::new())
}

/// Neither does this.
fn other_hanging_job() -> WorkerJob {
    WorkerJob::Persist { assignments: Vec::new(), remove: true }
}

fn quick_reply() -> WorkerReply {
    WorkerReply::Config { text: Some("text".into()), themes: Vec::new() }
}

#[test]
fn jobs_run_in_order_and_earlier_replies_arrive_before_a_hanging_job() {
    let lab = TestPool::new();
    let asked = iotop_plus::collect::clock::now().boot_ns;
    assert_eq!(lab.pool().start_all(vec![lab.quick_job(), hanging_job()]), []);
    assert_eq!(lab.reply(), (lab.quick_job(), quick_reply()));
    let pending = lab.running_jobs();
    assert_eq!(pending.iter().map(|p| (*p.job).clone()).collect::<Vec<_>>(), [hanging_job()]);
    assert!(pending[0].started_boot_ns > asked, "it began when the one before was done");
    let why = lab.pool().start(hanging_job()).unwrap_err();
    assert_eq!(why, "reading what decides the next boot: still under way");
    lab.release_hanging_jobs();
    let (job, reply) = lab.reply();
    assert!(job == hanging_job() && matches!(reply, WorkerReply::BootValues(..)), "{reply:?}");
    assert!(lab.pool().pending().is_empty());
    lab.pool().start(lab.quick_job()).unwrap();
    assert_eq!(lab.reply(), (lab.quick_job(), quick_reply()));
}

#[test]
fn jobs_behind_a_hanging_job_move_to_another_child() {
    let lab = TestPool::new();
    assert_eq!(lab.pool().start_all(vec![hanging_job(), lab.quick_job()]), []);
    let at = lab.pool().pending();
    assert!(at.iter().all(|p| *p.job == hanging_job()), "what has not begun is not said to be blocked: {at:?}");
    assert_eq!(lab.reply(), (lab.quick_job(), quick_reply()));
    let [stuck] = &lab.running_jobs()[..] else { panic!("{:?}", lab.pool().pending()) };
    assert_eq!(*stuck.job, hanging_job());
    lab.release_hanging_jobs();
    assert_eq!(lab.reply().0, hanging_job());
    // The job that went elsewhere is not answered twice.
    drop(lab.pool);
    assert!(lab.replies.recv_timeout(REPLY_TIMEOUT).is_err());
}

#[test]
fn unanswered_jobs_fail_when_the_child_dies() {
    let lab = TestPool::new();
    let jobs = vec![lab.quick_job(), hanging_job(), other_hanging_job()];
    assert_eq!(lab.pool().start_all(jobs.clone()), []);
    assert_eq!(lab.reply(), (lab.quick_job(), quick_reply()));
    lab.kill_children();
    for job in &jobs[1..] {
        let why = "child process: ended without an answer (signal: 9 (SIGKILL))";
        assert_eq!(lab.reply(), (job.clone(), WorkerReply::Failed(format!("{}: {why}", job.key()))));
    }
    assert!(lab.pool().pending().is_empty());
}

#[test]
fn jobs_fail_when_the_program_cannot_run() {
    for (program, why) in [("/bin/true", "ended without an answer (exit status: 0)"), ("/no/such", "No such file")] {
        let (tx, replies) = channel();
        let sink = Arc::new(move |job, reply| drop(tx.send((job, reply))));
        let pool = WorkerPool::with_program(Path::new(program), ChildBudget::default(), Root::live(), sink);
        assert_eq!(
            pool.start_all(vec![WorkerJob::BenchReports(StoreJob::List), WorkerJob::ExperimentReports(StoreJob::List)]),
            []
        );
        for job in [WorkerJob::BenchReports(StoreJob::List), WorkerJob::ExperimentReports(StoreJob::List)] {
            let (answered, reply) = replies.recv_timeout(REPLY_TIMEOUT).unwrap();
            assert_eq!(answered, job);
            assert!(matches!(&reply, WorkerReply::Failed(said) if said.contains(why)), "{reply:?}");
        }
    }
}

#[test]
fn dropping_the_pool_kills_its_children() {
    let mut lab = TestPool::new();
    let jobs = vec![lab.quick_job(), hanging_job(), other_hanging_job()];
    lab.pool().start_all(jobs);
    lab.reply();
    let pid = lab.running_jobs()[0].pid;
    lab.pool = None;
    // Both fail: the child is gone.
    lab.reply();
    lab.reply();
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
}
