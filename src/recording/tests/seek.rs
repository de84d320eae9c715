//! A recording read from any tick shows the same as one read from the start.

use super::*;

/// The system state at each tick, as a reader from the start shows it.
fn replay_all(bytes: &[u8]) -> Vec<String> {
    let mut reader = RecordingReader::open(bytes).unwrap();
    let mut world = new_state(&reader);
    let mut out = Vec::new();
    while let Some(tick) = reader.next_tick().unwrap() {
        tick.observations.into_iter().for_each(|entry| _ = world.apply(entry));
        out.push(to_json(&world));
    }
    out
}

/// The same without hung tasks, which take several ticks to be detected.
fn without_hung_tasks(text: &str) -> serde_json::Value {
    let mut value: serde_json::Value = serde_json::from_str(text).unwrap();
    if let Some(log) = value["kernel_log"].as_array_mut() {
        log.retain(|line| !line["seq"].is_null());
    }
    value
}

#[test]
fn seeking_to_any_tick_matches_a_full_replay() {
    let recording = record_ticks(100, (10, 3));
    let expected = replay_all(&recording.bytes);
    let mut reader = RecordingReader::open(recording.bytes.as_slice()).unwrap();
    for number in (0..100).rev() {
        let mut world = new_state(&reader);
        for entry in reader.seek(number).unwrap() {
            world.apply(entry);
        }
        let mut first = true;
        loop {
            let tick = reader.next_tick().unwrap().unwrap();
            if std::mem::take(&mut first) {
                assert!(tick.number <= number && number - tick.number < 10, "{number}");
                tick.full_state.into_iter().flatten().for_each(|entry| _ = world.apply(entry));
            }
            tick.observations.into_iter().for_each(|entry| _ = world.apply(entry));
            if tick.number == number {
                break;
            }
        }
        assert_eq!(
            without_hung_tasks(&to_json(&world)),
            without_hung_tasks(&expected[number as usize]),
            "tick {number}"
        );
    }
}

#[test]
fn times_map_to_their_tick() {
    let recording = record_ticks(50, (10, 3));
    let mut reader = RecordingReader::open(recording.bytes.as_slice()).unwrap();
    let times: Vec<i64> = {
        let mut out = Vec::new();
        while let Some(tick) = reader.next_tick().unwrap() {
            out.push(tick.wall_ns);
        }
        out
    };
    for (n, time) in times.iter().enumerate() {
        assert_eq!(reader.tick_number_at(*time).unwrap() as usize, n);
        assert_eq!(reader.tick_number_at(*time + 1000).unwrap() as usize, n);
    }
    assert_eq!(reader.tick_number_at(i64::MIN).unwrap(), 0);
    assert_eq!(reader.tick_number_at(i64::MAX).unwrap(), 49);
}

#[test]
fn dropped_ticks_leave_only_a_gap_in_the_numbers() {
    let mut machine = FakeMachine::new(77);
    let mut encoder = FrameEncoder::new(10, 3);
    let mut bytes = RecordingHeader::default().to_bytes();
    let mut live = SystemState::new(RecordingHeader::default().host(), RecordingHeader::default().log_clock());
    let mut replayed = SystemState::new(RecordingHeader::default().host(), RecordingHeader::default().log_clock());
    for n in 0..30 {
        let observations = machine.tick();
        // The records of dropped ticks are lost with them; everything else is written again.
        let observations: Vec<Observation> =
            observations.into_iter().filter(|e| !matches!(e, Observation::KernelLog(..))).collect();
        if (12..17).contains(&n) {
            encoder.skip_tick(&observations);
        } else {
            bytes.extend(encoder.encode_tick(&observations, machine.clock().wall_ns));
        }
        observations.into_iter().for_each(|entry| _ = live.apply(entry));
    }
    let mut reader = RecordingReader::open(bytes.as_slice()).unwrap();
    let mut numbers = Vec::new();
    while let Some(tick) = reader.next_tick().unwrap() {
        numbers.push(tick.number);
        tick.full_state.into_iter().flatten().chain(tick.observations).for_each(|e| _ = replayed.apply(e));
    }
    assert_eq!(numbers, (0..12).chain(17..30).collect::<Vec<u32>>());
    assert_eq!(without_hung_tasks(&to_json(&replayed)), without_hung_tasks(&to_json(&live)));
}
