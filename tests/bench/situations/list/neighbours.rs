//! Programs that delay others on a disk that does what it can.

use super::{LOUD, Situation, WARNING, on};
use crate::judge::Truth;
use crate::stage::run;

pub const SITUATIONS: &[Situation] = &[
    Situation {
        name: "random-beside-stream",
        about: "a random reader keeps a disk busy; a stream beside it has more bytes",
        secs: 10.0,
        make: |stage| {
            let disk = stage.served_disk(512)?;
            let at = stage.ext4(&disk)?;
            let (table, film) = (stage.file(at.join("table"), 128)?, stage.file(at.join("film"), 128)?);
            stage.behave(&disk, "slots=1 read=5 write=5");
            stage.load("scanner", &format!("op=randread path={} direct=1 threads=8", table.display()))?;
            stage.load("player", &format!("op=read path={} direct=1 bs=1048576 rate=4", film.display()))?;
            Ok(Truth { culprits: vec!["scanner"], victims: vec!["player"], file: Some("table"), ..on(&disk, WARNING) })
        },
    },
    Situation {
        name: "direct-read-beside-rsync",
        about: "a database reads directly beside a copy that reads the disk with many requests in flight",
        secs: 10.0,
        make: |stage| {
            let disk = stage.served_disk(512)?;
            let at = stage.ext4(&disk)?;
            let (table, source) = (stage.file(at.join("table"), 64)?, stage.file(at.join("source"), 256)?);
            stage.behave(&disk, "slots=1 read=4 write=4 mb_per_s=150");
            stage.load("copy", &format!("op=read path={} direct=1 bs=262144 threads=12", source.display()))?;
            stage.load("database", &format!("op=randread path={} direct=1", table.display()))?;
            Ok(Truth { culprits: vec!["copy"], victims: vec!["database"], file: Some("source"), ..on(&disk, WARNING) })
        },
    },
    Situation {
        name: "sync-beside-stream-decoy",
        about: "a backup fills the disk of a database; another program writes faster to another disk",
        secs: 12.0,
        make: |stage| {
            let (disk, other) = (stage.served_disk(1024)?, stage.fast_disk(1024)?);
            let (at, elsewhere) = (stage.ext4(&disk)?, stage.ext4(&other)?);
            let wal = stage.file(at.join("wal"), 8)?;
            stage.behave(&disk, "slots=4 read=1 write=1 flush=2 mb_per_s=60");
            let dump = at.join("dump");
            stage.load("backup", &format!("op=write path={} bs=1048576 mb=600 fsync=40", dump.display()))?;
            let film = elsewhere.join("film");
            stage.load("encoder", &format!("op=write path={} bs=1048576 mb=600 rate=200", film.display()))?;
            stage.load("database", &format!("op=write path={} mb=8 fsync=1", wal.display()))?;
            Ok(Truth { culprits: vec!["backup"], victims: vec!["database"], file: Some("wal"), ..on(&disk, LOUD) })
        },
    },
    Situation {
        name: "two-equal-culprits",
        about: "two programs write at random with the same share of a disk's queue",
        secs: 10.0,
        make: |stage| {
            let disk = stage.served_disk(512)?;
            let at = stage.ext4(&disk)?;
            let (a, b) = (stage.file(at.join("a"), 64)?, stage.file(at.join("b"), 64)?);
            stage.behave(&disk, "slots=1 read=5 write=5");
            stage.load("import", &format!("op=randwrite path={} direct=1 threads=6", a.display()))?;
            stage.load("indexer", &format!("op=randwrite path={} direct=1 threads=6", b.display()))?;
            Ok(Truth { culprits: vec!["import", "indexer"], ..on(&disk, WARNING) })
        },
    },
    Situation {
        name: "nightly-script",
        about: "a script starts one short copy after the other; each ends after some requests",
        secs: 10.0,
        make: |stage| {
            let disk = stage.served_disk(512)?;
            let at = stage.ext4(&disk)?;
            let (table, dump) = (stage.file(at.join("table"), 64)?, stage.file(at.join("dump"), 64)?);
            stage.behave(&disk, "slots=1 read=5 write=5");
            let child = format!("op:randwrite,path:{},direct:1,threads:8,count:10", dump.display());
            stage.load("nightly", &format!("op=script child={child} name=step"))?;
            stage.load("database", &format!("op=randread path={} direct=1 rate=20", table.display()))?;
            let victims = vec!["database"];
            Ok(Truth { culprits: vec!["nightly"], victims, file: Some("dump"), ..on(&disk, WARNING) })
        },
    },
    Situation {
        name: "fstrim",
        about: "fstrim keeps a disk busy that takes 60 ms for a discard; a program reads",
        secs: 10.0,
        make: |stage| {
            let disk = stage.served_disk(2048)?;
            let at = stage.ext4(&disk)?;
            let table = stage.file(at.join("table"), 64)?;
            run("fstrim", &["--version"])?;
            stage.behave(&disk, "slots=1 read=1 write=1 discard=60");
            stage.load("weekly", &format!("op=program run=fstrim,{}", at.display()))?;
            stage.load("shop", &format!("op=randread path={} direct=1", table.display()))?;
            let truth =
                Truth { culprits: vec!["fstrim"], victims: vec!["shop"], others: vec!["weekly"], ..on(&disk, WARNING) };
            Ok(Truth { rules: &["slow-discards"], ..truth })
        },
    },
];
