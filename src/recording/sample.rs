//! A tick of counters as differences to the tick before: a section for each kernel source that changed.

use super::codec::{Coded, DecodeError, Wire, next_section, put_section, written};
use super::counter_row::code_row;
use super::file_io::file_io;
use super::syncs::syncs;
use super::table::code_table;
use super::task_waits::task_waits;
use super::traced::{io_accounts, io_accounts_start, latency, memory_stalls, request_patterns, tracing_starts};
use crate::model::reading::Reading;
use crate::model::sample::Sample;

/// Codes one section of a sample as the difference to the sample before.
type Section = fn(&mut Wire, &Sample, &mut Sample) -> Coded;

/// The sections with their tags, which never change, in the order in which they are written.
const SECTIONS: [(u64, Section); 18] = [
    (1, |w, base, cur| w.clock((base.seq, base.time), &mut cur.seq, &mut cur.time)),
    (2, |w, base, cur| w.reading(&base.cpu, &mut cur.cpu, code_row)),
    (3, |w, base, cur| w.reading(&base.disks, &mut cur.disks, |w, base, cur| code_table(w, base, cur))),
    (4, |w, base, cur| w.reading(&base.vm, &mut cur.vm, code_row)),
    (5, |w, base, cur| w.reading(&base.mem, &mut cur.mem, code_row)),
    (6, |w, base, cur| w.reading(&base.swap_areas, &mut cur.swap_areas, |w, base, cur| code_table(w, base, cur))),
    (7, |w, base, cur| w.reading(&base.pressure, &mut cur.pressure, code_row)),
    (8, |w, base, cur| w.reading(&base.nics, &mut cur.nics, |w, base, cur| code_table(w, base, cur))),
    (9, |w, base, cur| w.reading(&base.netfs, &mut cur.netfs, |w, base, cur| code_table(w, base, cur))),
    (10, |w, base, cur| w.reading(&base.latency, &mut cur.latency, latency)),
    (14, |w, base, cur| request_patterns(w, &base.latency, &mut cur.latency)),
    (12, |w, base, cur| w.reading(&base.memory_stalls, &mut cur.memory_stalls, memory_stalls)),
    (18, tracing_starts),
    (11, |w, base, cur| w.reading(&base.syncs, &mut cur.syncs, syncs)),
    (13, |w, base, cur| w.reading(&base.io_accounts, &mut cur.io_accounts, io_accounts)),
    (17, |w, base, cur| io_accounts_start(w, &base.io_accounts, &mut cur.io_accounts)),
    (15, |w, base, cur| w.reading(&base.file_io, &mut cur.file_io, file_io)),
    (16, |w, base, cur| w.reading(&base.task_waits, &mut cur.task_waits, task_waits)),
];

/// What the first sample is compared with. Files of earlier versions say nothing about sources they did not know.
fn initial_sample() -> Sample {
    let absent = || "not in this recording".to_owned();
    Sample {
        latency: Reading::Absent(absent()),
        memory_stalls: Reading::Absent(absent()),
        syncs: Reading::Absent(absent()),
        io_accounts: Reading::Absent(absent()),
        file_io: Reading::Absent(absent()),
        task_waits: Reading::Absent(absent()),
        ..Sample::default()
    }
}

/// The payload of `sample` as the difference to `base`; without `base` it stands by itself.
pub(crate) fn encode_sample(base: Option<&Sample>, sample: &Sample) -> Vec<u8> {
    let initial = initial_sample();
    let mut cur = sample.clone();
    let mut out = Vec::new();
    for (tag, code) in SECTIONS {
        let body = written(|w| code(w, base.unwrap_or(&initial), &mut cur));
        if !body.is_empty() {
            put_section(&mut out, tag, &body);
        }
    }
    out
}

/// The sample of a payload. Unknown sections are skipped.
pub(crate) fn decode_sample(mut payload: &[u8], base: Option<&Sample>) -> Result<Sample, DecodeError> {
    let initial = initial_sample();
    let base = base.unwrap_or(&initial);
    let mut cur = base.clone();
    while let Some((tag, body)) = next_section(&mut payload)? {
        if let Some((_, code)) = SECTIONS.iter().find(|section| section.0 == tag) {
            code(&mut Wire::Read(body), base, &mut cur)?;
        }
    }
    Ok(cur)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::disk::{DevId, DiskOpRaw, DiskRaw};
    use crate::model::network::{NetFsRaw, NicRaw};
    use crate::model::pressure::{PressureRaw, PsiAverages, ResourcePressure};
    use crate::model::timestamp::Timestamp;

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
                let back = decode_sample(&encode_sample(before, &cur), before).unwrap();
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
    fn the_start_of_accounting_is_kept_until_it_changes() {
        use crate::model::io_accounting::IoAccountsRaw;
        let at = |started| Sample {
            io_accounts: Reading::Ok(IoAccountsRaw { tracing_started_ns: started, ..IoAccountsRaw::default() }.into()),
            ..sample(1)
        };
        let mut prev: Option<Sample> = None;
        for cur in [at(5), at(5), Sample { io_accounts: Reading::Denied("no".into()), ..at(0) }, at(5), at(7), at(0)] {
            let back = decode_sample(&encode_sample(prev.as_ref(), &cur), prev.as_ref()).unwrap();
            assert_eq!(back.io_accounts, cur.io_accounts);
            prev = Some(cur);
        }
    }

    #[test]
    fn unknown_sections_are_skipped() {
        let mut out = Vec::new();
        put_section(&mut out, 900, b"what is this");
        out.extend(encode_sample(None, &sample(1)));
        assert_eq!(decode_sample(&out, None).unwrap().seq, 1);
    }
}
