//! Charts of a benchmark's result as SVG, a page of text and charts as HTML, and the text as an image.

use super::escape_html;
use super::screenshot::{Screenshot, colour, find_format};
use crate::bench::report::text::{USUAL_WIDTH, text_report};
use crate::bench::report::{BenchReport, Measurement};
use crate::sanitize::sanitize;
use crate::units::write_count;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use std::fmt::Write as _;

/// Size of a chart, and the plot in it: left, top, width, height.
const CHART: (f64, f64) = (720.0, 260.0);
const PLOT: (f64, f64, f64, f64) = (70.0, 30.0, 630.0, 180.0);
const COLOURS: [&str; 4] = ["#2c6fbb", "#c0552b", "#2e8540", "#7a4fb0"];

/// Lines over one x axis.
struct Chart {
    title: String,
    x_label: &'static str,
    lines: Vec<Line>,
    /// Names of the x values 0, 1, 2 ..., where they are steps and not numbers.
    ticks: Vec<String>,
}

struct Line {
    name: String,
    points: Vec<(f64, f64)>,
}

/// The charts of a report: a longer series over its steps, other measurements over time.
fn charts(r: &BenchReport) -> Vec<Chart> {
    if r.measurements.len() > 5 {
        return step_charts(r);
    }
    let with_series = r.measurements.iter().filter(|p| p.series.len() > 1);
    with_series.flat_map(time_charts).filter(|chart| !chart.lines.is_empty()).collect()
}

fn time_charts(p: &Measurement) -> Vec<Chart> {
    let line = |name: &str, value: &dyn Fn(&crate::bench::report::SeriesPoint) -> Option<f64>| {
        let point = |s: &crate::bench::report::SeriesPoint| Some((s.at_ms as f64 / 1e3, value(s)?));
        Line { name: name.into(), points: p.series.iter().filter_map(point).collect() }
    };
    let is_used = |line: &Line| line.points.iter().any(|(_, value)| *value > 0.0);
    let chart = |what: &str, lines: Vec<Line>| Chart {
        title: format!("{}: {what}", p.label),
        x_label: "seconds",
        lines: lines.into_iter().filter(is_used).collect(),
        ticks: Vec::new(),
    };
    let ms = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e6);
    vec![
        chart("IOPS", vec![line("read", &|s| Some(s.read_iops)), line("write", &|s| Some(s.write_iops))]),
        chart(
            "MiB/s",
            vec![
                line("read", &|s| Some(s.read_bytes_per_s / 1_048_576.0)),
                line("write", &|s| Some(s.write_bytes_per_s / 1_048_576.0)),
            ],
        ),
        chart("latency, ms", vec![line("p50", &|s| ms(s.p50_ns)), line("p99", &|s| ms(s.p99_ns))]),
    ]
}

/// A line's name, and its value of each step.
type NamedValue<'a> = (&'a str, &'a dyn Fn(&Measurement) -> Option<f64>);

fn step_charts(r: &BenchReport) -> Vec<Chart> {
    let percentile = |p: &Measurement, percent: f64| p.combined_lat().percentile(percent).map(|ns| ns as f64 / 1e6);
    let over_steps = |what: &str, values: &[NamedValue]| {
        let line = |(name, value): &NamedValue| {
            let points = (0u32..).zip(&r.measurements).filter_map(|(n, p)| Some((f64::from(n), value(p)?)));
            Line { name: (*name).into(), points: points.collect() }
        };
        Chart {
            title: what.into(),
            x_label: "step",
            lines: values.iter().map(line).collect(),
            ticks: r.measurements.iter().map(|p| p.label.clone()).collect(),
        }
    };
    let mut all = vec![
        over_steps("IOPS", &[("IOPS", &|p| Some(p.iops()))]),
        over_steps("MiB/s", &[("MiB/s", &|p| Some(p.bytes_per_s() / 1_048_576.0))]),
        over_steps("latency, ms", &[("p50", &|p| percentile(p, 50.0)), ("p99", &|p| percentile(p, 99.0))]),
    ];
    if r.plan.profile == "depth" {
        let line = |name: &str, percent: f64| {
            let points = r.measurements.iter().filter_map(|p| Some((p.iops(), percentile(p, percent)?)));
            Line { name: name.into(), points: points.collect() }
        };
        let lines = vec![line("p50", 50.0), line("p99", 99.0)];
        let title = "latency over throughput, ms".into();
        all.insert(0, Chart { title, x_label: "IOPS", lines, ticks: Vec::new() });
    }
    all
}

