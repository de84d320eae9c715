//! What a sweep's report says of figures made for the purpose, and what it does not say.

use super::*;
use crate::bench::measure::histogram::{Histogram, bucket_index};
use crate::bench::measure::latency::{DirectionStats, LatencyStats};
use crate::bench::report::ReportTarget;
use crate::bench::store::tests::empty_report;
use crate::model::disk::DiskRate;

/// A step of one second: `mib` a second, `requests` at the device for each operation.
fn step(series: &str, block: u32, mib: f64, requests: f64) -> Measurement {
    let bytes = (mib * MIB) as u64;
    let ios = bytes / u64::from(block);
    let lat = LatencyStats::from_sums(ios, 1_000_000_000, 0.0, 1, 1_000_000_000 / ios.max(1), None);
    Measurement {
        label: step_label(series, block),
        block,
        elapsed_ns: 1_000_000_000,
        device_ns: 1_000_000_000,
        read: DirectionStats { ios, bytes, lat, ..DirectionStats::default() },
        device: Some(DiskRate {
            reads_per_s: ios as f64 * requests,
            read_mb_per_s: bytes as f64 / MIB,
            ..DiskRate::default()
        }),
        ..Measurement::default()
    }
}

fn sweep(series: &[(&str, &[f64])]) -> BenchReport {
    let mut r = empty_report("1-sweep");
    r.plan.profile = "sweep".into();
    r.measurements.clear();
    for (name, rates) in series {
        r.measurements.extend(rates.iter().enumerate().map(|(n, mib)| step(name, 512 << n, *mib, 1.0)));
    }
    r.target = Some(ReportTarget::default());
    r
}

/// The guide's: seven disks in RAID 5.
const RAID: [f64; 12] = [16.0, 17.0, 18.0, 18.0, 19.0, 19.0, 20.0, 300.0, 700.0, 1000.0, 1200.0, 1200.0];
const SEEKS: [f64; 9] = [0.1, 0.2, 0.4, 0.8, 1.6, 3.1, 6.0, 11.0, 20.0];

#[test]
fn a_bandwidth_jump_is_named_with_the_kernels_size_hint() {
    let mut r = sweep(&[("sequential", &RAID), ("random", &SEEKS)]);
    let said = findings(&r);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("sequential: from 32.0 KiB to 64.0 KiB blocks bandwidth rises 15.0 times"), "{said:?}");
    assert!(said[0].contains("no size the kernel knows"), "{said:?}");
    let known = |name: &str, kib: u64| DeviceSizeHint { name: name.into(), bytes: kib << 10 };
    r.target.get_or_insert_default().size_hints =
        vec![known("optimal_io_size", 64), known("read_ahead_kb", 64), known("max_sectors_kb", 1280)];
    let said = findings(&r);
    assert!(said[0].ends_with("twice the block explains 2 times: optimal_io_size is 64.0 KiB here"), "{said:?}");
}

#[test]
fn no_jump_gives_no_finding() {
    let doubling: Vec<f64> = (0..12).map(|n| 2f64.powi(n)).collect();
    // Measured: one slow step by chance is no jump after it, and a slow end none before it.
    let noisy = [6.1, 9.6, 23.9, 57.3, 120.6, 204.7, 400.2, 599.5, 1015.0, 1422.0, 1616.0, 1273.0];
    let falls_back = [10.0, 20.0, 40.0, 300.0, 90.0, 100.0, 110.0, 120.0, 130.0, 140.0, 150.0, 160.0];
    let first_step = [10.0, 38.0, 60.0, 100.0, 200.0, 300.0, 300.0, 300.0, 300.0, 300.0, 300.0, 300.0];
    for rates in [&doubling[..], &noisy, &falls_back, &first_step, &[0.0, 20.0], &[]] {
        assert_eq!(findings(&sweep(&[("sequential", rates)])), Vec::<String>::new(), "{rates:?}");
    }
    // Nor is the very first step, however steep: nothing says what was to be expected of it.
    assert_eq!(findings(&sweep(&[("sequential", &[10.0, 100.0, 150.0])])), Vec::<String>::new());
    assert_eq!(findings(&sweep(&[("sequential", &[10.0, 12.0, 60.0, 100.0])])).len(), 1);
}

