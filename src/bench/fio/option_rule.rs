//! What becomes of an option of a job file.

use super::job::FioJob;
use super::value::OptionValue;

/// What becomes of an option.
pub(super) enum OptionRule {
    /// It means what it means in fio.
    Honoured(fn(&mut FioJob, &OptionValue<'_>) -> Result<(), String>),
    /// It concerns fio's output only.
    Output,
    /// It has no effect on the work here; the text says why.
    NoEffect(&'static str),
    /// Something else is done, which the text says; with `--strict` an error. Not with the values in the list.
    Replaced(&'static [&'static str], &'static str),
    /// An error unless its value is in the list; the text says why, and what to do.
    Refused(&'static [&'static str], &'static str),
}

/// Names (the first is fio's own, the others are its aliases) and rule.
pub(super) struct FioOption(pub &'static str, pub OptionRule);
