//! Reads a recording file frame by frame, seeks by time, and skips damage.
//!
//! Memory is bounded whatever the file holds: the checkpoints (at most [`MAX_SEEK_POINTS`] of 24 bytes; a day at one
//! second has 1,440), a window of the file, and one uncompressed frame.

use super::compress::Decompressor;
use super::decoder::{DecodedTick, FrameDecoder, decode_log_frame};
use super::frame::{FRAME_HEADER_LEN, FRAME_MAGIC, FrameHeader, FrameKind, HEADER_LEN, HeaderError, RecordingHeader};
use crate::model::observation::Observation;
use crate::model::reading::describe_io_error;
use std::io;

/// Seek points, and log frames, that are kept: 45 days at one second. Beyond that only key frames are kept, then every
/// other one, and seeking takes longer.
const MAX_SEEK_POINTS: usize = 65_536;
const WINDOW_BYTES: usize = 256 << 10;
/// The first window; each further one is twice as large, up to [`WINDOW_BYTES`].
const FIRST_WINDOW_BYTES: usize = 16 << 10;
/// Records of the kernel log returned when seeking, and log frames searched for them.
const MAX_LOG_LINES: usize = 4_096;
const MAX_LOG_FRAMES: usize = 1_024;
/// Bytes of damaged frames in which frames are searched, before and for each byte of the file: a frame that claims
/// the rest of the file may contain as many others.
const SEARCHED_AT_ONCE: u64 = 4 << 20;
const SEARCHED_PER_BYTE: u64 = 4;

/// The source of a recording's bytes.
pub trait ReadAt {
    /// Fills as much of `buf` as the file has from offset `at` on.
    fn read_at(&mut self, at: u64, buf: &mut [u8]) -> io::Result<usize>;
}

impl ReadAt for std::fs::File {
    fn read_at(&mut self, at: u64, buf: &mut [u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buf, at)
    }
}

#[derive(Debug, Clone, Copy)]
struct SeekPoint {
    offset: u64,
    wall_ns: i64,
    number: u32,
    is_key: bool,
}

/// What a recording covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordingSpan {
    /// Wall clock of the first tick, ns.
    pub first_ns: i64,
    /// Wall clock of the last tick, ns.
    pub last_ns: i64,
    /// Number of the first tick.
    pub first_number: u32,
    /// Number of the last tick.
    pub last_number: u32,
    /// Ticks with an intact header.
    pub ticks: u64,
    /// Bytes that belong to no frame.
    pub damaged_bytes: u64,
}

/// Why a recording cannot be opened, to follow the file's name.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The header is not that of a recording.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The file cannot be read.
    #[error("{}", describe_io_error(.0))]
    Io(#[from] io::Error),
    /// There is nothing to play.
    #[error("holds no complete frame")]
    Empty,
}

/// An open recording.
pub struct RecordingReader<B> {
    source: B,
    /// The file's header.
    pub header: RecordingHeader,
    window: Vec<u8>,
    window_offset: u64,
    /// Bytes that the next window has.
    next_window_bytes: usize,
    seek_points: Vec<SeekPoint>,
    log_offsets: Vec<u64>,
    /// What the recording covers.
    pub span: RecordingSpan,
    /// Offset of the first frame, and of the next one to be read.
    first_frame_offset: u64,
    next_offset: u64,
    decoder: FrameDecoder,
    /// Number of the last tick read since seeking.
    last_number: Option<u32>,
    /// An offset at which the file was found to have ended.
    known_end: Option<u64>,
    /// Bytes of damaged frames that may still be searched.
    search_left: u64,
    /// Frames skipped because they or one before them are damaged.
    pub unreadable_frames: u64,
}

impl<B: ReadAt> RecordingReader<B> {
    /// Reads the header and indexes the frames.
    pub fn open(bytes: B) -> Result<Self, OpenError> {
        let mut reader = Self {
            source: bytes,
            header: RecordingHeader::default(),
            window: Vec::new(),
            window_offset: 0,
            next_window_bytes: FIRST_WINDOW_BYTES,
            seek_points: Vec::new(),
            log_offsets: Vec::new(),
            span: RecordingSpan::default(),
            first_frame_offset: 0,
            next_offset: 0,
            decoder: FrameDecoder::default(),
            last_number: None,
            known_end: None,
            search_left: SEARCHED_AT_ONCE,
            unreadable_frames: 0,
        };
        let len = RecordingHeader::parse_text_len(reader.read_window(0, HEADER_LEN)?)?;
        reader.header = RecordingHeader::from_bytes(reader.read_window(0, HEADER_LEN + len)?)?;
        reader.first_frame_offset = (HEADER_LEN + len) as u64;
        reader.index_frames()?;
        if reader.span.ticks == 0 {
            return Err(OpenError::Empty);
        }
        reader.next_offset = reader.first_frame_offset;
        Ok(reader)
    }

