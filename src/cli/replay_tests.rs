//! Live and replayed figures are the same, for every field: of this machine, and of a captured one.

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

/// What snapshots say of some ticks, and the recording of the same ticks.
fn record_live(root: &Root, ticks: usize, every: (u32, u32)) -> (Vec<[String; 2]>, Vec<u8>) {
    let interval = Duration::from_millis(100);
    let mut bytes = super::record::recording_header(root, interval).to_bytes();
    let mut encoder = FrameEncoder::new(every.0, every.1);
    let mut told = Vec::new();
    block_on(async {
        let needs = SamplerOptions {
            read_every_task: true,
            queue_settings: true,
            kernel_log: true,
            keep_events: true,
            tracing: true,
            slow_syncs_from: Some(Duration::from_millis(1)),
            threads: false,
            facts_every: Some(interval),
        };
        let mut gather = Sampler::start(root, interval, needs)?;
        for _ in 0..ticks {
            gather.next_sample().await?;
            told.push([
                json::snapshot_json(&gather.state, &gather.findings, SnapshotScope::ALL, gather.since, gather.gaps())?,
                snapshot::text(&gather.state, &gather.findings, SnapshotScope::ALL),
            ]);
            bytes.extend(encoder.encode_tick(&gather.take_events(), gather.state.now().wall_ns));
        }
        Ok(())
    })
    .unwrap();
    (told, bytes)
}

fn replay(bytes: &[u8]) -> Vec<[String; 2]> {
    let mut reader = RecordingReader::open(bytes).unwrap();
    let mut player = RecordingPlayer::new(&reader);
    let mut told = Vec::new();
    while let Some(moment) = reader.next_tick().unwrap() {
        player.apply_tick(moment);
        told.push([
            json::snapshot_json(&player.state, &player.findings, SnapshotScope::ALL, player.since, &player.gaps)
                .unwrap(),
            snapshot::text(&player.state, &player.findings, SnapshotScope::ALL),
        ]);
    }
    told
}

fn assert_replay_matches_live(root: &Root) {
    let (told, bytes) = record_live(root, 12, (5, 2));
    let again = replay(&bytes);
    assert_eq!(again.len(), told.len());
    for (n, (again, told)) in again.iter().zip(&told).enumerate() {
        // Not the whole texts in a message: they are long.
        let differs = again[0].bytes().zip(told[0].bytes()).position(|(a, b)| a != b);
        let around = |text: &str, at: usize| text.get(at.saturating_sub(80)..at + 80).map(str::to_owned);
        if let Some(at) = differs {
            panic!("tick {n}: live {:?}, replayed {:?}", around(&told[0], at), around(&again[0], at));
        }
        assert_eq!(again[1], told[1], "tick {n}");
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
