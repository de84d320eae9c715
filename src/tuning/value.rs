//! Converts values between what users type, what the kernel takes, and what is displayed.

use super::knob::{AllowedValues, Knob, KnobReading, KnobUnit, RangeBound};
use super::machine_limits::MachineLimits;
use crate::model::process::IoPrio;
use crate::units;
use std::borrow::Cow;

/// A typed value that the knob does not accept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} {problem}; allowed: {allowed}")]
pub(crate) struct ValueError {
    /// What was typed.
    pub text: String,
    pub problem: Cow<'static, str>,
    pub allowed: String,
}

/// Converts typed text to the value to write.
/// Errors: if the text is not a valid value; the error names the allowed range.
pub(crate) fn parse_value(
    knob: &Knob,
    text: &str,
    limits: &MachineLimits,
    reading: &KnobReading,
) -> Result<String, ValueError> {
    let parsed = parse_allowed(knob, text.trim(), limits, reading);
    parsed.map_err(|problem| ValueError {
        text: text.to_owned(),
        problem,
        allowed: describe_allowed(knob, limits, reading),
    })
}

fn parse_allowed(
    knob: &Knob,
    text: &str,
    limits: &MachineLimits,
    reading: &KnobReading,
) -> Result<String, Cow<'static, str>> {
    match knob.values {
        AllowedValues::Range(min, max) => {
            let n = parse_number(knob, text, limits)?;
            let (min, max) = (resolve_bound(min, limits, reading), resolve_bound(max, limits, reading));
            if min.is_some_and(|min| n < min) || max.is_some_and(|max| n > max) {
                return Err("is out of range".into());
            }
            let page_kb = limits.page_bytes as i64 / 1024;
            if knob.name == "read_ahead_kb" && page_kb > 0 && n % page_kb != 0 {
                return Err("is not a multiple of the page size".into());
            }
            Ok(n.to_string())
        }
        AllowedValues::Listed if reading.choices.iter().any(|c| c == text) => Ok(text.to_owned()),
        AllowedValues::Listed => Err("is not offered by this kernel or device".into()),
        AllowedValues::Nofile => parse_nofile(text, limits, reading),
        AllowedValues::IoPrio => parse_io_prio(text).map(|p| p.to_string()).ok_or("is not an I/O priority".into()),
        AllowedValues::Atime => parse_atime(text).ok_or("is not an access time option".into()),
    }
}

/// Whether the kernel could have produced this value: only such values are restored from a journal.
pub(crate) fn is_plausible(knob: &Knob, value: &str) -> bool {
    match knob.values {
        AllowedValues::Range(..) => value.len() <= 20 && value.parse::<i128>().is_ok(),
        AllowedValues::Listed => {
            let ok = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'+');
            (1..=64).contains(&value.len()) && value.bytes().all(ok)
        }
        AllowedValues::Nofile => {
            value.split_once(':').is_some_and(|(s, h)| parse_file_limit(s).is_some() && parse_file_limit(h).is_some())
        }
        AllowedValues::IoPrio => parse_io_prio(value).is_some(),
        AllowedValues::Atime => parse_atime(value).as_deref() == Some(value),
    }
}

pub(crate) fn describe_allowed(knob: &Knob, limits: &MachineLimits, reading: &KnobReading) -> String {
    match knob.values {
        AllowedValues::Range(min, max) => {
            let describe_bound = |b| match resolve_bound(b, limits, reading) {
                Some(n) => format_with_unit(knob.unit, &n.to_string()),
                None => "whatever the kernel accepts".into(),
            };
            let also = match knob.name {
                "vm.dirty_bytes" | "vm.dirty_background_bytes" => ", also K M G or a percentage of dirtyable memory",
                "vm.dirty_ratio" | "vm.dirty_background_ratio" => ", also a size in K M G",
                _ => "",
            };
            format!("{} to {}{also}", describe_bound(min), describe_bound(max))
        }
        AllowedValues::Listed if reading.choices.is_empty() => "the words the kernel's file lists".into(),
        AllowedValues::Listed => reading.choices.join(", "),
        AllowedValues::Nofile => match limits.nr_open {
            Some(max) => format!("SOFT or SOFT:HARD, at most {max} (fs.nr_open)"),
            None => "SOFT or SOFT:HARD".into(),
        },
        AllowedValues::IoPrio => "none, idle, be/0 to be/7, rt/0 to rt/7".into(),
        AllowedValues::Atime => "noatime, relatime or strictatime, and nodiratime after a comma".into(),
    }
}

