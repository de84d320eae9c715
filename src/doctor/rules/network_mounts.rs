//! Network file systems: a saturated link, retransmitted requests, SMB 1.

use super::prelude::*;
use crate::model::file_path;
use crate::model::network::{NetFsKind, NetFsRate, NicRate};
use crate::model::reading::Reading;
use std::collections::BTreeMap;

pub(super) const WINDOW_SECS: f64 = 5.0;
/// Interfaces count bytes without preamble and gaps, so a full link shows about 95%.
const FULL_PCT: f64 = 85.0;
const HUNDRED_MBIT_PER_S: u64 = 100_000_000;
/// Throughput of a 100 Mbit link. A steady rate in this range, where the driver does not report the speed, looks like
/// such a port somewhere on the path.
const HUNDRED_MBIT_MB_PER_S: std::ops::RangeInclusive<f64> = 8.5..=12.0;
/// A rate limited by a link varies by less than this share.
const STEADY_SPREAD: f64 = 0.08;
const STEADY_SECS: f64 = 10.0;
/// More retransmits than this are no stray packets ...
const MIN_RETRANSMIT_PCT: f64 = 1.0;
/// ... and fewer per second do no harm.
const MIN_RETRANSMITS_PER_S: f64 = 0.2;

/// A server that needs longer for a call on the average is slow: one that waits for a spinning disk needs 5 to 30 ms.
const SLOW_MS: f64 = 60.0;
/// With fewer calls the mean proves nothing.
pub(super) const MIN_OPS_PER_S: f64 = 2.0;
/// Tasks that wait for this share of their time suffer.
const SUFFERS_SHARE: f64 = 0.3;
const MAX_NAMED_TASKS: usize = 3;

/// Mounts that are judged, and rows searched for a mount or interface of another tick, at most.
const MAX_MOUNTS: usize = 300;

/// The mounts of the newest tick; none on a machine without network file systems.
fn mounts<'a>(ctx: &RuleContext<'a>) -> Result<&'a [NetFsRate], RuleSkipped> {
    let netfs = &ctx.system.snapshot.netfs;
    if !matches!(netfs, Reading::Absent(_)) {
        ctx.require(netfs)?;
    }
    let mounts = ctx.snapshot().and_then(|s| s.netfs.ok()).map(Vec::as_slice).unwrap_or_default();
    Ok(&mounts[..mounts.len().min(MAX_MOUNTS)])
}

/// Skipped if there are more mounts than are judged.
fn require_all_judged(ctx: &RuleContext<'_>) -> RuleResult {
    match ctx.system.snapshot.netfs.ok().is_some_and(|all| all.len() > MAX_MOUNTS) {
        true => {
            Err(RuleSkipped::Unavailable(format!("more than {MAX_MOUNTS} network mounts, the others are left out")))
        }
        false => Ok(()),
    }
}

fn same_mount<'s>(tick: &'s Snapshot, mount: &NetFsRate) -> Option<&'s NetFsRate> {
    tick.netfs.ok()?.iter().take(MAX_MOUNTS).find(|m| m.dev == mount.dev && m.mount == mount.mount)
}

fn find_interface<'s>(tick: &'s Snapshot, name: &str) -> Option<&'s NicRate> {
    tick.nics.ok()?.iter().take(MAX_MOUNTS).find(|nic| nic.name == name || sanitize(&nic.name) == name)
}

fn throughput_mb_per_s(tick: &Snapshot, mount: &NetFsRate) -> Option<f64> {
    let mount = same_mount(tick, mount)?;
    Some(mount.read_mb_per_s? + mount.write_mb_per_s?)
}

pub(super) fn evaluate_link(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let mut result = Ok(());
    for mount in mounts(ctx)? {
        let Some(interface) = mount.interface.as_deref() else { continue };
        let is_full = |tick: &Snapshot| {
            let used_pct = find_interface(tick, interface)?.used_pct?;
            Some(used_pct >= FULL_PCT && throughput_mb_per_s(tick, mount)? >= 1.0)
        };
        match ctx.sustained(WINDOW_SECS, is_full, "a few seconds of network counters") {
            Ok(Some(since)) => out.push(full_link_finding(ctx, mount, interface, since)),
            Ok(None) => out.extend(steady_rate_finding(ctx, mount, interface)),
            Err(skipped) => result = Err(skipped),
        }
    }
    result.and_then(|()| require_all_judged(ctx))
}

fn format_link_speed(bits_per_s: u64) -> String {
    match bits_per_s {
        b if b >= 1_000_000_000 => format!("{} Gbit/s", b / 1_000_000_000),
        b => format!("{} Mbit/s", b / 1_000_000),
    }
}

