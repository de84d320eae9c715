//! The counters of a sample as rows of plain figures, so that one way of writing differences serves all.
//!
//! A figure that may be unknown has a bit in the row's first cell. New figures go to the end of a row.

use super::codec::DecodeError;
use crate::model::cpu::CpuRaw;
use crate::model::disk::{DevId, DiskOpRaw, DiskRaw};
use crate::model::memory::{MemRaw, SwapArea, VmRaw};
use crate::model::network::{NetFsKind, NetFsRaw, NicRaw};
use crate::model::pressure::{PressureRaw, PsiAverages, ResourcePressure};

/// A struct of counters as a row.
pub trait CounterRow: Sized {
    /// Its figures; always as many, at most 64.
    fn to_row(&self) -> Vec<u64>;
    /// The same from figures: as many as [`Cells::cells`] gives of an empty one.
    fn from_row(cells: &[u64], labels: &[Option<&[u8]>]) -> Result<Self, DecodeError>;
    /// Its texts, raw.
    fn labels(&self) -> Vec<Option<&[u8]>> {
        Vec::new()
    }
    /// How many figures.
    const COLUMNS: usize;
    /// How many texts.
    const LABEL_COUNT: usize = 0;
}

/// The bits of what is known, and the values with 0 for the unknown ones.
fn pack_options<const N: usize>(values: [Option<u64>; N]) -> (u64, [u64; N]) {
    let bits = values.iter().enumerate().filter(|(_, v)| v.is_some()).fold(0, |bits, (at, _)| bits | 1 << at);
    (bits, values.map(Option::unwrap_or_default))
}

fn unpack_option(bits: u64, at: usize, cells: &[u64]) -> Option<u64> {
    (bits >> at & 1 == 1).then(|| cells[at])
}

fn to_u32(n: u64) -> Result<u32, DecodeError> {
    u32::try_from(n).map_err(|_| DecodeError("a number of more than 32 bits"))
}

fn label_text(labels: &[Option<&[u8]>], at: usize) -> String {
    String::from_utf8_lossy(labels.get(at).copied().flatten().unwrap_or_default()).into_owned()
}

impl CounterRow for CpuRaw {
    const COLUMNS: usize = 13;

    fn to_row(&self) -> Vec<u64> {
        let mut out = self.ticks.to_vec();
        out.extend([u64::from(self.cpus), self.forks, self.blocked_tasks]);
        out
    }

    fn from_row(c: &[u64], _: &[Option<&[u8]>]) -> Result<Self, DecodeError> {
        let mut ticks = [0; 10];
        ticks.copy_from_slice(&c[..10]);
        Ok(Self { ticks, cpus: to_u32(c[10])?, forks: c[11], blocked_tasks: c[12] })
    }
}

impl CounterRow for DiskRaw {
    const COLUMNS: usize = 20;
    const LABEL_COUNT: usize = 1;

    fn to_row(&self) -> Vec<u64> {
        let (r, w) = (self.read, self.write);
        let (d, f) = (self.discard.unwrap_or_default(), self.flush.unwrap_or_default());
        let bits = u64::from(self.discard.is_some()) | u64::from(self.flush.is_some()) << 1;
        // What moves on a busy device comes first: its bits fit into fewer bytes.
        vec![
            w.ios,
            w.sectors,
            w.ms,
            self.busy_ms,
            self.queue_ms,
            w.merged,
            self.in_flight,
            r.ios,
            r.sectors,
            r.ms,
            f.0,
            f.1,
            r.merged,
            d.ios,
            d.merged,
            d.sectors,
            d.ms,
            bits,
            u64::from(self.id.major),
            u64::from(self.id.minor),
        ]
    }

    fn labels(&self) -> Vec<Option<&[u8]>> {
        vec![Some(self.name.as_bytes())]
    }

    fn from_row(c: &[u64], labels: &[Option<&[u8]>]) -> Result<Self, DecodeError> {
        let discard = DiskOpRaw { ios: c[13], merged: c[14], sectors: c[15], ms: c[16] };
        Ok(Self {
            id: DevId { major: to_u32(c[18])?, minor: to_u32(c[19])? },
            name: label_text(labels, 0).into(),
            read: DiskOpRaw { ios: c[7], merged: c[12], sectors: c[8], ms: c[9] },
            write: DiskOpRaw { ios: c[0], merged: c[5], sectors: c[1], ms: c[2] },
            discard: (c[17] & 1 != 0).then_some(discard),
            flush: (c[17] & 2 != 0).then_some((c[10], c[11])),
            in_flight: c[6],
            busy_ms: c[3],
            queue_ms: c[4],
        })
    }
}