/// Formats a value with its meaning: `16777216 (16.0 MiB)`, `3000 (30 s)`, `10 % (2.29 GiB here)`.
pub(crate) fn format_with_meaning(knob: &Knob, value: &str, limits: &MachineLimits) -> String {
    let plain = format_with_unit(knob.unit, value);
    let (Ok(n), AllowedValues::Range(..)) = (value.parse::<u64>(), knob.values) else { return plain };
    let here = match knob.unit {
        _ if n == 0 || !knob.is_pair() => None,
        KnobUnit::Percent => limits.percent_to_bytes(n).map(|b| format!(" ({} here)", units::format_bytes_long(b))),
        _ => limits.bytes_to_percent(n).map(|percent| format!(", {percent:.1} % here")),
    };
    plain + &here.unwrap_or_default()
}

/// Formats a value with its unit in a few characters: `16.0 MiB`, `3000 cs`, `10 %`.
pub(crate) fn format_short(knob: &Knob, value: &str) -> String {
    let number = matches!(knob.values, AllowedValues::Range(..)).then(|| value.parse::<u64>().ok()).flatten();
    match (knob.unit, number) {
        (_, None) => value.to_owned(),
        (KnobUnit::Bytes, Some(n)) if n > 0 => units::format_bytes_long(n),
        (KnobUnit::KiB, Some(n)) if n >= 1024 => units::format_bytes_long(n.saturating_mul(1024)),
        (KnobUnit::Centisecs, _) => format!("{value} cs"),
        (unit, _) => format!("{value}{}", unit_suffix(unit)),
    }
}

fn format_with_unit(unit: KnobUnit, value: &str) -> String {
    let n = value.parse::<u64>().unwrap_or(0);
    let plain = format!("{value}{}", unit_suffix(unit));
    match unit {
        KnobUnit::Bytes if n >= 1024 => format!("{plain} ({})", units::format_bytes_long(n)),
        KnobUnit::KiB if n >= 1024 => format!("{plain} ({})", units::format_bytes_long(n.saturating_mul(1024))),
        KnobUnit::Centisecs if n > 0 => format!("{plain} ({} s)", n as f64 / 100.0),
        _ => plain,
    }
}

fn unit_suffix(unit: KnobUnit) -> &'static str {
    match unit {
        KnobUnit::Percent => " %",
        KnobUnit::KiB => " KiB",
        KnobUnit::Seconds => " s",
        KnobUnit::Microsecs => " us",
        _ => "",
    }
}

/// A bound on this machine; `None` if what it depends on could not be read.
fn resolve_bound(bound: RangeBound, limits: &MachineLimits, reading: &KnobReading) -> Option<i64> {
    match bound {
        RangeBound::Fixed(n) => Some(n),
        RangeBound::Pages(n) => Some(n * limits.page_bytes as i64),
        RangeBound::PageKb => Some(limits.page_bytes as i64 / 1024),
        RangeBound::Memory => limits.memory_bytes.and_then(|m| i64::try_from(m).ok()),
        RangeBound::MemoryKb(parts) => {
            limits.memory_bytes.and_then(|m| i64::try_from(m / 1024).ok()).map(|kb| kb / parts)
        }
        RangeBound::HwSectorsKb => reading.max,
    }
}

