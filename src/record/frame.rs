//! How a recording lies in its file: a header, then frames, each with its own checksum.
//!
//! ```text
//! header   8 magic "iotop+r\n"   2 version   2 least version that understands it
//!          4 length of the text   4 CRC-32 of all but itself   text: JSON
//! frame    4 magic   1 kind   3 zero   4 number   4 packed length   4 length   8 wall clock (ns)
//!          4 CRC-32 of the packed bytes   4 CRC-32 of all before it   packed bytes
//! ```
//!
//! Numbers are little-endian; CRC-32 is that of zip and Ethernet. After damage a reader looks for the next
//! frame magic that begins a frame whose checksum is right.

use super::pack::MOST_RAW;
use super::wire::Bad;
use crate::model::clock::Clock;
use crate::model::kernlog::LogClock;
use crate::model::world::Host;
use serde::{Deserialize, Serialize};

/// How a recording begins.
pub const MAGIC: &[u8; 8] = b"iotop+r\n";
/// How a frame begins: no text, and no UTF-8.
pub const FRAME_MAGIC: &[u8; 4] = b"\xf7iF\x0a";
/// The format written. Raised when something is added that an older program does not see.
pub const VERSION: u16 = 1;
/// What is read.
pub const UNDERSTOOD: u16 = 1;
/// Bytes before a frame's content.
pub const FRAME_HEAD: usize = 36;
/// Bytes before the header's text.
pub const HEAD: usize = 20;
/// Longest text of a header.
pub const MOST_TEXT: usize = 64 << 10;

/// Whose machine, by what program, from when on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    /// Which program wrote it, with its version.
    pub program: String,
    /// Host name.
    pub host: String,
    /// Kernel release.
    pub kernel: String,
    /// Clocks at the start.
    pub at: Clock,
    /// CLOCK_MONOTONIC at the start, ns: the kernel log's clock.
    pub mono_ns: u64,
    /// Time between ticks, ns.
    pub interval_ns: u64,
    /// The recorder's zone, seconds east of Greenwich.
    pub utc_offset_secs: i64,
}

impl Header {
    /// Names as the world wants them: cleaned.
    pub fn host(&self) -> Host {
        use crate::text::clean;
        Host { name: clean(&self.host), kernel: clean(&self.kernel) }
    }

    /// The clocks at the start, for the kernel log.
    pub fn log_clock(&self) -> LogClock {
        LogClock { mono_ns: self.mono_ns, wall_ns: self.at.wall_ns }
    }

    /// As it stands in the file.
    pub fn write(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec(self).unwrap_or_default();
        text.truncate(MOST_TEXT);
        let mut out = MAGIC.to_vec();
        out.extend(VERSION.to_le_bytes());
        out.extend(UNDERSTOOD.to_le_bytes());
        out.extend((text.len() as u32).to_le_bytes());
        let mut crc = crc32fast::Hasher::new();
        crc.update(&out);
        crc.update(&text);
        out.extend(crc.finalize().to_le_bytes());
        out.extend(text);
        out
    }

    /// Length of the text that follows these first [`HEAD`] bytes; or why this is no recording of ours.
    pub fn text_len(head: &[u8]) -> Result<usize, String> {
        if head.len() < HEAD || !head.starts_with(MAGIC) {
            return Err("is no recording of iotop-plus".into());
        }
        let least = u16::from_le_bytes([head[10], head[11]]);
        if least > UNDERSTOOD {
            return Err(format!(
                "was written by a later iotop-plus (format {least}; this one reads up to {UNDERSTOOD})"
            ));
        }
        let len = num32(head, 12) as usize;
        if len > MOST_TEXT { Err("its header is damaged".into()) } else { Ok(len) }
    }

    /// The header from its bytes, all of them.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let len = Self::text_len(bytes)?;
        let text = bytes.get(HEAD..HEAD + len).ok_or("ends within its header")?;
        let mut crc = crc32fast::Hasher::new();
        crc.update(&bytes[..16]);
        crc.update(text);
        if crc.finalize() != num32(bytes, 16) {
            return Err("its header is damaged".into());
        }
        serde_json::from_slice(text).map_err(|_| "its header is not what it should be".into())
    }
}

