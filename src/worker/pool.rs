//! The parent's side: starts children, gathers replies, counts those left behind.

use super::MAX_CHILDREN;
use super::job::{Job, Reply};
use crate::collect::clock;
use crate::root::Root;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// A reply larger than this is cut off: a child is not trusted with our memory.
const MAX_REPLY: u64 = 32 << 20;

/// Takes a finished job with its reply.
pub type Sink = Arc<dyn Fn(Job, Reply) + Send + Sync>;

/// A child that has not answered yet.
#[derive(Debug, Clone)]
pub struct Pending {
    /// What it does.
    pub job: Job,
    /// Boot clock when it was started, ns.
    pub since_boot_ns: u64,
    /// Its process; 0 while it is being started.
    pub pid: u32,
}

struct Running {
    job: Job,
    since_boot_ns: u64,
    pid: AtomicU32,
}

/// All children of this program.
pub struct Pool {
    sink: Sink,
    root: Root,
    running: Arc<Mutex<Vec<Arc<Running>>>>,
}

impl Pool {
    /// Children work below `root`; replies go to `sink`, on a thread of their own.
    pub fn new(root: Root, sink: Sink) -> Self {
        Self { sink, root, running: Arc::default() }
    }

    /// Starts a child for `job`. Refused, with the reason, if the same work is under way already or
    /// too many children are out.
    pub fn start(&self, job: Job) -> Result<(), String> {
        let entry = Arc::new(Running { job, since_boot_ns: clock::now().boot_ns, pid: AtomicU32::new(0) });
        {
            let mut running = self.running.lock().unwrap_or_else(|e| e.into_inner());
            if running.iter().any(|r| r.job.key() == entry.job.key()) {
                return Err(format!("{}: still under way", entry.job.key()));
            }
            if running.len() >= MAX_CHILDREN {
                return Err(format!("{}: {MAX_CHILDREN} children are stuck already", entry.job.key()));
            }
            running.push(entry.clone());
        }
        let (sink, running, root) = (self.sink.clone(), self.running.clone(), self.root.clone());
        let mine = entry.clone();
        let thread =
            std::thread::Builder::new().name("worker".into()).stack_size(128 * 1024).spawn(move || {
                let reply = converse(&entry, &root);
                running.lock().unwrap_or_else(|e| e.into_inner()).retain(|r| !Arc::ptr_eq(r, &entry));
                sink(entry.job.clone(), reply);
            });
        thread.map(drop).map_err(|err| {
            self.running.lock().unwrap_or_else(|e| e.into_inner()).retain(|r| !Arc::ptr_eq(r, &mine));
            format!("{}: no thread: {err}", mine.job.key())
        })
    }

    /// What has not answered yet.
    pub fn pending(&self) -> Vec<Pending> {
        let running = self.running.lock().unwrap_or_else(|e| e.into_inner());
        running
            .iter()
            .map(|r| Pending {
                job: r.job.clone(),
                since_boot_ns: r.since_boot_ns,
                pid: r.pid.load(Ordering::Relaxed),
            })
            .collect()
    }
}

impl Drop for Pool {
    /// Ends what can be ended; waits for nobody.
    fn drop(&mut self) {
        for p in self.pending() {
            if let Some(pid) = rustix::process::Pid::from_raw(p.pid as i32) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

fn converse(entry: &Running, root: &Root) -> Reply {
    match try_converse(entry, root) {
        Ok(reply) => reply,
        Err(err) => Reply::Failed(format!("{}: child process: {err}", entry.job.key())),
    }
}

fn try_converse(entry: &Running, root: &Root) -> anyhow::Result<Reply> {
    let request = serde_json::to_vec(&entry.job)?;
    let mut child = Command::new(Root::self_exe())
        // What a person sees of it in a process list, ours too.
        .arg0("iotop-plus")
        .arg("worker")
        .arg("--root")
        .arg(root.base())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    entry.pid.store(child.id(), Ordering::Relaxed);
    let reply = exchange(&mut child, &request);
    entry.pid.store(0, Ordering::Relaxed);
    // Its pipe is closed, so it has finished or is being killed: this wait is short.
    let status = child.wait()?;
    let text = reply?;
    if text.is_empty() {
        anyhow::bail!("ended without an answer ({status})");
    }
    Ok(serde_json::from_slice(&text)?)
}

fn exchange(child: &mut Child, request: &[u8]) -> std::io::Result<Vec<u8>> {
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(request)?;
    }
    let mut text = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(MAX_REPLY).read_to_end(&mut text)?;
    }
    Ok(text)
}
