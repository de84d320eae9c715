//! Many sleeping processes, to measure the cost per process. They share memory, files and signal handlers with the process
//! that started them, so that each one costs little more than its kernel stack: 100,000 take 4 GB and a few seconds.

use anyhow::{Context, bail};
use rustix::mm::{MapFlags, ProtFlags};
use rustix::process::{Pid, Signal, WaitOptions};
use std::ffi::{c_char, c_int, c_void};
use std::fs;

/// Process IDs left to others.
const SPARE: u64 = 2_000;
/// Bytes of a process's stack: one page.
const STACK_LEN: usize = 4096;

/// Sleeping processes, killed when this is dropped; the kernel kills them if the process that started them ends.
pub struct Herd {
    pids: Vec<Pid>,
    _limits: Vec<RaisedLimit>,
}

impl Herd {
    /// Starts `n` sleeping processes. Raises the limits of the kernel's settings for as long as they live.
    pub fn start(n: u32) -> anyhow::Result<Self> {
        let needed = u64::from(n) + super::account::tasks() + SPARE;
        let paths = ["/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"];
        let limits = paths.map(|path| RaisedLimit::raise(path, if n == 0 { 0 } else { needed }));
        let mut herd = Self { pids: Vec::new(), _limits: limits.into_iter().collect::<Result<_, _>>()? };
        if n > 0 {
            herd.fill(n)?;
        }
        Ok(herd)
    }

    /// IDs of the processes.
    pub fn pids(&self) -> &[Pid] {
        &self.pids
    }

    #[allow(unsafe_code)]
    fn fill(&mut self, n: u32) -> anyhow::Result<()> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        let len = n as usize * STACK_LEN;
        // SAFETY: a new mapping at an address chosen by the kernel, which is never unmapped.
        let stacks = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, access, flags) }?;
        let shared = libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_SIGHAND | libc::SIGCHLD;
        for i in 0..n {
            let name = format!("herd-{i:05}\0");
            // SAFETY: the name and the child lie in a page of the mapping that nothing else uses. The child only makes
            // system calls and never returns.
            let pid = unsafe {
                let stack = stacks.add(i as usize * STACK_LEN);
                std::ptr::copy_nonoverlapping(name.as_ptr(), stack.cast(), name.len());
                libc::clone(sleeper, stack.add(STACK_LEN), shared, stack)
            };
            match Pid::from_raw(pid).filter(|_| pid > 0) {
                Some(pid) => self.pids.push(pid),
                None => bail!("clone after {} of {n} processes: {}", i, std::io::Error::last_os_error()),
            }
        }
        Ok(())
    }
}

impl Drop for Herd {
    fn drop(&mut self) {
        for pid in &self.pids {
            let _ = rustix::process::kill_process(*pid, Signal::KILL);
        }
        for pid in &self.pids {
            let _ = rustix::process::waitpid(Some(*pid), WaitOptions::empty());
        }
    }
}

/// Names itself and sleeps until it is killed.
#[allow(unsafe_code)]
extern "C" fn sleeper(name: *mut c_void) -> c_int {
    // SAFETY: `name` is a C string that stays; the other calls take no pointers.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, name.cast::<c_char>());
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        loop {
            libc::pause();
        }
    }
}

/// A setting of the kernel that is higher than before, until this is dropped.
struct RaisedLimit {
    path: &'static str,
    raised: String,
    /// The value from before; `None` if it was high enough.
    before: Option<String>,
}

impl RaisedLimit {
    fn raise(path: &'static str, needed: u64) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path).with_context(|| path)?.trim().to_owned();
        let is_enough = text.parse::<u64>().with_context(|| path)? >= needed;
        let raised = needed.to_string();
        if !is_enough {
            fs::write(path, &raised).with_context(|| format!("{path} is {text}; cannot raise it to {needed}"))?;
        }
        Ok(Self { path, raised, before: (!is_enough).then_some(text) })
    }
}

impl Drop for RaisedLimit {
    fn drop(&mut self) {
        let Some(before) = &self.before else { return };
        // Somebody else's value stays.
        if fs::read_to_string(self.path).is_ok_and(|now| now.trim() == self.raised) {
            let _ = fs::write(self.path, before);
        }
    }
}
