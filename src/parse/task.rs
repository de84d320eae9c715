//! `stat`, `io`, `status` and `schedstat` of a process or thread (proc_pid_stat(5), proc_pid_io(5), proc_pid_status(5),
//! Documentation/scheduler/sched-stats.rst).
//!
//! These run for every task that ran since the last refresh, so they allocate nothing and stop at the last field needed:
//! `cargo bench --bench process` measures them.

use super::bytes::{lines, parse_i64, parse_u64, words};
use super::key_value;
use serde::{Deserialize, Serialize};

/// Task flag of a kernel thread (include/linux/sched.h).
pub(crate) const PF_KTHREAD: u64 = 0x0020_0000;
/// Task flag of a task that has not called exec since it was forked (include/linux/sched.h).
pub(crate) const PF_FORKNOEXEC: u64 = 0x0000_0040;

/// The fields of `stat` that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StatLine {
    /// Field 2, without the parentheses.
    pub comm: [u8; 16],
    /// Field 3.
    pub state: u8,
    /// Field 4.
    pub ppid: u32,
    /// From field 9.
    pub is_kernel_thread: bool,
    /// From field 9: forked, and no exec since.
    pub is_forked: bool,
    /// Field 12.
    pub majflt: u64,
    /// Sum of fields 14 and 15: user and system time.
    pub cpu_ticks: u64,
    /// Field 20.
    pub num_threads: u32,
    /// Field 22.
    pub starttime: u64,
    /// Field 24, pages.
    pub rss_pages: u64,
    /// Field 28: address of the stack. It changes at every exec, so it detects one; 0 if hidden.
    pub start_stack: u64,
    /// Field 19.
    pub nice: i64,
    /// Field 41: scheduling policy; 0 where the line ends before it.
    pub policy: u64,
    /// Field 42: `delayacct_blkio_ticks`.
    pub blkio_ticks: u64,
}

/// Parses `stat`. The name may contain anything, even `)` and newlines: the last `)` of the file ends it.
pub(crate) fn stat(text: &[u8]) -> Option<StatLine> {
    let open = text.iter().position(|b| *b == b'(')?;
    let close = text.iter().rposition(|b| *b == b')')?;
    let name = text.get(open + 1..close)?;
    let mut comm = [0; 16];
    let len = name.len().min(16);
    comm[..len].copy_from_slice(&name[..len]);
    let mut fields = words(&text[close + 1..]);
    // Skips n fields and returns the next one.
    let mut skip = |n: usize| fields.nth(n);
    let state = *skip(0)?.first()?;
    let ppid = parse_i64(skip(0)?)?.max(0) as u32;
    let flags = parse_u64(skip(4)?)?;
    let majflt = parse_u64(skip(2)?)?;
    let utime = parse_u64(skip(1)?)?;
    let stime = parse_u64(skip(0)?)?;
    let nice = parse_i64(skip(3)?)?;
    let num_threads = parse_i64(skip(0)?)?.max(0) as u32;
    let starttime = parse_u64(skip(1)?)?;
    let rss_pages = parse_i64(skip(1)?)?.max(0) as u64;
    let start_stack = parse_u64(skip(3)?)?;
    let policy = skip(12).and_then(parse_u64).unwrap_or(0);
    let blkio_ticks = skip(0).and_then(parse_u64).unwrap_or(0);
    Some(StatLine {
        comm,
        state,
        ppid,
        is_kernel_thread: flags & PF_KTHREAD != 0,
        is_forked: flags & PF_FORKNOEXEC != 0,
        majflt,
        cpu_ticks: utime.saturating_add(stime),
        num_threads,
        starttime,
        rss_pages,
        start_stack,
        nice,
        policy,
        blkio_ticks,
    })
}

/// Bytes read from and written to storage (Documentation/filesystems/proc.rst, `io`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoBytes {
    /// `read_bytes`.
    pub read: u64,
    /// `write_bytes`: counted when a page is dirtied, for the process that dirtied it.
    pub write: u64,
    /// `cancelled_write_bytes`: dirtied, then truncated before they were written.
    pub cancelled: u64,
}

/// Parses `io`; `None` if one of the storage counters is missing.
pub(crate) fn io(text: &[u8]) -> Option<IoBytes> {
    let (mut read, mut write, mut cancelled) = (None, None, None);
    for (key, value) in lines(text).filter_map(key_value) {
        match key {
            b"read_bytes" => read = Some(value),
            b"write_bytes" => write = Some(value),
            b"cancelled_write_bytes" => cancelled = Some(value),
            _ => {}
        }
    }
    Some(IoBytes { read: read?, write: write?, cancelled: cancelled? })
}

/// The lines of `status` that are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StatusLines {
    /// Real user ID.
    pub uid: Option<u32>,
    /// `VmSwap` in bytes: absent for kernel threads and zombies, and on kernels without swap.
    pub swap_bytes: Option<u64>,
    /// `VmRSS` in bytes.
    pub rss_bytes: Option<u64>,
    pub state: Option<u8>,
    pub ppid: Option<u32>,
    pub num_threads: Option<u32>,
}

