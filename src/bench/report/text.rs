//! A report as text, in fio's terms.

use super::chart::WIDTH;
use super::data::{BenchReport, Measurement, is_sweep, operation_rows};
use super::format::MIB;
pub(crate) use super::format::{describe_end, format_latency, format_value};
use super::sweep;
use crate::bench::measure::latency::{DirectionStats, LatencyStats};
use crate::sanitize::{sanitize, wrap};
use crate::units::format_bytes_long;
use std::fmt::Write as _;

/// Width of a terminal for which reports are written when there is none, cells.
pub(crate) const USUAL_WIDTH: usize = 90;

/// Measurements of a report that are written in full.
const MAX_IN_FULL: usize = 5;

/// The whole report with charts of at most `width` cells.
pub(crate) fn text_report(r: &BenchReport, width: usize) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{} on {} (kernel {}), {}", r.plan.profile, sanitize(&r.host), sanitize(&r.kernel), r.time);
    if let Some(t) = &r.target {
        let device = t.device.as_deref().unwrap_or("none of its own");
        let _ = writeln!(out, "  {}: {} on {} (device {device})", t.directory, t.filesystem, t.source);
    }
    let _ = writeln!(out, "  {}", describe_end(&r.end));
    if is_sweep(r) {
        write_sweep(&mut out, r, width);
    } else {
        if r.measurements.iter().filter(|p| p.ios() > 0 || p.sync.ios > 0).count() > 1 {
            write_comparison_table(&mut out, r);
        }
        // Of a longer series the table says it all.
        for part in r.measurements.iter().filter(|_| r.measurements.len() <= MAX_IN_FULL) {
            out.push('\n');
            write_measurement(&mut out, part, r);
        }
    }
    if let Some(sentence) = &r.conclusion {
        let _ = write!(out, "\n{}", wrap_words(&sanitize_lines(sentence)));
    }
    if let Some(p) = &r.reference {
        let scale = super::reference_classes::draw_scale(p, width.saturating_sub(16).clamp(16, 64));
        let _ = write!(out, "\n{scale}\n{}\n", p.sentence);
    }
    for (n, w) in r.warnings.iter().enumerate() {
        let _ = writeln!(out, "{}! {w}", if n == 0 { "\n" } else { "" });
    }
    out
}

/// A sweep as a table and three charts instead of twenty measurements in full.
fn write_sweep(out: &mut String, r: &BenchReport, width: usize) {
    let engine = r.measurements.first().map_or("", |p| p.engine.as_str());
    let way = if r.plan.direct { "direct I/O" } else { "through the page cache" };
    let _ =
        writeln!(out, "  depth {}, jobs {}, {way}, {engine}\n\n{}", r.plan.depth, r.plan.jobs, sweep::text_table(r));
    match width < WIDTH {
        true => out.push_str(&format!("The charts need {WIDTH} columns.\n")),
        false => out.push_str(&sweep::draw_charts(r)),
    }
    for finding in sweep::findings(r) {
        let _ = write!(out, "\n{}", wrap_words(&sanitize(&finding)));
    }
}

fn write_comparison_table(out: &mut String, r: &BenchReport) {
    let _ = writeln!(out, "\n{:<22}{:>10}{:>10}{:>9}{:>9}{:>9}", "", "per s", "MiB/s", "p50", "p99", "max");
    for p in &r.measurements {
        let rows = operation_rows(p);
        if !rows.is_empty() {
            let _ = writeln!(out, "{}", p.label);
        }
        for row in rows {
            let mib = match p.rate_of(row.bytes) / MIB {
                0.0 => String::new(),
                mib if mib < 1.0 => format!("{mib:.3}"),
                mib => format!("{mib:.1}"),
            };
            let [p50, p99] = [50.0, 99.0].map(|percent| {
                let known = has_enough_samples(row.lat.count, percent).then(|| row.lat.percentile(percent)).flatten();
                known.map_or("-".into(), |ns| format_latency(ns as f64))
            });
            let (name, rate, max) = (row.operation, p.rate_of(row.ios), format_latency(row.lat.max_ns as f64));
            let _ = writeln!(out, "  {name:<20}{rate:>10.1}{mib:>10}{p50:>9}{p99:>9}{max:>9}");
        }
    }
}

/// Sanitized, line by line.
pub(super) fn sanitize_lines(text: &str) -> String {
    text.lines().map(sanitize).collect::<Vec<_>>().join("\n")
}

/// Wraps what is written for people; lines that begin with two blanks are for files.
fn wrap_words(text: &str) -> String {
    let wrapped = |line: &str| if line.starts_with("  ") { line.to_owned() } else { wrap(line, 80).join("\n") };
    text.lines().map(|line| wrapped(line) + "\n").collect()
}

/// Whether `n` samples are enough for a percentile: at least one must lie beyond it.
fn has_enough_samples(n: u64, percent: f64) -> bool {
    n as f64 * percent.min(100.0 - percent) / 100.0 >= 0.999
}

