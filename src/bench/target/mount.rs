//! The mount behind a file descriptor, from `/proc/self/mountinfo` (proc_pid_mountinfo(5)).

/// One line of it. Escapes are undone, so names are raw and hostile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountinfoEntry {
    /// Mount ID.
    pub id: u64,
    /// Device number of the file system; major 0 where it has no device of its own.
    pub device: (u32, u32),
    /// Mount point.
    pub mount_point: Vec<u8>,
    /// Options of mount and superblock.
    pub options: String,
    /// File system type.
    pub fs_type: String,
    /// Device, server or name it was mounted from.
    pub source: Vec<u8>,
}

/// The line of mount `id`.
pub fn find_by_id(mountinfo: &[u8], id: u64) -> Option<MountinfoEntry> {
    mountinfo.split(|b| *b == b'\n').filter_map(parse_line).find(|m| m.id == id)
}

fn parse_line(line: &[u8]) -> Option<MountinfoEntry> {
    let mut words = line.split(|b| *b == b' ');
    let id = lossy_string(words.next()?).parse().ok()?;
    let _parent = words.next()?;
    let device = lossy_string(words.next()?);
    let (major, minor) = device.split_once(':')?;
    let _root = words.next()?;
    let point = unescape_octal(words.next()?);
    let own = lossy_string(words.next()?);
    let mut rest = words.skip_while(|w| *w != b"-").skip(1);
    let kind = lossy_string(rest.next()?);
    let source = unescape_octal(rest.next()?);
    let options = format!("{own},{}", lossy_string(rest.next().unwrap_or_default()));
    Some(MountinfoEntry {
        id,
        device: (major.parse().ok()?, minor.parse().ok()?),
        mount_point: point,
        options,
        fs_type: kind,
        source,
    })
}

fn lossy_string(raw: &[u8]) -> String {
    String::from_utf8_lossy(raw).into_owned()
}

/// Undoes `\040` and the like.
fn unescape_octal(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut at = 0;
    while at < raw.len() {
        let octal = raw.get(at + 1..at + 4).filter(|d| raw[at] == b'\\' && d.iter().all(|b| (b'0'..=b'7').contains(b)));
        match octal {
            Some(d) => {
                out.push(d.iter().fold(0u32, |n, b| n * 8 + u32::from(b - b'0')) as u8);
                at += 4;
            }
            None => {
                out.push(raw[at]);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MOUNTINFO: &[u8] = b"22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
        30 22 0:41 / /mnt/my\\040disk rw,noatime shared:7 master:2 - nfs4 server:/a\\011b rw,vers=4.2\n";

    #[test]
    fn a_mount_is_found_by_its_id() {
        let m = find_by_id(MOUNTINFO, 30).unwrap();
        assert_eq!((m.device, m.mount_point.as_slice()), ((0, 41), b"/mnt/my disk".as_slice()));
        assert_eq!((m.fs_type.as_str(), m.source.as_slice()), ("nfs4", b"server:/a\tb".as_slice()));
        assert_eq!(m.options, "rw,noatime,rw,vers=4.2");
        assert_eq!(find_by_id(MOUNTINFO, 22).unwrap().device, (254, 0));
        assert_eq!(find_by_id(MOUNTINFO, 99), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(raw in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = find_by_id(&raw, 1);
            prop_assert!(unescape_octal(&raw).len() <= raw.len());
        }
    }
}
