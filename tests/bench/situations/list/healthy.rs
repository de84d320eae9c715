//! Machines without a problem: nothing above a note may be said.

use super::{HEALTHY, Situation, alone};
use crate::judge::Truth;
use crate::stage::{Result, Stage};

/// A file system on a disk in memory, with a file `data` of 256 MiB.
fn fast(stage: &mut Stage, fs: &str) -> Result<std::path::PathBuf> {
    let (_, at) = stage.fast(fs, 600)?;
    stage.file(&at, "data", 256)
}

fn healthy() -> Truth {
    Truth::new(HEALTHY)
}

pub const SITUATIONS: &[Situation] = &[
    alone("healthy-idle", "nothing runs", 12.0, |_| Ok(healthy())),
    alone("healthy-compile", "a compiler writes small files on ext4", 12.0, |stage| {
        let (_, at) = stage.fast("ext4", 512)?;
        stage.load_on("compiler", &at, "op=compile")?;
        Ok(healthy())
    }),
    alone(
        "healthy-backup-idle-class",
        "a backup of I/O class idle reads a fast disk at 40 MB/s beside a database that syncs",
        12.0,
        |stage| {
            let data = fast(stage, "ext4")?;
            stage.load_on("backup", &data, "op=read bs=1048576 rate=40 idle=1")?;
            stage.load_on("database", &data.with_file_name("log"), "op=write mb=8 fsync=1 rate=50")?;
            Ok(healthy())
        },
    ),
    alone("healthy-fast-random", "random reads as fast as a disk in memory serves them", 12.0, |stage| {
        let disk = stage.fast_disk(256)?;
        stage.load("search", &format!("op=randread path={} direct=1 threads=2", disk.path))?;
        Ok(healthy())
    }),
    alone("healthy-database", "a database reads at random and syncs its log on a disk of 0.5 ms", 12.0, |stage| {
        let (disk, at) = stage.served("xfs", 512)?;
        let table = stage.file(&at, "table", 128)?;
        stage.behave(&disk, "slots=16 read=0.5 write=0.5 flush=1");
        stage.load_on("database", &table, "op=randread direct=1 rate=200")?;
        stage.load_on("logger", &at.join("log"), "op=write mb=8 fsync=1 rate=30")?;
        Ok(healthy())
    }),
    alone("healthy-copy", "a copy of 100 MB into the page cache, which a disk of 100 MB/s writes", 12.0, |stage| {
        let (disk, at) = stage.served("ext4", 512)?;
        stage.behave(&disk, "slots=16 read=0.5 write=0.5 mb_per_s=100");
        stage.load_on("copy", &at.join("copy"), "op=write bs=1048576 mb=100 count=100")?;
        Ok(healthy())
    }),
    alone("healthy-stream", "a stream reads at half the speed of its disk", 12.0, |stage| {
        let (disk, at) = stage.served("btrfs", 512)?;
        let film = stage.file(&at, "film", 256)?;
        stage.behave(&disk, "slots=16 read=0.5 write=0.5 mb_per_s=80");
        stage.load_on("player", &film, "op=read bs=1048576 rate=40")?;
        Ok(healthy())
    }),
    alone("healthy-cached", "a program reads a cached file, at hundreds of MB/s, without any I/O", 12.0, |stage| {
        let data = fast(stage, "ext4")?;
        stage.load_on("search", &data, "op=read bs=1048576 rate=200 cached=1")?;
        Ok(healthy())
    }),
];
