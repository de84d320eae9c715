//! Tasks that wait for something other than the queue of a disk.

use super::{CRITICAL, NOTE, Situation, WARNING, alone, on, situation};
use crate::judge::Truth;
use crate::stage::{Result, Stage};
use std::time::Duration;

/// A file system frozen for a snapshot, with a program `service` that writes.
fn frozen(stage: &mut Stage, fs: &str) -> Result<Truth> {
    let (disk, at) = stage.fast(fs, 512)?;
    let log = stage.file(&at, "log", 8)?;
    stage.load_on("service", &log, "op=write mb=8 rate=50")?;
    stage.freeze(&at)?;
    Ok(on(&disk, CRITICAL).victims("service").says("frozen"))
}

pub const SITUATIONS: &[Situation] = &[
    alone(
        "backlog-of-ended-writer",
        "a program has written 300 MB into memory and ended; sync writes it to a disk of 15 MB/s, which makes progress",
        12.0,
        |stage| {
            let (disk, at) = stage.served("ext4", 1024)?;
            stage.behave(&disk, "slots=4 mb_per_s=15");
            stage.load_on("export", &at.join("dump"), "op=write bs=1048576 mb=300 count=300")?;
            stage.wait_for_size(&at.join("dump"), 300)?;
            stage.end_load("export");
            stage.load("sync", "op=program run=sync")?;
            Ok(on(&disk, NOTE).others("sync export").never("hangs stalled"))
        },
    ),
    alone(
        "small-journal",
        "a program creates and removes files on a disk of 10 ms a request, through a journal of 4 MB",
        12.0,
        |stage| {
            let disk = stage.served_disk(512)?;
            let mkfs = ["mkfs.ext4", "-qF", "-J", "size=4", "-E", "nodiscard,lazy_itable_init=0"];
            let at = stage.mount(&disk, &mkfs, "noatime")?;
            stage.behave(&disk, "slots=4 read=10 write=10 flush=10");
            stage.load_on("unpack", &at, "op=create")?;
            Ok(on(&disk, WARNING).victims("unpack").rules("journal-full"))
        },
    ),
    situation("frozen", "a file system is frozen for a snapshot; a program that writes hangs", 14.0, |stage| {
        frozen(stage, "ext4")
    }),
    situation("frozen-xfs", "the same on xfs", 14.0, |stage| frozen(stage, "xfs")),
    situation("frozen-btrfs", "the same on btrfs", 14.0, |stage| frozen(stage, "btrfs")),
    situation("frozen-old-error", "a file system is frozen; another disk had errors before", 14.0, |stage| {
        let bad = stage.served_disk(64)?;
        stage.behave(&bad, "fail=1");
        stage.load("probe", &format!("op=randread direct=1 path={} count=3 exit=1", bad.path))?;
        std::thread::sleep(Duration::from_secs(1));
        stage.behave(&bad, "fail=0");
        let truth = frozen(stage, "ext4")?;
        Ok(Truth { other_disks: vec![bad.name], ..truth }.others("probe").also("io-error"))
    }),
    situation(
        "stopped-server",
        "the FUSE server below a disk is stopped: the disk stalls, and a program with it",
        14.0,
        |stage| {
            let (disk, at) = stage.served("ext4", 256)?;
            let table = stage.file(&at, "table", 64)?;
            stage.load_on("shop", &table, "op=randread direct=1")?;
            stage.stop_server(&disk)?;
            Ok(on(&disk, CRITICAL).victims("shop").rules("device-stalled").says("FUSE"))
        },
    ),
];
