//! The report of a sweep: its table, three charts, and findings about block sizes.
//!
//! Computed from the measurements alone, so a stored result looks like a new one.

use super::chart::{self, ChartSeries};
use super::data::{BenchReport, Measurement};
use super::foreign::no_conclusion_reason;
use super::format::{MIB, format_latency};
use super::request_size::{MIN_OPERATIONS, name_limit, requests_per_operation};
use crate::bench::target::size_hints::{DeviceSizeHint, MAX_SEGMENTS};
use crate::units::format_bytes_long;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Marks and line characters of the series, in order.
const SERIES_MARKS: [(char, char); 2] = [('S', '-'), ('R', '.')];
const READAHEAD_MARKS: [(char, char); 2] = [('0', '.'), ('A', '-')];
/// Doubling the block size explains twice the bandwidth; a jump is at least this many times more.
const JUMP_EXCESS: f64 = 1.25;
/// Steps after a jump keep at least this share of its bandwidth.
const JUMP_RETENTION: f64 = 0.7;

pub(crate) const READAHEAD_OFF: &str = "read-ahead off";

/// The steps of one series, smallest block first.
struct SweepSeries<'a> {
    name: &'a str,
    measurements: Vec<&'a Measurement>,
}

pub(crate) fn step_label(series: &str, block: u32) -> String {
    format!("{series} {}", format_bytes_long(block.into()))
}

fn sweep_series(r: &BenchReport) -> Vec<SweepSeries<'_>> {
    let mut all: Vec<SweepSeries> = Vec::new();
    for part in &r.measurements {
        let size = format_bytes_long(part.block.into());
        let name = part.label.strip_suffix(&size).unwrap_or(&part.label).trim_end();
        match all.iter_mut().find(|s| s.name == name) {
            Some(steps) => steps.measurements.push(part),
            None => all.push(SweepSeries { name, measurements: vec![part] }),
        }
    }
    all
}

fn block_sizes(r: &BenchReport) -> Vec<u32> {
    let all: BTreeSet<u32> = r.measurements.iter().map(|p| p.block).collect();
    all.into_iter().collect()
}

/// `512`, `4k`, `1M`: below the x axis.
fn tick_label(block: u32) -> String {
    match block {
        b if b >= 1 << 20 => format!("{}M", b >> 20),
        b if b >= 1 << 10 => format!("{}k", b >> 10),
        b => b.to_string(),
    }
}

/// The three charts with their legend, at most 80 columns wide.
pub(crate) fn draw_charts(r: &BenchReport) -> String {
    let blocks = block_sizes(r);
    let ticks: Vec<String> = blocks.iter().map(|b| tick_label(*b)).collect();
    let marks = if r.plan.readahead { READAHEAD_MARKS } else { SERIES_MARKS };
    let of = |value: fn(&Measurement) -> f64| -> Vec<ChartSeries> {
        let point = |p: &&Measurement| Some((blocks.iter().position(|b| *b == p.block)?, value(p)));
        let series = |(s, (mark, trail)): (SweepSeries, (char, char))| ChartSeries {
            mark,
            line: trail,
            name: s.name.into(),
            points: s.measurements.iter().filter_map(point).collect(),
        };
        sweep_series(r).into_iter().zip(marks).map(series).collect()
    };
    let bandwidth = of(|p| p.bytes_per_s() / MIB);
    let mut out = format!("{}, over the block size in bytes\n", chart::chart_legend(&bandwidth));
    for (title, series) in [
        ("Bandwidth, MiB/s", &bandwidth),
        ("Latency (mean of lat), us", &of(|p| p.combined_lat().mean_ns / 1e3)),
        ("IOPS", &of(Measurement::iops)),
    ] {
        let _ = write!(out, "\n{}", chart::draw_chart(title, series, &ticks));
    }
    out
}