fn mount_finding(mount: &str, title: String) -> Finding {
    Finding::of_mount(Severity::Warn, &RawBytes::from(mount), title).see_also(NavTarget::Devices)
}

fn link_finding(mount: &NetFsRate, interface: &str, title: String) -> Finding {
    mount_finding(&mount.mount, title)
        .fact_opt("read", mount.read_mb_per_s.map(format::mb_per_s))
        .fact_opt("written", mount.write_mb_per_s.map(format::mb_per_s))
        .fact("server", mount.server.clone())
        .fact("interface", interface)
        .why(
            "However fast the server's storage is, the slowest link on the path limits it: a port that negotiated \
             100 Mbit/s limits storage to 12 MB/s.",
        )
}

fn full_link_finding(ctx: &RuleContext<'_>, mount: &NetFsRate, interface: &str, since: u64) -> Finding {
    let speed = ctx.snapshot().and_then(|s| find_interface(s, interface)).and_then(|nic| nic.speed_bits);
    let secs = ctx.figure_secs(since, WINDOW_SECS);
    let used_pct = ctx.mean(secs, |tick| find_interface(tick, interface)?.used_pct).unwrap_or_default();
    let slow = if speed.is_some_and(|bits| bits <= HUNDRED_MBIT_PER_S) { ", a 100 Mbit/s link," } else { "" };
    let used = format::percent(used_pct);
    link_finding(mount, interface, format!("{} is limited by its link: {interface}{slow} is {used} full", mount.mount))
        .fact_opt("link speed", speed.map(format_link_speed))
        .fact("link used", used)
        .since(since)
        .advise(
            "check what the port negotiated (ethtool) and every switch port on the path; a bad cable falls back to \
             100 Mbit/s",
        )
        .advise("mount over another route or interface, or bond links")
        .costs("cabling, set-up")
}

/// A steady rate as of a 100 Mbit link where the driver does not report the speed.
fn steady_rate_finding(ctx: &RuleContext<'_>, mount: &NetFsRate, interface: &str) -> Option<Finding> {
    if find_interface(ctx.snapshot()?, interface)?.speed_bits.is_some() {
        return None;
    }
    let mean = ctx.mean(STEADY_SECS, |tick| throughput_mb_per_s(tick, mount))?;
    let is_steady = |tick: &Snapshot| Some((throughput_mb_per_s(tick, mount)? - mean).abs() <= mean * STEADY_SPREAD);
    let since = ctx.sustained(STEADY_SECS, is_steady, "").ok()??;
    if !HUNDRED_MBIT_MB_PER_S.contains(&mean) {
        return None;
    }
    let rate = format::mb_per_s(mean);
    let title = format!("{} transfers a steady {rate}, as through a 100 Mbit/s port on the path", mount.mount);
    Some(
        link_finding(mount, interface, title)
            .fact("link speed", "not reported by its driver")
            .since(since)
            .advise("check every switch port on the path, and the server's; measure with iperf")
            .costs("some traffic"),
    )
}

pub(super) fn evaluate_retransmits(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let mut result = Ok(());
    for mount in mounts(ctx)?.iter().filter(|mount| mount.kind == NetFsKind::Nfs) {
        let retransmits = ctx.mean(WINDOW_SECS, |tick| same_mount(tick, mount)?.retransmits_per_s);
        let requests = ctx.mean(WINDOW_SECS, |tick| same_mount(tick, mount)?.ops_per_s);
        let (Some(retransmits), Some(requests)) = (retransmits, requests) else {
            result = Err(RuleSkipped::NeedsMoreData("a few seconds of NFS counters"));
            continue;
        };
        let pct = retransmits * 100.0 / (requests + retransmits).max(1e-9);
        if retransmits < MIN_RETRANSMITS_PER_S || pct < MIN_RETRANSMIT_PCT {
            continue;
        }
        let (pct, retransmits) = (format::percent(pct), format::per_s(retransmits));
        let title = format!("{} retransmits {pct} of its NFS requests ({retransmits})", mount.mount);
        mount_finding(&mount.mount, title)
            .fact("retransmits", retransmits)
            .fact("requests", format::per_s(requests))
            .fact_opt("rtt", mount.rtt_ms.map(format::ms))
            .fact_opt("major timeouts", mount.timeouts_per_s.map(format::per_s))
            .fact("server", mount.server.clone())
            .why("Each of these requests waited for a timeout of seconds, and blocked its program meanwhile.")
            .advise("check for packet loss on the path (ip -s link, switch counters) and the server's load")
            .advise("mount with proto=tcp if it uses UDP; check whether all nfsd threads are busy")
            .costs("a new mount")
            .report(out);
    }
    result.and_then(|()| require_all_judged(ctx))
}

