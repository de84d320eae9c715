//! A program in a pseudo-terminal, and what it wrote when.

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Output so long after a frame began is the next frame: half a refresh, because a program may write one
/// refresh in parts, what it knows at once and what takes it longer.
const FRAME_GAP: Duration = Duration::from_millis(500);
/// Output with a pause of this length after it is a finished picture.
const PICTURE_GAP: Duration = Duration::from_millis(15);

/// What terminals are asked, and what an xterm answers.
const ANSWERS: [(&[u8], &[u8]); 5] = [
    (b"\x1b[6n", b"\x1b[1;1R"),
    (b"\x1b[c", b"\x1b[?62;22c"),
    (b"\x1b[0c", b"\x1b[?62;22c"),
    (b"\x1b[>c", b"\x1b[>1;10;0c"),
    (b"\x1b[5n", b"\x1b[0n"),
];

/// A piece of output and its time since the start.
pub struct Chunk {
    /// Since the start.
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
    /// Everything written so far.
    pub chunks: Vec<Chunk>,
}

impl Term {
    /// Starts `argv` on a terminal of that many columns and rows, with `home` for its settings.
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

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.process_id().unwrap_or(0)
    }

    /// Takes what it writes until so long after the start; false if it ended before.
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

    /// Asks it to end by its key, then makes it.
    pub fn end(mut self) {
        let _ = self.writer.write_all(b"q");
        let patience = self.start.elapsed() + Duration::from_millis(1_500);
        // Its end closes the terminal.
        if self.run_until(patience) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }

    /// What it last wrote, for an error.
    pub fn last_output(&self) -> String {
        let bytes: Vec<u8> = self.chunks.iter().flat_map(|c| c.bytes.iter().copied()).collect();
        iotop_plus::sanitize::sanitize(&bytes[bytes.len().saturating_sub(200)..])
    }

    /// Frames and bytes written between two moments.
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

    /// When the first output came that left anything on the screen, a letter or a digit, and when the screen was first
    /// full: the end of the first burst after which it had 80 % of the letters and digits that it has in the end.
    /// Frames around empty tables do not count.
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
