//! A tick of counters as differences to the tick before.
//!
//! Each kernel source is a section of its own, left out where nothing changed.

use super::codec::{
    ByteReader, DecodeError, put_blob, put_optional_blob, put_row_delta, put_section, put_signed_varint, put_varint,
};
use super::counter_row::CounterRow;
use super::io_accounting;
use super::latency;
use super::memory_stalls;
use super::request_pattern;
use super::syncs;
use crate::model::reading::{BlockedRead, Reading};
use crate::model::sample::Sample;
use crate::model::timestamp::Timestamp;

/// Devices, interfaces or mounts of one sample; a machine with more than a few thousand is not known.
const MAX_ROWS: usize = 65_536;

const TAG_CLOCK: u64 = 1;
const TAG_CPU: u64 = 2;
const TAG_DISKS: u64 = 3;
const TAG_VM: u64 = 4;
const TAG_MEM: u64 = 5;
const TAG_SWAPS: u64 = 6;
const TAG_PRESSURE: u64 = 7;
const TAG_NICS: u64 = 8;
const TAG_NETFS: u64 = 9;
const TAG_LATENCY: u64 = 10;
const TAG_SYNCS: u64 = 11;
const TAG_MEMORY_STALLS: u64 = 12;
const TAG_IO_ACCOUNTING: u64 = 13;
const TAG_REQUEST_PATTERNS: u64 = 14;

/// What differences are to where nothing came before. Files of earlier programs say nothing of what they did not know.
fn initial_sample() -> Sample {
    let absent = || "not in this recording".to_owned();
    Sample {
        latency: Reading::Absent(absent()),
        memory_stalls: Reading::Absent(absent()),
        syncs: Reading::Absent(absent()),
        io_accounts: Reading::Absent(absent()),
        ..Sample::default()
    }
}

/// Appends `cur` as it differs from `prev`; without `prev` it stands by itself.
pub fn put_sample(out: &mut Vec<u8>, prev: Option<&Sample>, cur: &Sample) {
    let none = initial_sample();
    let prev = prev.unwrap_or(&none);
    let mut body = Vec::new();
    put_clock(&mut body, prev.seq, prev.time, cur.seq, cur.time);
    put_section(out, TAG_CLOCK, &body);
    put_single(out, TAG_CPU, &prev.cpu, &cur.cpu);
    put_list(out, TAG_DISKS, &prev.disks, &cur.disks);
    put_single(out, TAG_VM, &prev.vm, &cur.vm);
    put_single(out, TAG_MEM, &prev.mem, &cur.mem);
    put_list(out, TAG_SWAPS, &prev.swap_areas, &cur.swap_areas);
    put_single(out, TAG_PRESSURE, &prev.pressure, &cur.pressure);
    put_list(out, TAG_NICS, &prev.nics, &cur.nics);
    put_list(out, TAG_NETFS, &prev.netfs, &cur.netfs);
    if prev.latency != cur.latency {
        let mut body = Vec::new();
        latency::encode(&mut body, &prev.latency, &cur.latency);
        put_section(out, TAG_LATENCY, &body);
        let mut body = Vec::new();
        request_pattern::encode(&mut body, &prev.latency, &cur.latency);
        if !body.is_empty() {
            put_section(out, TAG_REQUEST_PATTERNS, &body);
        }
    }
    if prev.memory_stalls != cur.memory_stalls {
        let mut body = Vec::new();
        memory_stalls::encode(&mut body, &prev.memory_stalls, &cur.memory_stalls);
        put_section(out, TAG_MEMORY_STALLS, &body);
    }
    if prev.syncs != cur.syncs {
        let mut body = Vec::new();
        syncs::encode(&mut body, &prev.syncs, &cur.syncs);
        put_section(out, TAG_SYNCS, &body);
    }
    if prev.io_accounts != cur.io_accounts {
        let mut body = Vec::new();
        io_accounting::encode(&mut body, &prev.io_accounts, &cur.io_accounts);
        put_section(out, TAG_IO_ACCOUNTING, &body);
    }
}

