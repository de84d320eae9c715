//! Arrays, device-mapper devices and thin pools, made in a guest.

use super::{CRITICAL, LOUD, Situation, WARNING, in_guest, on};
use crate::judge::{Level, Truth};
use crate::layers::sectors;
use crate::stage::{Result, Stage, run};
use std::time::Duration;

/// A mirror of a fast disk and one that behaves as the words say, with a file system; the process `shop` uses it.
fn mirror_with_slow_member(stage: &mut Stage, words: &str, load: &str) -> Result<Truth> {
    let (fast, slow) = (stage.fast_disk(200)?, stage.served_disk(200)?);
    let array = stage.mirror(&[&fast, &slow], &["--assume-clean"])?;
    let at = stage.format("ext4", &array)?;
    let table = stage.file(&at, "table", 32)?;
    stage.behave(&slow, words);
    stage.load_on("shop", &table, load)?;
    // md hands a write to a thread of its own, where the file is not known any more.
    let truth = on(&slow, WARNING).victims("shop");
    Ok(Truth { other_disks: vec![array.name], ..truth })
}

/// `dm-delay` on a fast disk, with a file system and a file `table`; the process `shop` uses it.
fn delayed(stage: &mut Stage, name: &str, delays: &str, load: &str) -> Result<Truth> {
    let _ = run("modprobe", &["dm-delay"]);
    let fast = stage.fast_disk(200)?;
    let size = sectors(&fast)?;
    let table = |ms: &str| format!("0 {size} delay {0} 0 {ms}", fast.path);
    let disk = stage.mapped(name, &format!("0 {size} linear {} 0", fast.path))?;
    let at = stage.format("ext4", &disk)?;
    let file = stage.file(&at, "table", 32)?;
    stage.remap(name, &table(&delays.replace("DISK", &format!("{} 0", fast.path))))?;
    stage.load_on("shop", &file, load)?;
    // A worker of the kernel passes its requests on: of direct I/O the file is not known there.
    Ok(on(&disk, WARNING).victims("shop"))
}

/// The two paths of a disk that QEMU has twice.
fn two_paths() -> Result<[String; 2]> {
    let _ = run("modprobe", &["virtio_scsi"]);
    let _ = run("modprobe", &["sd_mod"]);
    std::thread::sleep(Duration::from_secs(3));
    let mut names: Vec<String> = std::fs::read_dir("/sys/block")
        .map_err(|err| err.to_string())?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with("sd"))
        .collect();
    names.sort();
    names.try_into().map_err(|names: Vec<String>| format!("needs a disk with two paths, there are {names:?}"))
}

