//! A report in the structure of `fio --output-format=json`, for programs made to read that.
//!
//! Fields as fio 3.33 writes them (`stat.c`: `show_thread_status_json`, `add_ddir_status_json`). What fio
//! has and this program does not measure has fio's empty value, because consumers index without
//! checking.

use super::data::{BenchReport, Measurement, RunEnd, SeriesPoint};
use crate::bench::fio::export::{main_options, to_job_file};
use crate::bench::measure::depth::{BATCH_LABELS, LEVEL_LABELS};
use crate::bench::measure::histogram::{PERCENTILES, bucket_midpoint};
use crate::bench::measure::latency::{DirectionStats, LatencyStats};
use serde_json::{Map, Value, json};

/// `bins`: with the counts of all latency buckets, as `fio --output-format=json+`.
pub(crate) fn fio_document(r: &BenchReport, bins: bool) -> Value {
    let direct = u8::from(r.plan.direct).to_string();
    let is_uring = r.measurements.first().is_some_and(|p| p.engine.starts_with("io_uring"));
    let mut document = json!({
        "fio version": format!("iotop-plus-{}", r.version),
        "timestamp": id_seconds(&r.id),
        "timestamp_ms": id_seconds(&r.id).saturating_mul(1000).saturating_add(time_milliseconds(&r.time)),
        "time": r.time,
        "global options": { "ioengine": if is_uring { "io_uring" } else { "psync" }, "direct": direct },
        "jobs": r.measurements.iter().map(|p| job_json(p, r, bins)).collect::<Vec<_>>(),
        "disk_util": r.measurements.iter().filter_map(disk_util_json).collect::<Vec<_>>(),
    });
    document.sort_all_objects();
    document
}

/// A report's name begins with its time in seconds.
fn id_seconds(id: &str) -> u64 {
    id.split('-').next().and_then(|s| s.parse().ok()).unwrap_or(0)
}

/// And its RFC 3339 form ends with the milliseconds.
fn time_milliseconds(time: &str) -> u64 {
    time.rsplit_once('.').and_then(|(_, ms)| ms.trim_end_matches('Z').parse().ok()).unwrap_or(0)
}

/// The options of the equivalent job file, or the common ones if there is none.
fn job_options(p: &Measurement, r: &BenchReport) -> Map<String, Value> {
    let jobs = r.plan.job_file.as_ref().map_or(&[][..], |file| &file.jobs);
    if let Some(job) = jobs.iter().find(|job| job.name == p.label) {
        return main_options(job).into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect();
    }
    if let Ok(file) = to_job_file(&r.plan) {
        let pairs = file.lines().filter_map(|l| l.split_once('='));
        return pairs.map(|(k, v)| (k.to_owned(), json!(v))).collect();
    }
    [("bs", p.block.into()), ("iodepth", p.depth.into()), ("numjobs", p.jobs.into()), ("size", r.plan.size)]
        .map(|(key, n): (&str, u64)| (key.to_owned(), json!(n.to_string())))
        .into_iter()
        .collect()
}

fn job_json(p: &Measurement, r: &BenchReport, bins: bool) -> Value {
    // fio gives an errno.
    let error = match r.end {
        RunEnd::Complete => 0,
        RunEnd::Cancelled => libc::ECANCELED,
        RunEnd::Failed(_) => libc::EIO,
        RunEnd::Stalled(_) => libc::ETIMEDOUT,
    };
    let ms = p.elapsed_ns / 1_000_000;
    let cpu = p.cpu.unwrap_or_default();
    json!({
        "jobname": p.label,
        "groupid": 0,
        "error": error,
        "eta": 0,
        "elapsed": p.elapsed_ns.div_ceil(1_000_000_000),
        "job options": job_options(p, r),
        "read": direction_json(p, &p.read, |s| s.read_iops, bins),
        "write": direction_json(p, &p.write, |s| s.write_iops, bins),
        "trim": direction_json(p, &p.trim, |_| 0.0, bins),
        "sync": { "total_ios": p.sync.ios, "lat_ns": latency_json(&p.sync.lat, bins) },
        "job_runtime": ms,
        "usr_cpu": cpu.user_pct,
        "sys_cpu": cpu.system_pct,
        "ctx": cpu.switches,
        "majf": cpu.major_faults,
        "minf": cpu.minor_faults,
        "iodepth_level": bucket_percentages(&LEVEL_LABELS, &p.depths.level),
        "iodepth_submit": bucket_percentages(&BATCH_LABELS, &p.depths.submit),
        "iodepth_complete": bucket_percentages(&BATCH_LABELS, &p.depths.complete),
        "latency_ns": latency_percentages(p, 1, &[2, 4, 10, 20, 50, 100, 250, 500, 750, 1000]),
        "latency_us": latency_percentages(p, 1_000, &[2, 4, 10, 20, 50, 100, 250, 500, 750, 1000]),
        "latency_ms": latency_percentages(p, 1_000_000, &[2, 4, 10, 20, 50, 100, 250, 500, 750, 1000, 2000]),
        "latency_depth": p.depth,
        "latency_target": 0,
        "latency_percentile": 100.0,
        "latency_window": 0,
    })
}

