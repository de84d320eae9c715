//! A child process and its pipes, however it was started.

use super::fork_server;
use crate::root::Root;
use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

/// A child of this process. Dropping it neither ends nor reaps it.
#[derive(Debug)]
pub struct ChildProcess {
    pid: Pid,
    /// Set once it has been reaped: its number may belong to another process then.
    status: Option<ExitStatus>,
    /// Its standard input, until taken.
    pub stdin: Option<ChildStdin>,
    /// Its standard output, until taken.
    pub stdout: Option<ChildStdout>,
}

impl ChildProcess {
    /// Starts a hidden subcommand with pipes for input and output and without standard error. This program's own
    /// subcommands come from the fork server where one runs, so that they need nothing from a disk.
    ///
    /// # Errors
    /// If the system has no process, descriptor or memory left, or `program` cannot be executed.
    pub fn start<S: AsRef<OsStr>>(program: &Path, root: &Root, subcommand: &[S]) -> io::Result<Self> {
        let base = [OsStr::new("--root"), root.base().as_os_str()];
        let args: Vec<&OsStr> = subcommand.iter().map(AsRef::as_ref).chain(base).collect();
        if program == Root::self_exe() {
            let (input, stdin) = pipe_with(PipeFlags::CLOEXEC)?;
            let (stdout, output) = pipe_with(PipeFlags::CLOEXEC)?;
            if let Some(pid) = fork_server::spawn(&args, &input, &output) {
                return Ok(Self { pid, status: None, stdin: Some(stdin.into()), stdout: Some(stdout.into()) });
            }
        }
        Self::execute(program, &args)
    }

    fn execute(program: &Path, args: &[&OsStr]) -> io::Result<Self> {
        let mut command = Command::new(program);
        // The name that process lists show, this program's own included.
        command.arg0("iotop-plus").args(args);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let pid = Pid::from_raw(child.id() as i32).ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { pid, status: None, stdin: child.stdin, stdout: child.stdout })
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get() as u32
    }

    /// Ends it with SIGKILL, unless it has been reaped.
    pub fn kill(&self) {
        if self.status.is_none() {
            // It may have ended by itself.
            let _ = kill_process(self.pid, Signal::KILL);
        }
    }

    /// Reaps it if it has ended.
    ///
    /// # Errors
    /// If it was reaped elsewhere.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.reap(WaitOptions::NOHANG)
    }

    /// Waits until it has ended, and reaps it.
    ///
    /// # Errors
    /// If it was reaped elsewhere.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.reap(WaitOptions::empty())?.ok_or_else(|| Errno::CHILD.into())
    }

    fn reap(&mut self, options: WaitOptions) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            let ended = retry_on_intr(|| waitpid(Some(self.pid), options))?;
            self.status = ended.map(|(_, status)| ExitStatus::from_raw(status.as_raw()));
        }
        Ok(self.status)
    }

    /// Kills it and leaves it to a thread that reaps it, however long the kernel holds it. `on_exit` runs then.
    pub fn abandon(mut self, on_exit: impl FnOnce() + Send + 'static) {
        self.kill();
        // Without a thread the child stays a zombie until this process ends.
        let _ = std::thread::Builder::new().name("reap".into()).stack_size(64 * 1024).spawn(move || {
            let _ = self.wait();
            on_exit();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    fn start_program(program: &str, args: &[&str]) -> ChildProcess {
        let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
        ChildProcess::execute(Path::new(program), &args).unwrap()
    }

    #[test]
    fn a_child_is_reaped_once_and_its_status_is_kept() {
        let mut child = start_program("/bin/sh", &["-c", "read line; echo $line; exit 3"]);
        assert_eq!(child.try_wait().unwrap(), None);
        child.stdin.take().unwrap().write_all(b"hello\n").unwrap();
        let mut said = String::new();
        child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(said, "hello\n");
        assert_eq!(child.wait().unwrap().code(), Some(3));
        assert_eq!(child.try_wait().unwrap().unwrap().code(), Some(3));
        child.kill();
    }

    #[test]
    fn an_abandoned_child_is_killed_and_reaped() {
        let child = start_program("/bin/sleep", &["60"]);
        let (pid, (sender, ended)) = (child.id(), std::sync::mpsc::channel());
        child.abandon(move || sender.send(()).unwrap());
        ended.recv().unwrap();
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }
}
