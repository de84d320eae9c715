//! The program's side of a run: starts the child, hands over its messages, tells it to end.
//!
//! Nothing here waits for the child: one that is stuck in the kernel is left behind.

use super::message::{BenchMessage, ChildCommand};
use super::plan::BenchPlan;
use crate::root::Root;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::Mutex;

/// The hidden subcommand under which the child is started.
pub const CHILD_SUBCOMMAND: &str = "bench-child";
/// Longest message that is read: a child is not trusted with our memory.
const MAX_MESSAGE_BYTES: u64 = 64 << 20;

/// What a child sends: one JSON object a line, the last one of a kind of its own.
pub trait ChildMessage: DeserializeOwned {
    /// Whether nothing follows it.
    fn is_last(&self) -> bool;
    /// What is handed over instead when the child sends nonsense or ends without a last message.
    fn from_crash(why: String) -> Self;
    /// What stands for a child that could not even be started.
    fn from_spawn_error(why: String) -> Self;
}

impl ChildMessage for BenchMessage {
    fn is_last(&self) -> bool {
        !matches!(self, BenchMessage::Progress(_) | BenchMessage::Note(_))
    }

    fn from_crash(why: String) -> Self {
        BenchMessage::Failed(format!("the measuring process {why}; its file went with it"))
    }

    fn from_spawn_error(why: String) -> Self {
        BenchMessage::Failed(why)
    }
}

/// Starts the hidden subcommand `command` of the same binary, with its input and output on pipes.
pub fn spawn_child(root: &Root, command: &str) -> std::io::Result<Child> {
    std::process::Command::new(Root::self_exe())
        // What a person sees of it in a process list, ours too.
        .arg0("iotop-plus")
        .arg(command)
        .arg("--root")
        .arg(root.base())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
}

/// A child of the same binary that works by itself: one line in, messages out, a line or the end of the pipe
/// to stop it. Dropping it closes the pipe.
pub struct ChildHandle {
    stdin: Mutex<Option<ChildStdin>>,
    pid: u32,
    /// The very process, also when it has ended and its number is another's.
    pidfd: Option<OwnedFd>,
}

impl ChildHandle {
    /// Starts the hidden subcommand `command` and gives it `first`. `sink` gets every message on a thread of its
    /// own; whatever becomes of the child, the last one satisfies [`FromChild::is_last`].
    pub fn start<M: ChildMessage + 'static>(
        root: &Root,
        command: &str,
        first: &impl Serialize,
        sink: impl FnMut(M) + Send + 'static,
    ) -> std::io::Result<Self> {
        let mut child = spawn_child(root, command)?;
        let mut stdin = child.stdin.take();
        if let Some(pipe) = &mut stdin {
            let mut line = serde_json::to_vec(first)?;
            line.push(b'\n');
            pipe.write_all(&line)?;
        }
        let pid = child.id();
        // Before anybody can have waited for it.
        let pidfd = Pid::from_raw(pid as i32).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        std::thread::Builder::new().name("child".into()).spawn(move || forward_messages(child, sink))?;
        Ok(Self { stdin: Mutex::new(stdin), pid, pidfd })
    }

    /// The child's process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Tells it to end; a report, complete up to now, follows as its last message.
    pub fn cancel(&self) {
        let mut stdin = self.stdin.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(pipe) = stdin.as_mut()
            && let Ok(mut line) = serde_json::to_vec(&ChildCommand::Cancel)
        {
            line.push(b'\n');
            // If it cannot be written the closed pipe says the same.
            let _ = pipe.write_all(&line);
        }
        *stdin = None;
    }

    /// Ends it without another word. What it holds (a nameless file, a lease) goes with it. Where the kernel gave
    /// no descriptor of the process (before Linux 5.3) its pipe is closed, which ends it within seconds.
    pub fn kill(&self) {
        match &self.pidfd {
            Some(fd) => drop(pidfd_send_signal(fd, Signal::KILL)),
            None => self.cancel(),
        }
    }
}

/// A run in its child process. Dropping it cancels the run.
pub struct BenchChild(ChildHandle);

impl BenchChild {
    /// Starts `plan`. `sink` gets every message on a thread of its own; the last one is a report, a refusal
    /// or a failure, whatever becomes of the child.
    pub fn start(
        root: &Root,
        plan: &BenchPlan,
        sink: impl FnMut(BenchMessage) + Send + 'static,
    ) -> std::io::Result<Self> {
        ChildHandle::start(root, CHILD_SUBCOMMAND, plan, sink).map(Self)
    }
}

impl std::ops::Deref for BenchChild {
    type Target = ChildHandle;

    fn deref(&self) -> &ChildHandle {
        &self.0
    }
}

fn forward_messages<M: ChildMessage>(mut child: Child, mut sink: impl FnMut(M)) {
    let mut ended = false;
    if let Some(stdout) = child.stdout.take() {
        let mut reader = BufReader::new(stdout);
        let mut line = Vec::new();
        while let Ok(n) = reader.by_ref().take(MAX_MESSAGE_BYTES).read_until(b'\n', &mut line) {
            if n == 0 {
                break;
            }
            let message =
                serde_json::from_slice(&line).unwrap_or_else(|err| M::from_crash(format!("sent nonsense: {err}")));
            ended = message.is_last();
            sink(message);
            if ended {
                break;
            }
            line.clear();
        }
    }
    if ended {
        // So that no zombie stays. A child stuck in the kernel keeps this thread, and nothing else.
        let _ = child.wait();
        return;
    }
    // Its pipe is closed, so it has ended or is ending.
    let how = child.wait().map_or_else(|e| e.to_string(), |s| s.to_string());
    sink(M::from_crash(format!("ended without a report ({how})")));
}
