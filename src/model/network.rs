//! Network interfaces, network file systems, and their rates.
//!
//! Sources: fs/nfs/super.c and net/sunrpc/stats.c for `/proc/self/mountstats` (statvers 1.1);
//! fs/smb/client/cifs_debug.c for `/proc/fs/cifs/Stats`.

use super::disk::DevId;
use super::raw_bytes::RawBytes;
use super::timestamp::counter_delta;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::hash::Hash;

const MIB: f64 = 1_048_576.0;

/// A network interface (`/proc/net/dev`, `/sys/class/net/*/speed`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NicRaw {
    /// Interface name, raw.
    pub name: String,
    /// Bytes received since it appeared.
    pub rx_bytes: u64,
    /// Bytes sent since it appeared.
    pub tx_bytes: u64,
    /// Link speed in bits per second; `None` where the driver does not report it (virtual, down).
    pub speed_bits: Option<u64>,
}

/// Rates of an interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NicRate {
    /// Interface name, raw.
    pub name: String,
    /// Link speed in bits per second.
    pub speed_bits: Option<u64>,
    /// Busier direction as a percentage of the link speed (links are full duplex). The interface counts bytes
    /// without preamble and gaps, so a saturated link shows about 95.
    pub used_pct: Option<f64>,
}

impl NicRate {
    /// Rates over `secs` seconds; `None` without `prev`, or when the interface was re-created.
    pub fn derive(prev: Option<&NicRaw>, cur: &NicRaw, secs: f64) -> Self {
        let per_s = |f: fn(&NicRaw) -> u64| {
            let grown = counter_delta(f(prev?), f(cur))?;
            (secs > 0.0).then(|| grown as f64 / secs)
        };
        let (rx, tx) = (per_s(|n| n.rx_bytes), per_s(|n| n.tx_bytes));
        let speed = cur.speed_bits.filter(|s| *s > 0);
        Self {
            name: cur.name.clone(),
            speed_bits: cur.speed_bits,
            used_pct: rx.zip(tx).zip(speed).map(|((rx, tx), s)| rx.max(tx) * 800.0 / s as f64),
        }
    }

    /// Rates of all interfaces of a sample, matched by name.
    pub fn derive_all(prev: Option<&[NicRaw]>, cur: &[NicRaw], secs: f64) -> Vec<Self> {
        let mut before = find_by(prev.unwrap_or_default(), |n| n.name.as_str());
        cur.iter().enumerate().map(|(at, n)| Self::derive(before(at, &n.name), n, secs)).collect()
    }
}

/// Kind of network file system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum NetFsKind {
    /// `/proc/self/mountstats`.
    #[default]
    Nfs,
    /// `/proc/fs/cifs/Stats`.
    Cifs,
}

impl NetFsKind {
    /// The name used in JSON and on screen.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Counters of a network file system since it was mounted. The kernel counts a file system with several mounts once,
/// so it is listed once, with its first mount point.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NetFsRaw {
    /// Kind.
    pub kind: NetFsKind,
    /// The file system's anonymous device number: distinguishes a new mount of a share from the old one.
    pub dev: DevId,
    /// Mount point; for CIFS the share if the mount point is unknown.
    pub mount: RawBytes,
    /// Server and export as mounted.
    pub server: RawBytes,
    /// Protocol version, if known (`4.2`, `3.1.1`).
    pub version: Option<String>,
    /// Address of the server, if known.
    pub address: Option<String>,
    /// Interface that routes to the server, if known.
    pub interface: Option<String>,
    /// Seconds since it was mounted.
    pub age_s: Option<u64>,
    /// Bytes read from the server (not from the page cache).
    pub read_bytes: Option<u64>,
    /// Bytes written to the server.
    pub write_bytes: Option<u64>,
    /// Requests completed, all operations.
    pub ops: Option<u64>,
    /// Read requests completed.
    pub read_ops: Option<u64>,
    /// Write requests completed.
    pub write_ops: Option<u64>,
    /// Retransmissions.
    pub retransmits: Option<u64>,
    /// Requests that exceeded a major timeout.
    pub timeouts: Option<u64>,
    /// Requests answered with an error (since 5.3; CIFS: failed).
    pub errors: Option<u64>,
    /// Milliseconds from queueing to sending, over all requests.
    pub queue_ms: Option<u64>,
    /// Milliseconds from sending to the reply, over all requests.
    pub rtt_ms: Option<u64>,
    /// Milliseconds from queueing to completion, over all requests.
    pub execute_ms: Option<u64>,
}

