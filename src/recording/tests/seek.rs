//! Begun anywhere, a recording shows what it shows when it is read from the start.

use super::*;

/// The world at each tick, as a reader from the start has it.
fn replay_all(bytes: &[u8]) -> Vec<String> {
    let mut reader = RecordingReader::open(bytes).unwrap();
    let mut world = new_state(&reader);
    let mut out = Vec::new();
    while let Some(moment) = reader.next_tick().unwrap() {
        moment.observations.into_iter().for_each(|entry| _ = world.apply(entry));
        out.push(to_json(&world));
    }
    out
}

/// The same without what takes ticks to be seen: tasks that hang.
fn without_hung_tasks(text: &str) -> serde_json::Value {
    let mut value: serde_json::Value = serde_json::from_str(text).unwrap();
    if let Some(log) = value["kernel_log"].as_array_mut() {
        log.retain(|line| !line["seq"].is_null());
    }
    value
}

#[test]
fn seeking_to_any_tick_matches_a_full_replay() {
    let tape = record_ticks(100, (10, 3));
    let told = replay_all(&tape.bytes);
    let mut reader = RecordingReader::open(tape.bytes.as_slice()).unwrap();
    for number in (0..100).rev() {
        let mut world = new_state(&reader);
        for entry in reader.seek(number).unwrap() {
            world.apply(entry);
        }
        let mut first = true;
        loop {
            let moment = reader.next_tick().unwrap().unwrap();
            if std::mem::take(&mut first) {
                assert!(moment.number <= number && number - moment.number < 10, "{number}");
                moment.full_state.into_iter().flatten().for_each(|entry| _ = world.apply(entry));
            }
            moment.observations.into_iter().for_each(|entry| _ = world.apply(entry));
            if moment.number == number {
                break;
            }
        }
        assert_eq!(without_hung_tasks(&to_json(&world)), without_hung_tasks(&told[number as usize]), "tick {number}");
    }
}

#[test]
fn times_map_to_their_tick() {
    let tape = record_ticks(50, (10, 3));
    let mut reader = RecordingReader::open(tape.bytes.as_slice()).unwrap();
    let times: Vec<i64> = {
        let mut out = Vec::new();
        while let Some(moment) = reader.next_tick().unwrap() {
            out.push(moment.wall_ns);
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
        let news = machine.tick();
        // The dropped ticks' lines are lost with them, the rest is told anew.
        let news: Vec<Observation> = news.into_iter().filter(|e| !matches!(e, Observation::KernelLog(..))).collect();
        if (12..17).contains(&n) {
            encoder.skip_tick(&news);
        } else {
            bytes.extend(encoder.encode_tick(&news, machine.clock().wall_ns));
        }
        news.into_iter().for_each(|entry| _ = live.apply(entry));
    }
    let mut reader = RecordingReader::open(bytes.as_slice()).unwrap();
    let mut numbers = Vec::new();
    while let Some(moment) = reader.next_tick().unwrap() {
        numbers.push(moment.number);
        moment.full_state.into_iter().flatten().chain(moment.observations).for_each(|e| _ = replayed.apply(e));
    }
    assert_eq!(numbers, (0..12).chain(17..30).collect::<Vec<u32>>());
    assert_eq!(without_hung_tasks(&to_json(&replayed)), without_hung_tasks(&to_json(&live)));
}
