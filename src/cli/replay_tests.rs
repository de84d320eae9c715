//! Replayed output equals live output in every field, for this machine and for captured ones.

// The tests of the screen load the whole fixture module; these need one file of it.
#[allow(clippy::duplicate_mod)]
#[path = "../../tests/fixture/tree.rs"]
mod tree;

use super::printer::block_on;
use super::replay::RecordingPlayer;
use super::sampler::{Sampler, SamplerOptions};
use crate::export::json;
use crate::export::snapshot::{self, SnapshotScope};
use crate::recording::encoder::FrameEncoder;
use crate::recording::reader::RecordingReader;
use crate::root::Root;
use std::time::Duration;

/// The snapshots of some ticks, and the recording of the same ticks.
fn record_live(root: &Root, ticks: usize, every: (u32, u32)) -> (Vec<[String; 2]>, Vec<u8>) {
    let interval = Duration::from_millis(100);
    let mut bytes = super::record::recording_header(root, interval).to_bytes();
    let mut encoder = FrameEncoder::new(every.0, every.1);
    let mut live_texts = Vec::new();
    block_on(async {
        let options = SamplerOptions {
            read_every_task: true,
            queue_settings: true,
            kernel_log: true,
            keep_events: true,
            tracing: true,
            slow_syncs_from: Some(Duration::from_millis(1)),
            files: true,
            waits: true,
            threads: false,
            facts_every: Some(interval),
        };
        let mut sampler = Sampler::start(root, interval, options)?;
        for _ in 0..ticks {
            sampler.next_sample().await?;
            live_texts.push([
                json::snapshot_json(
                    &sampler.state,
                    &sampler.findings,
                    SnapshotScope::ALL,
                    sampler.since,
                    sampler.gaps(),
                )?,
                snapshot::text(&sampler.state, &sampler.findings, SnapshotScope::ALL),
            ]);
            bytes.extend(encoder.encode_tick(&sampler.take_events(), sampler.state.now().wall_ns));
        }
        Ok(())
    })
    .unwrap();
    (live_texts, bytes)
}

fn replay(bytes: &[u8]) -> Vec<[String; 2]> {
    let mut reader = RecordingReader::open(bytes).unwrap();
    let mut player = RecordingPlayer::new(&reader);
    let mut live_texts = Vec::new();
    while let Some(moment) = reader.next_tick().unwrap() {
        player.apply_tick(moment);
        live_texts.push([
            json::snapshot_json(&player.state, &player.findings, SnapshotScope::ALL, player.since, &player.gaps)
                .unwrap(),
            snapshot::text(&player.state, &player.findings, SnapshotScope::ALL),
        ]);
    }
    live_texts
}

fn assert_replay_matches_live(root: &Root) {
    let (live_texts, bytes) = record_live(root, 12, (5, 2));
    let replayed_texts = replay(&bytes);
    assert_eq!(replayed_texts.len(), live_texts.len());
    for (n, (replayed_texts, live_texts)) in replayed_texts.iter().zip(&live_texts).enumerate() {
        // The texts are too long for an assertion message.
        let differs = replayed_texts[0].bytes().zip(live_texts[0].bytes()).position(|(a, b)| a != b);
        let around = |text: &str, at: usize| text.get(at.saturating_sub(80)..at + 80).map(str::to_owned);
        if let Some(at) = differs {
            panic!("tick {n}: live {:?}, replayed {:?}", around(&live_texts[0], at), around(&replayed_texts[0], at));
        }
        assert_eq!(replayed_texts[1], live_texts[1], "tick {n}");
    }
}

#[test]
fn replay_of_this_machine_matches_live() {
    assert_replay_matches_live(&Root::live());
}

#[test]
fn replay_of_captured_machines_matches_live() {
    for name in ["busy-vm/t0", "busy-host/t0", "layered-vm"] {
        assert_replay_matches_live(&Root::at(tree::captured(name)));
    }
}