/// Parses `status`. The kernel escapes newlines in the Name line, so a name cannot forge a line.
pub(crate) fn status(text: &[u8]) -> StatusLines {
    let mut out = StatusLines::default();
    for line in lines(text) {
        if let Some(state) = line.strip_prefix(b"State:") {
            out.state = state.trim_ascii_start().first().copied();
            continue;
        }
        let Some((key, value)) = key_value(line) else { continue };
        match key {
            b"PPid" => out.ppid = u32::try_from(value).ok(),
            b"Uid" => out.uid = u32::try_from(value).ok(),
            b"VmRSS" => out.rss_bytes = value.checked_mul(1024),
            b"VmSwap" => out.swap_bytes = value.checked_mul(1024),
            b"Threads" => {
                // The lines after this one are not used.
                out.num_threads = u32::try_from(value).ok();
                break;
            }
            _ => {}
        }
    }
    out
}

/// The name in `comm`, padded with NUL.
pub(crate) fn padded_comm(text: &[u8]) -> [u8; 16] {
    let mut comm = [0; 16];
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let length = text.len().min(15);
    comm[..length].copy_from_slice(&text[..length]);
    comm
}

/// Parses `schedstat`: ns on a CPU, ns waiting for a CPU, number of timeslices.
pub(crate) fn schedstat(text: &[u8]) -> Option<[u64; 3]> {
    let mut w = words(text);
    Some([parse_u64(w.next()?)?, parse_u64(w.next()?)?, parse_u64(w.next()?)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REAL_STAT: &str = "13728 (cat) R 13726 13726 10080 0 -1 4194304 100 0 7 0 3 4 0 0 20 0 2 0 153244 3133440 385 \
        18446744073709551615 94333861457920 94333861477801 140723465169008 0 0 0 0 0 0 0 0 0 17 1 0 0 12 0 0 \
        94333861493808 94333861495424 94334478848000 140723465173650 140723465173719 140723465173719 \
        140723465175019 0\n";

    #[test]
    fn a_real_stat_line_is_parsed() {
        let s = stat(REAL_STAT.as_bytes()).unwrap();
        assert_eq!(&s.comm[..4], b"cat\0");
        assert_eq!((s.state, s.ppid, s.majflt, s.cpu_ticks), (b'R', 13726, 7, 7));
        assert_eq!((s.num_threads, s.starttime, s.rss_pages), (2, 153_244, 385));
        assert_eq!((s.start_stack, s.blkio_ticks), (140_723_465_169_008, 12));
        assert!(!s.is_kernel_thread && !s.is_forked);
        assert_eq!((s.nice, s.policy), (0, 0));
        let realtime = REAL_STAT.replace(" 17 1 0 0 12 ", " 17 1 50 1 12 ").replace(" 20 0 2 0 ", " -51 -20 2 0 ");
        let s = stat(realtime.as_bytes()).unwrap();
        assert_eq!((s.nice, s.policy), (-20, 1));
    }

    #[test]
    fn a_process_name_cannot_forge_stat_fields() {
        for name in [") R 1 (x", "a\nb", "((", "))", "", "\u{fffd}) Z 1"] {
            let text = REAL_STAT.replace("(cat)", &format!("({name})"));
            let s = stat(text.as_bytes()).unwrap();
            assert_eq!((s.state, s.ppid, s.starttime), (b'R', 13726, 153_244), "{name:?}");
            assert!(name.as_bytes().starts_with(s.comm.split(|b| *b == 0).next().unwrap()));
        }
        let mut raw = REAL_STAT.as_bytes().to_vec();
        raw.splice(7..10, [0xff, 0xfe, b')']);
        assert_eq!(&stat(&raw).unwrap().comm[..3], [0xff, 0xfe, b')']);
    }

    #[test]
    fn io_without_its_three_storage_lines_is_rejected() {
        let text = b"rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 7\n";
        assert_eq!(io(text), Some(IoBytes { read: 5, write: 6, cancelled: 7 }));
        assert_eq!(io(b"rchar: 1\nwchar: 2\n"), None);
    }

    #[test]
    fn status_without_memory_has_no_swap() {
        let full = status(b"Name:\tx\nState:\tD (disk sleep)\nUid:\t1000\t0\t0\t0\nVmRSS:\t 8 kB\nVmSwap:\t 4 kB\n");
        assert_eq!(
            (full.uid, full.swap_bytes, full.rss_bytes, full.state),
            (Some(1000), Some(4096), Some(8192), Some(b'D'))
        );
        assert_eq!(status(b"Name:\tkthreadd\nUid:\t0\t0\t0\t0\n").swap_bytes, None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(raw in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = (stat(&raw), io(&raw), status(&raw), schedstat(&raw));
        }

        #[test]
        fn text_like_stat_does_not_panic(name in proptest::collection::vec(any::<u8>(), 0..20), rest in "[ 0-9RSDZ-]{0,200}") {
            let mut text = b"1 (".to_vec();
            text.extend(&name);
            text.extend(b") ");
            text.extend(rest.as_bytes());
            let _ = stat(&text);
        }

        #[test]
        fn formatted_fields_are_parsed_back(name in proptest::collection::vec(1u8.., 0..15), ppid in any::<u32>(), start in any::<u64>()) {
            let ppid = ppid >> 2;
            let mut text = b"1 (".to_vec();
            text.extend(&name);
            text.extend(format!(") S {ppid} 1 1 0 -1 64 0 0 9 0 1 2 0 0 20 0 1 0 {start} 0 3 0 0 0 5").as_bytes());
            let s = stat(&text).unwrap();
            prop_assert_eq!(&s.comm[..name.len()], &name[..]);
            prop_assert_eq!((s.ppid, s.starttime, s.rss_pages, s.start_stack, s.is_forked), (ppid, start, 3, 5, true));
        }
    }
}
