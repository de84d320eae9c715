//! Conditions that distort results.

use super::cache::describe_cache;
use super::data::{BenchReport, Measurement, RunEnd, SeriesPoint};
use super::foreign::{has_foreign_load, no_conclusion_reason};
use crate::bench::disturbance::{Disturbance, describe_disturbances};

/// Shortest counted time that shows a steady state, s.
const MIN_SECONDS: f64 = 10.0;
/// Fewer operations give no reliable percentiles above p90.
const MIN_OPERATIONS: u64 = 1000;
/// Share of others in the disk's bytes above which a point of the series shows more than the storage.
const FOREIGN_POINT_SHARE: f64 = 0.25;
/// What is left out before and after a disturbance, ms.
const MARGIN_MS: u64 = 500;

/// All warnings about `report`.
pub fn warnings_for(report: &BenchReport) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(t) = &report.target {
        let is_loop = t.device.as_deref().is_some_and(|d| d.starts_with("7:"));
        let stacked =
            format!("{} passes I/O on to other file systems; their devices are not watched here", t.filesystem);
        let conditions = [
            (t.is_memory, "the directory is on tmpfs: these are figures of memory, whatever O_DIRECT says"),
            (t.is_stacked, &stacked),
            (is_loop, "on a loop device: the cache below it may answer; the disk under its file is not watched"),
            (t.is_network, "a network is in between: its figures and its server's caches are in the result"),
            // With --readahead every pass starts with an empty cache, which is checked below.
            (!report.plan.direct && !report.plan.readahead, "buffered: the page cache takes part in these figures"),
        ];
        all.extend(conditions.into_iter().filter(|(applies, _)| *applies).map(|(_, text)| text.to_owned()));
    }
    for part in &report.measurements {
        add_measurement_warnings(part, report, &mut all);
    }
    all.extend(sweep_stall_warning(report));
    all
}

/// The stalls of a sweep as one warning: with large blocks on a slow disk every operation stalls.
fn sweep_stall_warning(report: &BenchReport) -> Option<String> {
    let stalled = || report.measurements.iter().filter(|p| p.stalls.count > 0);
    let worst = stalled().max_by_key(|p| p.stalls.longest_ns).filter(|_| super::data::is_sweep(report))?;
    let (n, of, longest) = (stalled().count(), report.measurements.len(), worst.stalls.longest_ns as f64 / 1e9);
    Some(format!(
        "{n} of {of} steps had 100 ms or more without any completion; the longest {longest:.2} s at {}",
        worst.label
    ))
}

fn add_measurement_warnings(part: &Measurement, report: &BenchReport, all: &mut Vec<String>) {
    let mut say = |what: String| all.push(format!("{}: {what}", part.label));
    let (ios, secs, is_single) = (part.ios(), part.elapsed_secs(), report.measurements.len() == 1);
    describe_cache(part, report.plan.direct).into_iter().for_each(&mut say);
    if let Some(pct) = part.foreign_pct.filter(|_| has_foreign_load(part) && secs >= 1.0) {
        say(format!("{pct:.0} % of what the disk moved was not this run's: somebody else works on it"));
    }
    describe_disturbances(&part.disturbances).into_iter().for_each(&mut say);
    if !super::data::is_sweep(report) {
        super::request_size::describe_split(part, report).into_iter().for_each(&mut say);
    }
    // A run of ten seconds ends with the last completion before that time.
    if report.plan.time_ms > 0 && secs < MIN_SECONDS * 0.99 && part.bytes() > 0 && is_single {
        say(format!("{secs:.1} s are too short for bursts and caches to show"));
    }
    if ios > 0 && ios < MIN_OPERATIONS && is_single {
        say(format!("only {ios} operations: percentiles above p90 are guesswork"));
    }
    let stalls = &part.stalls;
    if stalls.count > 0 && part.timed_operation.is_empty() && !super::data::is_sweep(report) {
        let (noun, total) = (if stalls.count == 1 { "stall" } else { "stalls" }, stalls.total_ns as f64 / 1e9);
        say(format!(
            "{} {noun} of at least 100 ms without any completion, {total:.1} s together, the longest {:.2} s",
            stalls.count,
            stalls.longest_ns as f64 / 1e9
        ));
    }
    if report.end != RunEnd::Complete {
        return;
    }
    let reason = no_conclusion_reason(part);
    match (burst_drop(part), lasting_drop(&part.series), reason) {
        (Some((before, after)), ..) => say(format!(
            "{before:.0} IOPS at first, {after:.0} at the end: burst credits used up, as cloud volumes do, or a write \
             cache that ran full. The later figure is what lasts"
        )),
        (None, Some((before, after)), Some(reason)) => say(format!(
            "{before:.0} IOPS at first, {after:.0} at the end, which says nothing about burst credits or caches: {reason}"
        )),
        _ => {}
    }
}

/// Mean IOPS of the first fifth and the last, if the rate fell to less than half and stayed there, without what was
/// disturbed.
pub(crate) fn burst_drop(part: &Measurement) -> Option<(f64, f64)> {
    lasting_drop(&undisturbed_points(part))
}

