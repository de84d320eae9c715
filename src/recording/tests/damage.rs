//! Recordings truncated at every byte, and with random bits flipped.

use super::*;

#[test]
fn every_whole_tick_before_a_truncation_is_read() {
    let recording = record_ticks(14, (5, 2));
    let whole = recording.bytes.len();
    let clean = read_ticks(&mut RecordingReader::open(recording.bytes.as_slice()).unwrap());
    let first = recording.tick_ends[0];
    for cut in 0..whole {
        let opened = RecordingReader::open(&recording.bytes[..cut]);
        let ticks = recording.tick_ends.iter().filter(|end| **end <= cut).count();
        match opened {
            Ok(mut reader) => {
                assert_eq!(read_ticks(&mut reader), clean[..ticks], "cut at {cut}");
            }
            Err(why) => {
                assert_eq!(ticks, 0, "cut at {cut}: {why}");
                assert!(cut < first, "cut at {cut}: {why}");
            }
        }
    }
}

/// Observations without kernel log records.
fn without_kernel_log(observations: &[Observation]) -> Vec<&Observation> {
    observations.iter().filter(|e| !matches!(e, Observation::KernelLog(..))).collect()
}

/// If a key frame was damaged, tasks may be missing; those that are there must be right.
fn assert_subset(found: &[Observation], observations: &[Observation]) {
    for (found, expected) in without_kernel_log(found).into_iter().zip(without_kernel_log(observations)) {
        match (found, expected) {
            (Observation::Tasks(found), Observation::Tasks(expected)) => {
                let (Reading::Ok(found), Reading::Ok(expected)) = (&**found, &**expected) else { continue };
                assert!(found.changed.iter().all(|c| expected.changed.contains(c)), "an invented task");
            }
            (found, expected) => assert_eq!(found, expected),
        }
    }
}

#[test]
fn a_flipped_bit_loses_at_most_one_checkpoint_interval() {
    let recording = record_ticks(16, (5, 2));
    let clean: BTreeMap<u32, Vec<Observation>> =
        read_ticks(&mut RecordingReader::open(recording.bytes.as_slice()).unwrap()).into_iter().collect();
    let mut rng = TestRng(42);
    let (mut lost, mut most) = (0, 0);
    let header = RecordingHeader { host: "box\u{1b}[2J".into(), interval_ns: NS_PER_SEC, ..RecordingHeader::default() }
        .to_bytes()
        .len();
    for round in 0..10_000 {
        let bit = rng.below(recording.bytes.len() as u64 * 8) as usize;
        let mut bytes = recording.bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let Ok(mut reader) = RecordingReader::open(bytes.as_slice()) else {
            assert!(bit / 8 < header, "round {round}: bit {bit} of the frames made the file unreadable");
            continue;
        };
        let hit = recording.tick_ends.iter().position(|end| bit / 8 < *end).unwrap() as u32;
        let read = read_ticks_with_partial(&mut reader);
        for (number, observations) in &clean {
            match read.get(number) {
                // Log frames are independent: one may be what was damaged, or its records come with the next intact
                // tick.
                Some((false, found)) => {
                    assert_eq!(
                        without_kernel_log(found),
                        without_kernel_log(observations),
                        "round {round}, bit {bit}, tick {number}"
                    );
                }
                Some((true, found)) => assert_subset(found, observations),
                None => {
                    lost += 1;
                    // No tick before the damaged frame is lost, and none from the next checkpoint on.
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
fn a_lost_key_frame_omits_unchanged_tasks_and_is_flagged_partial() {
    let recording = record_ticks(40, (5, 4));
    let mut bytes = recording.bytes.clone();
    // The second key frame: tick 20.
    bytes[recording.tick_ends[19] + 60] ^= 0xff;
    let mut reader = RecordingReader::open(bytes.as_slice()).unwrap();
    let (mut damaged, mut whole) = (new_state(&reader), new_state(&reader));
    let mut intact = RecordingReader::open(recording.bytes.as_slice()).unwrap();
    let mut partial = Vec::new();
    while let Some(tick) = reader.next_tick().unwrap() {
        if tick.is_partial {
            partial.push(tick.number);
        }
        let number = tick.number;
        tick.full_state.into_iter().flatten().chain(tick.observations).for_each(|e| _ = damaged.apply(e));
        while let Some(m) = intact.next_tick().unwrap() {
            let there = m.number == number;
            m.observations.into_iter().for_each(|e| _ = whole.apply(e));
            if there {
                break;
            }
        }
        if number == 39 {
            let (a, b) = (damaged.snapshot.clone(), whole.snapshot.clone());
            assert_eq!((a.time, &a.devices, &a.writeback), (b.time, &b.devices, &b.writeback));
            assert!(damaged.processes.len() <= whole.processes.len());
        }
    }
    // Until the next key frame, which would be tick 40.
    assert_eq!(partial, (25..40).collect::<Vec<u32>>());
}

#[test]
fn files_that_are_no_recording_are_rejected_with_a_reason() {
    for (bytes, has) in [
        (&b""[..], "not a recording"),
        (b"iotop+r", "not a recording"),
        (&[0; 5000], "not a recording"),
        (&RecordingHeader::default().to_bytes(), "no complete frame"),
    ] {
        let why = RecordingReader::open(bytes).err().unwrap();
        assert!(why.to_string().contains(has), "{why}");
    }
}
