//! The result of reading a kernel source.

use serde::{Deserialize, Serialize};

/// A value, or why there is none. There is deliberately no default value: what could not be read is never 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading<T> {
    /// Read successfully.
    Ok(T),
    /// Permission denied; the text says what is missing and what would help.
    Denied(String),
    /// Not available on this machine, kernel or configuration; the text says which. Empty: not read yet.
    Absent(String),
    /// The read does not return.
    Blocked(BlockedRead),
}

/// A read that does not return.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedRead {
    /// CLOCK_BOOTTIME when the read began, in ns.
    pub since_boot_ns: u64,
    /// What it waits on, if known.
    #[serde(rename = "on")]
    pub waiting_on: String,
}

/// Reason for a source that was not read yet.
pub const NOT_READ: &str = "not read yet";

impl<T> Default for Reading<T> {
    fn default() -> Self {
        // Every tick begins with these, so they do not allocate.
        Reading::Absent(String::new())
    }
}

impl<T> Reading<T> {
    /// The value, if there is one.
    pub fn ok(&self) -> Option<&T> {
        match self {
            Reading::Ok(value) => Some(value),
            _ => None,
        }
    }

    /// The value, if there is one, mutable.
    pub fn ok_mut(&mut self) -> Option<&mut T> {
        match self {
            Reading::Ok(value) => Some(value),
            _ => None,
        }
    }

    /// Why there is no value; `now_boot_ns` is used to compute durations.
    pub fn unavailable_reason(&self, now_boot_ns: u64) -> Option<String> {
        match self {
            Reading::Ok(_) => None,
            Reading::Absent(why) if why.is_empty() => Some(NOT_READ.into()),
            Reading::Denied(why) | Reading::Absent(why) => Some(why.clone()),
            Reading::Blocked(b) => {
                Some(format!("blocked {} in {}", blocked_time(b.since_boot_ns, now_boot_ns), b.waiting_on))
            }
        }
    }

    /// The same with a reference to the value.
    pub fn as_ref(&self) -> Reading<&T> {
        match self {
            Reading::Ok(value) => Reading::Ok(value),
            Reading::Denied(why) => Reading::Denied(why.clone()),
            Reading::Absent(why) => Reading::Absent(why.clone()),
            Reading::Blocked(b) => Reading::Blocked(b.clone()),
        }
    }

    /// The same with the value mapped.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Reading::Ok(value) => Reading::Ok(f(value)),
            Reading::Denied(why) => Reading::Denied(why),
            Reading::Absent(why) => Reading::Absent(why),
            Reading::Blocked(b) => Reading::Blocked(b),
        }
    }

    /// From a failed system call: permission errors are `Denied`, all others `Absent`.
    pub fn from_io_error(what: &str, err: &std::io::Error) -> Self {
        let text = format!("{what}: {}", describe_io_error(err));
        match err.kind() {
            std::io::ErrorKind::PermissionDenied => Reading::Denied(text),
            _ => Reading::Absent(text),
        }
    }
}

/// How long a read has not returned, by CLOCK_BOOTTIME in ns: `250 ms`, then whole seconds.
pub(crate) fn blocked_time(since_boot_ns: u64, now_boot_ns: u64) -> String {
    match now_boot_ns.saturating_sub(since_boot_ns) / 1_000_000 {
        ms @ 0..1000 => format!("{ms} ms"),
        ms => format!("{} s", ms / 1000),
    }
}

/// What `derive` makes of a reading; absent if there is nothing earlier to compare it with.
pub(super) fn rates_of<T, U>(
    what: &str,
    has_earlier: bool,
    now: &Reading<T>,
    derive: impl FnOnce(&T) -> U,
) -> Reading<U> {
    match now {
        Reading::Ok(_) if !has_earlier => Reading::Absent(format!("{what}: no earlier reading to compare with")),
        now => now.as_ref().map(derive),
    }
}

/// The text of an I/O error, without Rust's "(os error N)".
pub fn describe_io_error(err: &std::io::Error) -> String {
    let text = err.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_lowercase(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_errors_map_to_denied_or_absent() {
        let denied: Reading<u8> = Reading::from_io_error("/dev/kmsg", &std::io::Error::from_raw_os_error(1));
        assert_eq!(denied, Reading::Denied("/dev/kmsg: operation not permitted".into()));
        let absent: Reading<u8> = Reading::from_io_error("psi", &std::io::Error::from_raw_os_error(2));
        assert!(matches!(absent, Reading::Absent(_)));
    }

    #[test]
    fn unread_sources_say_not_read_yet() {
        assert_eq!(Reading::<u8>::default().unavailable_reason(0).unwrap(), "not read yet");
        assert_eq!(Reading::<u8>::default().map(u32::from).unavailable_reason(0).unwrap(), "not read yet");
        assert_eq!(Reading::<u8>::Absent("no such file".into()).unavailable_reason(0).unwrap(), "no such file");
    }

    #[test]
    fn a_blocked_read_reports_its_duration() {
        let s: Reading<u8> =
            Reading::Blocked(BlockedRead { since_boot_ns: 1_000_000_000, waiting_on: "mmap_lock".into() });
        assert_eq!(s.unavailable_reason(5_000_000_000).unwrap(), "blocked 4 s in mmap_lock");
        assert_eq!(s.unavailable_reason(1_260_000_000).unwrap(), "blocked 260 ms in mmap_lock");
    }
}
