//! What one reading of one kernel source came to.

use serde::{Deserialize, Serialize};

/// The result of a reading. There is no default value in it: what could not be read is never a 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading<T> {
    /// Read.
    Ok(T),
    /// The kernel has it but refuses us; the text says what is missing and what would give it.
    Denied(String),
    /// This machine, kernel or configuration does not have it; the text says which. An empty one: not read yet.
    Absent(String),
    /// A read is under way and does not return.
    Blocked(BlockedRead),
}

/// A read that does not come back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedRead {
    /// CLOCK_BOOTTIME at which the read began, in ns.
    pub since_boot_ns: u64,
    /// What it waits on, as well as is known.
    #[serde(rename = "on")]
    pub waiting_on: String,
}

/// Why there is nothing where nothing was tried.
pub const NOT_READ: &str = "not read yet";

impl<T> Default for Reading<T> {
    fn default() -> Self {
        // Every tick begins with these, so they take no memory.
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

    /// The value, if there is one, to change.
    pub fn ok_mut(&mut self) -> Option<&mut T> {
        match self {
            Reading::Ok(value) => Some(value),
            _ => None,
        }
    }

    /// Why there is no value; `now_boot_ns` turns "since" into a duration.
    pub fn unavailable_reason(&self, now_boot_ns: u64) -> Option<String> {
        match self {
            Reading::Ok(_) => None,
            Reading::Absent(why) if why.is_empty() => Some(NOT_READ.into()),
            Reading::Denied(why) | Reading::Absent(why) => Some(why.clone()),
            Reading::Blocked(b) => {
                let secs = now_boot_ns.saturating_sub(b.since_boot_ns) / 1_000_000_000;
                Some(format!("blocked {secs} s in {}", b.waiting_on))
            }
        }
    }

    /// The same outcome, of the value where it is.
    pub fn as_ref(&self) -> Reading<&T> {
        match self {
            Reading::Ok(value) => Reading::Ok(value),
            Reading::Denied(why) => Reading::Denied(why.clone()),
            Reading::Absent(why) => Reading::Absent(why.clone()),
            Reading::Blocked(b) => Reading::Blocked(b.clone()),
        }
    }

    /// The same outcome with another value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Reading::Ok(value) => Reading::Ok(f(value)),
            Reading::Denied(why) => Reading::Denied(why),
            Reading::Absent(why) => Reading::Absent(why),
            Reading::Blocked(b) => Reading::Blocked(b),
        }
    }

    /// A failed system call told as a section: permission errors are `Denied`, the rest `Absent`.
    pub fn from_io_error(what: &str, err: &std::io::Error) -> Self {
        let text = format!("{what}: {}", describe_io_error(err));
        match err.kind() {
            std::io::ErrorKind::PermissionDenied => Reading::Denied(text),
            _ => Reading::Absent(text),
        }
    }
}

/// An I/O error in words a person can act on, without Rust's "(os error N)".
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
    }
}
