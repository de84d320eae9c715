//! Observations to frames: the writing side, without any file.

use super::compress::{Compressor, MAX_FRAME_BYTES};
use super::frame::{FrameHeader, FrameKind};
use super::state::CodecState;
use crate::model::observation::Observation;

/// Frames from one checkpoint to the next.
pub(crate) const CHECKPOINT_INTERVAL: u32 = 60;
const CHECKPOINTS_PER_KEY: u32 = 15;

pub(crate) struct FrameEncoder {
    state: CodecState,
    compressor: Compressor,
    next_number: u32,
    /// Frames since the last key frame, itself included; 0: the next one must be a key frame.
    frames_since_key: u32,
    key_number: u32,
    checkpoint_interval: u32,
    checkpoints_per_key: u32,
}

impl Default for FrameEncoder {
    fn default() -> Self {
        Self::new(CHECKPOINT_INTERVAL, CHECKPOINTS_PER_KEY)
    }
}

impl FrameEncoder {
    /// An encoder with a checkpoint every `checkpoint_interval` frames, of which each `checkpoints_per_key`th is a key
    /// frame.
    pub(crate) fn new(checkpoint_interval: u32, checkpoints_per_key: u32) -> Self {
        Self {
            state: CodecState::default(),
            compressor: Compressor::default(),
            next_number: 0,
            frames_since_key: 0,
            key_number: 0,
            checkpoint_interval,
            checkpoints_per_key,
        }
    }

    /// Makes the next frame a key frame: a new file starts, or frames were dropped.
    pub(crate) fn force_key_frame(&mut self) {
        self.frames_since_key = 0;
    }

    pub(crate) fn next_kind(&self) -> FrameKind {
        match self.frames_since_key % (self.checkpoint_interval * self.checkpoints_per_key) {
            0 => FrameKind::Key,
            n if n % self.checkpoint_interval == 0 => FrameKind::Checkpoint,
            _ => FrameKind::Delta,
        }
    }

    /// Takes over the observations of a tick that is not written. The next frame is a key frame.
    pub(crate) fn skip_tick(&mut self, observations: &[Observation]) {
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
    pub(crate) fn encode_tick(&mut self, observations: &[Observation], wall_ns: i64) -> Vec<u8> {
        let mut out = Vec::new();
        let kind = self.next_kind();
        let mut raw = Vec::new();
        if kind != FrameKind::Delta {
            if kind == FrameKind::Key {
                self.key_number = self.next_number;
            }
            self.state.put_base(&mut raw, self.key_number, kind == FrameKind::Key);
        }
        let (counters, others): (Vec<_>, Vec<_>) =
            observations.iter().partition(|o| matches!(o, Observation::Sample(_) | Observation::Tasks(_)));
        let (mut is_too_large, mut lines) = (false, Vec::new());
        for observation in counters.into_iter().chain(others) {
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
        self.frames_since_key += 1;
        if kind == FrameKind::Key {
            self.frames_since_key = 1;
            self.state.mark_key_frame();
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
