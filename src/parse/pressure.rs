//! `/proc/pressure/*` (Documentation/accounting/psi.rst), a line at a time with the crate `procfs`.
//!
//! Its reader of whole files needs a `full` line, which cpu has only since Linux 5.13.

use super::bytes::lines;
use procfs::{PressureRecord, parse_pressure_record};
use serde::{Deserialize, Serialize};

/// One line: shares of time in percent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct PsiAverages {
    /// Over the last 10 s.
    pub avg10: f64,
    /// Over the last minute.
    pub avg60: f64,
    /// Over the last five minutes.
    pub avg300: f64,
    /// Microseconds stalled since boot.
    pub total_us: u64,
}

impl From<PressureRecord> for PsiAverages {
    fn from(record: PressureRecord) -> Self {
        // The kernel prints two decimals; an f32 widened to an f64 has more.
        let percent = |value: f32| (f64::from(value) * 100.0).round() / 100.0;
        Self {
            avg10: percent(record.avg10),
            avg60: percent(record.avg60),
            avg300: percent(record.avg300),
            total_us: record.total,
        }
    }
}

impl PsiAverages {
    /// False for `nan` and `inf`, which are numbers to Rust's parser.
    fn is_finite(&self) -> bool {
        [self.avg10, self.avg60, self.avg300].iter().all(|percent| percent.is_finite())
    }
}

/// Returns the `some` and the `full` line; `full` is missing for cpu before Linux 5.13.
pub(crate) fn parse(text: &[u8]) -> [Option<PsiAverages>; 2] {
    // The crate indexes behind the name: a line that ends there would panic.
    let find = |name: &[u8]| {
        let line = lines(text).find(|line| line.starts_with(name) && line.is_ascii())?;
        parse_pressure_record(std::str::from_utf8(line).ok()?)
            .ok()
            .map(PsiAverages::from)
            .filter(PsiAverages::is_finite)
    };
    [find(b"some "), find(b"full ")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_missing_full_line_is_none() {
        let [some, full] = parse(b"some avg10=38.20 avg60=1.00 avg300=0.10 total=123\n");
        let some = some.unwrap();
        assert_eq!((some.avg10, some.avg300, some.total_us, full), (38.2, 0.1, 123, None));
        assert_eq!(parse(b"some avg10=x\n"), [None, None]);
        assert_eq!(parse(b"some\nfull"), [None, None]);
        assert_eq!(parse(b"some avg10=nan avg60=1.00 avg300=0.10 total=123\n"), [None, None]);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(some|full)? ?[a-z0-9=. \\n]{0,60}") {
            parse(text.as_bytes());
        }
    }
}