fn direction_json(p: &Measurement, d: &DirectionStats, iops: fn(&SeriesPoint) -> f64, bins: bool) -> Value {
    let (lo, hi, mean, dev, n) = iops_statistics(p, d, iops);
    // KiB per second at so many operations per second.
    let bw = |iops: f64| iops * d.bytes as f64 / (d.ios.max(1) as f64) / 1024.0;
    let bytes = p.rate_of(d.bytes);
    json!({
        "io_bytes": d.bytes,
        "io_kbytes": d.bytes >> 10,
        "bw_bytes": bytes as u64,
        "bw": (bytes / 1024.0) as u64,
        "iops": p.rate_of(d.ios),
        "runtime": if d.ios > 0 { p.elapsed_ns / 1_000_000 } else { 0 },
        "total_ios": d.ios,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": latency_json(&d.slat, bins),
        "clat_ns": latency_json(&d.clat, bins),
        "lat_ns": latency_json(&d.lat, bins),
        "bw_min": bw(lo) as u64,
        "bw_max": bw(hi) as u64,
        "bw_agg": if d.ios > 0 { 100.0 } else { 0.0 },
        "bw_mean": bw(mean),
        "bw_dev": bw(dev),
        "bw_samples": n,
        "iops_min": lo as u64,
        "iops_max": hi as u64,
        "iops_mean": mean,
        "iops_stddev": dev,
        "iops_samples": n,
    })
}

fn latency_json(l: &LatencyStats, bins: bool) -> Value {
    let mut v = json!({
        "min": l.min_ns, "max": l.max_ns, "mean": l.mean_ns, "stddev": l.stddev_ns, "N": l.count,
    });
    let list: Map<String, Value> =
        PERCENTILES.iter().filter_map(|p| Some((format!("{p:.6}"), json!(l.percentile(*p)?)))).collect();
    if !list.is_empty() {
        v["percentile"] = Value::Object(list);
    }
    if let (true, Some(histogram)) = (bins && l.count > 0, &l.histogram) {
        let bin = |(i, n): &(u16, u64)| (bucket_midpoint(usize::from(*i)).to_string(), json!(n));
        v["bins"] = Value::Object(histogram.buckets.iter().map(bin).collect());
    }
    v
}

/// Least, most, mean, deviation, number of IOPS in the series; unlike in fio intervals without I/O count: stalls.
fn iops_statistics(p: &Measurement, d: &DirectionStats, iops: fn(&SeriesPoint) -> f64) -> (f64, f64, f64, f64, u64) {
    let points: Vec<f64> = p.series.iter().map(iops).collect();
    if points.is_empty() || d.ios == 0 {
        return (0.0, 0.0, 0.0, 0.0, 0);
    }
    let n = points.len() as f64;
    let mean = points.iter().sum::<f64>() / n;
    let spread: f64 = points.iter().map(|x| (x - mean).powi(2)).sum();
    let dev = if n > 1.0 { (spread / (n - 1.0)).sqrt() } else { 0.0 };
    let (lo, hi) = points.iter().fold((f64::MAX, 0.0f64), |(lo, hi), x| (lo.min(*x), hi.max(*x)));
    (lo, hi, mean, dev, points.len() as u64)
}

/// Percent in each bucket; all 0 if nothing was counted, as in fio.
fn bucket_percentages(names: &[&str], counts: &[u64]) -> Value {
    let total = counts.iter().fold(0, |sum: u64, n| sum.saturating_add(*n)).max(1) as f64;
    let one = |(name, n): (&&str, &u64)| ((*name).to_owned(), json!(*n as f64 / total * 100.0));
    Value::Object(names.iter().zip(counts).map(one).collect())
}

/// Percent of operations in each bucket of `lat`; upper bounds in `unit` ns.
fn latency_percentages(p: &Measurement, unit: u64, ends: &[u64]) -> Value {
    let lat = p.combined_lat();
    let total = lat.count.max(1) as f64;
    let mut out = Map::new();
    let mut low = if unit == 1 { 0 } else { unit };
    let buckets = lat.histogram.as_ref().map(|h| h.buckets.as_slice()).unwrap_or_default();
    let share = |from: u64, to: u64| {
        let within = |i: u16| {
            let v = bucket_midpoint(i as usize);
            v >= from && v < to
        };
        buckets.iter().filter(|(i, _)| within(*i)).map(|(_, n)| *n as f64).sum::<f64>() / total * 100.0
    };
    for end in ends {
        out.insert(end.to_string(), json!(share(low, end * unit)));
        low = end * unit;
    }
    if unit == 1_000_000 {
        out.insert(">=2000".into(), json!(share(low, u64::MAX)));
    }
    Value::Object(out)
}

fn disk_util_json(p: &Measurement) -> Option<Value> {
    let d = p.device.as_ref()?;
    let n = |per_s: f64| (per_s * p.elapsed_secs()) as u64;
    Some(json!({
        "name": crate::sanitize::sanitize(d.name.as_bytes()),
        "read_ios": n(d.reads_per_s), "write_ios": n(d.writes_per_s),
        "read_merges": n(d.read_merges_per_s), "write_merges": n(d.write_merges_per_s),
        "read_ticks": n(d.reads_per_s * d.read_await_ms), "write_ticks": n(d.writes_per_s * d.write_await_ms),
        "in_queue": n(d.queue_size * 1000.0), "util": d.util_pct,
    }))
}
