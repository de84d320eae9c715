//! Memory mappings of one process with resident and swapped-out size (proc_pid_smaps(5)).
//!
//! The kernel walks the page tables under the process's mmap_lock. That takes seconds for hundreds of GB, and for a
//! process stuck in a page fault it never returns. So this file is read only on request and only in a child process.

use crate::collect::kernel_file::{open, read_once};
use crate::model::process::MemoryMapping;
use crate::model::reading::Reading;
use crate::parse::key_value;
use crate::parse::task;
use crate::root::Root;
use crate::sanitize::sanitize;
use std::fs::File;
use std::io::{BufRead, BufReader};

/// Mappings above this number are dropped (vm.max_map_count is 65,530 by default).
const MAX_MAPPINGS: usize = 1_000_000;

/// Reads the mappings of process `pid` started at `starttime`, in address order. May never return: call it in a child
/// process.
pub(crate) fn read_mappings(root: &Root, pid: u32, starttime: u64) -> Reading<Vec<MemoryMapping>> {
    let has_ended = || {
        let stat = read_once(&root.proc(&format!("{pid}/stat")), &mut Vec::new()).ok().and_then(task::stat);
        stat.is_none_or(|stat| stat.starttime != starttime)
    };
    let ended = || Reading::Absent(format!("process {pid} has ended"));
    if has_ended() {
        return ended();
    }
    let what = format!("/proc/{pid}/smaps");
    let file = match open(&root.proc(&format!("{pid}/smaps"))) {
        Ok(fd) => BufReader::with_capacity(64 * 1024, File::from(fd)),
        Err(err) => return Reading::from_io_error(&what, &err),
    };
    match parse_smaps(file) {
        Ok(_) if has_ended() => ended(),
        Ok(found) => Reading::Ok(found),
        Err(err) => Reading::from_io_error(&what, &err),
    }
}

pub(super) fn parse_smaps(mut file: impl BufRead) -> std::io::Result<Vec<MemoryMapping>> {
    let mut out: Vec<MemoryMapping> = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        if file.read_until(b'\n', &mut line)? == 0 {
            return Ok(out);
        }
        if let Some(header) = parse_header(&line) {
            if out.len() >= MAX_MAPPINGS {
                return Ok(out);
            }
            out.push(header);
        } else if let Some(mapping) = out.last_mut() {
            parse_field(mapping, &line);
        }
    }
}

/// Parses `7f00-7f10 r-xp 00000000 fe:00 123   /path`, the first line of a mapping; `None` for every other line. Nothing is
/// resident or swapped out yet.
pub(crate) fn parse_header(line: &[u8]) -> Option<MemoryMapping> {
    let dash = line.iter().position(|b| *b == b'-')?;
    let space = line.iter().position(|b| *b == b' ')?;
    let (start, end) = (parse_hex(line.get(..dash)?)?, parse_hex(line.get(dash + 1..space)?)?);
    let mut rest = line.get(space..)?;
    let mut permissions = rest;
    for field in 0..4 {
        rest = rest.trim_ascii_start();
        let end = rest.iter().position(|b| b.is_ascii_whitespace()).unwrap_or(rest.len());
        if field == 0 {
            permissions = &rest[..end];
        }
        rest = &rest[end..];
    }
    Some(MemoryMapping {
        start,
        end,
        perms: sanitize(permissions),
        name: sanitize(rest.trim_ascii()),
        size: end.saturating_sub(start),
        ..MemoryMapping::default()
    })
}

fn parse_hex(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn parse_field(mapping: &mut MemoryMapping, line: &[u8]) {
    let Some((key, kb)) = key_value(line) else { return };
    let bytes = kb.saturating_mul(1024);
    match key {
        b"Size" => mapping.size = bytes,
        b"Rss" => mapping.rss = bytes,
        b"Pss" => mapping.pss = Some(bytes),
        b"Swap" => mapping.swap = Some(bytes),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_in_bytes_and_names_are_escaped() {
        let raw = b"55d0-55d2 r-xp 00000000 fe:00 123                        /bin/a b\\012\x1b[2J (deleted)\n\
            Size:                720896 kB\nKernelPageSize:        4 kB\nRss:                  8 kB\nPss:                   4 kB\n\
            Swap:                 12 kB\nSwapPss:               6 kB\nVmFlags: rd ex mr mw me\n\
            7ffd-7fff rw-p 00000000 00:00 0                          [stack]\nRss:  16 kB\n\
            8000-9000 rw-p 00000000 00:00 0 \n";
        let all = parse_smaps(&raw[..]).unwrap();
        assert_eq!(all.len(), 3);
        assert_eq!((all[0].start, all[0].end, all[0].perms.as_str()), (0x55d0, 0x55d2, "r-xp"));
        assert_eq!(all[0].name, "/bin/a b\\012\\x1b[2J (deleted)");
        assert_eq!((all[0].size, all[0].rss, all[0].pss, all[0].swap), (738_197_504, 8192, Some(4096), Some(12_288)));
        assert_eq!((all[1].name.as_str(), all[1].swap), ("[stack]", None));
        assert_eq!((all[2].name.as_str(), all[2].size), ("", 0x1000));
    }

    #[test]
    fn own_mappings_are_read() {
        let pid = std::process::id();
        let stat = std::fs::read(Root::live().proc(&format!("{pid}/stat"))).unwrap();
        let start = task::stat(&stat).unwrap().starttime;
        let found = read_mappings(&Root::live(), pid, start);
        let found = found.ok().unwrap();
        assert!(found.iter().any(|m| m.name == "[stack]" && m.rss > 0 && m.pss.is_some()));
        assert!(matches!(read_mappings(&Root::live(), pid, start + 1), Reading::Absent(_)));
    }

    #[test]
    fn names_with_spaces_and_without_utf8_are_kept() {
        let header = parse_header(b"55d0-55d2 r-xp 00000000 fe:00 123      /bin/a b\xff (deleted)\n").unwrap();
        assert_eq!((header.start, header.end, &*header.perms), (0x55d0, 0x55d2, "r-xp"));
        assert_eq!(header.name, "/bin/a b\\xff (deleted)");
        assert_eq!(parse_header(b"8000-9000 rw-p 00000000 00:00 0 \n").unwrap().name, "");
        assert_eq!(parse_header(b"Rss:      8 kB\n"), None);
    }

    proptest! {
        #[test]
        fn lines_like_headers_do_not_panic(line in "[0-9a-f]{0,4}-?[0-9a-f]{0,17} ?[rwxp \\-:/a-z]{0,30}") {
            let _ = parse_header(line.as_bytes());
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(raw in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse_smaps(&raw[..]);
        }
    }
}
