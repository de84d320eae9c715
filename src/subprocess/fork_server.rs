//! The fork server: a process that starts this program's children without reading a file.
//!
//! A child made by exec needs the program's file, the dynamic linker and the C library, which may lie on the disk that
//! hangs. The fork server is a fork of the program made before its first thread; each child is a fork of it in turn,
//! runs a subcommand as `main` would, and is a child of the program (CLONE_PARENT, clone(2)), which waits for it as for
//! any other. It also restores the terminal if the program dies without having done so, see [`super::terminal_guard`].
//!
//! Requests and replies are packets on a Unix socket. The server ends when the program's end of it is closed.

#![allow(unsafe_code)] // fork(2) and clone(2)

use super::terminal_guard::TerminalGuard;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, Shutdown, SocketFlags, SocketType, recv, recvmsg, send, sendmsg, shutdown, socketpair,
};
use rustix::process::{Pid, WaitOptions, waitpid};
use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Runs a subcommand from its arguments and returns the exit code.
pub type RunSubcommand = fn(Vec<OsString>) -> u8;

/// The server, and the program's end of the socket.
static SERVER: OnceLock<(Pid, Mutex<OwnedFd>)> = OnceLock::new();

/// The longest request: arguments, the longest of them a path.
const MAX_REQUEST_BYTES: usize = 16 * 1024;
/// The server waits so long, and replies so often, while the kernel lacks memory.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);
const MAX_REPLY_TRIES: u32 = 50;
/// The first byte of a request says what is requested.
const SPAWN: u8 = b'S';
const GUARD_TERMINAL: u8 = b'T';
const RELEASE_TERMINAL: u8 = b'R';

/// Makes the fork server. Call it before any thread is started and anything is written to standard output.
///
/// # Errors
/// If the system has no process or descriptor left; children are then started by exec.
pub fn start(run: RunSubcommand) -> io::Result<()> {
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    match fork()? {
        Some(pid) => drop(SERVER.set((pid, Mutex::new(ours)))),
        None => {
            drop(ours);
            serve(&theirs, run)
        }
    }
    Ok(())
}

