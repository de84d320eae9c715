//! Resources used by a process and all its descendants: CPU time, memory, open files.

use std::fs;
use std::os::raw::c_int;

/// CPU time of a process tree, s. Includes descendants that were reaped, in ticks of 10 ms.
pub fn cpu_secs(root: u32) -> f64 {
    tree(root).into_iter().filter_map(|pid| Some(process_cpu_secs(pid)? + reaped_secs(pid)?)).sum()
}

/// CPU time of one process, including its exited threads; `None` once it has exited.
#[allow(unsafe_code)]
fn process_cpu_secs(pid: u32) -> Option<f64> {
    let mut clock: libc::clockid_t = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both calls get valid pointers to locals and do not keep them.
    let failed: c_int = unsafe {
        match libc::clock_getcpuclockid(pid as libc::pid_t, &mut clock) {
            0 => libc::clock_gettime(clock, &mut time),
            err => err,
        }
    };
    (failed == 0).then_some(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
}

/// `cutime` + `cstime` of proc_pid_stat(5).
fn reaped_secs(pid: u32) -> Option<f64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let end = stat.iter().rposition(|b| *b == b')')?;
    let text = String::from_utf8_lossy(&stat[end + 2..]).into_owned();
    let field = |i: usize| text.split(' ').nth(i)?.parse::<u64>().ok();
    Some((field(13)? + field(14)?) as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// A process and all its descendants.
pub fn tree(root: u32) -> Vec<u32> {
    let (mut out, mut todo) = (Vec::new(), vec![root]);
    while let Some(pid) = todo.pop() {
        out.push(pid);
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        for task in tasks.flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            todo.extend(children.split_whitespace().filter_map(|w| w.parse::<u32>().ok()));
        }
    }
    out
}

/// Resident memory of the largest process of a tree, MiB. Helpers share most of their pages with it.
pub fn rss_mib(root: u32) -> f64 {
    let of_process = |pid| field_kib(&format!("/proc/{pid}/status"), "VmRSS:");
    tree(root).into_iter().filter_map(of_process).fold(0.0, f64::max) / 1024.0
}

/// Resident memory of a tree in MiB, each shared page divided among the processes that share it. Not a number if that
/// cannot be read.
pub fn pss_mib(root: u32) -> f64 {
    let of_process = |pid| field_kib(&format!("/proc/{pid}/smaps_rollup"), "Pss:");
    let of_processes: Vec<f64> = tree(root).into_iter().filter_map(of_process).collect();
    if of_processes.is_empty() { f64::NAN } else { of_processes.into_iter().sum::<f64>() / 1024.0 }
}

/// A figure in a file of `NAME value kB` lines.
fn field_kib(path: &str, name: &str) -> Option<f64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// Open files of a tree, because they use kernel memory.
pub fn open_files(root: u32) -> f64 {
    let of_process = |pid| fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    tree(root).into_iter().map(of_process).sum::<usize>() as f64
}

/// CPU time of the whole machine since boot, s.
pub fn machine_secs() -> f64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = stat.lines().next().unwrap_or_default();
    let v: Vec<u64> = line.split_whitespace().skip(1).filter_map(|w| w.parse().ok()).collect();
    let all: u64 = v.iter().take(8).sum();
    let idle = v.get(3).copied().unwrap_or(0) + v.get(4).copied().unwrap_or(0);
    (all - idle) as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// Number of processes.
pub fn processes() -> usize {
    let numeric = |e: &fs::DirEntry| e.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit());
    fs::read_dir("/proc").map_or(0, |dir| dir.flatten().filter(numeric).count())
}

/// Number of tasks, threads included: the part after the slash in `/proc/loadavg`.
pub fn tasks() -> u64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(['/', ' ']).nth(4).and_then(|n| n.parse().ok()).unwrap_or_default()
}
