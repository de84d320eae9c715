//! The program's side of an experiment: starts the child that conducts it, hands over its messages.

use super::message::Message;
use super::spec::Spec;
use crate::bench::host::Link;
use crate::root::Root;

/// The hidden subcommand under which the child is started.
pub const COMMAND: &str = "experiment-child";

/// An experiment in its child process. Dropping it cancels: the old values come back either way.
pub struct Running(Link);

impl Running {
    /// Starts `spec`. `sink` gets every message on a thread of its own; the last one is a report, a refusal or a
    /// failure, whatever becomes of the child. Nothing here waits for it.
    pub fn start(
        root: &Root,
        spec: &Spec,
        sink: impl FnMut(Message) + Send + 'static,
    ) -> std::io::Result<Self> {
        Link::start(root, COMMAND, spec, sink).map(Self)
    }
}

impl std::ops::Deref for Running {
    type Target = Link;

    fn deref(&self) -> &Link {
        &self.0
    }
}
