//! Runs a program in a pseudo-terminal and records its output with times.

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Output this long after a frame began belongs to the next frame: half a refresh, because a program may write one
/// refresh in parts.
const FRAME_GAP: Duration = Duration::from_millis(500);
/// A pause of this length completes a picture.
const PICTURE_GAP: Duration = Duration::from_millis(15);

/// Terminal queries, and the answers of an xterm.
const ANSWERS: [(&[u8], &[u8]); 5] = [
    (b"\x1b[6n", b"\x1b[1;1R"),
    (b"\x1b[c", b"\x1b[?62;22c"),
    (b"\x1b[0c", b"\x1b[?62;22c"),
    (b"\x1b[>c", b"\x1b[>1;10;0c"),
    (b"\x1b[5n", b"\x1b[0n"),
];

/// A piece of output with its time.
pub struct Chunk {
    /// Time since the start.
    pub at: Duration,
    bytes: Vec<u8>,
}

/// A running program.
pub struct Term {
    child: Box<dyn Child + Send + Sync>,
    _master: Box<dyn MasterPty + Send>,
    writer: Box<dyn Write + Send>,
    inbox: Receiver<(Instant, Vec<u8>)>,
    start: Instant,
    size: (u16, u16),
    /// All output so far.
    pub chunks: Vec<Chunk>,
}

impl Term {
    /// Starts `argv` in a terminal of `size` columns and rows, with `home` as home directory.
    pub fn start(argv: &[String], size: (u16, u16), home: &std::path::Path) -> anyhow::Result<Self> {
        let (cols, rows) = size;
        let pair = native_pty_system().openpty(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 })?;
        let mut command = CommandBuilder::new(&argv[0]);
        command.args(&argv[1..]);
        command.env("TERM", "xterm-256color");
        command.env("LC_ALL", "C.UTF-8");
        command.env("HOME", home);
        command.env("XDG_CONFIG_HOME", home.join(".config"));
        for name in ["COLUMNS", "LINES", "TMUX", "NO_COLOR"] {
            command.env_remove(name);
        }
        let mut reader = pair.master.try_clone_reader()?;
        let writer = pair.master.take_writer()?;
        let start = Instant::now();
        let child = pair.slave.spawn_command(command)?;
        drop(pair.slave);
        let (outbox, inbox) = channel();
        std::thread::spawn(move || {
            let mut buf = vec![0; 1 << 16];
            while let Ok(n @ 1..) = reader.read(&mut buf) {
                if outbox.send((Instant::now(), buf[..n].to_vec())).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, _master: pair.master, writer, inbox, start, size, chunks: Vec::new() })
    }

    /// Process ID.
    pub fn pid(&self) -> u32 {
        self.child.process_id().unwrap_or(0)
    }

    /// Records output until `end` after the start; false if the program exited before.
    pub fn run_until(&mut self, end: Duration) -> bool {
        loop {
            let left = end.saturating_sub(self.start.elapsed());
            match self.inbox.recv_timeout(left) {
                Ok((at, bytes)) => {
                    for (question, answer) in ANSWERS {
                        if bytes.windows(question.len()).any(|w| w == question) {
                            let _ = self.writer.write_all(answer);
                        }
                    }
                    self.chunks.push(Chunk { at: at - self.start, bytes });
                }
                Err(RecvTimeoutError::Timeout) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// Quits it with `q`, or kills it.
    pub fn end(mut self) {
        let _ = self.writer.write_all(b"q");
        let patience = self.start.elapsed() + Duration::from_millis(1_500);
        // Its exit closes the terminal.
        if self.run_until(patience) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }

    /// Returns the last output, for an error message.
    pub fn last_output(&self) -> String {
        let bytes: Vec<u8> = self.chunks.iter().flat_map(|c| c.bytes.iter().copied()).collect();
        iotop_plus::sanitize::sanitize(&bytes[bytes.len().saturating_sub(200)..])
    }

    /// Number of frames and bytes written between two times.
    pub fn frames(&self, from: Duration, to: Duration) -> (usize, usize) {
        let (mut frames, mut bytes, mut began) = (0, 0, None::<Duration>);
        for c in self.chunks.iter().filter(|c| c.at >= from && c.at < to) {
            bytes += c.bytes.len();
            if began.is_none_or(|b| c.at - b >= FRAME_GAP) {
                frames += 1;
                began = Some(c.at);
            }
        }
        (frames, bytes)
    }

    /// Time of the first output that left a letter or digit on the screen, and time when the screen was first full: the
    /// end of the first burst after which it had 80 % of its final letters and digits. Frames around empty tables do
    /// not count.
    pub fn first_frame_times(&self) -> (Option<Duration>, Option<Duration>) {
        let (cols, rows) = self.size;
        let mut parser = vt100::Parser::new(rows, cols, 0);
        let (mut first, mut pictures) = (None, Vec::new());
        for (i, c) in self.chunks.iter().enumerate() {
            parser.process(&c.bytes);
            let finished = self.chunks.get(i + 1).is_none_or(|next| next.at - c.at > PICTURE_GAP);
            if !finished && first.is_some() {
                continue;
            }
            let filled = parser.screen().contents().chars().filter(|c| c.is_alphanumeric()).count();
            if filled > 0 {
                first = first.or(Some(c.at));
            }
            if finished {
                pictures.push((c.at, filled));
            }
        }
        let last = pictures.last().map_or(0, |p| p.1);
        let full = pictures.iter().find(|p| p.1 >= (last * 4 / 5).max(1)).map(|p| p.0);
        (first, full)
    }
}
