//! Detects traffic to and from swap: without it the VmSwap of a task that does not run cannot change.

use crate::collect::kernel_file::PersistentFile;
use crate::parse::named_value;
use crate::root::Root;

/// Compares the swap counters of `/proc/vmstat` from scan to scan.
pub(super) struct SwapActivity {
    file: PersistentFile,
    buf: Vec<u8>,
    is_live: bool,
    /// Whether anything is swapped out, as of the last call of [`SwapActivity::has_changed`].
    pub is_swap_used: bool,
    /// Pages read from and written to swap since boot.
    last_events: Option<(u64, u64)>,
}

impl SwapActivity {
    pub(super) fn new(root: &Root) -> Self {
        Self {
            file: PersistentFile::new(root.proc("vmstat")),
            buf: Vec::new(),
            is_live: root.is_live(),
            is_swap_used: true,
            last_events: None,
        }
    }

    /// Whether pages moved since the last call; true if unknown.
    pub(super) fn has_changed(&mut self) -> bool {
        // One cheap system call avoids reading the file where nothing is swapped out.
        if self.is_live {
            let info = rustix::system::sysinfo();
            self.is_swap_used = info.totalswap != info.freeswap;
            if !self.is_swap_used {
                return self.last_events.take().is_some();
            }
        }
        let text = self.file.read(&mut self.buf).unwrap_or_default();
        let now = named_value(text, b"pswpin").zip(named_value(text, b"pswpout"));
        let moved = now.is_none() || now != self.last_events;
        self.last_events = now;
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_swap_traffic_counts_as_activity() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("proc")).unwrap();
        let file = dir.path().join("proc/vmstat");
        std::fs::write(&file, "nr_dirty 1\npswpin 5\npswpout 6\n").unwrap();
        let mut sign = SwapActivity::new(&Root::at(dir.path()));
        assert!(sign.has_changed());
        assert!(!sign.has_changed());
        std::fs::write(&file, "nr_dirty 9\npswpin 5\npswpout 7\n").unwrap();
        assert!(sign.has_changed());
        std::fs::remove_file(&file).unwrap();
        assert!(!sign.has_changed(), "the kept descriptor still reads the old file");
    }
}
