//! Devices that are fast except for a few requests, which a mean hides: a share of slow requests all the time, or stalls
//! that come again and again. From traced latencies; skipped without them.

use super::prelude::*;
use crate::doctor::device_users::{DeviceUsers, Requests};
use crate::model::latency::{HeatmapBins, RequestLatency};
use crate::model::topology::DeviceKind;

/// Long enough for several stalls, so that their distance is known.
const WINDOW_SECS: f64 = 60.0;
/// Less proves nothing; `doctor` looks for ten seconds by default.
const MIN_SECS: f64 = 8.0;
/// Fewer slow requests may be chance.
const MIN_SLOW: u64 = 3;
/// A slow request takes at least this many times the median ...
const MIN_RATIO: f64 = 20.0;
/// ... and no more than this share of the requests are slow: otherwise the device is.
const MAX_SLOW_SHARE: f64 = 0.1;
/// A queue up to this many times that of the ticks whose requests are fast does not make requests slow.
const MAX_USUAL_QUEUE: f64 = 1.2;
/// From this share of the ticks on slow requests come all the time, not in stalls.
const ALWAYS: f64 = 0.5;
/// With this much CPU pressure (PSI some avg10) in the ticks with slow requests, one that is slow now and then may have waited for a processor: the
/// kernel thread, server or hypervisor that serves it has none.
const STARVED_PCT: f64 = 60.0;
/// A stall that lasts so long, ms, and so many times the median, is more than a wait for a processor that others use ...
const LONG_STALL_MS: f64 = 1000.0;
const LONG_STALL_RATIO: f64 = 100.0;
/// ... unless this program had none either: its own tick took this many times the usual ...
const LATE_RATIO: f64 = 1.5;
/// ... or the hypervisor took this share of the processors.
const STOLEN_PCT: f64 = 20.0;
/// Kinds of requests with their name.
const KINDS: [(usize, &str, Requests); 2] = [(0, "reads", Requests::Reads), (1, "writes", Requests::Writes)];

/// Slow requests of one kind over the window.
#[derive(Default)]
struct Tail {
    secs: f64,
    samples: u64,
    slow: u64,
    /// Medians of the ticks, ms, with their numbers of requests.
    medians: Vec<(f64, u64)>,
    max_ms: f64,
    ticks: usize,
    /// Ends of the ticks with a slow request, CLOCK_BOOTTIME, ns, newest first.
    slow_ticks: Vec<u64>,
    /// Their CPU pressure, per cent, where it is known.
    slow_tick_cpu_pct: Vec<f64>,
    /// The longest of those ticks, s, and the median of all.
    slow_tick_secs: f64,
    usual_tick_secs: f64,
}

/// Requests in bins that begin at `ms` or later. A bin that begins earlier may hold slow ones too.
fn slower_than(bins: &HeatmapBins, ms: f64) -> u64 {
    let slow = bins.bins().iter().filter(|(bin, _)| HeatmapBins::bin_start_us(*bin) >= ms * 1e3);
    slow.map(|(_, count)| u64::from(*count)).sum()
}

fn cpu_pressure_pct(tick: &Snapshot) -> Option<f64> {
    Some(tick.pressure.ok()?.cpu.some?.avg10)
}

/// Mean queue of a tick without its slow requests, each of which counts as the slowest one: a stall makes a queue of those
/// that it holds up.
fn queue_of_others(device: &DiskRate, interval_secs: f64, slow: u64, max_us: f64) -> f64 {
    device.queue_size - slow as f64 * max_us / 1e6 / interval_secs.max(1e-9)
}

/// Median of the queue in ticks whose requests are all fast; `None` without such ticks.
fn usual_queue(ctx: &RuleContext<'_>, id: DevId, kind: usize, critical_ms: f64) -> Option<f64> {
    let fast_queue = |tick: &Snapshot| {
        let device = tick.device(id)?;
        let RequestLatency { total: Some(_), heatmap, .. } = &device.latency.as_ref()?.kinds[kind] else { return None };
        (slower_than(heatmap, critical_ms) == 0).then_some(device.queue_size)
    };
    let mut queues: Vec<f64> = ctx.window(WINDOW_SECS).filter_map(fast_queue).collect();
    queues.sort_by(f64::total_cmp);
    queues.get(queues.len() / 2).copied()
}

