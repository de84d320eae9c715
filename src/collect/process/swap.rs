//! Whether pages went to or came from swap: only then does a task's VmSwap change without it running.

use crate::collect::kernel_file::PersistentFile;
use crate::collect::byte_parse::{lines, parse_u64};
use crate::root::Root;

/// The swap counters of `/proc/vmstat`, compared look by look.
pub struct SwapSign {
    file: PersistentFile,
    buf: Vec<u8>,
    live: bool,
    used: bool,
    last: Option<u64>,
}

impl SwapSign {
    /// Below `root`.
    pub fn new(root: &Root) -> Self {
        Self {
            file: PersistentFile::new(root.proc("vmstat")),
            buf: Vec::new(),
            live: root.is_live(),
            used: true,
            last: None,
        }
    }

    /// Whether any page moved since the last call; true if that cannot be told.
    pub fn moved(&mut self) -> bool {
        // One cheap call spares the file where nothing is swapped out.
        if self.live {
            let info = rustix::system::sysinfo();
            self.used = info.totalswap != info.freeswap;
            if !self.used {
                let was_used = self.last.take().is_some();
                return was_used;
            }
        }
        let now = self.file.read(&mut self.buf).ok().and_then(sum);
        let moved = now.is_none() || now != self.last;
        self.last = now;
        moved
    }

    /// Whether anything is swapped out, as of the last call of [`SwapSign::moved`].
    pub fn is_used(&self) -> bool {
        self.used
    }
}

fn sum(text: &[u8]) -> Option<u64> {
    let value = |line: &[u8], name: &[u8]| line.strip_prefix(name).and_then(parse_u64);
    let mut found = lines(text).filter_map(|l| value(l, b"pswpin ").or_else(|| value(l, b"pswpout ")));
    Some(found.next()?.wrapping_add(found.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_traffic_counts() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("proc")).unwrap();
        let file = dir.path().join("proc/vmstat");
        std::fs::write(&file, "nr_dirty 1\npswpin 5\npswpout 6\n").unwrap();
        let mut sign = SwapSign::new(&Root::at(dir.path()));
        assert!(sign.moved());
        assert!(!sign.moved());
        std::fs::write(&file, "nr_dirty 9\npswpin 5\npswpout 7\n").unwrap();
        assert!(sign.moved());
        std::fs::remove_file(&file).unwrap();
        assert!(!sign.moved(), "the kept descriptor still reads the old file");
    }
}
