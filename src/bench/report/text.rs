//! A report for people, in fio's terms.

use super::{End, Part, Report};
use crate::bench::measure::latency::{Direction, Latency};
use crate::text::sanitize;
use crate::units::format_bytes_long;
use std::fmt::Write as _;

const MIB: f64 = 1_048_576.0;

/// The whole report, for a terminal of usual width.
pub fn report(r: &Report) -> String {
    report_within(r, 90)
}

/// The whole report, its drawings at most `width` cells wide.
pub fn report_within(r: &Report, width: usize) -> String {
    let mut out = String::new();
    let _ =
        writeln!(out, "{} on {} (kernel {}), {}", r.plan.profile, sanitize(&r.host), sanitize(&r.kernel), r.time);
    if let Some(t) = &r.target {
        let device = t.device.as_deref().unwrap_or("none of its own");
        let _ = writeln!(out, "  {}: {} on {} (device {device})", t.directory, t.filesystem, t.source);
    }
    let _ = writeln!(out, "  {}", end(&r.end));
    if super::sweep::is_one(r) {
        sweep(&mut out, r, width);
    } else {
        if r.parts.iter().filter(|p| p.read.ios + p.write.ios + p.sync.ios > 0).count() > 1 {
            side_by_side(&mut out, r);
        }
        for part in &r.parts {
            out.push('\n');
            one(&mut out, part, r);
        }
    }
    for sentence in super::scale::sentences(r) {
        let _ = write!(out, "\n{}", wrapped(&sentence));
    }
    if let Some(p) = &r.ruler {
        let _ = write!(
            out,
            "\n{}\n{}\n",
            super::ruler::drawing(p, width.saturating_sub(16).clamp(16, 64)),
            p.sentence
        );
    }
    for (n, w) in r.warnings.iter().enumerate() {
        let _ = writeln!(out, "{}! {w}", if n == 0 { "\n" } else { "" });
    }
    out
}

/// Twenty parts in full are for programs (`--format json`); people get a table and three pictures.
fn sweep(out: &mut String, r: &Report, width: usize) {
    let engine = r.parts.first().map_or("", |p| p.engine.as_str());
    let charts = match width < super::chart::WIDTH {
        true => format!("The charts need {} columns.\n", super::chart::WIDTH),
        false => super::sweep::charts(r),
    };
    let _ = write!(
        out,
        "  depth {}, jobs {}, {}, {engine}\n\n{}\n{charts}",
        r.plan.depth,
        r.plan.jobs,
        if r.plan.direct { "direct I/O" } else { "through the page cache" },
        super::sweep::table(r)
    );
    for finding in super::sweep::findings(r) {
        let _ = write!(out, "\n{}", wrapped(&sanitize(&finding)));
    }
}

/// The parts against each other, before each of them in full.
fn side_by_side(out: &mut String, r: &Report) {
    let _ = writeln!(out, "\n{:<22}{:>10}{:>10}{:>9}{:>9}{:>9}", "", "per s", "MiB/s", "p50", "p99", "max");
    for p in &r.parts {
        let rows = super::rows(p);
        if !rows.is_empty() {
            let _ = writeln!(out, "{}", p.label);
        }
        for row in rows {
            let mib = match p.per_s(row.bytes) / MIB {
                0.0 => String::new(),
                mib if mib < 1.0 => format!("{mib:.3}"),
                mib => format!("{mib:.1}"),
            };
            let time = |percent| {
                let known = enough(row.lat.n, percent).then(|| row.lat.percentile(percent)).flatten();
                known.map_or("-".into(), |ns| us(ns as f64))
            };
            let _ = writeln!(
                out,
                "  {:<20}{:>10.1}{mib:>10}{:>9}{:>9}{:>9}",
                row.what,
                p.per_s(row.ios),
                time(50.0),
                time(99.0),
                us(row.lat.max_ns as f64)
            );
        }
    }
}

/// A sentence in lines of at most 80 columns, broken between words.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split(' ') {
        let len = word.chars().count();
        if column > 0 && column + 1 + len > 80 {
            out.push('\n');
            column = 0;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += len;
    }
    out.push('\n');
    out
}

/// Whether `n` samples can say anything about a percentile: one at least must lie beyond it.
fn enough(n: u64, percent: f64) -> bool {
    n as f64 * percent.min(100.0 - percent) / 100.0 >= 0.999
}

/// What one operation of a profile moves.
fn piece(r: &Report) -> &'static str {
    match r.plan.profile.as_str() {
        "append" | "fsync" | "txlog" => "records",
        "chunks" => "pieces",
        _ => "blocks",
    }
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

fn one(out: &mut String, p: &Part, r: &Report) {
    let _ = write!(out, "{}", p.label);
    if p.block > 0 {
        let size = format_bytes_long(p.block.into());
        let _ = write!(out, ": {size} {}, depth {}, jobs {}", piece(r), p.depth, p.jobs);
    }
    let _ = writeln!(out, ", {:.2} s{}{}", p.secs(), if p.engine.is_empty() { "" } else { ", " }, p.engine);
    for (name, d) in [("read", &p.read), ("write", &p.write)] {
        if d.ios > 0 {
            direction(out, p, name, d);
        }
    }
    if p.sync.ios > 0 {
        let (verb, calls) = match (p.verb.as_str(), p.sync.ios) {
            ("", 1) => ("sync", " call"),
            ("", _) => ("sync", " calls"),
            (verb, _) => (verb, ""),
        };
        let _ = writeln!(out, "  {verb:<6} {}{calls}, {:.1}/s", p.sync.ios, p.per_s(p.sync.ios));
        latency(out, "lat", &p.sync.lat);
        percentiles(out, "lat", &p.sync.lat);
    }
    for f in &p.figures {
        let _ = writeln!(out, "  {:<34} {}", f.name, figure(f.value, &f.unit));
    }
    if let Some(c) = &p.cpu {
        let each = match c.ns_per_io {
            0.0 => String::new(),
            ns => format!(", {:.2} us per operation", ns / 1e3),
        };
        let _ = writeln!(
            out,
            "  cpu    usr {:.1} %, sys {:.1} %{each}, {} switches",
            c.user_pct, c.system_pct, c.switches
        );
    }
    if let Some(d) = &p.device {
        let _ = writeln!(
            out,
            "  device {} r/s {:.0}, w/s {:.0}, MB_read/s {:.1}, MB_wrtn/s {:.1}, await {:.2} ms, aqu-sz {:.1}, util {:.0} %{}",
            sanitize(d.name.as_bytes()),
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
    // What does no I/O has no completions to miss.
    if longest > 0.0 && p.verb.is_empty() {
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
    // A log's kilobytes are not 0.0 MiB.
    let rate = match bytes {
        b if b < MIB => format!("{:.1} KiB/s ({:.1} kB/s)", b / 1024.0, b / 1e3),
        b => format!("{:.1} MiB/s ({:.1} MB/s)", b / MIB, b / 1e6),
    };
    let _ = writeln!(
        out,
        "  {name:<6} IOPS {:.0}, {rate}, {} in {} operations",
        p.per_s(d.ios),
        format_bytes_long(d.bytes),
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

/// A time, digits by size: `1.23us`, `12.3ms`, `1.2s`.
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
    let sound = PERCENTILES.iter().filter(|p| enough(l.n, **p));
    let all: Vec<_> = sound.filter_map(|p| Some(format!("p{p} {}", us(l.percentile(*p)? as f64)))).collect();
    for row in all.chunks(6) {
        let _ = writeln!(out, "    {name} {}", row.join("  "));
    }
}
