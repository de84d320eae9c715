//! A report for people, in fio's terms.

use super::{End, Part, Report};
use crate::bench::measure::latency::{Direction, Latency};
use crate::text::clean;
use crate::units::bytes_long;
use std::fmt::Write as _;

const MIB: f64 = 1_048_576.0;

/// The whole report.
pub fn report(r: &Report) -> String {
    let mut out = String::new();
    let _ =
        writeln!(out, "{} on {} (kernel {}), {}", r.plan.profile, clean(&r.host), clean(&r.kernel), r.time);
    if let Some(t) = &r.target {
        let device = t.device.as_deref().unwrap_or("none of its own");
        let _ = writeln!(out, "  {}: {} on {} (device {device})", t.directory, t.filesystem, t.source);
    }
    let _ = writeln!(out, "  {}", end(&r.end));
    for part in &r.parts {
        out.push('\n');
        one(&mut out, part);
    }
    if let Some(p) = &r.ruler {
        let _ = write!(out, "\n{}\n{}\n", super::ruler::drawing(p, 64), p.sentence);
    }
    for (n, w) in r.warnings.iter().enumerate() {
        let _ = writeln!(out, "{}! {w}", if n == 0 { "\n" } else { "" });
    }
    out
}

/// How it ended, in words.
pub fn end(end: &End) -> String {
    match end {
        End::Complete => "complete".into(),
        End::Cancelled => "cancelled: the figures are those up to then".into(),
        End::Failed(why) => format!("failed: {why}; the figures are those up to then"),
        End::Stalled(why) => format!("stalled: {why}; the figures are those up to then"),
    }
}

fn one(out: &mut String, p: &Part) {
    let _ = write!(out, "{}", p.label);
    if p.block > 0 {
        let _ = write!(out, ": {} blocks, depth {}, jobs {}", bytes_long(p.block.into()), p.depth, p.jobs);
    }
    let _ = writeln!(out, ", {:.2} s{}{}", p.secs(), if p.engine.is_empty() { "" } else { ", " }, p.engine);
    for (name, d) in [("read", &p.read), ("write", &p.write)] {
        if d.ios > 0 {
            direction(out, p, name, d);
        }
    }
    if p.sync.ios > 0 {
        let verb = if p.verb.is_empty() { "sync" } else { &p.verb };
        let _ = writeln!(out, "  {verb:<6} {} calls, {:.1}/s", p.sync.ios, p.per_s(p.sync.ios));
        latency(out, "lat", &p.sync.lat);
        percentiles(out, "lat", &p.sync.lat);
    }
    for f in &p.figures {
        let _ = writeln!(out, "  {:<34} {}", f.name, figure(f.value, &f.unit));
    }
    if let Some(c) = &p.cpu {
        let _ = writeln!(
            out,
            "  cpu    usr {:.1} %, sys {:.1} %, {:.2} us per operation, {} switches",
            c.user_pct,
            c.system_pct,
            c.ns_per_io / 1e3,
            c.switches
        );
    }
    if let Some(d) = &p.device {
        let _ = writeln!(
            out,
            "  device {} r/s {:.0}, w/s {:.0}, MB_read/s {:.1}, MB_wrtn/s {:.1}, await {:.2} ms, aqu-sz {:.1}, util {:.0} %{}",
            clean(d.name.as_bytes()),
            d.reads_per_s,
            d.writes_per_s,
            d.read_mb_per_s,
            d.write_mb_per_s,
            d.await_ms,
            d.queue_size,
            d.util_pct,
            ratio(p)
        );
    }
    let longest = p.stalls.longest_ns as f64 / 1e6;
    if longest > 0.0 {
        let _ = writeln!(
            out,
            "  stalls {} of 100 ms or more; longest without a completion {longest:.1} ms",
            p.stalls.count
        );
    }
}

/// `, program : device 1.00`; what the device did not see came from a cache.
fn ratio(p: &Part) -> String {
    match p.app_to_device() {
        None => String::new(),
        Some(r) if r > 1000.0 => ", program : device more than 1000 (a cache)".into(),
        Some(r) => format!(", program : device {r:.2}"),
    }
}

/// A figure with its unit, digits by size.
pub fn figure(value: f64, unit: &str) -> String {
    let digits = match value.abs() {
        v if v == v.trunc() && v < 1e15 => 0,
        v if v >= 1000.0 => 0,
        v if v >= 10.0 => 2,
        _ => 3,
    };
    if unit.is_empty() { format!("{value:.digits$}") } else { format!("{value:.digits$} {unit}") }
}

fn direction(out: &mut String, p: &Part, name: &str, d: &Direction) {
    let bytes = p.per_s(d.bytes);
    let _ = writeln!(
        out,
        "  {name:<6} IOPS {:.0}, {:.1} MiB/s ({:.1} MB/s), {} in {} operations",
        p.per_s(d.ios),
        bytes / MIB,
        bytes / 1e6,
        bytes_long(d.bytes),
        d.ios
    );
    // A synchronous engine has no submission apart: all of it is completion.
    if d.slat.max_ns > 0 {
        latency(out, "slat", &d.slat);
        latency(out, "clat", &d.clat);
    }
    latency(out, "lat", &d.lat);
    percentiles(out, "lat", &d.lat);
}

/// A latency in ns, in the unit that suits it.
pub fn us(ns: f64) -> String {
    match ns {
        n if n < 10_000.0 => format!("{:.2}us", n / 1e3),
        n if n < 10_000_000.0 => format!("{:.0}us", n / 1e3),
        n if n < 10e9 => format!("{:.1}ms", n / 1e6),
        n => format!("{:.1}s", n / 1e9),
    }
}

fn latency(out: &mut String, name: &str, l: &Latency) {
    let _ = writeln!(
        out,
        "    {name:<4} min {}, mean {}, stddev {}, max {}",
        us(l.min_ns as f64),
        us(l.mean_ns),
        us(l.stddev_ns),
        us(l.max_ns as f64)
    );
}

fn percentiles(out: &mut String, name: &str, l: &Latency) {
    use crate::bench::measure::histogram::PERCENTILES;
    let all: Vec<_> =
        PERCENTILES.iter().filter_map(|p| Some(format!("p{p} {}", us(l.percentile(*p)? as f64)))).collect();
    for row in all.chunks(6) {
        let _ = writeln!(out, "    {name} {}", row.join("  "));
    }
}
