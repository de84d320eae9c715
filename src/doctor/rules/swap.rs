//! Swap: traffic that costs time now, pages swapped out long ago that nobody misses, and servers that wait for their own
//! memory.

use super::prelude::*;
use crate::model::memory::SwapRate;
use crate::model::process::{ProcessColumn, ProcessFilter, ProcessQuery, ProcessRow};
use crate::model::topology::DeviceKind;

/// Single pages are swapped in all the time; this long is no coincidence.
pub(super) const WINDOW_SECS: f64 = 5.0;
/// In and out together: 16 pages per second. Database guides ask for si and so of 0.
pub(super) const MIN_TRAFFIC_BYTES_PER_S: f64 = 16.0 * 4096.0;
/// Intermittent traffic is searched for over this long, and needs this many bursts.
const BURST_SECS: f64 = 9.0;
const MIN_BURSTS: usize = 3;
/// Swap-in of 2 pages per second, so that a program's faults are about swap and not about its files.
const MIN_SWAP_IN_BYTES_PER_S: f64 = 2.0 * 4096.0;
/// With this much memory pressure (PSI full avg10) no task makes progress.
const STANDSTILL_PCT: f64 = 25.0;
const QUIET_SECS: f64 = 10.0;
/// Every long-running machine has less than this share of memory in swap.
const MIN_USED_PCT: f64 = 5.0;
/// Share of a server's memory in swap: more than its start-up code.
const SERVER_SWAPPED_PCT: f64 = 10.0;
/// Faults from which on a swapped program misses its memory.
const MIN_FAULTS_PER_S: f64 = 5.0;
/// Share of its time that such a program waits for swap.
const MIN_SWAPIN_DELAY_PCT: f64 = 1.0;
const MAX_NAMED_TASKS: usize = 3;
const DISK_WHY: &str = "A program waits for the disk where it expected memory: thousands of times slower.";
const ZRAM_WHY: &str = "Pages are compressed and unpacked: that takes some CPU time, no disk. It is slow only where memory pressure is high.";
/// With this share of memory available nobody is short of it.
const PLENTY_AVAILABLE: f64 = 0.25;
/// A task with this share of the swap in use has most of it.
const MAIN_SHARE: f64 = 0.5;

pub(super) fn traffic_bytes_per_s(tick: &Snapshot) -> Option<f64> {
    let swap = tick.swap.ok()?;
    Some(swap.in_bytes_per_s? + swap.out_bytes_per_s?)
}

fn used_bytes(swap: &SwapRate) -> Option<String> {
    swap.used_bytes.map(|n| format::bytes(n as f64))
}

pub(super) fn evaluate_swapping(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let swap = ctx.require(&ctx.system.snapshot.swap)?;
    let is_swapping = |tick: &Snapshot| Some(traffic_bytes_per_s(tick)? >= MIN_TRAFFIC_BYTES_PER_S);
    let Some(since) = ctx.sustained(WINDOW_SECS, is_swapping, "a few seconds of swap counters")? else {
        return evaluate_bursts(ctx, swap, out);
    };
    let secs = ctx.figure_secs(since, WINDOW_SECS);
    let mean = |get: fn(&SwapRate) -> Option<f64>| ctx.mean(secs, |tick| get(tick.swap.ok()?)).unwrap_or(0.0);
    let (si, so) = (mean(|s| s.in_bytes_per_s), mean(|s| s.out_bytes_per_s));
    let (si, so) = (format::bytes_per_s(si), format::bytes_per_s(so));
    let full_pct = ctx.snapshot().and_then(|s| s.pressure.ok()?.memory.full).map(|psi| psi.avg10);
    let (in_memory, stands_still) = (swaps_to_memory(ctx), full_pct.is_some_and(|pct| pct >= STANDSTILL_PCT));
    let severity = match in_memory {
        true if !stands_still => Severity::Note,
        true => Severity::Warn,
        false => Severity::critical_if(stands_still),
    };
    let place = if in_memory { " to zram" } else { "" };
    let title = format!("the machine is swapping{place}: si {si}, so {so}");
    let itself = self_swapping_task(ctx, swap);
    let mut finding = Finding::of_machine(severity, title)
        .fact("si", si)
        .fact("so", so)
        .fact_opt("swap used", used_bytes(swap))
        .fact_opt("memory pressure, full", full_pct.map(format::percent))
        .fact_opt("major faults", ctx.system.snapshot.major_faults_per_s.map(format::per_s));
    for row in faulting_tasks(ctx) {
        let faults = format::per_s(row.rates().major_faults_per_s.unwrap_or(0.0));
        finding = finding.fact("faulting", format!("{}, {faults}", row.label()));
    }
    finding
        .since(since)
        .why(if in_memory { ZRAM_WHY } else { DISK_WHY })
        .advise_at("find the process that grew: the SWAP and RSS columns", NavTarget::Processes)
        .advise("free memory: smaller caches and heaps, fewer workers, or add memory")
        .costs("less cache, or money")
        .advise_at("lower vm.swappiness if file cache pushes programs out", knob("vm.swappiness"))
        .costs("the file cache is dropped earlier")
        .see_also(NavTarget::Memory)
        .on_devices(swap_devices(ctx))
        .in_cgroup(itself.as_ref().and_then(|row| row.cgroup()))
        .caused_by(itself.map(|row| InvolvedTask::named(row.label())))
        .report(out);
    Ok(())
}

