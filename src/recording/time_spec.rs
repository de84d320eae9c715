//! Parses times within a recording, as users type them.

use super::reader::RecordingSpan;

const NS_PER_SEC: i64 = 1_000_000_000;
const NS_PER_DAY: i64 = 86_400 * NS_PER_SEC;

#[derive(Debug, thiserror::Error)]
#[error("\"{0}\": a time is 14:35, 14:35:12, 2026-11-21T14:35:12Z, +90 (after the start) or -10m (before the end)")]
pub(crate) struct TimeError(String);

/// The wall clock (ns) that `text` means: a time of day, date and time, or a distance from the start (`+`) or end
/// (`-`). Times of day are in the zone `offset_secs` east of UTC, and mean the first such time in the recording.
pub(crate) fn parse(text: &str, span: &RecordingSpan, offset_secs: i64) -> Result<i64, TimeError> {
    let text = text.trim();
    let error = || TimeError(text.to_owned());
    let offset = offset_secs.saturating_mul(NS_PER_SEC);
    if let Some(after) = text.strip_prefix('+') {
        return Ok(span.first_ns.saturating_add(parse_duration(after).ok_or_else(error)?));
    }
    if let Some(before) = text.strip_prefix('-') {
        return Ok(span.last_ns.saturating_sub(parse_duration(before).ok_or_else(error)?));
    }
    if let Some((date, time)) = text.split_once(['T', ' ']) {
        let (time, offset) = time.strip_suffix('Z').map_or((time, offset), |time| (time, 0));
        let day_and_time = parse_date(date).zip(parse_time_of_day(time));
        let local = day_and_time.and_then(|(day, time)| day.checked_mul(NS_PER_DAY)?.checked_add(time));
        return local.and_then(|l| l.checked_sub(offset)).ok_or_else(error);
    }
    let time = parse_time_of_day(text).ok_or_else(error)?;
    let first = span.first_ns.saturating_add(offset);
    let mut at = first.div_euclid(NS_PER_DAY).saturating_mul(NS_PER_DAY).saturating_add(time);
    // The minute in which the recording starts is within it, even if its first second is not.
    if at.saturating_add(60 * NS_PER_SEC) <= first {
        at = at.saturating_add(NS_PER_DAY);
    }
    Ok(at.saturating_sub(offset))
}

/// `90`, `90s`, `10m`, `2h`, in ns.
fn parse_duration(text: &str) -> Option<i64> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let factor = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    digits.parse::<i64>().ok()?.checked_mul(factor)?.checked_mul(NS_PER_SEC)
}

/// `14:35` or `14:35:12`, in ns since midnight.
fn parse_time_of_day(text: &str) -> Option<i64> {
    let mut parts = text.split(':');
    let mut part = |most: i64| {
        let word = parts.next()?;
        let plain = (1..=2).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_digit());
        word.parse::<i64>().ok().filter(|n| plain && *n <= most)
    };
    let (h, m) = (part(23)?, part(59)?);
    let s = match text.matches(':').count() {
        1 => 0,
        2 => part(59)?,
        _ => return None,
    };
    Some((h * 3600 + m * 60 + s) * NS_PER_SEC)
}

/// Days from 1970-01-01 to `2026-11-21` (Howard Hinnant's days_from_civil).
fn parse_date(date: &str) -> Option<i64> {
    let mut parts = date.split('-').map(|w| w.parse::<i64>().ok().filter(|_| w.len() <= 4));
    let (y, m, d) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || !(1..=12).contains(&m) || !(1..=31).contains(&d) || y < 1970 {
        return None;
    }
    let y = if m <= 2 { y - 1 } else { y };
    let (era, yoe) = (y.div_euclid(400), y.rem_euclid(400));
    let doy = (153 * (if m > 2 { m - 3 } else { m + 9 }) + 2) / 5 + d - 1;
    Some(era * 146_097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::format_rfc3339;

    /// 2026-11-21 from 22:59:30 to 03:00 the next day, UTC.
    fn example_span() -> RecordingSpan {
        let first_ns = parse("2026-11-21T22:59:30Z", &RecordingSpan::default(), 0).unwrap();
        RecordingSpan {
            first_ns,
            last_ns: first_ns + 4 * 3600 * NS_PER_SEC + 30 * NS_PER_SEC,
            ..RecordingSpan::default()
        }
    }

    #[test]
    fn every_time_format_is_parsed() {
        for (text, offset, is) in [
            ("22:59", 0, "2026-11-21T22:59:00Z"),
            ("23:10:05", 0, "2026-11-21T23:10:05Z"),
            ("01:00", 0, "2026-11-22T01:00:00Z"),
            ("01:00", 3600, "2026-11-22T00:00:00Z"),
            ("+90", 0, "2026-11-21T23:01:00Z"),
            ("-10m", 0, "2026-11-22T02:50:00Z"),
            ("2026-11-22 00:30", 3600, "2026-11-21T23:30:00Z"),
            ("2024-02-29T12:00:01Z", 3600, "2024-02-29T12:00:01Z"),
        ] {
            let found = format_rfc3339(parse(text, &example_span(), offset).unwrap());
            assert_eq!(found.replace(".000Z", "Z"), is, "{text}");
        }
    }

    #[test]
    fn invalid_times_are_rejected_with_examples() {
        for text in ["", "25:00", "1:2:3:4", "+", "-x", "2026-13-01T00:00", "now", "+99999999999999h", "１２:00"] {
            let why = parse(text, &example_span(), 0).unwrap_err().to_string();
            assert!(why.contains("14:35"), "{text}: {why}");
        }
    }
}
