//! The mount behind a file descriptor, from `/proc/self/mountinfo` (proc_pid_mountinfo(5)).

/// One line of it. Escapes are undone, so names are raw and hostile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Mount ID.
    pub id: u64,
    /// Device number of the file system; major 0 where it has no device of its own.
    pub device: (u32, u32),
    /// Mount point.
    pub point: Vec<u8>,
    /// Options of mount and superblock.
    pub options: String,
    /// File system type.
    pub kind: String,
    /// Device, server or name it was mounted from.
    pub source: Vec<u8>,
}

/// The line of mount `id`.
pub fn find(mountinfo: &[u8], id: u64) -> Option<Mount> {
    mountinfo.split(|b| *b == b'\n').filter_map(parse).find(|m| m.id == id)
}

fn parse(line: &[u8]) -> Option<Mount> {
    let mut words = line.split(|b| *b == b' ');
    let id = text(words.next()?).parse().ok()?;
    let _parent = words.next()?;
    let device = text(words.next()?);
    let (major, minor) = device.split_once(':')?;
    let _root = words.next()?;
    let point = unescape(words.next()?);
    let own = text(words.next()?);
    let mut rest = words.skip_while(|w| *w != b"-").skip(1);
    let kind = text(rest.next()?);
    let source = unescape(rest.next()?);
    let options = format!("{own},{}", text(rest.next().unwrap_or_default()));
    Some(Mount { id, device: (major.parse().ok()?, minor.parse().ok()?), point, options, kind, source })
}

fn text(raw: &[u8]) -> String {
    String::from_utf8_lossy(raw).into_owned()
}

/// Undoes `\040` and the like.
fn unescape(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut at = 0;
    while at < raw.len() {
        let octal = raw
            .get(at + 1..at + 4)
            .filter(|d| raw[at] == b'\\' && d.iter().all(|b| (b'0'..=b'7').contains(b)));
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

    const TEXT: &[u8] = b"22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
        30 22 0:41 / /mnt/my\\040disk rw,noatime shared:7 master:2 - nfs4 server:/a\\011b rw,vers=4.2\n";

    #[test]
    fn a_mount_is_found_by_its_id() {
        let m = find(TEXT, 30).unwrap();
        assert_eq!((m.device, m.point.as_slice()), ((0, 41), b"/mnt/my disk".as_slice()));
        assert_eq!((m.kind.as_str(), m.source.as_slice()), ("nfs4", b"server:/a\tb".as_slice()));
        assert_eq!(m.options, "rw,noatime,rw,vers=4.2");
        assert_eq!(find(TEXT, 22).unwrap().device, (254, 0));
        assert_eq!(find(TEXT, 99), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(raw in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = find(&raw, 1);
            prop_assert!(unescape(&raw).len() <= raw.len());
        }
    }
}
