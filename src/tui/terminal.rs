//! The terminal: taken once, given back exactly once, on every way out.
//!
//! Output goes through a descriptor of our own (the tty opened anew), so that making it non-blocking
//! does not change the shell's. A frame is written as far as the terminal takes it; while some of it
//! is left, no new frame is made, so a slow line gets the newest picture, not a backlog.

use crate::root::Root;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Alternate screen, no cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J";
/// Clicks and wheel, in SGR coordinates.
const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1006h";
/// Everything [`ENTER`] and [`MOUSE_ON`] did, undone; also ends a synchronized update cut short.
const LEAVE: &str = "\x1b[?2026l\x1b[?1006l\x1b[?1000l\x1b[0m\x1b[?25h\x1b[?1049l";
/// The same after a sequence that was cut in the middle: CAN ends whatever it was (ECMA-48).
const CANCEL_AND_LEAVE: &str = "\x18\x1b[?2026l\x1b[?1006l\x1b[?1000l\x1b[0m\x1b[?25h\x1b[?1049l";
/// How long giving the terminal back may take when it does not read.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(200);

/// What has to be put back; taken out by whoever puts it back first.
static SAVED_TERMINAL: Mutex<Option<SavedTerminal>> = Mutex::new(None);

struct SavedTerminal {
    fd: OwnedFd,
    original_mode: Termios,
}

/// The terminal while the program has it.
pub struct Tty {
    fd: OwnedFd,
    mouse: bool,
    pending: Vec<u8>,
    written: usize,
}

impl Tty {
    /// Takes the terminal that standard output is: raw mode, alternate screen, mouse if asked for.
    pub fn enter(mouse: bool) -> io::Result<Self> {
        let stdout = io::stdout();
        if !stdout.is_terminal() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "standard output is not a terminal; for a pipe or a file use `iotop-plus -b` or `iotop-plus snapshot`",
            ));
        }
        let term = std::env::var("TERM").unwrap_or_default();
        if matches!(term.as_str(), "" | "dumb" | "unknown") {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!(
                    "TERM is \"{term}\", a terminal without a cursor to move; set TERM (xterm, linux, ...) or use `iotop-plus -b`"
                ),
            ));
        }
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let ours = rustix::termios::tcgetsid(&stdout).ok() == rustix::process::getsid(None).ok();
        let fd = if ours {
            rustix::fs::openat(CWD, Root::tty(), flags, Mode::empty())?
        } else {
            let name = rustix::termios::ttyname(&stdout, Vec::new())?;
            rustix::fs::openat(CWD, name.as_c_str(), flags, Mode::empty())?
        };
        let mut tty = Self { fd, mouse, pending: Vec::new(), written: 0 };
        tty.enter_raw_mode()?;
        Ok(tty)
    }

    fn enter_raw_mode(&mut self) -> io::Result<()> {
        let before = tcgetattr(&self.fd)?;
        let mut raw = before.clone();
        raw.make_raw();
        let fd = self.fd.try_clone()?;
        tcsetattr(&self.fd, OptionalActions::Now, &raw)?;
        *SAVED_TERMINAL.lock().unwrap_or_else(|e| e.into_inner()) = Some(SavedTerminal { fd, original_mode: before });
        self.pending.clear();
        self.written = 0;
        self.pending.extend_from_slice(ENTER.as_bytes());
        if self.mouse {
            self.pending.extend_from_slice(MOUSE_ON.as_bytes());
        }
        Ok(())
    }

    /// Takes the terminal again after [`restore`]; everything must be drawn anew.
    pub fn reenter(&mut self) -> io::Result<()> {
        self.enter_raw_mode()
    }

    /// Columns and rows; 80x24 where the terminal does not know.
    pub fn size(&self) -> (u16, u16) {
        match tcgetwinsize(&self.fd) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
            _ => (80, 24),
        }
    }

    /// Whether all of the last frame has been taken.
    pub fn is_idle(&self) -> bool {
        self.written == self.pending.len()
    }

    /// Queues bytes and writes what the terminal takes now.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_idle() {
            self.pending.clear();
            self.written = 0;
        }
        self.pending.extend_from_slice(bytes);
        self.flush_nonblocking()
    }

    /// Writes what the terminal takes without waiting.
    pub fn flush_nonblocking(&mut self) -> io::Result<()> {
        while !self.is_idle() {
            match rustix::io::write(&self.fd, &self.pending[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => self.written += n,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(err) => return Err(err.into()),
            }
        }
        // A burst (a first frame) must not hold its memory for ever.
        if self.pending.capacity() > 64 * 1024 {
            self.pending = Vec::new();
            self.written = 0;
        }
        Ok(())
    }

    /// The same terminal, to wait for it.
    pub fn try_clone_handle(&self) -> io::Result<TtyHandle> {
        Ok(TtyHandle(self.fd.try_clone()?))
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        restore();
    }
}

/// The way to the terminal: whether somebody types, or is gone.
pub struct TtyHandle(OwnedFd);

impl TtyHandle {
    /// Whether the other end is gone.
    pub fn is_hung_up(&self) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
        poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().intersects(gone)
    }
}

impl AsFd for TtyHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for TtyHandle {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Gives the terminal back, if it is taken. Safe to call from anywhere, any number of times.
pub fn restore() {
    let taken = match SAVED_TERMINAL.try_lock() {
        Ok(mut guard) => guard.take(),
        Err(std::sync::TryLockError::Poisoned(e)) => e.into_inner().take(),
        // Somebody is giving it back right now.
        Err(std::sync::TryLockError::WouldBlock) => None,
    };
    let Some(taken) = taken else { return };
    let until = Instant::now() + LEAVE_TIMEOUT;
    let mut left = LEAVE.as_bytes();
    let mut flushed = false;
    while !left.is_empty() {
        match rustix::io::write(&taken.fd, left) {
            Ok(n) => left = &left[n..],
            Err(Errno::INTR) => {}
            // A line that does not read is full of a frame nobody needs any more: it gives way.
            Err(Errno::AGAIN) if !flushed => {
                flushed = true;
                let _ = tcflush(&taken.fd, QueueSelector::OFlush);
                left = CANCEL_AND_LEAVE.as_bytes();
            }
            Err(Errno::AGAIN) if Instant::now() < until => {
                let wait = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
                let _ = poll(&mut [PollFd::new(&taken.fd, PollFlags::OUT)], Some(&wait));
            }
            Err(_) => break,
        }
    }
    let _ = tcsetattr(&taken.fd, OptionalActions::Now, &taken.original_mode);
}

/// From now on a panic in any thread gives the terminal back, says what happened (cleaned: a panic
/// message may quote hostile text) and ends the program with 101. Nothing is unwound: what has to be put right
/// after us is so made that it is also put right after a kill.
pub fn install_panic_hook() {
    std::panic::set_hook(Box::new(|info| {
        restore();
        let text = crate::sanitize::sanitize(info.to_string());
        let _ = writeln!(
            io::stderr(),
            "iotop-plus: internal error, please report it: {text}\nShould settings have been changed, `iotop-plus tune status` says what is in force."
        );
        std::process::exit(101);
    }));
}
