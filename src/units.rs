//! Formats numbers for people. Byte units are powers of 1024, as in iotop, iostat and the kernel.

use std::fmt::Write;

/// A byte count in at most five characters: `0`, `812B`, `48.1K`, `12.3M`, `1.00G`.
pub fn write_bytes(out: &mut impl Write, bytes: f64) {
    const UNITS: [char; 7] = ['B', 'K', 'M', 'G', 'T', 'P', 'E'];
    if bytes < 0.0 {
        let _ = out.write_char('-');
        return write_bytes(out, -bytes);
    }
    if bytes < 0.5 {
        let _ = out.write_char('0');
        return;
    }
    let (mut n, mut unit) = (bytes, 0);
    // 999.5 would be shown as 1000: use the next unit before a fifth digit is needed.
    while n >= 999.5 && unit < UNITS.len() - 1 {
        n /= 1024.0;
        unit += 1;
    }
    let _ = match (unit, n) {
        (0, n) => write!(out, "{n:.0}"),
        (_, n) if n < 9.995 => write!(out, "{n:.2}"),
        (_, n) if n < 99.95 => write!(out, "{n:.1}"),
        (_, n) => write!(out, "{n:.0}"),
    };
    let _ = out.write_char(UNITS[unit]);
}

/// [`write_bytes`] as a string.
pub fn format_bytes(n: u64) -> String {
    let mut out = String::new();
    write_bytes(&mut out, n as f64);
    out
}

/// A byte count with a spelled-out unit: `488 MiB`, `1.50 GiB`, `0 B`.
pub fn format_bytes_long(n: u64) -> String {
    let short = format_bytes(n);
    match short.chars().last() {
        Some(unit @ ('K' | 'M' | 'G' | 'T' | 'P' | 'E')) => format!("{} {unit}iB", &short[..short.len() - 1]),
        Some('B') => format!("{} B", &short[..short.len() - 1]),
        _ => format!("{short} B"),
    }
}

/// Bytes in a form that [`parse_bytes`] reads back exactly: `1G`, `22M`, `2300`.
pub fn format_bytes_exact(n: u64) -> String {
    let unit = |shift: u32| n > 0 && n.is_multiple_of(1 << shift);
    match [(40, 'T'), (30, 'G'), (20, 'M'), (10, 'k')].into_iter().find(|(shift, _)| unit(*shift)) {
        Some((shift, sign)) => format!("{}{sign}", n >> shift),
        None => n.to_string(),
    }
}

/// Parses bytes with an optional k, M, G or T (powers of 1024).
///
/// # Errors
///
/// What is wrong with the text.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim_end_matches("iB").trim_end_matches('B');
    let (digits, shift) = match text.char_indices().next_back() {
        Some((at, unit)) if unit.is_ascii_alphabetic() => {
            let shift = "kmgt".find(unit.to_ascii_lowercase()).ok_or("units are k, M, G, T")?;
            (&text[..at], 10 * (shift as u32 + 1))
        }
        _ => (text, 0),
    };
    let n: u64 = digits.parse().map_err(|_| "is not a size such as 4096, 4k, 512M")?;
    n.checked_mul(1 << shift).ok_or_else(|| "is too large".into())
}

/// A count in at most five characters: `12`, `1234`, `12.3k`, `1.2M` (powers of 1000).
pub fn write_count(out: &mut impl Write, n: f64) {
    let _ = match n.abs() {
        a if a < 99_999.5 => write!(out, "{n:.0}"),
        a if a < 999_950.0 => write!(out, "{:.0}k", n / 1e3),
        a if a < 99_950_000.0 => write!(out, "{:.1}M", n / 1e6),
        a if a < 999_500_000.0 => write!(out, "{:.0}M", n / 1e6),
        _ => write!(out, "{:.1}G", n / 1e9),
    };
}

/// A duration in at most two units: `12s`, `4m05s`, `3h12m`, `12d 4h`.
pub fn format_duration(secs: u64) -> String {
    match secs {
        0..60 => format!("{secs}s"),
        60..3600 => format!("{}m{:02}s", secs / 60, secs % 60),
        3600..86_400 => format!("{}h{:02}m", secs / 3600, secs / 60 % 60),
        _ => format!("{}d {}h", secs / 86_400, secs / 3600 % 24),
    }
}

/// A duration: `250 ms`, `2.0 s`, `45 s`, `4m05s`.
pub fn format_seconds(secs: f64) -> String {
    match secs {
        secs if secs < 0.9995 => format!("{:.0} ms", secs * 1e3),
        secs if secs < 10.0 => format!("{secs:.1} s"),
        secs if secs < 60.0 => format!("{} s", secs as u64),
        secs => format_duration(secs as u64),
    }
}

/// Writes an age in four cells, right-aligned: ` 12s`, `  4m`, ` 23h`, `400d`.
pub fn write_age(out: &mut impl Write, secs: u64) {
    let _ = match secs {
        0..60 => write!(out, "{secs:>3}s"),
        60..3600 => write!(out, "{:>3}m", secs / 60),
        3600..172_800 => write!(out, "{:>3}h", secs / 3600),
        _ => write!(out, "{:>3}d", secs / 86_400),
    };
}

