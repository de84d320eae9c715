//! Runs the real program in a pseudo-terminal and interprets its output as a terminal would.

#![allow(dead_code)]

use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Time limit for everything a test waits for.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// The binary under test.
pub const BINARY: &str = env!("CARGO_BIN_EXE_iotop-plus");

/// The program in a pseudo-terminal.
pub struct Terminal {
    master: Box<dyn MasterPty + Send>,
    child: Box<dyn Child + Send + Sync>,
    writer: Box<dyn Write + Send>,
    seen: Arc<Mutex<TerminalOutput>>,
    reading: Arc<AtomicBool>,
    initial_modes: String,
    /// Home and working directory of the program, empty at first.
    pub home: tempfile::TempDir,
}

/// Output of the program so far.
pub struct TerminalOutput {
    parser: vt100::Parser,
    /// Every byte.
    pub raw: Vec<u8>,
    /// Arrival time of each frame.
    pub frame_times: Vec<Instant>,
}

/// How to start a program.
pub struct TerminalOptions<'a> {
    pub program: &'a Path,
    pub args: Vec<&'a str>,
    pub env: Vec<(&'a str, &'a str)>,
    pub size: (u16, u16),
}

impl Default for TerminalOptions<'_> {
    fn default() -> Self {
        Self { program: Path::new(BINARY), args: Vec::new(), env: Vec::new(), size: (100, 30) }
    }
}

impl Terminal {
    /// Starts the program with these arguments.
    pub fn with_args(args: &[&str]) -> Self {
        Self::start(TerminalOptions { args: args.to_vec(), ..Default::default() })
    }

    /// Starts a program.
    pub fn start(start: TerminalOptions) -> Self {
        let home = tempfile::tempdir().unwrap();
        let (cols, rows) = start.size;
        let size = PtySize { rows, cols, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(start.program);
        command.args(&start.args);
        command.env_clear();
        for (name, value) in [("TERM", "xterm-256color"), ("PATH", "/usr/bin:/bin"), ("TZ", "UTC")] {
            command.env(name, value);
        }
        command.env("HOME", home.path());
        for (name, value) in &start.env {
            command.env(name, value);
        }
        command.cwd(home.path());
        let initial_modes = modes(&*pair.master);
        let child = pair.slave.spawn_command(command).unwrap();
        let seen = Arc::new(Mutex::new(TerminalOutput {
            parser: vt100::Parser::new(rows, cols, 0),
            raw: Vec::new(),
            frame_times: Vec::new(),
        }));
        let reading = Arc::new(AtomicBool::new(true));
        let reader = pair.master.try_clone_reader().unwrap();
        let (to, on) = (seen.clone(), reading.clone());
        std::thread::spawn(move || read(reader, &to, &on));
        let writer = pair.master.take_writer().unwrap();
        Self { master: pair.master, child, writer, seen, reading, initial_modes, home }
    }

    /// PID of the program.
    pub fn pid(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    /// Types bytes.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.writer.write_all(bytes.as_ref()).unwrap();
        self.writer.flush().unwrap();
    }

    /// Sends a signal to the program.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid() as i32).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Sets whether the terminal reads output; one that does not behaves like a slow connection.
    pub fn set_reading(&self, on: bool) {
        self.reading.store(on, Ordering::SeqCst);
    }

    /// Resizes the window.
    pub fn resize(&self, cols: u16, rows: u16) {
        self.seen.lock().unwrap().parser.screen_mut().set_size(rows, cols);
        self.report_size(cols, rows);
    }

    /// Tells the program a size that the screen seen here does not have.
    pub fn report_size(&self, cols: u16, rows: u16) {
        self.master.resize(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }).unwrap();
    }

    /// Waits until the screen satisfies `is`. On a timeout it panics with `what` and the screen.
    pub fn wait_until(&self, what: &str, is: impl Fn(&vt100::Screen) -> bool) {
        self.wait_for_output(what, |seen| is(seen.parser.screen()));
    }

