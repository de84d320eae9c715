//! Compares a random-I/O result with known classes of storage.
//!
//! Classes from published field guides: a throughput-optimised cloud HDD 66 IOPS per
//! direction, seven 10,000 rpm disks in RAID 5 about 200 random, a general-purpose cloud volume (gp2,
//! burst credits used up) 1,518/1,516, a laptop SSD 13.4k/13.4k, a local NVMe drive 102,963/102,800; all
//! 4 KiB random, half read, half written, depth 64, direct.

use super::data::{Measurement, ReferencePlacement, ReportTarget};

/// The classes, slowest first: name with an article, short name, 4 KiB random IOPS per direction.
const REFERENCE_CLASSES: [(&str, &str, f64); 5] = [
    ("a throughput-optimised HDD volume", "HDD", 66.0),
    ("a RAID 5 of 10,000 rpm disks", "RAID", 200.0),
    ("a general-purpose cloud volume (gp2)", "gp2", 1_518.0),
    ("a laptop SSD", "SSD", 13_400.0),
    ("a local NVMe drive", "NVMe", 102_963.0),
];

pub(crate) fn log_position(iops: f64) -> f64 {
    ((iops.max(1.0).log10() - 1.0) / 5.0).clamp(0.0, 1.0)
}

/// Compares a random-I/O measurement with the classes; `None` without reads and writes.
pub fn place_measurement(part: &Measurement, target: Option<&ReportTarget>) -> Option<ReferencePlacement> {
    let (r, w) = (part.rate_of(part.read.ios), part.rate_of(part.write.ios));
    let directions = [r, w].iter().filter(|x| **x > 0.0).count();
    if directions == 0 {
        return None;
    }
    let iops = (r + w) / directions as f64;
    let said = format!("{iops:.0} IOPS per direction");
    let distance = |usual: f64| (iops.max(1.0) / usual).ln().abs();
    let (name, _, usual) = REFERENCE_CLASSES.iter().min_by(|a, b| distance(a.2).total_cmp(&distance(b.2)))?;
    let (class, sentence) = match iops / usual {
        _ if target.is_some_and(|t| t.is_memory) => {
            (None, format!("{said}, but from memory (tmpfs): it says nothing about a disk."))
        }
        _ if super::foreign::no_conclusion_reason(part).is_some() => {
            let reason = super::foreign::no_conclusion_reason(part).unwrap_or_default();
            (None, format!("{said}, which says nothing about the storage: {reason}."))
        }
        _ if part.from_cache => (None, format!("{said}, but from a cache: the device itself moved far less.")),
        0.7..=1.4 => (Some(*name), format!("{said}: about what {name} gives.")),
        r if r > 1.4 => (Some(*name), format!("{said}: {r:.1} times {name} ({usual:.0}).")),
        r => (Some(*name), format!("{said}: {:.0} % of {name} ({usual:.0}).", r * 100.0)),
    };
    Some(ReferencePlacement { iops, class: class.map(Into::into), position: log_position(iops), sentence })
}

/// The scale as two lines of `width` characters with marks of the classes and the result.
pub(crate) fn draw_scale(p: &ReferencePlacement, width: usize) -> String {
    let last = width.saturating_sub(1);
    let at = |x: f64| ((x * last as f64).round() as usize).min(last);
    let mut scale: Vec<char> = vec!['-'; width];
    let mut names = vec![' '; width + 8];
    for (_, short, iops) in REFERENCE_CLASSES {
        let x = at(log_position(iops));
        scale[x] = '|';
        for (i, c) in short.chars().enumerate() {
            names[x + i] = c;
        }
    }
    scale[at(p.position)] = '#';
    let line = |v: Vec<char>| v.into_iter().collect::<String>().trim_end().to_owned();
    format!("  10 {} 1M IOPS\n     {}", line(scale), line(names))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::measure::latency::DirectionStats;

    fn measurement(reads: u64, writes: u64) -> Measurement {
        let of = |ios| DirectionStats { ios, bytes: ios * 4096, ..DirectionStats::default() };
        Measurement { elapsed_ns: 1_000_000_000, read: of(reads), write: of(writes), ..Measurement::default() }
    }

    #[test]
    fn reference_figures_map_to_their_own_class() {
        for (n, class) in [(66, 0), (200, 1), (1_516, 2), (13_400, 3), (102_800, 4), (900_000, 4), (20, 0)] {
            let p = place_measurement(&measurement(n, n), None).unwrap();
            assert_eq!(p.class.as_deref(), Some(REFERENCE_CLASSES[class].0), "{n}");
        }
        assert!(
            place_measurement(&measurement(66, 0), None)
                .unwrap()
                .sentence
                .contains("about what a throughput-optimised HDD")
        );
        assert_eq!(place_measurement(&measurement(0, 0), None), None);
    }

    #[test]
    fn memory_is_not_placed_in_a_class() {
        let target = ReportTarget { is_memory: true, ..ReportTarget::default() };
        let p = place_measurement(&measurement(300_000, 0), Some(&target)).unwrap();
        assert!(p.class.is_none() && p.sentence.contains("memory"));
    }

    #[test]
    fn the_scale_is_logarithmic() {
        assert_eq!((log_position(10.0), log_position(1e6), log_position(1e9)), (0.0, 1.0, 1.0));
        assert!((log_position(1000.0) - 0.4).abs() < 1e-9);
    }
}
