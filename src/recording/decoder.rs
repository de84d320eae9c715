//! Frames in, news out: the reading side without any file.

use super::codec::DecodeError;
use super::compress::Decompressor;
use super::frame::{FrameHeader, FrameKind};
use super::state::CodecState;
use crate::model::observation::Observation;

/// What a frame brought.
#[derive(Debug, PartialEq)]
pub struct DecodedTick {
    /// Its number in the file.
    pub number: u32,
    /// Wall clock of its tick, ns.
    pub wall_ns: i64,
    /// What was known before it, told anew, because the frames before it were not read.
    pub full_state: Option<Vec<Observation>>,
    /// Some of the tasks that did nothing lately are missing: a key frame could not be read.
    pub is_partial: bool,
    /// What came.
    pub observations: Vec<Observation>,
}

impl DecodedTick {
    /// Rows of tasks in it: a measure of what it takes in memory.
    pub fn row_count(&self) -> usize {
        let all = self.full_state.iter().flatten().chain(&self.observations);
        all.map(|entry| match entry {
            Observation::Tasks(look) => look.ok().map_or(0, |u| u.changed.len() + u.names.len()),
            _ => 1,
        })
        .sum()
    }
}

/// Reads frames in the order of their numbers.
#[derive(Default)]
pub struct FrameDecoder {
    state: CodecState,
    decompressor: Decompressor,
    /// The frame read last, if the next one can follow it.
    last_number: Option<u32>,
    /// Kernel lines for the tick to come.
    pending_log: Vec<Observation>,
}

impl FrameDecoder {
    /// Forgets everything; the next frame must stand by itself.
    pub fn reset(&mut self) {
        (self.state, self.last_number) = (CodecState::default(), None);
        self.pending_log.clear();
    }

    /// What a frame holds; nothing yet where its news belong to the tick to come. An error means that it
    /// cannot be used, and no other up to the next one that stands by itself.
    pub fn decode_frame(&mut self, head: &FrameHeader, packed: &[u8]) -> Result<Option<DecodedTick>, DecodeError> {
        if head.kind == FrameKind::Log {
            self.pending_log.extend(decode_log_frame(head, packed)?);
            return Ok(None);
        }
        let follows = self.last_number.take().is_some_and(|last| last.wrapping_add(1) == head.number);
        if head.kind == FrameKind::Delta && !follows {
            return Err(DecodeError("a frame before it is missing"));
        }
        verify_checksum(head, packed)?;
        let raw = self.decompressor.decompress(packed, head.raw_len as usize, head.kind != FrameKind::Delta)?;
        let known = follows && !(head.kind == FrameKind::Key && self.state.is_partial());
        self.state.get_base(&raw, known)?;
        let before = (!known).then(|| self.state.full_update());
        let mut news = self.state.decode(&raw)?;
        news.append(&mut self.pending_log);
        self.last_number = Some(head.number);
        let (number, wall_ns, partial) = (head.number, head.wall_ns, self.state.is_partial());
        Ok(Some(DecodedTick { number, wall_ns, full_state: before, is_partial: partial, observations: news }))
    }

    /// Takes in a key frame without telling it, so that an anchor behind it can be begun at.
    pub fn load_key_frame(&mut self, head: &FrameHeader, packed: &[u8]) -> Result<(), DecodeError> {
        self.reset();
        verify_checksum(head, packed)?;
        let raw = self.decompressor.decompress(packed, head.raw_len as usize, true)?;
        self.state.get_base(&raw, false)?;
        self.state.decode(&raw).map(drop)
    }
}

/// The kernel lines of a frame that holds nothing else.
pub fn decode_log_frame(head: &FrameHeader, packed: &[u8]) -> Result<Vec<Observation>, DecodeError> {
    verify_checksum(head, packed)?;
    let raw = Decompressor::default().decompress(packed, head.raw_len as usize, true)?;
    let all = CodecState::default().decode(&raw)?;
    Ok(all.into_iter().filter(|e| matches!(e, Observation::KernelLog(..))).collect())
}

fn verify_checksum(head: &FrameHeader, packed: &[u8]) -> Result<(), DecodeError> {
    let right = packed.len() == head.packed_len as usize && crc32fast::hash(packed) == head.crc;
    if right { Ok(()) } else { Err(DecodeError("damaged")) }
}
