//! Key metrics before and after a change: medians and quartiles over a window of ticks on each side.
//! No metrics while either window is too short.
//!
//! The machine keeps working meanwhile, so a difference does not prove that the change caused it. Quartiles therefore
//! stand beside every median, and "differs" means that the two quartile ranges do not overlap.

use super::disk::{DevId, DiskRate};
use super::snapshot::Snapshot;

/// Maximum length of a window, in seconds.
pub(crate) const MAX_WINDOW_SECS: f64 = 120.0;
/// Minimum length of each window, in seconds.
pub(crate) const MIN_WINDOW_SECS: f64 = 10.0;
/// Minimum number of ticks in each window.
pub(crate) const MIN_WINDOW_TICKS: usize = 5;

/// When the change was made and what limits the two windows, as CLOCK_BOOTTIME in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChangeTimes {
    /// Start of the window before the change at the earliest: another change was made or ended then.
    pub earliest_ns: u64,
    pub changed_ns: u64,
    /// End of the window after the change at the latest: the change ended, or another one was made.
    pub latest_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImpactUnit {
    Bytes,
    BytesPerSec,
    /// 2^20 bytes per second.
    MibPerSec,
    Millis,
    Percent,
}

/// Quartiles of a metric over a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quartiles {
    /// First quartile.
    pub q1: f64,
    pub median: f64,
    /// Third quartile.
    pub q3: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ImpactRow {
    pub name: &'static str,
    pub unit: ImpactUnit,
    /// Quartiles before the change; `None` if there were no values.
    pub before: Option<Quartiles>,
    pub after: Option<Quartiles>,
}

impl ImpactRow {
    /// Median after minus median before.
    pub(crate) fn difference(&self) -> Option<f64> {
        Some(self.after?.median - self.before?.median)
    }

    /// Whether the quartile ranges do not overlap.
    pub(crate) fn differs(&self) -> bool {
        matches!((self.before, self.after), (Some(b), Some(s)) if s.q1 > b.q3 || s.q3 < b.q1)
    }
}

/// Length of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ImpactWindow {
    /// Seconds covered by its ticks.
    pub secs: f64,
    pub ticks: usize,
}

impl ImpactWindow {
    /// Whether the window is long enough for a comparison.
    pub(crate) fn is_enough(&self) -> bool {
        self.ticks >= MIN_WINDOW_TICKS && self.secs >= MIN_WINDOW_SECS
    }
}

/// Comparison of the time before and after a change.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ChangeImpact {
    pub before: ImpactWindow,
    pub after: ImpactWindow,
    /// The metrics; empty while either window is too short.
    pub rows: Vec<ImpactRow>,
}

const METRICS: [(&str, ImpactUnit); 10] = [
    ("dirty", ImpactUnit::Bytes),
    ("writeback", ImpactUnit::Bytes),
    ("write MB/s", ImpactUnit::MibPerSec),
    ("await ms", ImpactUnit::Millis),
    ("%util", ImpactUnit::Percent),
    ("si", ImpactUnit::BytesPerSec),
    ("so", ImpactUnit::BytesPerSec),
    ("IO stall", ImpactUnit::Percent),
    ("memory stall", ImpactUnit::Percent),
    ("%iowait", ImpactUnit::Percent),
];

type MetricValues = [Option<f64>; METRICS.len()];

