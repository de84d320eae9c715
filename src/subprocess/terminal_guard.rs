//! Restores a terminal: its modes, its main screen, its cursor.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Ends a synchronized update that was cut short, mouse reports and attributes; shows the cursor and the main screen.
const LEAVE: &str = "\x1b[?2026l\x1b[?1006l\x1b[?1000l\x1b[0m\x1b[?25h\x1b[?1049l";
/// CAN ends an incomplete sequence (ECMA-48).
const CANCEL: &str = "\x18";
/// What is left to say after the program has died.
const PROGRAM_DIED: &str = "\r\niotop-plus was killed or aborted; the terminal is restored. Should settings have been \
                            changed, `iotop-plus tune status` says what is in force.\r\n";
/// Failed writes, after which the terminal is taken for gone.
const MAX_WRITE_FAILURES: u32 = 3;
/// How long restoring a terminal that does not read may take.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(200);

/// A terminal and the modes it had before it was set up.
#[derive(Debug)]
pub struct SavedTerminal {
    fd: OwnedFd,
    original_mode: Termios,
    /// Flags of the open file, which the shell has too if the terminal could not be opened again.
    original_flags: OFlags,
}

impl SavedTerminal {
    /// Remembers the modes of `fd`.
    ///
    /// # Errors
    /// If `fd` is no terminal, or gone.
    pub fn save(fd: OwnedFd) -> std::io::Result<Self> {
        Ok(Self { original_mode: tcgetattr(&fd)?, original_flags: fcntl_getfl(&fd)?, fd })
    }

    /// The modes as the program sets them: every byte as it is typed, none echoed.
    pub fn raw_mode(&self) -> Termios {
        let mut raw = self.original_mode.clone();
        raw.make_raw();
        raw
    }

    /// Sets up the terminal for the program: raw, and writes do not wait.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn enter_raw_mode(&self) -> std::io::Result<()> {
        fcntl_setfl(&self.fd, self.original_flags | OFlags::NONBLOCK)?;
        Ok(tcsetattr(&self.fd, OptionalActions::Now, &self.raw_mode())?)
    }

    /// Restores screen and modes.
    pub fn restore(&self) {
        self.leave_screen("");
        let _ = tcsetattr(&self.fd, OptionalActions::Now, &self.original_mode);
        let _ = fcntl_setfl(&self.fd, self.original_flags);
    }

    /// Writes [`LEAVE`] and `text`, for at most [`LEAVE_TIMEOUT`].
    fn leave_screen(&self, text: &str) {
        let until = Instant::now() + LEAVE_TIMEOUT;
        let with_cancel = format!("{CANCEL}{LEAVE}{text}");
        let mut left = &with_cancel.as_bytes()[CANCEL.len()..];
        let (mut flushed, mut failures) = (false, 0);
        while !left.is_empty() {
            match rustix::io::write(&self.fd, left) {
                Ok(n) => left = &left[n..],
                Err(Errno::INTR) => {}
                // The terminal does not read: discard the rest of the frame.
                Err(Errno::AGAIN) if !flushed => {
                    flushed = true;
                    let _ = tcflush(&self.fd, QueueSelector::OFlush);
                    left = with_cancel.as_bytes();
                }
                Err(Errno::AGAIN) if Instant::now() < until => {
                    let wait = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
                    let _ = poll(&mut [PollFd::new(&self.fd, PollFlags::OUT)], Some(&wait));
                }
                Err(_) if failures < MAX_WRITE_FAILURES => failures += 1,
                Err(_) => break,
            }
        }
    }

    /// Restores after the death of the program. A shell may have set other modes already; those stay.
    fn restore_after_death(&self) {
        let (raw, Ok(now)) = (self.raw_mode(), tcgetattr(&self.fd)) else { return };
        self.leave_screen(PROGRAM_DIED);
        let is_ours = now.local_modes == raw.local_modes
            && now.input_modes == raw.input_modes
            && now.output_modes == raw.output_modes;
        if is_ours {
            let _ = tcsetattr(&self.fd, OptionalActions::Now, &self.original_mode);
        }
        let _ = fcntl_setfl(&self.fd, self.original_flags);
    }
}

/// The terminal that the fork server restores should the program die.
#[derive(Debug, Default)]
pub(super) struct TerminalGuard(Option<SavedTerminal>);

impl TerminalGuard {
    /// Takes over the terminal before the program sets it up. 0, or -1 if it is none.
    pub(super) fn arm(&mut self, tty: Option<OwnedFd>) -> i32 {
        self.0 = tty.and_then(|fd| SavedTerminal::save(fd).ok());
        if self.0.is_some() { 0 } else { -1 }
    }

    /// The program has restored it.
    pub(super) fn disarm(&mut self) {
        self.0 = None;
    }

    /// The program is dead.
    pub(super) fn restore(&self) {
        if let Some(saved) = &self.0 {
            saved.restore_after_death();
        }
    }
}
