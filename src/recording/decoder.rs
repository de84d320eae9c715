//! Frames to observations: the reading side, without any file.

use super::codec::DecodeError;
use super::compress::Decompressor;
use super::frame::{FrameHeader, FrameKind};
use super::state::CodecState;
use crate::model::observation::Observation;

/// What a frame contains.
#[derive(Debug, PartialEq)]
pub struct DecodedTick {
    /// Its number in the file.
    pub number: u32,
    /// Wall clock of the tick, ns.
    pub wall_ns: i64,
    /// What was known before it as observations, if the frames before it were not read.
    pub full_state: Option<Vec<Observation>>,
    /// A key frame could not be read: tasks that have not changed since are missing.
    pub is_partial: bool,
    /// The observations of the tick.
    pub observations: Vec<Observation>,
}

impl DecodedTick {
    /// Rows of tasks in it, as a measure of its size in memory.
    pub fn row_count(&self) -> usize {
        let all = self.full_state.iter().flatten().chain(&self.observations);
        all.map(|observation| match observation {
            Observation::Tasks(update) => update.ok().map_or(0, |u| u.changed.len() + u.names.len()),
            _ => 1,
        })
        .sum()
    }
}

/// Decodes frames in the order of their numbers.
#[derive(Default)]
pub(crate) struct FrameDecoder {
    state: CodecState,
    decompressor: Decompressor,
    /// The number of the last decoded frame, if the next one can follow it.
    last_number: Option<u32>,
    /// Kernel log records that belong to the next tick.
    pending_log: Vec<Observation>,
}

impl FrameDecoder {
    /// Forgets everything; the next frame must be a checkpoint or key frame.
    pub(crate) fn reset(&mut self) {
        (self.state, self.last_number) = (CodecState::default(), None);
        self.pending_log.clear();
    }

    /// Decodes a frame; `None` for a log frame, whose records come with the next tick.
    /// Errors: the frame, and all that follow up to the next checkpoint, cannot be decoded.
    pub(crate) fn decode_frame(
        &mut self,
        head: &FrameHeader,
        packed: &[u8],
    ) -> Result<Option<DecodedTick>, DecodeError> {
        if head.kind == FrameKind::Log {
            self.pending_log.extend(decode_log_frame(head, packed)?);
            return Ok(None);
        }
        let follows = self.last_number.take().is_some_and(|last| last.wrapping_add(1) == head.number);
        if head.kind == FrameKind::Delta && !follows {
            return Err(DecodeError("the frame before it is missing"));
        }
        verify_checksum(head, packed)?;
        let raw = self.decompressor.decompress(packed, head.raw_len as usize, head.kind != FrameKind::Delta)?;
        let is_known = follows && !(head.kind == FrameKind::Key && self.state.is_partial());
        self.state.get_base(&raw, is_known)?;
        let full_state = (!is_known).then(|| self.state.full_update());
        let mut observations = self.state.decode(&raw)?;
        observations.append(&mut self.pending_log);
        self.last_number = Some(head.number);
        let (number, wall_ns, is_partial) = (head.number, head.wall_ns, self.state.is_partial());
        Ok(Some(DecodedTick { number, wall_ns, full_state, is_partial, observations }))
    }

    /// Loads a key frame without returning its observations, so that a checkpoint after it can be decoded.
    pub(crate) fn load_key_frame(&mut self, head: &FrameHeader, packed: &[u8]) -> Result<(), DecodeError> {
        self.reset();
        verify_checksum(head, packed)?;
        let raw = self.decompressor.decompress(packed, head.raw_len as usize, true)?;
        self.state.get_base(&raw, false)?;
        self.state.decode(&raw).map(drop)
    }
}

pub(crate) fn decode_log_frame(head: &FrameHeader, packed: &[u8]) -> Result<Vec<Observation>, DecodeError> {
    verify_checksum(head, packed)?;
    let raw = Decompressor::default().decompress(packed, head.raw_len as usize, true)?;
    let all = CodecState::default().decode(&raw)?;
    Ok(all.into_iter().filter(|e| matches!(e, Observation::KernelLog(..))).collect())
}

fn verify_checksum(head: &FrameHeader, packed: &[u8]) -> Result<(), DecodeError> {
    let is_intact = packed.len() == head.packed_len as usize && crc32fast::hash(packed) == head.crc;
    if is_intact { Ok(()) } else { Err(DecodeError("a frame is damaged")) }
}
