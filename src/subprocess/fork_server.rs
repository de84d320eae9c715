//! The fork server: a process that starts this program's children without reading a file.
//!
//! A child made by exec needs the program's file, the dynamic linker and the C library, which may lie on the disk that
//! hangs. The fork server is a fork of the program made before its first thread; each child is a fork of it in turn,
//! runs a subcommand as `main` would, and is a child of the program (CLONE_PARENT, clone(2)), which waits for it as for
//! any other. It also restores the terminal if the program dies without having done so, see [`super::terminal_guard`].
//!
//! Requests and replies are packets on a Unix socket. The server ends when the program's end of it is closed. A server
//! that does not reply in time is not used any more: children are then started by exec.

#![allow(unsafe_code)] // clone(2)

use super::helper::{Helper, detach_from_terminal};
use super::terminal_guard::TerminalGuard;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv,
    recvmsg, send, sendmsg,
};
use rustix::process::Pid;
use rustix::time::{ClockId, clock_gettime};
use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Runs a subcommand from its arguments and returns the exit code.
pub type RunSubcommand = fn(Vec<OsString>) -> u8;

static SERVER: OnceLock<ForkServer> = OnceLock::new();

/// The longest request: arguments, the longest of them a path.
const MAX_REQUEST_BYTES: usize = 16 * 1024;
/// A request is answered within this time, or the server is not used any more.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// The server waits so long, and replies so often, while the kernel lacks memory.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);
const MAX_REPLY_TRIES: u32 = 50;
/// The first byte of a request says what is requested.
const SPAWN: u8 = b'S';
const GUARD_TERMINAL: u8 = b'T';
const RELEASE_TERMINAL: u8 = b'R';
/// Bytes before the arguments: the kind, and the time the request is valid until.
const HEADER_BYTES: usize = 9;
const FAILED: i32 = -1;

/// The server as the program sees it.
#[derive(Debug)]
struct ForkServer {
    helper: Helper,
    /// Guards the exchange of a request and its reply.
    state: Mutex<ServerState>,
    state_changed: Condvar,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerState {
    Idle,
    Busy,
    /// It did not reply in time. A late reply would be taken for that to the next request.
    GivenUp,
}

/// Makes the fork server. Call it before any thread is started and anything is written to standard output.
///
/// # Errors
/// If the system has no process or descriptor left; children are then started by exec.
pub fn start(run: RunSubcommand) -> io::Result<()> {
    let helper = Helper::start(|socket| serve(socket, run))?;
    let server = ForkServer { helper, state: Mutex::new(ServerState::Idle), state_changed: Condvar::new() };
    drop(SERVER.set(server));
    Ok(())
}

/// The process of the server, to end it. No child can be started from then on.
pub fn helper() -> Option<&'static Helper> {
    SERVER.get().map(|server| &server.helper)
}

/// Starts a subcommand with these descriptors as standard input and output. `None` without a server, and if it does not
/// reply or cannot fork.
pub(super) fn spawn(args: &[&OsStr], stdin: &impl AsFd, stdout: &impl AsFd) -> Option<Pid> {
    let pid = SERVER.get()?.request(SPAWN, &join_args(args), &[stdin.as_fd(), stdout.as_fd()])?;
    if pid > 0 { Pid::from_raw(pid) } else { None }
}

/// Has the server restore `tty`, as it is now, if this process dies before [`release_terminal`]. Waits for the reply,
/// because the terminal is changed next.
pub fn guard_terminal(tty: &impl AsFd) {
    SERVER.get().and_then(|server| server.request(GUARD_TERMINAL, &[], &[tty.as_fd()]));
}

/// The terminal has been restored. Waits for nothing.
pub fn release_terminal() {
    if let Some(server) = SERVER.get() {
        server.send(RELEASE_TERMINAL, now(), &[], &[]);
    }
}

impl ForkServer {
    /// Sends a request and waits for the number in the reply, for [`REQUEST_TIMEOUT`] in all. `None` if there is none:
    /// the server is stuck or dead, or the request is too long for it.
    fn request(&self, kind: u8, args: &[u8], descriptors: &[BorrowedFd<'_>]) -> Option<i32> {
        let deadline = now() + REQUEST_TIMEOUT;
        if HEADER_BYTES + args.len() > MAX_REQUEST_BYTES || !self.take_turn(deadline) {
            return None;
        }
        let is_sent = self.send(kind, deadline, args, descriptors);
        let reply = if is_sent { self.receive_reply(deadline) } else { None };
        let is_usable = !is_sent || reply.is_some();
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) =
            if is_usable { ServerState::Idle } else { ServerState::GivenUp };
        self.state_changed.notify_all();
        reply
    }

