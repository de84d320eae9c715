//! The layout of a recording file: a header, then frames, each with its own checksum.
//!
//! ```text
//! header   8 magic "iotop+r\n"   2 version   2 least version that understands it
//!          4 text length     4 CRC-32 of all but itself text: JSON
//! frame    4 magic   1 kind   3 zero   4 number   4 compressed length   4 uncompressed length   8 wall clock (ns)
//!          4 CRC-32 of the compressed bytes   4 CRC-32 of all before it   compressed bytes
//! ```
//!
//! Numbers are little-endian; the CRC-32 is that of zip and Ethernet. After damage a reader searches for the next
//! frame magic with a valid header checksum.

use super::codec::DecodeError;
use super::compress::MAX_FRAME_BYTES;
use crate::model::kernel_log::LogClock;
use crate::model::system_state::HostInfo;
use crate::model::timestamp::Timestamp;
use serde::{Deserialize, Serialize};

pub(crate) const FILE_MAGIC: &[u8; 8] = b"iotop+r\n";
/// The start of a frame: neither ASCII nor UTF-8.
pub(crate) const FRAME_MAGIC: &[u8; 4] = b"\xf7iF\x0a";
/// The format written. It is raised when something is added that an older version does not show.
pub(crate) const FORMAT_VERSION: u16 = 1;
/// The newest format that can be read.
pub(crate) const COMPATIBLE_VERSION: u16 = 1;
pub(crate) const FRAME_HEADER_LEN: usize = 36;
/// Bytes of the file header before its text.
pub(crate) const HEADER_LEN: usize = 20;
/// Bytes of the file header's text at most.
pub(crate) const MAX_HEADER_TEXT: usize = 64 << 10;

/// Why a file is not a recording that can be read, to follow its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    #[error("is not a recording of iotop-plus")]
    NotARecording,
    #[error("was written by a newer iotop-plus (format {0}; this one reads up to {COMPATIBLE_VERSION})")]
    Newer(u16),
    #[error("ends within its header")]
    Truncated,
    #[error("its header is damaged")]
    Damaged,
    /// The checksum is right, the text is not.
    #[error("its header cannot be parsed")]
    Malformed,
}

/// The host, the program and the start of a recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordingHeader {
    /// The program that wrote it, with its version.
    pub program: String,
    pub host: String,
    pub kernel: String,
    /// Process id of that program.
    #[serde(rename = "pid")]
    pub program_pid: Option<u32>,
    /// Clocks at the start.
    #[serde(rename = "at")]
    pub started_at: Timestamp,
    /// CLOCK_MONOTONIC at the start, ns: the kernel log's clock.
    pub mono_ns: u64,
    /// Time between ticks, ns.
    pub interval_ns: u64,
    /// The recorder's time zone, seconds east of UTC.
    pub utc_offset_secs: i64,
}

impl RecordingHeader {
    /// The host and the program, names sanitized.
    pub fn host(&self) -> HostInfo {
        use crate::sanitize::sanitize;
        HostInfo { name: sanitize(&self.host), kernel: sanitize(&self.kernel), program_pid: self.program_pid }
    }

    /// The clocks at the start, for the kernel log.
    pub fn log_clock(&self) -> LogClock {
        LogClock { mono_ns: self.mono_ns, wall_ns: self.started_at.wall_ns }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec(self).unwrap_or_default();
        text.truncate(MAX_HEADER_TEXT);
        let mut out = FILE_MAGIC.to_vec();
        out.extend(FORMAT_VERSION.to_le_bytes());
        out.extend(COMPATIBLE_VERSION.to_le_bytes());
        out.extend((text.len() as u32).to_le_bytes());
        let mut crc = crc32fast::Hasher::new();
        crc.update(&out);
        crc.update(&text);
        out.extend(crc.finalize().to_le_bytes());
        out.extend(text);
        out
    }

    /// Length of the text that follows the first [`HEADER_LEN`] bytes.
    pub fn parse_text_len(head: &[u8]) -> Result<usize, HeaderError> {
        if head.len() < HEADER_LEN || !head.starts_with(FILE_MAGIC) {
            return Err(HeaderError::NotARecording);
        }
        let least = u16::from_le_bytes([head[10], head[11]]);
        let len = u32_at(head, 12) as usize;
        match least > COMPATIBLE_VERSION {
            true => Err(HeaderError::Newer(least)),
            false if len > MAX_HEADER_TEXT => Err(HeaderError::Damaged),
            false => Ok(len),
        }
    }

    /// Parses the whole header.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, HeaderError> {
        let len = Self::parse_text_len(bytes)?;
        let text = bytes.get(HEADER_LEN..HEADER_LEN + len).ok_or(HeaderError::Truncated)?;
        let mut crc = crc32fast::Hasher::new();
        crc.update(&bytes[..16]);
        crc.update(text);
        if crc.finalize() != u32_at(bytes, 16) {
            return Err(HeaderError::Damaged);
        }
        serde_json::from_slice(text).map_err(|_| HeaderError::Malformed)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::FromRepr)]