    /// Up to `n` bytes of the file from offset `at` on.
    fn read_window(&mut self, at: u64, n: usize) -> io::Result<&[u8]> {
        let end = self.window_offset + self.window.len() as u64;
        let is_end = self.known_end.is_some_and(|known| known <= end);
        if at < self.window_offset || (at + n as u64 > end && !is_end) {
            self.window.resize(n.max(self.next_window_bytes), 0);
            self.next_window_bytes = (self.next_window_bytes * 2).min(WINDOW_BYTES);
            self.window_offset = at;
            let mut have = 0;
            while have < self.window.len() {
                match self.source.read_at(at + have as u64, &mut self.window[have..]) {
                    Ok(0) => {
                        self.known_end = Some(at + have as u64);
                        break;
                    }
                    Ok(n) => have += n,
                    Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
                    Err(err) => {
                        self.window.clear();
                        return Err(err);
                    }
                }
            }
            self.window.truncate(have);
            self.window.shrink_to(WINDOW_BYTES.max(have));
        }
        let from = self.window.len().min((at - self.window_offset) as usize);
        Ok(&self.window[from..self.window.len().min(from + n)])
    }

    /// The frame at offset `at`, or the first one after it; `None` at the end.
    fn find_frame(&mut self, at: u64) -> io::Result<Option<(u64, FrameHeader)>> {
        let mut at = at;
        loop {
            let bytes = self.read_window(at, FRAME_HEADER_LEN)?;
            if bytes.len() < FRAME_HEADER_LEN {
                return Ok(None);
            }
            if let Ok(head) = FrameHeader::from_bytes(bytes) {
                return Ok(Some((at, head)));
            }
            let bytes = self.read_window(at, WINDOW_BYTES / 4)?;
            // The next magic, of which the first bytes may be the last ones of the window.
            let next = bytes[1..].windows(FRAME_MAGIC.len()).position(|w| w == FRAME_MAGIC);
            at += next.map_or(bytes.len() - (FRAME_MAGIC.len() - 1), |n| n + 1) as u64;
        }
    }

    /// Whether the file has all bytes of a frame. Reads one byte at most: a frame may claim much.
    fn is_whole(&mut self, at: u64, head: &FrameHeader) -> io::Result<bool> {
        let end = at + head.total_len();
        if end <= self.window_offset + self.window.len() as u64 {
            return Ok(true);
        }
        if self.known_end.is_some_and(|known| known < end) {
            return Ok(false);
        }
        loop {
            match self.source.read_at(end - 1, &mut [0]) {
                Ok(0) => {
                    self.known_end = Some(end - 1);
                    return Ok(false);
                }
                Ok(_) => return Ok(true),
                Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
                Err(err) => return Err(err),
            }
        }
    }

    /// Goes through all headers once and notes the seek points.
    fn index_frames(&mut self) -> io::Result<()> {
        let mut at = self.first_frame_offset;
        while let Some((found, head)) = self.find_frame(at)? {
            self.span.damaged_bytes += found - at;
            if !self.is_whole(found, &head)? {
                // It is truncated, or its length belongs to another frame: frames may follow all the same.
                at = found + 1;
                self.span.damaged_bytes += 1;
                continue;
            }
            at = found + head.total_len();
            self.index_frame(found, &head);
        }
        Ok(())
    }

    fn index_frame(&mut self, at: u64, head: &FrameHeader) {
        if head.kind == FrameKind::Log {
            self.log_offsets.push(at);
            if self.log_offsets.len() > MAX_SEEK_POINTS {
                self.log_offsets.drain(..MAX_SEEK_POINTS / 2);
            }
            return;
        }
        if self.span.ticks == 0 {
            (self.span.first_number, self.span.first_ns) = (head.number, head.wall_ns);
        } else if head.number <= self.span.last_number {
            return;
        }
        (self.span.last_number, self.span.last_ns) = (head.number, head.wall_ns);
        self.span.ticks += 1;
        if head.kind == FrameKind::Delta {
            return;
        }
        let key = head.kind == FrameKind::Key;
        self.seek_points.push(SeekPoint { offset: at, wall_ns: head.wall_ns, number: head.number, is_key: key });
        if self.seek_points.len() > MAX_SEEK_POINTS {
            self.seek_points.retain(|p| p.is_key);
            if self.seek_points.len() > MAX_SEEK_POINTS / 2 {
                self.seek_points = self.seek_points.iter().step_by(2).copied().collect();
            }
        }
    }

