//! Machines without a problem: nothing above a note may be said.

use super::{HEALTHY, Situation};
use crate::judge::Truth;

const fn healthy() -> Truth {
    Truth {
        severity: HEALTHY,
        device: None,
        culprits: Vec::new(),
        victims: Vec::new(),
        others: Vec::new(),
        file: None,
        rules: &[],
        also: &[],
        never: &[],
    }
}

pub const SITUATIONS: &[Situation] = &[
    Situation { name: "healthy-idle", about: "nothing runs", secs: 12.0, make: |_| Ok(healthy()) },
    Situation {
        name: "healthy-compile",
        about: "a compiler writes small files on ext4",
        secs: 12.0,
        make: |stage| {
            let disk = stage.fast_disk(512)?;
            let at = stage.ext4(&disk)?;
            stage.load("compiler", &format!("op=compile path={}", at.display()))?;
            Ok(healthy())
        },
    },
    Situation {
        name: "healthy-backup-idle-class",
        about: "a backup of I/O class idle reads a fast disk at 40 MB/s beside a database that syncs",
        secs: 12.0,
        make: |stage| {
            let disk = stage.fast_disk(512)?;
            let at = stage.ext4(&disk)?;
            let (big, log) = (stage.file(at.join("archive"), 300)?, stage.file(at.join("log"), 8)?);
            stage.load("backup", &format!("op=read path={} bs=1048576 rate=40 idle=1", big.display()))?;
            stage.load("database", &format!("op=write path={} mb=8 fsync=1 rate=50", log.display()))?;
            Ok(healthy())
        },
    },
    Situation {
        name: "healthy-fast-random",
        about: "random reads as fast as a disk in memory serves them",
        secs: 12.0,
        make: |stage| {
            let disk = stage.fast_disk(256)?;
            stage.load("search", &format!("op=randread path={} direct=1 threads=2", disk.path))?;
            Ok(healthy())
        },
    },
];
