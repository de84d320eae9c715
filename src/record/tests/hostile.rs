//! Files made to harm: right checksums, wrong everything else.

use super::super::decode::Decoder;
use super::super::frame::{FrameHead, Kind};
use super::super::pack::{Packer, Unpacker};
use super::super::state::State;
use super::super::wire::{put_num, put_section};
use super::*;
use crate::export::page;
use crate::text::is_safe;
use proptest::prelude::*;

/// The frames' contents, unpacked.
fn contents(tape: &Tape) -> Vec<Vec<u8>> {
    let mut at = Header::read(&tape.bytes).unwrap().write().len();
    let mut unpacker = Unpacker::default();
    let mut out = Vec::new();
    while at < tape.bytes.len() {
        let head = FrameHead::read(&tape.bytes[at..]).unwrap();
        let packed = &tape.bytes[at + 36..at + head.whole() as usize];
        if head.kind != Kind::Log {
            out.push(unpacker.unpack(packed, head.len as usize, head.kind != Kind::Delta).unwrap());
        }
        at += head.whole() as usize;
    }
    out
}

/// Whatever a frame holds is shown without harm.
fn survives(raw: &[u8]) {
    let mut world = World::new(Header::default().host(), LogClock::default());
    let mut show = |entries: Vec<Entry>| {
        entries.into_iter().for_each(|entry| apply(&mut world, entry));
        let json = shown(&world);
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        let mut engine = crate::diagnose::Engine::default();
        engine.look(&world);
        let mut texts =
            vec![page::text(&world, &engine, Scope::ALL), page::markdown(&world, &engine, Scope::ALL)];
        collect(&value, &mut texts);
        for text in texts {
            assert!(text.chars().all(|c| is_safe(c) || c == '\n'), "{text:?}");
        }
    };
    let mut state = State::default();
    if state.get_base(raw, false).is_ok() {
        show(state.told_anew());
    }
    if let Ok(news) = state.get(raw) {
        show(news);
        show(state.told_anew());
    }
}

fn collect(value: &serde_json::Value, out: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) => out.push(text.clone()),
        serde_json::Value::Array(all) => all.iter().for_each(|v| collect(v, out)),
        serde_json::Value::Object(all) => all.values().for_each(|v| collect(v, out)),
        _ => {}
    }
}

#[test]
fn bytes_changed_at_random_within_frames_harm_nothing() {
    let contents = contents(&tape(30, (6, 2)));
    let mut dice = Dice(7);
    for _ in 0..6_000 {
        let mut raw = contents[dice.below(contents.len() as u64) as usize].clone();
        for _ in 0..1 + dice.below(4) {
            let at = dice.below(raw.len() as u64) as usize;
            match dice.below(4) {
                0 => raw[at] = 0xff,
                1 => raw[at] ^= 1 << dice.below(8),
                2 => raw[at] = dice.below(256) as u8,
                _ => raw.truncate(at + 1),
            }
        }
        survives(&raw);
    }
}

#[test]
fn a_frame_that_claims_a_million_tasks_is_refused_at_once() {
    let mut body = vec![1, 0, 0, 0, 0, 0, 0, 0, 0, 2];
    put_num(&mut body, 0);
    body.extend([0, 0, 0, 0]);
    put_num(&mut body, 1_000_000);
    body.resize(body.len() + 3_000_000, 0);
    let mut raw = Vec::new();
    put_section(&mut raw, 33, &body);
    assert!(State::default().get_base(&raw, false).is_err());
}

#[test]
fn a_frame_of_an_unheard_of_section_is_read_for_the_rest() {
    let tape = tape(1, (60, 15));
    let mut raw = Vec::new();
    put_section(&mut raw, 4711, b"from the future");
    raw.extend(&contents(&tape)[0]);
    let packed = Packer::default().pack(&raw, true);
    let head = FrameHead {
        kind: Kind::Key,
        number: 0,
        packed_len: packed.len() as u32,
        len: raw.len() as u32,
        wall_ns: 0,
        crc: crc32fast::hash(&packed),
    };
    let moment = Decoder::default().frame(&head, &packed).unwrap().unwrap();
    assert!(moment.news.iter().any(|e| matches!(e, Entry::Sample(_))));
}

proptest! {
    #[test]
    fn nonsense_is_survived(raw in proptest::collection::vec(any::<u8>(), 0..400)) {
        survives(&raw);
    }

    #[test]
    fn nonsense_with_a_section_before_it_is_survived(
        tag in prop_oneof![Just(1u64), Just(2), Just(31), Just(32), Just(33)],
        body in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut raw = Vec::new();
        put_section(&mut raw, tag, &body);
        survives(&raw);
    }
}