impl Tail {
    /// `None` where the latencies of the device are not traced.
    fn of(ctx: &RuleContext<'_>, id: DevId, kind: usize) -> Option<Self> {
        let limits = ctx.storage_class(id).limits();
        let mut out = Self::default();
        let mut tick_secs: Vec<f64> = ctx.window(WINDOW_SECS).map(|tick| tick.interval_secs).collect();
        tick_secs.sort_by(f64::total_cmp);
        out.usual_tick_secs = tick_secs.get(tick_secs.len() / 2).copied().unwrap_or_default();
        let usual_queue = usual_queue(ctx, id, kind, limits.critical_ms);
        for tick in ctx.window(WINDOW_SECS) {
            let Some(device) = tick.device(id) else { continue };
            let Some(latency) = device.latency.as_ref() else { continue };
            out.secs += tick.interval_secs;
            out.ticks += 1;
            let RequestLatency { total: Some(total), heatmap, .. } = &latency.kinds[kind] else { continue };
            let slow = slower_than(heatmap, limits.critical_ms);
            // Behind a queue every request takes long, which is no fault of the device.
            let queue = queue_of_others(device, tick.interval_secs, slow, total.max);
            if queue >= limits.deep_queue && usual_queue.is_none_or(|usual| queue > MAX_USUAL_QUEUE * usual) {
                continue;
            }
            out.samples += total.samples;
            out.medians.push((total.p50 / 1e3, total.samples));
            out.slow += slow;
            if slow > 0 {
                out.max_ms = out.max_ms.max(total.max / 1e3);
                out.slow_ticks.push(tick.time.boot_ns);
                out.slow_tick_cpu_pct.extend(cpu_pressure_pct(tick));
                out.slow_tick_secs = out.slow_tick_secs.max(tick.interval_secs);
            }
        }
        (out.ticks > 0).then_some(out)
    }

    fn is_slow(&self, critical_ms: f64) -> bool {
        self.slow >= MIN_SLOW
            && self.slow_ticks.len() >= 2
            && self.slow as f64 <= MAX_SLOW_SHARE * self.samples as f64
            && critical_ms >= MIN_RATIO * self.median_ms()
    }

    /// Half of the requests are in ticks with no larger median. A tick with a stall may have none but slow requests.
    fn median_ms(&self) -> f64 {
        let mut medians = self.medians.clone();
        medians.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut seen = 0;
        let mut is_half = |count: &u64| {
            seen += count;
            seen * 2 >= self.samples
        };
        medians.iter().find(|(_, count)| is_half(count)).map_or(0.0, |(ms, _)| *ms)
    }

    /// Mean CPU pressure of the ticks with slow requests, per cent: now it may be another one.
    fn cpu_pct(&self) -> f64 {
        self.slow_tick_cpu_pct.iter().sum::<f64>() / self.slow_tick_cpu_pct.len().max(1) as f64
    }

    /// Whether what serves the device may have waited for a processor, with this much stolen time, per cent.
    fn may_be_starved(&self, stolen_pct: f64) -> bool {
        let is_long = self.max_ms >= LONG_STALL_MS && self.max_ms >= LONG_STALL_RATIO * self.median_ms();
        let is_late = self.slow_tick_secs >= LATE_RATIO * self.usual_tick_secs;
        !self.comes_always() && self.cpu_pct() >= STARVED_PCT && (!is_long || is_late || stolen_pct >= STOLEN_PCT)
    }

    fn comes_always(&self) -> bool {
        self.slow_ticks.len() as f64 >= ALWAYS * self.ticks as f64
    }

    /// Seconds from stall to stall, if there are three or more at least 2 s apart; adjacent ticks are one stall.
    fn period_secs(&self) -> Option<f64> {
        let secs = |newer: u64, older: u64| newer.saturating_sub(older) as f64 / 1e9;
        let gaps = self.slow_ticks.windows(2).map(|pair| secs(pair[0], pair[1]));
        let mut gaps: Vec<f64> = gaps.filter(|gap| *gap >= 2.0).collect();
        gaps.sort_by(f64::total_cmp);
        (gaps.len() >= 2).then(|| gaps[gaps.len() / 2])
    }
}

pub(super) fn evaluate(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    ctx.require(&ctx.system.snapshot.devices)?;
    ctx.require(&ctx.system.snapshot.tracing)?;
    let mut has_history = false;
    for device in ctx.devices() {
        for (kind, name, requests) in KINDS {
            let Some(tail) = Tail::of(ctx, device.id, kind) else { continue };
            has_history |= tail.secs >= MIN_SECS;
            let is_slow = |id: DevId, tail: &Tail| tail.is_slow(ctx.storage_class(id).limits().critical_ms);
            if tail.secs < MIN_SECS || !is_slow(device.id, &tail) {
                continue;
            }
            // Every device above one with slow requests has them: report the lowest.
            let below = |id: &DevId| Tail::of(ctx, *id, kind).is_some_and(|tail| is_slow(*id, &tail));
            if !ctx.device_chain(device.id).iter().skip(1).any(below) {
                out.push(build_finding(ctx, device.id, name, requests, &tail));
            }
        }
    }
    match has_history {
        true => Ok(()),
        false => Err(RuleSkipped::NeedsMoreData("several seconds of traced latencies")),
    }
}

