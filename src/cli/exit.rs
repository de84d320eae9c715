//! Exit codes, the errors that have one of their own, and errors on standard error.

use crate::tuning::plan::TuneError;
use crate::tuning::sudo::sudo_command_line;
use std::io::Write;

pub(super) const EXIT_OK: u8 = 0;
pub(super) const EXIT_FAILED: u8 = 1;
pub(super) const EXIT_USAGE: u8 = 2;
pub(super) const EXIT_REFUSED: u8 = 3;
pub(super) const EXIT_PRIVILEGE: u8 = 4;
/// Ended by Ctrl-C or a signal before it was complete: 128 and SIGINT, as shells say it.
pub(super) const EXIT_CANCELLED: u8 = 130;
/// `doctor` found something that will go wrong or costs performance.
pub(super) const EXIT_WARNINGS: u8 = 10;
/// `doctor` found stalled work or data at risk.
pub(super) const EXIT_CRITICAL: u8 = 11;

/// A wrong command line or config file.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct UsageError(pub(super) String);

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
    print_error(&message(error));
    match error.downcast_ref() {
        Some(TuneError::Usage(_)) => EXIT_USAGE,
        Some(TuneError::Unsafe(_)) => EXIT_REFUSED,
        Some(TuneError::Privilege(_)) => {
            if rustix::process::geteuid().is_root() {
                print_error("root may not do it here: run on the host, or in a privileged container");
                return EXIT_PRIVILEGE;
            }
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

/// The error and its causes. A library's error names its cause itself, which is not said twice.
fn message(error: &anyhow::Error) -> String {
    error.chain().skip(1).fold(error.to_string(), |text, cause| {
        let cause = cause.to_string();
        let words = cause.split(" (os error").next().unwrap_or_default().to_lowercase();
        if text.to_lowercase().contains(&words) { text } else { format!("{text}: {cause}") }
    })
}

pub(super) fn print_text(text: &str) -> anyhow::Result<u8> {
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(EXIT_OK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn a_cause_is_said_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("x: {}", crate::model::reading::describe_io_error(source))]
        struct Library {
            source: std::io::Error,
        }
        let absent = || std::io::Error::from_raw_os_error(2);
        let error = anyhow::Error::new(Library { source: absent() }).context("--bench 1");
        assert_eq!(message(&error), "--bench 1: x: no such file or directory");
        let error = Err::<(), _>(absent()).context("cannot make x").unwrap_err();
        assert_eq!(message(&error), "cannot make x: No such file or directory (os error 2)");
    }
}
