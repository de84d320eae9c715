//! A tick of counters as differences to the tick before.
//!
//! Each kernel source is a section of its own, left out where nothing changed.

use super::cells::Cells;
use super::charge;
use super::latency;
use super::shape;
use super::stalls;
use super::syncs;
use super::wire::{Bad, In, put_blob, put_maybe_blob, put_num, put_row, put_section, put_signed};
use crate::model::clock::Clock;
use crate::model::sample::Sample;
use crate::model::section::{Blocked, Section};

/// Devices, interfaces or mounts of one sample; a machine with more than a few thousand is not known.
const MOST_ROWS: usize = 65_536;

const CLOCK: u64 = 1;
const CPU: u64 = 2;
const DISKS: u64 = 3;
const VM: u64 = 4;
const MEM: u64 = 5;
const SWAPS: u64 = 6;
const PRESSURE: u64 = 7;
const NICS: u64 = 8;
const NETFS: u64 = 9;
const LATENCY: u64 = 10;
const SYNCS: u64 = 11;
const STALLS: u64 = 12;
const CHARGE: u64 = 13;
const SHAPES: u64 = 14;

/// What differences are to where nothing came before. Files of earlier programs say nothing of what they did not know.
fn nothing() -> Sample {
    let absent = || "not in this recording".to_owned();
    Sample {
        latency: Section::Absent(absent()),
        stalls: Section::Absent(absent()),
        syncs: Section::Absent(absent()),
        charge: Section::Absent(absent()),
        ..Sample::default()
    }
}

/// Appends `cur` as it differs from `prev`; without `prev` it stands by itself.
pub fn put_sample(out: &mut Vec<u8>, prev: Option<&Sample>, cur: &Sample) {
    let none = nothing();
    let prev = prev.unwrap_or(&none);
    let mut body = Vec::new();
    put_clock(&mut body, prev.seq, prev.at, cur.seq, cur.at);
    put_section(out, CLOCK, &body);
    one(out, CPU, &prev.cpu, &cur.cpu);
    many(out, DISKS, &prev.disks, &cur.disks);
    one(out, VM, &prev.vm, &cur.vm);
    one(out, MEM, &prev.mem, &cur.mem);
    many(out, SWAPS, &prev.swaps, &cur.swaps);
    one(out, PRESSURE, &prev.pressure, &cur.pressure);
    many(out, NICS, &prev.nics, &cur.nics);
    many(out, NETFS, &prev.netfs, &cur.netfs);
    if prev.latency != cur.latency {
        let mut body = Vec::new();
        latency::put(&mut body, &prev.latency, &cur.latency);
        put_section(out, LATENCY, &body);
        let mut body = Vec::new();
        shape::put(&mut body, &prev.latency, &cur.latency);
        if !body.is_empty() {
            put_section(out, SHAPES, &body);
        }
    }
    if prev.stalls != cur.stalls {
        let mut body = Vec::new();
        stalls::put(&mut body, &prev.stalls, &cur.stalls);
        put_section(out, STALLS, &body);
    }
    if prev.syncs != cur.syncs {
        let mut body = Vec::new();
        syncs::put(&mut body, &prev.syncs, &cur.syncs);
        put_section(out, SYNCS, &body);
    }
    if prev.charge != cur.charge {
        let mut body = Vec::new();
        charge::put(&mut body, &prev.charge, &cur.charge);
        put_section(out, CHARGE, &body);
    }
}

/// What [`put_sample`] wrote, up to the end of `inp`.
pub fn get_sample(inp: &mut In, prev: Option<&Sample>) -> Result<Sample, Bad> {
    let mut s = prev.cloned().unwrap_or_else(nothing);
    while !inp.is_empty() {
        let tag = inp.num()?;
        let mut body = In(inp.blob()?);
        match tag {
            CLOCK => (s.seq, s.at) = get_clock(&mut body, s.seq, s.at)?,
            CPU => s.cpu = get_one(&mut body, &s.cpu)?,
            DISKS => s.disks = get_many(&mut body, &s.disks)?,
            VM => s.vm = get_one(&mut body, &s.vm)?,
            MEM => s.mem = get_one(&mut body, &s.mem)?,
            SWAPS => s.swaps = get_many(&mut body, &s.swaps)?,
            PRESSURE => s.pressure = get_one(&mut body, &s.pressure)?,
            NICS => s.nics = get_many(&mut body, &s.nics)?,
            NETFS => s.netfs = get_many(&mut body, &s.netfs)?,
            SYNCS => s.syncs = syncs::get(&mut body, &s.syncs)?,
            LATENCY => s.latency = latency::get(&mut body, &s.latency)?,
            SHAPES => shape::get(&mut body, &mut s.latency)?,
            STALLS => s.stalls = stalls::get(&mut body, &s.stalls)?,
            CHARGE => s.charge = charge::get(&mut body, &s.charge)?,
            _ => {}
        }
    }
    Ok(s)
}

