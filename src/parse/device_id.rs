//! The number of a block device.

use super::bytes::{parse_u64, words};
use serde::{Deserialize, Serialize};

/// A device number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DevId {
    /// Driver number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl std::fmt::Display for DevId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl DevId {
    /// Parses `8:16`, as sysfs and mountinfo write it; what follows after a space is ignored.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = words(text).next()?;
        let colon = text.iter().position(|b| *b == b':')?;
        let half = |digits: &[u8]| u32::try_from(parse_u64(digits)?).ok();
        Some(Self { major: half(&text[..colon])?, minor: half(&text[colon + 1..])? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_need_both_halves() {
        assert_eq!(DevId::parse(b"259:3\n"), Some(DevId { major: 259, minor: 3 }));
        assert_eq!((DevId::parse(b"8"), DevId::parse(b":1"), DevId::parse(b"")), (None, None, None));
    }
}
