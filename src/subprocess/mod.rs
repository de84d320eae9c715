//! Supervised child processes of this program's own binary.
//!
//! A read from a dead mount or a write to a hung device waits in the kernel; not even SIGKILL ends such a thread, and a
//! process that has one cannot exit. So whatever may block runs in a child: a session of its own, standard streams
//! that are pipes or `/dev/null`, messages of one JSON object a line. A child that does not come back is killed, left
//! to a thread that reaps it if it ever ends, and never waited for.
//!
//! Three ways to talk to one:
//!
//! - [`request`]: a batch of requests, one reply each, then the child ends. [`pool`] queues such batches.
//! - [`handle`]: one order, then the child works by itself and sends messages until its last one. [`runner`] starts
//!   and replaces such children without ever waiting.
//! - [`command`] and [`frame`] alone, for protocols of their own (the tuner, the file worker of recordings).
//!
//! [`child`] is the other end of the pipes.

pub mod budget;
pub mod child;
pub mod frame;
pub mod handle;
pub mod owner;
pub mod pool;
pub mod request;
pub mod runner;

use crate::root::Root;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A hidden subcommand of `program`, with its input and output on pipes and no standard error.
pub fn command(program: &Path, root: &Root, subcommand: &[&str]) -> Command {
    let mut command = Command::new(program);
    // The name that process lists show, this program's own included.
    command.arg0("iotop-plus").args(subcommand).arg("--root").arg(root.base());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// Kills `child` and leaves it to a thread that reaps it, however long the kernel holds it. `on_exit` runs then.
pub fn abandon(mut child: Child, on_exit: impl FnOnce() + Send + 'static) {
    let _ = child.kill();
    // Without a thread the child stays a zombie until this process ends.
    let _ = std::thread::Builder::new().name("reap".into()).stack_size(64 * 1024).spawn(move || {
        let _ = child.wait();
        on_exit();
    });
}
