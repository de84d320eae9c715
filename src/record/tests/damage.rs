//! Cut off at every byte, and bits turned round at random.

use super::*;

#[test]
fn cut_off_anywhere_every_whole_tick_is_read() {
    let tape = tape(14, (5, 2));
    let whole = tape.bytes.len();
    let clean = read(&mut Reader::open(tape.bytes.as_slice()).unwrap());
    let first = tape.ends[0];
    for cut in 0..whole {
        let opened = Reader::open(&tape.bytes[..cut]);
        let ticks = tape.ends.iter().filter(|end| **end <= cut).count();
        match opened {
            Ok(mut reader) => {
                assert_eq!(read(&mut reader), clean[..ticks], "cut at {cut}");
            }
            Err(why) => {
                assert_eq!(ticks, 0, "cut at {cut}: {why}");
                assert!(cut < first, "cut at {cut}: {why}");
            }
        }
    }
}

/// News without kernel lines.
fn figures(news: &[Entry]) -> Vec<&Entry> {
    news.iter().filter(|e| !matches!(e, Entry::Records(..))).collect()
}

/// Where a key frame was hit tasks may be missing; what there is must be right.
fn less(found: &[Entry], news: &[Entry]) {
    for (found, told) in figures(found).into_iter().zip(figures(news)) {
        match (found, told) {
            (Entry::Procs(found), Entry::Procs(told)) => {
                let (Section::Ok(found), Section::Ok(told)) = (&**found, &**told) else { continue };
                assert!(found.changed.iter().all(|c| told.changed.contains(c)), "a task made up");
            }
            (found, told) => assert_eq!(found, told),
        }
    }
}

#[test]
fn ten_thousand_bits_turned_round() {
    let tape = tape(16, (5, 2));
    let clean: BTreeMap<u32, Vec<Entry>> =
        read(&mut Reader::open(tape.bytes.as_slice()).unwrap()).into_iter().collect();
    let mut dice = Dice(42);
    let (mut lost, mut most) = (0, 0);
    let header = Header { host: "box\u{1b}[2J".into(), interval_ns: SEC, ..Header::default() }.write().len();
    for round in 0..10_000 {
        let bit = dice.below(tape.bytes.len() as u64 * 8) as usize;
        let mut bytes = tape.bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let Ok(mut reader) = Reader::open(bytes.as_slice()) else {
            assert!(bit / 8 < header, "round {round}: bit {bit} of the frames made the file unreadable");
            continue;
        };
        let hit = tape.ends.iter().position(|end| bit / 8 < *end).unwrap() as u32;
        let read = read_partly(&mut reader);
        for (number, news) in &clean {
            match read.get(number) {
                // Kernel lines stand by themselves: they may be what was hit, or come with the next tick that is left.
                Some((false, found)) => {
                    assert_eq!(figures(found), figures(news), "round {round}, bit {bit}, tick {number}");
                }
                Some((true, found)) => less(found, news),
                None => {
                    lost += 1;
                    // Nothing before it, and nothing from the next place on that can be begun at.
                    let next = (hit / 5 + 1) * 5;
                    assert!((hit..next).contains(number), "round {round}: bit {bit} in {hit} lost {number}");
                }
            }
        }
        most = most.max(clean.len() - read.len());
    }
    assert!(lost > 10_000 && most == 5, "{lost} ticks lost, {most} at once");
}

#[test]
fn a_lost_key_frame_costs_what_did_not_move_and_says_so() {
    let tape = tape(40, (5, 4));
    let mut bytes = tape.bytes.clone();
    // The second key frame: tick 20.
    bytes[tape.ends[19] + 60] ^= 0xff;
    let mut reader = Reader::open(bytes.as_slice()).unwrap();
    let (mut damaged, mut whole) = (world(&reader), world(&reader));
    let mut intact = Reader::open(tape.bytes.as_slice()).unwrap();
    let mut partial = Vec::new();
    while let Some(moment) = reader.next_tick().unwrap() {
        if moment.partial {
            partial.push(moment.number);
        }
        let number = moment.number;
        moment.before.into_iter().flatten().chain(moment.news).for_each(|e| apply(&mut damaged, e));
        while let Some(m) = intact.next_tick().unwrap() {
            let there = m.number == number;
            m.news.into_iter().for_each(|e| apply(&mut whole, e));
            if there {
                break;
            }
        }
        if number == 39 {
            let (a, b) = (damaged.snap.clone(), whole.snap.clone());
            assert_eq!((a.at, &a.devices, &a.writeback), (b.at, &b.devices, &b.writeback));
            assert!(damaged.procs.len() <= whole.procs.len());
        }
    }
    // Until the next key frame, which would be tick 40.
    assert_eq!(partial, (25..40).collect::<Vec<u32>>());
}

#[test]
fn what_is_no_recording_is_refused_in_words() {
    for (bytes, has) in [
        (&b""[..], "no recording"),
        (b"iotop+r", "no recording"),
        (&[0; 5000], "no recording"),
        (&Header::default().write(), "no whole frame"),
    ] {
        let why = Reader::open(bytes).err().unwrap();
        assert!(why.contains(has), "{why}");
    }
}