/// Microseconds in at most three digits and a unit: `44 us`, `1.2 ms`, `12 s`.
pub fn format_micros(us: f64) -> String {
    let (n, unit) = match us {
        us if us < 999.5 => (us, "us"),
        us if us < 999_500.0 => (us / 1e3, "ms"),
        us => (us / 1e6, "s"),
    };
    if n < 9.95 { format!("{n:.1} {unit}") } else { format!("{n:.0} {unit}") }
}

/// Wall time of day in UTC plus `offset_secs`: `14:35:12`.
pub fn format_time_of_day(wall_ns: i64, offset_secs: i64) -> String {
    let mut out = String::with_capacity(8);
    write_time_of_day(&mut out, wall_ns, offset_secs);
    out
}

/// Like [`format_time_of_day`], into `out`.
pub fn write_time_of_day(out: &mut impl Write, wall_ns: i64, offset_secs: i64) {
    let secs = (wall_ns.div_euclid(1_000_000_000) + offset_secs).rem_euclid(86_400);
    let _ = write!(out, "{:02}:{:02}:{:02}", secs / 3600, secs / 60 % 60, secs % 60);
}

/// RFC 3339 in UTC with milliseconds: `2026-01-31T09:08:07.123Z`.
pub fn format_rfc3339(wall_ns: i64) -> String {
    let secs = wall_ns.div_euclid(1_000_000_000);
    let ms = wall_ns.rem_euclid(1_000_000_000) / 1_000_000;
    let (y, m, d) = civil_from_days(secs.div_euclid(86_400));
    let s = secs.rem_euclid(86_400);
    format!("{y:04}-{m:02}-{d:02}T{:02}:{:02}:{:02}.{ms:03}Z", s / 3600, s / 60 % 60, s % 60)
}

/// RFC 3339 with milliseconds, in the time zone `utc_offset_secs` east of UTC: `2026-01-31T10:08:07.123+01:00`.
pub fn format_rfc3339_in(wall_ns: i64, utc_offset_secs: i64) -> String {
    let offset_mins = utc_offset_secs / 60;
    if offset_mins == 0 {
        return format_rfc3339(wall_ns);
    }
    let mut out = format_rfc3339(wall_ns.saturating_add(utc_offset_secs.saturating_mul(1_000_000_000)));
    out.pop();
    let sign = if offset_mins < 0 { '-' } else { '+' };
    let mins = offset_mins.unsigned_abs();
    out.push_str(&format!("{sign}{:02}:{:02}", mins / 60, mins % 60));
    out
}

/// Year, month and day of a number of days since 1970-01-01 (Howard Hinnant's `civil_from_days`).
fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month as u32, (doy - (153 * mp + 2) / 5 + 1) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn micros_have_at_most_three_digits() {
        let shown = [0.31, 9.94, 9.96, 80.6, 999.4, 999.6, 12_345.0, 999_400.0, 1_500_000.0].map(format_micros);
        assert_eq!(shown, ["0.3 us", "9.9 us", "10 us", "81 us", "999 us", "1.0 ms", "12 ms", "999 ms", "1.5 s"]);
    }

    fn formatted(n: f64) -> String {
        let mut s = String::new();
        write_bytes(&mut s, n);
        s
    }

    #[test]
    fn bytes_never_need_more_than_five_characters() {
        assert_eq!(formatted(0.0), "0");
        assert_eq!(formatted(812.0), "812B");
        assert_eq!(formatted(1023.0), "1.00K");
        assert_eq!(formatted(49_254.4), "48.1K");
        assert_eq!(formatted(12.3 * 1_048_576.0), "12.3M");
        for e in 0..64 {
            for d in [0.0, 0.4999, 0.996, 0.9996] {
                let n = 2f64.powi(e) * (1.0 + d);
                assert!(formatted(n).len() <= 5, "{n} -> {}", formatted(n));
            }
        }
        assert_eq!(format_bytes_long(488 << 20), "488 MiB");
        assert_eq!(format_bytes_long(0), "0 B");
        assert_eq!(format_bytes_long(12), "12 B");
    }

    #[test]
    fn counts_spans_and_dates() {
        let mut s = String::new();
        write_count(&mut s, 102_963.0);
        assert_eq!(s, "103k");
        assert_eq!(
            (format_duration(59), format_duration(245), format_duration(90_000)),
            ("59s".into(), "4m05s".into(), "1d 1h".into())
        );
        assert_eq!([0.25, 2.0, 45.7, 245.0].map(format_seconds), ["250 ms", "2.0 s", "45 s", "4m05s"]);
        let age = |secs| {
            let mut out = String::new();
            write_age(&mut out, secs);
            out
        };
        assert_eq!([7, 3599, 86_400, 40_000_000].map(age), ["  7s", " 59m", " 24h", "462d"]);
        assert_eq!(format_rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(format_rfc3339_in(0, 5 * 3600 + 1800), "1970-01-01T05:30:00.000+05:30");
        assert_eq!(format_rfc3339_in(0, -3600), "1969-12-31T23:00:00.000-01:00");
        assert_eq!(format_rfc3339_in(0, 0), format_rfc3339(0));
        assert_eq!(format_rfc3339(1_709_251_199_999_000_000), "2024-02-29T23:59:59.999Z");
        assert_eq!(format_time_of_day(52_512_000_000_000, 0), "14:35:12");
    }
}
