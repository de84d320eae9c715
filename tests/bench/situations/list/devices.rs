//! Disks that are slow by themselves: nobody is to blame, somebody suffers.

use super::{CRITICAL, LOUD, Situation, WARNING, on};
use crate::judge::Truth;

pub const SITUATIONS: &[Situation] = &[
    Situation {
        name: "slow-reads",
        about: "each read of a disk takes 40 ms; one program reads at random, directly, on ext4",
        secs: 10.0,
        make: |stage| {
            let disk = stage.served_disk(256)?;
            let at = stage.ext4(&disk)?;
            let table = stage.file(at.join("table"), 64)?;
            stage.behave(&disk, "slots=8 read=40 write=40");
            stage.load("shop", &format!("op=randread path={} direct=1", table.display()))?;
            Ok(Truth { victims: vec!["shop"], file: Some("table"), ..on(&disk, WARNING) })
        },
    },
    Situation {
        name: "slow-mapped-reads",
        about: "each read of a disk takes 30 ms; one program reads a mapped file: no swapping",
        secs: 10.0,
        make: |stage| {
            let disk = stage.served_disk(256)?;
            let at = stage.ext4(&disk)?;
            let index = stage.file(at.join("index"), 64)?;
            stage.behave(&disk, "slots=8 read=30 write=30");
            stage.load("search", &format!("op=mmap path={}", index.display()))?;
            Ok(Truth { victims: vec!["search"], file: Some("index"), never: &["swap"], ..on(&disk, WARNING) })
        },
    },
    Situation {
        name: "slow-dsync-writes",
        about: "a disk takes 46 ms for a flush; a program writes with O_DSYNC and does nothing else",
        secs: 10.0,
        make: |stage| {
            let disk = stage.served_disk(256)?;
            let at = stage.ext4(&disk)?;
            let wal = stage.file(at.join("wal"), 16)?;
            stage.behave(&disk, "slots=8 write=1 flush=46");
            stage.load("ledger", &format!("op=write path={} dsync=1 mb=16", wal.display()))?;
            Ok(Truth { victims: vec!["ledger"], file: Some("wal"), ..on(&disk, WARNING) })
        },
    },
    Situation {
        name: "slow-flush",
        about: "a disk takes 250 ms for a flush; a database calls fdatasync",
        secs: 10.0,
        make: |stage| {
            let disk = stage.served_disk(256)?;
            let at = stage.ext4(&disk)?;
            let wal = stage.file(at.join("wal"), 16)?;
            stage.behave(&disk, "slots=8 write=1 flush=250");
            stage.load("database", &format!("op=write path={} fsync=1 mb=16", wal.display()))?;
            let never = &["saturated"];
            Ok(Truth { victims: vec!["database"], file: Some("wal"), never, ..on(&disk, LOUD) })
        },
    },
    Situation {
        name: "slow-flush-xfs",
        about: "a disk takes 250 ms for a flush; a database calls fdatasync, on xfs",
        secs: 10.0,
        make: |stage| {
            let disk = stage.served_disk(512)?;
            let at = stage.xfs(&disk)?;
            let wal = stage.file(at.join("wal"), 16)?;
            stage.behave(&disk, "slots=8 write=1 flush=250");
            stage.load("database", &format!("op=write path={} fsync=1 mb=16", wal.display()))?;
            let never = &["saturated"];
            Ok(Truth { victims: vec!["database"], file: Some("wal"), never, ..on(&disk, LOUD) })
        },
    },
    Situation {
        name: "slow-reads-btrfs",
        about: "each read of a disk takes 40 ms; one program reads at random on btrfs",
        secs: 10.0,
        make: |stage| {
            let disk = stage.served_disk(512)?;
            let at = stage.btrfs(&disk)?;
            let table = stage.file(at.join("table"), 64)?;
            stage.behave(&disk, "slots=8 read=40 write=40");
            stage.load("shop", &format!("op=randread path={}", table.display()))?;
            Ok(Truth { victims: vec!["shop"], file: Some("table"), ..on(&disk, WARNING) })
        },
    },
    Situation {
        name: "slow-tail",
        about: "each hundredth request of a disk takes 400 ms, the others 2 ms",
        secs: 15.0,
        make: |stage| {
            let disk = stage.served_disk(256)?;
            let at = stage.ext4(&disk)?;
            let table = stage.file(at.join("table"), 64)?;
            stage.behave(&disk, "slots=8 read=2 write=2 nth=100:400");
            stage.load("shop", &format!("op=randread path={} direct=1", table.display()))?;
            let rules = &["slow-tail"];
            Ok(Truth { victims: vec!["shop"], file: Some("table"), rules, ..on(&disk, WARNING) })
        },
    },
    Situation {
        name: "stalls-periodic",
        about: "a disk stalls for 1.5 s in each 10 s",
        secs: 28.0,
        make: |stage| {
            let disk = stage.served_disk(256)?;
            let at = stage.ext4(&disk)?;
            let table = stage.file(at.join("table"), 64)?;
            stage.behave(&disk, "slots=8 read=1 write=1 stall=10000:1500");
            stage.load("shop", &format!("op=randread path={} direct=1 threads=4", table.display()))?;
            Ok(Truth { victims: vec!["shop"], file: Some("table"), rules: &["slow-tail"], ..on(&disk, LOUD) })
        },
    },
    Situation {
        name: "slow-writes-fast-reads",
        about: "writes of a disk take 101 ms, reads 0.7 ms; one program writes, another one reads",
        secs: 10.0,
        make: |stage| {
            let disk = stage.served_disk(256)?;
            let at = stage.ext4(&disk)?;
            let (table, queue) = (stage.file(at.join("table"), 64)?, stage.file(at.join("queue"), 16)?);
            stage.behave(&disk, "slots=8 read=0.7 write=101");
            stage.load("reader", &format!("op=randread path={} direct=1", table.display()))?;
            stage.load("writer", &format!("op=randwrite path={} direct=1", queue.display()))?;
            Ok(Truth { victims: vec!["writer"], file: Some("queue"), ..on(&disk, WARNING) })
        },
    },
    Situation {
        name: "hangs",
        about: "a disk answers nothing any more",
        secs: 14.0,
        make: |stage| {
            let disk = stage.served_disk(256)?;
            let at = stage.ext4(&disk)?;
            let table = stage.file(at.join("table"), 64)?;
            stage.behave(&disk, "hang=1");
            stage.load("shop", &format!("op=randread path={} direct=1", table.display()))?;
            Ok(Truth { victims: vec!["shop"], rules: &["device-stalled"], ..on(&disk, CRITICAL) })
        },
    },
];
