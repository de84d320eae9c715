//! Reads the number of arguments of each tracepoint from the kernel's BTF.
//!
//! The kernel version does not tell: distributions backport changes. For the format see Documentation/bpf/btf.rst. The
//! data comes from the kernel, but every offset is checked.

use std::collections::HashMap;

const MAGIC: u16 = 0xeb9f;
const TRACEPOINT_PREFIX: &[u8] = b"btf_trace_";

const KIND_PTR: u32 = 2;
const KIND_TYPEDEF: u32 = 8;
const KIND_FUNC_PROTO: u32 = 13;

/// A type: offset of its name, kind, number of members, and the type it refers to.
#[derive(Clone, Copy, Default)]
struct BtfType {
    name: u32,
    kind: u32,
    vlen: usize,
    type_id: u32,
}

pub struct TracepointArguments(HashMap<String, usize>);

impl TracepointArguments {
    /// Parses `/sys/kernel/btf/vmlinux`; `None` if it is malformed.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.get(..2)? != MAGIC.to_le_bytes() {
            return None;
        }
        let base = read_u32(bytes, 4)? as usize;
        let part = |offset| {
            Some((base.checked_add(read_u32(bytes, offset)? as usize)?, read_u32(bytes, offset + 4)? as usize))
        };
        let ((types, types_len), (names, names_len)) = (part(8)?, part(16)?);
        let names = bytes.get(names..names.checked_add(names_len)?)?;
        let types = parse_types(bytes.get(types..types.checked_add(types_len)?)?)?;
        let get = |id: u32, kind| types.get(id as usize).filter(|t| t.kind == kind);
        let arguments = |typedef: &BtfType| {
            let proto = get(get(typedef.type_id, KIND_PTR)?.type_id, KIND_FUNC_PROTO)?;
            // The first argument is the tracepoint's context.
            proto.vlen.checked_sub(1)
        };
        let found = types.iter().filter(|t| t.kind == KIND_TYPEDEF).filter_map(|t| {
            let name = read_name(names, t.name)?.strip_prefix(TRACEPOINT_PREFIX)?;
            Some((String::from_utf8_lossy(name).into_owned(), arguments(t)?))
        });
        Some(Self(found.collect()))
    }

    /// Returns the number of arguments of a tracepoint; `None` if it does not exist.
    pub fn argument_count(&self, name: &str) -> Option<usize> {
        self.0.get(name).copied()
    }
}

fn read_u32(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes.get(offset..offset.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes)
}

fn read_name(names: &[u8], offset: u32) -> Option<&[u8]> {
    names.get(offset as usize..)?.split(|b| *b == 0).next()
}

/// Parses all types; number 0 is void. `None` for an unknown kind, because its length is unknown too.
fn parse_types(bytes: &[u8]) -> Option<Vec<BtfType>> {
    let mut types = vec![BtfType::default()];
    let mut offset = 0;
    while offset < bytes.len() {
        let (name, info, of) = (read_u32(bytes, offset)?, read_u32(bytes, offset + 4)?, read_u32(bytes, offset + 8)?);
        let (kind, parts) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
        offset += 12
            + match kind {
                1 | 14 | 17 => 4,
                3 => 12,
                4 | 5 | 15 | 19 => 12 * parts,
                6 | KIND_FUNC_PROTO => 8 * parts,
                KIND_PTR | 7..=12 | 16 | 18 => 0,
                _ => return None,
            };
        types.push(BtfType { name, kind, vlen: parts, type_id: of });
    }
    Some(types)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn to_bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    /// An int, a function prototype with three parameters, a pointer to it, and a typedef of that.
    fn sample_btf() -> Vec<u8> {
        let names = b"\0int\0btf_trace_block_rq_issue\0";
        let types = to_bytes(
            &[
                [1, 1 << 24, 4, 32].as_slice(),
                &[0, 13 << 24 | 3, 0, 0, 1, 0, 1, 0, 1],
                &[0, 2 << 24, 2],
                &[5, 8 << 24, 3],
            ]
            .concat(),
        );
        let mut out =
            to_bytes(&[u32::from(MAGIC) | 1 << 16, 24, 0, types.len() as u32, types.len() as u32, names.len() as u32]);
        out.extend(types);
        out.extend(names);
        out
    }

    #[test]
    fn the_context_argument_is_not_counted() {
        let found = TracepointArguments::parse(&sample_btf()).unwrap();
        assert_eq!((found.argument_count("block_rq_issue"), found.argument_count("block_io_start")), (Some(2), None));
    }

    #[test]
    fn tracepoints_of_the_running_kernel_are_found() {
        let Ok(bytes) = std::fs::read(crate::root::Root::live().sys("kernel/btf/vmlinux")) else {
            eprintln!("skipped: this kernel tells no types");
            return;
        };
        let found = TracepointArguments::parse(&bytes).unwrap();
        assert!(matches!(found.argument_count("block_rq_complete"), Some(3)));
    }

    proptest! {
        #[test]
        fn damage_is_refused_or_read(offset in 0usize..120, value in any::<u8>(), cut in 0usize..160) {
            let mut bytes = sample_btf();
            if let Some(b) = bytes.get_mut(offset) {
                *b = value;
            }
            bytes.truncate(cut);
            let _ = TracepointArguments::parse(&bytes);
        }
    }
}