    /// Waits until no other thread has a request under way; `false` if the server is not to be used.
    fn take_turn(&self, deadline: Duration) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let timeout = deadline.saturating_sub(now());
        let waited = self.state_changed.wait_timeout_while(state, timeout, |state| *state == ServerState::Busy);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let is_idle = *state == ServerState::Idle;
        if is_idle {
            *state = ServerState::Busy;
        }
        is_idle
    }

    /// Sends one packet unless the socket is full; a request is only valid until `deadline`.
    fn send(&self, kind: u8, deadline: Duration, args: &[u8], descriptors: &[BorrowedFd<'_>]) -> bool {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        let header = encode_header(kind, deadline);
        let parts = [IoSlice::new(&header), IoSlice::new(args)];
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        retry_on_intr(|| sendmsg(&self.helper.socket, &parts, &mut control, flags)).is_ok()
    }

    fn receive_reply(&self, deadline: Duration) -> Option<i32> {
        let socket = &self.helper.socket;
        retry_on_intr(|| {
            let timeout = Timespec::try_from(deadline.saturating_sub(now())).ok();
            poll(&mut [PollFd::new(socket, PollFlags::IN)], timeout.as_ref())
        })
        .ok()?;
        let mut reply = [0; 4];
        let (n, _) = retry_on_intr(|| recv(socket, &mut reply, RecvFlags::DONTWAIT)).ok()?;
        (n == reply.len()).then(|| i32::from_ne_bytes(reply))
    }
}

/// The time of CLOCK_MONOTONIC, which the program and the server have in common.
fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

fn encode_header(kind: u8, deadline: Duration) -> [u8; HEADER_BYTES] {
    let mut header = [kind; HEADER_BYTES];
    header[1..].copy_from_slice(&(deadline.as_nanos() as u64).to_ne_bytes());
    header
}

/// Kind, deadline and arguments of a request.
fn decode_request(bytes: &[u8]) -> Option<(u8, Duration, &[u8])> {
    let (header, args) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let deadline = u64::from_ne_bytes(header[1..].try_into().ok()?);
    Some((header[0], Duration::from_nanos(deadline), args))
}

/// The server's main loop; returns when the program has ended.
fn serve(socket: &OwnedFd, run: RunSubcommand) {
    if detach_from_terminal(socket, "fork").is_err() {
        return;
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
            // The program has ended, one way or another.
            return guard.restore();
        }
        let reply = match decode_request(&buffer[..n]) {
            Some((RELEASE_TERMINAL, ..)) => {
                guard.disarm();
                continue;
            }
            Some((GUARD_TERMINAL, ..)) => guard.arm(descriptors.into_iter().next()),
            // The program has started that child by exec meanwhile.
            Some((SPAWN, deadline, _)) if now() > deadline => FAILED,
            Some((SPAWN, _, args)) => spawn_child(run, args, descriptors),
            _ => FAILED,
        };
        if !send_reply(socket, reply) {
            // The program lives, or the next request would say that it has ended; it does without this server.
            return;
        }
    }
}

fn send_reply(socket: &OwnedFd, reply: i32) -> bool {
    for _ in 0..MAX_REPLY_TRIES {
        if send(socket, &reply.to_ne_bytes(), SendFlags::NOSIGNAL).is_ok() {
            return true;
        }
        std::thread::sleep(RETRY_INTERVAL);
    }
    false
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

/// Forks a child of the program; in the child, runs the subcommand and exits. The child's number, or [`FAILED`].
fn spawn_child(run: RunSubcommand, args: &[u8], descriptors: Vec<OwnedFd>) -> i32 {
    let [stdin, stdout] = &descriptors[..] else { return FAILED };
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
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    /// A server whose requests and replies the test receives and sends itself.
    fn fake_server() -> (ForkServer, OwnedFd) {
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        let (state, state_changed) = (Mutex::new(ServerState::Idle), Condvar::new());
        (ForkServer { helper: Helper::of_test(ours), state, state_changed }, theirs)
    }

    #[test]
    fn arguments_survive_the_way_to_the_fork_server() {
        let args = [OsStr::new("tuner"), OsStr::new(""), OsStr::from_bytes(b"--root=\xff\n ")];
        assert_eq!(split_args(&join_args(&args)), args);
        let deadline = Duration::new(12, 345);
        let bytes = [&encode_header(SPAWN, deadline)[..], b"args"].concat();
        assert_eq!(decode_request(&bytes), Some((SPAWN, deadline, &b"args"[..])));
    }

    #[test]
    fn a_server_that_missed_a_deadline_gets_no_further_request() {
        let (server, theirs) = fake_server();
        assert_eq!(server.request(SPAWN, b"first", &[]), None);
        // The late reply is not taken for that to the next request.
        assert!(send_reply(&theirs, 7));
        assert_eq!(server.request(SPAWN, b"second", &[]), None);
        let mut buffer = [0; 100];
        assert_eq!(receive(&theirs, &mut buffer).unwrap().0, HEADER_BYTES + "first".len());
        assert_eq!(recv(&theirs, &mut buffer, RecvFlags::DONTWAIT), Err(rustix::io::Errno::AGAIN));
    }

    #[test]
    fn a_request_too_long_for_one_message_is_not_sent() {
        let (server, theirs) = fake_server();
        assert_eq!(server.request(SPAWN, &[0; MAX_REQUEST_BYTES - HEADER_BYTES + 1], &[]), None);
        assert!(send_reply(&theirs, 7));
        assert_eq!(server.request(SPAWN, &[0; MAX_REQUEST_BYTES - HEADER_BYTES], &[]), Some(7));
        assert_eq!(receive(&theirs, &mut [0; 2 * MAX_REQUEST_BYTES]).unwrap().0, MAX_REQUEST_BYTES);
    }

    #[test]
    fn releasing_the_terminal_never_waits() {
        let (server, theirs) = fake_server();
        while server.send(RELEASE_TERMINAL, now(), &[0; 1000], &[]) {}
        drop(theirs);
        assert!(!server.send(RELEASE_TERMINAL, now(), &[], &[]));
    }
}