fn short(value: f64) -> String {
    if value > 0.0 && value < 1.0 {
        return format!("{value:.2}");
    }
    let mut text = String::new();
    write_count(&mut text, value);
    text
}

/// The end of an axis: 1, 2 or 5 times a power of ten.
fn axis_end(most: f64) -> f64 {
    let power = 10f64.powf(most.max(1e-9).log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * power).find(|end| *end >= most).unwrap_or(most)
}

impl Chart {
    fn push_svg(&self, out: &mut String, y: f64) {
        let (left, top, width, height) = PLOT;
        let all = || self.lines.iter().flat_map(|line| &line.points);
        let end_y = axis_end(all().map(|p| p.1).fold(0.0, f64::max));
        let most_x = all().map(|p| p.0).fold(0.0, f64::max);
        let end_x = if self.ticks.is_empty() { axis_end(most_x) } else { most_x.max(1.0) };
        let _ = write!(
            out,
            "<g transform=\"translate(0,{y})\">\n<text x=\"{left}\" y=\"18\" font-weight=\"bold\">{}</text>\n",
            escape_html(&sanitize(&self.title))
        );
        for share in [0.0, 0.5, 1.0] {
            let at = top + height * (1.0 - share);
            let _ = writeln!(
                out,
                "<line x1=\"{left}\" x2=\"{}\" y1=\"{at}\" y2=\"{at}\" stroke=\"#8888\"/><text x=\"{}\" y=\"{}\" \
                 text-anchor=\"end\">{}</text>",
                left + width,
                left - 6.0,
                at + 4.0,
                short(end_y * share)
            );
        }
        self.push_x_axis(out, end_x);
        for (n, line) in self.lines.iter().enumerate() {
            let colour = COLOURS[n % COLOURS.len()];
            let at = |(x, y): &(f64, f64)| {
                format!("{:.1},{:.1}", left + x / end_x * width, top + height * (1.0 - y / end_y))
            };
            let points: Vec<String> = line.points.iter().map(at).collect();
            let _ = writeln!(
                out,
                "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/><text x=\"{}\" y=\"18\" \
                 fill=\"{colour}\">{}</text>",
                points.join(" "),
                left + width - 60.0 * (self.lines.len() - n) as f64,
                escape_html(&line.name)
            );
        }
        out.push_str("</g>\n");
    }

    fn push_x_axis(&self, out: &mut String, end: f64) {
        let (left, top, width, height) = PLOT;
        let y = top + height + 16.0;
        let mut mark = |x: f64, text: &str| {
            let at = left + x / end * width;
            let _ = writeln!(
                out,
                "<text x=\"{at:.1}\" y=\"{y}\" text-anchor=\"middle\">{}</text>",
                escape_html(&sanitize(text))
            );
        };
        if self.ticks.is_empty() {
            [0.0, 0.5, 1.0].into_iter().for_each(|share| mark(end * share, &short(end * share)));
        } else {
            // Every name where there is room, else some.
            let each = self.ticks.len().div_ceil(9);
            (0u32..).zip(&self.ticks).step_by(each).for_each(|(n, text)| mark(f64::from(n), text));
        }
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            left + width,
            y + 16.0,
            self.x_label
        );
    }
}