/// Rates of a network file system. The fields up to `link_used_pct` are in the JSON output, the rest only on screen.
/// `None`: not reported by the kernel. A mean time without requests is 0, as in iostat.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NetFsRate {
    /// Mount point, sanitized.
    pub mount: String,
    /// `nfs` or `cifs`.
    pub kind: NetFsKind,
    /// Server and export, sanitized.
    pub server: String,
    /// 2^20 bytes read from the server per second.
    pub read_mb_per_s: Option<f64>,
    /// 2^20 bytes written to the server per second.
    pub write_mb_per_s: Option<f64>,
    /// Mean milliseconds from sending a request to its reply.
    pub rtt_ms: Option<f64>,
    /// Retransmissions per second.
    pub retransmits_per_s: Option<f64>,
    /// Interface that routes to the server.
    pub interface: Option<String>,
    /// Utilisation of that interface by all traffic.
    pub link_used_pct: Option<f64>,
    /// Requests completed per second.
    #[serde(skip)]
    pub ops_per_s: Option<f64>,
    /// Mean milliseconds from queueing to completion.
    #[serde(skip)]
    pub execute_ms: Option<f64>,
    /// Mean milliseconds before sending: high when slots or the link are the limit.
    #[serde(skip)]
    pub queue_ms: Option<f64>,
    /// Major timeouts per second.
    #[serde(skip)]
    pub timeouts_per_s: Option<f64>,
    /// Device number, to join with the mount table.
    #[serde(skip)]
    pub dev: DevId,
}

impl NetFsRate {
    /// Rates over `secs` seconds. Without `prev`, or after a remount, over the time since the mount
    /// (over `secs` where the kernel does not report it).
    pub fn derive(prev: Option<&NetFsRaw>, cur: &NetFsRaw, nics: &[NicRate], secs: f64) -> Self {
        let zero = NetFsRaw { mount: cur.mount.clone(), ..Default::default() };
        let prev = prev.filter(|p| !has_restarted(p, cur));
        let fresh = prev.is_none();
        let prev = prev.unwrap_or(&zero);
        let secs = cur.age_s.filter(|age| fresh && *age > 0).map_or(secs, |age| age as f64);
        let grown = |f: fn(&NetFsRaw) -> Option<u64>| {
            let before = if fresh { Some(0) } else { f(prev) };
            counter_delta(before?, f(cur)?)
        };
        let per_s = |f| grown(f).filter(|_| secs > 0.0).map(|n| n as f64 / secs);
        let ops = grown(|n| n.ops);
        let mean = |f| grown(f).zip(ops).map(|(ms, n)| if n == 0 { 0.0 } else { ms as f64 / n as f64 });
        let nic = cur.interface.as_ref().and_then(|name| nics.iter().find(|n| n.name == *name));
        Self {
            mount: cur.mount.sanitized(),
            kind: cur.kind,
            server: cur.server.sanitized(),
            read_mb_per_s: per_s(|n| n.read_bytes).map(|b| b / MIB),
            write_mb_per_s: per_s(|n| n.write_bytes).map(|b| b / MIB),
            rtt_ms: mean(|n| n.rtt_ms),
            retransmits_per_s: per_s(|n| n.retransmits),
            interface: cur.interface.as_ref().map(crate::sanitize::sanitize),
            link_used_pct: nic.and_then(|n| n.used_pct),
            ops_per_s: per_s(|n| n.ops),
            execute_ms: mean(|n| n.execute_ms),
            queue_ms: mean(|n| n.queue_ms),
            timeouts_per_s: per_s(|n| n.timeouts),
            dev: cur.dev,
        }
    }

    /// Rates of all file systems of a sample.
    pub fn derive_all(prev: Option<&[NetFsRaw]>, cur: &[NetFsRaw], nics: &[NicRate], secs: f64) -> Vec<Self> {
        let key = |n: &'_ NetFsRaw| (n.dev, n.server.clone());
        let mut before = find_by(prev.unwrap_or_default(), key);
        let mut nic = find_by(nics, |n| n.name.as_str());
        let mut rates = Vec::with_capacity(cur.len());
        for (at, c) in cur.iter().enumerate() {
            let nic = c.interface.as_deref().and_then(|name| nic(0, name)).map(std::slice::from_ref);
            rates.push(Self::derive(before(at, key(c)), c, nic.unwrap_or_default(), secs));
        }
        rates
    }

    /// Bytes of its texts.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.mount.len() + self.server.len() + self.interface.as_ref().map_or(0, String::len)
    }
}