/// What a profile calls the data of one operation.
fn operation_noun(r: &BenchReport) -> &'static str {
    match r.plan.profile.as_str() {
        "append" | "fsync" | "txlog" => "records",
        "chunks" => "pieces",
        _ => "blocks",
    }
}

fn write_measurement(out: &mut String, p: &Measurement, r: &BenchReport) {
    let _ = write!(out, "{}", p.label);
    if p.block > 0 {
        let size = format_bytes_long(p.block.into());
        let _ = write!(out, ": {size} {}, depth {}, jobs {}", operation_noun(r), p.depth, p.jobs);
    }
    let _ = writeln!(out, ", {:.2} s{}{}", p.elapsed_secs(), if p.engine.is_empty() { "" } else { ", " }, p.engine);
    for (name, d) in [("read", &p.read), ("write", &p.write), ("trim", &p.trim)] {
        if d.ios > 0 {
            write_direction(out, p, name, d);
        }
    }
    if p.sync.ios > 0 {
        let (verb, calls) = match (p.timed_operation.as_str(), p.sync.ios) {
            ("", 1) => ("sync", " call"),
            ("", _) => ("sync", " calls"),
            (verb, _) => (verb, ""),
        };
        let _ = writeln!(out, "  {verb:<6} {}{calls}, {:.1}/s", p.sync.ios, p.rate_of(p.sync.ios));
        write_latency(out, "lat", &p.sync.lat);
        write_percentiles(out, &p.sync.lat);
    }
    for f in &p.metrics {
        let _ = writeln!(out, "  {:<34} {}", f.name, format_value(f.value, &f.unit));
    }
    if let Some(c) = &p.cpu {
        let each = match c.ns_per_io {
            0.0 => String::new(),
            ns => format!(", {:.2} us per operation", ns / 1e3),
        };
        let _ =
            writeln!(out, "  cpu    usr {:.1} %, sys {:.1} %{each}, {} switches", c.user_pct, c.system_pct, c.switches);
    }
    if let Some(d) = &p.device {
        let (name, suffix) = (sanitize(d.name.as_bytes()), app_to_device_suffix(p));
        let [reads, writes, read_mb, write_mb] = [d.reads_per_s, d.writes_per_s, d.read_mb_per_s, d.write_mb_per_s];
        let (wait, queue, util) = (d.await_ms, d.queue_size, d.util_pct);
        let _ = writeln!(
            out,
            "  device {name} r/s {reads:.0}, w/s {writes:.0}, MB_read/s {read_mb:.1}, MB_wrtn/s {write_mb:.1}, \
             await {wait:.2} ms, aqu-sz {queue:.1}, util {util:.0} %{suffix}"
        );
    }
    let (stalls, longest) = (p.stalls.count, p.stalls.longest_ns as f64 / 1e6);
    // Workloads without I/O have no completions.
    if longest > 0.0 && p.timed_operation.is_empty() {
        let _ = writeln!(out, "  stalls {stalls} of 100 ms or more; longest without a completion {longest:.1} ms");
    }
}

/// `, program : device 1.00`; a cache answered what the device did not transfer.
fn app_to_device_suffix(p: &Measurement) -> String {
    match p.app_to_device_ratio() {
        None => String::new(),
        Some(r) if r > 1000.0 => ", program : device more than 1000 (a cache)".into(),
        Some(r) => format!(", program : device {r:.2}"),
    }
}

fn write_direction(out: &mut String, p: &Measurement, name: &str, d: &DirectionStats) {
    let bytes = p.rate_of(d.bytes);
    // Small rates in KiB.
    let rate = match bytes {
        b if b < MIB => format!("{:.1} KiB/s ({:.1} kB/s)", b / 1024.0, b / 1e3),
        b => format!("{:.1} MiB/s ({:.1} MB/s)", b / MIB, b / 1e6),
    };
    let (iops, size) = (p.rate_of(d.ios), format_bytes_long(d.bytes));
    let _ = writeln!(out, "  {name:<6} IOPS {iops:.0}, {rate}, {size} in {} operations", d.ios);
    // A synchronous engine has no separate submission.
    if d.slat.max_ns > 0 {
        write_latency(out, "slat", &d.slat);
        write_latency(out, "clat", &d.clat);
    }
    write_latency(out, "lat", &d.lat);
    write_percentiles(out, &d.lat);
}

fn write_latency(out: &mut String, name: &str, l: &LatencyStats) {
    let [min, mean, stddev, max] = [l.min_ns as f64, l.mean_ns, l.stddev_ns, l.max_ns as f64].map(format_latency);
    let _ = writeln!(out, "    {name:<4} min {min}, mean {mean}, stddev {stddev}, max {max}");
}

fn write_percentiles(out: &mut String, l: &LatencyStats) {
    use crate::bench::measure::histogram::PERCENTILES;
    let sound = PERCENTILES.iter().filter(|p| has_enough_samples(l.count, **p));
    let all: Vec<_> =
        sound.filter_map(|p| Some(format!("p{p} {}", format_latency(l.percentile(*p)? as f64)))).collect();
    for row in all.chunks(6) {
        let _ = writeln!(out, "    lat {}", row.join("  "));
    }
}