fn parse_number(knob: &Knob, text: &str, limits: &MachineLimits) -> Result<i64, Cow<'static, str>> {
    match (knob.unit, text) {
        (KnobUnit::Switch, "on" | "yes") => return Ok(1),
        (KnobUnit::Switch, "off" | "no") => return Ok(0),
        _ => {}
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let suffix_start = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len()) + text.len() - digits.len();
    let (digits, suffix) = text.split_at(suffix_start);
    let suffix = suffix.trim();
    if !digits.bytes().any(|b| b.is_ascii_digit()) {
        return Err("is not a number".into());
    }
    let n = digits.parse::<i64>().map_err(|_| "is too large")?;
    let is_pair = knob.is_pair();
    match (knob.unit, size_factor(suffix), suffix) {
        (_, _, "") => Ok(n),
        (KnobUnit::Percent, _, "%") => Ok(n),
        (KnobUnit::Bytes, _, "%") if is_pair => {
            let percent = u64::try_from(n).ok().filter(|n| *n <= 100).ok_or("is not a percentage of memory")?;
            let bytes = limits.percent_to_bytes(percent).ok_or("cannot be converted: dirtyable memory unknown")?;
            Ok(bytes as i64)
        }
        (KnobUnit::Percent, Some(factor), _) if is_pair => {
            let bytes = n.checked_mul(factor).and_then(|b| u64::try_from(b).ok()).ok_or("is too large")?;
            let percent = limits.bytes_to_percent(bytes).ok_or("cannot be converted: dirtyable memory unknown")?;
            match percent.round() as i64 {
                0 => Err(format!("is {percent:.2} % of dirtyable memory here: set the _bytes knob instead").into()),
                whole => Ok(whole),
            }
        }
        (KnobUnit::Bytes, Some(factor), _) => n.checked_mul(factor).ok_or_else(|| "is too large".into()),
        (KnobUnit::KiB, Some(factor), _) => {
            let bytes = n.checked_mul(factor).ok_or("is too large")?;
            if bytes % 1024 == 0 { Ok(bytes / 1024) } else { Err("is not a whole number of KiB".into()) }
        }
        (unit @ (KnobUnit::Centisecs | KnobUnit::Seconds | KnobUnit::Microsecs), ..) => {
            let us = n.checked_mul(micros_factor(suffix).ok_or("has an unknown unit")?).ok_or("is too large")?;
            let each = match unit {
                KnobUnit::Centisecs => 10_000,
                KnobUnit::Seconds => 1_000_000,
                _ => 1,
            };
            if us % each == 0 { Ok(us / each) } else { Err("is finer than the knob".into()) }
        }
        _ => Err("has an unknown unit".into()),
    }
}

/// The bytes of a size suffix, in powers of 1024.
fn size_factor(suffix: &str) -> Option<i64> {
    let lower = suffix.to_ascii_lowercase();
    let power = match lower.strip_suffix("ib").or(lower.strip_suffix('b')).unwrap_or(&lower) {
        "" if !lower.is_empty() => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    Some(1 << (10 * power))
}

/// The microseconds of a time suffix.
fn micros_factor(suffix: &str) -> Option<i64> {
    Some(match suffix {
        "us" => 1,
        "ms" => 1000,
        "cs" => 10_000,
        "s" => 1_000_000,
        "m" | "min" => 60_000_000,
        "h" => 3_600_000_000,
        _ => return None,
    })
}

/// A limit of open files; the inner `None` means unlimited.
pub(super) fn parse_file_limit(text: &str) -> Option<Option<u64>> {
    if text == "unlimited" { Some(None) } else { text.parse().ok().map(Some) }
}

fn parse_nofile(text: &str, limits: &MachineLimits, reading: &KnobReading) -> Result<String, Cow<'static, str>> {
    let hard_now = reading.value.split_once(':').and_then(|(_, hard)| parse_file_limit(hard)).flatten();
    let (soft, hard) = match text.split_once(':') {
        Some((soft, hard)) => (soft.parse().ok(), hard.parse().ok()),
        None => {
            let soft: Option<u64> = text.parse().ok();
            (soft, soft.map(|s| hard_now.map_or(s, |h| h.max(s))))
        }
    };
    let (Some(soft), Some(hard)) = (soft, hard) else { return Err("is not a number of files".into()) };
    if soft > hard {
        return Err("has a soft limit above the hard limit".into());
    }
    // With only a handful of descriptors, the process could not open anything any more.
    if soft < 16 || limits.nr_open.is_some_and(|max| hard > max) {
        return Err("is out of range (from 16)".into());
    }
    Ok(format!("{soft}:{hard}"))
}

