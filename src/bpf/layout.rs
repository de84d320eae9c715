//! Reads fields of the structs that the BPF programs write: native-endian numbers, device numbers, text.

use crate::model::disk::DevId;
use crate::model::raw_bytes::RawBytes;

/// Bytes of a part of a path: `PART` in `assets/trace/path.h`.
pub(super) const PART_LEN: usize = 64;
/// Bytes of a `struct path_tail` before its parts.
pub(super) const PARTS_OFFSET: usize = 8;

pub(super) fn read_u32(bytes: &[u8], offset: usize) -> u32 {
    bytes[offset..offset + 4].try_into().map_or(0, u32::from_ne_bytes)
}

pub(super) fn read_u64(bytes: &[u8], offset: usize) -> u64 {
    bytes[offset..offset + 8].try_into().map_or(0, u64::from_ne_bytes)
}

/// Returns the text up to the first NUL.
pub(super) fn c_string(bytes: &[u8]) -> &[u8] {
    bytes.split(|b| *b == 0).next().unwrap_or_default()
}

/// Packs a device number as the BPF programs do.
pub(super) fn pack_device(id: DevId) -> u32 {
    id.major << 20 | id.minor & 0xf_ffff
}

pub(super) fn unpack_device(packed: u32) -> DevId {
    DevId { major: packed >> 20, minor: packed & 0xf_ffff }
}

/// Parses a `struct path_tail`: the parts of the path, and whether the first of them lies in the file system's root.
pub(super) fn parse_path_tail(bytes: &[u8]) -> (RawBytes, bool) {
    let parts = bytes[PARTS_OFFSET..].chunks_exact(PART_LEN);
    let depth = usize::from(bytes[0]).min(parts.len());
    let parts = parts.take(depth).rev().map(|part| {
        let part = c_string(part);
        // The kernel side cut it off here.
        if part.len() == PART_LEN - 1 { [part, "…".as_bytes()].concat() } else { part.to_vec() }
    });
    (RawBytes::from(parts.collect::<Vec<_>>().join(&b'/')), bytes[1] != 0)
}