#[repr(u8)]
pub(crate) enum FrameKind {
    /// Differences to the frame before.
    Delta,
    /// Also what changed since the last key frame.
    Checkpoint,
    /// Also everything known.
    Key,
    /// Only records of the kernel log, compressed on their own: they can be read whatever else is damaged, and
    /// searched without decoding the rest. It has the number of the tick that follows.
    Log,
}

/// A frame's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub kind: FrameKind,
    /// Counts up by one; a gap means frames that could not be written.
    pub number: u32,
    /// Compressed bytes that follow.
    pub packed_len: u32,
    /// Their uncompressed size.
    pub raw_len: u32,
    /// Wall clock of its tick, ns.
    pub wall_ns: i64,
    /// Checksum of the compressed bytes.
    pub crc: u32,
}

impl FrameHeader {
    pub(crate) fn to_bytes(self) -> [u8; FRAME_HEADER_LEN] {
        let mut out = [0; FRAME_HEADER_LEN];
        out[..4].copy_from_slice(FRAME_MAGIC);
        out[4] = self.kind as u8;
        out[8..12].copy_from_slice(&self.number.to_le_bytes());
        out[12..16].copy_from_slice(&self.packed_len.to_le_bytes());
        out[16..20].copy_from_slice(&self.raw_len.to_le_bytes());
        out[20..28].copy_from_slice(&self.wall_ns.to_le_bytes());
        out[28..32].copy_from_slice(&self.crc.to_le_bytes());
        let own = crc32fast::hash(&out[..32]);
        out[32..].copy_from_slice(&own.to_le_bytes());
        out
    }

    /// Parses the first [`FRAME_HEADER_LEN`] bytes.
    pub(crate) fn from_bytes(b: &[u8]) -> Result<Self, DecodeError> {
        if b.len() < FRAME_HEADER_LEN || !b.starts_with(FRAME_MAGIC) {
            return Err(DecodeError("there is no frame"));
        }
        if crc32fast::hash(&b[..32]) != u32_at(b, 32) {
            return Err(DecodeError("a frame's header is damaged"));
        }
        let kind = FrameKind::from_repr(b[4]).ok_or(DecodeError("a frame is of an unknown kind"))?;
        let (packed_len, len) = (u32_at(b, 12), u32_at(b, 16));
        // Incompressible bytes grow by a few per thousand.
        if packed_len as usize > MAX_FRAME_BYTES + MAX_FRAME_BYTES / 64 || len as usize > MAX_FRAME_BYTES {
            return Err(DecodeError("a frame is too large"));
        }
        let wall_ns = i64::from_le_bytes(std::array::from_fn(|i| b[20 + i]));
        Ok(Self { kind, number: u32_at(b, 8), packed_len, raw_len: len, wall_ns, crc: u32_at(b, 28) })
    }

    /// Bytes from this frame to the next.
    pub(crate) fn total_len(&self) -> u64 {
        FRAME_HEADER_LEN as u64 + u64::from(self.packed_len)
    }
}

fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| b[at + i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_round_trip_and_bit_flips_are_detected() {
        let header =
            RecordingHeader { host: "a".into(), interval_ns: 5, program_pid: Some(7), ..RecordingHeader::default() };
        let bytes = header.to_bytes();
        let read = RecordingHeader::from_bytes(&bytes);
        assert_eq!(read.as_ref().map(|header| header.host().program_pid), Ok(Some(7)));
        assert_eq!(read, Ok(header));
        let head = FrameHeader { kind: FrameKind::Key, number: 7, packed_len: 8, raw_len: 9, wall_ns: -10, crc: 11 };
        let frame = head.to_bytes();
        assert_eq!(FrameHeader::from_bytes(&frame), Ok(head));
        for at in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[at / 8] ^= 1 << (at % 8);
            assert!(RecordingHeader::from_bytes(&bad).is_err(), "bit {at} of the header");
        }
        for at in 0..frame.len() * 8 {
            let mut bad = frame;
            bad[at / 8] ^= 1 << (at % 8);
            assert!(FrameHeader::from_bytes(&bad).is_err(), "bit {at} of a frame's header");
        }
    }

    #[test]
    fn a_newer_format_is_rejected_with_a_reason() {
        let mut bytes = RecordingHeader::default().to_bytes();
        bytes[10] = 9;
        assert!(RecordingHeader::from_bytes(&bytes).unwrap_err().to_string().contains("newer iotop-plus"));
        assert!(RecordingHeader::from_bytes(b"GIF89a").unwrap_err().to_string().contains("not a recording"));
    }
}