    /// Waits until the output satisfies `is`.
    pub fn wait_for_output(&self, what: &str, is: impl Fn(&TerminalOutput) -> bool) {
        let start = Instant::now();
        while !is(&self.seen.lock().unwrap()) {
            assert!(start.elapsed() < TIMEOUT, "never came: {what}; the screen:\n{}", self.contents());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for a text on the screen.
    pub fn wait_for_text(&self, text: &str) {
        self.wait_until(text, |s| s.contents().contains(text));
    }

    /// Text of the screen.
    pub fn contents(&self) -> String {
        self.seen.lock().unwrap().parser.screen().contents()
    }

    /// All output.
    pub fn raw(&self) -> Vec<u8> {
        self.seen.lock().unwrap().raw.clone()
    }

    /// Frees the output so far; the screen stays.
    pub fn forget_output(&self) {
        let mut seen = self.seen.lock().unwrap();
        (seen.raw, seen.frame_times) = (Vec::new(), Vec::new());
    }

    /// Arrival times of the frames since the last call.
    pub fn take_frame_times(&self) -> Vec<Instant> {
        std::mem::take(&mut self.seen.lock().unwrap().frame_times)
    }

    /// The terminal's modes (termios) now.
    pub fn modes(&self) -> String {
        modes(&*self.master)
    }

    /// Sets modes that are neither the program's nor those from before its start.
    #[allow(unsafe_code)]
    pub fn set_echo(&self) {
        let fd = self.master.as_raw_fd().unwrap();
        // SAFETY: the descriptor belongs to `self` and stays open.
        let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
        let mut modes = rustix::termios::tcgetattr(fd).unwrap();
        modes.local_modes |= rustix::termios::LocalModes::ECHO;
        rustix::termios::tcsetattr(fd, rustix::termios::OptionalActions::Now, &modes).unwrap();
    }

    /// The terminal's modes before the program was started.
    pub fn initial_modes(&self) -> &str {
        &self.initial_modes
    }

    /// Waits for the program to exit.
    pub fn wait_for_exit(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < TIMEOUT, "does not end; the screen:\n{}", self.contents());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Whether the program is still running.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Asserts that modes, screen, cursor and mouse are as before the start, and that each was restored `times` times.
    pub fn assert_restored(&self, times: usize) {
        self.wait_until("the shell's screen", |s| !s.alternate_screen() && !s.hide_cursor());
        let raw = self.raw();
        for sequence in ["\x1b[?1049l", "\x1b[?25h", "\x1b[?1000l", "\x1b[?1006l"] {
            assert_eq!(count_sequence(&raw, sequence), times, "{sequence:?}");
        }
        assert_eq!(count_sequence(&raw, "\x1b[?1049h"), times, "taken as often as given back");
        assert_eq!(self.modes(), self.initial_modes);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

/// Counts a sequence in the output.
pub fn count_sequence(raw: &[u8], sequence: &str) -> usize {
    raw.windows(sequence.len()).filter(|w| *w == sequence.as_bytes()).count()
}

fn modes(master: &dyn MasterPty) -> String {
    format!("{:?}", master.get_termios())
}

fn read(mut from: Box<dyn Read + Send>, to: &Mutex<TerminalOutput>, on: &AtomicBool) {
    let mut buf = [0; 4096];
    loop {
        while !on.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
        match from.read(&mut buf) {
            Ok(0) | Err(_) => return,
            Ok(n) => {
                let mut seen = to.lock().unwrap();
                seen.parser.process(&buf[..n]);
                seen.raw.extend_from_slice(&buf[..n]);
                if count_sequence(&buf[..n], "\x1b[?2026h") > 0 {
                    seen.frame_times.push(Instant::now());
                }
            }
        }
    }
}

/// Lists a directory.
pub fn list_files(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(dir).unwrap().flatten().map(|e| e.path()).collect()
}
