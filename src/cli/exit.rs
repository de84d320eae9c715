//! Exit codes, and errors on standard error.

use std::io::Write;

/// Everything went well.
pub const EXIT_OK: u8 = 0;
/// It did not work.
pub const EXIT_FAILED: u8 = 1;
/// The command line or the config file is wrong.
pub const EXIT_USAGE: u8 = 2;
/// Refused for safety.
pub const EXIT_REFUSED: u8 = 3;
/// A privilege is missing.
pub const EXIT_PRIVILEGE: u8 = 4;

/// `doctor` found something that will go wrong or costs speed.
pub const EXIT_WARNINGS: u8 = 10;
/// `doctor` found work standing still or data at risk.
pub const EXIT_CRITICAL: u8 = 11;

/// One line to stderr, with nothing in it that a terminal would obey.
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
