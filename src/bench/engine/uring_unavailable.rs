//! Why io_uring cannot be used, from errno and sysctl, with what to do about it.

use super::EngineUnavailable;
use crate::model::reading::describe_io_error;
use crate::root::Root;
use std::io;

impl EngineUnavailable {
    /// The error of io_uring_setup or io_uring_register.
    pub fn from_setup_error(err: io::Error) -> Self {
        let disabled = std::fs::read_to_string(Root::live().proc("sys/kernel/io_uring_disabled"))
            .ok()
            .and_then(|s| s.trim().parse().ok());
        Self::explain(&err, disabled)
    }

    /// Registered buffers exceed RLIMIT_MEMLOCK.
    pub fn memlock_exceeded(bytes: usize) -> Self {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
        let limit = limit.map_or("unlimited".into(), |n| format!("{} KiB", n / 1024));
        Self(format!(
            "registering {} KiB of buffers needs more locked memory than allowed (RLIMIT_MEMLOCK is {limit}); \
             raise it with `ulimit -l`, or use a smaller depth or block size",
            bytes / 1024
        ))
    }

    /// No memory for the buffers.
    pub fn out_of_memory(err: io::Error) -> Self {
        Self(format!("no memory for the buffers: {}", describe_io_error(&err)))
    }

    fn explain(err: &io::Error, disabled: Option<u32>) -> Self {
        Self(match (err.raw_os_error(), disabled) {
            (Some(libc::EPERM), Some(2)) => {
                "io_uring is switched off on this machine (kernel.io_uring_disabled = 2)".into()
            }
            (Some(libc::EPERM), Some(1)) => "io_uring is restricted to CAP_SYS_ADMIN and the group in \
                 kernel.io_uring_group (kernel.io_uring_disabled = 1)"
                .into(),
            (Some(libc::EPERM | libc::EACCES), _) => {
                "io_uring is refused although the sysctl allows it: a seccomp filter, as containers have, \
                 or a security module"
                    .into()
            }
            (Some(libc::ENOSYS), _) => {
                "the kernel has no io_uring (before 5.1, or configured out), or a seccomp filter hides it".into()
            }
            (Some(libc::ENOMEM), _) => {
                "no memory for the ring: RLIMIT_MEMLOCK (kernels before 5.12 count rings against it) or the \
                 cgroup's memory limit"
                    .into()
            }
            (Some(libc::EMFILE | libc::ENFILE), _) => "too many open files for one ring more".into(),
            _ => format!("io_uring set-up failed: {}", describe_io_error(err)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errno_is_explained_with_its_cause() {
        let why = |errno, sysctl| EngineUnavailable::explain(&io::Error::from_raw_os_error(errno), sysctl).0;
        assert!(why(libc::EPERM, Some(2)).contains("io_uring_disabled = 2"));
        assert!(why(libc::EPERM, Some(1)).contains("io_uring_group"));
        assert!(why(libc::EPERM, Some(0)).contains("seccomp"));
        assert!(why(libc::ENOSYS, None).contains("no io_uring"));
        assert!(why(libc::ENOMEM, Some(0)).contains("MEMLOCK"));
        assert!(why(libc::EIO, None).contains("failed"));
        assert!(EngineUnavailable::memlock_exceeded(1 << 20).0.contains("1024 KiB"));
    }
}
