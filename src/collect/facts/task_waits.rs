//! The file that a task in state D works on: the descriptor of its system call (`/proc/PID/syscall`), its path and mount.
//! None of these files blocks, and the file itself is not touched.

use crate::collect::kernel_file::read_once;
use crate::model::process::TaskKey;
use crate::model::raw_bytes::RawBytes;
use crate::model::slow_facts::TaskWait;
use crate::parse::bytes::{lines, parse_u64, words};
use crate::root::Root;
use std::os::unix::ffi::OsStrExt;

/// System calls whose first argument is the descriptor of a file.
const FILE_CALLS: [libc::c_long; 17] = [
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_syncfs,
    libc::SYS_sync_file_range,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_getdents64,
];

/// `None` if the task is not in state D, or its system call has no file.
pub(super) fn read_wait(root: &Root, key: TaskKey, buf: &mut Vec<u8>) -> Option<TaskWait> {
    let dir = format!("{}/task/{}", key.pid, key.tid);
    if state(read_once(&root.proc(&format!("{dir}/stat")), buf).ok()?)? != b'D' {
        return None;
    }
    let fd = descriptor(read_once(&root.proc(&format!("{dir}/syscall")), buf).ok()?)?;
    let mount_id = mount_id(read_once(&root.proc(&format!("{dir}/fdinfo/{fd}")), buf).ok()?)?;
    let path = std::fs::read_link(root.proc(&format!("{dir}/fd/{fd}"))).ok()?;
    Some(TaskWait { key, mount_id, path: RawBytes::from(path.as_os_str().as_bytes()) })
}

/// The field behind the name, which may contain anything.
fn state(stat: &[u8]) -> Option<u8> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(end + 2).copied()
}

/// `1 0x3 0x7ffd...`: the number of the call and its arguments; `running` otherwise.
fn descriptor(syscall: &[u8]) -> Option<u64> {
    let mut words = words(syscall);
    let call = i64::try_from(parse_u64(words.next()?)?).ok()?;
    let text = std::str::from_utf8(words.next()?.strip_prefix(b"0x")?).ok()?;
    FILE_CALLS.contains(&call).then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

fn mount_id(fdinfo: &[u8]) -> Option<u64> {
    let line = lines(fdinfo).find_map(|line| line.strip_prefix(b"mnt_id:"))?;
    parse_u64(line.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_a_blocked_call_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let task = dir.path().join("proc/7/task/7");
        for sub in ["fd", "fdinfo"] {
            std::fs::create_dir_all(task.join(sub)).unwrap();
        }
        let put = |name: &str, text: &str| std::fs::write(task.join(name), text).unwrap();
        put("fdinfo/3", "pos:\t0\nflags:\t0100001\nmnt_id:\t91\nino:\t12\n");
        std::os::unix::fs::symlink("/srv/log", task.join("fd/3")).unwrap();
        let key = TaskKey { pid: 7, tid: 7, starttime: 1 };
        let read = || read_wait(&Root::at(dir.path()), key, &mut Vec::new());
        put("stat", "7 (a) R 1) D 1 7 7");
        put("syscall", &format!("{} 0x3 0x7ffd 0x1 0x0 0x0 0x0 0x7ffd 0x7f00\n", libc::SYS_write));
        assert_eq!(read(), Some(TaskWait { key, mount_id: 91, path: RawBytes::from("/srv/log") }));
        put("stat", "7 (a) R 1) S 1 7 7");
        assert_eq!(read(), None);
        put("stat", "7 (a) D 1 7 7");
        for call in ["running\n", "-1 0x7ffd 0x7f00\n", &format!("{} 0x3 0x0\n", libc::SYS_futex)] {
            put("syscall", call);
            assert_eq!(read(), None, "{call}");
        }
    }
}
