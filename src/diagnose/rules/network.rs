//! File systems over the network: a wire that is full, requests sent twice, a protocol of the last century.

use crate::diagnose::case::{Case, Held};
use crate::diagnose::finding::{Finding, Judged, Jump, Rule, Severity, Subject};
use crate::diagnose::words;
use crate::model::network::{NetFsKind, NetFsRate, NicRate};
use crate::model::raw_bytes::RawBytes;
use crate::model::snapshot::Snapshot;

/// The wire is full.
pub const LINK: Rule =
    Rule { name: "network-link-full", about: "a network mount limited by its link", look: link };
/// Sent more than once.
pub const RETRANSMITS: Rule =
    Rule { name: "nfs-retransmits", about: "NFS requests sent more than once", look: retransmits };
/// SMB 1.
pub const CIFS1: Rule = Rule { name: "cifs-version-1", about: "shares mounted with SMB 1", look: cifs1 };

/// Over so long.
const WINDOW_SECS: f64 = 5.0;
/// An interface's bytes without preamble and gaps: a full wire shows about 95.
const FULL_PCT: f64 = 85.0;
/// A link of this speed or less is of the 100 Mbit class, bits per second.
const HUNDRED_MBIT: u64 = 100_000_000;
/// What 100 Mbit come to, MB/s: flat between these, where the driver does not tell its speed, looks like such
/// a port somewhere on the way (one guide's case: 9.6 MB/s, flat).
const FLAT_MB: (f64, f64) = (8.5, 12.0);
/// The rate wanders by less than this share when a wire limits it.
const FLAT_SPREAD: f64 = 0.08;
/// Flat for so long.
const FLAT_SECS: f64 = 10.0;
/// Requests sent again, of all: more than this is no stray packet.
const AGAIN_PCT: f64 = 1.0;
/// Fewer per second are not worth a word.
const AGAIN_PER_S: f64 = 0.2;

fn missing(case: &Case<'_>) -> Option<Judged> {
    match case.world.snapshot.netfs.unavailable_reason(case.now_ns()) {
        // A machine without such mounts has nothing to judge.
        Some(_) if matches!(case.world.snapshot.netfs, crate::model::reading::Reading::Absent(_)) => {
            Some(Judged::Yes)
        }
        Some(why) => Some(Judged::Cannot(why)),
        None => None,
    }
}

fn mounts<'c>(case: &'c Case<'_>) -> &'c [NetFsRate] {
    case.snap().and_then(|s| s.netfs.ok()).map(Vec::as_slice).unwrap_or_default()
}

fn of<'s>(s: &'s Snapshot, m: &NetFsRate) -> Option<&'s NetFsRate> {
    s.netfs.ok()?.iter().find(|f| f.dev == m.dev && f.mount == m.mount)
}

fn nic<'s>(s: &'s Snapshot, name: &str) -> Option<&'s NicRate> {
    s.nics.ok()?.iter().find(|n| crate::text::sanitize(&n.name) == name)
}

fn moved(m: &NetFsRate) -> Option<f64> {
    Some(m.read_mb_per_s? + m.write_mb_per_s?)
}

fn link(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    if let Some(judged) = missing(case) {
        return judged;
    }
    let mut judged = Judged::Yes;
    for m in mounts(case) {
        let Some(interface) = m.interface.as_deref() else { continue };
        let full = |s: &Snapshot| Some(nic(s, interface)?.used_pct? >= FULL_PCT && moved(of(s, m)?)? >= 1.0);
        match case.held(WINDOW_SECS, full) {
            Held::NotYet => judged = Judged::NotYet("a few seconds of network counters"),
            Held::Since(since) => out.push(full_wire(case, m, interface, since)),
            Held::No => out.extend(flat(case, m, interface)),
        }
    }
    judged
}

fn speed(bits: u64) -> String {
    match bits {
        b if b >= 1_000_000_000 => format!("{} Gbit/s", b / 1_000_000_000),
        b => format!("{} Mbit/s", b / 1_000_000),
    }
}

fn base(m: &NetFsRate, severity: Severity, title: String) -> Finding {
    Finding::new(LINK.name, severity, Subject::Mount(RawBytes::from(m.mount.as_str())), title)
        .fact_if("read", m.read_mb_per_s.map(words::mb))
        .fact_if("written", m.write_mb_per_s.map(words::mb))
        .fact("server", m.server.clone())
        .why(
            "The storage behind the network may be fast: no more than the slowest wire on the way comes through. A port that \
             negotiated 100 Mbit caps storage at 12 MB/s.",
        )
        .look_at(Jump::Devices)
}

