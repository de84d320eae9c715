//! Many sleeping processes, so that cost per process can be seen. One helper forks them all and ends them
//! all; should it be killed, the kernel ends them.

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, WaitOptions};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, Stdio};

/// Process numbers left to everybody else.
const SPARE: u64 = 2_000;

/// A herd; it ends with this value.
pub struct Herd {
    helper: Child,
    stdin: Option<ChildStdin>,
}

impl Herd {
    /// Starts `n` sleepers.
    pub fn start(n: u32) -> anyhow::Result<Self> {
        let limit = |file| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
        let most = ["/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"].into_iter().filter_map(limit);
        let most = most.min().unwrap_or(u64::MAX);
        let used = super::account::processes() as u64;
        if u64::from(n) + used + SPARE > most {
            bail!(
                "a herd of {n} does not fit below {most} tasks ({used} processes are there); a smaller one, or raise kernel.pid_max"
            );
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
            bail!("the herd could not be made: {}", line.trim());
        }
        Ok(herd)
    }
}

impl Drop for Herd {
    fn drop(&mut self) {
        // End of file tells the helper to end them.
        self.stdin = None;
        let _ = self.helper.wait();
    }
}

/// The helper: forks, says so, waits for the end of its standard input, ends them.
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

/// The child's number, or `None` in the child.
#[allow(unsafe_code)]
fn fork() -> std::io::Result<Option<Pid>> {
    // SAFETY: the helper has one thread, so the child finds no lock held by another; it uses memory of its
    // own, and never returns to the code of the parent.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}
