//! Writes the file for node_exporter. A child does it: the file system may hang, and the samples go on.

use crate::cli::exit::{EXIT_OK, print_error};
use crate::cli::worker_job::run_job;
use crate::jobs::WorkerPool;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::root::Root;
use anyhow::bail;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How long a single write may take.
const WRITE_TIMEOUT: Duration = Duration::from_millis(1_500);

/// The file.
pub(super) struct TextFile {
    root: Root,
    path: PathBuf,
    pool: WorkerPool,
    replies: mpsc::Receiver<WorkerReply>,
    was_written: bool,
    has_failed: bool,
}

impl TextFile {
    pub(super) fn new(root: &Root, path: &Path) -> anyhow::Result<Self> {
        let (tx, replies) = mpsc::channel();
        let pool = WorkerPool::new(root.clone(), Arc::new(move |_, reply| drop(tx.send(reply))));
        let path = std::path::absolute(path)?;
        Ok(Self { root: root.clone(), path, pool, replies, was_written: false, has_failed: false })
    }

    fn job(&self, text: String) -> WorkerJob {
        WorkerJob::PublishFile { path: self.path.clone(), contents: text.into_bytes().into() }
    }

    /// Writes the file and waits for it.
    pub(super) fn write(&self, text: String) -> anyhow::Result<u8> {
        match run_job(&self.root, self.job(text), WRITE_TIMEOUT)? {
            Some(WorkerReply::FileWritten { .. }) => Ok(EXIT_OK),
            _ => bail!("{}: its file system does not answer; write elsewhere", self.path.display()),
        }
    }

    /// Starts to write the file, unless the last write has not ended.
    ///
    /// # Errors
    ///
    /// If the first write failed, as it does where the directory is missing. Later failures are printed, each once.
    pub(super) fn write_soon(&mut self, text: String) -> anyhow::Result<()> {
        let replies: Vec<WorkerReply> = self.replies.try_iter().collect();
        for reply in replies {
            match reply {
                WorkerReply::Failed(why) if !self.was_written => bail!("{why}"),
                WorkerReply::Failed(why) => self.report(&why),
                _ => (self.was_written, self.has_failed) = (true, false),
            }
        }
        if let Err(why) = self.pool.start(self.job(text)) {
            self.report(&format!("{}: not written: {why}", self.path.display()));
        }
        Ok(())
    }

    fn report(&mut self, why: &str) {
        if !std::mem::replace(&mut self.has_failed, true) {
            print_error(why);
        }
    }
}
