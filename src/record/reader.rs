//! A recording in a file: found its way about by time, read frame by frame, damage passed over.
//!
//! Memory is bounded whatever the file holds: the places a reader can begin at (at most
//! [`MOST_PLACES`], 24 bytes each; a day at one second has 1440), a window of the file, and one frame unpacked.

use super::Entry;
use super::decode::{Decoder, Moment, lines};
use super::frame::{FRAME_HEAD, FRAME_MAGIC, FrameHead, HEAD, Header, Kind};
use std::io;

/// Places kept of each kind. Beyond it places are thinned out, and finding one's way takes longer.
const MOST_PLACES: usize = 65_536;
/// Bytes read from the file at once.
const WINDOW: usize = 256 << 10;
/// Kernel lines told of the time before the place begun at, and readings of them looked at.
const MOST_LINES: usize = 4_096;
const MOST_READINGS: usize = 1_024;

/// Where the bytes come from.
pub trait Bytes {
    /// Fills as much of `buf` as the file has from `at` on.
    fn read_at(&mut self, at: u64, buf: &mut [u8]) -> io::Result<usize>;
}

impl Bytes for std::fs::File {
    fn read_at(&mut self, at: u64, buf: &mut [u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buf, at)
    }
}

impl Bytes for &[u8] {
    fn read_at(&mut self, at: u64, buf: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(at).ok().and_then(|at| self.get(at..)).unwrap_or_default();
        let n = rest.len().min(buf.len());
        buf[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }
}

/// A frame that can be begun at.
#[derive(Debug, Clone, Copy)]
struct Place {
    at: u64,
    wall_ns: i64,
    number: u32,
    key: bool,
}

/// What a recording covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    /// Wall clock of the first tick, ns.
    pub first_ns: i64,
    /// Of the last one.
    pub last_ns: i64,
    /// Number of the first tick.
    pub first: u32,
    /// Of the last one.
    pub last: u32,
    /// Ticks whose heads are intact.
    pub ticks: u64,
    /// Bytes that belong to no frame.
    pub damaged: u64,
}

/// A recording.
pub struct Reader<B> {
    bytes: B,
    /// Whose.
    pub header: Header,
    window: Vec<u8>,
    window_at: u64,
    places: Vec<Place>,
    logs: Vec<u64>,
    span: Span,
    /// First frame, end of what is read.
    start: u64,
    at: u64,
    decoder: Decoder,
    /// Frames passed over because they or one before them are damaged.
    pub unreadable: u64,
}

impl<B: Bytes> Reader<B> {
    /// Reads the header and looks through the frames; an error says what is wrong with the file.
    pub fn open(bytes: B) -> Result<Self, String> {
        let mut reader = Self {
            bytes,
            header: Header::default(),
            window: Vec::new(),
            window_at: 0,
            places: Vec::new(),
            logs: Vec::new(),
            span: Span::default(),
            start: 0,
            at: 0,
            decoder: Decoder::default(),
            unreadable: 0,
        };
        let said = |err: io::Error| crate::model::section::describe(&err);
        let len = Header::text_len(reader.get(0, HEAD).map_err(said)?)?;
        reader.header = Header::read(reader.get(0, HEAD + len).map_err(said)?)?;
        reader.start = (HEAD + len) as u64;
        reader.survey().map_err(said)?;
        if reader.span.ticks == 0 {
            return Err("holds no whole frame".into());
        }
        reader.at = reader.start;
        Ok(reader)
    }

    /// What it covers.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Up to `n` bytes of the file.
    fn get(&mut self, at: u64, n: usize) -> io::Result<&[u8]> {
        let end = self.window_at + self.window.len() as u64;
        if at < self.window_at || at + n as u64 > end {
            self.window.resize(n.max(WINDOW), 0);
            self.window_at = at;
            let mut have = 0;
            while have < self.window.len() {
                match self.bytes.read_at(at + have as u64, &mut self.window[have..]) {
                    Ok(0) => break,
                    Ok(n) => have += n,
                    Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
                    Err(err) => {
                        self.window.clear();
                        return Err(err);
                    }
                }
            }
            self.window.truncate(have);
            self.window.shrink_to(WINDOW.max(have));
        }
        let from = (at - self.window_at) as usize;
        Ok(&self.window[from..self.window.len().min(from + n)])
    }

    /// The frame at `at`, or the first one after it; `None` at the end.
    fn find(&mut self, at: u64) -> io::Result<Option<(u64, FrameHead)>> {
        let mut at = at;
        loop {
            let bytes = self.get(at, FRAME_HEAD)?;
            if bytes.len() < FRAME_HEAD {
                return Ok(None);
            }
            if let Ok(head) = FrameHead::read(bytes) {
                return Ok(Some((at, head)));
            }
            let bytes = self.get(at, WINDOW / 4)?;
            // The next magic; its first bytes may be the last ones seen.
            let next = bytes[1..].windows(FRAME_MAGIC.len()).position(|w| w == FRAME_MAGIC);
            at += next.map_or(bytes.len() - (FRAME_MAGIC.len() - 1), |n| n + 1) as u64;
        }
    }