/// The task that has most of what is in swap, while much memory is available: nobody else pushes it out. It gives its memory
/// up itself, or reaches a limit of its own.
fn self_swapping_task<'a>(ctx: &RuleContext<'a>, swap: &SwapRate) -> Option<ProcessRow<'a>> {
    let (used, mem) = (swap.used_bytes?, ctx.system.snapshot.mem.ok()?);
    if (mem.available? as f64) < mem.total as f64 * PLENTY_AVAILABLE {
        return None;
    }
    let swapped = |row: &ProcessRow<'_>| row.raw.swap_bytes.unwrap_or(0);
    let survey = ctx.task_survey();
    let most = *survey.swapped_tasks.iter().max_by_key(|row| swapped(row))?;
    (swapped(&most) as f64 >= used as f64 * MAIN_SHARE && moves_swap(ctx, &most)).then_some(most)
}

/// Whether a task's memory in swap has changed, or it waits for it; what sleeps was swapped out long ago.
fn moves_swap(ctx: &RuleContext<'_>, row: &ProcessRow<'_>) -> bool {
    let frames = ctx.system.history.iter().rev().take(WINDOW_SECS as usize);
    let before = frames.filter_map(|frame| frame.tasks.get(&row.key())?.raw.swap_bytes).last();
    let waits = row.rates().major_faults_per_s.is_some_and(|n| n > 0.0);
    waits || before.is_some_and(|before| Some(before) != row.raw.swap_bytes)
}

/// Pages swapped out again and again with pauses, as when a limit is reached now and then.
fn evaluate_bursts(ctx: &RuleContext<'_>, swap: &SwapRate, out: &mut Vec<Finding>) -> RuleResult {
    let swap_out = |tick: &Snapshot| tick.swap.ok()?.out_bytes_per_s;
    let mean = ctx.mean(BURST_SECS, swap_out).ok_or(RuleSkipped::NeedsMoreData("nine seconds of swap counters"))?;
    let active: Vec<bool> =
        ctx.window(BURST_SECS).map(|tick| swap_out(tick).is_some_and(|n| n >= MIN_TRAFFIC_BYTES_PER_S)).collect();
    let covered_secs: f64 = ctx.window(BURST_SECS).map(|tick| tick.interval_secs).sum();
    let bursts = active.chunk_by(|a, b| a == b).filter(|run| run[0]).count();
    if bursts < MIN_BURSTS || mean < MIN_TRAFFIC_BYTES_PER_S {
        return Ok(());
    }
    let so = format::bytes_per_s(mean);
    let title = format!("pages are swapped out again and again: so {so}");
    Finding::of_machine(Severity::Note, title)
        .fact("so", so)
        .fact("bursts", format!("{bursts} in {}", format::duration(covered_secs)))
        .fact_opt("swap used", used_bytes(swap))
        .why(
            "A process grows against a limit, or gives up memory on purpose. While nothing is swapped in (si), \
             programs do not wait for it.",
        )
        .advise_at("see whose memory it is: the SWAP column, and si in the Memory view", NavTarget::Memory)
        .advise("raise the cgroup's limit that is reached, if there is one")
        .costs("others have less memory")
        .see_also(NavTarget::Memory)
        .on_devices(swap_devices(ctx))
        .report(out);
    Ok(())
}

/// Devices that hold swap, and those below them.
fn swap_devices(ctx: &RuleContext<'_>) -> Vec<DevId> {
    let Some(topology) = ctx.system.topology.ok() else { return Vec::new() };
    topology.devices.iter().filter(|d| !d.swaps.is_empty()).flat_map(|d| ctx.device_chain(d.id)).collect()
}

/// Whether all swap areas are in compressed memory.
fn swaps_to_memory(ctx: &RuleContext<'_>) -> bool {
    let devices = ctx.system.topology.ok().map_or(&[][..], |topology| &topology.devices);
    let zram = || devices.iter().filter(|device| device.kind == DeviceKind::Zram).flat_map(|device| &device.swaps);
    let areas = ctx.system.snapshot.swap_areas.ok().map_or(&[][..], |areas| areas);
    !areas.is_empty() && areas.iter().all(|area| zram().any(|name| name.as_bytes() == area.name.as_bytes()))
}

