//! Frames made small: one deflate stream from a frame that stands by itself to the next, flushed at each frame.
//!
//! A frame of differences is a few hundred bytes, too few to be worth compressing alone; with what went
//! before in the window its repetitions go. The stream costs no more to lose than the differences do.

use super::codec::DecodeError;
use miniz_oxide::deflate::core::{CompressorOxide, create_comp_flags_from_zip_params};
use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZFlush, deflate::stream::deflate};

/// Bytes of a frame, unpacked, at the most: a hundred thousand tasks told in full are about a fifth of it.
pub const MAX_FRAME_BYTES: usize = 32 << 20;

/// Deflate's own limit of how much smaller anything gets.
const MAX_RATIO: usize = 1032;
/// What ends each flush; not kept.
const SYNC_FLUSH_MARKER: [u8; 4] = [0, 0, 0xff, 0xff];
const COMPRESSION_LEVEL: i32 = 6;
const RAW_WINDOW_BITS: i32 = -15;

/// The writing side.
pub struct Compressor(Box<CompressorOxide>);

impl Default for Compressor {
    fn default() -> Self {
        Self(Box::new(CompressorOxide::new(create_comp_flags_from_zip_params(COMPRESSION_LEVEL, RAW_WINDOW_BITS, 0))))
    }
}

impl Compressor {
    /// Packs a frame; `fresh` begins a new stream.
    pub fn compress(&mut self, raw: &[u8], fresh: bool) -> Vec<u8> {
        if fresh {
            self.0.reset();
        }
        let (mut out, mut at) = (Vec::new(), 0);
        loop {
            let from = out.len();
            out.resize(from + (raw.len() - at) / 2 + 1024, 0);
            let done = deflate(&mut self.0, &raw[at..], &mut out[from..], MZFlush::Sync);
            at += done.bytes_consumed;
            let full = from + done.bytes_written == out.len();
            out.truncate(from + done.bytes_written);
            if (at == raw.len() && !full) || done.status.is_err() {
                break;
            }
        }
        if out.ends_with(&SYNC_FLUSH_MARKER) {
            out.truncate(out.len() - SYNC_FLUSH_MARKER.len());
        }
        out
    }
}

/// The reading side.
pub struct Decompressor(Box<InflateState>);

impl Default for Decompressor {
    fn default() -> Self {
        Self(InflateState::new_boxed(DataFormat::Raw))
    }
}

impl Decompressor {
    /// Unpacks a frame of exactly `len` bytes; `fresh` begins a new stream. After an error only a fresh
    /// stream makes sense.
    pub fn decompress(&mut self, packed: &[u8], len: usize, fresh: bool) -> Result<Vec<u8>, DecodeError> {
        if fresh {
            self.0.reset(DataFormat::Raw);
        }
        if len > MAX_FRAME_BYTES || len > packed.len().saturating_add(8).saturating_mul(MAX_RATIO) {
            return Err(DecodeError("a frame larger than any"));
        }
        // One byte of room more, so that the end of a flush is reached and one too many is seen.
        let mut out = vec![0; len + 1];
        let mut have = 0;
        for piece in [packed, &SYNC_FLUSH_MARKER] {
            let mut at = 0;
            while at < piece.len() {
                let done = inflate(&mut self.0, &piece[at..], &mut out[have..], MZFlush::None);
                (at, have) = (at + done.bytes_consumed, have + done.bytes_written);
                if done.bytes_consumed == 0 && done.bytes_written == 0 || have > len {
                    return Err(DecodeError("packed bytes that are damaged"));
                }
            }
        }
        if have != len {
            return Err(DecodeError("packed bytes that are damaged"));
        }
        out.truncate(len);
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_decompression_bomb_is_rejected() {
        let zeros = vec![0; 1 << 20];
        let packed = Compressor::default().compress(&zeros, true);
        assert!(packed.len() < 4096);
        let mut unpacker = Decompressor::default();
        assert!(unpacker.decompress(&packed, MAX_FRAME_BYTES + 1, true).is_err());
        assert!(unpacker.decompress(&[], 1 << 20, true).is_err());
        assert!(unpacker.decompress(&packed, 4096, true).is_err(), "more than was said");
        assert_eq!(unpacker.decompress(&packed, 1 << 20, true).unwrap(), zeros);
    }

    proptest! {
        #[test]
        fn frames_come_back(frames in proptest::collection::vec(
            (proptest::collection::vec(0..9u8, 0..3000), any::<bool>()), 1..12)) {
            let (mut packer, mut unpacker) = (Compressor::default(), Decompressor::default());
            for (n, (raw, fresh)) in frames.iter().enumerate() {
                let packed = packer.compress(raw, n == 0 || *fresh);
                prop_assert_eq!(&unpacker.decompress(&packed, raw.len(), n == 0 || *fresh)?, raw);
            }
        }

        #[test]
        fn nonsense_is_survived(bytes in any::<Vec<u8>>(), len in 0..10_000usize) {
            let _ = Decompressor::default().decompress(&bytes, len, true);
        }
    }
}
