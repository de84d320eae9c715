//! Limits, read-ahead and compressed devices in memory.

use super::{Situation, WARNING, on, situation};
use crate::judge::Truth;
use crate::stage::run;
use std::fs;

pub const SITUATIONS: &[Situation] = &[
    situation(
        "read-around",
        "a program faults at random on a mapped file; read-ahead of 1 MiB fills the disk",
        12.0,
        |stage| {
            let (disk, at) = stage.served("ext4", 1024)?;
            let index = stage.file(&at, "index", 600)?;
            fs::write(format!("/sys/block/{}/queue/read_ahead_kb", disk.name), "1024")
                .map_err(|err| err.to_string())?;
            stage.behave(&disk, "slots=4 read=0.5 mb_per_s=60");
            stage.load_on("search", &index, "op=mmap around=1 threads=1")?;
            Ok(on(&disk, WARNING).victims("search").file("index").rules("readahead-large").never("swap"))
        },
    ),
    situation("blkio-limit", "a control group (v1) is limited to 50 reads per second of a fast disk", 12.0, |stage| {
        let (disk, at) = stage.fast("ext4", 256)?;
        let table = stage.file(&at, "table", 64)?;
        let number = run("lsblk", &["-ndo", "MAJ:MIN", &disk.path])?.trim().to_owned();
        let limit = [("blkio.throttle.read_iops_device", format!("{number} 50"))];
        let group = stage.cgroup("/sys/fs/cgroup/blkio", "limited", &limit)?;
        stage.load_on("shop", &table, &format!("op=randread direct=1 cgroup={}", group.display()))?;
        Ok(on(&disk, WARNING).victims("shop").rules("cgroup-io"))
    }),
    situation("zram-full", "a compressed device in memory reached its limit: writes fail", 10.0, |stage| {
        let (disk, at) = stage.zram(600, 60)?;
        stage.load_on("export", &at.join("dump"), "op=write bs=1048576 mb=300 random=1 rate=60 fsync=20")?;
        let truth = on(&disk, super::LOUD).others("export").rules("zram");
        Ok(truth)
    }),
    situation(
        "memory-limit",
        "a control group (v1) with 60 MB of memory reads a file of 300 MB again and again",
        12.0,
        |stage| {
            let (disk, at) = stage.served("ext4", 512)?;
            let table = stage.file(&at, "table", 300)?;
            stage.behave(&disk, "slots=4 read=0.5 mb_per_s=150");
            let limit = [("memory.limit_in_bytes", (60 << 20).to_string())];
            let group = stage.cgroup("/sys/fs/cgroup/memory", "small", &limit)?;
            let words = format!("op=read bs=1048576 cached=1 cgroup={}", group.display());
            stage.load_on("report", &table, &words)?;
            let truth = Truth::new([super::NOTE[0], WARNING[1]]).victims("report").others("report");
            Ok(truth.rules("cgroup-memory").never("memory.max"))
        },
    ),
];
