//! A chart in plain characters with logarithmic axes: readable without colour, at most 80 columns wide.

const ROWS: usize = 11;
/// Columns from one block size to the next.
const COLUMN_STEP: usize = 6;
/// Columns left of the axis: the largest label and a blank.
const LABEL_WIDTH: usize = 7;
/// Columns a chart of twelve block sizes takes.
pub(crate) const WIDTH: usize = LABEL_WIDTH + 1 + 12 * COLUMN_STEP;
const SHARED_MARK: char = '*';

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChartSeries {
    pub mark: char,
    pub line: char,
    pub name: String,
    /// Position on the x axis (number of doublings from its left end) and value; values above 0 only count.
    pub points: Vec<(usize, f64)>,
}

/// 1, 2 and 5 times every power of ten, ascending.
fn round_values() -> impl DoubleEndedIterator<Item = f64> {
    (-9..=15).flat_map(|exponent| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(exponent)))
}

/// A label of the y axis: `0.5`, `20`, `5k`, `1M`.
fn axis_label(x: f64) -> String {
    match x {
        x if x >= 999_999.0 => format!("{:.0}M", x / 1e6),
        x if x >= 999.9 => format!("{:.0}k", x / 1e3),
        x if x >= 0.999 => format!("{x:.0}"),
        x => format!("{x}").chars().take(LABEL_WIDTH - 2).collect(),
    }
}

struct LogScale {
    low: f64,
    high: f64,
}

impl LogScale {
    fn from_series(series: &[ChartSeries]) -> Option<Self> {
        let all = || series.iter().flat_map(|s| &s.points).map(|p| p.1).filter(|v| v.is_finite() && *v > 0.0);
        let (least, most) = (all().reduce(f64::min)?, all().reduce(f64::max)?);
        // A small tolerance, because powers of ten are not exact.
        let low = round_values().rfind(|s| *s <= least * 1.0001)?;
        let high = round_values().find(|s| *s > low && *s >= most * 0.9999)?;
        Some(Self { low, high })
    }

    /// Row of a value, 0 at the bottom.
    fn row(&self, value: f64) -> usize {
        let share = (value.max(self.low) / self.low).ln() / (self.high / self.low).ln();
        ((share.min(1.0) * (ROWS - 1) as f64).round() as usize).min(ROWS - 1)
    }

    /// Rows and values of its labels: 1-2-5 steps over a small range, else powers of ten.
    fn tick_marks(&self) -> Vec<(usize, f64)> {
        let wide = (self.high / self.low).log10() > 2.5;
        let mut out: Vec<(usize, f64)> = Vec::new();
        for at in round_values().filter(|s| (self.low..=self.high).contains(s)) {
            let ten = (at.log10() - at.log10().round()).abs() < 1e-6;
            let row = self.row(at);
            if (ten || !wide) && out.last().is_none_or(|l| l.0 != row) {
                out.push((row, at));
            }
        }
        out
    }
}

/// The chart with its title, and `ticks` below it. Empty without a value.
pub(crate) fn draw_chart(title: &str, series: &[ChartSeries], ticks: &[String]) -> String {
    let Some(scale) = LogScale::from_series(series) else { return String::new() };
    let width = ticks.len().saturating_sub(1) * COLUMN_STEP + 3;
    let mut cells = vec![vec![' '; width]; ROWS];
    // Lines first, so that they never hide a mark of another series.
    for s in series {
        draw_line(&mut cells, s, &scale);
    }
    for s in series {
        for (x, y) in s.points.iter().filter(|p| p.1 > 0.0 && p.0 < ticks.len()) {
            let cell = &mut cells[scale.row(*y)][x * COLUMN_STEP + 1];
            let taken = series.iter().any(|o| o.mark != s.mark && *cell == o.mark);
            *cell = if taken || *cell == SHARED_MARK { SHARED_MARK } else { s.mark };
        }
    }
    let marks = scale.tick_marks();
    let mut out = format!("{title}\n");
    for (n, row) in cells.iter().enumerate().rev() {
        let mark = marks.iter().find(|m| m.0 == n);
        let text = mark.map_or(String::new(), |m| axis_label(m.1));
        let edge = if mark.is_some() { '+' } else { '|' };
        let line: String = row.iter().collect();
        out.push_str(format!("{text:>w$} {edge}{line}", w = LABEL_WIDTH - 1).trim_end());
        out.push('\n');
    }
    out.push_str(&format!("{:>w$} +{}\n", "", "-".repeat(width), w = LABEL_WIDTH - 1));
    let mut names = " ".repeat(LABEL_WIDTH + 1);
    for (n, tick) in ticks.iter().enumerate() {
        // Centred under its point.
        let at = LABEL_WIDTH + 2 + n * COLUMN_STEP;
        let from = (at + 1).saturating_sub(tick.chars().count().div_ceil(2)).max(names.len());
        names.push_str(&" ".repeat(from - names.len()));
        names.push_str(tick);
    }
    out.push_str(names.trim_end());
    out.push('\n');
    out
}

