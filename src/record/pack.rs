//! Frames made small: one deflate stream from a frame that stands by itself to the next, flushed at each frame.
//!
//! A frame of differences is a few hundred bytes, too few to be worth compressing alone; with what went
//! before in the window its repetitions go. The stream costs no more to lose than the differences do.

use super::wire::Bad;
use miniz_oxide::deflate::core::{CompressorOxide, create_comp_flags_from_zip_params};
use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZFlush, deflate::stream::deflate};

/// Bytes of a frame, unpacked, at the most: a hundred thousand tasks told in full are about a fifth of it.
pub const MOST_RAW: usize = 32 << 20;

/// Deflate's own limit of how much smaller anything gets.
const MOST_RATIO: usize = 1032;
/// What ends each flush; not kept.
const FLUSHED: [u8; 4] = [0, 0, 0xff, 0xff];
const LEVEL: i32 = 6;
const NO_HEADER: i32 = -15;

/// The writing side.
pub struct Packer(Box<CompressorOxide>);

impl Default for Packer {
    fn default() -> Self {
        Self(Box::new(CompressorOxide::new(create_comp_flags_from_zip_params(LEVEL, NO_HEADER, 0))))
    }
}

impl Packer {
    /// Packs a frame; `fresh` begins a new stream.
    pub fn pack(&mut self, raw: &[u8], fresh: bool) -> Vec<u8> {
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
        if out.ends_with(&FLUSHED) {
            out.truncate(out.len() - FLUSHED.len());
        }
        out
    }
}

/// The reading side.
pub struct Unpacker(Box<InflateState>);

impl Default for Unpacker {
    fn default() -> Self {
        Self(InflateState::new_boxed(DataFormat::Raw))
    }
}

impl Unpacker {
    /// Unpacks a frame of exactly `len` bytes; `fresh` begins a new stream. After an error only a fresh
    /// stream makes sense.
    pub fn unpack(&mut self, packed: &[u8], len: usize, fresh: bool) -> Result<Vec<u8>, Bad> {
        if fresh {
            self.0.reset(DataFormat::Raw);
        }
        if len > MOST_RAW || len > packed.len().saturating_add(8).saturating_mul(MOST_RATIO) {
            return Err(Bad("a frame larger than any"));
        }
        // One byte of room more, so that the end of a flush is reached and one too many is seen.
        let mut out = vec![0; len + 1];
        let mut have = 0;
        for piece in [packed, &FLUSHED] {
            let mut at = 0;
            while at < piece.len() {
                let done = inflate(&mut self.0, &piece[at..], &mut out[have..], MZFlush::None);
                (at, have) = (at + done.bytes_consumed, have + done.bytes_written);
                if done.bytes_consumed == 0 && done.bytes_written == 0 || have > len {
                    return Err(Bad("packed bytes that are damaged"));
                }
            }
        }
        if have != len {
            return Err(Bad("packed bytes that are damaged"));
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
    fn a_bomb_is_refused() {
        let zeros = vec![0; 1 << 20];
        let packed = Packer::default().pack(&zeros, true);
        assert!(packed.len() < 4096);
        let mut unpacker = Unpacker::default();
        assert!(unpacker.unpack(&packed, MOST_RAW + 1, true).is_err());
        assert!(unpacker.unpack(&[], 1 << 20, true).is_err());
        assert!(unpacker.unpack(&packed, 4096, true).is_err(), "more than was said");
        assert_eq!(unpacker.unpack(&packed, 1 << 20, true).unwrap(), zeros);
    }

    proptest! {
        #[test]
        fn frames_come_back(frames in proptest::collection::vec(
            (proptest::collection::vec(0..9u8, 0..3000), any::<bool>()), 1..12)) {
            let (mut packer, mut unpacker) = (Packer::default(), Unpacker::default());
            for (n, (raw, fresh)) in frames.iter().enumerate() {
                let packed = packer.pack(raw, n == 0 || *fresh);
                prop_assert_eq!(&unpacker.unpack(&packed, raw.len(), n == 0 || *fresh)?, raw);
            }
        }

        #[test]
        fn nonsense_is_survived(bytes in any::<Vec<u8>>(), len in 0..10_000usize) {
            let _ = Unpacker::default().unpack(&bytes, len, true);
        }
    }
}
