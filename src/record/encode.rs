//! News in, frames out: the writing side without any file.

use super::Entry;
use super::frame::{FrameHead, Kind};
use super::pack::{MOST_RAW, Packer};
use super::state::State;

/// Frames from one that a reader can begin at to the next.
pub const ANCHOR_EVERY: u32 = 60;
/// Those among them that hold everything.
const KEY_EVERY: u32 = 15;

/// Makes frames.
pub struct Encoder {
    state: State,
    packer: Packer,
    number: u32,
    /// Frames since the last one that stands by itself; `None`: the next one must.
    since_anchor: Option<u32>,
    /// Such frames since the last key frame; `None`: the next one must be one.
    since_key: Option<u32>,
    /// Number of the last key frame.
    key: u32,
    /// Frames from one that can be begun at to the next, and how many of those to one that holds everything.
    every: (u32, u32),
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new(ANCHOR_EVERY, KEY_EVERY)
    }
}

impl Encoder {
    /// A frame that can be begun at every `anchor` frames, each `key`th of them complete.
    pub fn new(anchor: u32, key: u32) -> Self {
        Self {
            state: State::default(),
            packer: Packer::default(),
            number: 0,
            since_anchor: None,
            since_key: None,
            key: 0,
            every: (anchor, key),
        }
    }

    /// The next frame stands by itself: a new file begins, or frames were dropped.
    pub fn start_anew(&mut self) {
        (self.since_anchor, self.since_key) = (None, None);
    }

    /// What kind the next frame will be.
    pub fn next_kind(&self) -> Kind {
        match (self.since_anchor, self.since_key) {
            (Some(n), Some(_)) if n + 1 < self.every.0 => Kind::Delta,
            (_, Some(n)) if n + 1 < self.every.1 => Kind::Anchor,
            _ => Kind::Key,
        }
    }

    /// Takes news in without making a frame of it; the next frame stands by itself.
    pub fn skip(&mut self, news: &[Entry]) {
        let mut nowhere = Vec::new();
        for entry in news {
            nowhere.clear();
            self.state.put(&mut nowhere, entry);
        }
        self.number = self.number.wrapping_add(1);
        self.start_anew();
    }

    /// A tick of this news, as it stands in the file: a frame, before it one of kernel lines if there are any.
    /// `wall_ns` is its time.
    pub fn frame(&mut self, news: &[Entry], wall_ns: i64) -> Vec<u8> {
        let mut out = Vec::new();
        let kind = self.next_kind();
        let mut raw = Vec::new();
        if kind != Kind::Delta {
            if kind == Kind::Key {
                self.key = self.number;
            }
            self.state.put_base(&mut raw, self.key, kind == Kind::Key);
        }
        let mut too_much = false;
        for entry in news.iter().filter(|e| matches!(e, Entry::Sample(_) | Entry::Procs(_))) {
            too_much |= self.add(&mut raw, entry);
        }
        let mut lines = Vec::new();
        for entry in news.iter().filter(|e| !matches!(e, Entry::Sample(_) | Entry::Procs(_))) {
            if !self.state.knows(entry) {
                let to = if matches!(entry, Entry::Records(..)) { &mut lines } else { &mut raw };
                too_much |= self.add(to, entry);
            }
        }
        if !lines.is_empty() {
            let packed = Packer::default().pack(&lines, true);
            self.write(&mut out, Kind::Log, &lines, &packed, wall_ns);
        }
        let packed = self.packer.pack(&raw, kind != Kind::Delta);
        self.write(&mut out, kind, &raw, &packed, wall_ns);
        self.number = self.number.wrapping_add(1);
        match kind {
            Kind::Delta | Kind::Log => self.since_anchor = self.since_anchor.map(|n| n + 1),
            Kind::Anchor => (self.since_anchor, self.since_key) = (Some(0), self.since_key.map(|n| n + 1)),
            Kind::Key => {
                (self.since_anchor, self.since_key) = (Some(0), Some(0));
                self.state.mark();
            }
        }
        if too_much {
            self.start_anew();
        }
        out
    }

    /// Adds news; what is beyond any machine is left out, and true is the answer.
    fn add(&mut self, raw: &mut Vec<u8>, entry: &Entry) -> bool {
        let before = raw.len();
        self.state.put(raw, entry);
        let too_much = raw.len() > MOST_RAW;
        if too_much {
            raw.truncate(before);
        }
        too_much
    }

    fn write(&self, out: &mut Vec<u8>, kind: Kind, raw: &[u8], packed: &[u8], wall_ns: i64) {
        let head = FrameHead {
            kind,
            number: self.number,
            packed_len: packed.len() as u32,
            len: raw.len() as u32,
            wall_ns,
            crc: crc32fast::hash(packed),
        };
        out.extend(head.write());
        out.extend(packed);
    }
}