fn full_wire(case: &Case<'_>, m: &NetFsRate, interface: &str, since: u64) -> Finding {
    let nic = case.snap().and_then(|s| nic(s, interface));
    let bits = nic.and_then(|n| n.speed_bits);
    let used = case.mean(WINDOW_SECS, |s| self::nic(s, interface)?.used_pct).unwrap_or_default();
    let slow = bits.is_some_and(|b| b <= HUNDRED_MBIT);
    let class = if slow { ", a 100 Mbit link" } else { "" };
    let title =
        format!("{} is limited by its wire: {interface}{class} is {} full", m.mount, words::pct(used));
    base(m, Severity::Warn, title)
        .fact("interface", interface)
        .fact_if("link speed", bits.map(speed))
        .fact("link used", words::pct(used))
        .since(since)
        .advise(
            "check what the port negotiated (ethtool) and every switch port on the way; a bad cable falls back to 100 Mbit",
            "nothing",
        )
        .advise("mount over another route or interface, or bond links", "cabling, set-up")
}

/// A flat rate of 9 to 12 MB/s where nobody tells the speed of the link.
fn flat(case: &Case<'_>, m: &NetFsRate, interface: &str) -> Option<Finding> {
    let unknown = case.snap().and_then(|s| nic(s, interface)).is_some_and(|n| n.speed_bits.is_none());
    if !unknown {
        return None;
    }
    let mean = case.mean(FLAT_SECS, |s| moved(of(s, m)?))?;
    let flat = |s: &Snapshot| Some((moved(of(s, m)?)? - mean).abs() <= mean * FLAT_SPREAD);
    let since = case.held(FLAT_SECS, flat).since()?;
    if !(FLAT_MB.0..=FLAT_MB.1).contains(&mean) {
        return None;
    }
    let title = format!(
        "{} moves a flat {}: as through a 100 Mbit port somewhere on the way",
        m.mount,
        words::mb(mean)
    );
    Some(
        base(m, Severity::Warn, title)
            .fact("interface", interface)
            .fact("link speed", "not told by its driver")
            .since(since)
            .advise(
                "check every switch port on the way, the server's too; measure with iperf",
                "some traffic",
            ),
    )
}

fn retransmits(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    if let Some(judged) = missing(case) {
        return judged;
    }
    let mut judged = Judged::Yes;
    for m in mounts(case).iter().filter(|m| m.kind == NetFsKind::Nfs) {
        let again = case.mean(WINDOW_SECS, |s| of(s, m)?.retransmits_per_s);
        let (Some(again), Some(ops)) = (again, case.mean(WINDOW_SECS, |s| of(s, m)?.ops_per_s)) else {
            judged = Judged::NotYet("a few seconds of NFS counters");
            continue;
        };
        let pct = again * 100.0 / (ops + again).max(1e-9);
        if again < AGAIN_PER_S || pct < AGAIN_PCT {
            continue;
        }
        let title = format!(
            "{}: {} of NFS requests are sent again ({}/s)",
            m.mount,
            words::pct(pct),
            words::count(again)
        );
        out.push(
            Finding::new(RETRANSMITS.name, Severity::Warn, Subject::Mount(RawBytes::from(m.mount.as_str())), title)
                .fact("retransmits", format!("{}/s", words::count(again)))
                .fact("requests", format!("{}/s", words::count(ops)))
                .fact_if("rtt", m.rtt_ms.map(words::ms))
                .fact_if("major timeouts", m.timeouts_per_s.map(|n| format!("{}/s", words::count(n))))
                .fact("server", m.server.clone())
                .why("Each one waited for a timeout of seconds first: programs on this mount stand still meanwhile.")
                .advise("check loss on the way (ip -s link, switch counters) and the load of the server", "nothing")
                .advise("mount with proto=tcp if it uses UDP; see whether the server's threads are all busy", "a new mount")
                .look_at(Jump::Devices),
        );
    }
    judged
}

fn cifs1(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    if let Some(judged) = missing(case) {
        return judged;
    }
    let raw = case.world.last_sample.as_ref().and_then(|s| s.netfs.ok()).map(Vec::as_slice).unwrap_or_default();
    for m in raw.iter().filter(|m| m.kind == NetFsKind::Cifs) {
        let Some(version) = m.version.as_deref().filter(|v| v.starts_with('1')) else { continue };
        let title = format!("{} is mounted with SMB {}", m.mount.sanitized(), crate::text::sanitize(version));
        out.push(
            Finding::new(CIFS1.name, Severity::Warn, Subject::Mount(m.mount.clone()), title)
                .fact("version", crate::text::sanitize(version))
                .fact("server", m.server.sanitized())
                .why("SMB 1 moves 64 KiB a request and waits for each; it has no encryption, and attacks on it are public.")
                .advise("mount with vers=3.0 or higher", "the server has to speak it")
                .look_at(Jump::Devices),
        );
    }
    Judged::Yes
}
