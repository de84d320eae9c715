//! Tasks that wait for something other than the queue of a disk.

use super::{CRITICAL, HEALTHY, Situation, WARNING, on};
use crate::judge::Truth;

pub const SITUATIONS: &[Situation] = &[
    Situation {
        name: "backlog-of-ended-writer",
        about: "a program has written 300 MB into memory and ended; sync writes it to a disk of 15 MB/s, which makes progress",
        secs: 12.0,
        make: |stage| {
            let disk = stage.served_disk(1024)?;
            let at = stage.ext4(&disk)?;
            stage.behave(&disk, "slots=4 mb_per_s=15");
            let dump = at.join("dump");
            stage.load("export", &format!("op=write path={} bs=1048576 mb=300 count=300", dump.display()))?;
            std::thread::sleep(std::time::Duration::from_secs(1));
            stage.end_load("export");
            stage.load("sync", "op=program run=sync")?;
            let never = &["hangs", "stalled"];
            Ok(Truth { severity: HEALTHY, others: vec!["sync", "export"], never, ..on(&disk, HEALTHY) })
        },
    },
    Situation {
        name: "small-journal",
        about: "a program creates and removes files on a disk of 10 ms a request, through a journal of 4 MB",
        secs: 12.0,
        make: |stage| {
            let disk = stage.served_disk(512)?;
            let mkfs = ["mkfs.ext4", "-qF", "-J", "size=4", "-E", "nodiscard,lazy_itable_init=0"];
            let at = stage.mount(&disk, &mkfs, "noatime")?;
            stage.behave(&disk, "slots=4 read=10 write=10 flush=10");
            stage.load("unpack", &format!("op=create path={}", at.display()))?;
            Ok(Truth { victims: vec!["unpack"], rules: &["journal-full"], ..on(&disk, WARNING) })
        },
    },
    Situation {
        name: "frozen",
        about: "a file system is frozen for a snapshot; a program that writes hangs",
        secs: 14.0,
        make: |stage| {
            let disk = stage.fast_disk(256)?;
            let at = stage.ext4(&disk)?;
            let log = stage.file(at.join("log"), 8)?;
            stage.load("service", &format!("op=write path={} mb=8 rate=50", log.display()))?;
            stage.freeze(&at)?;
            Ok(Truth { victims: vec!["service"], rules: &["hung-task", "frozen"], ..on(&disk, CRITICAL) })
        },
    },
];
