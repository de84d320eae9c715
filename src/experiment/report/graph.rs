//! A graph of dirty pages over a round, A above B on one scale.

use super::super::spec::Arm;
use super::data::{DirtyPagesPoint, ExperimentReport, Trial};
use crate::units::format_bytes_long;

const GRAPH_ROWS: usize = 6;
/// Columns of both, where there is room.
pub(crate) const GRAPH_COLUMNS: usize = 64;
const LABEL_WIDTH: usize = 11;
const BLOCK_GLYPHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Mean dirty and writeback bytes of one column.
type ColumnMean = Option<(f64, f64)>;

pub(crate) struct DirtyPagesCurve<'p> {
    /// Dirty pages at moments since counting began, in any order.
    pub points: Vec<&'p DirtyPagesPoint>,
    /// Where background writing begins, bytes.
    pub threshold: Option<u64>,
    pub caption: String,
}

pub(crate) const LEGEND: &str = "Dirty pages of the machine: █ waiting, ▒ being written; ┄ background threshold";

/// Both arms of a trial within `width` columns; empty without samples.
pub(crate) fn draw_trial(report: &ExperimentReport, trial: &Trial, width: usize) -> String {
    let curve = |arm: Arm| DirtyPagesCurve {
        points: trial.complete_rounds(arm).flat_map(|r| &r.dirty_points).collect(),
        threshold: report.thresholds[arm.index()].background,
        caption: format!("mean of {} rounds", trial.complete_rounds(arm).count()),
    };
    let lines = draw_arms(&[curve(Arm::A), curve(Arm::B)], (GRAPH_COLUMNS + LABEL_WIDTH).min(width), GRAPH_ROWS);
    if lines.is_empty() {
        return String::new();
    }
    std::iter::once(LEGEND.to_owned()).chain(lines).map(|l| l + "\n").collect()
}

/// A above B on common scales of bytes and time: `width` columns, `rows` rows each. Empty without samples.
pub(crate) fn draw_arms(curves: &[DirtyPagesCurve; 2], width: usize, rows: usize) -> Vec<String> {
    let columns = width.saturating_sub(LABEL_WIDTH).clamp(8, 1000);
    let end = curves.iter().flat_map(|c| &c.points).map(|p| p.at_ms).max().unwrap_or(0);
    let courses = curves.each_ref().map(|c| column_means(c.points.iter().copied(), end, columns));
    let most = courses.iter().flatten().flatten().map(|(d, w)| d + w).fold(0.0, f64::max);
    if end == 0 || most < 1.0 || rows == 0 {
        return Vec::new();
    }
    let mut out = Vec::new();
    for ((arm, curve), course) in [Arm::A, Arm::B].into_iter().zip(curves).zip(&courses) {
        let above = curve.threshold.filter(|t| *t as f64 > most);
        let note = above
            .map_or(String::new(), |t| format!("; background threshold {}, above the graph", format_bytes_long(t)));
        out.push(format!("{}, {}{note}", arm.name(), curve.caption));
        draw_curve(&mut out, course, most, curve.threshold.map(|t| t as f64), rows);
    }
    let secs = format!("{:.0} s", end as f64 / 1e3);
    out.push(format!("{:>10} 0 s{secs:>width$}", "", width = columns - 3));
    out
}

fn column_means<'p>(points: impl Iterator<Item = &'p DirtyPagesPoint>, end: u64, columns: usize) -> Vec<ColumnMean> {
    let mut sums = vec![(0.0, 0.0, 0u32); columns];
    for p in points {
        // A damaged report may have any number.
        let at = (u128::from(p.at_ms) * columns as u128 / (u128::from(end) + 1)) as usize;
        let sum = &mut sums[at.min(columns - 1)];
        *sum = (sum.0 + p.dirty_bytes as f64, sum.1 + p.writeback_bytes as f64, sum.2 + 1);
    }
    let mut course: Vec<ColumnMean> =
        sums.into_iter().map(|(d, w, n)| (n > 0).then(|| (d / f64::from(n), w / f64::from(n)))).collect();
    // A short round has fewer samples than columns: each sample holds until the next one.
    let last = course.iter().rposition(Option::is_some).unwrap_or(0);
    for at in 1..last {
        course[at] = course[at].or(course[at - 1]);
    }
    course
}

fn draw_curve(out: &mut Vec<String>, course: &[ColumnMean], most: f64, threshold: Option<f64>, rows: usize) {
    let height = |bytes: f64| (bytes / most * (rows * 8) as f64).round() as usize;
    let line = threshold.filter(|t| *t <= most).map(|t| (height(t).max(1) - 1) / 8);
    for row in (0..rows).rev() {
        let label = match row {
            _ if row == rows - 1 => format_bytes_long(most as u64),
            0 => "0".into(),
            _ => String::new(),
        };
        let empty = if line == Some(row) { '┄' } else { ' ' };
        let cell = |moment: &ColumnMean| {
            let Some((dirty, writeback)) = *moment else { return empty };
            let filled = height(dirty + writeback).saturating_sub(row * 8).min(8);
            match filled {
                0 => empty,
                _ if height(writeback) >= row * 8 + 4 => '▒',
                n => BLOCK_GLYPHS[n],
            }
        };
        let cells: String = course.iter().map(cell).collect();
        out.push(format!("{label:>10} {}", cells.trim_end()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graph_is_drawn_to_scale() {
        let course: Vec<ColumnMean> =
            vec![Some((0.0, 0.0)), Some((48.0, 0.0)), Some((24.0, 24.0)), None, Some((4.0, 0.0))];
        let mut out = Vec::new();
        draw_curve(&mut out, &course, 48.0, Some(20.0), 6);
        let rows: Vec<&str> = out.iter().map(|l| &l[11..]).collect();
        assert_eq!(rows, [" ██", " ██", " ██", "┄█▒┄┄", " █▒", " █▒ ▄"]);
        assert!(out[0].starts_with("      48 B "), "{out:?}");
    }

    #[test]
    fn rounds_are_averaged_by_time() {
        let p = |at_ms, dirty| DirtyPagesPoint { at_ms, dirty_bytes: dirty, writeback_bytes: 0 };
        let got = column_means([p(0, 10), p(0, 30), p(63, 7)].iter(), 63, GRAPH_COLUMNS);
        assert_eq!((got[0], got[1], got[GRAPH_COLUMNS - 1]), (Some((20.0, 0.0)), Some((20.0, 0.0)), Some((7.0, 0.0))));
        let got = column_means([p(0, 10), p(10, 30)].iter(), 63, GRAPH_COLUMNS);
        assert_eq!((got[5], got[10], got[11]), (Some((10.0, 0.0)), Some((30.0, 0.0)), None), "nothing after its end");
    }
}