    /// Goes through the heads once and notes the places.
    fn survey(&mut self) -> io::Result<()> {
        let mut at = self.start;
        while let Some((found, head)) = self.find(at)? {
            self.span.damaged += found - at;
            let whole = self.get(found, head.whole() as usize)?.len() as u64 == head.whole();
            if !whole {
                // Cut off, or its length is of another frame: what follows may be intact all the same.
                at = found + 1;
                self.span.damaged += 1;
                continue;
            }
            at = found + head.whole();
            self.note(found, &head);
        }
        Ok(())
    }

    fn note(&mut self, at: u64, head: &FrameHead) {
        if head.kind == Kind::Log {
            self.logs.push(at);
            if self.logs.len() > MOST_PLACES {
                self.logs.drain(..MOST_PLACES / 2);
            }
            return;
        }
        if self.span.ticks == 0 {
            (self.span.first, self.span.first_ns) = (head.number, head.wall_ns);
        }
        (self.span.last, self.span.last_ns) = (head.number, head.wall_ns);
        self.span.ticks += 1;
        if head.kind == Kind::Delta {
            return;
        }
        let key = head.kind == Kind::Key;
        self.places.push(Place { at, wall_ns: head.wall_ns, number: head.number, key });
        if self.places.len() > MOST_PLACES {
            let keys = self.places.iter().filter(|p| p.key).count();
            if keys < MOST_PLACES / 2 {
                self.places.retain(|p| p.key);
            } else {
                let mut n = 0;
                self.places.retain(|_| {
                    n += 1;
                    n % 2 == 0
                });
            }
        }
    }

    /// The number of the tick at this time: the last one that is not later, else the first.
    pub fn number_at(&mut self, wall_ns: i64) -> io::Result<u32> {
        let place = self.places.partition_point(|p| p.wall_ns <= wall_ns);
        let place = place.checked_sub(1).and_then(|n| self.places.get(n)).copied();
        let (mut at, mut number) = place.map_or((self.start, self.span.first), |p| (p.at, p.number));
        while let Some((found, head)) = self.find(at)? {
            if head.wall_ns > wall_ns {
                break;
            }
            number = head.number;
            at = found + head.whole();
        }
        Ok(number)
    }

    /// The next tick read is that of this number or one a little before it, with all that was known then. The
    /// kernel lines of the time before it come back.
    pub fn start_at(&mut self, number: u32) -> io::Result<Vec<Entry>> {
        let upto = self.places.partition_point(|p| p.number <= number);
        self.decoder.start_anew();
        self.at = self.start;
        if let Some(place) = upto.checked_sub(1).and_then(|n| self.places.get(n)).copied() {
            self.at = place.at;
            let key = self.places[..upto].iter().rev().find(|p| p.key).copied();
            if let Some(key) = key.filter(|_| !place.key)
                && let Some((head, packed)) = self.frame(key.at)?
            {
                // A damaged one is done without.
                let _ = self.decoder.key(&head, &packed);
            }
        }
        self.lines_before(self.at)
    }

    fn frame(&mut self, at: u64) -> io::Result<Option<(FrameHead, Vec<u8>)>> {
        let Ok(head) = FrameHead::read(self.get(at, FRAME_HEAD)?) else { return Ok(None) };
        let bytes = self.get(at, head.whole() as usize)?;
        let whole = bytes.len() as u64 == head.whole();
        Ok(whole.then(|| (head, bytes[FRAME_HEAD..].to_vec())))
    }

    fn lines_before(&mut self, at: u64) -> io::Result<Vec<Entry>> {
        let upto = self.logs.partition_point(|log| *log < at);
        let from = upto.saturating_sub(MOST_READINGS);
        let (mut out, mut count) = (Vec::new(), 0);
        for n in (from..upto).rev() {
            let Some((head, packed)) = self.frame(self.logs[n])? else { continue };
            let Ok(found) = lines(&head, &packed) else { continue };
            count +=
                found.iter().map(|e| if let Entry::Records(r, _) = e { r.len() } else { 0 }).sum::<usize>();
            out.extend(found.into_iter().rev());
            if count > MOST_LINES {
                break;
            }
        }
        out.reverse();
        Ok(out)
    }

    /// The next tick that can be read; `None` at the end.
    pub fn next_tick(&mut self) -> io::Result<Option<Moment>> {
        while let Some((found, head)) = self.find(self.at)? {
            let Some((head, packed)) = self.frame(found)?.filter(|(h, _)| *h == head) else {
                self.at = found + 1;
                continue;
            };
            match self.decoder.frame(&head, &packed) {
                Ok(moment) => {
                    self.at = found + head.whole();
                    if moment.is_some() {
                        return Ok(moment);
                    }
                }
                Err(_) => {
                    self.unreadable += 1;
                    // A head may be right by chance within a damaged stretch; its length is not relied on.
                    let trusted = crc32fast::hash(&packed) == head.crc;
                    self.at = if trusted { found + head.whole() } else { found + FRAME_HEAD as u64 };
                }
            }
        }
        Ok(None)
    }
}
