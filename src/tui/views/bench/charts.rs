//! Charts over the time of a run, with axes: live, and of a stored result.

use crate::bench::report::{BenchReport, Measurement, SeriesPoint};
use crate::sanitize::sanitize;
use crate::tui::view::Shared;
use crate::tui::widgets::{
    Axes, CellBuffer, Rect, Style, StyledLine, TextStyle, Theme, draw_axes, draw_columns, draw_text, round_up_scale,
};
use crate::units::write_count;

/// Rows of a chart of a stored result, with its title and times.
const HEIGHT: u16 = 7;
/// A measurement with fewer points has no chart.
const MIN_POINTS: usize = 8;
/// From this width on a row has two charts.
const TWO_CHARTS_WIDTH: u16 = 76;
const MAX_WIDTH: u16 = 120;

/// A quantity over the time of a run.
pub(super) struct TimeChart<'a> {
    pub title: &'a str,
    /// Oldest first; `None`: not measured.
    pub values: &'a [Option<f64>],
    /// A value with its unit.
    pub format: fn(f64) -> String,
    /// The top of the scale for the largest value.
    pub round_up: fn(f64) -> f64,
    /// Seconds that the values cover.
    pub secs: f64,
}

impl TimeChart<'_> {
    /// Draws the title, and below it the values with their axes, the newest at the right.
    pub(super) fn draw(&self, buf: &mut CellBuffer, area: Rect, style: Style, theme: &Theme) {
        draw_text(buf, area.x, area.y, self.title, area.width, theme.header);
        let below = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
        let top = (self.round_up)(self.values.iter().flatten().copied().fold(0.0, f64::max));
        let axes = Axes { top, value: &self.format, time: &|back| self.time(back) };
        let plot = draw_axes(buf, below, &axes, theme);
        draw_columns(buf, plot, self.values.iter().copied(), top, |_| style);
    }

    /// The time in the run of a value counted from the newest.
    fn time(&self, back: usize) -> Option<String> {
        let at = self.values.len().checked_sub(back).filter(|at| *at > 0)?;
        let secs = self.secs * at as f64 / self.values.len() as f64;
        Some(if self.secs < 20.0 { format!("{secs:.1} s") } else { format!("{secs:.0} s") })
    }
}

pub(super) fn format_count(n: f64) -> String {
    let mut out = String::new();
    write_count(&mut out, n);
    out
}

pub(super) fn format_latency(ns: f64) -> String {
    crate::units::format_micros(ns / 1e3)
}

/// The operations per second and the latency of each measurement with enough points, as lines of text.
pub(super) fn report_charts(report: &BenchReport, shared: &Shared, width: u16) -> Vec<StyledLine> {
    let measurements = report.measurements.iter().filter(|part| part.series.len() >= MIN_POINTS);
    measurements.flat_map(|part| measurement_charts(part, shared, width.clamp(20, MAX_WIDTH))).collect()
}

