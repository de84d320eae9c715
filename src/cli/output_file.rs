//! Writes a file in a child process with a deadline: its file system may hang.

use super::exit::{EXIT_FAILED, EXIT_OK, print_error};
use crate::jobs::WorkerPool;
use crate::jobs::atomic_write::{FileContents, IfExists};
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::root::Root;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How long writing the file may take, plus a time for each thousand bytes: its file system may hang.
const FILE_WRITE_TIMEOUT: Duration = Duration::from_millis(1_500);
const FILE_WRITE_TIMEOUT_PER_KB: Duration = Duration::from_millis(1);

/// Writes the file in a child process, because its file system may hang.
pub(super) fn write_file(root: &Root, path: &Path, contents: FileContents) -> anyhow::Result<u8> {
    let (tx, rx) = mpsc::channel();
    let pool = WorkerPool::new(root.clone(), Arc::new(move |_, reply| drop(tx.send(reply))));
    let path = std::path::absolute(path)?;
    let within = FILE_WRITE_TIMEOUT + FILE_WRITE_TIMEOUT_PER_KB * (contents.bytes().len() / 1000) as u32;
    let job = WorkerJob::WriteFile { path: path.clone(), contents, existing: IfExists::Fail, make_dir: false };
    let why = match pool.start(job).map(|()| rx.recv_timeout(within)) {
        Ok(Ok(WorkerReply::FileWritten { .. })) => return Ok(EXIT_OK),
        Ok(Ok(WorkerReply::Failed(why))) => why,
        Ok(Ok(_)) => format!("{}: not written", path.display()),
        Ok(Err(_)) => format!(
            "{}: its file system has not answered for {:.1} s; write elsewhere",
            path.display(),
            within.as_secs_f64()
        ),
        Err(why) => why,
    };
    print_error(&why);
    Ok(EXIT_FAILED)
}