/// What [`put_sample`] wrote, up to the end of `inp`.
pub fn get_sample(inp: &mut ByteReader, prev: Option<&Sample>) -> Result<Sample, DecodeError> {
    let mut s = prev.cloned().unwrap_or_else(initial_sample);
    while !inp.is_empty() {
        let tag = inp.varint()?;
        let mut body = ByteReader(inp.blob()?);
        match tag {
            TAG_CLOCK => (s.seq, s.time) = get_clock(&mut body, s.seq, s.time)?,
            TAG_CPU => s.cpu = get_single(&mut body, &s.cpu)?,
            TAG_DISKS => s.disks = get_list(&mut body, &s.disks)?,
            TAG_VM => s.vm = get_single(&mut body, &s.vm)?,
            TAG_MEM => s.mem = get_single(&mut body, &s.mem)?,
            TAG_SWAPS => s.swap_areas = get_list(&mut body, &s.swap_areas)?,
            TAG_PRESSURE => s.pressure = get_single(&mut body, &s.pressure)?,
            TAG_NICS => s.nics = get_list(&mut body, &s.nics)?,
            TAG_NETFS => s.netfs = get_list(&mut body, &s.netfs)?,
            TAG_SYNCS => s.syncs = syncs::decode(&mut body, &s.syncs)?,
            TAG_LATENCY => s.latency = latency::decode(&mut body, &s.latency)?,
            TAG_REQUEST_PATTERNS => request_pattern::decode(&mut body, &mut s.latency)?,
            TAG_MEMORY_STALLS => s.memory_stalls = memory_stalls::decode(&mut body, &s.memory_stalls)?,
            TAG_IO_ACCOUNTING => s.io_accounts = io_accounting::decode(&mut body, &s.io_accounts)?,
            _ => {}
        }
    }
    Ok(s)
}

/// Appends a number and both clocks. The wall clock as a rule moves with the other one.
pub fn put_clock(out: &mut Vec<u8>, seq0: u64, at0: Timestamp, seq: u64, at: Timestamp) {
    let boot = at.boot_ns.wrapping_sub(at0.boot_ns) as i64;
    put_signed_varint(out, seq.wrapping_sub(seq0) as i64);
    put_signed_varint(out, boot);
    put_signed_varint(out, at.wall_ns.wrapping_sub(at0.wall_ns).wrapping_sub(boot));
}

/// What [`put_clock`] wrote.
pub fn get_clock(inp: &mut ByteReader, seq0: u64, at0: Timestamp) -> Result<(u64, Timestamp), DecodeError> {
    let (seq, boot, wall) = (inp.signed_varint()?, inp.signed_varint()?, inp.signed_varint()?);
    let at = Timestamp {
        boot_ns: at0.boot_ns.wrapping_add(boot as u64),
        wall_ns: at0.wall_ns.wrapping_add(boot).wrapping_add(wall),
    };
    Ok((seq0.wrapping_add(seq as u64), at))
}

/// Appends how a reading came out; true if there is a value to follow.
pub fn put_outcome<T>(out: &mut Vec<u8>, section: &Reading<T>) -> bool {
    match section {
        Reading::Ok(_) => out.push(0),
        Reading::Denied(why) => {
            out.push(1);
            put_blob(out, why.as_bytes());
        }
        Reading::Absent(why) => {
            out.push(2);
            put_blob(out, why.as_bytes());
        }
        Reading::Blocked(b) => {
            out.push(3);
            put_varint(out, b.since_boot_ns);
            put_blob(out, b.waiting_on.as_bytes());
        }
    }
    matches!(section, Reading::Ok(_))
}