fn measurement_charts(part: &Measurement, shared: &Shared, width: u16) -> Vec<StyledLine> {
    let has_two = width >= TWO_CHARTS_WIDTH;
    let each = if has_two { (width - 2) / 2 } else { width };
    let mut buf = CellBuffer::new(Rect::new(0, 0, width, if has_two { HEIGHT } else { 2 * HEIGHT }));
    buf.symbols = shared.symbols;
    let label = sanitize(&part.label);
    let iops = |p: &SeriesPoint| Some(p.read_iops + p.write_iops);
    let p99 = |p: &SeriesPoint| p.p99_ns.map(|ns| ns as f64);
    let places = [(0, 0), if has_two { (each + 2, 0) } else { (0, HEIGHT) }];
    let [first, second] = places.map(|(x, y)| Rect::new(x, y, each, HEIGHT));
    let samples = shared.graph_samples(each);
    for (area, name, values, format) in [
        (first, "IOPS", resample(&part.series, samples, iops, mean), format_count as fn(f64) -> String),
        (second, "p99", resample(&part.series, samples, p99, largest), format_latency),
    ] {
        let title = format!("{label}: {name} over time");
        if values.iter().all(Option::is_none) {
            continue;
        }
        let secs = part.elapsed_secs();
        let chart = TimeChart { title: &title, values: &values, format, round_up: round_up_scale, secs };
        chart.draw(&mut buf, area, Style::new(), &shared.theme());
    }
    let drawn = buf.to_buffer();
    let line = |y: u16| (0..width).map(|x| drawn[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    let style = |y: u16| if y.is_multiple_of(HEIGHT) { TextStyle::Strong } else { TextStyle::Plain };
    let blank = (String::new(), TextStyle::Plain);
    std::iter::once(blank).chain((0..drawn.area.height).map(|y| (line(y), style(y)))).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// A short stall is still seen.
fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// `count` values over the same time: neighbouring points merged, or few points repeated.
fn resample(
    points: &[SeriesPoint],
    count: usize,
    value: impl Fn(&SeriesPoint) -> Option<f64>,
    merge: fn(&[f64]) -> f64,
) -> Vec<Option<f64>> {
    let span = |i: usize| {
        let from = i * points.len() / count;
        from..((i + 1) * points.len() / count).max(from + 1)
    };
    let merged = |i: usize| {
        let values: Vec<f64> = points[span(i)].iter().filter_map(&value).collect();
        (!values.is_empty()).then(|| merge(&values))
    };
    (0..count).map(merged).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::store::tests::empty_report;
    use crate::model::system_state::{HostInfo, SystemState};
    use crate::tui::widgets::SymbolSet;

    fn report(points: usize) -> BenchReport {
        let mut report = empty_report("1-randrw");
        let point = |n: usize| SeriesPoint {
            at_ms: n as u64 * 250,
            read_iops: if n == points / 2 { 0.0 } else { 800.0 },
            p99_ns: Some(if n == points / 2 { 40_000_000 } else { 1_000_000 }),
            ..SeriesPoint::default()
        };
        let part =
            Measurement { label: "p".into(), series: (0..points).map(point).collect(), ..Measurement::default() };
        report.measurements = vec![part];
        report
    }

    fn lines(points: usize, width: u16) -> Vec<String> {
        let mut shared = Shared::new(SystemState::new(HostInfo::default(), Default::default()));
        shared.symbols = SymbolSet::Blocks;
        report_charts(&report(points), &shared, width).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn a_stored_result_has_charts_with_axes() {
        let shown = lines(20, 80);
        assert!(shown[1].starts_with("p: IOPS over time") && shown[1].contains("p: p99 over time"), "{shown:#?}");
        assert!(
            shown[2].starts_with("800┤█") && shown[3].starts_with("   │█") && shown[2].contains("40 ms┤"),
            "{shown:#?}"
        );
        assert!(shown[7].starts_with("  0└──") && shown[7].ends_with(" s"), "{shown:#?}");
        assert!(shown.iter().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn a_narrow_page_has_one_chart_below_the_other_and_a_short_run_none() {
        let shown = lines(20, 40);
        assert_eq!((shown[1].as_str(), shown[8].as_str()), ("p: IOPS over time", "p: p99 over time"));
        assert_eq!(lines(7, 80), [""; 0]);
    }

    #[test]
    fn points_are_repeated_or_merged_to_the_width() {
        let iops =
            |points: usize, count| resample(&report(points).measurements[0].series, count, |p| Some(p.read_iops), mean);
        assert_eq!(iops(10, 40).iter().filter(|v| **v == Some(0.0)).count(), 4);
        assert_eq!(iops(400, 40).iter().filter(|v| **v == Some(720.0)).count(), 1, "a tenth without operations");
        let ns = |p: &SeriesPoint| p.p99_ns.map(|ns| ns as f64);
        let p99 = resample(&report(400).measurements[0].series, 40, ns, largest);
        assert_eq!(p99.iter().filter(|v| **v == Some(4e7)).count(), 1, "a single stall stays");
        assert_eq!(resample(&report(8).measurements[0].series, 8, |_| None, largest), [None; 8]);
    }
}
