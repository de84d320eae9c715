//! Untrusted text from the kernel, and its form for display.

pub use crate::parse::raw_bytes::RawBytes;
use crate::sanitize::sanitize;

impl RawBytes {
    /// Safe for display: see [`sanitize`].
    pub fn sanitized(&self) -> String {
        sanitize(self.as_bytes())
    }
}

/// Debug output may reach a terminal in a panic message, so it is sanitized too.
impl std::fmt::Debug for RawBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.sanitized())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stays_readable_and_debug_is_sanitized() {
        let raw = RawBytes::from("/srv/写\\x\u{1b}[2J");
        assert_eq!(serde_json::to_string(&raw).unwrap(), "\"/srv/写\\\\134x\\u001b[2J\"");
        assert!(!format!("{raw:?}").contains('\u{1b}'));
    }
}
