//! `/proc/stat` (proc_stat(5)): CPU time with iowait, forks, blocked tasks.

use super::kernel_file::PersistentFile;
use super::source::Source;
use crate::model::cpu::CpuRaw;
use crate::model::reading::Reading;
use crate::parse::bytes::{lines, parse_u64, words};
use crate::root::Root;

pub(super) fn source(root: &Root) -> Source {
    Source::from_file(
        "/proc/stat",
        PersistentFile::whole(root.proc("stat")),
        |s| &mut s.cpu,
        |text| parse(text).map_or_else(|| Reading::Absent("/proc/stat: no cpu line".into()), Reading::Ok),
    )
}

/// Parses the whole file; `None` without the `cpu` line.
pub(super) fn parse(text: &[u8]) -> Option<CpuRaw> {
    let mut raw = CpuRaw::default();
    let mut seen = false;
    for line in lines(text) {
        let mut w = words(line);
        match w.next() {
            Some(b"cpu") => {
                for slot in &mut raw.ticks {
                    match w.next() {
                        Some(word) => *slot = parse_u64(word)?,
                        None => break,
                    }
                }
                seen = true;
            }
            Some(name) if name.starts_with(b"cpu") => raw.cpus += 1,
            Some(b"processes") => raw.forks = parse_u64(w.next()?)?,
            Some(b"procs_blocked") => raw.blocked_tasks = parse_u64(w.next()?)?,
            _ => {}
        }
    }
    seen.then_some(raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_proc_stat_is_parsed() {
        let raw = parse(
            b"cpu  10 20 30 400 5 0 7 8 0 0\ncpu0 5 10 15 200 2 0 3 4 0 0\ncpu1 5 10 15 200 3 0 4 4 0 0\n\
              intr 12 0 0\nctxt 99\nprocesses 4242\nprocs_running 1\nprocs_blocked 3\n",
        )
        .unwrap();
        assert_eq!(raw.ticks, [10, 20, 30, 400, 5, 0, 7, 8, 0, 0]);
        assert_eq!((raw.cpus, raw.forks, raw.blocked_tasks), (2, 4242, 3));
        assert_eq!(parse(b"intr 1\n"), None);
    }
}
