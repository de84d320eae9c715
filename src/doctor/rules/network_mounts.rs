//! File systems over the network: a wire that is full, requests sent twice, a protocol of the last century.

use crate::doctor::finding::{Finding, FindingSubject, NavTarget, Rule, RuleStatus, Severity};
use crate::doctor::format;
use crate::doctor::rule_context::{RuleContext, Sustained};
use crate::model::network::{NetFsKind, NetFsRate, NicRate};
use crate::model::raw_bytes::RawBytes;
use crate::model::snapshot::Snapshot;

/// The wire is full.
pub const LINK_FULL: Rule =
    Rule { name: "network-link-full", description: "a network mount limited by its link", evaluate: evaluate_link };
/// Sent more than once.
pub const NFS_RETRANSMITS: Rule =
    Rule { name: "nfs-retransmits", description: "NFS requests sent more than once", evaluate: evaluate_retransmits };
/// SMB 1.
pub const SMB1: Rule =
    Rule { name: "cifs-version-1", description: "shares mounted with SMB 1", evaluate: evaluate_smb1 };

/// Over so long.
const WINDOW_SECS: f64 = 5.0;
/// An interface's bytes without preamble and gaps: a full wire shows about 95.
const FULL_PCT: f64 = 85.0;
/// A link of this speed or less is of the 100 Mbit class, bits per second.
const HUNDRED_MBIT_PER_S: u64 = 100_000_000;
/// What 100 Mbit come to, MB/s: flat between these, where the driver does not tell its speed, looks like such
/// a port somewhere on the way (one guide's case: 9.6 MB/s, flat).
const HUNDRED_MBIT_MB_PER_S: (f64, f64) = (8.5, 12.0);
/// The rate wanders by less than this share when a wire limits it.
const STEADY_SPREAD: f64 = 0.08;
/// Flat for so long.
const STEADY_SECS: f64 = 10.0;
/// Requests sent again, of all: more than this is no stray packet.
const MIN_RETRANSMIT_PCT: f64 = 1.0;
/// Fewer per second are not worth a word.
const MIN_RETRANSMITS_PER_S: f64 = 0.2;

fn unavailable(case: &RuleContext<'_>) -> Option<RuleStatus> {
    match case.system.snapshot.netfs.unavailable_reason(case.now_ns()) {
        // A machine without such mounts has nothing to judge.
        Some(_) if matches!(case.system.snapshot.netfs, crate::model::reading::Reading::Absent(_)) => {
            Some(RuleStatus::Evaluated)
        }
        Some(why) => Some(RuleStatus::Unavailable(why)),
        None => None,
    }
}

fn mounts<'c>(case: &'c RuleContext<'_>) -> &'c [NetFsRate] {
    case.snapshot().and_then(|s| s.netfs.ok()).map(Vec::as_slice).unwrap_or_default()
}

fn same_mount<'s>(s: &'s Snapshot, m: &NetFsRate) -> Option<&'s NetFsRate> {
    s.netfs.ok()?.iter().find(|f| f.dev == m.dev && f.mount == m.mount)
}

fn find_interface<'s>(s: &'s Snapshot, name: &str) -> Option<&'s NicRate> {
    s.nics.ok()?.iter().find(|n| crate::sanitize::sanitize(&n.name) == name)
}

fn throughput_mb_per_s(m: &NetFsRate) -> Option<f64> {
    Some(m.read_mb_per_s? + m.write_mb_per_s?)
}

fn evaluate_link(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    if let Some(judged) = unavailable(case) {
        return judged;
    }
    let mut judged = RuleStatus::Evaluated;
    for m in mounts(case) {
        let Some(interface) = m.interface.as_deref() else { continue };
        let full = |s: &Snapshot| {
            Some(find_interface(s, interface)?.used_pct? >= FULL_PCT && throughput_mb_per_s(same_mount(s, m)?)? >= 1.0)
        };
        match case.sustained(WINDOW_SECS, full) {
            Sustained::TooEarly => judged = RuleStatus::NeedsMoreData("a few seconds of network counters"),
            Sustained::Since(since) => out.push(full_link_finding(case, m, interface, since)),
            Sustained::NotSustained => out.extend(steady_rate_finding(case, m, interface)),
        }
    }
    judged
}

fn format_link_speed(bits: u64) -> String {
    match bits {
        b if b >= 1_000_000_000 => format!("{} Gbit/s", b / 1_000_000_000),
        b => format!("{} Mbit/s", b / 1_000_000),
    }
}

fn link_finding(m: &NetFsRate, severity: Severity, title: String) -> Finding {
    Finding::new(LINK_FULL.name, severity, FindingSubject::Mount(RawBytes::from(m.mount.as_str())), title)
        .fact_opt("read", m.read_mb_per_s.map(format::mb_per_s))
        .fact_opt("written", m.write_mb_per_s.map(format::mb_per_s))
        .fact("server", m.server.clone())
        .why(
            "The storage behind the network may be fast: no more than the slowest wire on the way comes through. A port that \
             negotiated 100 Mbit caps storage at 12 MB/s.",
        )
        .see_also(NavTarget::Devices)
}

