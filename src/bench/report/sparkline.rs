//! Sparklines: the rates of each measurement over time, as one line of characters.

use super::data::BenchReport;
use crate::units::write_count;

const BLOCK_GLYPHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Rates of each measurement over time, a title and a line of at most `width` cells each; none of short measurements.
pub(crate) fn sparklines(r: &BenchReport, width: usize) -> Vec<String> {
    let mut out = Vec::new();
    for part in r.measurements.iter().filter(|p| p.series.len() >= 8) {
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
        let mut title = format!("{}: IOPS over {:.0} s, at most ", part.label, part.elapsed_secs());
        write_count(&mut title, most);
        out.push(title);
        let step = |n: &f64| BLOCK_GLYPHS[if *n > 0.0 { ((n / most * 8.0).round() as usize).clamp(1, 8) } else { 0 }];
        out.push(format!("  {}", rates.iter().map(step).collect::<String>()).trim_end().to_owned());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::{Measurement, SeriesPoint};
    use crate::bench::store::tests::empty_report;

    #[test]
    fn sparkline_shows_a_dip_and_fits_the_width() {
        let mut r = empty_report("1-randrw");
        let series = |n: usize| SeriesPoint { read_iops: if n == 10 { 0.0 } else { 800.0 }, ..SeriesPoint::default() };
        r.measurements =
            vec![Measurement { label: "p".into(), series: (0..20).map(series).collect(), ..Measurement::default() }];
        let lines = sparklines(&r, 40);
        assert_eq!(lines[1], "  ██████████ █████████");
        assert!(sparklines(&r, 5)[1].chars().count() <= 2 + 5);
        r.measurements[0].series.truncate(7);
        assert_eq!(sparklines(&r, 40), [""; 0]);
    }
}