/// Finds rows by key: at the position that is asked for, where a row usually stays, otherwise in a table of all rows,
/// which is made when it is needed first. Of several rows with one key the table has the first.
fn find_by<'a, T, K: Eq + Hash>(rows: &'a [T], key: impl Fn(&'a T) -> K) -> impl FnMut(usize, K) -> Option<&'a T> {
    let mut table: Option<HashMap<K, &'a T>> = None;
    move |at, wanted| match rows.get(at).filter(|row| key(row) == wanted) {
        Some(row) => Some(row),
        None => {
            let all = table.get_or_insert_with(|| rows.iter().rev().map(|row| (key(row), row)).collect());
            all.get(&wanted).copied()
        }
    }
}

fn has_restarted(prev: &NetFsRaw, cur: &NetFsRaw) -> bool {
    let back = |f: fn(&NetFsRaw) -> Option<u64>| matches!((f(prev), f(cur)), (Some(p), Some(c)) if c < p);
    prev.dev != cur.dev || back(|n| n.age_s) || back(|n| n.ops) || back(|n| n.read_bytes) || back(|n| n.write_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nic(rx: u64, tx: u64) -> NicRaw {
        NicRaw { name: "eth0".into(), rx_bytes: rx, tx_bytes: tx, speed_bits: Some(100_000_000) }
    }

    #[test]
    fn a_saturated_link_is_near_100_percent() {
        let r = NicRate::derive(Some(&nic(0, 0)), &nic(1_048_576, 24_000_000), 2.0);
        assert_eq!(r.used_pct, Some(96.0));
        let first = NicRate::derive(None, &nic(5, 5), 2.0);
        assert_eq!(first.used_pct, None);
        let again = NicRate::derive(Some(&nic(9, 9)), &nic(5, 5), 2.0);
        assert_eq!(again.used_pct, None);
        let virt = NicRate::derive(Some(&nic(0, 0)), &NicRaw { speed_bits: None, ..nic(5, 5) }, 1.0);
        assert_eq!(virt.used_pct, None);
    }

    fn fs(ops: u64) -> NetFsRaw {
        NetFsRaw {
            mount: "/mnt/n\u{1b}fs".into(),
            server: "nas:/x".into(),
            interface: Some("eth0".into()),
            read_bytes: Some(ops * 1_048_576),
            write_bytes: Some(0),
            ops: Some(ops),
            rtt_ms: Some(ops * 3),
            execute_ms: Some(ops * 5),
            retransmits: Some(ops / 10),
            ..Default::default()
        }
    }

    #[test]
    fn json_field_names_are_stable() {
        let nics = [NicRate { name: "eth0".into(), used_pct: Some(96.0), ..Default::default() }];
        let r = NetFsRate::derive_all(Some(&[fs(100)]), &[fs(120)], &nics, 2.0).remove(0);
        assert_eq!(
            serde_json::to_value(&r).unwrap(),
            serde_json::json!({"mount": "/mnt/n\\x1bfs", "kind": "nfs", "server": "nas:/x", "read_mb_per_s": 10.0,
                "write_mb_per_s": 0.0, "rtt_ms": 3.0, "retransmits_per_s": 1.0, "interface": "eth0", "link_used_pct": 96.0})
        );
        assert_eq!((r.ops_per_s, r.execute_ms, r.queue_ms), (Some(10.0), Some(5.0), None));
    }

    #[test]
    fn idle_is_zero_unknown_is_none_and_a_remount_restarts() {
        let idle = NetFsRate::derive(Some(&fs(100)), &fs(100), &[], 1.0);
        assert_eq!((idle.rtt_ms, idle.link_used_pct), (Some(0.0), None));
        let cifs = NetFsRaw { rtt_ms: None, retransmits: None, ..fs(5) };
        let r = NetFsRate::derive(Some(&cifs), &cifs, &[], 1.0);
        assert_eq!((r.rtt_ms, r.retransmits_per_s), (None, None));
        let remounted = NetFsRate::derive(Some(&fs(100)), &fs(4), &[], 1.0);
        assert_eq!(remounted.read_mb_per_s, Some(4.0));
    }

    #[test]
    fn rows_are_matched_wherever_they_moved() {
        let named = |name: &str, rx| NicRaw { name: name.into(), ..nic(rx, 0) };
        let before = [named("a", 0), named("b", 1_000_000), named("c", 5)];
        let now = [named("b", 2_000_000), named("new", 7), named("a", 500_000)];
        let used: Vec<_> = NicRate::derive_all(Some(&before), &now, 1.0).into_iter().map(|n| n.used_pct).collect();
        assert_eq!(used, [Some(8.0), None, Some(4.0)]);
    }
}
