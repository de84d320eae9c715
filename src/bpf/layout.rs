//! Reads fields of the structs that the BPF programs write: native-endian numbers, device numbers, text.

use crate::model::disk::DevId;

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
