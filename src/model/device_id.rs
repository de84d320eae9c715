//! The number of a block device.

use crate::parse::bytes::device_number;
use serde::{Deserialize, Serialize};

/// A device number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DevId {
    /// Driver number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl From<(u32, u32)> for DevId {
    fn from((major, minor): (u32, u32)) -> Self {
        Self { major, minor }
    }
}

impl std::fmt::Display for DevId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl DevId {
    /// Parses `8:16`.
    pub fn parse(text: &[u8]) -> Option<Self> {
        device_number(text).map(Self::from)
    }
}
