//! The same figures before and after a change: medians and quartiles over the ticks of the two windows, and
//! nothing at all while there are too few of them.
//!
//! One change on a machine that goes on working is no experiment: what the figures say is that they differ,
//! not why. So the spread stands beside every median, and "differs" means that the quartiles do not overlap.

use super::disk::{DevId, DiskRate};
use super::snapshot::Snapshot;

/// A window is at most so long.
pub const MOST_SECS: f64 = 120.0;
/// Either window needs so many seconds ...
pub const LEAST_SECS: f64 = 10.0;
/// ... and so many ticks before anything is said.
pub const LEAST_TICKS: usize = 5;

/// When the change was made and what else happened near it, CLOCK_BOOTTIME in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct When {
    /// The window before begins here at the earliest: another change was made or ended then.
    pub not_before_ns: u64,
    /// The change.
    pub at_ns: u64,
    /// The window since ends here at the latest: the change ended, or another one was made.
    pub until_ns: u64,
}

/// Unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerS,
    /// 2^20 bytes per second.
    MbPerS,
    /// Milliseconds.
    Ms,
    /// Per cent.
    Percent,
}

/// How a figure's values lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// First quartile.
    pub low: f64,
    /// Median.
    pub median: f64,
    /// Third quartile.
    pub high: f64,
}

/// One figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The field's own name.
    pub name: &'static str,
    /// Unit of all values.
    pub unit: Unit,
    /// `None`: it was not read, or there was nothing to measure.
    pub before: Option<Spread>,
    /// The same since the change.
    pub since: Option<Spread>,
}

impl Line {
    /// Median since less median before.
    pub fn difference(&self) -> Option<f64> {
        Some(self.since?.median - self.before?.median)
    }

    /// Whether the quartiles do not overlap.
    pub fn differs(&self) -> bool {
        matches!((self.before, self.since), (Some(b), Some(s)) if s.low > b.high || s.high < b.low)
    }
}

/// What a window holds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Window {
    /// Seconds covered by its ticks.
    pub secs: f64,
    /// Ticks.
    pub ticks: usize,
}

impl Window {
    /// Whether it is enough to say something.
    pub fn is_enough(&self) -> bool {
        self.ticks >= LEAST_TICKS && self.secs >= LEAST_SECS
    }
}

/// The comparison.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Comparison {
    /// The window before the change.
    pub before: Window,
    /// The window since.
    pub since: Window,
    /// The figures; empty while either window holds too little.
    pub lines: Vec<Line>,
}

const FIGURES: [(&str, Unit); 10] = [
    ("dirty", Unit::Bytes),
    ("writeback", Unit::Bytes),
    ("write MB/s", Unit::MbPerS),
    ("await ms", Unit::Ms),
    ("%util", Unit::Percent),
    ("si", Unit::BytesPerS),
    ("so", Unit::BytesPerS),
    ("psi io some", Unit::Percent),
    ("psi mem some", Unit::Percent),
    ("%iowait", Unit::Percent),
];

type Figures = [Option<f64>; FIGURES.len()];

