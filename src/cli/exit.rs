//! Exit codes, and errors on standard error.

use std::io::Write;

/// Success.
pub const EXIT_OK: u8 = 0;
/// Failure.
pub const EXIT_FAILED: u8 = 1;
/// Wrong command line or config file.
pub const EXIT_USAGE: u8 = 2;
/// Refused for safety.
pub const EXIT_REFUSED: u8 = 3;
/// A privilege is missing.
pub const EXIT_PRIVILEGE: u8 = 4;

/// `doctor` found something that will go wrong or costs performance.
pub const EXIT_WARNINGS: u8 = 10;
/// `doctor` found stalled work or data at risk.
pub const EXIT_CRITICAL: u8 = 11;

/// Prints a sanitized line to stderr.
pub fn print_error(text: &str) {
    let _ = writeln!(std::io::stderr(), "iotop-plus: {}", crate::sanitize::sanitize(text));
}

pub(super) fn usage_error(why: &str) -> anyhow::Result<u8> {
    print_error(why);
    Ok(EXIT_USAGE)
}

pub(super) fn print_text(text: &str) -> anyhow::Result<u8> {
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(EXIT_OK)
}