fn build_finding(ctx: &RuleContext<'_>, id: DevId, name: &str, requests: Requests, tail: &Tail) -> Finding {
    let (device, limits) = (ctx.device_name(id), ctx.storage_class(id).limits());
    let users = DeviceUsers::find(ctx, id, MIN_SECS, requests);
    let (max, median) = (format::ms(tail.max_ms), format::ms(tail.median_ms()));
    let share = tail.slow as f64 * 100.0 / tail.samples.max(1) as f64;
    let share = if share < 1.0 { "less than 1%".into() } else { format::percent(share) };
    let period = tail.period_secs().map(format::duration);
    let problem = match (tail.comes_always(), &period) {
        (true, _) => format!("some {name} on {device} take up to {max}"),
        (false, Some(period)) => format!("{device} stalls about every {period}: {name} take up to {max}"),
        (false, None) => format!("{device} stalls now and then: {name} take up to {max}"),
    };
    let used_by = users.summary().map_or(String::new(), |users| format!("; {users}"));
    let title = format!("{problem}, half of them no more than {median}{used_by}");
    let stolen_pct = ctx.mean(WINDOW_SECS.min(tail.secs), |tick| Some(tick.cpu.ok()?.steal_pct)).unwrap_or(0.0);
    let is_starved =
        tail.may_be_starved(stolen_pct) && matches!(ctx.device_kind(id), Some(DeviceKind::Loop | DeviceKind::Nbd));
    ctx.device_finding(if is_starved { Severity::Note } else { Severity::Warn }, id, title)
        .aspect(name)
        .fact_opt("CPU pressure", is_starved.then(|| format!("{}: what serves its requests waits for a processor", format::percent(tail.cpu_pct()))))
        .fact("slow", format!("{} of {} {name} ({share}) took over {}", tail.slow, tail.samples, format::ms(limits.critical_ms)))
        .fact("max", max)
        .fact("median", format!("up to {median}"))
        .fact("seconds with slow requests", format!("{} of {}", tail.slow_ticks.len(), tail.ticks))
        .fact_opt("period", period.filter(|_| !tail.comes_always()))
        .fact_opt(users.fact_name(), users.list())
        .delays(users.sufferers(limits.critical_ms))
        .on_files(main_files(ctx, id, MIN_SECS, requests))
        .since(tail.slow_ticks.last().copied().unwrap_or_default())
        .why("The mean hides it, but a program that needs a hundred requests for one answer meets a slow one every time.")
        .advise_at("look for errors, retries and resets in the kernel log", NavTarget::KernelLog(None))
        .advise("look for what comes at the same times: garbage collection of a flash disk, a snapshot or backup of the volume, \
                 a job, a path that fails over")
        .advise_at("watch the heat map of its latencies", NavTarget::Device(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ticks of a second with a median of 1.2 ms, in two of which requests took up to so many ms with so much CPU pressure.
    fn stalling(max_ms: f64, cpu_pct: f64) -> Tail {
        let (medians, slow_ticks) = (vec![(1.2, 9000)], vec![20, 10]);
        let (slow_tick_secs, usual_tick_secs) = (1.0, 1.0);
        Tail {
            max_ms,
            medians,
            slow_ticks,
            slow_tick_cpu_pct: vec![cpu_pct, cpu_pct],
            samples: 9000,
            ticks: 28,
            slow_tick_secs,
            usual_tick_secs,
            ..Tail::default()
        }
    }

    #[test]
    fn a_long_stall_on_busy_processors_is_one_of_the_device() {
        assert!(!stalling(1500.0, 90.0).may_be_starved(0.0));
    }

    #[test]
    fn a_stall_may_be_a_wait_for_a_processor() {
        assert!(stalling(300.0, 90.0).may_be_starved(0.0), "short");
        assert!(!stalling(300.0, 20.0).may_be_starved(0.0), "processors were free");
        let unknown = Tail { slow_tick_cpu_pct: vec![], ..stalling(300.0, 0.0) };
        assert!(!unknown.may_be_starved(0.0), "the kernel does not tell");
        let late = Tail { slow_tick_secs: 2.4, ..stalling(1500.0, 90.0) };
        assert!(late.may_be_starved(0.0), "this program was late as well");
        assert!(stalling(1500.0, 90.0).may_be_starved(40.0), "the hypervisor took the processors");
        let slow_median = Tail { medians: vec![(30.0, 9000)], ..stalling(1500.0, 90.0) };
        assert!(slow_median.may_be_starved(0.0), "it does not stand out");
    }
}