/// `S sequential   R random   * both`.
pub(crate) fn chart_legend(series: &[ChartSeries]) -> String {
    let mut all: Vec<String> = series.iter().map(|s| format!("{} {}", s.mark, s.name)).collect();
    if series.len() > 1 {
        all.push(format!("{SHARED_MARK} both"));
    }
    all.join("   ")
}

/// Draws a series' line where cells are empty.
fn draw_line(cells: &mut [Vec<char>], s: &ChartSeries, scale: &LogScale) {
    for pair in s.points.windows(2).filter(|w| w[0].1 > 0.0 && w[1].1 > 0.0 && w[1].0 == w[0].0 + 1) {
        let (from, to) = (pair[0].1.ln(), pair[1].1.ln());
        for n in 1..COLUMN_STEP {
            let value = (from + (to - from) * n as f64 / COLUMN_STEP as f64).exp();
            let column = pair[0].0 * COLUMN_STEP + 1 + n;
            if let Some(cell) = cells[scale.row(value)].get_mut(column).filter(|c| **c == ' ') {
                *cell = s.line;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(mark: char, trail: char, values: &[f64]) -> ChartSeries {
        let points = values.iter().copied().enumerate().collect();
        ChartSeries { mark, line: trail, name: format!("series {mark}"), points }
    }

    fn ticks(n: usize) -> Vec<String> {
        ["512", "1k", "2k", "4k", "8k", "16k", "32k", "64k", "128k", "256k", "512k", "1M"]
            .into_iter()
            .take(n)
            .map(String::from)
            .collect()
    }

    #[test]
    fn two_series_are_distinguishable_without_colour() {
        let drawn = draw_chart(
            "Bandwidth, MiB/s",
            &[series('S', '-', &[10.0, 20.0, 40.0, 80.0]), series('R', '.', &[10.0, 11.0, 12.0])],
            &ticks(4),
        );
        let golden = "\
Bandwidth, MiB/s
   100 +
       |                  -S
       |                --
    50 +              --
       |            -S
       |          --
       |        --
    20 +      -S
       |    --
       |  --     ....R
    10 + *.....R.
       +---------------------
        512    1k    2k    4k
";
        assert_eq!(drawn, golden, "\n{drawn}");
    }

    #[test]
    fn axis_values_round_outwards_and_have_short_labels() {
        let ends = |values: &[f64]| LogScale::from_series(&[series('S', '-', values)]).map(|s| (s.low, s.high));
        assert_eq!(ends(&[0.3, 30.0]), Some((0.2, 50.0)));
        assert_eq!((ends(&[10.0, 1000.0]), ends(&[1000.0])), (Some((10.0, 1000.0)), Some((1000.0, 2000.0))));
        let said = [0.02, 0.5, 1.0, 50.0, 1000.0, 20_000.0, 1e6].map(axis_label);
        assert_eq!(said, ["0.02", "0.5", "1", "50", "1k", "20k", "1M"]);
    }

    #[test]
    fn no_value_draws_nothing_and_one_value_draws_a_chart() {
        assert_eq!(draw_chart("t", &[series('S', '-', &[])], &ticks(2)), "");
        assert_eq!(draw_chart("t", &[series('S', '-', &[0.0, f64::NAN])], &ticks(2)), "");
        assert!(draw_chart("t", &[series('S', '-', &[7.0])], &ticks(1)).contains('S'));
    }

    #[test]
    fn chart_fits_80_columns() {
        let wide: Vec<f64> = (0..12).map(|n| 3.0f64.powi(n)).collect();
        let drawn = draw_chart("t", &[series('S', '-', &wide)], &ticks(12));
        assert!(drawn.lines().all(|l| l.chars().count() <= 80), "{drawn}");
        assert_eq!(drawn.matches('S').count(), 12, "{drawn}");
    }
}
