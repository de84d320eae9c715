//! Disks that are slow by themselves: nobody is to blame, somebody suffers.

use super::{CRITICAL, LOUD, Situation, WARNING, on, situation};
use crate::judge::{Level, Truth};
use crate::stage::{Result, Stage, run};

/// A disk with a file system and a file `table`; the process `shop` uses it alone.
fn alone(stage: &mut Stage, fs: &str, disk: &str, load: &str, severity: [Level; 2]) -> Result<Truth> {
    let (slow, at) = stage.served(fs, 512)?;
    let table = stage.file(&at, "table", 64)?;
    stage.behave(&slow, disk);
    stage.load_on("shop", &table, load)?;
    Ok(on(&slow, severity).victims("shop").file("table"))
}

const READ_40: &str = "slots=8 read=40 write=1";
const RANDOM: &str = "op=randread direct=1";
const SYNCS: &str = "op=write fsync=1 mb=16";

pub const SITUATIONS: &[Situation] = &[
    situation(
        "slow-reads",
        "each read of a disk takes 40 ms; one program reads at random, directly, on ext4",
        10.0,
        |stage| alone(stage, "ext4", READ_40, RANDOM, WARNING),
    ),
    situation("slow-reads-xfs", "the same on xfs, through the page cache", 10.0, |stage| {
        alone(stage, "xfs", READ_40, "op=randread", WARNING)
    }),
    situation("slow-reads-btrfs", "the same on btrfs", 10.0, |stage| {
        alone(stage, "btrfs", READ_40, "op=randread", WARNING)
    }),
    situation("slow-reads-uring", "the same with fio and io_uring, two requests at a time", 10.0, |stage| {
        let (disk, at) = stage.served("ext4", 512)?;
        let table = stage.file(&at, "table", 64)?;
        run("fio", &["--version"])?;
        stage.behave(&disk, READ_40);
        let fio = "fio,--name=x,--rw=randread,--direct=1,--ioengine=io_uring,--iodepth=2,--time_based,--runtime=60";
        stage.load("service", &format!("op=program run={fio},--filename={}", table.display()))?;
        Ok(on(&disk, WARNING).victims("fio").others("service").file("table"))
    }),
    situation("slow-raw-disk", "each read takes 40 ms; a program reads the block device itself", 10.0, |stage| {
        let disk = stage.served_disk(256)?;
        stage.behave(&disk, READ_40);
        stage.load("scan", &format!("op=randread direct=1 path={}", disk.path))?;
        Ok(on(&disk, WARNING).victims("scan"))
    }),
    situation(
        "slow-mapped-reads",
        "each read of a disk takes 30 ms; one program reads a mapped file: no swapping",
        10.0,
        |stage| Ok(alone(stage, "ext4", "slots=8 read=30 write=30", "op=mmap", WARNING)?.never("swap")),
    ),
    situation("slow-mapped-reads-xfs", "the same on xfs", 10.0, |stage| {
        Ok(alone(stage, "xfs", "slots=8 read=30 write=30", "op=mmap", WARNING)?.never("swap"))
    }),
    situation(
        "slow-dsync-writes",
        "a disk takes 46 ms for a flush; a program writes with O_DSYNC and does nothing else",
        10.0,
        |stage| alone(stage, "ext4", "slots=8 write=1 flush=46", "op=write dsync=1 mb=16", WARNING),
    ),
    situation("slow-dsync-writes-xfs", "the same on xfs", 10.0, |stage| {
        alone(stage, "xfs", "slots=8 write=1 flush=46", "op=write dsync=1 mb=16", WARNING)
    }),
    situation("slow-flush", "a disk takes 250 ms for a flush; a database calls fdatasync", 10.0, |stage| {
        Ok(alone(stage, "ext4", "slots=8 write=1 flush=250", SYNCS, LOUD)?.never("saturated"))
    }),
    situation("slow-flush-xfs", "the same on xfs", 10.0, |stage| {
        Ok(alone(stage, "xfs", "slots=8 write=1 flush=250", SYNCS, LOUD)?.never("saturated"))
    }),
    situation("slow-flush-btrfs", "the same on btrfs", 12.0, |stage| {
        Ok(alone(stage, "btrfs", "slots=8 write=1 flush=250", SYNCS, LOUD)?.never("saturated"))
    }),
    situation("slow-tail", "each hundredth request of a disk takes 400 ms, the others 2 ms", 15.0, |stage| {
        let disk = "slots=8 read=2 write=2 nth=100:400";
        Ok(alone(stage, "ext4", disk, RANDOM, WARNING)?.rules("slow-tail"))
    }),
    situation("slow-tail-writes", "the same with writes", 15.0, |stage| {
        let disk = "slots=8 read=2 write=2 nth=100:400";
        Ok(alone(stage, "xfs", disk, "op=randwrite direct=1", WARNING)?.rules("slow-tail"))
    }),
    super::alone("stalls-periodic", "a disk stalls for 1.5 s in each 10 s", 28.0, |stage| {
        let disk = "slots=8 read=1 write=1 stall=10000:1500";
        Ok(alone(stage, "ext4", disk, "op=randread direct=1 threads=4", LOUD)?.rules("slow-tail"))
    }),
    situation(
        "slow-writes-fast-reads",
        "writes of a disk take 101 ms, reads 0.7 ms; one program writes, another one reads",
        10.0,
        |stage| {
            let (disk, at) = stage.served("ext4", 256)?;
            let (table, queue) = (stage.file(&at, "table", 64)?, stage.file(&at, "queue", 16)?);
            stage.behave(&disk, "slots=8 read=0.7 write=101");
            stage.load_on("reader", &table, RANDOM)?;
            stage.load_on("writer", &queue, "op=randwrite direct=1")?;
            Ok(on(&disk, WARNING).victims("writer").file("queue"))
        },
    ),
    situation(
        "slow-reads-fast-writes",
        "reads of a disk take 60 ms, writes 0.7 ms; one program writes, another one reads",
        10.0,
        |stage| {
            let (disk, at) = stage.served("xfs", 512)?;
            let (table, queue) = (stage.file(&at, "table", 64)?, stage.file(&at, "queue", 16)?);
            stage.behave(&disk, "slots=8 read=60 write=0.7");
            stage.load_on("reader", &table, RANDOM)?;
            stage.load_on("writer", &queue, "op=randwrite direct=1")?;
            Ok(on(&disk, WARNING).victims("reader").file("table"))
        },
    ),
    situation(
        "slow-disk-decoy",
        "each read of a disk takes 40 ms; another program streams 300 MB/s from another disk",
        10.0,
        |stage| {
            let (fast, elsewhere) = stage.fast("ext4", 512)?;
            let film = stage.file(&elsewhere, "film", 300)?;
            let truth = alone(stage, "ext4", READ_40, RANDOM, WARNING)?;
            stage.load_on("player", &film, "op=read direct=1 bs=1048576 rate=300")?;
            assert_ne!(truth.device.as_ref(), Some(&fast.name));
            Ok(truth)
        },
    ),
    situation(
        "loop-on-loop",
        "the file of a loop device lies on a slow disk, which is a loop device itself",
        10.0,
        |stage| {
            let (slow, at) = stage.served("ext4", 512)?;
            let image = stage.file(&at, "image", 200)?;
            let upper = stage.loop_on(&image, true)?;
            let top = stage.format("ext4", &upper)?;
            let table = stage.file(&top, "table", 64)?;
            stage.behave(&slow, READ_40);
            stage.load_on("shop", &table, RANDOM)?;
            let truth = on(&slow, WARNING).victims("shop");
            Ok(Truth { other_disks: vec![upper.name], ..truth })
        },
    ),
    situation("hangs", "a disk answers nothing any more", 14.0, |stage| {
        let truth = alone(stage, "ext4", "hang=1", RANDOM, CRITICAL)?.rules("device-stalled");
        Ok(Truth { file: None, ..truth })
    }),
    situation("hangs-syncs", "a disk answers nothing any more; a program syncs", 14.0, |stage| {
        let truth = alone(stage, "xfs", "hang=1", SYNCS, CRITICAL)?.rules("device-stalled");
        Ok(Truth { file: None, ..truth })
    }),
];
