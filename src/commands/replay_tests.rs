//! Live and replayed figures are the same, for every field: of this machine, and of a captured one.

use super::gather::{Gather, Needs};
use super::printer::block_on;
use super::replay::Player;
use crate::export::json;
use crate::export::snapshot::{self, SnapshotScope};
use crate::record::encoder::FrameEncoder;
use crate::record::reader::RecordingReader;
use crate::root::Root;
use std::path::Path;
use std::time::Duration;

/// What snapshots say of some ticks, and the recording of the same ticks.
fn live(root: &Root, ticks: usize, every: (u32, u32)) -> (Vec<[String; 2]>, Vec<u8>) {
    let interval = Duration::from_millis(100);
    let mut bytes = super::record::header(root, interval).to_bytes();
    let mut encoder = FrameEncoder::new(every.0, every.1);
    let mut told = Vec::new();
    block_on(async {
        let needs = Needs {
            fresh: true,
            queues: true,
            log: true,
            news: true,
            tracing: true,
            syncs: Some(Duration::from_millis(1)),
            threads: false,
            facts: Some(interval),
        };
        let mut gather = Gather::start(root, interval, needs)?;
        for _ in 0..ticks {
            gather.next().await?;
            told.push([
                json::snapshot_json(&gather.world, &gather.findings, SnapshotScope::ALL, gather.since, gather.gaps())?,
                snapshot::text(&gather.world, &gather.findings, SnapshotScope::ALL),
            ]);
            bytes.extend(encoder.encode_tick(&gather.news(), gather.world.now().wall_ns));
        }
        Ok(())
    })
    .unwrap();
    (told, bytes)
}

fn replayed(bytes: &[u8]) -> Vec<[String; 2]> {
    let mut reader = RecordingReader::open(bytes).unwrap();
    let mut player = Player::new(&reader);
    let mut told = Vec::new();
    while let Some(moment) = reader.next_tick().unwrap() {
        player.take(moment);
        told.push([
            json::snapshot_json(&player.world, &player.findings, SnapshotScope::ALL, player.since, &player.gaps).unwrap(),
            snapshot::text(&player.world, &player.findings, SnapshotScope::ALL),
        ]);
    }
    told
}

fn same(root: &Root) {
    let (told, bytes) = live(root, 12, (5, 2));
    let again = replayed(&bytes);
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
fn this_machine_replayed_is_this_machine_live() {
    same(&Root::live());
}

#[test]
fn a_captured_machine_replayed_is_the_same_too() {
    for name in ["busy-vm", "busy-host", "layered-vm"] {
        same(&Root::at(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name).join("t0")));
    }
}
