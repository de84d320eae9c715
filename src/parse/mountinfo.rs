//! `/proc/PID/mountinfo` (proc_pid_mountinfo(5), Documentation/filesystems/proc.rst section 3.5).

use super::bytes::{lines, parse_u64, unescape_octal};
use super::device_id::DevId;
use super::raw_bytes::RawBytes;
use serde::{Deserialize, Serialize};

/// One line of `/proc/self/mountinfo`, with octal escapes decoded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountInfo {
    /// Unique while the mount exists; the same number as `stx_mnt_id` of statx(2).
    pub id: u64,
    /// The mount it is mounted on; not in the table for the root of a chroot.
    pub parent: u64,
    /// Device number of the file system. Major 0 is anonymous: no block device of that number exists.
    pub device: DevId,
    /// The mounted directory of the file system: `/` unless a bind mount or a subvolume.
    pub root: RawBytes,
    /// Mount point, relative to the root of this process.
    pub mount_point: RawBytes,
    /// Options of this mount, comma-separated (`rw,noatime`).
    pub options: RawBytes,
    /// `ext4`, `nfs4`, `fuse.sshfs` ...
    pub fs_type: RawBytes,
    /// Device, server, or a string specific to the file system.
    pub source: RawBytes,
    /// Options of the file system, shared by all its mounts. Escapes are kept, because a value may contain a comma
    /// (`\054`): see [`MountInfo::super_option`].
    pub super_options: RawBytes,
}

/// Parses the file. A line that is malformed or cut off is skipped. Mounts stacked on one directory come in the order of
/// mounting: the last one is visible.
pub(crate) fn parse(text: &[u8]) -> impl DoubleEndedIterator<Item = MountInfo> {
    lines(text).filter_map(parse_line)
}

/// The mount that an absolute path without symlinks lies on: the deepest above it, and of those stacked there the last.
pub(crate) fn find_containing(text: &[u8], path: &[u8]) -> Option<MountInfo> {
    let contains = |point: &[u8]| {
        let rest = path.strip_prefix(point.strip_suffix(b"/").unwrap_or(point));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    };
    parse(text)
        .filter(|mount| contains(mount.mount_point.as_bytes()))
        .max_by_key(|mount| mount.mount_point.as_bytes().len())
}

/// Parses `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`.
fn parse_line(line: &[u8]) -> Option<MountInfo> {
    // Exactly one space separates fields, and a field may be empty (`mount "" /mnt -t tmpfs`).
    let mut fields = line.split(|b| *b == b' ');
    let (id, parent) = (parse_u64(fields.next()?)?, parse_u64(fields.next()?)?);
    let device = DevId::parse(fields.next()?)?;
    let mut text = || Some(RawBytes::from(unescape_octal(fields.next()?)));
    let (root, mount_point, options) = (text()?, text()?, text()?);
    fields.by_ref().find(|field| *field == b"-")?;
    let mut text = || Some(RawBytes::from(unescape_octal(fields.next()?)));
    let (fs_type, source) = (text()?, text()?);
    // A file system that does not escape its options may put spaces in them.
    let super_options = fields.collect::<Vec<_>>().join(&b' ').into();
    Some(MountInfo { id, parent, device, root, mount_point, options, fs_type, source, super_options })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse_all(text: &[u8]) -> Vec<MountInfo> {
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
        assert_eq!((first.id, first.parent, first.device), (36, 35, DevId { major: 98, minor: 0 }));
        assert!(first.root == "/mnt1" && first.mount_point == "/my disk");
        assert!(first.fs_type == "ext3" && first.source == "/dev/root");
        assert_eq!(first.super_options, "rw,errors=continue");
        assert!(all[2].source.is_empty() && all[2].super_options == "rw,size=4k");
    }

    #[test]
    fn one_name_that_is_not_utf8_does_not_hide_the_other_mounts() {
        let text = b"1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 8:2 / /\xff\xfe rw - ext4 /dev/b rw\n";
        let points: Vec<_> = parse(text).map(|m| m.mount_point).collect();
        assert_eq!(points, [&b"/"[..], b"/\xff\xfe"].map(RawBytes::from));
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
            prop_assert_eq!(all[0].mount_point.as_bytes(), &path);
            prop_assert_eq!(all[0].source.as_bytes(), &path);
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