fn faulting_tasks<'a>(ctx: &RuleContext<'a>) -> Vec<ProcessRow<'a>> {
    let query = ProcessQuery {
        sort_by: ProcessColumn::MajorFaults,
        filter: ProcessFilter { only_active: true, ..ProcessFilter::default() },
        height: MAX_NAMED_TASKS,
        ..ProcessQuery::default()
    };
    let rows = ctx.system.processes.window(&query).rows.into_iter().map(|index| ctx.system.processes.row(index));
    let waits_for_swap = |row: &ProcessRow<'_>| row.rates().swapin_delay_pct.is_none_or(|pct| pct > 0.0);
    rows.filter(|row| row.rates().major_faults_per_s.is_some_and(|n| n >= MIN_FAULTS_PER_S) && waits_for_swap(row))
        .collect()
}

pub(super) fn evaluate_idle(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let swap = ctx.require(&ctx.system.snapshot.swap)?;
    let total = ctx.system.snapshot.mem.ok().map(|mem| mem.total);
    let (Some(used), Some(total)) = (swap.used_bytes, total) else {
        return Err(RuleSkipped::Unavailable("memory sizes: not read".into()));
    };
    let used_pct = used as f64 * 100.0 / total.max(1) as f64;
    if used_pct < MIN_USED_PCT {
        return Ok(());
    }
    let is_quiet = |tick: &Snapshot| Some(traffic_bytes_per_s(tick)? < MIN_TRAFFIC_BYTES_PER_S);
    let Some(since) = ctx.sustained(QUIET_SECS, is_quiet, "ten seconds of swap counters")? else { return Ok(()) };
    let used = format::bytes(used as f64);
    let title = format!("{used} in swap, none of it moving");
    Finding::of_machine(Severity::Note, title)
            .fact("swap used", used)
            .fact("of memory", format::percent(used_pct))
            .fact("idle for", format::duration(ctx.secs_since(since)))
            .since(since)
            .why("It was swapped out under memory pressure before. It costs nothing now; a program that needs it waits once.")
            .advise_at("see whose memory it is, before a server needs it", NavTarget::Memory)
            .see_also(NavTarget::Memory).report(out);
    Ok(())
}

pub(super) fn evaluate_servers(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    ctx.require(&ctx.system.processes_status)?;
    let swap_in = ctx.mean(WINDOW_SECS, |tick| tick.swap.ok()?.in_bytes_per_s);
    let is_swapping_in = swap_in.is_some_and(|n| n >= MIN_SWAP_IN_BYTES_PER_S);
    let survey = ctx.task_survey();
    for row in &survey.swapped_tasks {
        let Some(swapped) = row.raw.swap_bytes else { continue };
        let swapped_pct = swapped as f64 * 100.0 / (swapped + row.raw.rss_bytes).max(1) as f64;
        let faults_per_s = row.rates().major_faults_per_s.unwrap_or(0.0);
        let is_server = survey.is_server(row.key());
        // Faults on files are major faults as well; where delays are counted, those on swap are known.
        let waits_for_swap = row.rates().swapin_delay_pct.is_none_or(|pct| pct >= MIN_SWAPIN_DELAY_PCT);
        let misses_memory = faults_per_s >= MIN_FAULTS_PER_S && is_swapping_in && waits_for_swap;
        if swapped_pct >= SERVER_SWAPPED_PCT && (is_server || misses_memory) {
            let mut finding = server_finding(row, is_server, swapped, swapped_pct, faults_per_s);
            if swaps_to_memory(ctx) {
                (finding.severity, finding.why) = (Severity::Note, ZRAM_WHY);
            }
            out.push(finding);
        }
    }
    Ok(())
}

fn server_finding(row: &ProcessRow<'_>, is_server: bool, swapped: u64, swapped_pct: f64, faults_per_s: f64) -> Finding {
    let (swapped, share) = (format::bytes(swapped as f64), format::percent(swapped_pct));
    let what = if is_server { "server " } else { "" };
    let title = format!("{what}{} has {swapped} of its memory in swap ({share})", row.label());

    Finding::of_task(Severity::Warn, row.key(), &row.comm(), title)
        .in_cgroup(row.cgroup())
        .fact("in swap", swapped)
        .fact("resident", format::bytes(row.raw.rss_bytes as f64))
        .fact("share in swap", share)
        .fact("major faults", format::per_s(faults_per_s))
        .why(
            "It waits for the disk whenever it needs a missing page. Healthy servers have some kilobytes of start-up \
             code in swap. Swapped shared memory comes on top: VmSwap does not count it.",
        )
        .advise_at("see which mappings are swapped: its page reads them when asked", NavTarget::Task(row.key()))
        .costs("walks its page tables, which stops it meanwhile, for seconds if it is large")
        .advise_at("lower vm.swappiness; give it memory.low, or lock its memory", knob("vm.swappiness"))
        .costs("the file cache is dropped earlier")
}