impl CounterRow for VmRaw {
    const COLUMNS: usize = 18;

    fn to_row(&self) -> Vec<u64> {
        let (bits, values) = pack_options([
            self.nr_dirty,
            self.nr_writeback,
            self.nr_dirtied,
            self.nr_written,
            self.nr_dirty_threshold,
            self.nr_dirty_background_threshold,
            self.pgpgout,
            self.pgpgin,
            self.pgmajfault,
            self.nr_writeback_temp,
            self.pswpin,
            self.pswpout,
            self.pgscan_kswapd,
            self.pgscan_direct,
            self.allocstall,
            self.oom_kill,
        ]);
        let mut out = values.to_vec();
        out.extend([bits, self.page_size]);
        out
    }

    fn from_row(c: &[u64], _: &[Option<&[u8]>]) -> Result<Self, DecodeError> {
        let at = |n| unpack_option(c[16], n, c);
        Ok(Self {
            page_size: c[17],
            nr_dirty: at(0),
            nr_writeback: at(1),
            nr_writeback_temp: at(9),
            nr_dirtied: at(2),
            nr_written: at(3),
            nr_dirty_threshold: at(4),
            nr_dirty_background_threshold: at(5),
            pgpgin: at(7),
            pgpgout: at(6),
            pswpin: at(10),
            pswpout: at(11),
            pgmajfault: at(8),
            pgscan_kswapd: at(12),
            pgscan_direct: at(13),
            allocstall: at(14),
            oom_kill: at(15),
        })
    }
}

impl CounterRow for MemRaw {
    const COLUMNS: usize = 13;

    fn to_row(&self) -> Vec<u64> {
        let (bits, v) = pack_options([self.available, self.anon, self.shmem]);
        let first = [self.free, v[0], self.cached, self.dirty, v[1], self.writeback, self.buffers];
        let rest = [v[2], self.swap_free, self.swap_cached, self.total, self.swap_total, bits];
        first.into_iter().chain(rest).collect()
    }

    fn from_row(c: &[u64], _: &[Option<&[u8]>]) -> Result<Self, DecodeError> {
        let at = |bit: u32, n: usize| (c[12] >> bit & 1 == 1).then(|| c[n]);
        Ok(Self {
            total: c[10],
            free: c[0],
            available: at(0, 1),
            buffers: c[6],
            cached: c[2],
            dirty: c[3],
            writeback: c[5],
            anon: at(1, 4),
            shmem: at(2, 7),
            swap_total: c[11],
            swap_free: c[8],
            swap_cached: c[9],
        })
    }
}

impl CounterRow for SwapArea {
    const COLUMNS: usize = 3;
    const LABEL_COUNT: usize = 2;

    fn to_row(&self) -> Vec<u64> {
        vec![self.used_bytes, self.size_bytes, self.priority as u64]
    }

    fn labels(&self) -> Vec<Option<&[u8]>> {
        vec![Some(self.name.as_bytes()), Some(self.kind.as_bytes())]
    }

    fn from_row(c: &[u64], labels: &[Option<&[u8]>]) -> Result<Self, DecodeError> {
        let (name, kind) = (label_text(labels, 0), label_text(labels, 1));
        Ok(Self { name, kind, used_bytes: c[0], size_bytes: c[1], priority: c[2] as i64 })
    }
}

/// A percentage as the kernel prints it has two decimals: a small whole number, doubled. Anything else keeps
/// its bits but the last.
fn encode_percent(n: f64) -> u64 {
    let hundredths = (n * 100.0).round();
    if (0.0..1e9).contains(&hundredths) && hundredths / 100.0 == n {
        return (hundredths as u64) << 1;
    }
    n.to_bits() | 1
}

fn decode_percent(n: u64) -> f64 {
    let n = if n & 1 == 0 { (n >> 1) as f64 / 100.0 } else { f64::from_bits(n) };
    if n.is_finite() { n } else { 0.0 }
}

