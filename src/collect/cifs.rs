//! `/proc/fs/cifs/Stats` (fs/smb/client/cifs_debug.c, smb1ops.c and smb2ops.c print_stats()).

use crate::model::mount::{MountInfo, MountTable, is_cifs};
use crate::model::network::{NetFsKind, NetFsRaw};
use crate::parse::bytes::{lines, parse_u64, words};

/// Every connected share, with its mount.
pub(super) fn parse(text: &[u8], mounts: &MountTable) -> Vec<NetFsRaw> {
    let mut rows: Vec<NetFsRaw> = Vec::new();
    for line in lines(text) {
        match parse_share_header(line) {
            Some(name) => rows.push(NetFsRaw {
                kind: NetFsKind::Cifs,
                mount: name.into(),
                server: name.into(),
                ..Default::default()
            }),
            None => {
                if let Some(row) = rows.last_mut() {
                    let _ = parse_stat_line(line, row);
                }
            }
        }
    }
    join_mounts(rows, mounts)
}

/// `1) \\server\share`, possibly with `DISCONNECTED` after it. A share may contain blanks.
fn parse_share_header(line: &[u8]) -> Option<&[u8]> {
    let paren = line.iter().position(|b| *b == b')')?;
    parse_u64(&line[..paren])?;
    let name = line[paren + 1..].trim_ascii();
    let name = name.strip_suffix(b"DISCONNECTED").unwrap_or(name).trim_ascii_end();
    name.starts_with(br"\\").then_some(name)
}

/// SMB2 and later: `Bytes read: N  Bytes written: N`, `Reads: N total N failed`; SMB1: `Reads: N Bytes: N`.
fn parse_stat_line(line: &[u8], row: &mut NetFsRaw) -> Option<()> {
    let w: Vec<&[u8]> = words(line).collect();
    match w[..] {
        [b"SMBs:", n, ..] => row.ops = Some(parse_u64(n)?),
        [b"Bytes", b"read:", r, b"Bytes", b"written:", w] => {
            row.read_bytes = Some(parse_u64(r)?);
            row.write_bytes = Some(parse_u64(w)?);
        }
        [b"Reads:", n, b"Bytes:", bytes] => {
            row.read_ops = Some(parse_u64(n)?);
            row.read_bytes = Some(parse_u64(bytes)?);
        }
        [b"Writes:", n, b"Bytes:", bytes] => {
            row.write_ops = Some(parse_u64(n)?);
            row.write_bytes = Some(parse_u64(bytes)?);
        }
        [op, n, b"total", failed, b"failed"] => {
            match op {
                b"Reads:" => row.read_ops = Some(parse_u64(n)?),
                b"Writes:" => row.write_ops = Some(parse_u64(n)?),
                _ => {}
            }
            row.errors = Some(row.errors.unwrap_or(0).saturating_add(parse_u64(failed)?));
        }
        _ => {}
    }
    Some(())
}

/// A share stays connected for a while after its last unmount: then it is listed under its own name.
fn join_mounts(mut rows: Vec<NetFsRaw>, mounts: &MountTable) -> Vec<NetFsRaw> {
    let mut left: Vec<&MountInfo> = mounts.0.iter().filter(|m| is_cifs(m.fs_type.as_bytes())).collect();
    for row in &mut rows {
        let share = normalize_share_name(row.server.as_bytes());
        let Some(at) = left.iter().position(|m| is_on_share(&normalize_share_name(m.source.as_bytes()), &share)) else {
            continue;
        };
        let mount = left.remove(at);
        left.retain(|m| m.device != mount.device);
        row.mount = mount.mount_point.clone();
        row.server = mount.source.clone();
        row.dev = mount.device;
        row.address = mount.super_option("addr").map(|a| String::from_utf8_lossy(&a).into_owned());
        row.version = mount.super_option("vers").map(crate::sanitize::sanitize);
    }
    rows
}

/// `//Server/Share` and `\\server\share` are the same share.
fn normalize_share_name(name: &[u8]) -> Vec<u8> {
    let slashed: Vec<u8> = name.iter().map(|b| if *b == b'\\' { b'/' } else { b.to_ascii_lowercase() }).collect();
    slashed.strip_suffix(b"/").map(<[u8]>::to_vec).unwrap_or(slashed)
}

/// The source of a mount may be a directory within the share.
fn is_on_share(source: &[u8], share: &[u8]) -> bool {
    source.strip_prefix(share).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn smb1_counters_are_parsed() {
        let rows = parse(
            b"1) \\\\nas\\old share\tDISCONNECTED\nSMBs: 9 Oplock Breaks: 0\nReads:  4 Bytes: 4096\nWrites: 1 Bytes: 7\n",
            &MountTable::default(),
        );
        assert_eq!(rows[0].server, "\\\\nas\\old share");
        assert_eq!(
            (rows[0].ops, rows[0].read_ops, rows[0].read_bytes, rows[0].write_bytes),
            (Some(9), Some(4), Some(4096), Some(7))
        );
        assert_eq!((rows[0].errors, rows[0].rtt_ms), (None, None));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(
            text in proptest::collection::vec(any::<u8>(), 0..200),
            words in "(1\\) \\\\\\\\a\\\\b\n|SMBs: |Bytes read: |Reads: |total |failed |[0-9]{1,20} |\n){0,40}",
        ) {
            let _ = parse(&text, &MountTable::default());
            let _ = parse(words.as_bytes(), &MountTable::default());
        }
    }
}
