//! What to know before believing a figure.

use super::{End, Part, Report};
use crate::units::format_bytes_long;

/// Application to device bytes from which a figure is a cache's.
const CACHE_RATIO: f64 = 1.5;
/// Shortest counted time that says something about steady state, s.
const SHORT_S: f64 = 10.0;
/// Of a part with fewer operations percentiles above p99 are guesswork.
const FEW: u64 = 1000;
/// Foreign share of the device's bytes from which it is worth a word.
const NEIGHBOUR: f64 = 0.10;

/// Whether the application's figure is far above what the device really did.
pub fn is_cache(part: &Part) -> bool {
    part.app_to_device().is_some_and(|ratio| ratio > CACHE_RATIO)
        && part.read.bytes + part.write.bytes > 8 << 20
}

/// Everything that applies to `report`.
pub fn of(report: &Report) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(t) = &report.target {
        if t.memory {
            all.push("the directory is on tmpfs: these are figures of memory, whatever O_DIRECT says".into());
        }
        if t.stacked {
            all.push(format!(
                "{} passes I/O on to other file systems; their devices are not watched here",
                t.filesystem
            ));
        }
        if t.device.as_deref().is_some_and(|d| d.starts_with("7:")) {
            all.push(
                "on a loop device: the cache below it may answer; the disk under its file is not watched"
                    .into(),
            );
        }
        if t.network {
            all.push("a network is in between: its figures and its server's caches are in the result".into());
        }
        // With --readahead every pass is a cold one, and checked below.
        if !report.plan.direct && !report.plan.readahead {
            all.push("buffered: the page cache takes part in these figures".into());
        }
    }
    for part in &report.parts {
        one(part, report, &mut all);
    }
    all.extend(sweep_stalls(report));
    all
}

/// A sweep's stalls in one line: with large blocks on a slow disk every operation is one.
fn sweep_stalls(report: &Report) -> Option<String> {
    let stalled = || report.parts.iter().filter(|p| p.stalls.count > 0);
    let worst = stalled().max_by_key(|p| p.stalls.longest_ns).filter(|_| super::sweep::is_one(report))?;
    Some(format!(
        "{} of {} steps had 100 ms or more without any completion; the longest {:.2} s at {}",
        stalled().count(),
        report.parts.len(),
        worst.stalls.longest_ns as f64 / 1e9,
        worst.label
    ))
}

fn one(part: &Part, report: &Report, all: &mut Vec<String>) {
    let name = &part.label;
    let ios = part.read.ios + part.write.ios;
    if is_cache(part) && (report.plan.direct || report.plan.readahead) {
        all.push(format!(
            "{name}: the program moved {}/s and the device {}/s: a cache answered, not the device",
            format_bytes_long(part.bytes_per_s() as u64),
            format_bytes_long(device_bytes_per_s(part) as u64)
        ));
    }
    if let (Some(ratio), true) = (part.app_to_device(), report.plan.direct) {
        let foreign = 1.0 - ratio;
        if foreign > NEIGHBOUR && ios > 0 && part.sync.ios == 0 && part.secs() >= 1.0 {
            all.push(format!(
                "{name}: {:.0} % of what the device moved was not this run's: somebody else works on it",
                foreign * 100.0
            ));
        }
    }
    if report.plan.time_ms > 0
        // A run of ten seconds ends with the last completion before they are over.
        && part.secs() < SHORT_S * 0.99
        && part.read.bytes + part.write.bytes > 0
        && report.parts.len() == 1
    {
        all.push(format!("{name}: {:.1} s are too short for bursts and caches to show", part.secs()));
    }
    if ios > 0 && ios < FEW && report.parts.len() == 1 {
        all.push(format!("{name}: only {ios} operations: percentiles above p90 are guesswork"));
    }
    if part.stalls.count > 0 && part.verb.is_empty() && !super::sweep::is_one(report) {
        all.push(format!(
            "{name}: {} {} of at least 100 ms without any completion, {:.1} s together, the longest {:.2} s",
            part.stalls.count,
            if part.stalls.count == 1 { "stall" } else { "stalls" },
            part.stalls.total_ns as f64 / 1e9,
            part.stalls.longest_ns as f64 / 1e9
        ));
    }
    if let (Some((before, after)), End::Complete) = (burst(part), &report.end) {
        all.push(format!(
            "{name}: {before:.0} IOPS at first, {after:.0} at the end: burst credits used up, as cloud volumes do, \
             or a write cache that ran full. The later figure is what lasts"
        ));
    }
}

fn device_bytes_per_s(part: &Part) -> f64 {
    part.device.as_ref().map_or(0.0, |d| (d.read_mb_per_s + d.write_mb_per_s) * 1_048_576.0)
}

/// Mean IOPS of the first fifth and the last, if the rate fell to less than half and stayed there.
pub fn burst(part: &Part) -> Option<(f64, f64)> {
    let n = part.series.len();
    if n < 20 {
        return None;
    }
    let mean = |range: std::ops::Range<usize>| {
        let len = range.len() as f64;
        part.series[range].iter().map(|p| p.read_iops + p.write_iops).sum::<f64>() / len
    };
    let fifth = n / 5;
    let (first, last, before_last) = (mean(0..fifth), mean(n - fifth..n), mean(n - 2 * fifth..n - fifth));
    // A last fifth that is slow by chance is not a pattern: the one before has to be slow as well.
    (last < first * 0.5 && before_last < first * 0.65).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::measure::latency::Direction;
    use crate::bench::report::Point;
    use crate::model::disk::DiskRate;

    fn part(app_mib: u64, device_mib: f64) -> Part {
        Part {
            label: "p".into(),
            elapsed_ns: 20_000_000_000,
            device_ns: 20_000_000_000,
            read: Direction { ios: app_mib * 256, bytes: app_mib << 20, ..Direction::default() },
            device: Some(DiskRate { read_mb_per_s: device_mib / 20.0, ..DiskRate::default() }),
            ..Part::default()
        }
    }

    #[test]
    fn a_cache_is_called_one() {
        assert!(is_cache(&part(2000, 100.0)));
        assert!(!is_cache(&part(2000, 2000.0)));
        assert!(!is_cache(&Part { device: None, ..part(2000, 0.0) }));
    }

    #[test]
    fn a_sweeps_stalls_are_one_line() {
        let mut r = crate::bench::store::tests::report("1-sweep");
        r.plan.profile = "sweep".into();
        r.parts = vec![part(1, 1.0), part(1, 1.0), part(1, 1.0)];
        (r.parts[1].stalls.count, r.parts[1].stalls.longest_ns) = (3, 280_000_000);
        let said: Vec<_> = of(&r).into_iter().filter(|w| w.contains("completion")).collect();
        assert_eq!(said, ["1 of 3 steps had 100 ms or more without any completion; the longest 0.28 s at p"]);
        r.plan.profile = "seqread".into();
        assert!(of(&r).iter().any(|w| w.starts_with("p: 3 stalls")));
    }

    #[test]
    fn a_burst_is_a_pattern_not_a_dip() {
        let series = |rates: &[f64]| Part {
            series: rates.iter().map(|r| Point { read_iops: *r, ..Point::default() }).collect(),
            ..part(1, 1.0)
        };
        let fell: Vec<f64> = (0..40).map(|n| if n < 15 { 3000.0 } else { 100.0 }).collect();
        assert_eq!(burst(&series(&fell)), Some((3000.0, 100.0)));
        let mut dip = vec![3000.0; 40];
        dip[35..].fill(100.0);
        assert_eq!(burst(&series(&dip)), None);
        assert_eq!(burst(&series(&[3000.0; 40])), None);
    }
}
