//! Programs that delay others on a disk that does what it can.

use super::{CRITICAL, LOUD, Situation, WARNING, on, situation};
use crate::judge::{Level, Truth};
use crate::stage::{Result, Stage, run};

/// Two processes on one disk: the first is the culprit, the second suffers. The files are named like the processes.
fn pair(
    stage: &mut Stage,
    fs: &str,
    disk: &str,
    culprit: [&str; 2],
    victim: [&str; 2],
    severity: [Level; 2],
) -> Result<Truth> {
    let (slow, at) = stage.served(fs, 1024)?;
    let files = [stage.file(&at, culprit[0], 128)?, stage.file(&at, victim[0], 64)?];
    stage.behave(&slow, disk);
    for ([name, words], file) in [culprit, victim].into_iter().zip(files) {
        stage.load_on(name, &file, words)?;
    }
    Ok(on(&slow, severity).culprits(culprit[0]).victims(victim[0]))
}

/// One request at a time, 5 ms each.
const ONE_BY_ONE: &str = "slots=1 read=5 write=5";
const SCANNER: [&str; 2] = ["scanner", "op=randread direct=1 threads=8"];
const PLAYER: [&str; 2] = ["player", "op=read direct=1 bs=1048576 rate=4"];
const DATABASE: [&str; 2] = ["database", "op=randread direct=1"];

