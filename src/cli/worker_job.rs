//! Jobs of a child process with a deadline, because a file system may hang.

use super::exit::EXIT_OK;
use crate::jobs::WorkerPool;
use crate::jobs::atomic_write::IfExists;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::model::raw_bytes::RawBytes;
use crate::root::Root;
use anyhow::{anyhow, bail};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How long writing a file may take, plus a time for each thousand bytes.
const FILE_WRITE_TIMEOUT: Duration = Duration::from_millis(1_500);
const FILE_WRITE_TIMEOUT_PER_KB: Duration = Duration::from_millis(1);

/// Runs a job; `None` if it has not answered in time.
pub(super) fn run_job(root: &Root, job: WorkerJob, within: Duration) -> anyhow::Result<Option<WorkerReply>> {
    let (tx, rx) = mpsc::channel();
    let pool = WorkerPool::new(root.clone(), Arc::new(move |_, reply| drop(tx.send(reply))));
    pool.start(job).map_err(|why| anyhow!("{why}"))?;
    match rx.recv_timeout(within) {
        Ok(WorkerReply::Failed(why)) => bail!("{why}"),
        reply => Ok(reply.ok()),
    }
}

/// Writes a new file.
pub(super) fn write_file(root: &Root, path: &Path, contents: RawBytes) -> anyhow::Result<u8> {
    let path = std::path::absolute(path)?;
    let shown = path.display().to_string();
    let within = FILE_WRITE_TIMEOUT + FILE_WRITE_TIMEOUT_PER_KB * (contents.as_bytes().len() / 1000) as u32;
    let job = WorkerJob::WriteFile { path, contents, existing: IfExists::Fail, make_dir: false };
    match run_job(root, job, within)? {
        Some(WorkerReply::FileWritten { .. }) => Ok(EXIT_OK),
        Some(_) => bail!("{shown}: not written"),
        None => {
            let secs = within.as_secs_f64();
            bail!("{shown}: its file system has not answered for {secs:.1} s; write elsewhere")
        }
    }
}
