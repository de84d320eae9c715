//! The child's side: jobs in, one reply out for each.

use super::job::{WorkerJob, WorkerReply};
use crate::root::Root;
use rustix::fs::{CWD, Mode, OFlags};
use std::io::{self, Read, Write};
use std::path::Path;

/// Runs the jobs that stand on standard input, one a line, in turn; the replies go to standard output, one a line.
pub fn main(root: &Root) -> anyhow::Result<()> {
    // A session of its own: the terminal's signals and its hang-up are the parent's business.
    let _ = rustix::process::setsid();
    // Started through a link in /proc it would be called `exe`, and so would it be when it is stuck.
    let _ = rustix::thread::set_name(c"iotop-plus");
    // Should the parent be killed, nobody is left to read the reply.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    // All at once: the parent must not wait for room in this pipe while we wait for room in the other.
    let mut requests = String::new();
    io::stdin().read_to_string(&mut requests)?;
    run_jobs(root, &requests, io::stdout().lock())
}

/// Each reply is out before the next job begins, which may never end.
fn run_jobs(root: &Root, requests: &str, mut out: impl Write) -> anyhow::Result<()> {
    for request in requests.lines() {
        let reply = match serde_json::from_str::<WorkerJob>(request) {
            Ok(job) => job.run(root),
            Err(err) => WorkerReply::Failed(format!("worker: request not understood: {err}")),
        };
        let mut line = serde_json::to_vec(&reply)?;
        line.push(b'\n');
        out.write_all(&line)?;
        out.flush()?;
    }
    Ok(())
}

/// A config file's text, at most 64 KiB; `None` if there is none. Refused, when run as root, if it is
/// another user's: whoever can write there would steer a root program.
pub fn read_config_file(path: &Path) -> io::Result<Option<String>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
        Ok(fd) => fd,
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(None),
        Err(err) => return Err(err.into()),
    };
    let stat = rustix::fs::fstat(&fd)?;
    let refuse = |why: String| Err(io::Error::other(why));
    if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::RegularFile {
        return refuse("is not a regular file".into());
    }
    if rustix::process::geteuid().is_root() && stat.st_uid != 0 {
        return refuse(format!(
            "belongs to user {}, and root does not read another user's settings; use --config none",
            stat.st_uid
        ));
    }
    if stat.st_size > 64 * 1024 {
        return refuse("is larger than 64 KiB".into());
    }
    let mut text = String::new();
    std::fs::File::from(fd).take(64 * 1024).read_to_string(&mut text)?;
    Ok(Some(text))
}