/// Ends the server and reaps it. No child can be started from then on.
pub fn stop() {
    if let Some((pid, server)) = SERVER.get() {
        end_process(*pid, &server.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Ends a process that ends with its socket, and reaps it: some containers have nobody else who would.
pub(super) fn end_process(pid: Pid, socket: &OwnedFd) {
    let _ = shutdown(socket, Shutdown::Both);
    // Should it not end at once, it is left to whoever inherits it.
    for _ in 0..50 {
        if !matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(None) | Err(Errno::INTR)) {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Forks a process with one thread: the parent gets the child's number, the child `None`.
pub(super) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: the callers run before any thread is started, so nothing is locked that the child would wait for.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Starts a subcommand with these descriptors as standard input and output. `None` without a server, and if it cannot
/// fork.
pub(super) fn spawn(args: &[&OsStr], stdin: &impl AsFd, stdout: &impl AsFd) -> Option<Pid> {
    let pid = request(SPAWN, &join_args(args), &[stdin.as_fd(), stdout.as_fd()])?;
    if pid > 0 { Pid::from_raw(pid) } else { None }
}

/// Has the server restore `tty`, as it is now, if this process dies before [`release_terminal`].
pub fn guard_terminal(tty: &impl AsFd) {
    request(GUARD_TERMINAL, &[], &[tty.as_fd()]);
}

/// The terminal has been restored.
pub fn release_terminal() {
    request(RELEASE_TERMINAL, &[], &[]);
}

/// Sends a request and waits for the number in the reply. `None` without a server, and once it has died.
fn request(kind: u8, text: &[u8], descriptors: &[BorrowedFd<'_>]) -> Option<i32> {
    let (_, server) = SERVER.get()?;
    let server = server.lock().unwrap_or_else(PoisonError::into_inner);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    let kind = [kind];
    let parts = [IoSlice::new(&kind), IoSlice::new(text)];
    retry_on_intr(|| sendmsg(&*server, &parts, &mut control, SendFlags::NOSIGNAL)).ok()?;
    let mut reply = [0; 4];
    let (n, _) = retry_on_intr(|| recv(&*server, &mut reply, RecvFlags::empty())).ok()?;
    (n == reply.len()).then(|| i32::from_ne_bytes(reply))
}

/// The server's main loop; ends the process.
fn serve(socket: &OwnedFd, run: RunSubcommand) -> ! {
    if detach_from_terminal(socket, "fork").is_err() {
        std::process::exit(1);
    }
    crate::allocator::lock_touched();
    let mut guard = TerminalGuard::default();
    let mut buffer = vec![0; MAX_REQUEST_BYTES];
    loop {
        let Ok((n, descriptors)) = receive(socket, &mut buffer) else {
            // The kernel lacks memory: the request is still there.
            std::thread::sleep(RETRY_INTERVAL);
            continue;
        };
        if n == 0 {
            break;
        }
        let reply = match buffer[0] {
            SPAWN => spawn_child(run, &buffer[1..n], descriptors),
            GUARD_TERMINAL => guard.arm(descriptors.into_iter().next()),
            RELEASE_TERMINAL => guard.disarm(),
            _ => -1,
        };
        let mut tries = 0;
        while send(socket, &reply.to_ne_bytes(), SendFlags::NOSIGNAL).is_err() {
            tries += 1;
            if tries > MAX_REPLY_TRIES {
                // The program lives, or the next request would say that it has ended; it does without this server.
                std::process::exit(1);
            }
            std::thread::sleep(RETRY_INTERVAL);
        }
    }
    // The program has ended, one way or another.
    guard.restore();
    std::process::exit(0)
}

/// Gives a helper of the program its name, a session of its own, `/dev/null` as standard streams, and no descriptor but
/// `socket`.
pub(super) fn detach_from_terminal(socket: &OwnedFd, name: &str) -> io::Result<()> {
    super::child::enter(name);
    let null = rustix::fs::openat(CWD, crate::root::Root::null(), OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    drop(null);
    super::child::close_descriptors_except(socket.as_raw_fd());
    Ok(())
}

fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received =
        retry_on_intr(|| recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut control, RecvFlags::CMSG_CLOEXEC))?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            descriptors.extend(fds);
        }
    }
    Ok((received.bytes, descriptors))
}

/// Forks a child of the program; in the child, runs the subcommand and exits. The child's number, or -1.
fn spawn_child(run: RunSubcommand, args: &[u8], descriptors: Vec<OwnedFd>) -> i32 {
    let [stdin, stdout] = &descriptors[..] else { return -1 };
    // SAFETY: this process has one thread, so nothing is locked in the child. With no stack given, the child continues
    // here on a copy of this one. What the C library's fork would do besides concerns threads.
    match unsafe { libc::syscall(libc::SYS_clone, libc::CLONE_PARENT | libc::SIGCHLD, 0, 0, 0, 0) } {
        0 => {}
        pid => return pid as i32,
    }
    let ready = rustix::stdio::dup2_stdin(stdin).and_then(|()| rustix::stdio::dup2_stdout(stdout));
    // They are closed with all others; to close them once more would be an error.
    std::mem::forget(descriptors);
    super::child::close_inherited_descriptors();
    let program = [OsString::from("iotop-plus")].into_iter();
    let code = if ready.is_ok() { run(program.chain(split_args(args)).collect()) } else { 1 };
    std::process::exit(code.into())
}

/// Arguments as they travel to the server: each ends with a zero byte.
fn join_args(args: &[&OsStr]) -> Vec<u8> {
    args.iter().flat_map(|arg| [arg.as_encoded_bytes(), &[0]]).flatten().copied().collect()
}

/// The reverse of [`join_args`].
fn split_args(bytes: &[u8]) -> Vec<OsString> {
    let args = bytes.strip_suffix(&[0]).unwrap_or(bytes).split(|b| *b == 0);
    args.map(|arg| OsStr::from_bytes(arg).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_survive_the_way_to_the_fork_server() {
        let args = [OsStr::new("tuner"), OsStr::new(""), OsStr::from_bytes(b"--root=\xff\n ")];
        assert_eq!(split_args(&join_args(&args)), args);
    }
}
