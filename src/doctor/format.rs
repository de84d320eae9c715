//! Values as findings write them.

use crate::units;

/// `0.06 ms`, `4.1 ms`, `480 ms`, `12.4 s`.
pub(super) fn ms(ms: f64) -> String {
    match ms {
        ms if ms >= 10_000.0 => format!("{:.1} s", ms / 1000.0),
        ms if ms >= 100.0 => format!("{ms:.0} ms"),
        ms if ms >= 1.0 => format!("{ms:.1} ms"),
        ms => format!("{ms:.2} ms"),
    }
}

/// `12 MiB`.
pub(super) fn bytes(n: f64) -> String {
    units::format_bytes_long(n.max(0.0) as u64)
}

/// Two amounts of which the first is larger, written so that it also reads so: `33.0 MiB` and `32.0 MiB`, or with more
/// digits where these would be equal.
pub(super) fn bytes_above(larger: f64, smaller: f64) -> (String, String) {
    let (a, b) = (bytes(larger), bytes(smaller));
    if a != b || larger <= smaller {
        return (a, b);
    }
    let kib = |n: f64| format!("{:.0} KiB", n / 1024.0);
    match (kib(larger), kib(smaller)) {
        (a, b) if a != b => (a, b),
        _ => (format!("{larger:.0} B"), format!("{smaller:.0} B")),
    }
}

/// `12.3 MiB/s`.
pub(super) fn bytes_per_s(n: f64) -> String {
    format!("{}/s", bytes(n))
}

/// `0.27 MB/s`, `145 MB/s`; as in iostat a MB is 2^20 bytes.
pub(super) fn mb_per_s(n: f64) -> String {
    match n {
        n if n >= 100.0 => format!("{n:.0} MB/s"),
        n if n >= 10.0 => format!("{n:.1} MB/s"),
        n => format!("{n:.2} MB/s"),
    }
}

/// `119`, `9.6`, `0.4`.
pub(super) fn count(n: f64) -> String {
    if n >= 10.0 { format!("{n:.0}") } else { format!("{n:.1}") }
}

/// `119/s`.
pub(super) fn per_s(n: f64) -> String {
    format!("{}/s", count(n))
}

/// `42%`.
pub(super) fn percent(n: f64) -> String {
    format!("{n:.0}%")
}

/// `4.0 s`, `1m01s`.
pub(super) fn duration(secs: f64) -> String {
    if secs < 10.0 { format!("{secs:.1} s") } else { units::format_duration(secs as u64) }
}

/// `fio (1234)`.
pub(super) fn task(comm: &str, pid: u32) -> String {
    format!("{comm} ({pid})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_above_a_limit_reads_as_above_it() {
        let mib = |n: f64| n * 1048576.0;
        assert_eq!(bytes_above(mib(40.0), mib(32.0)), ("40.0 MiB".into(), "32.0 MiB".into()));
        assert_eq!(bytes_above(mib(32.01), mib(32.0)), ("32778 KiB".into(), "32768 KiB".into()));
        assert_eq!(bytes_above(mib(32.0) + 1.0, mib(32.0)), ("33554433 B".into(), "33554432 B".into()));
    }

    #[test]
    fn values_keep_two_or_three_significant_digits() {
        assert_eq!([ms(0.058), ms(4.12), ms(480.3), ms(12_400.0)], ["0.06 ms", "4.1 ms", "480 ms", "12.4 s"]);
        assert_eq!([mb_per_s(0.27), mb_per_s(12.34), mb_per_s(688.0)], ["0.27 MB/s", "12.3 MB/s", "688 MB/s"]);
        assert_eq!([count(119.2), count(0.44), duration(4.0), duration(61.0)], ["119", "0.4", "4.0 s", "1m01s"]);
    }
}