/// All charts below each other as one SVG file.
pub(crate) fn to_svg(r: &BenchReport) -> String {
    let charts = charts(r);
    let height = CHART.1 * charts.len().max(1) as f64;
    let title = escape_html(&sanitize(format!("{} on {}, {}", r.plan.profile, r.host, r.time)));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {height}\" width=\"{}\" height=\"{height}\" role=\"img\" \
         font-family=\"system-ui,sans-serif\" font-size=\"12\">\n<title>{title}</title>\n<rect width=\"100%\" height=\"100%\" \
         fill=\"#fff\"/>\n",
        CHART.0, CHART.0
    );
    if charts.is_empty() {
        let _ = writeln!(out, "<text x=\"20\" y=\"40\">{title}: too short for a chart</text>");
    }
    for (n, chart) in charts.iter().enumerate() {
        chart.push_svg(&mut out, CHART.1 * n as f64);
    }
    out + "</svg>\n"
}

/// One page without scripts and external resources: the charts, and the report as text.
pub(crate) fn to_html(r: &BenchReport) -> String {
    let title = escape_html(&sanitize(format!("{} on {}, {}", r.plan.profile, r.host, r.time)));
    let text: Vec<String> = text_report(r, USUAL_WIDTH).lines().map(escape_html).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width\">\n<title>{title}</title>\n</head>\n<body>\n<h1>{title}</h1>\n{}<pre>{}</pre>\n</body>\n</html>\n",
        to_svg(r),
        text.join("\n")
    )
}

/// The report as text, its charts of characters included, as an image.
pub(crate) fn to_png(r: &BenchReport) -> Vec<u8> {
    let text = text_report(r, USUAL_WIDTH);
    let lines: Vec<&str> = text.lines().collect();
    let width = lines.iter().map(|line| line.chars().count()).max().unwrap_or(1).clamp(1, 200) as u16;
    let mut cells = Buffer::empty(Rect::new(0, 0, width, lines.len().clamp(1, 400) as u16));
    for (y, line) in (0..cells.area.height).zip(&lines) {
        cells.set_stringn(0, y, line, width.into(), Style::default());
    }
    let shot =
        Screenshot { title: String::new(), cells, tables: Vec::new(), is_single_pane: false, palette: &colour::LIGHT };
    find_format("png").map_or_else(Vec::new, |png| (png.write)(&shot))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::SeriesPoint;
    use crate::bench::store::tests::empty_report;

    #[test]
    fn a_run_has_charts_over_time_and_hostile_names_are_escaped() {
        let mut r = empty_report("1-randrw");
        let point = |n: u64| SeriesPoint {
            at_ms: n * 250,
            read_iops: 100.0 * n as f64,
            p50_ns: Some(1_000_000),
            ..SeriesPoint::default()
        };
        let series = (1..=40).map(point).collect();
        r.measurements.push(Measurement { label: "<b>\u{1b}[2J".into(), series, ..Measurement::default() });
        let svg = to_svg(&r);
        assert_eq!(svg.matches("<polyline").count(), 2, "IOPS of reads, and the median\n{svg}");
        assert!(
            svg.contains("&lt;b&gt;\\x1b[2J: IOPS")
                && !svg.contains("<b>")
                && svg.contains("10.0,") | svg.contains("700.0,30.0")
        );
        assert!(to_html(&r).contains("<svg") && to_html(&r).contains("<pre>randrw on h"));
        assert!(to_png(&r).starts_with(b"\x89PNG"));
    }

    #[test]
    fn a_series_has_charts_over_its_steps() {
        let r = crate::bench::report::depth::tests::series(100_000.0, 16.0, 0.0);
        let svg = to_svg(&r);
        assert!(svg.contains("latency over throughput") && svg.contains(">depth 256</text>"), "{svg}");
    }

    #[test]
    fn a_run_without_points_says_so() {
        assert!(to_svg(&empty_report("1-randrw")).contains("too short for a chart"));
    }
}