/// What [`put_outcome`] wrote. Reasons are only ever shown, so a stranger's are cleaned here.
pub fn get_outcome(inp: &mut ByteReader) -> Result<Reading<()>, DecodeError> {
    let why = |inp: &mut ByteReader| Ok::<_, DecodeError>(crate::sanitize::sanitize(inp.blob()?));
    Ok(match inp.byte()? {
        0 => Reading::Ok(()),
        1 => Reading::Denied(why(inp)?),
        2 => Reading::Absent(why(inp)?),
        3 => {
            let since_boot_ns = inp.varint()?;
            Reading::Blocked(BlockedRead { since_boot_ns, waiting_on: why(inp)? })
        }
        _ => return Err(DecodeError("an outcome that is none")),
    })
}

fn put_single<T: CounterRow + PartialEq>(out: &mut Vec<u8>, tag: u64, prev: &Reading<T>, cur: &Reading<T>) {
    if prev == cur {
        return;
    }
    let mut body = Vec::new();
    if put_outcome(&mut body, cur)
        && let Some(now) = cur.ok()
    {
        put_row_delta(&mut body, &previous_row(prev.ok()), &now.to_row());
    }
    put_section(out, tag, &body);
}

fn get_single<T: CounterRow>(inp: &mut ByteReader, prev: &Reading<T>) -> Result<Reading<T>, DecodeError> {
    Ok(match get_outcome(inp)? {
        Reading::Ok(()) => {
            let mut cells = previous_row(prev.ok());
            inp.apply_row_delta(&mut cells)?;
            Reading::Ok(T::from_row(&cells, &[])?)
        }
        Reading::Denied(why) => Reading::Denied(why),
        Reading::Absent(why) => Reading::Absent(why),
        Reading::Blocked(b) => Reading::Blocked(b),
    })
}

fn previous_row<T: CounterRow>(prev: Option<&T>) -> Vec<u64> {
    prev.map_or_else(|| vec![0; T::COLUMNS], CounterRow::to_row)
}

fn put_list<T: CounterRow + PartialEq>(out: &mut Vec<u8>, tag: u64, prev: &Reading<Vec<T>>, cur: &Reading<Vec<T>>) {
    if prev == cur {
        return;
    }
    let mut body = Vec::new();
    if put_outcome(&mut body, cur)
        && let Some(now) = cur.ok()
    {
        let old = prev.ok().map(Vec::as_slice).unwrap_or_default();
        let same = old.len() == now.len() && old.iter().zip(now).all(|(a, b)| a.labels() == b.labels());
        put_varint(&mut body, u64::from(!same));
        if !same {
            put_varint(&mut body, now.len() as u64);
            put_varint(&mut body, T::LABEL_COUNT as u64);
            for label in now.iter().flat_map(CounterRow::labels) {
                put_optional_blob(&mut body, label);
            }
        }
        let mut last = 0;
        for (at, row) in now.iter().enumerate() {
            let (a, b) = (previous_row(old.get(at).filter(|_| same)), row.to_row());
            if a != b {
                put_varint(&mut body, (at - last) as u64);
                put_row_delta(&mut body, &a, &b);
                last = at;
            }
        }
    }
    put_section(out, tag, &body);
}

