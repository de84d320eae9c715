//! Frames to observations: the reading side, without any file.

use super::codec::DecodeError;
use super::compress::Decompressor;
use super::frame::{FrameHeader, FrameKind};
use super::state::CodecState;
use crate::model::observation::Observation;

/// What a frame contains.
#[derive(Debug, PartialEq)]
pub struct DecodedTick {
    pub number: u32,
    /// Wall clock of the tick, ns.
    pub wall_ns: i64,
    /// What was known before it as observations, if the frames before it were not read.
    pub full_state: Option<Vec<Observation>>,
    /// A key frame could not be read: tasks that have not changed since are missing.
    pub is_partial: bool,
    pub observations: Vec<Observation>,
    /// About how many bytes of memory they cost, through the whole program.
    pub(crate) cost: usize,
}

/// Uncompressed bytes of log frames before a tick: what is older is dropped.
const MAX_PENDING_LOG_BYTES: usize = 8 << 20;

/// Decodes frames in the order of their numbers.
#[derive(Default)]
pub(crate) struct FrameDecoder {
    state: CodecState,
    decompressor: Decompressor,
    /// For log frames, each of which is a stream.
    log_decompressor: Decompressor,
    /// Compressed bytes from which the state was made.
    packed_bytes: usize,
    /// The number of the last decoded frame, if the next one can follow it.
    last_number: Option<u32>,
    /// Kernel log records that belong to the next tick.
    pending_log: Vec<Observation>,
    pending_log_bytes: usize,
}

impl FrameDecoder {
    /// Forgets everything; the next frame must be a checkpoint or key frame.
    pub(crate) fn reset(&mut self) {
        (self.state, self.last_number, self.packed_bytes) = (CodecState::default(), None, 0);
        self.pending_log.clear();
        self.pending_log_bytes = 0;
    }

    /// Decodes a frame; `None` for a log frame, whose records come with the next tick.
    /// Errors: the frame, and all that follow up to the next checkpoint, cannot be decoded.
    pub(crate) fn decode_frame(
        &mut self,
        head: &FrameHeader,
        packed: &[u8],
    ) -> Result<Option<DecodedTick>, DecodeError> {
        if head.kind == FrameKind::Log {
            let found = decode_log_frame(&mut self.log_decompressor, head, packed)?;
            self.pending_log_bytes += head.raw_len as usize;
            if self.pending_log_bytes > MAX_PENDING_LOG_BYTES {
                self.pending_log.clear();
                self.pending_log_bytes = head.raw_len as usize;
            }
            self.pending_log.extend(found);
            return Ok(None);
        }
        let follows = self.last_number.take().is_some_and(|last| last.wrapping_add(1) == head.number);
        if head.kind == FrameKind::Delta && !follows {
            return Err(DecodeError("the frame before it is missing"));
        }
        verify_checksum(head, packed)?;
        let raw = self.decompressor.decompress(packed, head.raw_len as usize, head.kind != FrameKind::Delta)?;
        self.allow_for(packed);
        let is_known = follows && !(head.kind == FrameKind::Key && self.state.is_partial);
        self.state.get_base(&raw, is_known).inspect_err(|_| self.forget_if_too_large())?;
        let full_state = (!is_known).then(|| self.state.full_update());
        let mut observations = self.state.decode(&raw).inspect_err(|_| self.forget_if_too_large())?;
        observations.append(&mut self.pending_log);
        let cost = self.state.take_decoded_cost() + std::mem::take(&mut self.pending_log_bytes);
        self.last_number = Some(head.number);
        let (number, wall_ns, is_partial) = (head.number, head.wall_ns, self.state.is_partial);
        Ok(Some(DecodedTick { number, wall_ns, full_state, is_partial, observations, cost }))
    }

    /// Loads a key frame without returning its observations, so that a checkpoint after it can be decoded.
    pub(crate) fn load_key_frame(&mut self, head: &FrameHeader, packed: &[u8]) -> Result<(), DecodeError> {
        self.reset();
        verify_checksum(head, packed)?;
        let raw = self.decompressor.decompress(packed, head.raw_len as usize, true)?;
        self.allow_for(packed);
        let loaded = self.state.get_base(&raw, false).and_then(|()| self.state.decode(&raw));
        loaded.map(drop).inspect_err(|_| self.forget_if_too_large())
    }

    /// A state may become as large as what it was made from allows.
    fn allow_for(&mut self, packed: &[u8]) {
        self.packed_bytes = self.packed_bytes.saturating_add(packed.len());
        self.state.set_limit(self.packed_bytes);
    }

    fn forget_if_too_large(&mut self) {
        if self.state.check_limit().is_err() {
            self.reset();
        }
    }
}

/// `unpacker` bounds what all log frames unpack to.
pub(crate) fn decode_log_frame(
    unpacker: &mut Decompressor,
    head: &FrameHeader,
    packed: &[u8],
) -> Result<Vec<Observation>, DecodeError> {
    verify_checksum(head, packed)?;
    let raw = unpacker.decompress(packed, head.raw_len as usize, true)?;
    let all = CodecState::default().decode(&raw)?;
    Ok(all.into_iter().filter(|e| matches!(e, Observation::KernelLog(..))).collect())
}

fn verify_checksum(head: &FrameHeader, packed: &[u8]) -> Result<(), DecodeError> {
    let is_intact = packed.len() == head.packed_len as usize && crc32fast::hash(packed) == head.crc;
    if is_intact { Ok(()) } else { Err(DecodeError("a frame is damaged")) }
}
