//! `/proc/PID/mountinfo` (proc_pid_mountinfo(5), Documentation/filesystems/proc.rst section 3.5).

use super::bytes::{device_number, lines, parse_u64, unescape_octal};

/// One mount. Names are raw bytes with the octal escapes decoded, so they may hold anything but NUL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountinfoEntry {
    /// Mount ID; statx(2) reports it as `stx_mnt_id`.
    pub id: u64,
    /// ID of the parent mount.
    pub parent: u64,
    /// Major and minor device number of the file system; major 0 where it has no block device.
    pub device: (u32, u32),
    /// Directory of the file system that is mounted.
    pub root: Vec<u8>,
    /// Mount point, as seen from the root directory of the process.
    pub mount_point: Vec<u8>,
    /// Options of the mount, comma-separated.
    pub options: Vec<u8>,
    /// File system type.
    pub fs_type: Vec<u8>,
    /// Device, server or another name; may be empty.
    pub source: Vec<u8>,
    /// Options of the file system. Escapes are kept, because a value may hold an escaped comma (`\054`).
    pub super_options: Vec<u8>,
}

/// Parses the file. A line that is malformed or cut off is skipped. Mounts stacked on one directory come in the order of
/// mounting: the last one is visible.
pub fn parse(text: &[u8]) -> impl DoubleEndedIterator<Item = MountinfoEntry> {
    lines(text).filter_map(parse_line)
}

/// The mount that an absolute path without symlinks lies on: the deepest above it, and of those stacked there the last.
pub fn find_containing(text: &[u8], path: &[u8]) -> Option<MountinfoEntry> {
    let contains = |point: &[u8]| {
        let rest = path.strip_prefix(point.strip_suffix(b"/").unwrap_or(point));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    };
    parse(text).filter(|mount| contains(&mount.mount_point)).max_by_key(|mount| mount.mount_point.len())
}

/// Parses `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`.
fn parse_line(line: &[u8]) -> Option<MountinfoEntry> {
    // Exactly one space separates fields, and a field may be empty (`mount "" /mnt -t tmpfs`).
    let mut fields = line.split(|b| *b == b' ');
    let (id, parent) = (parse_u64(fields.next()?)?, parse_u64(fields.next()?)?);
    let device = device_number(fields.next()?)?;
    let mut text = || Some(unescape_octal(fields.next()?));
    let (root, mount_point, options) = (text()?, text()?, text()?);
    fields.by_ref().find(|field| *field == b"-")?;
    let mut text = || Some(unescape_octal(fields.next()?));
    let (fs_type, source) = (text()?, text()?);
    // A file system that does not escape its options may put spaces in them.
    let super_options = fields.collect::<Vec<_>>().join(&b' ');
    Some(MountinfoEntry { id, parent, device, root, mount_point, options, fs_type, source, super_options })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse_all(text: &[u8]) -> Vec<MountinfoEntry> {
        parse(text).collect()
    }

    #[test]
    fn optional_fields_escapes_and_empty_sources_are_parsed() {
        let all = parse_all(
            b"36 35 98:0 /mnt1 /my\\040disk rw,noatime master:1 shared:7 - ext3 /dev/root rw,errors=continue\n\
              40 36 0:31 / /e rw -  rw\n41 36 0:32 / /f rw - tmpfs  rw,size=4k\n42 cut",
        );
        assert_eq!(all.len(), 3);
        let first = &all[0];
        assert_eq!((first.id, first.parent, first.device), (36, 35, (98, 0)));
        assert_eq!((&*first.root, &*first.mount_point), (&b"/mnt1"[..], &b"/my disk"[..]));
        assert_eq!((&*first.fs_type, &*first.source), (&b"ext3"[..], &b"/dev/root"[..]));
        assert_eq!(first.super_options, b"rw,errors=continue");
        assert_eq!((&*all[2].source, &*all[2].super_options), (&b""[..], &b"rw,size=4k"[..]));
    }

    #[test]
    fn one_name_that_is_not_utf8_does_not_hide_the_other_mounts() {
        let text = b"1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 8:2 / /\xff\xfe rw - ext4 /dev/b rw\n";
        let points: Vec<_> = parse(text).map(|m| m.mount_point).collect();
        assert_eq!(points, [&b"/"[..], b"/\xff\xfe"]);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse_all(&text);
        }

        #[test]
        fn any_escaped_path_is_decoded(path in proptest::collection::vec(1u8..=255, 1..40)) {
            let escaped: String = path.iter().map(|b| format!("\\{b:03o}")).collect();
            let line = format!("1 0 8:1 / {escaped} rw shared:1 - ext4 {escaped} rw");
            let all = parse_all(line.as_bytes());
            prop_assert_eq!(&all[0].mount_point, &path);
            prop_assert_eq!(&all[0].source, &path);
        }
    }

    #[test]
    fn the_deepest_and_last_mount_above_a_path_contains_it() {
        let text = b"1 0 8:1 / / rw - ext4 a rw\n2 1 0:2 / /run rw - tmpfs b rw\n3 2 0:3 / /run/user rw - tmpfs c rw\n\
            4 1 0:4 / /run rw - ext4 d rw\n5 1 0:5 / /runner rw - tmpfs e rw\n";
        let id = |path: &str| find_containing(text, path.as_bytes()).map(|mount| mount.id);
        let paths = ["/", "/etc", "/run", "/run/iotop-plus", "/run/user/1", "/runner/x", "relative"];
        assert_eq!(paths.map(id), [Some(1), Some(1), Some(4), Some(4), Some(3), Some(5), None]);
    }
}
