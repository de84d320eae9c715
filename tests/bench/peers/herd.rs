//! Many sleeping processes, to measure the cost per process. One helper forks and kills them all; if the helper is
//! killed, the kernel kills them.

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, WaitOptions};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, Stdio};

/// Process IDs left to others.
const SPARE: u64 = 2_000;

/// Sleeping processes, killed when this is dropped.
pub struct Herd {
    helper: Child,
    stdin: Option<ChildStdin>,
}

impl Herd {
    /// Starts `n` sleeping processes.
    pub fn start(n: u32) -> anyhow::Result<Self> {
        let limit = |file| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
        let most = ["/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"].into_iter().filter_map(limit);
        let most = most.min().unwrap_or(u64::MAX);
        let used = super::account::processes() as u64;
        if u64::from(n) + used + SPARE > most {
            bail!("{n} processes exceed the limit of {most} tasks ({used} exist); use fewer, or raise kernel.pid_max");
        }
        let mut helper = Command::new(std::env::current_exe()?)
            .args(["--be-herd", &n.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdin = helper.stdin.take();
        let mut line = String::new();
        BufReader::new(helper.stdout.take().context("no pipe")?).read_line(&mut line)?;
        let herd = Self { helper, stdin };
        if line.trim() != format!("ready {n}") {
            bail!("cannot start the processes: {}", line.trim());
        }
        Ok(herd)
    }
}

impl Drop for Herd {
    fn drop(&mut self) {
        // End of file tells the helper to kill them.
        self.stdin = None;
        let _ = self.helper.wait();
    }
}

/// The helper: forks, reports, waits for the end of its standard input, then kills them.
pub fn be_herd(n: u32) -> anyhow::Result<()> {
    let mut pids = Vec::new();
    let mut why = None;
    for i in 0..n {
        match fork() {
            Ok(Some(pid)) => pids.push(pid),
            Ok(None) => sleeper(i),
            Err(err) => {
                why = Some(err);
                break;
            }
        }
    }
    match why {
        None => println!("ready {n}"),
        Some(err) => println!("fork after {}: {err}", pids.len()),
    }
    let _ = std::io::stdin().read(&mut [0]);
    for pid in &pids {
        let _ = rustix::process::kill_process(*pid, Signal::KILL);
    }
    for pid in pids {
        let _ = rustix::process::waitpid(Some(pid), WaitOptions::empty());
    }
    Ok(())
}

fn sleeper(i: u32) -> ! {
    if let Ok(name) = std::ffi::CString::new(format!("herd-{i:05}")) {
        let _ = rustix::thread::set_name(&name);
    }
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    loop {
        rustix::event::pause();
    }
}

/// Returns the child's ID, or `None` in the child.
#[allow(unsafe_code)]
fn fork() -> std::io::Result<Option<Pid>> {
    // SAFETY: the helper has one thread, so no lock is held by another in the child; the child uses only its own memory
    // and never returns into the parent's code.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}