/// Appends a number and both clocks. The wall clock as a rule moves with the other one.
pub fn put_clock(out: &mut Vec<u8>, seq0: u64, at0: Clock, seq: u64, at: Clock) {
    let boot = at.boot_ns.wrapping_sub(at0.boot_ns) as i64;
    put_signed(out, seq.wrapping_sub(seq0) as i64);
    put_signed(out, boot);
    put_signed(out, at.wall_ns.wrapping_sub(at0.wall_ns).wrapping_sub(boot));
}

/// What [`put_clock`] wrote.
pub fn get_clock(inp: &mut In, seq0: u64, at0: Clock) -> Result<(u64, Clock), Bad> {
    let (seq, boot, wall) = (inp.signed()?, inp.signed()?, inp.signed()?);
    let at = Clock {
        boot_ns: at0.boot_ns.wrapping_add(boot as u64),
        wall_ns: at0.wall_ns.wrapping_add(boot).wrapping_add(wall),
    };
    Ok((seq0.wrapping_add(seq as u64), at))
}

/// Appends how a reading came out; true if there is a value to follow.
pub fn put_outcome<T>(out: &mut Vec<u8>, section: &Section<T>) -> bool {
    match section {
        Section::Ok(_) => out.push(0),
        Section::Denied(why) => {
            out.push(1);
            put_blob(out, why.as_bytes());
        }
        Section::Absent(why) => {
            out.push(2);
            put_blob(out, why.as_bytes());
        }
        Section::Blocked(b) => {
            out.push(3);
            put_num(out, b.since_boot_ns);
            put_blob(out, b.on.as_bytes());
        }
    }
    matches!(section, Section::Ok(_))
}

/// What [`put_outcome`] wrote. Reasons are only ever shown, so a stranger's are cleaned here.
pub fn get_outcome(inp: &mut In) -> Result<Section<()>, Bad> {
    let why = |inp: &mut In| Ok::<_, Bad>(crate::text::clean(inp.blob()?));
    Ok(match inp.byte()? {
        0 => Section::Ok(()),
        1 => Section::Denied(why(inp)?),
        2 => Section::Absent(why(inp)?),
        3 => {
            let since_boot_ns = inp.num()?;
            Section::Blocked(Blocked { since_boot_ns, on: why(inp)? })
        }
        _ => return Err(Bad("an outcome that is none")),
    })
}

fn one<T: Cells + PartialEq>(out: &mut Vec<u8>, tag: u64, prev: &Section<T>, cur: &Section<T>) {
    if prev == cur {
        return;
    }
    let mut body = Vec::new();
    if put_outcome(&mut body, cur)
        && let Some(now) = cur.ok()
    {
        put_row(&mut body, &before(prev.ok()), &now.cells());
    }
    put_section(out, tag, &body);
}

fn get_one<T: Cells>(inp: &mut In, prev: &Section<T>) -> Result<Section<T>, Bad> {
    Ok(match get_outcome(inp)? {
        Section::Ok(()) => {
            let mut cells = before(prev.ok());
            inp.row(&mut cells)?;
            Section::Ok(T::from_cells(&cells, &[])?)
        }
        Section::Denied(why) => Section::Denied(why),
        Section::Absent(why) => Section::Absent(why),
        Section::Blocked(b) => Section::Blocked(b),
    })
}

fn before<T: Cells>(prev: Option<&T>) -> Vec<u64> {
    prev.map_or_else(|| vec![0; T::LEN], Cells::cells)
}

fn many<T: Cells + PartialEq>(out: &mut Vec<u8>, tag: u64, prev: &Section<Vec<T>>, cur: &Section<Vec<T>>) {
    if prev == cur {
        return;
    }
    let mut body = Vec::new();
    if put_outcome(&mut body, cur)
        && let Some(now) = cur.ok()
    {
        let old = prev.ok().map(Vec::as_slice).unwrap_or_default();
        let same = old.len() == now.len() && old.iter().zip(now).all(|(a, b)| a.labels() == b.labels());
        put_num(&mut body, u64::from(!same));
        if !same {
            put_num(&mut body, now.len() as u64);
            put_num(&mut body, T::LABELS as u64);
            for label in now.iter().flat_map(Cells::labels) {
                put_maybe_blob(&mut body, label);
            }
        }
        let mut last = 0;
        for (at, row) in now.iter().enumerate() {
            let (a, b) = (before(old.get(at).filter(|_| same)), row.cells());
            if a != b {
                put_num(&mut body, (at - last) as u64);
                put_row(&mut body, &a, &b);
                last = at;
            }
        }
    }
    put_section(out, tag, &body);
}

