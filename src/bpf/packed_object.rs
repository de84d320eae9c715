//! The compiled programs, which `build.rs` compressed.

use super::unavailable::{ProbeUnavailable, THE_MAPS, load_failure};
use miniz_oxide::inflate::decompress_slice_iter_to_slice;
use zerocopy::IntoBytes;

/// A BPF object: its bytes as 32-bit little-endian, then the object, compressed (deflate).
#[derive(Clone, Copy)]
pub(super) struct PackedObject(pub(super) &'static [u8]);

/// The object of this name in `assets/trace`; `assets/trace/build.sh` rebuilds it.
macro_rules! packed_object {
    ($name:literal) => {
        $crate::bpf::packed_object::PackedObject(include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf")))
    };
}
pub(super) use packed_object;

impl PackedObject {
    /// Calls `read` with the object. It begins at a multiple of eight bytes, as readers of ELF files want it.
    ///
    /// # Errors
    /// What `read` returns; the object cannot be unpacked, which only a damaged program file can cause.
    pub(super) fn with_bytes<T>(
        self,
        read: impl FnOnce(&[u8]) -> Result<T, ProbeUnavailable>,
    ) -> Result<T, ProbeUnavailable> {
        let damaged =
            || load_failure(THE_MAPS, &std::io::Error::other("the program file is damaged; install it again"));
        let (len, packed) = self.0.split_first_chunk::<4>().ok_or_else(damaged)?;
        let len = u32::from_le_bytes(*len) as usize;
        let mut words = vec![0_u64; len.div_ceil(size_of::<u64>())];
        let bytes = words.as_mut_bytes().get_mut(..len).ok_or_else(damaged)?;
        match decompress_slice_iter_to_slice(bytes, std::iter::once(packed), false, true) {
            Ok(unpacked) if unpacked == len => read(bytes),
            _ => Err(damaged()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn objects_are_those_of_the_tree() {
        for (name, packed) in [
            ("files", packed_object!("files")),
            ("requests", packed_object!("requests")),
            ("stalls", packed_object!("stalls")),
            ("syncs", packed_object!("syncs")),
            ("tasks", packed_object!("tasks")),
            ("waits", packed_object!("waits")),
        ] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("assets/trace/{name}.bpf.o"));
            let object = std::fs::read(path).unwrap();
            assert!(packed.0.len() * 3 < object.len(), "{name} is not compressed");
            let is_same = packed.with_bytes(|bytes| Ok(bytes == object && bytes.as_ptr().cast::<u64>().is_aligned()));
            assert!(is_same.is_ok_and(|is_same| is_same), "{name}");
        }
    }

    #[test]
    fn a_damaged_object_is_an_error() {
        for bytes in [&b""[..], &[9, 0, 0, 0], &[9, 0, 0, 0, 0xff, 0xff], &[1, 0, 0, 0, 0x4b, 0x4c, 0x4a, 0x06, 0x00]] {
            let leaked: &'static [u8] = Vec::leak(bytes.to_vec());
            assert!(PackedObject(leaked).with_bytes(|_| Ok(())).is_err(), "{bytes:?}");
        }
    }
}