pub(crate) fn text_table(r: &BenchReport) -> String {
    let all = sweep_series(r);
    let mut out = format!("{:>8}", "");
    for s in &all {
        let _ = write!(out, "  {:<33}", s.name);
    }
    out.truncate(out.trim_end().len());
    let _ = write!(out, "\n{:>8}", "block");
    for _ in &all {
        let _ = write!(out, "{:>9}{:>9}{:>8}{:>9}", "IOPS", "MiB/s", "mean", "p99");
    }
    out.push('\n');
    for block in block_sizes(r) {
        let mut line = format!("{:>8}", format_bytes_long(block.into()));
        for s in &all {
            let Some(p) = s.measurements.iter().find(|p| p.block == block) else {
                let _ = write!(line, "{:35}", "");
                continue;
            };
            let (lat, rate) = (p.combined_lat(), p.bytes_per_s() / MIB);
            let (mean, p99) = (format_latency(lat.mean_ns), lat.percentile(99.0));
            let p99 = p99.map_or("-".into(), |ns| format_latency(ns as f64));
            let _ = write!(line, "{:>9.0}{rate:>9.1}{mean:>8}{p99:>9}", p.iops());
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

pub(crate) fn findings(r: &BenchReport) -> Vec<String> {
    // Direct I/O is not read ahead, so this size explains nothing.
    let counts = |z: &&DeviceSizeHint| z.name != "read_ahead_kb";
    let sizes: Vec<DeviceSizeHint> = r.target.iter().flat_map(|t| &t.size_hints).filter(counts).cloned().collect();
    let all = sweep_series(r);
    let mut out = Vec::new();
    for s in &all {
        // Buffered operations depend on the page cache and its read-ahead, not on the block size alone.
        if r.plan.direct {
            out.extend(bandwidth_jump(s).map(|(from, to)| describe_jump(s.name, from, to, &sizes)));
            out.extend(describe_request_split(s, &sizes, r.plan.huge_pages));
        }
        out.extend(disturbed_steps(s));
    }
    if let (true, [off, on]) = (r.plan.readahead, &all[..]) {
        out.extend(describe_readahead(off, on));
    }
    out
}

/// The steps from which nothing is concluded.
fn disturbed_steps(s: &SweepSeries) -> Vec<String> {
    let said =
        |p: &&Measurement| Some(format!("{}: no conclusion from this step: {}", p.label, no_conclusion_reason(p)?));
    s.measurements.iter().filter_map(said).collect()
}

/// Bandwidth of the third of three steps over the one expected from the two before it.
fn excess_ratio(three: &[&Measurement], rate: fn(&Measurement) -> f64) -> f64 {
    match three {
        [a, b, c] => rate(c) / (2.0 * rate(b)).max(4.0 * rate(a)),
        _ => 0.0,
    }
}

/// Bandwidth by the median operation: slow operations, which come in bursts on a busy machine, change the mean.
fn median_rate(p: &Measurement) -> f64 {
    let lat = p.combined_lat();
    let us = lat.percentile(50.0).map_or(lat.mean_ns, |ns| ns as f64);
    if us > 0.0 { f64::from(p.block) / us } else { 0.0 }
}

/// The largest increase that doubling the block size does not explain, and that lasts. The two smaller block sizes
/// give the expected bandwidth, so that a single slow step does not look like a jump after it.
fn bandwidth_jump<'a>(s: &SweepSeries<'a>) -> Option<(&'a Measurement, &'a Measurement)> {
    let rate = |n: usize| s.measurements[n].bytes_per_s();
    let counts = |p: &Measurement| p.ios() >= MIN_OPERATIONS && no_conclusion_reason(p).is_none();
    let is_disturbed = |n: usize| no_conclusion_reason(s.measurements[n]).is_some();
    let mut best: Option<(f64, usize)> = None;
    for n in 2..s.measurements.len() {
        let (before, this) = (s.measurements[n - 1], s.measurements[n]);
        if this.block != before.block * 2 || rate(n - 1) <= 0.0 || !counts(before) || !counts(this) {
            continue;
        }
        let three = &s.measurements[n - 2..=n];
        let excess = excess_ratio(three, Measurement::bytes_per_s).min(excess_ratio(three, median_rate));
        let stays =
            (n + 1..s.measurements.len()).all(|later| is_disturbed(later) || rate(later) >= JUMP_RETENTION * rate(n));
        if is_disturbed(n - 2) {
            continue;
        }
        if excess >= JUMP_EXCESS && stays && best.is_none_or(|b| excess > b.0) {
            best = Some((excess, n));
        }
    }
    best.map(|(_, n)| (s.measurements[n - 1], s.measurements[n]))
}

fn describe_jump(name: &str, from: &Measurement, to: &Measurement, sizes: &[DeviceSizeHint]) -> String {
    let (slow, fast) = (from.bytes_per_s() / MIB, to.bytes_per_s() / MIB);
    let between = |s: &&DeviceSizeHint| {
        s.name != MAX_SEGMENTS && (u64::from(from.block)..=u64::from(to.block)).contains(&s.bytes)
    };
    let named = |s: &DeviceSizeHint| format!("{} is {}", s.name, format_bytes_long(s.bytes));
    let why: Vec<String> = sizes.iter().filter(between).map(named).collect();
    let why = if why.is_empty() {
        "no size the kernel knows of the device lies there; a stripe or a cache of what is behind it may".into()
    } else {
        format!("{} here", why.join(", "))
    };
    let [small, large] = [from, to].map(|p| format_bytes_long(p.block.into()));
    format!(
        "{name}: from {small} to {large} blocks bandwidth rises {:.1} times ({slow:.1} to {fast:.1} MiB/s); twice the \
         block explains 2 times: {why}",
        fast / slow
    )
}

/// Finds the block size from which on the device gets several requests per operation.
fn describe_request_split(s: &SweepSeries, sizes: &[DeviceSizeHint], huge_pages: bool) -> Option<String> {
    let each: Vec<Option<f64>> = s.measurements.iter().map(|p| requests_per_operation(p)).collect();
    let first = each.iter().position(|e| e.is_some_and(|e| e >= 1.8))?;
    let before = each[..first].last().copied().flatten()?;
    let whole = before <= 1.3 && each[..first].iter().flatten().all(|e| *e <= 1.3);
    let goes_on = each[first..].iter().all(|e| e.is_none_or(|e| e >= 1.8));
    if !whole || !goes_on {
        return None;
    }
    let (last, block) = (s.measurements[first - 1].block, s.measurements[first].block);
    let limit = name_limit(last, block, sizes, huge_pages);
    let (name, requests) = (s.name, each[first].unwrap_or_default());
    let [last, block] = [last, block].map(|bytes| format_bytes_long(bytes.into()));
    Some(format!(
        "{name}: the device gets {requests:.1} requests for one operation of {block}: {last} is the largest that goes as \
         one{limit}"
    ))
}

/// How much read-ahead gains, and from which block size on it makes no difference.
fn describe_readahead(off: &SweepSeries, on: &SweepSeries) -> Option<String> {
    let pairs: Vec<(u32, f64, f64)> = off
        .measurements
        .iter()
        .filter_map(|p| {
            let other = on.measurements.iter().find(|q| q.block == p.block)?;
            (p.bytes_per_s() > 0.0).then(|| (p.block, p.bytes_per_s() / MIB, other.bytes_per_s() / MIB))
        })
        .collect();
    let most = pairs.iter().max_by(|a, b| (a.2 / a.1).total_cmp(&(b.2 / b.1)))?;
    let same = |p: &(u32, f64, f64)| (0.8..=1.25).contains(&(p.2 / p.1));
    let ratio = most.2 / most.1;
    if ratio < 1.25 {
        return Some(match pairs.iter().all(same) {
            true => "read-ahead makes no difference here: all rates are within a quarter of each other".into(),
            false => "read-ahead is of no use here: no block size is read a quarter faster with it".into(),
        });
    }
    let (block, off_rate, on_rate) = (format_bytes_long(most.0.into()), most.1, most.2);
    let mut said = format!(
        "{}: {block} blocks are read at {on_rate:.1} MiB/s with it and at {off_rate:.1} without, {ratio:.1} times",
        on.name
    );
    if let Some(first) = pairs.iter().rev().take_while(|p| same(p)).last() {
        let _ = write!(said, "; from {} on the two are within a quarter", format_bytes_long(first.0.into()));
    }
    Some(said)
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod sweep_tests;