fn get_many<T: Cells>(inp: &mut In, prev: &Section<Vec<T>>) -> Result<Section<Vec<T>>, Bad> {
    if let other @ (Section::Denied(_) | Section::Absent(_) | Section::Blocked(_)) = get_outcome(inp)? {
        return Ok(other.map(|()| Vec::new()));
    }
    let old = prev.ok().map(Vec::as_slice).unwrap_or_default();
    let mut labels: Vec<Vec<Option<&[u8]>>> = Vec::new();
    let mut rows: Vec<Vec<u64>> = Vec::new();
    if inp.num()? == 0 {
        labels.extend(old.iter().map(Cells::labels));
        rows.extend(old.iter().map(Cells::cells));
    } else {
        let (n, each) = (inp.count()?, inp.count()?);
        if n > MOST_ROWS {
            return Err(Bad("more rows than any machine has"));
        }
        for _ in 0..n {
            labels.push((0..each).map(|_| inp.maybe_blob()).collect::<Result<_, _>>()?);
        }
        rows.resize(n, vec![0; T::LEN]);
    }
    let mut at = 0usize;
    while !inp.is_empty() {
        at = at.saturating_add(inp.num()? as usize);
        inp.row(rows.get_mut(at).ok_or(Bad("a row that is not there"))?)?;
    }
    let all = rows.iter().zip(&labels).map(|(row, labels)| T::from_cells(row, labels));
    all.collect::<Result<_, _>>().map(Section::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::disk::{DevId, DiskRaw, OpRaw};
    use crate::model::network::{NetFsRaw, NicRaw};
    use crate::model::pressure::{Pressure, PressureRaw, Stall};

    fn sample(n: u64) -> Sample {
        let disk = |minor| DiskRaw {
            id: DevId { major: 8, minor },
            name: format!("sd{minor}").into(),
            read: OpRaw { ios: 5 * n, merged: n, sectors: 80 * n, ms: 3 },
            discard: (minor == 1).then_some(OpRaw { ios: n, ..OpRaw::default() }),
            flush: (minor == 0).then_some((n, 2)),
            ..DiskRaw::default()
        };
        let stall = Stall { avg10: (37 * n) as f64 / 100.0, avg60: 100.0, avg300: 1.0 / 3.0, total_us: n };
        Sample {
            seq: n,
            at: Clock { boot_ns: n * 1_000_000_001, wall_ns: -5 + n as i64 * 1_000_000_000 },
            disks: Section::Ok((0..n as u32 % 4).map(disk).collect()),
            pressure: Section::Ok(PressureRaw {
                io: Pressure { some: Some(stall), full: None },
                ..PressureRaw::default()
            }),
            nics: Section::Ok(vec![NicRaw {
                name: "e\u{1b}0".into(),
                rx_bytes: u64::MAX - n,
                tx_bytes: n,
                speed_bits: (n > 3).then_some(0),
            }]),
            netfs: match n % 3 {
                0 => Section::Denied("no".into()),
                _ => Section::Ok(vec![NetFsRaw {
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
    fn samples_come_back_alone_and_as_differences() {
        let mut prev: Option<Sample> = None;
        for n in [1, 2, 3, 3, 7, 5, 9] {
            let cur = sample(n);
            for before in [None, prev.as_ref()] {
                let mut out = Vec::new();
                put_sample(&mut out, before, &cur);
                let back = get_sample(&mut In(&out), before).unwrap();
                // An odd fraction loses its last bit; the kernel prints two decimals.
                let third = |s: &Sample| s.pressure.ok().unwrap().io.some.unwrap().avg300;
                assert!((third(&back) - 1.0 / 3.0).abs() < 1e-15);
                let mut back = back;
                if let Section::Ok(p) = &mut back.pressure {
                    p.io.some.as_mut().unwrap().avg300 = 1.0 / 3.0;
                }
                assert_eq!(back, cur);
            }
            prev = Some(cur);
        }
    }

    #[test]
    fn what_a_later_program_adds_is_passed_over() {
        let mut out = Vec::new();
        put_section(&mut out, 900, b"what is this");
        put_sample(&mut out, None, &sample(1));
        assert_eq!(get_sample(&mut In(&out), None).unwrap().seq, 1);
    }
}