pub const SITUATIONS: &[Situation] = &[
    situation(
        "random-beside-stream",
        "a random reader keeps a disk busy; a stream beside it has more bytes",
        10.0,
        |stage| Ok(pair(stage, "ext4", ONE_BY_ONE, SCANNER, PLAYER, WARNING)?.file("scanner")),
    ),
    situation("random-beside-stream-xfs", "the same on xfs", 10.0, |stage| {
        Ok(pair(stage, "xfs", ONE_BY_ONE, SCANNER, PLAYER, WARNING)?.file("scanner"))
    }),
    situation("random-beside-stream-btrfs", "the same on btrfs", 10.0, |stage| {
        Ok(pair(stage, "btrfs", ONE_BY_ONE, SCANNER, PLAYER, WARNING)?.file("scanner"))
    }),
    situation(
        "direct-read-beside-rsync",
        "a database reads directly beside a copy that reads the disk with many requests in flight",
        10.0,
        |stage| {
            let copy = ["copy", "op=read direct=1 bs=262144 threads=12"];
            Ok(pair(stage, "ext4", "slots=1 read=4 write=4 mb_per_s=150", copy, DATABASE, WARNING)?.file("copy"))
        },
    ),
    situation(
        "mapped-beside-scan",
        "a search faults on its mapped file beside a scan with eight reads in flight: no swapping",
        10.0,
        |stage| Ok(pair(stage, "ext4", ONE_BY_ONE, SCANNER, ["search", "op=mmap"], WARNING)?.never("swap")),
    ),
    situation(
        "buffered-beside-writers",
        "a shop reads through the page cache beside eight direct writers",
        10.0,
        |stage| {
            let import = ["import", "op=randwrite direct=1 threads=8"];
            Ok(pair(stage, "xfs", ONE_BY_ONE, import, ["shop", "op=randread"], WARNING)?.file("import"))
        },
    ),
    situation(
        "read-beside-flood",
        "a program writes 300 MB/s into memory, and the flushers fill the disk; a database reads",
        12.0,
        |stage| {
            let flood = ["flood", "op=write bs=1048576 mb=128 fsync=100"];
            pair(stage, "ext4", "slots=2 read=2 write=2 mb_per_s=40", flood, DATABASE, LOUD)
        },
    ),
    situation(
        "dsync-beside-scan",
        "a ledger writes with O_DSYNC beside a scan with eight reads in flight",
        10.0,
        |stage| {
            let ledger = ["ledger", "op=write dsync=1 mb=16"];
            pair(stage, "ext4", ONE_BY_ONE, SCANNER, ledger, WARNING)
        },
    ),
    situation(
        "sync-beside-scan-xfs",
        "a database syncs its log beside a scan with eight reads in flight, on xfs",
        10.0,
        |stage| {
            let database = ["database", "op=write fsync=1 mb=16"];
            pair(stage, "xfs", ONE_BY_ONE, SCANNER, database, WARNING)
        },
    ),
    situation(
        "sync-beside-stream-decoy",
        "a backup fills the disk of a database; another program writes faster to another disk",
        12.0,
        |stage| {
            let (_, elsewhere) = stage.fast("ext4", 1024)?;
            let backup = ["backup", "op=write bs=1048576 mb=128 fsync=40"];
            let database = ["database", "op=write mb=8 fsync=1"];
            let truth = pair(stage, "ext4", "slots=4 read=1 write=1 flush=2 mb_per_s=60", backup, database, LOUD)?;
            stage.load_on("encoder", &elsewhere.join("film"), "op=write direct=1 bs=1048576 mb=600 rate=200")?;
            Ok(truth.file("backup"))
        },
    ),
    situation("sync-beside-stream-xfs", "a backup fills the disk of a database, on xfs", 12.0, |stage| {
        let backup = ["backup", "op=write bs=1048576 mb=128 fsync=40"];
        let database = ["database", "op=write mb=8 fsync=1"];
        Ok(pair(stage, "xfs", "slots=4 read=1 write=1 flush=2 mb_per_s=60", backup, database, LOUD)?.file("backup"))
    }),
    situation(
        "sync-behind-one-stream",
        "a database syncs its log behind a stream of one request of 1 MiB at a time, which has half of the disk's queue",
        12.0,
        |stage| {
            let stream = ["stream", "op=write direct=1 bs=1048576 mb=128"];
            let database = ["database", "op=write bs=8192 mb=8 fsync=1 rate=50"];
            let disk = "slots=1 read=15 write=15 mb_per_s=40";
            Ok(pair(stage, "ext4", disk, stream, database, WARNING)?.file("stream"))
        },
    ),
    situation(
        "read-behind-ended-writer",
        "a program has written 300 MB into memory and ended; while sync writes that, a database reads the disk, and a \
         program that has nothing to do with it reads another one",
        10.0,
        |stage| {
            let (slow, at) = stage.served("ext4", 1024)?;
            let (_, elsewhere) = stage.fast("ext4", 512)?;
            let (table, film) = (stage.file(&at, "table", 64)?, stage.file(&elsewhere, "film", 128)?);
            stage.behave(&slow, "slots=2 read=4 write=4 mb_per_s=15");
            stage.load_on("export", &at.join("dump"), "op=write bs=1048576 mb=300 count=300")?;
            stage.wait_for_size(&at.join("dump"), 300)?;
            stage.end_load("export");
            stage.load("flush", &format!("op=program run=sync,-f,{}", at.display()))?;
            stage.load_on("database", &table, "op=randread direct=1")?;
            stage.load_on("player", &film, "op=read direct=1 bs=1048576 rate=200")?;
            // Its pages were dirtied before tracing began: that they are its own is not known.
            Ok(on(&slow, LOUD).victims("database").others("export flush sync").file("dump"))
        },
    ),
    situation(
        "random-decoy-elsewhere",
        "a scan keeps a disk busy; another program reads 400 MB/s from another disk",
        10.0,
        |stage| {
            let (_, elsewhere) = stage.fast("ext4", 512)?;
            let film = stage.file(&elsewhere, "film", 300)?;
            let truth = pair(stage, "ext4", ONE_BY_ONE, SCANNER, DATABASE, WARNING)?;
            stage.load_on("encoder", &film, "op=read direct=1 bs=1048576 rate=400")?;
            Ok(truth)
        },
    ),
    situation(
        "cached-decoy",
        "a scan keeps a disk busy; another program reads 400 MB/s of the same disk from the page cache",
        10.0,
        |stage| {
            let truth = pair(stage, "ext4", ONE_BY_ONE, SCANNER, DATABASE, WARNING)?;
            let cached = stage.mounted("scanner").ok_or("no mount")?.join("cached");
            stage.load_on("decoy", &cached, "op=read bs=1048576 rate=400 cached=1 prepare=64")?;
            Ok(truth)
        },
    ),
    situation(
        "two-equal-culprits",
        "two programs write at random with the same share of a disk's queue",
        10.0,
        |stage| {
            let writers = |name| [name, "op=randwrite direct=1 threads=6"];
            let truth = pair(stage, "ext4", ONE_BY_ONE, writers("import"), writers("indexer"), WARNING)?;
            Ok(Truth { culprits: vec!["import".into(), "indexer".into()], victims: Vec::new(), ..truth })
        },
    ),
    situation("three-culprits", "three programs read at random, with a fourth one behind them", 10.0, |stage| {
        let reader = |name| [name, "op=randread direct=1 threads=5"];
        let truth = pair(stage, "xfs", ONE_BY_ONE, reader("import"), DATABASE, WARNING)?;
        let at = stage.mounted("import").ok_or("no mount")?;
        for name in ["indexer", "report"] {
            stage.load_on(name, &at.join("import"), reader(name)[1])?;
        }
        Ok(truth.culprits("import indexer report"))
    }),
    situation(
        "nightly-script",
        "a script starts one short copy after the other; each ends after some requests",
        10.0,
        |stage| {
            let (disk, at) = stage.served("ext4", 512)?;
            let (table, dump) = (stage.file(&at, "table", 64)?, stage.file(&at, "dump", 64)?);
            stage.behave(&disk, ONE_BY_ONE);
            let child = format!("op:randwrite,path:{},direct:1,threads:8,count:10", dump.display());
            stage.load("nightly", &format!("op=script child={child} name=step"))?;
            stage.load_on("database", &table, "op=randread direct=1 rate=20")?;
            Ok(on(&disk, WARNING).culprits("nightly").victims("database").others("step").file("dump"))
        },
    ),
    situation("uring-beside-database", "fio with io_uring and 32 reads in flight, beside a database", 10.0, |stage| {
        let (disk, at) = stage.served("ext4", 512)?;
        let (table, index) = (stage.file(&at, "table", 64)?, stage.file(&at, "index", 64)?);
        run("fio", &["--version"])?;
        stage.behave(&disk, ONE_BY_ONE);
        let fio = "fio,--name=x,--rw=randread,--direct=1,--ioengine=io_uring,--iodepth=32,--time_based,--runtime=60";
        stage.load("service", &format!("op=program run={fio},--filename={}", index.display()))?;
        stage.load_on("database", &table, DATABASE[1])?;
        Ok(on(&disk, LOUD).culprits("fio").victims("database").others("service").file("index"))
    }),
    situation(
        "short-burst",
        "an import keeps a disk busy for 7 s and ends; the program looks for 12 s",
        12.0,
        |stage| {
            let import = ["import", "op=randwrite direct=1 threads=8 secs=9"];
            pair(stage, "ext4", ONE_BY_ONE, import, ["database", "op=randread direct=1 rate=50"], WARNING)
        },
    ),
    situation(
        "deep-queue",
        "an import keeps 80 requests in flight: a database waits 400 ms for each of its reads",
        12.0,
        |stage| {
            let import = ["import", "op=randwrite direct=1 threads=80"];
            pair(stage, "xfs", ONE_BY_ONE, import, DATABASE, CRITICAL)
        },
    ),
    situation("fstrim", "fstrim keeps a disk busy that takes 60 ms for a discard; a program reads", 10.0, |stage| {
        let (disk, at) = stage.served("xfs", 2048)?;
        let table = stage.file(&at, "table", 64)?;
        run("fstrim", &["--version"])?;
        stage.behave(&disk, "slots=1 read=1 write=1 discard=60");
        stage.load("weekly", &format!("op=program run=fstrim,{}", at.display()))?;
        stage.load_on("shop", &table, "op=randread direct=1")?;
        Ok(on(&disk, WARNING).culprits("fstrim").victims("shop").others("weekly").rules("slow-discards"))
    }),
];
