//! The terminal: set up for the program, and restored exactly once, however the program ends.
//!
//! Output goes through a descriptor of our own (the tty opened again), so that making it non-blocking does not change the
//! shell's. Where it may not be opened again, as after `su -c`, standard output or input is used and its flags are
//! restored. No frame is drawn while part of the previous one is unwritten, so a slow line shows the newest state.

use crate::root::Root;
use crate::subprocess::fork_server;
use crate::subprocess::terminal_guard::SavedTerminal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::tcgetwinsize;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;

/// Alternate screen, no cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J";
/// Clicks and wheel, in SGR coordinates.
const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1006h";

/// Columns and rows that are used at most: far more than any monitor shows, and a few MiB of cells.
const MAX_SIZE: (u16, u16) = (1000, 500);

/// What to restore; the first caller of [`restore`] takes it.
static SAVED_TERMINAL: Mutex<Option<SavedTerminal>> = Mutex::new(None);

/// The terminal while it is set up for the program.
pub struct Tty {
    pub(super) fd: OwnedFd,
    mouse: bool,
    /// Whether SIGWINCH tells of a new size: only of the controlling terminal.
    pub(super) signals_size: bool,
    pending: Vec<u8>,
    written: usize,
}

impl Tty {
    /// Sets up the terminal of standard output: raw mode, alternate screen, and the mouse if `mouse`.
    pub fn enter(mouse: bool) -> io::Result<Self> {
        let stdout = io::stdout();
        if !stdout.is_terminal() {
            let why =
                "standard output is not a terminal; for a pipe or a file use `iotop-plus -b` or `iotop-plus snapshot`";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        let term = std::env::var("TERM").unwrap_or_default();
        if matches!(term.as_str(), "" | "dumb" | "unknown") {
            let why = format!(
                "TERM is \"{term}\", a terminal without a cursor to move; set TERM (xterm, linux, ...) or use `iotop-plus -b`"
            );
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        let signals_size = is_controlling(&stdout);
        let fd = reopen_terminal(&stdout, signals_size).or_else(|why| duplicate_terminal(&stdout).ok_or(why))?;
        let mut tty = Self { fd, mouse, signals_size, pending: Vec::new(), written: 0 };
        tty.enter_raw_mode()?;
        Ok(tty)
    }

    /// Sets up the terminal, at the start or again after [`restore`]; the whole screen must be redrawn.
    pub(super) fn enter_raw_mode(&mut self) -> io::Result<()> {
        let saved = SavedTerminal::save(self.fd.try_clone()?)?;
        fork_server::guard_terminal(&self.fd);
        saved.enter_raw_mode()?;
        *SAVED_TERMINAL.lock().unwrap_or_else(|e| e.into_inner()) = Some(saved);
        self.pending.clear();
        self.written = 0;
        self.pending.extend_from_slice(ENTER.as_bytes());
        if self.mouse {
            self.pending.extend_from_slice(MOUSE_ON.as_bytes());
        }
        Ok(())
    }

    /// Columns and rows, of which only the first are used if there are very many; 80x24 if the terminal does not say.
    pub fn size(&self) -> (u16, u16) {
        match tcgetwinsize(&self.fd) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                (size.ws_col.min(MAX_SIZE.0), size.ws_row.min(MAX_SIZE.1))
            }
            _ => (80, 24),
        }
    }

    /// Whether everything sent has been written.
    pub fn is_idle(&self) -> bool {
        self.written == self.pending.len()
    }

    /// Queues bytes and writes what the terminal accepts now.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_idle() {
            self.pending.clear();
            self.written = 0;
        }
        self.pending.extend_from_slice(bytes);
        self.flush_nonblocking()
    }

    /// Writes what the terminal accepts without waiting.
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
        // Free the memory of an unusually large frame, such as the first.
        if self.pending.capacity() > 64 * 1024 {
            self.pending = Vec::new();
            self.written = 0;
        }
        Ok(())
    }
}

/// Whether a terminal is the controlling one of this process.
fn is_controlling(terminal: &impl AsFd) -> bool {
    rustix::termios::tcgetsid(terminal).is_ok_and(|session| rustix::process::getsid(None) == Ok(session))
}

/// Opens the terminal of `stdout` again, for reading and writing without waiting.
fn reopen_terminal(stdout: &impl AsFd, is_controlling: bool) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    if is_controlling {
        return rustix::fs::openat(CWD, Root::tty(), flags, Mode::empty());
    }
    let name = rustix::termios::ttyname(stdout, Vec::new())?;
    rustix::fs::openat(CWD, name.as_c_str(), flags, Mode::empty())
}

/// Another descriptor of `stdout`, else of standard input if that is a terminal, whichever can be both read and written,
/// as a terminal usually can. After `su -c` there is no controlling terminal, and the terminal's node belongs to the user
/// before.
fn duplicate_terminal(stdout: &impl AsFd) -> Option<OwnedFd> {
    let stdin = io::stdin();
    let input = stdin.is_terminal().then(|| stdin.as_fd());
    let both = [Some(stdout.as_fd()), input].into_iter().flatten();
    let is_read_and_written = |fd: &std::os::fd::BorrowedFd<'_>| {
        rustix::fs::fcntl_getfl(fd).is_ok_and(|flags| flags & OFlags::RWMODE == OFlags::RDWR)
    };
    both.filter(is_read_and_written).find_map(|fd| rustix::io::fcntl_dupfd_cloexec(fd, 3).ok())
}

impl Drop for Tty {
    fn drop(&mut self) {
        restore();
    }
}

/// Whether the terminal of a descriptor is gone.
pub(super) fn is_hung_up(fd: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(fd, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let hung_up = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().intersects(hung_up)
}

/// Restores the terminal if it is set up. May be called from any thread, any number of times.
pub fn restore() {
    let saved = match SAVED_TERMINAL.try_lock() {
        Ok(mut guard) => guard.take(),
        Err(std::sync::TryLockError::Poisoned(e)) => e.into_inner().take(),
        // Another thread is restoring it.
        Err(std::sync::TryLockError::WouldBlock) => None,
    };
    if let Some(saved) = saved {
        saved.restore();
        fork_server::release_terminal();
    }
}

/// Makes a panic in any thread restore the terminal, print the sanitized message and exit with code 101. Nothing is
/// unwound: whatever must be cleaned up is also cleaned up after a SIGKILL.
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
