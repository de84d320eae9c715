//! `/proc/self/mountstats`, the NFS part (fs/nfs/super.c nfs_show_stats(), net/sunrpc/stats.c).

use crate::model::mount::{MountTable, is_nfs};
use crate::model::network::{NetFsKind, NetFsRaw};
use crate::parse::bytes::{lines, parse_u64, unescape_octal, words};

/// The only format since 2.6.17; others are skipped.
const SUPPORTED_STATVERS: &[u8] = b"statvers=1.";

/// Every NFS file system once, with its device number and server address from the mount table.
pub(super) fn parse(text: &[u8], mounts: &MountTable) -> Vec<NetFsRaw> {
    let mut rows: Vec<NetFsRaw> = Vec::new();
    let mut open = false;
    for line in lines(text) {
        if line.starts_with(b"device ") || line.starts_with(b"no device ") {
            let row = parse_header(line);
            open = row.is_some();
            rows.extend(row);
        } else if let Some(row) = rows.last_mut().filter(|_| open) {
            // A malformed line leaves its fields unknown.
            let _ = parse_stat_line(line, row);
        }
    }
    join_mounts(rows, mounts)
}

/// `device SERVER:/EXPORT mounted on /DIR with fstype nfs4 statvers=1.1`, blanks in names escaped.
fn parse_header(line: &[u8]) -> Option<NetFsRaw> {
    let w: Vec<&[u8]> = words(line).collect();
    let [b"device", source, b"mounted", b"on", dir, b"with", b"fstype", kind, version] = w[..] else {
        return None;
    };
    (is_nfs(kind) && version.starts_with(SUPPORTED_STATVERS)).then(|| NetFsRaw {
        kind: NetFsKind::Nfs,
        mount: unescape_octal(dir).into(),
        server: unescape_octal(source).into(),
        ..Default::default()
    })
}

fn parse_stat_line(line: &[u8], row: &mut NetFsRaw) -> Option<()> {
    let mut w = words(line);
    let key = w.next()?;
    match key {
        b"opts:" => {
            let vers = w.next()?.split(|b| *b == b',').find_map(|o| o.strip_prefix(b"vers="))?;
            row.version = Some(crate::sanitize::sanitize(vers));
        }
        b"age:" => row.age_s = Some(parse_u64(w.next()?)?),
        // Normal reads and writes, direct reads and writes, bytes from and to the server, pages.
        b"bytes:" => {
            row.read_bytes = Some(parse_u64(w.nth(4)?)?);
            row.write_bytes = Some(parse_u64(w.next()?)?);
        }
        // Every operation has a line, so the sums start at 0.
        b"per-op" => {
            let all = [
                &mut row.ops,
                &mut row.retransmits,
                &mut row.timeouts,
                &mut row.queue_ms,
                &mut row.rtt_ms,
                &mut row.execute_ms,
            ];
            all.into_iter().for_each(|sum| *sum = Some(0));
        }
        op if op.ends_with(b":") && row.ops.is_some() => add_operation(op, w, row)?,
        _ => {}
    }
    Some(())
}

/// `READ: ops transmissions timeouts sent received queue_ms rtt_ms execute_ms [errors]`.
fn add_operation<'a>(op: &[u8], w: impl Iterator<Item = &'a [u8]>, row: &mut NetFsRaw) -> Option<()> {
    let n: Vec<u64> = w.map(parse_u64).collect::<Option<_>>()?;
    let [ops, transmissions, timeouts, _sent, _received, queue, rtt, execute, ref rest @ ..] = n[..] else {
        return None;
    };
    let add = |sum: &mut Option<u64>, n: u64| *sum = Some(sum.unwrap_or(0).saturating_add(n));
    add(&mut row.ops, ops);
    add(&mut row.retransmits, transmissions.saturating_sub(ops));
    add(&mut row.timeouts, timeouts);
    add(&mut row.queue_ms, queue);
    add(&mut row.rtt_ms, rtt);
    add(&mut row.execute_ms, execute);
    if let Some(errors) = rest.first() {
        add(&mut row.errors, *errors);
    }
    match op {
        b"READ:" => row.read_ops = Some(ops),
        b"WRITE:" => row.write_ops = Some(ops),
        _ => {}
    }
    Some(())
}

/// Both files list mounts in the same order. A file system that is mounted twice repeats its counters: one is kept.
fn join_mounts(rows: Vec<NetFsRaw>, mounts: &MountTable) -> Vec<NetFsRaw> {
    let mut left: Vec<_> = mounts.0.iter().filter(|m| is_nfs(m.fs_type.as_bytes())).collect();
    let mut out: Vec<NetFsRaw> = Vec::with_capacity(rows.len());
    for mut row in rows {
        if let Some(at) = left.iter().position(|m| m.mount_point == row.mount) {
            let mount = left.remove(at);
            if out.iter().any(|r| r.dev == mount.device) {
                continue;
            }
            row.dev = mount.device;
            row.address = mount.super_option("addr").map(|a| String::from_utf8_lossy(&a).into_owned());
        }
        out.push(row);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_unsupported_statvers_is_skipped() {
        let text = b"device nas:/x mounted on /m with fstype nfs4 statvers=2.0\n\tbytes:\t1 2 3 4 5 6 7 8\n";
        assert!(parse(text, &MountTable::default()).is_empty());
    }

    #[test]
    fn truncated_lines_leave_fields_unknown() {
        let text = b"device nas:/x\\040y mounted on /m with fstype nfs statvers=1.1\n\tage:\t77\n\tbytes:\t1 2 3 4\n";
        let row = parse(text, &MountTable::default()).remove(0);
        assert_eq!((row.age_s, row.read_bytes, row.ops), (Some(77), None, None));
        assert_eq!(row.server, "nas:/x y");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(
            text in proptest::collection::vec(any::<u8>(), 0..200),
            words in "(device |mounted on |with fstype nfs |statvers=1.1\n|bytes: |per-op x\n|READ: |[0-9]{1,20} |\n){0,40}",
        ) {
            let _ = parse(&text, &MountTable::default());
            let _ = parse(words.as_bytes(), &MountTable::default());
        }
    }
}
