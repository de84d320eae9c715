//! A report's series as the log files that `fio --write_bw_log --write_iops_log --write_lat_log --write_hist_log` with
//! `--log_avg_msec` writes, for fio's tools and fio-plot. Source: fio's HOWTO, "Log File Formats"; `iolog.c`.

use super::data::{BenchReport, Measurement, SeriesPoint};
use crate::bench::measure::histogram::{BUCKET_COUNT, Histogram};
use std::fmt::Write as _;

/// A log file: what follows the prefix in its name, and its lines.
pub(crate) struct FioLog {
    pub name: String,
    pub text: String,
}

/// The direction's number, and a value of a point; `None`: no line.
type Column<'a> = (u8, &'a dyn Fn(&SeriesPoint) -> Option<f64>);

/// `time (ms), value, direction, block size`: the four fields that all versions have; newer ones add a priority, which
/// fiologparser does not take.
fn lines(p: &Measurement, columns: &[Column]) -> String {
    let mut out = String::new();
    for point in &p.series {
        for (direction, value) in columns {
            if let Some(value) = value(point) {
                let _ = writeln!(out, "{}, {value:.0}, {direction}, {}", point.at_ms, p.block);
            }
        }
    }
    out
}

/// `time (ms), direction, block size, bin, bin, ...`.
fn histogram_lines(p: &Measurement) -> String {
    let mut out = String::new();
    let mut line = |at_ms: u64, direction: u8, histogram: &Histogram| {
        if histogram.buckets.is_empty() {
            return;
        }
        let mut bins = vec![0; BUCKET_COUNT];
        for (i, n) in &histogram.buckets {
            if let Some(bin) = bins.get_mut(usize::from(*i)) {
                *bin = *n;
            }
        }
        let bins: Vec<String> = bins.iter().map(u64::to_string).collect();
        let _ = writeln!(out, "{at_ms}, {direction}, {}, {}", p.block, bins.join(", "));
    };
    for point in &p.histograms {
        line(point.at_ms, 0, &point.read);
        line(point.at_ms, 1, &point.write);
    }
    out
}

/// The log files of every measurement that has a series; the number in a name is the measurement's.
pub(crate) fn fio_logs(r: &BenchReport) -> Vec<FioLog> {
    let mut all = Vec::new();
    for (n, p) in (1..).zip(&r.measurements) {
        let (reads, writes) = (p.read.ios > 0, p.write.ios > 0);
        let kib = |bytes: f64| Some(bytes / 1024.0);
        let mut push = |kind: &str, text: String| {
            if !text.is_empty() {
                all.push(FioLog { name: format!("_{kind}.{n}.log"), text });
            }
        };
        let both = |read: &dyn Fn(&SeriesPoint) -> Option<f64>, write: &dyn Fn(&SeriesPoint) -> Option<f64>| {
            let read: Column = (0, &|s| read(s).filter(|_| reads));
            let write: Column = (1, &|s| write(s).filter(|_| writes));
            lines(p, &[read, write])
        };
        push("bw", both(&|s| kib(s.read_bytes_per_s), &|s| kib(s.write_bytes_per_s)));
        push("iops", both(&|s| Some(s.read_iops), &|s| Some(s.write_iops)));
        for (kind, at) in [("slat", 0), ("clat", 1), ("lat", 2)] {
            push(kind, both(&|s| s.read_mean_ns[at], &|s| s.write_mean_ns[at]));
        }
        push("clat_hist", histogram_lines(p));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::measure::latency::DirectionStats;
    use crate::bench::report::HistogramPoint;
    use crate::bench::store::tests::empty_report;

    #[test]
    fn lines_are_fio_s_and_directions_without_operations_have_none() {
        let mut r = empty_report("1-randread");
        let point = SeriesPoint {
            at_ms: 250,
            read_iops: 1000.0,
            read_bytes_per_s: 4_096_000.0,
            read_mean_ns: [Some(1000.0), Some(9000.0), Some(10_000.0)],
            ..SeriesPoint::default()
        };
        let histogram = Histogram { buckets: vec![(3, 7)] };
        r.measurements.push(Measurement {
            block: 4096,
            read: DirectionStats { ios: 250, ..DirectionStats::default() },
            series: vec![point],
            histograms: vec![HistogramPoint { at_ms: 250, read: histogram, write: Histogram::default() }],
            ..Measurement::default()
        });
        let logs = fio_logs(&r);
        let text = |name: &str| logs.iter().find(|log| log.name == name).map(|log| log.text.as_str());
        assert_eq!(text("_bw.1.log"), Some("250, 4000, 0, 4096\n"));
        assert_eq!(text("_iops.1.log"), Some("250, 1000, 0, 4096\n"));
        assert_eq!(text("_clat.1.log"), Some("250, 9000, 0, 4096\n"));
        let histogram = text("_clat_hist.1.log").unwrap();
        assert!(histogram.starts_with("250, 0, 4096, 0, 0, 0, 7, 0"), "{histogram}");
        assert_eq!(histogram.trim_end().split(", ").count(), 3 + BUCKET_COUNT);
    }
}
