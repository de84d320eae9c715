//! The program's side of an experiment: starts the child that conducts it, hands over its messages.

use super::message::ExperimentMessage;
use super::spec::ExperimentSpec;
use crate::bench::parent::ChildHandle;
use crate::root::Root;

/// The hidden subcommand under which the child is started.
pub const CHILD_SUBCOMMAND: &str = "experiment-child";

/// An experiment in its child process. Dropping it cancels: the old values come back either way.
pub struct ExperimentChild(ChildHandle);

impl ExperimentChild {
    /// Starts `spec`. `sink` gets every message on a thread of its own; the last one is a report, a refusal or a
    /// failure, whatever becomes of the child. Nothing here waits for it.
    pub fn start(
        root: &Root,
        spec: &ExperimentSpec,
        sink: impl FnMut(ExperimentMessage) + Send + 'static,
    ) -> std::io::Result<Self> {
        ChildHandle::start(root, CHILD_SUBCOMMAND, spec, sink).map(Self)
    }
}

impl std::ops::Deref for ExperimentChild {
    type Target = ChildHandle;

    fn deref(&self) -> &ChildHandle {
        &self.0
    }
}