impl CounterRow for PressureRaw {
    const COLUMNS: usize = 25;

    fn to_row(&self) -> Vec<u64> {
        let all = [self.io, self.memory, self.cpu].map(|p| [p.some, p.full]);
        let stalls = all.iter().flatten();
        let bits = stalls.clone().enumerate().fold(0, |bits, (at, s)| bits | u64::from(s.is_some()) << at);
        let figures = stalls.flat_map(|s| {
            let s = s.unwrap_or_default();
            [s.total_us, encode_percent(s.avg10), encode_percent(s.avg60), encode_percent(s.avg300)]
        });
        figures.chain([bits]).collect()
    }

    fn from_row(c: &[u64], _: &[Option<&[u8]>]) -> Result<Self, DecodeError> {
        let stall = |n: usize| {
            let v = &c[4 * n..];
            let (avg10, avg60, avg300) = (decode_percent(v[1]), decode_percent(v[2]), decode_percent(v[3]));
            (c[24] >> n & 1 == 1).then_some(PsiAverages { total_us: v[0], avg10, avg60, avg300 })
        };
        let both = |n: usize| ResourcePressure { some: stall(n), full: stall(n + 1) };
        Ok(Self { io: both(0), memory: both(2), cpu: both(4) })
    }
}

impl CounterRow for NicRaw {
    const COLUMNS: usize = 4;
    const LABEL_COUNT: usize = 1;

    fn to_row(&self) -> Vec<u64> {
        let speed = self.speed_bits;
        vec![self.rx_bytes, self.tx_bytes, u64::from(speed.is_some()), speed.unwrap_or_default()]
    }

    fn labels(&self) -> Vec<Option<&[u8]>> {
        vec![Some(self.name.as_bytes())]
    }

    fn from_row(c: &[u64], labels: &[Option<&[u8]>]) -> Result<Self, DecodeError> {
        let speed_bits = (c[2] == 1).then_some(c[3]);
        Ok(Self { name: label_text(labels, 0), rx_bytes: c[0], tx_bytes: c[1], speed_bits })
    }
}

impl CounterRow for NetFsRaw {
    const COLUMNS: usize = 16;
    const LABEL_COUNT: usize = 5;

    fn to_row(&self) -> Vec<u64> {
        let (bits, values) = pack_options([
            self.age_s,
            self.read_bytes,
            self.write_bytes,
            self.ops,
            self.read_ops,
            self.write_ops,
            self.rtt_ms,
            self.execute_ms,
            self.queue_ms,
            self.retransmits,
            self.timeouts,
            self.errors,
        ]);
        let mut out = values.to_vec();
        let cifs = u64::from(self.kind == NetFsKind::Cifs);
        out.extend([bits, cifs, u64::from(self.dev.major), u64::from(self.dev.minor)]);
        out
    }

    fn labels(&self) -> Vec<Option<&[u8]>> {
        vec![
            Some(self.mount.as_bytes()),
            Some(self.server.as_bytes()),
            self.version.as_deref().map(str::as_bytes),
            self.address.as_deref().map(str::as_bytes),
            self.interface.as_deref().map(str::as_bytes),
        ]
    }

    fn from_row(c: &[u64], labels: &[Option<&[u8]>]) -> Result<Self, DecodeError> {
        let at = |n| unpack_option(c[12], n, c);
        let raw = |n: usize| labels.get(n).copied().flatten().unwrap_or_default();
        let text = |n: usize| labels.get(n).copied().flatten().map(|_| label_text(labels, n));
        Ok(Self {
            kind: if c[13] == 1 { NetFsKind::Cifs } else { NetFsKind::Nfs },
            dev: DevId { major: to_u32(c[14])?, minor: to_u32(c[15])? },
            mount: raw(0).into(),
            server: raw(1).into(),
            version: text(2),
            address: text(3),
            interface: text(4),
            age_s: at(0),
            read_bytes: at(1),
            write_bytes: at(2),
            ops: at(3),
            read_ops: at(4),
            write_ops: at(5),
            retransmits: at(9),
            timeouts: at(10),
            errors: at(11),
            queue_ms: at(8),
            rtt_ms: at(6),
            execute_ms: at(7),
        })
    }
}
