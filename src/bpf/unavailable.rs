//! Why a probe is not loaded, in one line.

use crate::model::reading::{Reading, describe_io_error};
use std::io;

/// Why a probe is not loaded: never `Ok`.
pub(super) type ProbeUnavailable = Reading<()>;

/// What is loaded first.
pub(super) const THE_MAPS: &str = "the maps";

/// Adds why programs that a probe can do without are missing, to its notes.
pub(super) fn note_missing(notes: &mut Vec<String>, what: &str, attached: &Result<(), ProbeUnavailable>) {
    if let Err(ProbeUnavailable::Absent(why) | ProbeUnavailable::Denied(why)) = attached {
        notes.push(format!("{what}: {why}"));
    }
}

/// Describes a failure in one line by its root cause, without the verifier log.
pub(super) fn load_failure(what: &str, err: &(dyn std::error::Error + 'static)) -> ProbeUnavailable {
    let mut cause: &(dyn std::error::Error + 'static) = err;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let code = cause.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
    if code == Some(libc::EPERM) {
        // Commit 97306be45fbe ("bpf: Switch to memcg-based memory accounting").
        let limit =
            if what == THE_MAPS { ", or before Linux 5.11 the limit of locked memory (ulimit -l)," } else { "" };
        return ProbeUnavailable::Denied(format!(
            "tracing: the kernel refused {what}: a container, a seccomp filter or kernel lockdown{limit} forbids it"
        ));
    }
    // The verifier rejected the program.
    if code == Some(libc::EACCES) {
        return ProbeUnavailable::Absent(format!("tracing: this kernel does not accept the program for {what}"));
    }
    let why = match cause.downcast_ref::<io::Error>() {
        Some(io) => describe_io_error(io),
        None => cause.to_string().lines().next().unwrap_or_default().to_owned(),
    };
    ProbeUnavailable::Absent(format!("tracing: {what}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error as the loader returns it: a long log with the kernel's error as its source.
    #[derive(Debug)]
    struct Verifier(io::Error);

    impl std::fmt::Display for Verifier {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("0: (79) r6 = *(u64 *)(r1 +0)\n1: ...\n")
        }
    }

    impl std::error::Error for Verifier {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn a_load_failure_is_one_line_and_keeps_its_kind() {
        let denied = load_failure(THE_MAPS, &io::Error::from_raw_os_error(libc::EPERM));
        assert!(matches!(&denied, ProbeUnavailable::Denied(why) if why.contains("lockdown, or before")), "{denied:?}");
        let other = load_failure("tracepoint block_rq_issue", &Verifier(io::Error::from_raw_os_error(libc::EINVAL)));
        assert_eq!(other, ProbeUnavailable::Absent("tracing: tracepoint block_rq_issue: invalid argument".into()));
    }
}
