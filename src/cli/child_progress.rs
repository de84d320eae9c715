//! Follows a child process until its last message. The first Ctrl-C, SIGTERM or SIGHUP cancels the work, the second
//! kills the child.

use crate::root::Root;
use crate::subprocess::handle::{ChildHandle, ChildMessage};
use std::io::Write;
use tokio::signal::unix::{SignalKind, signal};

/// Starts a child with its order, calls `on_message` with its messages, and returns the last one.
pub fn run_until_last_message<M: ChildMessage>(
    root: &Root,
    order: &M::Order,
    mut on_message: impl FnMut(M),
) -> anyhow::Result<M> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (mut int, mut term, mut hup) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
        let (tx, mut rx) = tokio::sync::mpsc::unbounded_channel();
        let child = ChildHandle::start(root, order, move |message: M| drop(tx.send(message)))?;
        let mut was_cancelled = false;
        loop {
            tokio::select! {
                message = rx.recv() => match message {
                    Some(last) if last.is_last() => return Ok(last),
                    Some(message) => on_message(message),
                    None => anyhow::bail!("the child process ended without a result"),
                },
                _ = int.recv() => cancel_or_kill(&child, &mut was_cancelled),
                _ = term.recv() => cancel_or_kill(&child, &mut was_cancelled),
                _ = hup.recv() => cancel_or_kill(&child, &mut was_cancelled),
            }
        }
    })
}

fn cancel_or_kill(child: &ChildHandle, was_cancelled: &mut bool) {
    if std::mem::replace(was_cancelled, true) { child.kill() } else { child.cancel() }
}

/// Replaces the current line on stderr.
pub fn overwrite_progress_line(line: &str) {
    let _ = write!(std::io::stderr(), "\r\x1b[K{}", crate::sanitize::fit_width(line, 78).0);
}
