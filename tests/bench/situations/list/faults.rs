//! Errors, full file systems and what lost a member.

use super::{CRITICAL, LOUD, Situation, WARNING, on, situation};
use crate::judge::Truth;
use crate::stage::{Result, Stage, run};
use std::fs;
use std::time::Duration;

/// Two disks with a mirrored btrfs.
fn btrfs_mirror(stage: &mut Stage) -> Result<([crate::stage::Disk; 2], std::path::PathBuf)> {
    let disks = [stage.served_disk(300)?, stage.served_disk(300)?];
    let mkfs = ["mkfs.btrfs", "-qfK", "-d", "raid1", "-m", "raid1", &disks[0].path];
    let at = stage.mount(&disks[1], &mkfs, "noatime")?;
    Ok((disks, at))
}

pub const SITUATIONS: &[Situation] = &[
    situation("read-errors", "a disk fails each read", 10.0, |stage| {
        let (disk, at) = stage.served("ext4", 256)?;
        let table = stage.file(&at, "table", 64)?;
        stage.behave(&disk, "fail=1");
        stage.load_on("shop", &table, "op=randread direct=1 rate=20")?;
        Ok(on(&disk, CRITICAL).others("shop").rules("io-error"))
    }),
    situation(
        "write-errors-ext4",
        "a disk fails; the journal of ext4 aborts and the mount becomes read-only",
        12.0,
        |stage| {
            let (disk, at) = stage.served("ext4", 256)?;
            stage.load_on("logger", &at.join("log"), "op=write mb=8 fsync=1 rate=20")?;
            std::thread::sleep(Duration::from_secs(1));
            stage.behave(&disk, "fail=1");
            Ok(on(&disk, CRITICAL).others("logger").rules("read-only filesystem-error"))
        },
    ),
    situation("write-errors-xfs", "a disk fails; xfs shuts down", 12.0, |stage| {
        let (disk, at) = stage.served("xfs", 512)?;
        stage.load_on("logger", &at.join("log"), "op=write mb=8 fsync=1 rate=20")?;
        // A sync of data that cannot be written fails before the log is: that of a new, empty file writes the log.
        let files = at.join("files");
        fs::create_dir(&files).map_err(|err| err.to_string())?;
        stage.load_on("spooler", &files, "op=create bs=0 fsync=1 rate=20")?;
        std::thread::sleep(Duration::from_secs(1));
        stage.behave(&disk, "fail=1");
        Ok(on(&disk, CRITICAL).others("logger spooler").rules("filesystem-error"))
    }),
    situation(
        "backing-full",
        "the file system below the file of a loop device is full: writes to the device fail",
        10.0,
        |stage| {
            let (lower, at) = stage.fast("ext4", 300)?;
            let image = at.join("image");
            let file = fs::File::create(&image).map_err(|err| err.to_string())?;
            file.set_len(600 << 20).map_err(|err| err.to_string())?;
            let upper = stage.loop_on(&image, false)?;
            let top = stage.format("ext4", &upper)?;
            stage.load_on("export", &top.join("dump"), "op=write bs=1048576 mb=500 fsync=20 rate=120")?;
            std::thread::sleep(Duration::from_secs(3));
            let truth = on(&upper, CRITICAL).others("export").rules("io-error filesystem-full").says("full");
            Ok(Truth { other_disks: vec![lower.name], ..truth })
        },
    ),
    situation("full", "a file system has 2 MB left", 10.0, |stage| {
        let (disk, at) = stage.fast("xfs", 512)?;
        let size = format!("{}M", 512 - 2);
        let _ = run("fallocate", &["-l", &size, &at.join("dump").to_string_lossy()]);
        let free = rustix::fs::statvfs(&at).map_err(|err| err.to_string())?;
        let left = (free.f_bavail * free.f_frsize).saturating_sub(2 << 20).to_string();
        run("fallocate", &["-l", &left, &at.join("more").to_string_lossy()])?;
        Ok(on(&disk, CRITICAL).rules("filesystem-full"))
    }),
    situation("out-of-inodes", "a file system has space left but no inode", 10.0, |stage| {
        let disk = stage.fast_disk(300)?;
        let at = stage.mount(&disk, &["mkfs.ext4", "-qF", "-N", "64"], "noatime")?;
        let _ = (0..100_000).try_for_each(|n| fs::write(at.join(format!("f{n}")), ""));
        Ok(on(&disk, CRITICAL).rules("filesystem-full").says("inodes none"))
    }),
    situation("btrfs-missing", "a mirrored btrfs was mounted without one of its disks", 10.0, |stage| {
        let (disks, at) = btrfs_mirror(stage)?;
        stage.file(&at, "table", 32)?;
        stage.unmount(&at)?;
        stage.detach(&disks[0])?;
        stage.mount_again(&disks[1], &at, "noatime,degraded")?;
        Ok(on(&disks[1], CRITICAL).rules("recorded-errors").says("without"))
    }),
    situation(
        "btrfs-member-fails",
        "one disk of a mirrored btrfs fails its requests; the other one serves",
        12.0,
        |stage| {
            let (disks, at) = btrfs_mirror(stage)?;
            let table = stage.file(&at, "table", 64)?;
            stage.behave(&disks[0], "fail=1");
            stage.load_on("shop", &table, "op=randread rate=50")?;
            stage.load_on("logger", &at.join("log"), "op=write mb=8 fsync=10 rate=50")?;
            let truth = on(&disks[0], LOUD).others("shop logger").rules("io-error recorded-errors");
            Ok(truth)
        },
    ),
    situation(
        "btrfs-corrected",
        "a mirrored btrfs finds damaged blocks and mends them from the other disk",
        10.0,
        |stage| {
            let (disks, at) = btrfs_mirror(stage)?;
            stage.file(&at, "table", 64)?;
            stage.unmount(&at)?;
            stage.damage(&disks[0], 70 << 20, 150 << 20)?;
            stage.mount_again(&disks[1], &at, "noatime")?;
            run("btrfs", &["scrub", "start", "-B", &at.to_string_lossy()]).ok();
            let truth = on(&disks[0], WARNING).rules("filesystem-error recorded-errors");
            Ok(Truth { other_disks: vec![disks[1].name.clone()], ..truth })
        },
    ),
];