/// Compares the windows before and after a change. `frames` are successive ticks, oldest first; writes, await and %util
/// are taken from `devices`.
pub(crate) fn compare<'a>(
    frames: impl Iterator<Item = &'a Snapshot>,
    when: ChangeTimes,
    devices: &[DevId],
) -> ChangeImpact {
    let (mut before, mut since) = (Vec::new(), Vec::new());
    let mut last: Option<&Snapshot> = None;
    for snap in frames {
        let end = snap.time.boot_ns;
        let start = end.saturating_sub((snap.interval_secs * 1e9) as u64);
        // A tick that contains the change, or its end, belongs to neither window.
        let side = match () {
            () if snap.is_since_boot => None,
            () if end <= when.changed_ns && start >= when.earliest_ns => Some(&mut before),
            () if start >= when.changed_ns && end <= when.latest_ns => Some(&mut since),
            () => None,
        };
        if let Some(side) = side {
            side.push((snap.interval_secs, metric_values(last, snap, devices)));
        }
        last = Some(snap);
    }
    let (before, since) = (newest_within_window(&before), newest_within_window(&since));
    let window = |side: &[(f64, MetricValues)]| ImpactWindow {
        secs: side.iter().fold(0.0, |sum, t| sum + t.0),
        ticks: side.len(),
    };
    let mut all = ChangeImpact { before: window(before), after: window(since), rows: Vec::new() };
    if all.before.is_enough() && all.after.is_enough() {
        let spread = |side: &[(f64, MetricValues)], i: usize| quartiles(side.iter().filter_map(|t| t.1[i]).collect());
        let line = |(i, (name, unit)): (usize, &(&'static str, ImpactUnit))| ImpactRow {
            name,
            unit: *unit,
            before: spread(before, i),
            after: spread(since, i),
        };
        all.rows = METRICS.iter().enumerate().map(line).collect();
    }
    all
}

/// The newest ticks that fit into a window.
fn newest_within_window(side: &[(f64, MetricValues)]) -> &[(f64, MetricValues)] {
    let mut secs = 0.0;
    let fits = |t: &&(f64, MetricValues)| {
        secs += t.0;
        secs <= MAX_WINDOW_SECS
    };
    &side[side.len() - side.iter().rev().take_while(fits).count()..]
}

fn metric_values(last: Option<&Snapshot>, snap: &Snapshot, devices: &[DevId]) -> MetricValues {
    let of: Option<Vec<&DiskRate>> =
        snap.devices.ok().map(|all| all.iter().map(|d| &**d).filter(|d| devices.contains(&d.id)).collect());
    let of = of.filter(|d| !d.is_empty());
    let sum = |get: fn(&DiskRate) -> f64| of.as_ref().map(|d| d.iter().map(|d| get(d)).sum::<f64>());
    // Without requests there is no await.
    let requests = sum(|d| d.tps).filter(|n| *n > 0.0);
    let total_await = sum(|d| d.await_ms * d.tps);
    let w = snap.writeback.ok();
    let swap = snap.swap.ok();
    let pressure_pct = |get: fn(&super::pressure::PressureRaw) -> super::pressure::ResourcePressure| {
        let total = |s: &Snapshot| Some(get(s.pressure.ok()?).some?.total_us);
        let grown = total(snap)?.checked_sub(total(last?)?)?;
        (snap.interval_secs > 0.0).then(|| (grown as f64 / (snap.interval_secs * 1e4)).min(100.0))
    };
    [
        w.and_then(|w| w.dirty_bytes).map(|n| n as f64),
        w.and_then(|w| w.writeback_bytes).map(|n| n as f64),
        sum(|d| d.write_mb_per_s),
        total_await.zip(requests).map(|(ms, n)| ms / n),
        of.as_ref().map(|d| d.iter().map(|d| d.util_pct).fold(0.0, f64::max)),
        swap.and_then(|s| s.in_bytes_per_s),
        swap.and_then(|s| s.out_bytes_per_s),
        pressure_pct(|p| p.io),
        pressure_pct(|p| p.memory),
        snap.cpu.ok().map(|c| c.iowait_pct),
    ]
}

/// Median and quartiles by linear interpolation; `None` if there are fewer than [`MIN_WINDOW_TICKS`] values.
fn quartiles(mut values: Vec<f64>) -> Option<Quartiles> {
    if values.len() < MIN_WINDOW_TICKS {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = share * (values.len() - 1) as f64;
        let (low, high) = (values[place.floor() as usize], values[place.ceil() as usize]);
        low + (high - low) * place.fract()
    };
    Some(Quartiles { q1: at(0.25), median: at(0.5), q3: at(0.75) })
}

#[cfg(test)]
mod tests {
    use super::super::memory::WritebackRate;
    use super::super::pressure::{PressureRaw, PsiAverages, ResourcePressure};
    use super::super::reading::Reading;
    use super::super::timestamp::Timestamp;
    use super::*;

    const SEC: u64 = 1_000_000_000;
    const DISK: DevId = DevId { major: 8, minor: 0 };

    /// A one-second tick that ends at `at` seconds, with `dirty` dirty bytes.
    fn snapshot_at(at: u64, dirty: u64) -> Snapshot {
        let disk = |minor, tps, await_ms| DiskRate {
            id: DevId { major: 8, minor },
            tps,
            await_ms,
            util_pct: 10.0,
            ..Default::default()
        };
        let some = Some(PsiAverages { total_us: at * 250_000, ..Default::default() });
        Snapshot {
            seq: at,
            time: Timestamp { boot_ns: at * SEC, wall_ns: 0 },
            interval_secs: 1.0,
            devices: Reading::Ok([disk(0, 0.0, 0.0), disk(1, 100.0, 7.0)].map(std::sync::Arc::new).into()),
            writeback: Reading::Ok(WritebackRate { dirty_bytes: Some(dirty), ..Default::default() }),
            pressure: Reading::Ok(std::sync::Arc::new(PressureRaw {
                io: ResourcePressure { some, full: None },
                ..Default::default()
            })),
            ..Default::default()
        }
    }

    /// 1000 dirty bytes up to the change, 10 after it.
    fn snapshots_around_change(seconds: std::ops::RangeInclusive<u64>, change: u64) -> Vec<Snapshot> {
        seconds.map(|at| snapshot_at(at, if at <= change { 1000 + at % 3 } else { 10 + at % 3 })).collect()
    }

    fn change_at(at: u64) -> ChangeTimes {
        ChangeTimes { earliest_ns: 0, changed_ns: at * SEC, latest_ns: u64::MAX }
    }

    #[test]
    fn a_difference_has_quartiles_and_window_lengths() {
        let past = snapshots_around_change(100..=160, 130);
        let got = compare(past.iter(), change_at(130), &[DISK]);
        assert_eq!((got.before.ticks, got.after.ticks, got.after.secs), (31, 30, 30.0));
        let dirty = &got.rows[0];
        assert_eq!((dirty.name, dirty.before.unwrap().median, dirty.after.unwrap().median), ("dirty", 1001.0, 11.0));
        assert_eq!(dirty.difference(), Some(-990.0));
        assert!(dirty.differs());
        let psi = got.rows.iter().find(|l| l.name == "IO stall").unwrap();
        assert_eq!(psi.after, Some(Quartiles { q1: 25.0, median: 25.0, q3: 25.0 }));
        assert!(!psi.differs());
    }

    #[test]
    fn no_rows_while_either_window_is_too_short() {
        for (from, to) in [(122, 160), (100, 139), (130, 130)] {
            let past = snapshots_around_change(from..=to, 130);
            let got = compare(past.iter(), change_at(130), &[DISK]);
            assert_eq!(got.rows, [], "{from} to {to}: {got:?}");
        }
        let slow: Vec<Snapshot> = (1..=6).map(|i| Snapshot { interval_secs: 10.0, ..snapshot_at(i * 10, 1) }).collect();
        let got = compare(slow.iter(), change_at(30), &[DISK]);
        assert!(got.rows.is_empty() && got.before.secs >= MIN_WINDOW_SECS, "three ticks are too few: {got:?}");
        assert_eq!(compare([].into_iter(), change_at(1), &[]), ChangeImpact::default());
    }

    #[test]
    fn ticks_that_span_the_change_or_another_change_are_excluded() {
        let past = snapshots_around_change(100..=160, 130);
        let half = ChangeTimes { earliest_ns: 110 * SEC, changed_ns: 130 * SEC + SEC / 2, latest_ns: 150 * SEC };
        let got = compare(past.iter(), half, &[DISK]);
        // 111..=130 are before, 131 contains the change, 132..=150 are after.
        assert_eq!((got.before.ticks, got.after.ticks), (20, 19));
    }

    #[test]
    fn windows_keep_at_most_the_newest_two_minutes() {
        let past = snapshots_around_change(1..=700, 300);
        let got = compare(past.iter(), change_at(300), &[DISK]);
        assert_eq!((got.before.secs, got.after.secs), (MAX_WINDOW_SECS, MAX_WINDOW_SECS));
    }

    #[test]
    fn await_is_weighted_by_requests_of_the_selected_devices() {
        let past = snapshots_around_change(100..=160, 130);
        let value = |devices: &[DevId], name: &str| {
            let got = compare(past.iter(), change_at(130), devices);
            got.rows.iter().find(|l| l.name == name).unwrap().after.map(|s| s.median)
        };
        let busy = DevId { major: 8, minor: 1 };
        assert_eq!(value(&[DISK], "await ms"), None, "an idle disk has no await, not one of 0");
        assert_eq!(value(&[DISK, busy], "await ms"), Some(7.0), "weighted by requests");
        assert_eq!(value(&[], "%util"), None);
        assert_eq!(value(&[busy], "si"), None, "swap was not read");
    }
}