/// What a frame can be begun with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Differences to the frame before.
    Delta,
    /// Besides, what changed since the last key frame.
    Anchor,
    /// Besides, everything known.
    Key,
    /// No tick: lines of the kernel log, packed by themselves, so that they can be read whatever else is
    /// damaged, and gone through without the rest. It has the number of the tick that follows.
    Log,
}

/// A frame without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHead {
    /// What it begins with.
    pub kind: Kind,
    /// Counts up by one; a gap is a frame that could not be written.
    pub number: u32,
    /// Bytes that follow.
    pub packed_len: u32,
    /// Bytes of them unpacked.
    pub len: u32,
    /// Wall clock of its tick, ns.
    pub wall_ns: i64,
    /// Checksum of the bytes that follow.
    pub crc: u32,
}

impl FrameHead {
    /// As it stands before the content.
    pub fn write(&self) -> [u8; FRAME_HEAD] {
        let mut out = [0; FRAME_HEAD];
        out[..4].copy_from_slice(FRAME_MAGIC);
        out[4] = self.kind as u8;
        out[8..12].copy_from_slice(&self.number.to_le_bytes());
        out[12..16].copy_from_slice(&self.packed_len.to_le_bytes());
        out[16..20].copy_from_slice(&self.len.to_le_bytes());
        out[20..28].copy_from_slice(&self.wall_ns.to_le_bytes());
        out[28..32].copy_from_slice(&self.crc.to_le_bytes());
        let own = crc32fast::hash(&out[..32]);
        out[32..].copy_from_slice(&own.to_le_bytes());
        out
    }

    /// From the first [`FRAME_HEAD`] bytes.
    pub fn read(b: &[u8]) -> Result<Self, Bad> {
        if b.len() < FRAME_HEAD || !b.starts_with(FRAME_MAGIC) {
            return Err(Bad("no frame"));
        }
        if crc32fast::hash(&b[..32]) != num32(b, 32) {
            return Err(Bad("a frame's head is damaged"));
        }
        let kind = match b[4] {
            0 => Kind::Delta,
            1 => Kind::Anchor,
            2 => Kind::Key,
            3 => Kind::Log,
            _ => return Err(Bad("a frame of an unknown kind")),
        };
        let (packed_len, len) = (num32(b, 12), num32(b, 16));
        // Bytes that cannot be made smaller grow by a few in a thousand.
        if packed_len as usize > MOST_RAW + MOST_RAW / 64 || len as usize > MOST_RAW {
            return Err(Bad("a frame larger than any"));
        }
        let wall_ns = i64::from_le_bytes(std::array::from_fn(|i| b[20 + i]));
        Ok(Self { kind, number: num32(b, 8), packed_len, len, wall_ns, crc: num32(b, 28) })
    }

    /// Bytes up to the next frame.
    pub fn whole(&self) -> u64 {
        FRAME_HEAD as u64 + u64::from(self.packed_len)
    }
}

fn num32(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| b[at + i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_come_back_and_damage_is_seen() {
        let header = Header { host: "a".into(), interval_ns: 5, ..Header::default() };
        let bytes = header.write();
        assert_eq!(Header::read(&bytes), Ok(header));
        let head = FrameHead { kind: Kind::Key, number: 7, packed_len: 8, len: 9, wall_ns: -10, crc: 11 };
        let frame = head.write();
        assert_eq!(FrameHead::read(&frame), Ok(head));
        for at in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[at / 8] ^= 1 << (at % 8);
            assert!(Header::read(&bad).is_err(), "bit {at} of the header");
        }
        for at in 0..frame.len() * 8 {
            let mut bad = frame;
            bad[at / 8] ^= 1 << (at % 8);
            assert!(FrameHead::read(&bad).is_err(), "bit {at} of a frame's head");
        }
    }

    #[test]
    fn a_later_format_says_so() {
        let mut bytes = Header::default().write();
        bytes[10] = 9;
        assert!(Header::read(&bytes).unwrap_err().contains("later iotop-plus"));
        assert!(Header::read(b"GIF89a").unwrap_err().contains("no recording"));
    }
}
