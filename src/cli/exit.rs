//! Exit codes, the errors that have one of their own, and errors on standard error.

use crate::tuning::plan::TuneError;
use crate::tuning::sudo::sudo_command_line;
use std::io::Write;

pub(super) const EXIT_OK: u8 = 0;
pub(super) const EXIT_FAILED: u8 = 1;
/// Wrong command line or config file.
pub(super) const EXIT_USAGE: u8 = 2;
/// Refused for safety.
pub(super) const EXIT_REFUSED: u8 = 3;
pub(super) const EXIT_PRIVILEGE: u8 = 4;
/// `doctor` found something that will go wrong or costs performance.
pub(super) const EXIT_WARNINGS: u8 = 10;
/// `doctor` found stalled work or data at risk.
pub(super) const EXIT_CRITICAL: u8 = 11;

/// A wrong command line or config file.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct UsageError(pub(super) String);

/// An error in the usage.
pub(super) fn usage(why: impl ToString) -> anyhow::Error {
    UsageError(why.to_string()).into()
}

/// Prints a sanitized line to stderr.
pub(super) fn print_error(text: &str) {
    let _ = writeln!(std::io::stderr(), "iotop-plus: {}", crate::sanitize::sanitize(text));
}

/// Prints the error of a subcommand, with a sudo command if a privilege is missing; returns the exit code.
pub(super) fn print_final_error(error: &anyhow::Error) -> u8 {
    // The reader of standard output went away, which is not an error.
    let io_errors = error.chain().filter_map(|e| e.downcast_ref::<std::io::Error>());
    if io_errors.into_iter().any(|e| e.kind() == std::io::ErrorKind::BrokenPipe) {
        return EXIT_OK;
    }
    print_error(&format!("{error:#}"));
    match error.downcast_ref() {
        Some(TuneError::Usage(_)) => EXIT_USAGE,
        Some(TuneError::Unsafe(_)) => EXIT_REFUSED,
        Some(TuneError::Privilege(_)) => {
            let program = std::env::current_exe().map(|p| p.to_string_lossy().into_owned());
            let program = program.unwrap_or_else(|_| "iotop-plus".into());
            let command = sudo_command_line(&program, std::env::args().skip(1));
            print_error(&format!("to do it as root: {command}"));
            EXIT_PRIVILEGE
        }
        None if error.is::<UsageError>() => EXIT_USAGE,
        Some(TuneError::Failed(_)) | None => EXIT_FAILED,
    }
}

pub(super) fn print_text(text: &str) -> anyhow::Result<u8> {
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(EXIT_OK)
}
