//! Compression of frames: one deflate stream from one checkpoint to the next, flushed at each frame.
//!
//! A frame of differences is a few hundred bytes, too few to compress well alone; the frames before it in the window
//! make its repetitions cheap. Losing the stream costs no more than losing the differences.

use super::codec::DecodeError;
use miniz_oxide::deflate::core::{CompressorOxide, create_comp_flags_from_zip_params};
use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZFlush, deflate::stream::deflate};

/// Uncompressed bytes of a frame at most: a full update of 100,000 tasks takes about a fifth.
pub(crate) const MAX_FRAME_BYTES: usize = 32 << 20;

/// What may come out of compressed bytes, over all frames: so much at once, and so many times their size in the long
/// run. Frames of real machines have less than 20 times theirs, deflate could make 1032 times.
const UNPACKED_AT_ONCE: usize = 4 << 20;
const UNPACKED_PER_BYTE: usize = 32;
/// The end of each flush, which is not stored.
const SYNC_FLUSH_MARKER: [u8; 4] = [0, 0, 0xff, 0xff];
const COMPRESSION_LEVEL: i32 = 6;
const RAW_WINDOW_BITS: i32 = -15;

pub(crate) struct Compressor(Box<CompressorOxide>);

impl Default for Compressor {
    fn default() -> Self {
        Self(Box::new(CompressorOxide::new(create_comp_flags_from_zip_params(COMPRESSION_LEVEL, RAW_WINDOW_BITS, 0))))
    }
}

impl Compressor {
    /// Compresses a frame; `is_new_stream` starts a new stream.
    pub(crate) fn compress(&mut self, raw: &[u8], is_new_stream: bool) -> Vec<u8> {
        if is_new_stream {
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

pub(crate) struct Decompressor {
    /// 43 KiB; `None` before the first frame.
    inflate: Option<Box<InflateState>>,
    /// Bytes that may still come out, whatever is added.
    left: usize,
}

impl Default for Decompressor {
    fn default() -> Self {
        Self { inflate: None, left: UNPACKED_AT_ONCE }
    }
}

impl Decompressor {
    /// Decompresses a frame of exactly `len` bytes; `is_new_stream` starts a new stream. After an error only a new
    /// stream can be decompressed.
    pub(crate) fn decompress(
        &mut self,
        packed: &[u8],
        len: usize,
        is_new_stream: bool,
    ) -> Result<Vec<u8>, DecodeError> {
        if is_new_stream && let Some(inflate) = &mut self.inflate {
            inflate.reset(DataFormat::Raw);
        }
        if len > MAX_FRAME_BYTES {
            return Err(DecodeError("a frame is too large"));
        }
        let left = self.left + packed.len().saturating_mul(UNPACKED_PER_BYTE);
        self.left = left.checked_sub(len).ok_or(DecodeError("frames unpack to more than they can hold"))?;
        self.left = self.left.min(UNPACKED_AT_ONCE);
        // One more byte than needed, so that the end of a flush is reached and a byte too many is noticed.
        let mut out = vec![0; len + 1];
        let mut have = 0;
        let state = self.inflate.get_or_insert_with(|| InflateState::new_boxed(DataFormat::Raw));
        for piece in [packed, &SYNC_FLUSH_MARKER] {
            let mut at = 0;
            while at < piece.len() {
                let done = inflate(state, &piece[at..], &mut out[have..], MZFlush::None);
                (at, have) = (at + done.bytes_consumed, have + done.bytes_written);
                if done.bytes_consumed == 0 && done.bytes_written == 0 || have > len {
                    return Err(DecodeError("compressed bytes are damaged"));
                }
            }
        }
        if have != len {
            return Err(DecodeError("compressed bytes are damaged"));
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
        let mut decompressor = Decompressor::default();
        assert!(decompressor.decompress(&packed, MAX_FRAME_BYTES + 1, true).is_err());
        assert!(decompressor.decompress(&[], UNPACKED_AT_ONCE + 1, true).is_err());
        assert!(decompressor.decompress(&[], 1 << 20, true).is_err());
        assert!(decompressor.decompress(&packed, 4096, true).is_err(), "more than was said");
        assert_eq!(decompressor.decompress(&packed, 1 << 20, true).unwrap(), zeros);
    }

    #[test]
    fn what_many_small_frames_unpack_to_is_bounded() {
        let zeros = vec![0; 1 << 20];
        let packed = Compressor::default().compress(&zeros, true);
        let mut decompressor = Decompressor::default();
        let unpacked = (0..100).filter(|_| decompressor.decompress(&packed, zeros.len(), true).is_ok()).count();
        assert!((1..10).contains(&unpacked), "{unpacked}");
    }

    proptest! {
        #[test]
        fn frames_round_trip(frames in proptest::collection::vec(
            (proptest::collection::vec(0..9u8, 0..3000), any::<bool>()), 1..12)) {
            let (mut compressor, mut decompressor) = (Compressor::default(), Decompressor::default());
            for (n, (raw, is_new_stream)) in frames.iter().enumerate() {
                let packed = compressor.compress(raw, n == 0 || *is_new_stream);
                prop_assert_eq!(&decompressor.decompress(&packed, raw.len(), n == 0 || *is_new_stream)?, raw);
            }
        }

        #[test]
        fn random_bytes_do_not_panic(bytes in any::<Vec<u8>>(), len in 0..10_000usize) {
            let _ = Decompressor::default().decompress(&bytes, len, true);
        }
    }
}