/// Compares. `frames` are successive ticks, oldest first; `devices` those that writes, await and %util are
/// taken of.
pub fn compare<'a>(frames: impl Iterator<Item = &'a Snapshot>, when: When, devices: &[DevId]) -> Comparison {
    let (mut before, mut since) = (Vec::new(), Vec::new());
    let mut last: Option<&Snapshot> = None;
    for snap in frames {
        let end = snap.at.boot_ns;
        let start = end.saturating_sub((snap.secs * 1e9) as u64);
        // A tick with the change, or its end, within it belongs to neither side.
        let side = match () {
            () if snap.since_boot => None,
            () if end <= when.at_ns && start >= when.not_before_ns => Some(&mut before),
            () if start >= when.at_ns && end <= when.until_ns => Some(&mut since),
            () => None,
        };
        if let Some(side) = side {
            side.push((snap.secs, figures(last, snap, devices)));
        }
        last = Some(snap);
    }
    let (before, since) = (newest(&before), newest(&since));
    let window = |side: &[(f64, Figures)]| Window {
        secs: side.iter().fold(0.0, |sum, t| sum + t.0),
        ticks: side.len(),
    };
    let mut all = Comparison { before: window(before), since: window(since), lines: Vec::new() };
    if all.before.is_enough() && all.since.is_enough() {
        let spread = |side: &[(f64, Figures)], i: usize| spread(side.iter().filter_map(|t| t.1[i]).collect());
        let line = |(i, (name, unit)): (usize, &(&'static str, Unit))| Line {
            name,
            unit: *unit,
            before: spread(before, i),
            since: spread(since, i),
        };
        all.lines = FIGURES.iter().enumerate().map(line).collect();
    }
    all
}

/// The newest ticks that fit into a window.
fn newest(side: &[(f64, Figures)]) -> &[(f64, Figures)] {
    let mut secs = 0.0;
    let fits = |t: &&(f64, Figures)| {
        secs += t.0;
        secs <= MOST_SECS
    };
    &side[side.len() - side.iter().rev().take_while(fits).count()..]
}

fn figures(last: Option<&Snapshot>, snap: &Snapshot, devices: &[DevId]) -> Figures {
    let of: Option<Vec<&DiskRate>> =
        snap.devices.ok().map(|all| all.iter().map(|d| &**d).filter(|d| devices.contains(&d.id)).collect());
    let of = of.filter(|d| !d.is_empty());
    let sum = |get: fn(&DiskRate) -> f64| of.as_ref().map(|d| d.iter().map(|d| get(d)).sum::<f64>());
    // Without a request there is no time it took.
    let requests = sum(|d| d.tps).filter(|n| *n > 0.0);
    let waited = sum(|d| d.await_ms * d.tps);
    let w = snap.writeback.ok();
    let swap = snap.swap.ok();
    let stalled = |get: fn(&super::pressure::PressureRaw) -> super::pressure::Pressure| {
        let total = |s: &Snapshot| Some(get(s.pressure.ok()?).some?.total_us);
        let grown = total(snap)?.checked_sub(total(last?)?)?;
        (snap.secs > 0.0).then(|| (grown as f64 / (snap.secs * 1e4)).min(100.0))
    };
    [
        w.and_then(|w| w.dirty_bytes).map(|n| n as f64),
        w.and_then(|w| w.writeback_bytes).map(|n| n as f64),
        sum(|d| d.write_mb_per_s),
        waited.zip(requests).map(|(ms, n)| ms / n),
        of.as_ref().map(|d| d.iter().map(|d| d.util_pct).fold(0.0, f64::max)),
        swap.and_then(|s| s.in_bytes_per_s),
        swap.and_then(|s| s.out_bytes_per_s),
        stalled(|p| p.io),
        stalled(|p| p.memory),
        snap.cpu.ok().map(|c| c.iowait_pct),
    ]
}

/// Median and quartiles, between neighbours where they fall between; `None` of fewer values than a window
/// needs.
fn spread(mut values: Vec<f64>) -> Option<Spread> {
    if values.len() < LEAST_TICKS {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = share * (values.len() - 1) as f64;
        let (low, high) = (values[place.floor() as usize], values[place.ceil() as usize]);
        low + (high - low) * place.fract()
    };
    Some(Spread { low: at(0.25), median: at(0.5), high: at(0.75) })
}

#[cfg(test)]
mod tests {
    use super::super::clock::Clock;
    use super::super::memory::WritebackRate;
    use super::super::pressure::{Pressure, PressureRaw, Stall};
    use super::super::section::Section;
    use super::*;

    const SEC: u64 = 1_000_000_000;
    const DISK: DevId = DevId { major: 8, minor: 0 };

    /// A tick of a second that ends at `at` seconds, with so many dirty bytes.
    fn tick(at: u64, dirty: u64) -> Snapshot {
        let disk = |minor, tps, await_ms| DiskRate {
            id: DevId { major: 8, minor },
            tps,
            await_ms,
            util_pct: 10.0,
            ..Default::default()
        };
        let some = Some(Stall { total_us: at * 250_000, ..Default::default() });
        Snapshot {
            seq: at,
            at: Clock { boot_ns: at * SEC, wall_ns: 0 },
            secs: 1.0,
            devices: Section::Ok([disk(0, 0.0, 0.0), disk(1, 100.0, 7.0)].map(std::sync::Arc::new).into()),
            writeback: Section::Ok(WritebackRate { dirty_bytes: Some(dirty), ..Default::default() }),
            pressure: Section::Ok(std::sync::Arc::new(PressureRaw {
                io: Pressure { some, full: None },
                ..Default::default()
            })),
            ..Default::default()
        }
    }

    /// 1000 dirty bytes up to the change, 10 after it.
    fn past(seconds: std::ops::RangeInclusive<u64>, change: u64) -> Vec<Snapshot> {
        seconds.map(|at| tick(at, if at <= change { 1000 + at % 3 } else { 10 + at % 3 })).collect()
    }

    fn when(at: u64) -> When {
        When { not_before_ns: 0, at_ns: at * SEC, until_ns: u64::MAX }
    }

    #[test]
    fn a_difference_is_shown_with_its_spread_and_the_windows_lengths() {
        let past = past(100..=160, 130);
        let got = compare(past.iter(), when(130), &[DISK]);
        assert_eq!((got.before.ticks, got.since.ticks, got.since.secs), (31, 30, 30.0));
        let dirty = &got.lines[0];
        assert_eq!(
            (dirty.name, dirty.before.unwrap().median, dirty.since.unwrap().median),
            ("dirty", 1001.0, 11.0)
        );
        assert_eq!(dirty.difference(), Some(-990.0));
        assert!(dirty.differs());
        let psi = got.lines.iter().find(|l| l.name == "psi io some").unwrap();
        assert_eq!(psi.since, Some(Spread { low: 25.0, median: 25.0, high: 25.0 }));
        assert!(!psi.differs());
    }

    #[test]
    fn too_little_on_either_side_says_nothing() {
        for (from, to) in [(122, 160), (100, 139), (130, 130)] {
            let past = past(from..=to, 130);
            let got = compare(past.iter(), when(130), &[DISK]);
            assert_eq!(got.lines, [], "{from} to {to}: {got:?}");
        }
        let slow: Vec<Snapshot> = (1..=6).map(|i| Snapshot { secs: 10.0, ..tick(i * 10, 1) }).collect();
        let got = compare(slow.iter(), when(30), &[DISK]);
        assert!(got.lines.is_empty() && got.before.secs >= LEAST_SECS, "three ticks are too few: {got:?}");
        assert_eq!(compare([].into_iter(), when(1), &[]), Comparison::default());
    }

    #[test]
    fn the_tick_of_the_change_and_what_others_did_belong_to_no_side() {
        let past = past(100..=160, 130);
        let half = When { not_before_ns: 110 * SEC, at_ns: 130 * SEC + SEC / 2, until_ns: 150 * SEC };
        let got = compare(past.iter(), half, &[DISK]);
        // 111..=130 before; 131 has the change in it; 132..=150 since.
        assert_eq!((got.before.ticks, got.since.ticks), (20, 19));
    }

    #[test]
    fn windows_are_bounded_and_nearest_to_now_and_to_the_change() {
        let past = past(1..=700, 300);
        let got = compare(past.iter(), when(300), &[DISK]);
        assert_eq!((got.before.secs, got.since.secs), (MOST_SECS, MOST_SECS));
    }

    #[test]
    fn await_is_of_requests_and_of_the_devices_asked_for() {
        let past = past(100..=160, 130);
        let value = |devices: &[DevId], name: &str| {
            let got = compare(past.iter(), when(130), devices);
            got.lines.iter().find(|l| l.name == name).unwrap().since.map(|s| s.median)
        };
        let busy = DevId { major: 8, minor: 1 };
        assert_eq!(value(&[DISK], "await ms"), None, "an idle disk has no await, not one of 0");
        assert_eq!(value(&[DISK, busy], "await ms"), Some(7.0), "weighted by requests");
        assert_eq!(value(&[], "%util"), None);
        assert_eq!(value(&[busy], "si"), None, "swap was not read");
    }
}
