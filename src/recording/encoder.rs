//! News in, frames out: the writing side without any file.

use super::compress::{Compressor, MAX_FRAME_BYTES};
use super::frame::{FrameHeader, FrameKind};
use super::state::CodecState;
use crate::model::observation::Observation;

/// Frames from one that a reader can begin at to the next.
pub const CHECKPOINT_INTERVAL: u32 = 60;
/// Those among them that hold everything.
const CHECKPOINTS_PER_KEY: u32 = 15;

/// Makes frames.
pub struct FrameEncoder {
    state: CodecState,
    compressor: Compressor,
    next_number: u32,
    /// Frames since the last one that stands by itself; `None`: the next one must.
    frames_since_checkpoint: Option<u32>,
    /// Such frames since the last key frame; `None`: the next one must be one.
    checkpoints_since_key: Option<u32>,
    /// Number of the last key frame.
    key_number: u32,
    /// Frames from one that can be begun at to the next, and how many of those to one that holds everything.
    intervals: (u32, u32),
}

impl Default for FrameEncoder {
    fn default() -> Self {
        Self::new(CHECKPOINT_INTERVAL, CHECKPOINTS_PER_KEY)
    }
}

impl FrameEncoder {
    /// A frame that can be begun at every `anchor` frames, each `key`th of them complete.
    pub fn new(anchor: u32, key: u32) -> Self {
        Self {
            state: CodecState::default(),
            compressor: Compressor::default(),
            next_number: 0,
            frames_since_checkpoint: None,
            checkpoints_since_key: None,
            key_number: 0,
            intervals: (anchor, key),
        }
    }

    /// The next frame stands by itself: a new file begins, or frames were dropped.
    pub fn force_key_frame(&mut self) {
        (self.frames_since_checkpoint, self.checkpoints_since_key) = (None, None);
    }

    /// What kind the next frame will be.
    pub fn next_kind(&self) -> FrameKind {
        match (self.frames_since_checkpoint, self.checkpoints_since_key) {
            (Some(n), Some(_)) if n + 1 < self.intervals.0 => FrameKind::Delta,
            (_, Some(n)) if n + 1 < self.intervals.1 => FrameKind::Checkpoint,
            _ => FrameKind::Key,
        }
    }

    /// Takes news in without making a frame of it; the next frame stands by itself.
    pub fn skip_tick(&mut self, news: &[Observation]) {
        let mut nowhere = Vec::new();
        for entry in news {
            nowhere.clear();
            self.state.encode(&mut nowhere, entry);
        }
        self.next_number = self.next_number.wrapping_add(1);
        self.force_key_frame();
    }

    /// A tick of this news, as it stands in the file: a frame, before it one of kernel lines if there are any.
    /// `wall_ns` is its time.
    pub fn encode_tick(&mut self, news: &[Observation], wall_ns: i64) -> Vec<u8> {
        let mut out = Vec::new();
        let kind = self.next_kind();
        let mut raw = Vec::new();
        if kind != FrameKind::Delta {
            if kind == FrameKind::Key {
                self.key_number = self.next_number;
            }
            self.state.put_base(&mut raw, self.key_number, kind == FrameKind::Key);
        }
        let mut too_much = false;
        for entry in news.iter().filter(|e| matches!(e, Observation::Sample(_) | Observation::Tasks(_))) {
            too_much |= self.add_observation(&mut raw, entry);
        }
        let mut lines = Vec::new();
        for entry in news.iter().filter(|e| !matches!(e, Observation::Sample(_) | Observation::Tasks(_))) {
            if !self.state.is_known(entry) {
                let to = if matches!(entry, Observation::KernelLog(..)) { &mut lines } else { &mut raw };
                too_much |= self.add_observation(to, entry);
            }
        }
        if !lines.is_empty() {
            let packed = Compressor::default().compress(&lines, true);
            self.write_frame(&mut out, FrameKind::Log, &lines, &packed, wall_ns);
        }
        let packed = self.compressor.compress(&raw, kind != FrameKind::Delta);
        self.write_frame(&mut out, kind, &raw, &packed, wall_ns);
        self.next_number = self.next_number.wrapping_add(1);
        match kind {
            FrameKind::Delta | FrameKind::Log => {
                self.frames_since_checkpoint = self.frames_since_checkpoint.map(|n| n + 1)
            }
            FrameKind::Checkpoint => {
                (self.frames_since_checkpoint, self.checkpoints_since_key) =
                    (Some(0), self.checkpoints_since_key.map(|n| n + 1))
            }
            FrameKind::Key => {
                (self.frames_since_checkpoint, self.checkpoints_since_key) = (Some(0), Some(0));
                self.state.mark_key_frame();
            }
        }
        if too_much {
            self.force_key_frame();
        }
        out
    }

    /// Adds news; what is beyond any machine is left out, and true is the answer.
    fn add_observation(&mut self, raw: &mut Vec<u8>, entry: &Observation) -> bool {
        let before = raw.len();
        self.state.encode(raw, entry);
        let too_much = raw.len() > MAX_FRAME_BYTES;
        if too_much {
            raw.truncate(before);
        }
        too_much
    }

    fn write_frame(&self, out: &mut Vec<u8>, kind: FrameKind, raw: &[u8], packed: &[u8], wall_ns: i64) {
        let head = FrameHeader {
            kind,
            number: self.next_number,
            packed_len: packed.len() as u32,
            raw_len: raw.len() as u32,
            wall_ns,
            crc: crc32fast::hash(packed),
        };
        out.extend(head.to_bytes());
        out.extend(packed);
    }
}
