//! Control groups v2, swap and a lack of memory, made in a guest.

use super::{LOUD, NOTE, Situation, WARNING, in_guest, on};
use crate::judge::Truth;
use crate::stage::{Result, Stage, run};

const GROUPS: &str = "/sys/fs/cgroup";

/// A load that reads a file of 200 MB again and again in a group with this memory setting.
fn small_group(stage: &mut Stage, name: &str, setting: &str) -> Result<Truth> {
    let (disk, at) = stage.fast("ext4", 400)?;
    let table = stage.file(&at, "table", 200)?;
    let group = stage.cgroup(GROUPS, name, &[(setting, (60 << 20).to_string())])?;
    let words = format!("op=read bs=1048576 cached=1 rate=60 cgroup={}", group.display());
    stage.load_on("report", &table, &words)?;
    let truth = Truth::new([NOTE[0], WARNING[1]]).victims("report").rules("cgroup-memory").says(setting);
    Ok(Truth { other_disks: vec![disk.name], ..truth })
}

pub const SITUATIONS: &[Situation] = &[
    in_guest("io-max", "a control group may read a fast disk 50 times per second", 12.0, |stage| {
        let (disk, at) = stage.fast("ext4", 200)?;
        let table = stage.file(&at, "table", 64)?;
        let number = run("lsblk", &["-ndo", "MAJ:MIN", &disk.path])?.trim().to_owned();
        let group = stage.cgroup(GROUPS, "limited", &[("io.max", format!("{number} riops=50"))])?;
        stage.load_on("shop", &table, &format!("op=randread direct=1 cgroup={}", group.display()))?;
        Ok(on(&disk, WARNING).victims("shop").rules("cgroup-io"))
    }),
    in_guest("two-units", "a unit scans a disk with eight reads in flight; another unit reads it", 12.0, |stage| {
        let (disk, at) = stage.served("ext4", 512)?;
        let (index, table) = (stage.file(&at, "index", 64)?, stage.file(&at, "table", 64)?);
        let [batch, shop] = ["batch.service", "shop.service"].map(|name| stage.cgroup(GROUPS, name, &[]));
        stage.behave(&disk, "slots=1 read=5 write=5");
        stage.load_on("scan", &index, &format!("op=randread direct=1 threads=8 cgroup={}", batch?.display()))?;
        stage.load_on("database", &table, &format!("op=randread direct=1 cgroup={}", shop?.display()))?;
        let truth = on(&disk, WARNING).culprits("scan").victims("database").file("index");
        Ok(truth.says("situation-batch.service"))
    }),
    in_guest("memory-high", "a control group at its memory.high of 60 MB reads a file of 200 MB", 12.0, |stage| {
        small_group(stage, "high", "memory.high")
    }),
    in_guest("memory-max", "a control group at its memory.max of 60 MB reads a file of 200 MB", 12.0, |stage| {
        small_group(stage, "max", "memory.max")
    }),
    in_guest("swap-slow", "a program whose memory is in swap on a disk that takes 25 ms for a read", 15.0, |stage| {
        let disk = stage.served_disk(300)?;
        run("mkswap", &[&disk.path])?;
        run("swapon", &[&disk.path])?;
        stage.remove_by(&["swapoff", &disk.path]);
        // Beyond memory.max the kernel would end the program while the disk is slow.
        let group = stage.cgroup(GROUPS, "swapped", &[("memory.high", (64 << 20).to_string())])?;
        stage.load("cache", &format!("op=memory mb=160 cgroup={}", group.display()))?;
        std::thread::sleep(std::time::Duration::from_secs(4));
        stage.behave(&disk, "slots=4 read=25 write=1");
        let truth = on(&disk, LOUD).victims("cache").others("cache").also("cgroup-memory reclaim-stalls");
        Ok(truth.rules("swapping server-swapped slow-device slow-direction"))
    }),
    in_guest("out-of-memory", "a control group has no memory left: the kernel kills its program", 12.0, |stage| {
        let group = stage.cgroup(GROUPS, "small", &[("memory.max", (64 << 20).to_string())])?;
        let child = "op:memory,mb:200";
        stage.load("nightly", &format!("op=script child={child} name=import cgroup={}", group.display()))?;
        let truth = Truth::new(LOUD).others("nightly import").rules("oom").says("import");
        Ok(truth.also("cgroup-memory reclaim-stalls"))
    }),
];
