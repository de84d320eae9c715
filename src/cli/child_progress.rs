//! Follows a child process until its last message. The first Ctrl-C, SIGTERM or SIGHUP cancels the work, the second
//! kills the child.

use super::printer::block_on;
use crate::root::Root;
use crate::subprocess::child::{next_signal, stop_signals};
use crate::subprocess::handle::{ChildHandle, ChildMessage};
use std::io::Write;
use tokio::signal::unix::SignalKind;

/// Starts a child with its order, calls `on_message` with its messages, and returns the last one.
pub(super) fn run_until_last_message<M: ChildMessage>(
    root: &Root,
    order: &M::Order,
    mut on_message: impl FnMut(M),
) -> anyhow::Result<M> {
    block_on(async {
        let mut signals = stop_signals(&[SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()]);
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
                () = next_signal(&mut signals) => match std::mem::replace(&mut was_cancelled, true) {
                    true => child.kill(),
                    false => child.cancel(),
                },
            }
        }
    })
}

pub(super) fn overwrite_progress_line(line: &str) {
    let _ = write!(std::io::stderr(), "\r\x1b[K{}", crate::sanitize::fit_width(line, 78).0);
}
