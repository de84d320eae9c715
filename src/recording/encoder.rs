//! Observations to frames: the writing side, without any file.

use super::compress::{Compressor, MAX_FRAME_BYTES};
use super::frame::{FrameHeader, FrameKind};
use super::state::CodecState;
use crate::model::observation::Observation;

/// Frames from one checkpoint to the next.
pub const CHECKPOINT_INTERVAL: u32 = 60;
/// Checkpoints from one key frame to the next.
const CHECKPOINTS_PER_KEY: u32 = 15;

/// Encodes ticks as frames.
pub struct FrameEncoder {
    state: CodecState,
    compressor: Compressor,
    next_number: u32,
    /// Frames since the last checkpoint; `None`: the next frame must be one.
    frames_since_checkpoint: Option<u32>,
    /// Checkpoints since the last key frame; `None`: the next checkpoint must be a key frame.
    checkpoints_since_key: Option<u32>,
    /// Number of the last key frame.
    key_number: u32,
    /// Frames from checkpoint to checkpoint, and checkpoints from key frame to key frame.
    intervals: (u32, u32),
}

impl Default for FrameEncoder {
    fn default() -> Self {
        Self::new(CHECKPOINT_INTERVAL, CHECKPOINTS_PER_KEY)
    }
}

impl FrameEncoder {
    /// An encoder with a checkpoint every `checkpoint_interval` frames, of which each `checkpoints_per_key`th is a key
    /// frame.
    pub fn new(checkpoint_interval: u32, checkpoints_per_key: u32) -> Self {
        Self {
            state: CodecState::default(),
            compressor: Compressor::default(),
            next_number: 0,
            frames_since_checkpoint: None,
            checkpoints_since_key: None,
            key_number: 0,
            intervals: (checkpoint_interval, checkpoints_per_key),
        }
    }

    /// Makes the next frame a key frame: a new file starts, or frames were dropped.
    pub fn force_key_frame(&mut self) {
        (self.frames_since_checkpoint, self.checkpoints_since_key) = (None, None);
    }

    /// The kind of the next frame.
    pub fn next_kind(&self) -> FrameKind {
        match (self.frames_since_checkpoint, self.checkpoints_since_key) {
            (Some(n), Some(_)) if n + 1 < self.intervals.0 => FrameKind::Delta,
            (_, Some(n)) if n + 1 < self.intervals.1 => FrameKind::Checkpoint,
            _ => FrameKind::Key,
        }
    }

    /// Takes over the observations of a tick that is not written. The next frame is a key frame.
    pub fn skip_tick(&mut self, observations: &[Observation]) {
        let mut discarded = Vec::new();
        for observation in observations {
            discarded.clear();
            self.state.encode(&mut discarded, observation);
        }
        self.next_number = self.next_number.wrapping_add(1);
        self.force_key_frame();
    }

    /// Encodes the observations of a tick at `wall_ns`: a frame, with a log frame before it if there are kernel log
    /// records.
    pub fn encode_tick(&mut self, observations: &[Observation], wall_ns: i64) -> Vec<u8> {
        let mut out = Vec::new();
        let kind = self.next_kind();
        let mut raw = Vec::new();
        if kind != FrameKind::Delta {
            if kind == FrameKind::Key {
                self.key_number = self.next_number;
            }
            self.state.put_base(&mut raw, self.key_number, kind == FrameKind::Key);
        }
        let mut is_too_large = false;
        for observation in observations.iter().filter(|e| matches!(e, Observation::Sample(_) | Observation::Tasks(_))) {
            is_too_large |= self.add_observation(&mut raw, observation);
        }
        let mut lines = Vec::new();
        for observation in observations.iter().filter(|e| !matches!(e, Observation::Sample(_) | Observation::Tasks(_)))
        {
            if !self.state.is_known(observation) {
                let to = if matches!(observation, Observation::KernelLog(..)) { &mut lines } else { &mut raw };
                is_too_large |= self.add_observation(to, observation);
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
        if is_too_large {
            self.force_key_frame();
        }
        out
    }

    /// Appends an observation. One that is larger than a frame may be is left out; then the result is true.
    fn add_observation(&mut self, raw: &mut Vec<u8>, observation: &Observation) -> bool {
        let before = raw.len();
        self.state.encode(raw, observation);
        let is_too_large = raw.len() > MAX_FRAME_BYTES;
        if is_too_large {
            raw.truncate(before);
        }
        is_too_large
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
