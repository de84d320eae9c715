//! The signals that end a subcommand.

use anyhow::Context;
use std::task::Poll;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals of which any is awaited.
pub(super) struct Signals(Vec<Signal>);

impl Signals {
    pub(super) fn new(kinds: &[SignalKind]) -> anyhow::Result<Self> {
        Ok(Self(kinds.iter().map(|kind| signal(*kind)).collect::<Result<_, _>>().context("no signal handler")?))
    }

    pub(super) fn ending() -> anyhow::Result<Self> {
        Self::new(&[SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit()])
    }

    /// Waits for one of them. Cancel-safe.
    pub(super) async fn recv(&mut self) {
        std::future::poll_fn(|cx| match self.0.iter_mut().any(|signal| signal.poll_recv(cx).is_ready()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }
}