pub(super) fn parse_io_prio(text: &str) -> Option<IoPrio> {
    let (class, level) = text.split_once('/').unwrap_or((text, ""));
    let with_level = |class| Some(IoPrio { class, level: level.parse().ok().filter(|l| *l <= 7)? });
    match class {
        "none" if text == class => Some(IoPrio { class: 0, level: 0 }),
        "rt" => with_level(1),
        "be" => with_level(2),
        "idle" if text == class => Some(IoPrio { class: 3, level: 0 }),
        _ => None,
    }
}

fn parse_atime(text: &str) -> Option<String> {
    let (mut mode, mut nodir) = (None, false);
    for word in text.split(',') {
        match word {
            "nodiratime" if !nodir => nodir = true,
            "noatime" | "relatime" | "strictatime" if mode.is_none() => mode = Some(word),
            _ => return None,
        }
    }
    Some(format!("{}{}", mode?, if nodir { ",nodiratime" } else { "" }))
}

#[cfg(test)]
mod tests {
    use super::super::knobs::{KNOBS, find_knob};
    use super::*;
    use proptest::prelude::*;

    fn machine_limits() -> MachineLimits {
        MachineLimits {
            page_bytes: 4096,
            memory_bytes: Some(24 << 30),
            dirtyable_bytes: Some(20 << 30),
            nr_open: Some(1 << 20),
            has_cap_sys_resource: true,
        }
    }

    fn current_reading() -> KnobReading {
        KnobReading { value: "1024:4096".into(), choices: vec!["none".into(), "mq-deadline".into()], max: Some(1280) }
    }

    fn parse(name: &str, text: &str) -> Result<String, ValueError> {
        parse_value(find_knob(name).unwrap(), text, &machine_limits(), &current_reading())
    }

    #[test]
    fn units_are_parsed() {
        for (name, text, want) in [
            ("vm.dirty_bytes", "16M", "16777216"),
            ("vm.dirty_bytes", "16MiB", "16777216"),
            ("vm.dirty_bytes", "8192b", "8192"),
            ("vm.dirty_bytes", "5%", "1073741824"),
            ("vm.dirty_ratio", "50%", "50"),
            ("vm.dirty_ratio", "2G", "10"),
            ("vm.dirty_expire_centisecs", "30s", "3000"),
            ("vm.dirty_expire_centisecs", "1500ms", "150"),
            ("vm.dirty_writeback_centisecs", "0", "0"),
            ("vm.min_free_kbytes", "64M", "65536"),
            ("wbt_lat_usec", "2ms", "2000"),
            ("wbt_lat_usec", "-1", "-1"),
            ("kernel.hung_task_timeout_secs", "2min", "120"),
            ("kernel.task_delayacct", "on", "1"),
            ("scheduler", "mq-deadline", "mq-deadline"),
            ("nofile", "40000", "40000:40000"),
            ("nofile", "2000", "2000:4096"),
            ("nofile", "10:20", ""),
            ("ioprio", "be/7", "be/7"),
            ("atime", "noatime,nodiratime", "noatime,nodiratime"),
            ("atime", "nodiratime,relatime", "relatime,nodiratime"),
        ] {
            assert_eq!(parse(name, text).unwrap_or_default(), want, "{name}={text}");
        }
    }

