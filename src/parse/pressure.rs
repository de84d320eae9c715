//! `/proc/pressure/*` (Documentation/accounting/psi.rst).

use super::bytes::{lines, parse_f64, parse_u64, words};

/// One line of averages: percent of time stalled over 10, 60 and 300 s, and the total in us.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PressureLine {
    /// Over the last 10 s.
    pub avg10: f64,
    /// Over the last minute.
    pub avg60: f64,
    /// Over the last five minutes.
    pub avg300: f64,
    /// Since boot, us.
    pub total_us: u64,
}

/// Returns the `some` and the `full` line; `full` is missing for cpu before Linux 5.13.
pub fn parse(text: &[u8]) -> [Option<PressureLine>; 2] {
    let find = |name: &[u8]| {
        lines(text).find_map(|line| {
            let mut words = words(line);
            words.next().filter(|word| *word == name).and_then(|_| parse_values(words))
        })
    };
    [find(b"some"), find(b"full")]
}

fn parse_values<'a>(mut words: impl Iterator<Item = &'a [u8]>) -> Option<PressureLine> {
    let mut value = |name: &str| words.next()?.strip_prefix(name.as_bytes());
    Some(PressureLine {
        avg10: parse_f64(value("avg10=")?)?,
        avg60: parse_f64(value("avg60=")?)?,
        avg300: parse_f64(value("avg300=")?)?,
        total_us: parse_u64(value("total=")?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_full_line_is_none() {
        let [some, full] = parse(b"some avg10=38.20 avg60=1.00 avg300=0.10 total=123\n");
        let some = some.unwrap();
        assert_eq!((some.avg10, some.total_us, full), (38.2, 123, None));
        assert_eq!(parse(b"some avg10=x\n"), [None, None]);
    }
}
