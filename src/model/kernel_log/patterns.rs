//! Include and exclude patterns that select what to show of the log.
//!
//! The default exclude pattern hides frequent noise, and only among unclassified lines: a hung task named `docker` or
//! an I/O error that contains `IPv6` stays visible. A pattern set by the user hides whatever it matches.

use super::{KernelLogClass, LogEntry};
use regex_lite::{Regex, RegexBuilder};

/// The default exclude pattern.
pub const DEFAULT_EXCLUDE: &str = "eth0|IPv6|IPVS|docker|promiscuous";

const MAX_PATTERN_BYTES: usize = 512;

/// Include and exclude patterns, matched against message, device and command name.
#[derive(Debug, Clone)]
pub struct LogPatterns {
    include: Option<Regex>,
    exclude: Option<Regex>,
    /// Whether `exclude` is the default, which never hides classified lines.
    keeps_classified: bool,
}

/// A pattern that does not compile, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("pattern '{}' goes wrong at character {column}: {reason}", crate::sanitize::sanitize(.pattern))]
pub struct PatternError {
    pub pattern: String,
    /// Position of the error in characters, counted from 1.
    pub column: usize,
    pub reason: String,
}

impl Default for LogPatterns {
    fn default() -> Self {
        Self { include: None, exclude: Regex::new(DEFAULT_EXCLUDE).ok(), keeps_classified: true }
    }
}

impl LogPatterns {
    /// Patterns of the user. An `exclude` of `None` is the default one; an empty pattern is no pattern.
    pub fn new(include: Option<&str>, exclude: Option<&str>) -> Result<Self, PatternError> {
        let include = include.filter(|p| !p.is_empty()).map(compile).transpose()?;
        match exclude {
            None => Ok(Self { include, ..Self::default() }),
            Some(p) => {
                let exclude = Some(p).filter(|p| !p.is_empty()).map(compile).transpose()?;
                Ok(Self { include, exclude, keeps_classified: false })
            }
        }
    }

    pub fn shows(&self, entry: &LogEntry) -> bool {
        let hit = |pattern: &Regex| {
            let names = [entry.device.as_deref(), entry.comm.as_deref()];
            pattern.is_match(&entry.message) || names.into_iter().flatten().any(|n| pattern.is_match(n))
        };
        if self.include.as_ref().is_some_and(|p| !hit(p)) {
            return false;
        }
        let spared = self.keeps_classified && entry.class != KernelLogClass::Other;
        spared || !self.exclude.as_ref().is_some_and(hit)
    }
}

fn build_regex(pattern: &str) -> Result<Regex, regex_lite::Error> {
    RegexBuilder::new(pattern).size_limit(1 << 20).build()
}

fn compile(pattern: &str) -> Result<Regex, PatternError> {
    let error = |column, reason: String| PatternError { pattern: pattern.to_owned(), column, reason };
    if pattern.len() > MAX_PATTERN_BYTES {
        let column = pattern.char_indices().take_while(|(i, _)| *i < MAX_PATTERN_BYTES).count() + 1;
        return Err(error(column, format!("longer than {MAX_PATTERN_BYTES} bytes")));
    }
    build_regex(pattern).map_err(|err| {
        // regex-lite does not report a position; it is after the longest prefix that compiles.
        let column = pattern.char_indices().rev().find(|(i, _)| build_regex(&pattern[..*i]).is_ok());
        let column = column.map_or(1, |(i, _)| pattern[..i].chars().count() + 1);
        error(column, err.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::super::test_support::kernel_entry;
    use super::*;

    #[test]
    fn the_default_exclude_hides_noise_and_keeps_classified_lines() {
        let patterns = LogPatterns::default();
        assert!(!patterns.shows(&kernel_entry(KernelLogClass::Other, "docker0: port 1(veth1) entered blocking state")));
        assert!(patterns.shows(&kernel_entry(KernelLogClass::Other, "something new")));
        assert!(
            patterns.shows(&kernel_entry(
                KernelLogClass::HungTask,
                "INFO: task docker:1 blocked for more than 122 seconds."
            ))
        );
    }

    #[test]
    fn user_patterns_apply_to_classified_lines_too() {
        let hung = kernel_entry(KernelLogClass::HungTask, "INFO: task docker:1 blocked for more than 122 seconds.");
        assert!(!LogPatterns::new(None, Some("docker")).unwrap().shows(&hung));
        assert!(!LogPatterns::new(Some("sda"), None).unwrap().shows(&hung));
        assert!(LogPatterns::new(Some("task.*blocked"), Some("")).unwrap().shows(&hung));
        let mut named = kernel_entry(KernelLogClass::IoError, "x");
        named.device = Some("sdb".into());
        assert!(LogPatterns::new(Some("^sdb$"), None).unwrap().shows(&named));
    }

    #[test]
    fn a_bad_pattern_reports_its_column() {
        for (pattern, column) in [("foo(bar", 4), ("foo[a-", 4), ("a|b)", 4), ("*a", 1), ("ab\\", 3), ("é写(", 3)] {
            let err = LogPatterns::new(None, Some(pattern)).unwrap_err();
            assert_eq!(err.column, column, "{err}");
        }
        assert_eq!(LogPatterns::new(Some(&"a".repeat(600)), None).unwrap_err().column, 513);
        assert!(
            LogPatterns::new(Some("\x1b("), None)
                .unwrap_err()
                .to_string()
                .starts_with("pattern '\\x1b(' goes wrong at")
        );
    }
}