    #[test]
    fn invalid_values_are_refused_with_the_allowed_range() {
        for (name, text) in [
            ("vm.dirty_ratio", "0"),
            ("vm.dirty_ratio", "101"),
            ("vm.dirty_ratio", "-1"),
            ("vm.dirty_ratio", "twenty"),
            ("vm.dirty_ratio", ""),
            ("vm.dirty_ratio", "20s"),
            ("vm.dirty_ratio", "1M"),
            ("vm.dirty_ratio", "20.5"),
            ("vm.dirty_bytes", "8191"),
            ("vm.dirty_bytes", "0"),
            ("vm.dirty_bytes", "25G"),
            ("vm.dirty_bytes", "99999999999999999999"),
            ("vm.dirty_bytes", "9223372036854775807T"),
            ("vm.dirty_bytes", "101%"),
            ("vm.dirty_bytes", "16X"),
            ("vm.dirty_background_ratio", "0"),
            ("vm.dirty_expire_centisecs", "1ms"),
            ("vm.swappiness", "201"),
            ("vm.swappiness", "60%"),
            ("vm.page-cluster", "11"),
            ("vm.min_free_kbytes", "3G"),
            ("vm.min_free_kbytes", "0"),
            ("vm.watermark_scale_factor", "0"),
            ("scheduler", "bfq"),
            ("scheduler", "../../x"),
            ("read_ahead_kb", "130"),
            ("max_sectors_kb", "2048"),
            ("max_sectors_kb", "2"),
            ("nr_requests", "3"),
            ("wbt_lat_usec", "-2"),
            ("bdi.max_ratio", "101"),
            ("bdi.strict_limit", "2"),
            ("kernel.task_delayacct", "2"),
            ("nofile", "5000:4000"),
            ("nofile", "1048577"),
            ("nofile", "15"),
            ("ioprio", "rt/8"),
            ("ioprio", "be"),
            ("atime", "noatime,relatime"),
            ("atime", "nodiratime"),
        ] {
            let why = parse(name, text).expect_err(&format!("{name}={text}")).to_string();
            assert!(why.contains("allowed: "), "{why}");
        }
        assert!(parse("vm.dirty_bytes", "1").unwrap_err().to_string().contains("8192 (8.00 KiB) to 25769803776"));
        assert!(parse("scheduler", "bfq").unwrap_err().to_string().contains("none, mq-deadline"));
    }

    #[test]
    fn values_are_shown_with_their_meaning() {
        let show = |name, v| format_with_meaning(find_knob(name).unwrap(), v, &machine_limits());
        assert_eq!(show("vm.dirty_ratio", "10"), "10 % (2.00 GiB here)");
        assert_eq!(show("vm.dirty_bytes", "1073741824"), "1073741824 (1.00 GiB), 5.0 % here");
        assert_eq!(show("vm.dirty_bytes", "0"), "0");
        assert_eq!(show("vm.dirty_expire_centisecs", "3000"), "3000 (30 s)");
        let brief = |name, v| format_short(find_knob(name).unwrap(), v);
        assert_eq!(brief("vm.dirty_bytes", "16777216"), "16.0 MiB");
        assert_eq!(brief("vm.dirty_bytes", "0"), "0");
        assert_eq!(brief("wbt_lat_usec", "-1"), "-1");
        assert_eq!(brief("vm.dirty_writeback_centisecs", "500"), "500 cs");
        assert_eq!(brief("scheduler", "none"), "none");
    }

    proptest! {
        #[test]
        fn whatever_is_accepted_is_in_range_plausible_and_stable(n in 0..KNOBS.len(), text in "-?[0-9]{0,20}[a-zA-Z%/:,]{0,12}") {
            let knob = &KNOBS[n];
            if let Ok(value) = parse_value(knob, &text, &machine_limits(), &current_reading()) {
                prop_assert!(is_plausible(knob, &value), "{} {}", knob.name, value);
                prop_assert_eq!(parse_value(knob, &value, &machine_limits(), &current_reading()).unwrap(), value.clone());
                if let (AllowedValues::Range(min, max), Ok(v)) = (knob.values, value.parse::<i64>()) {
                    prop_assert!(resolve_bound(min, &machine_limits(), &current_reading()).unwrap() <= v);
                    prop_assert!(v <= resolve_bound(max, &machine_limits(), &current_reading()).unwrap());
                }
            }
        }

        #[test]
        fn any_text_at_all(n in 0..KNOBS.len(), text in "\\PC{0,30}") {
            let _ = parse_value(&KNOBS[n], &text, &machine_limits(), &current_reading());
            let _ = is_plausible(&KNOBS[n], &text);
        }
    }
}