pub const SITUATIONS: &[Situation] = &[
    in_guest("md-degraded", "a member of a mirror was marked faulty; a program reads", 12.0, |stage| {
        let (first, second) = (stage.fast_disk(100)?, stage.fast_disk(100)?);
        let array = stage.mirror(&[&first, &second], &["--assume-clean"])?;
        let at = stage.format("ext4", &array)?;
        let table = stage.file(&at, "table", 32)?;
        stage.load_on("shop", &table, "op=randread direct=1 rate=20")?;
        run("mdadm", &["--manage", &array.path, "--fail", &second.path])?;
        let truth = on(&array, CRITICAL).rules("array-degraded").others("shop").also("io-error").says("1");
        Ok(Truth { other_disks: vec![first.name, second.name], ..truth })
    }),
    in_guest("md-resync", "a mirror is copied to its second disk; a program reads behind that", 15.0, |stage| {
        let (first, second) = (stage.served_disk(600)?, stage.served_disk(600)?);
        for disk in [&first, &second] {
            stage.behave(disk, "slots=1 read=4 write=4 mb_per_s=40");
        }
        let array = stage.mirror(&[&first, &second], &[])?;
        for file in ["sync_speed_min", "sync_speed_max"] {
            std::fs::write(format!("/sys/block/{}/md/{file}", array.name), "200000").map_err(|err| err.to_string())?;
        }
        stage.load("database", &format!("op=randread direct=1 rate=8 path={}", array.path))?;
        let sync = format!("{}_resync", array.name);
        let truth = on(&array, [Level::Warning, Level::Critical]).victims("database").culprits(&sync);
        Ok(Truth { device: Some(first.name), other_disks: vec![array.name, second.name], ..truth })
    }),
    in_guest(
        "md-slow-member",
        "writes to one of two members of a mirror take 60 ms; a program writes to the array",
        12.0,
        |stage| mirror_with_slow_member(stage, "slots=8 read=0.5 write=60", "op=randwrite direct=1"),
    ),
    in_guest("dm-delay", "a device-mapper device takes 40 ms for a read; its disk is fast", 12.0, |stage| {
        delayed(stage, "delay0", "40 DISK 0", "op=randread direct=1")
    }),
    in_guest("dm-delay-flush", "a device-mapper device takes 80 ms for a flush; its disk is fast", 12.0, |stage| {
        delayed(stage, "delay1", "0 DISK 0 DISK 80", "op=write fsync=1 mb=8")
    }),
    in_guest(
        "dm-scan",
        "a scan of a mapped device keeps the disk below it busy; a program reads there",
        12.0,
        |stage| {
            let slow = stage.served_disk(400)?;
            let disk = stage.mapped("volume1", &format!("0 {} linear {} 0", sectors(&slow)?, slow.path))?;
            let at = stage.format("ext4", &disk)?;
            let (index, table) = (stage.file(&at, "index", 64)?, stage.file(&at, "table", 64)?);
            stage.behave(&slow, "slots=1 read=5 write=5");
            stage.load_on("scan", &index, "op=randread direct=1 threads=8")?;
            stage.load_on("shop", &table, "op=randread direct=1")?;
            let truth = on(&slow, WARNING).culprits("scan").victims("shop").file("index");
            Ok(Truth { other_disks: vec![disk.name], ..truth })
        },
    ),
    in_guest("dm-suspended", "a device-mapper device is suspended; a program that writes hangs", 14.0, |stage| {
        let fast = stage.fast_disk(200)?;
        let table = format!("0 {} linear {} 0", sectors(&fast)?, fast.path);
        let disk = stage.mapped("volume0", &table)?;
        let at = stage.format("ext4", &disk)?;
        let log = stage.file(&at, "log", 8)?;
        stage.load_on("service", &log, "op=write mb=8 rate=50")?;
        std::thread::sleep(Duration::from_secs(1));
        run("dmsetup", &["suspend", "--noudevsync", "volume0"])?;
        stage.thaw_by(&["dmsetup", "resume", "--noudevsync", "volume0"]);
        Ok(on(&disk, CRITICAL).victims("service").says("frozen"))
    }),
    in_guest("thin-data-full", "the data of a thin pool is full; a program that writes hangs", 15.0, |stage| {
        let (metadata, data) = (stage.fast_disk(8)?, stage.fast_disk(96)?);
        let (pool, thin) = stage.thin("thin0", &metadata, &data, 16)?;
        let at = stage.format("ext4", &thin)?;
        stage.load_on("export", &at.join("dump"), "op=write bs=1048576 mb=300 fsync=10 rate=60")?;
        std::thread::sleep(Duration::from_secs(4));
        let truth = on(&pool, CRITICAL).victims("export").rules("thin-pool-full");
        Ok(Truth { other_disks: vec![thin.name, data.name, metadata.name], ..truth }.also("device-stalled hung-task"))
    }),
    in_guest("thin-data-low", "a thin pool has less free space than its low water mark of 10 MB", 10.0, |stage| {
        let (metadata, data) = (stage.fast_disk(8)?, stage.fast_disk(100)?);
        let (pool, thin) = stage.thin("thin1", &metadata, &data, 160)?;
        run("dd", &["if=/dev/zero", &format!("of={}", thin.path), "bs=1M", "count=94", "oflag=direct"])?;
        let truth = on(&pool, WARNING).rules("thin-pool-full").says("nearly data");
        Ok(Truth { other_disks: vec![thin.name, data.name, metadata.name], ..truth })
    }),
];

/// Kept apart, because the paths belong to the guest: the kernel log speaks of them for long.
pub const PATHS: &[Situation] =
    &[in_guest("paths-down", "one of two paths to a disk is offline; a program reads", 12.0, |stage| {
        let paths = two_paths()?;
        for module in ["dm-multipath", "dm-round-robin"] {
            run("modprobe", &[module])?;
        }
        let [first, second] = paths.clone().map(|name| stage.add_disk(&name, &format!("/dev/{name}")));
        let size = sectors(&first)?;
        let table =
            format!("0 {size} multipath 1 queue_if_no_path 0 1 1 round-robin 0 2 1 {} 1 {} 1", first.path, second.path);
        let disk = stage.mapped_with("mpatha", &["--uuid", "mpath-situation", "--table", &table])?;
        let at = stage.format("ext4", &disk)?;
        let table = stage.file(&at, "table", 32)?;
        stage.load_on("shop", &table, "op=randread direct=1 rate=20")?;
        stage.thaw_by(&["sh", "-c", &format!("echo running >/sys/block/{}/device/state", second.name)]);
        std::fs::write(format!("/sys/block/{}/device/state", second.name), "offline\n")
            .map_err(|err| err.to_string())?;
        let truth = on(&disk, LOUD).rules("paths-down").others("shop").says("1").also("io-error device-reset");
        Ok(Truth { other_disks: paths.to_vec(), ..truth })
    })];