pub(super) fn evaluate_slow(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let mut result = Ok(());
    for mount in mounts(ctx)? {
        let is_slow = |tick: &Snapshot| {
            let mount = same_mount(tick, mount)?;
            Some(mount.ops_per_s? >= MIN_OPS_PER_S && mount.rtt_ms? >= SLOW_MS)
        };
        match ctx.sustained(WINDOW_SECS, is_slow, "a few seconds of network counters") {
            Ok(Some(since)) => out.push(slow_finding(ctx, mount, since)),
            Ok(None) => {}
            Err(skipped) => result = Err(skipped),
        }
    }
    result.and_then(|()| require_all_judged(ctx))
}

fn slow_finding(ctx: &RuleContext<'_>, mount: &NetFsRate, since: u64) -> Finding {
    let secs = ctx.figure_secs(since, WINDOW_SECS);
    let mean = |get: fn(&NetFsRate) -> Option<f64>| ctx.mean(secs, |tick| get(same_mount(tick, mount)?)).unwrap_or(0.0);
    let (rtt, calls) = (format::ms(mean(|m| m.rtt_ms)), format::per_s(mean(|m| m.ops_per_s)));
    let title = format!("{} is slow: its server {} takes {rtt} for each call, {calls}", mount.mount, mount.server);
    let (tasks, files) = waiting_tasks(ctx, mount, secs);
    mount_finding(&mount.mount, title)
        .fact("rtt", rtt)
        .fact("calls", calls)
        .fact("queue before sending", format::ms(mean(|m| m.queue_ms)))
        .fact("server", mount.server.clone())
        .fact_opt("interface", mount.interface.clone())
        .since(since)
        .delays(tasks)
        .on_files(files)
        .why("This is the time from sending a call to its reply: the way there and back, and the server with its disks. No setting of this machine's disks helps.")
        .advise("measure the way with ping; if that is short, look at the server: its disks, its load, whether all nfsd threads are busy")
        .advise("mount with more connections (nconnect=4), or with larger rsize and wsize")
        .costs("a new mount")
}

/// Who waits most for files of the mount, and these files.
fn waiting_tasks(ctx: &RuleContext<'_>, mount: &NetFsRate, secs: f64) -> (Vec<InvolvedTask>, Vec<String>) {
    let (mut covered, mut sums) = (0.0, BTreeMap::<u32, (f64, String)>::new());
    let mut files = BTreeMap::<_, (f64, String)>::new();
    for waits in ctx.window(secs).filter_map(|tick| tick.task_waits.ok()) {
        covered += waits.covered_secs;
        for row in waits.rows.iter().filter(|row| row.key.file.file_system == mount.dev) {
            if ctx.is_own_process(row.key.pid) {
                continue;
            }
            let name = || format::task(waits.process_name(row.key.pid).unwrap_or("?"), row.key.pid);
            sums.entry(row.key.pid).or_insert_with(|| (0.0, name())).0 += row.secs;
            if row.file.is_full_path {
                let path = || file_path::join(Some(&mount.mount), &row.file.path_tail, true);
                files.entry(row.key.file).or_insert_with(|| (0.0, path())).0 += row.secs;
            }
        }
    }
    let largest = |mut all: Vec<(f64, String)>| {
        all.retain(|(secs, _)| *secs >= SUFFERS_SHARE * covered);
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        all.into_iter().take(MAX_NAMED_TASKS).map(|(_, name)| name).collect::<Vec<_>>()
    };
    let tasks = largest(sums.into_values().collect()).into_iter().map(InvolvedTask::named).collect();
    (tasks, largest(files.into_values().collect()))
}

pub(super) fn evaluate_smb1(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    mounts(ctx)?;
    let sample = ctx.system.last_sample.as_ref();
    let mounts = sample.and_then(|sample| sample.netfs.ok()).map(Vec::as_slice).unwrap_or_default();
    for mount in mounts.iter().filter(|mount| mount.kind == NetFsKind::Cifs) {
        let Some(version) = mount.version.as_deref().filter(|version| version.starts_with('1')) else { continue };
        let (point, version) = (mount.mount.sanitized(), sanitize(version));
        let title = format!("{point} is mounted with SMB {version}");
        Finding::new(Severity::Warn, FindingSubject::Mount(mount.mount.clone()), title)
            .fact("version", version)
            .fact("server", mount.server.sanitized())
            .why(
                "SMB 1 sends one request of 64 KiB at a time, does not encrypt, and has publicly known security holes.",
            )
            .advise("mount with vers=3.0 or higher")
            .costs("the server has to support it")
            .see_also(NavTarget::Devices)
            .report(out);
    }
    Ok(())
}
