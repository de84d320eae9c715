//! Parses a TOML file of the user; an error names its line.

use serde::de::DeserializeOwned;

/// Parses a file's text.
///
/// # Errors
/// `line 4: ` and what is wrong there, sanitized.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|err| {
        let what = crate::sanitize::sanitize(err.message());
        match err.span() {
            Some(span) => format!("line {}: {what}", line_of(text, span.start)),
            None => what,
        }
    })
}

/// The line of a setting of a section, from 1; `None` if it is written in another way.
pub(crate) fn line_of_setting(text: &str, section: &str, setting: &str) -> Option<usize> {
    let mut current = "";
    text.lines().zip(1..).find_map(|(line, number)| {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            current = name.trim();
        }
        let name = line.split_once('=')?.0.trim().trim_matches(['"', '\'']);
        (current == section && name == setting).then_some(number)
    })
}

/// The line of a byte of a text, from 1.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}
