//! Charts in characters: the three of a sweep over block sizes, and the course of every part.

use super::{Part, Report};
use crate::units::{bytes_long, write_count};

const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A quantity of a part: its heading, its value, how it is written.
type Quantity = (&'static str, fn(&Part) -> f64, fn(f64) -> String);

fn count(n: f64) -> String {
    let mut out = String::new();
    write_count(&mut out, n);
    out
}

const QUANTITIES: [Quantity; 3] = [
    ("bandwidth", |p| p.bytes_per_s(), |n| format!("{}/s", bytes_long(n as u64))),
    ("latency, mean", |p| p.lat().mean_ns, super::text::us),
    ("IOPS", |p| p.iops(), count),
];

/// Case 12's three charts (bandwidth, latency, IOPS over block sizes, sequential beside random), on
/// logarithmic scales, as lines of about `width` cells. Empty for other profiles.
pub fn sweep(r: &Report, width: usize) -> Vec<String> {
    let series =
        |name: &str| -> Vec<&Part> { r.parts.iter().filter(|p| p.label.starts_with(name)).collect() };
    let both = [series("sequential "), series("random ")];
    if r.plan.profile != "sweep" || both.iter().all(Vec::is_empty) {
        return Vec::new();
    }
    // Block size, and for each series a value and its bar.
    let bar = (width.saturating_sub(12) / 2).saturating_sub(14).clamp(4, 40);
    let mut blocks: Vec<u32> = r.parts.iter().map(|p| p.block).collect();
    blocks.sort_unstable();
    blocks.dedup();
    let mut out = Vec::new();
    for (heading, value, write) in QUANTITIES {
        let all: Vec<f64> = both.iter().flatten().map(|p| value(p)).filter(|v| *v > 0.0).collect();
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        let most = all.iter().copied().fold(0.0, f64::max);
        out.push(format!("{heading:<14}{:<w$}random", "sequential", w = bar + 14));
        for block in &blocks {
            let mut line = format!("  {:<9}", bytes_long((*block).into()));
            for parts in &both {
                let n = parts.iter().find(|p| p.block == *block).map(|p| value(p)).filter(|v| *v > 0.0);
                let text = n.map_or("-".into(), write);
                let cells = n.map_or(0, |n| length(n, least, most, bar));
                line.push_str(&format!(" {text:>12} {:<bar$}", "█".repeat(cells)));
            }
            out.push(line.trim_end().to_owned());
        }
    }
    out
}

/// Cells of a bar on a logarithmic scale: the least has one, the most has all.
fn length(n: f64, least: f64, most: f64, cells: usize) -> usize {
    if most <= least {
        return cells;
    }
    let share = (n / least).ln() / (most / least).ln();
    1 + (share * (cells - 1) as f64).round() as usize
}

/// Rates of every part over its time, a line each, at most `width` cells wide. Parts too short for a course
/// have none.
pub fn course(r: &Report, width: usize) -> Vec<String> {
    let mut out = Vec::new();
    for part in r.parts.iter().filter(|p| p.series.len() >= 8) {
        let each = part.series.len().div_ceil(width.max(1)).max(1);
        let rates: Vec<f64> = part
            .series
            .chunks(each)
            .map(|c| c.iter().map(|p| p.read_iops + p.write_iops).sum::<f64>() / c.len() as f64)
            .collect();
        let most = rates.iter().copied().fold(0.0, f64::max);
        if most <= 0.0 {
            continue;
        }
        out.push(format!("{}: IOPS over {:.0} s, at most {}", part.label, part.secs(), count(most)));
        let step =
            |n: &f64| EIGHTHS[if *n > 0.0 { ((n / most * 8.0).round() as usize).clamp(1, 8) } else { 0 }];
        out.push(format!("  {}", rates.iter().map(step).collect::<String>()).trim_end().to_owned());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::measure::latency::Direction;
    use crate::bench::report::Point;
    use crate::bench::store::tests::report;

    fn part(order: &str, block: u32, ios: u64) -> Part {
        let read = Direction { ios, bytes: ios * u64::from(block), ..Direction::default() };
        let label = format!("{order} {}", bytes_long(block.into()));
        Part { label, block, elapsed_ns: 1_000_000_000, read, ..Part::default() }
    }

    #[test]
    fn a_sweep_has_three_charts_with_both_series() {
        let mut r = report("1-sweep");
        r.plan.profile = "sweep".into();
        r.parts =
            vec![part("sequential", 4096, 1000), part("sequential", 1 << 20, 900), part("random", 4096, 10)];
        let text = sweep(&r, 80).join("\n");
        assert_eq!(text.matches("sequential").count(), 3);
        let line = |has: &str| text.lines().find(|l| l.contains(has)).unwrap().to_owned();
        assert!(line("900 MiB/s").contains('█'), "{text}");
        assert!(line("40.0 KiB/s").ends_with('█'), "random at 4 KiB is the least: {text}");
        assert!(text.lines().all(|l| unicode_width::UnicodeWidthStr::width(l) <= 80), "{text}");
        r.plan.profile = "randrw".into();
        assert_eq!(sweep(&r, 80), [""; 0]);
    }

    #[test]
    fn the_course_shows_its_dip_and_fits() {
        let mut r = report("1-randrw");
        let series = |n: usize| Point { read_iops: if n == 10 { 0.0 } else { 800.0 }, ..Point::default() };
        r.parts =
            vec![Part { label: "p".into(), series: (0..20).map(series).collect(), ..part("x", 512, 9) }];
        let lines = course(&r, 40);
        assert_eq!(lines[1], "  ██████████ █████████");
        assert!(course(&r, 5)[1].chars().count() <= 2 + 5);
        r.parts[0].series.truncate(7);
        assert_eq!(course(&r, 40), [""; 0]);
    }
}
