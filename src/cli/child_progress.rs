//! Looks on at a child that works, until its last message. Ctrl-C, SIGTERM and a closed terminal ask it to end,
//! a second time they end it.

use crate::root::Root;
use crate::subprocess::handle::{ChildHandle, ChildMessage};
use std::io::Write;
use tokio::signal::unix::{SignalKind, signal};

/// Starts a child with its order, calls `seen` with its messages, and returns the last one.
pub fn run_until_last_message<M: ChildMessage>(
    root: &Root,
    order: &M::Order,
    mut seen: impl FnMut(M),
) -> anyhow::Result<M> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (mut int, mut term, mut hup) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
        let (tx, mut rx) = tokio::sync::mpsc::unbounded_channel();
        let working = ChildHandle::start(root, order, move |message: M| drop(tx.send(message)))?;
        let mut asked = false;
        loop {
            tokio::select! {
                message = rx.recv() => match message {
                    Some(last) if last.is_last() => return Ok(last),
                    Some(message) => seen(message),
                    None => anyhow::bail!("the working process broke off"),
                },
                _ = int.recv() => cancel_or_kill(&working, &mut asked),
                _ = term.recv() => cancel_or_kill(&working, &mut asked),
                _ = hup.recv() => cancel_or_kill(&working, &mut asked),
            }
        }
    })
}

fn cancel_or_kill(working: &ChildHandle, asked: &mut bool) {
    if std::mem::replace(asked, true) { working.kill() } else { working.cancel() }
}

/// A line on stderr over the one before.
pub fn overwrite_progress_line(line: &str) {
    let _ = write!(std::io::stderr(), "\r\x1b[K{}", crate::sanitize::fit_width(line, 78).0);
}
