//! Files made to do harm: valid checksums, everything else wrong.

use super::super::codec::put_section;
use super::super::compress::{Compressor, Decompressor};
use super::super::decoder::FrameDecoder;
use super::super::frame::{FrameHeader, FrameKind};
use super::super::state::CodecState;
use super::*;
use crate::export::snapshot;
use crate::sanitize::is_safe;
use proptest::prelude::*;

/// The payloads of all frames.
fn frame_payloads(recording: &TestRecording) -> Vec<Vec<u8>> {
    let mut at = RecordingHeader::from_bytes(&recording.bytes).unwrap().to_bytes().len();
    let mut unpacker = Decompressor::default();
    let mut out = Vec::new();
    while at < recording.bytes.len() {
        let head = FrameHeader::from_bytes(&recording.bytes[at..]).unwrap();
        let packed = &recording.bytes[at + 36..at + head.total_len() as usize];
        if head.kind != FrameKind::Log {
            out.push(unpacker.decompress(packed, head.raw_len as usize, head.kind != FrameKind::Delta).unwrap());
        }
        at += head.total_len() as usize;
    }
    out
}

/// Whatever a payload contains is shown without harm.
fn assert_payload_is_harmless(raw: &[u8]) {
    let mut world = SystemState::new(RecordingHeader::default().host(), LogClock::default());
    let mut show = |entries: Vec<Observation>| {
        entries.into_iter().for_each(|entry| _ = world.apply(entry));
        let json = to_json(&world);
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        let mut engine = crate::doctor::RuleEngine::default();
        engine.evaluate(&world);
        let mut texts = vec![
            snapshot::text(&world, &engine, SnapshotScope::ALL),
            snapshot::markdown(&world, &engine, SnapshotScope::ALL),
        ];
        collect_strings(&value, &mut texts);
        for text in texts {
            assert!(text.chars().all(|c| is_safe(c) || c == '\n'), "{text:?}");
        }
    };
    let mut state = CodecState::default();
    if state.get_base(raw, false).is_ok() {
        show(state.full_update());
    }
    if let Ok(observations) = state.decode(raw) {
        show(observations);
        show(state.full_update());
    }
}

fn collect_strings(value: &serde_json::Value, out: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) => out.push(text.clone()),
        serde_json::Value::Array(all) => all.iter().for_each(|v| collect_strings(v, out)),
        serde_json::Value::Object(all) => all.values().for_each(|v| collect_strings(v, out)),
        _ => {}
    }
}

#[test]
fn random_payload_changes_are_harmless() {
    let contents = frame_payloads(&record_ticks(30, (6, 2)));
    let mut rng = TestRng(7);
    for _ in 0..6_000 {
        let mut raw = contents[rng.below(contents.len() as u64) as usize].clone();
        for _ in 0..1 + rng.below(4) {
            let at = rng.below(raw.len() as u64) as usize;
            match rng.below(4) {
                0 => raw[at] = 0xff,
                1 => raw[at] ^= 1 << rng.below(8),
                2 => raw[at] = rng.below(256) as u8,
                _ => raw.truncate(at + 1),
            }
        }
        assert_payload_is_harmless(&raw);
    }
}

#[test]
fn a_frame_claiming_a_million_tasks_is_rejected() {
    let mut body = vec![1, 0, 0, 0, 0, 0, 0, 0, 0, 2];
    body.push(0);
    body.extend([0, 0, 0, 0]);
    body.extend([0xc0, 0x84, 0x3d]); // 1,000,000
    body.resize(body.len() + 3_000_000, 0);
    let mut raw = Vec::new();
    put_section(&mut raw, 33, &body);
    assert!(CodecState::default().get_base(&raw, false).is_err());
}

#[test]
fn an_unknown_section_does_not_hide_the_others() {
    let recording = record_ticks(1, (60, 15));
    let mut raw = Vec::new();
    put_section(&mut raw, 4711, b"from the future");
    raw.extend(&frame_payloads(&recording)[0]);
    let packed = Compressor::default().compress(&raw, true);
    let head = FrameHeader {
        kind: FrameKind::Key,
        number: 0,
        packed_len: packed.len() as u32,
        raw_len: raw.len() as u32,
        wall_ns: 0,
        crc: crc32fast::hash(&packed),
    };
    let tick = FrameDecoder::default().decode_frame(&head, &packed).unwrap().unwrap();
    assert!(tick.observations.iter().any(|e| matches!(e, Observation::Sample(_))));
}

proptest! {
    #[test]
    fn random_payloads_are_harmless(raw in proptest::collection::vec(any::<u8>(), 0..400)) {
        assert_payload_is_harmless(&raw);
    }

    #[test]
    fn random_sections_are_harmless(
        tag in prop_oneof![Just(1u64), Just(2), Just(31), Just(32), Just(33)],
        body in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut raw = Vec::new();
        put_section(&mut raw, tag, &body);
        assert_payload_is_harmless(&raw);
    }
}