#[test]
fn a_few_slow_operations_are_not_a_jump() {
    let mut r = sweep(&[("random", &[2.6, 4.8, 10.1, 20.3, 74.7, 131.8])]);
    // Means as measured on a busy machine; the median operation took 60 us in every step.
    for p in &mut r.measurements {
        p.read.lat.histogram = Some(Histogram { buckets: vec![(bucket_index(60_000) as u16, 1000)] });
        (p.read.lat.min_ns, p.read.lat.max_ns) = (1, u64::MAX);
    }
    assert_eq!(findings(&r), Vec::<String>::new());
    r.measurements.iter_mut().for_each(|p| p.read.lat.histogram = None);
    assert_eq!(findings(&r).len(), 1, "by its means alone it is one");
}

#[test]
fn split_requests_are_reported() {
    let rates = [100.0, 200.0, 400.0, 700.0];
    let mut r = sweep(&[("sequential", &rates)]);
    r.measurements[3] = step("sequential", 4096, 700.0, 2.0);
    let said = findings(&r);
    assert_eq!(
        said,
        [
            "sequential: the device gets 2.0 requests for one operation of 4.00 KiB: 2.00 KiB is the largest that goes as one"
        ]
    );
    let limit = |kib: u64| vec![DeviceSizeHint { name: "max_sectors_kb".into(), bytes: kib << 10 }];
    r.target.get_or_insert_default().size_hints = limit(2);
    assert!(findings(&r)[0].ends_with("goes as one, its max_sectors_kb"), "{:?}", findings(&r));
    r.target.get_or_insert_default().size_hints = limit(4096);
    assert!(findings(&r)[0].ends_with("(max_sectors_kb would allow 4.00 MiB)"), "{:?}", findings(&r));
    // Somebody else's requests prove nothing.
    if let Some(d) = r.measurements[3].device.as_mut() {
        d.read_mb_per_s *= 2.0;
    }
    assert_eq!(findings(&r), Vec::<String>::new());
    // Nor do the kernel's own, where the page cache is in between.
    let mut r = sweep(&[("sequential", &rates)]);
    r.measurements[3] = step("sequential", 4096, 700.0, 2.0);
    r.plan.direct = false;
    assert_eq!(findings(&r), Vec::<String>::new());
}

#[test]
fn readahead_benefit_is_reported() {
    let ra = "read-ahead 128 KiB";
    let mut r = sweep(&[(READAHEAD_OFF, &[20.0, 21.0, 22.0, 300.0]), (ra, &[300.0, 310.0, 310.0, 310.0])]);
    (r.plan.readahead, r.plan.direct) = (true, false);
    let said = findings(&r);
    let last = said.last().map(String::as_str);
    assert_eq!(
        last,
        Some(
            "read-ahead 128 KiB: 512 B blocks are read at 300.0 MiB/s with it and at 20.0 without, 15.0 times; from \
             4.00 KiB on the two are within a quarter"
        )
    );
    let mut r = sweep(&[(READAHEAD_OFF, &[20.0, 40.0]), (ra, &[21.0, 41.0])]);
    (r.plan.readahead, r.plan.direct) = (true, false);
    assert!(findings(&r)[0].contains("no difference"), "{:?}", findings(&r));
}

#[test]
fn the_charts_are_as_they_were_drawn_once() {
    let r = sweep(&[("sequential", &RAID), ("random", &SEEKS)]);
    let text = format!("{}\n{}", text_table(&r), draw_charts(&r));
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_skipped_step_leaves_a_gap() {
    let mut r = sweep(&[("sequential", &RAID[..3]), ("random", &SEEKS[..3])]);
    r.measurements.remove(0);
    let text = text_table(&r);
    let line = text.lines().find(|l| l.trim_start().starts_with("512 B")).unwrap_or_default();
    assert_eq!(line.split_whitespace().count(), 6, "{text}");
    assert!(draw_charts(&r).contains('R'));
}

#[test]
fn sweep_reports_have_charts_instead_of_full_measurements() {
    let r = sweep(&[("sequential", &RAID), ("random", &SEEKS)]);
    let text = super::super::text::text_report(&r, 90);
    assert!(text.contains("Bandwidth, MiB/s") && text.contains("bandwidth rises 15.0"), "{text}");
    assert!(!text.contains("slat") && !text.contains("program : device"), "{text}");
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    let markdown = super::super::markdown::markdown_report(&r);
    let blocks: Vec<&str> = markdown.split("```").collect();
    assert_eq!(blocks.len(), 3, "{markdown}");
    assert!(blocks[1].contains("Latency (mean of lat), us") && blocks[2].contains("bandwidth rises 15.0"));
    assert_eq!(markdown.matches("| sequential ").count(), RAID.len(), "{markdown}");
}
