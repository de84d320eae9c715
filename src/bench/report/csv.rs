//! A report as comma-separated values: a line for each measurement and kind of operation.

use super::data::{BenchReport, operation_rows};
use crate::sanitize::sanitize;

const PERCENTILES: [f64; 6] = [50.0, 90.0, 95.0, 99.0, 99.9, 99.99];

/// A text field, always quoted.
fn quoted(text: &str) -> String {
    format!("\"{}\"", sanitize(text).replace('"', "\"\""))
}

pub(crate) fn csv_report(r: &BenchReport) -> String {
    let percentiles = PERCENTILES.map(|p| format!("lat_p{p}_ns")).join(",");
    let mut out = format!(
        "result,profile,measurement,operation,block_bytes,depth,jobs,seconds,operations,bytes,iops,bytes_per_s,lat_min_ns,\
         lat_mean_ns,lat_stddev_ns,{percentiles},lat_max_ns\n"
    );
    for p in &r.measurements {
        for row in operation_rows(p) {
            let of = |percent| row.lat.percentile(percent).map_or(String::new(), |ns| ns.to_string());
            let names = [&r.id, &r.plan.profile, &p.label, row.operation].map(quoted).join(",");
            out += &format!(
                "{names},{},{},{},{:.6},{},{},{:.3},{:.0},{},{:.0},{:.0},{},{}\n",
                p.block,
                p.depth,
                p.jobs,
                p.elapsed_secs(),
                row.ios,
                row.bytes,
                p.rate_of(row.ios),
                p.rate_of(row.bytes),
                row.lat.min_ns,
                row.lat.mean_ns,
                row.lat.stddev_ns,
                PERCENTILES.map(of).join(","),
                row.lat.max_ns
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_every_column_and_names_are_quoted() {
        let mut r = crate::bench::report::depth::tests::series(100_000.0, 16.0, 0.0);
        r.measurements[0].label = "a,\"b\"".into();
        let text = csv_report(&r);
        let columns = text.lines().next().unwrap().split(',').count();
        assert_eq!((text.lines().count(), columns), (10, 22));
        assert!(text.lines().skip(2).all(|line| line.split(',').count() == columns), "{text}");
        assert!(text.lines().nth(1).unwrap().contains(",\"a,\"\"b\"\"\",\"read\","), "{text}");
    }
}
