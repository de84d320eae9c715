//! Children of the pool, real ones: their replies, those that hang on a file that never opens, those that die.

use iotop_plus::root::Root;
use iotop_plus::worker::job::{Job, Reply};
use iotop_plus::worker::pool::{Pending, Pool};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Whatever is waited for has come by then, or never will.
const PATIENCE: Duration = Duration::from_secs(30);

/// A pool over a tree of its own.
struct Lab {
    pool: Option<Pool>,
    replies: Receiver<(Job, Reply)>,
    dir: tempfile::TempDir,
}

impl Lab {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("note"), "text").unwrap();
        std::fs::create_dir(dir.path().join("etc")).unwrap();
        mknodat(CWD, dir.path().join("etc/sysctl.conf"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let (tx, replies) = channel();
        let sink = Arc::new(move |job, reply| drop(tx.send((job, reply))));
        let program = Path::new(env!("CARGO_BIN_EXE_iotop-plus"));
        Self { pool: Some(Pool::of(program, Root::at(dir.path()), sink)), replies, dir }
    }

    fn pool(&self) -> &Pool {
        self.pool.as_ref().unwrap()
    }

    /// Done at once.
    fn quick(&self) -> Job {
        Job::ReadFile { path: self.dir.path().join("note") }
    }

    /// Opened by jobs that read what is set at boot: they wait for a writer.
    fn fifo(&self) -> PathBuf {
        self.dir.path().join("etc/sysctl.conf")
    }

    /// Lets the hanging jobs go on.
    fn release(&self) {
        // Opens as soon as a child is there to read.
        open(self.fifo(), OFlags::WRONLY, Mode::empty()).unwrap();
    }

    fn reply(&self) -> (Job, Reply) {
        self.replies.recv_timeout(PATIENCE).expect("a reply")
    }

    /// What is pending, when its child is there.
    fn pending(&self) -> Vec<Pending> {
        let start = Instant::now();
        loop {
            let pending = self.pool().pending();
            if pending.iter().all(|p| p.pid != 0) {
                return pending;
            }
            assert!(start.elapsed() < PATIENCE, "{pending:?}");
        }
    }

    fn kill(&self) {
        for p in self.pending() {
            let pid = rustix::process::Pid::from_raw(p.pid as i32).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// Does not end before [`Lab::release`].
fn hanging() -> Job {
    Job::AtBoot { knobs: Vec::new() }
}

/// Neither does this.
fn hanging_too() -> Job {
    Job::Persist { words: Vec::new(), out: true }
}

fn text() -> Reply {
    Reply::File(Some("text".into()))
}

#[test]
fn one_child_does_its_jobs_in_turn_and_a_hanging_one_keeps_no_earlier_reply_back() {
    let lab = Lab::new();
    let asked = iotop_plus::collect::clock::now().boot_ns;
    assert_eq!(lab.pool().start_all(vec![lab.quick(), hanging()]), []);
    assert_eq!(lab.reply(), (lab.quick(), text()));
    let pending = lab.pending();
    assert_eq!(pending.iter().map(|p| (*p.job).clone()).collect::<Vec<_>>(), [hanging()]);
    assert!(pending[0].since_boot_ns > asked, "it began when the one before was done");
    let why = lab.pool().start(hanging()).unwrap_err();
    assert_eq!(why, "reading what decides the next boot: still under way");
    lab.release();
    let (job, reply) = lab.reply();
    assert!(job == hanging() && matches!(reply, Reply::AtBoot(..)), "{reply:?}");
    assert!(lab.pool().pending().is_empty());
    lab.pool().start(lab.quick()).unwrap();
    assert_eq!(lab.reply(), (lab.quick(), text()));
}

#[test]
fn what_waits_behind_a_hanging_job_gets_another_child() {
    let lab = Lab::new();
    assert_eq!(lab.pool().start_all(vec![hanging(), lab.quick()]), []);
    let at = lab.pool().pending();
    assert!(at.iter().all(|p| *p.job == hanging()), "what has not begun is not said to be blocked: {at:?}");
    assert_eq!(lab.reply(), (lab.quick(), text()));
    let [stuck] = &lab.pending()[..] else { panic!("{:?}", lab.pool().pending()) };
    assert_eq!(*stuck.job, hanging());
    lab.release();
    assert_eq!(lab.reply().0, hanging());
    // The job that went elsewhere is not answered twice.
    drop(lab.pool);
    assert!(lab.replies.recv_timeout(PATIENCE).is_err());
}

#[test]
fn all_that_a_child_had_to_do_fails_when_it_dies() {
    let lab = Lab::new();
    let jobs = vec![lab.quick(), hanging(), hanging_too()];
    assert_eq!(lab.pool().start_all(jobs.clone()), []);
    assert_eq!(lab.reply(), (lab.quick(), text()));
    lab.kill();
    for job in &jobs[1..] {
        let why = "child process: ended without an answer (signal: 9 (SIGKILL))";
        assert_eq!(lab.reply(), (job.clone(), Reply::Failed(format!("{}: {why}", job.key()))));
    }
    assert!(lab.pool().pending().is_empty());
}

#[test]
fn a_program_that_is_none_fails_all() {
    for (program, why) in
        [("/bin/true", "ended without an answer (exit status: 0)"), ("/no/such", "No such file")]
    {
        let (tx, replies) = channel();
        let sink = Arc::new(move |job, reply| drop(tx.send((job, reply))));
        let pool = Pool::of(Path::new(program), Root::live(), sink);
        assert_eq!(pool.start_all(vec![Job::Kept, Job::Experiments]), []);
        for job in [Job::Kept, Job::Experiments] {
            let (answered, reply) = replies.recv_timeout(PATIENCE).unwrap();
            assert_eq!(answered, job);
            assert!(matches!(&reply, Reply::Failed(said) if said.contains(why)), "{reply:?}");
        }
    }
}

#[test]
fn the_pool_takes_its_children_along() {
    let mut lab = Lab::new();
    let jobs = vec![lab.quick(), hanging(), hanging_too()];
    lab.pool().start_all(jobs);
    lab.reply();
    let pid = lab.pending()[0].pid;
    lab.pool = None;
    // Both fail: the child is gone.
    lab.reply();
    lab.reply();
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
}