fn full_link_finding(case: &RuleContext<'_>, m: &NetFsRate, interface: &str, since: u64) -> Finding {
    let nic = case.snapshot().and_then(|s| find_interface(s, interface));
    let bits = nic.and_then(|n| n.speed_bits);
    let used = case.mean(WINDOW_SECS, |s| self::find_interface(s, interface)?.used_pct).unwrap_or_default();
    let slow = bits.is_some_and(|b| b <= HUNDRED_MBIT_PER_S);
    let class = if slow { ", a 100 Mbit link" } else { "" };
    let title = format!("{} is limited by its wire: {interface}{class} is {} full", m.mount, format::percent(used));
    link_finding(m, Severity::Warn, title)
        .fact("interface", interface)
        .fact_opt("link speed", bits.map(format_link_speed))
        .fact("link used", format::percent(used))
        .since(since)
        .advise(
            "check what the port negotiated (ethtool) and every switch port on the way; a bad cable falls back to 100 Mbit",
            "nothing",
        )
        .advise("mount over another route or interface, or bond links", "cabling, set-up")
}

/// A flat rate of 9 to 12 MB/s where nobody tells the speed of the link.
fn steady_rate_finding(case: &RuleContext<'_>, m: &NetFsRate, interface: &str) -> Option<Finding> {
    let unknown = case.snapshot().and_then(|s| find_interface(s, interface)).is_some_and(|n| n.speed_bits.is_none());
    if !unknown {
        return None;
    }
    let mean = case.mean(STEADY_SECS, |s| throughput_mb_per_s(same_mount(s, m)?))?;
    let flat = |s: &Snapshot| Some((throughput_mb_per_s(same_mount(s, m)?)? - mean).abs() <= mean * STEADY_SPREAD);
    let since = case.sustained(STEADY_SECS, flat).since()?;
    if !(HUNDRED_MBIT_MB_PER_S.0..=HUNDRED_MBIT_MB_PER_S.1).contains(&mean) {
        return None;
    }
    let title =
        format!("{} moves a flat {}: as through a 100 Mbit port somewhere on the way", m.mount, format::mb_per_s(mean));
    Some(
        link_finding(m, Severity::Warn, title)
            .fact("interface", interface)
            .fact("link speed", "not told by its driver")
            .since(since)
            .advise("check every switch port on the way, the server's too; measure with iperf", "some traffic"),
    )
}

fn evaluate_retransmits(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    if let Some(judged) = unavailable(case) {
        return judged;
    }
    let mut judged = RuleStatus::Evaluated;
    for m in mounts(case).iter().filter(|m| m.kind == NetFsKind::Nfs) {
        let again = case.mean(WINDOW_SECS, |s| same_mount(s, m)?.retransmits_per_s);
        let (Some(again), Some(ops)) = (again, case.mean(WINDOW_SECS, |s| same_mount(s, m)?.ops_per_s)) else {
            judged = RuleStatus::NeedsMoreData("a few seconds of NFS counters");
            continue;
        };
        let pct = again * 100.0 / (ops + again).max(1e-9);
        if again < MIN_RETRANSMITS_PER_S || pct < MIN_RETRANSMIT_PCT {
            continue;
        }
        let title = format!(
            "{}: {} of NFS requests are sent again ({}/s)",
            m.mount,
            format::percent(pct),
            format::count(again)
        );
        out.push(
            Finding::new(
                NFS_RETRANSMITS.name,
                Severity::Warn,
                FindingSubject::Mount(RawBytes::from(m.mount.as_str())),
                title,
            )
            .fact("retransmits", format!("{}/s", format::count(again)))
            .fact("requests", format!("{}/s", format::count(ops)))
            .fact_opt("rtt", m.rtt_ms.map(format::ms))
            .fact_opt("major timeouts", m.timeouts_per_s.map(|n| format!("{}/s", format::count(n))))
            .fact("server", m.server.clone())
            .why("Each one waited for a timeout of seconds first: programs on this mount stand still meanwhile.")
            .advise("check loss on the way (ip -s link, switch counters) and the load of the server", "nothing")
            .advise("mount with proto=tcp if it uses UDP; see whether the server's threads are all busy", "a new mount")
            .see_also(NavTarget::Devices),
        );
    }
    judged
}

fn evaluate_smb1(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    if let Some(judged) = unavailable(case) {
        return judged;
    }
    let raw = case.system.last_sample.as_ref().and_then(|s| s.netfs.ok()).map(Vec::as_slice).unwrap_or_default();
    for m in raw.iter().filter(|m| m.kind == NetFsKind::Cifs) {
        let Some(version) = m.version.as_deref().filter(|v| v.starts_with('1')) else { continue };
        let title = format!("{} is mounted with SMB {}", m.mount.sanitized(), crate::sanitize::sanitize(version));
        out.push(
            Finding::new(SMB1.name, Severity::Warn, FindingSubject::Mount(m.mount.clone()), title)
                .fact("version", crate::sanitize::sanitize(version))
                .fact("server", m.server.sanitized())
                .why("SMB 1 moves 64 KiB a request and waits for each; it has no encryption, and attacks on it are public.")
                .advise("mount with vers=3.0 or higher", "the server has to speak it")
                .see_also(NavTarget::Devices),
        );
    }
    RuleStatus::Evaluated
}
