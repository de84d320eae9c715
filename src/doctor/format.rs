//! Figures as findings write them.

use crate::units;

/// `0.06 ms`, `4.1 ms`, `480 ms`, `12.4 s`.
pub fn ms(ms: f64) -> String {
    match ms {
        m if m >= 10_000.0 => format!("{:.1} s", m / 1000.0),
        m if m >= 100.0 => format!("{m:.0} ms"),
        m if m >= 1.0 => format!("{m:.1} ms"),
        m => format!("{m:.2} ms"),
    }
}

/// `12 MiB`.
pub fn bytes(n: f64) -> String {
    units::format_bytes_long(n.max(0.0) as u64)
}

/// `12.3 MiB/s`.
pub fn bytes_per_s(bytes_per_s: f64) -> String {
    format!("{}/s", bytes(bytes_per_s))
}

/// Rates in iostat's MB (2^20): `0.27 MB/s`, `145 MB/s`.
pub fn mb_per_s(mb_per_s: f64) -> String {
    match mb_per_s {
        m if m >= 100.0 => format!("{m:.0} MB/s"),
        m if m >= 10.0 => format!("{m:.1} MB/s"),
        m => format!("{m:.2} MB/s"),
    }
}

/// `119`, `9.6`, `0.4`.
pub fn count(n: f64) -> String {
    if n >= 10.0 { format!("{n:.0}") } else { format!("{n:.1}") }
}

/// `42 %`.
pub fn percent(n: f64) -> String {
    format!("{n:.0} %")
}

/// Seconds as a span.
pub fn duration(s: f64) -> String {
    if s < 10.0 { format!("{s:.1} s") } else { units::format_duration(s as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_significant_digits() {
        assert_eq!([ms(0.058), ms(4.12), ms(480.3), ms(12_400.0)], ["0.06 ms", "4.1 ms", "480 ms", "12.4 s"]);
        assert_eq!([mb_per_s(0.27), mb_per_s(12.34), mb_per_s(688.0)], ["0.27 MB/s", "12.3 MB/s", "688 MB/s"]);
        assert_eq!([count(119.2), count(0.44), duration(4.0), duration(61.0)], ["119", "0.4", "4.0 s", "1m01s"]);
    }
}
