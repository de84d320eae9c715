//! Begun anywhere, a recording shows what it shows when it is read from the start.

use super::*;

/// The world at each tick, as a reader from the start has it.
fn all(bytes: &[u8]) -> Vec<String> {
    let mut reader = Reader::open(bytes).unwrap();
    let mut world = world(&reader);
    let mut out = Vec::new();
    while let Some(moment) = reader.next_tick().unwrap() {
        moment.news.into_iter().for_each(|entry| apply(&mut world, entry));
        out.push(shown(&world));
    }
    out
}

/// The same without what takes ticks to be seen: tasks that hang.
fn without_waiting(text: &str) -> serde_json::Value {
    let mut value: serde_json::Value = serde_json::from_str(text).unwrap();
    if let Some(log) = value["kernel_log"].as_array_mut() {
        log.retain(|line| !line["seq"].is_null());
    }
    value
}

#[test]
fn every_tick_can_be_begun_at() {
    let tape = tape(100, (10, 3));
    let told = all(&tape.bytes);
    let mut reader = Reader::open(tape.bytes.as_slice()).unwrap();
    for number in (0..100).rev() {
        let mut world = world(&reader);
        for entry in reader.start_at(number).unwrap() {
            apply(&mut world, entry);
        }
        let mut first = true;
        loop {
            let moment = reader.next_tick().unwrap().unwrap();
            if std::mem::take(&mut first) {
                assert!(moment.number <= number && number - moment.number < 10, "{number}");
                moment.before.into_iter().flatten().for_each(|entry| apply(&mut world, entry));
            }
            moment.news.into_iter().for_each(|entry| apply(&mut world, entry));
            if moment.number == number {
                break;
            }
        }
        assert_eq!(without_waiting(&shown(&world)), without_waiting(&told[number as usize]), "tick {number}");
    }
}

#[test]
fn a_time_leads_to_its_tick() {
    let tape = tape(50, (10, 3));
    let mut reader = Reader::open(tape.bytes.as_slice()).unwrap();
    let times: Vec<i64> = {
        let mut out = Vec::new();
        while let Some(moment) = reader.next_tick().unwrap() {
            out.push(moment.wall_ns);
        }
        out
    };
    for (n, time) in times.iter().enumerate() {
        assert_eq!(reader.number_at(*time).unwrap() as usize, n);
        assert_eq!(reader.number_at(*time + 1000).unwrap() as usize, n);
    }
    assert_eq!(reader.number_at(i64::MIN).unwrap(), 0);
    assert_eq!(reader.number_at(i64::MAX).unwrap(), 49);
}

#[test]
fn ticks_that_were_dropped_leave_a_gap_and_nothing_else() {
    let mut machine = Machine::new(77);
    let mut encoder = Encoder::new(10, 3);
    let mut bytes = Header::default().write();
    let mut live = World::new(Header::default().host(), Header::default().log_clock());
    let mut replayed = World::new(Header::default().host(), Header::default().log_clock());
    for n in 0..30 {
        let news = machine.tick();
        // The dropped ticks' lines are lost with them, the rest is told anew.
        let news: Vec<Entry> = news.into_iter().filter(|e| !matches!(e, Entry::Records(..))).collect();
        if (12..17).contains(&n) {
            encoder.skip(&news);
        } else {
            bytes.extend(encoder.frame(&news, machine.at().wall_ns));
        }
        news.into_iter().for_each(|entry| apply(&mut live, entry));
    }
    let mut reader = Reader::open(bytes.as_slice()).unwrap();
    let mut numbers = Vec::new();
    while let Some(moment) = reader.next_tick().unwrap() {
        numbers.push(moment.number);
        moment.before.into_iter().flatten().chain(moment.news).for_each(|e| apply(&mut replayed, e));
    }
    assert_eq!(numbers, (0..12).chain(17..30).collect::<Vec<u32>>());
    assert_eq!(without_waiting(&shown(&replayed)), without_waiting(&shown(&live)));
}
