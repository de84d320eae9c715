//! Work that may block, done in children of the hidden subcommand `worker`.
//!
//! Resolving a path, statfs, queue files, the mappings of a process, writing a file: on a dead mount or a hung device
//! these wait uninterruptibly, see [`crate::subprocess`].

pub(crate) mod atomic_write;
pub mod bench_jobs;
mod config_file;
pub mod job;

use self::job::{WorkerJob, WorkerReply};
use crate::root::Root;
use crate::subprocess::{child, pool};

/// The children that do [`WorkerJob`]s.
pub type WorkerPool = pool::Pool<WorkerJob>;

pub(crate) fn child_main(root: &Root) -> anyhow::Result<()> {
    child::enter("worker");
    // If the parent is killed nobody is left to read the reply.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    child::serve_requests(|job: serde_json::Result<WorkerJob>| {
        Ok(match job {
            Ok(job) => job.run(root),
            Err(err) => WorkerReply::Failed(format!("worker: request not understood: {err}")),
        })
    })
}