    /// The number of the last tick that is not later than `wall_ns`, else of the first tick.
    pub fn tick_number_at(&mut self, wall_ns: i64) -> io::Result<u32> {
        let upto = self.seek_points.partition_point(|p| p.wall_ns <= wall_ns);
        let start = (self.first_frame_offset, self.span.first_number);
        let (mut at, mut number) = self.seek_points[..upto].last().map_or(start, |p| (p.offset, p.number));
        while let Some((found, head)) = self.find_frame(at)? {
            if !self.is_whole(found, &head)? {
                at = found + 1;
                continue;
            }
            if head.wall_ns > wall_ns {
                break;
            }
            number = number.max(head.number);
            at = found + head.total_len();
        }
        Ok(number)
    }

    /// Makes the next tick read the last checkpoint at or before tick `number`, with everything known then. Returns
    /// the kernel log records before it.
    pub fn seek(&mut self, number: u32) -> io::Result<Vec<Observation>> {
        let upto = self.seek_points.partition_point(|p| p.number <= number);
        let before = &self.seek_points[..upto];
        self.next_offset = before.last().map_or(self.first_frame_offset, |p| p.offset);
        let key = before.iter().rfind(|p| p.is_key).map(|p| p.offset).filter(|key| *key != self.next_offset);
        self.decoder.reset();
        (self.last_number, self.search_left, self.known_end) = (None, SEARCHED_AT_ONCE, None);
        if let Some(key) = key
            && let Some((head, packed)) = self.read_frame(key)?
        {
            // If it is damaged, the checkpoint is decoded without it.
            let _ = self.decoder.load_key_frame(&head, &packed);
        }
        self.log_before(self.next_offset)
    }

    fn read_frame(&mut self, at: u64) -> io::Result<Option<(FrameHeader, Vec<u8>)>> {
        let Ok(head) = FrameHeader::from_bytes(self.read_window(at, FRAME_HEADER_LEN)?) else {
            return Ok(None);
        };
        if !self.is_whole(at, &head)? {
            return Ok(None);
        }
        let bytes = self.read_window(at, head.total_len() as usize)?;
        let whole = bytes.len() as u64 == head.total_len();
        Ok(whole.then(|| (head, bytes[FRAME_HEADER_LEN..].to_vec())))
    }

    fn log_before(&mut self, at: u64) -> io::Result<Vec<Observation>> {
        let upto = self.log_offsets.partition_point(|log| *log < at);
        let (mut out, mut count) = (Vec::new(), 0);
        let mut decompressor = Decompressor::default();
        for n in (0..upto).rev().take(MAX_LOG_FRAMES) {
            let Some((head, packed)) = self.read_frame(self.log_offsets[n])? else { continue };
            let Ok(found) = decode_log_frame(&mut decompressor, &head, &packed) else { continue };
            count +=
                found.iter().map(|e| if let Observation::KernelLog(r, _) = e { r.len() } else { 0 }).sum::<usize>();
            out.extend(found.into_iter().rev());
            if count > MAX_LOG_LINES {
                break;
            }
        }
        out.reverse();
        Ok(out)
    }

    /// The next tick that can be read; `None` at the end.
    pub fn next_tick(&mut self) -> io::Result<Option<DecodedTick>> {
        // The file may have grown.
        self.known_end = None;
        while let Some((found, head)) = self.find_frame(self.next_offset)? {
            let Some((head, packed)) = self.read_frame(found)?.filter(|(h, _)| *h == head) else {
                self.skip_to(found + 1);
                continue;
            };
            let is_again = head.kind != FrameKind::Log && self.last_number.is_some_and(|last| head.number <= last);
            let decoded = if is_again { None } else { self.decoder.decode_frame(&head, &packed).ok() };
            match decoded {
                Some(moment) => {
                    self.skip_to(found + head.total_len());
                    if moment.is_some() {
                        self.last_number = Some(head.number);
                        return Ok(moment);
                    }
                }
                None => {
                    self.unreadable_frames += 1;
                    self.skip_unreadable(found, &head, &packed);
                }
            }
        }
        Ok(None)
    }

    fn skip_to(&mut self, offset: u64) {
        self.search_left += (offset - self.next_offset) * SEARCHED_PER_BYTE;
        self.next_offset = offset;
    }

    /// Goes on after a frame, or within it: in damaged bytes a header can be valid by chance, so its length is only
    /// trusted if its content is intact, or when too many have been searched.
    fn skip_unreadable(&mut self, at: u64, head: &FrameHeader, packed: &[u8]) {
        let is_intact = crc32fast::hash(packed) == head.crc;
        match self.search_left.checked_sub(packed.len() as u64) {
            Some(left) if !is_intact => {
                self.search_left = left;
                self.skip_to(at + FRAME_HEADER_LEN as u64);
            }
            _ => self.skip_to(at + head.total_len()),
        }
    }
}