fn get_list<T: CounterRow>(inp: &mut ByteReader, prev: &Reading<Vec<T>>) -> Result<Reading<Vec<T>>, DecodeError> {
    if let other @ (Reading::Denied(_) | Reading::Absent(_) | Reading::Blocked(_)) = get_outcome(inp)? {
        return Ok(other.map(|()| Vec::new()));
    }
    let old = prev.ok().map(Vec::as_slice).unwrap_or_default();
    let mut labels: Vec<Vec<Option<&[u8]>>> = Vec::new();
    let mut rows: Vec<Vec<u64>> = Vec::new();
    if inp.varint()? == 0 {
        labels.extend(old.iter().map(CounterRow::labels));
        rows.extend(old.iter().map(CounterRow::to_row));
    } else {
        let (n, each) = (inp.count()?, inp.count()?);
        if n > MAX_ROWS {
            return Err(DecodeError("more rows than any machine has"));
        }
        for _ in 0..n {
            labels.push((0..each).map(|_| inp.optional_blob()).collect::<Result<_, _>>()?);
        }
        rows.resize(n, vec![0; T::COLUMNS]);
    }
    let mut at = 0usize;
    while !inp.is_empty() {
        at = at.saturating_add(inp.varint()? as usize);
        inp.apply_row_delta(rows.get_mut(at).ok_or(DecodeError("a row that is not there"))?)?;
    }
    let all = rows.iter().zip(&labels).map(|(row, labels)| T::from_row(row, labels));
    all.collect::<Result<_, _>>().map(Reading::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::disk::{DevId, DiskOpRaw, DiskRaw};
    use crate::model::network::{NetFsRaw, NicRaw};
    use crate::model::pressure::{PressureRaw, PsiAverages, ResourcePressure};

    fn sample(n: u64) -> Sample {
        let disk = |minor| DiskRaw {
            id: DevId { major: 8, minor },
            name: format!("sd{minor}").into(),
            read: DiskOpRaw { ios: 5 * n, merged: n, sectors: 80 * n, ms: 3 },
            discard: (minor == 1).then_some(DiskOpRaw { ios: n, ..DiskOpRaw::default() }),
            flush: (minor == 0).then_some((n, 2)),
            ..DiskRaw::default()
        };
        let stall = PsiAverages { avg10: (37 * n) as f64 / 100.0, avg60: 100.0, avg300: 1.0 / 3.0, total_us: n };
        Sample {
            seq: n,
            time: Timestamp { boot_ns: n * 1_000_000_001, wall_ns: -5 + n as i64 * 1_000_000_000 },
            disks: Reading::Ok((0..n as u32 % 4).map(disk).collect()),
            pressure: Reading::Ok(PressureRaw {
                io: ResourcePressure { some: Some(stall), full: None },
                ..PressureRaw::default()
            }),
            nics: Reading::Ok(vec![NicRaw {
                name: "e\u{1b}0".into(),
                rx_bytes: u64::MAX - n,
                tx_bytes: n,
                speed_bits: (n > 3).then_some(0),
            }]),
            netfs: match n % 3 {
                0 => Reading::Denied("no".into()),
                _ => Reading::Ok(vec![NetFsRaw {
                    mount: b"/m\xff".as_slice().into(),
                    ops: Some(n),
                    version: Some("4.2".into()),
                    ..NetFsRaw::default()
                }]),
            },
            ..Sample::default()
        }
    }

    #[test]
    fn samples_round_trip_alone_and_as_deltas() {
        let mut prev: Option<Sample> = None;
        for n in [1, 2, 3, 3, 7, 5, 9] {
            let cur = sample(n);
            for before in [None, prev.as_ref()] {
                let mut out = Vec::new();
                put_sample(&mut out, before, &cur);
                let back = get_sample(&mut ByteReader(&out), before).unwrap();
                // An odd fraction loses its last bit; the kernel prints two decimals.
                let third = |s: &Sample| s.pressure.ok().unwrap().io.some.unwrap().avg300;
                assert!((third(&back) - 1.0 / 3.0).abs() < 1e-15);
                let mut back = back;
                if let Reading::Ok(p) = &mut back.pressure {
                    p.io.some.as_mut().unwrap().avg300 = 1.0 / 3.0;
                }
                assert_eq!(back, cur);
            }
            prev = Some(cur);
        }
    }

    #[test]
    fn unknown_sections_are_skipped() {
        let mut out = Vec::new();
        put_section(&mut out, 900, b"what is this");
        put_sample(&mut out, None, &sample(1));
        assert_eq!(get_sample(&mut ByteReader(&out), None).unwrap().seq, 1);
    }
}
