//! What one reading of one kernel source came to.

use serde::{Deserialize, Serialize};

/// The result of a reading. There is no default value in it: what could not be read is never a 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Section<T> {
    /// Read.
    Ok(T),
    /// The kernel has it but refuses us; the text says what is missing and what would give it.
    Denied(String),
    /// This machine, kernel or configuration does not have it; the text says which. An empty one: not read yet.
    Absent(String),
    /// A read is under way and does not return.
    Blocked(Blocked),
}

/// A read that does not come back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    /// CLOCK_BOOTTIME at which the read began, in ns.
    pub since_boot_ns: u64,
    /// What it waits on, as well as is known.
    pub on: String,
}

/// Why there is nothing where nothing was tried.
pub const NOT_READ: &str = "not read yet";

impl<T> Default for Section<T> {
    fn default() -> Self {
        // Every tick begins with these, so they take no memory.
        Section::Absent(String::new())
    }
}

impl<T> Section<T> {
    /// The value, if there is one.
    pub fn ok(&self) -> Option<&T> {
        match self {
            Section::Ok(value) => Some(value),
            _ => None,
        }
    }

    /// The value, if there is one, to change.
    pub fn ok_mut(&mut self) -> Option<&mut T> {
        match self {
            Section::Ok(value) => Some(value),
            _ => None,
        }
    }

    /// Why there is no value; `now_boot_ns` turns "since" into a duration.
    pub fn why(&self, now_boot_ns: u64) -> Option<String> {
        match self {
            Section::Ok(_) => None,
            Section::Absent(why) if why.is_empty() => Some(NOT_READ.into()),
            Section::Denied(why) | Section::Absent(why) => Some(why.clone()),
            Section::Blocked(b) => {
                let secs = now_boot_ns.saturating_sub(b.since_boot_ns) / 1_000_000_000;
                Some(format!("blocked {secs} s in {}", b.on))
            }
        }
    }

    /// The same outcome, of the value where it is.
    pub fn as_ref(&self) -> Section<&T> {
        match self {
            Section::Ok(value) => Section::Ok(value),
            Section::Denied(why) => Section::Denied(why.clone()),
            Section::Absent(why) => Section::Absent(why.clone()),
            Section::Blocked(b) => Section::Blocked(b.clone()),
        }
    }

    /// The same outcome with another value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Section<U> {
        match self {
            Section::Ok(value) => Section::Ok(f(value)),
            Section::Denied(why) => Section::Denied(why),
            Section::Absent(why) => Section::Absent(why),
            Section::Blocked(b) => Section::Blocked(b),
        }
    }

    /// A failed system call told as a section: permission errors are `Denied`, the rest `Absent`.
    pub fn from_io(what: &str, err: &std::io::Error) -> Self {
        let text = format!("{what}: {}", describe(err));
        match err.kind() {
            std::io::ErrorKind::PermissionDenied => Section::Denied(text),
            _ => Section::Absent(text),
        }
    }
}

/// An I/O error in words a person can act on, without Rust's "(os error N)".
pub fn describe(err: &std::io::Error) -> String {
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
    fn errors_keep_their_meaning() {
        let denied: Section<u8> = Section::from_io("/dev/kmsg", &std::io::Error::from_raw_os_error(1));
        assert_eq!(denied, Section::Denied("/dev/kmsg: operation not permitted".into()));
        let absent: Section<u8> = Section::from_io("psi", &std::io::Error::from_raw_os_error(2));
        assert!(matches!(absent, Section::Absent(_)));
    }

    #[test]
    fn what_was_not_read_says_so() {
        assert_eq!(Section::<u8>::default().why(0).unwrap(), "not read yet");
        assert_eq!(Section::<u8>::default().map(u32::from).why(0).unwrap(), "not read yet");
        assert_eq!(Section::<u8>::Absent("no such file".into()).why(0).unwrap(), "no such file");
    }

    #[test]
    fn a_blocked_read_tells_how_long() {
        let s: Section<u8> =
            Section::Blocked(Blocked { since_boot_ns: 1_000_000_000, on: "mmap_lock".into() });
        assert_eq!(s.why(5_000_000_000).unwrap(), "blocked 4 s in mmap_lock");
    }
}