/// The points of a series that show the storage alone.
fn undisturbed_points(part: &Measurement) -> Vec<SeriesPoint> {
    let is_disturbed = |p: &SeriesPoint| {
        let near = |d: &Disturbance| (d.from_ms.saturating_sub(MARGIN_MS)..d.to_ms + MARGIN_MS).contains(&p.at_ms);
        part.disturbances.iter().any(near)
    };
    // Of single points the share is uncertain: it counts where it is large over the whole measurement.
    let has_foreign = |p: &SeriesPoint| {
        let own = p.read_bytes_per_s + p.write_bytes_per_s;
        p.disk_bytes_per_s.is_none_or(|disk| own < disk * (1.0 - FOREIGN_POINT_SHARE))
    };
    let foreign = has_foreign_load(part);
    part.series.iter().filter(|p| !(is_disturbed(p) || foreign && has_foreign(p))).copied().collect()
}

fn lasting_drop(series: &[SeriesPoint]) -> Option<(f64, f64)> {
    let n = series.len();
    if n < 20 {
        return None;
    }
    let mean = |range: std::ops::Range<usize>| {
        let len = range.len() as f64;
        series[range].iter().map(|p| p.read_iops + p.write_iops).sum::<f64>() / len
    };
    let fifth = n / 5;
    let (first, last, before_last) = (mean(0..fifth), mean(n - fifth..n), mean(n - 2 * fifth..n - fifth));
    // The last but one fifth has to be slow, too: a single slow one may be chance.
    (last < first * 0.5 && before_last < first * 0.65).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::measure::latency::DirectionStats;
    use crate::model::disk::DiskRate;

    fn measurement(app_mib: u64, device_mib: f64) -> Measurement {
        Measurement {
            label: "p".into(),
            elapsed_ns: 20_000_000_000,
            device_ns: 20_000_000_000,
            read: DirectionStats { ios: app_mib * 256, bytes: app_mib << 20, ..DirectionStats::default() },
            device: Some(DiskRate { read_mb_per_s: device_mib / 20.0, ..DiskRate::default() }),
            ..Measurement::default()
        }
    }

    #[test]
    fn stalls_of_a_sweep_are_one_warning() {
        let mut r = crate::bench::store::tests::empty_report("1-sweep");
        r.plan.profile = "sweep".into();
        r.measurements = vec![measurement(1, 1.0), measurement(1, 1.0), measurement(1, 1.0)];
        (r.measurements[1].stalls.count, r.measurements[1].stalls.longest_ns) = (3, 280_000_000);
        let said: Vec<_> = warnings_for(&r).into_iter().filter(|w| w.contains("completion")).collect();
        assert_eq!(said, ["1 of 3 steps had 100 ms or more without any completion; the longest 0.28 s at p"]);
        r.plan.profile = "seqread".into();
        assert!(warnings_for(&r).iter().any(|w| w.starts_with("p: 3 stalls")));
    }

    /// A quarter of a second a point.
    fn with_series(rates: &[f64]) -> Measurement {
        let point = |(n, r): (u64, &f64)| SeriesPoint { at_ms: n * 250, read_iops: *r, ..SeriesPoint::default() };
        Measurement { series: (1..).zip(rates).map(point).collect(), ..measurement(1, 1.0) }
    }

    #[test]
    fn a_freeze_or_a_stop_is_no_burst() {
        use crate::bench::disturbance::DisturbanceCause::Frozen;
        let mut rates = vec![3000.0; 48];
        rates.extend([0.0; 32]);
        let mut part = with_series(&rates);
        assert_eq!(burst_drop(&part), Some((3000.0, 0.0)));
        part.disturbances = vec![Disturbance { cause: Frozen, from_ms: 12_000, to_ms: 20_000 }];
        assert_eq!(burst_drop(&part), None);
        let mut r = crate::bench::store::tests::empty_report("1-randrw");
        r.measurements = vec![part];
        let said = warnings_for(&r).join("\n");
        assert!(said.contains("says nothing about burst credits or caches: the file system was frozen"), "{said}");
        assert!(!said.contains("used up"), "{said}");
    }

    #[test]
    fn the_load_of_others_is_no_burst_and_a_burst_beside_it_is_seen() {
        let mut part = with_series(&[&[3000.0; 40][..], &[500.0; 40]].concat());
        part.foreign_pct = Some(40.0);
        let others = |part: &mut Measurement, from: usize| {
            for (n, p) in part.series.iter_mut().enumerate() {
                p.read_bytes_per_s = p.read_iops * 4096.0;
                p.disk_bytes_per_s = Some(p.read_bytes_per_s + if n >= from { 1e8 } else { 0.0 });
            }
        };
        others(&mut part, 40);
        assert_eq!(burst_drop(&part), None);
        others(&mut part, 75);
        assert_eq!(burst_drop(&part), Some((3000.0, 500.0)));
    }

    #[test]
    fn a_burst_is_a_lasting_drop_not_a_dip() {
        let fell: Vec<f64> = (0..40).map(|n| if n < 15 { 3000.0 } else { 100.0 }).collect();
        assert_eq!(burst_drop(&with_series(&fell)), Some((3000.0, 100.0)));
        let mut dip = vec![3000.0; 40];
        dip[35..].fill(100.0);
        assert_eq!(burst_drop(&with_series(&dip)), None);
        assert_eq!(burst_drop(&with_series(&[3000.0; 40])), None);
    }
}
