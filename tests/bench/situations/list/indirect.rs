//! Programs whose requests someone else submits, or that reach the disk through something in between: a partition, an overlay, a
//! mapping, a deleted file, a server or a thread of the kernel, encryption, parity, a snapshot.

use super::{LOUD, Situation, WARNING, in_guest, on, situation};
use crate::judge::Truth;
use crate::layers::sectors;
use crate::stage::{Disk, Result, Stage, run};
use std::path::{Path, PathBuf};

/// One request at a time, 5 ms each, or 8 ms below a device that keeps requests back.
const ONE_BY_ONE: &str = "slots=1 read=5 write=5";
const SLOWER: &str = "slots=1 read=8 write=8";
const SCAN: &str = "op=randread direct=1 threads=8";
const READ: &str = "op=randread direct=1";

/// A slow disk below `layer`, with a file system on that. The files `import` and `table` are there.
fn below(stage: &mut Stage, layer: impl FnOnce(&mut Stage, &Disk) -> Result<Disk>) -> Result<(Disk, Disk, PathBuf)> {
    let slow = stage.served_disk(600)?;
    let upper = layer(stage, &slow)?;
    let at = stage.format("ext4", &upper)?;
    for file in ["import", "table"] {
        stage.file(&at, file, 64)?;
    }
    stage.behave(&slow, SLOWER);
    Ok((slow, upper, at))
}

/// `import` does what the words say, and `shop` reads behind it.
fn import_and_shop(stage: &mut Stage, at: &Path, import: &str) -> Result<()> {
    stage.load_on("import", &at.join("import"), import)?;
    stage.load_on("shop", &at.join("table"), READ)
}

/// A device that encrypts.
fn encrypted(stage: &mut Stage, name: &str, disk: &Disk) -> Result<Disk> {
    let _ = run("modprobe", &["dm-crypt"]);
    let _ = run("modprobe", &["xts"]);
    let key = "0123456789abcdef".repeat(4);
    stage.mapped(name, &format!("0 {} crypt aes-xts-plain64 {key} 0 {} 0", sectors(disk)?, disk.path))
}

/// A disk that a snapshot was made of: each first write to a chunk copies it before.
fn with_snapshot(stage: &mut Stage, disk: &Disk) -> Result<Disk> {
    let _ = run("modprobe", &["dm-snapshot"]);
    let (size, copies) = (sectors(disk)?, stage.fast_disk(300)?);
    let origin = stage.mapped("origin", &format!("0 {size} snapshot-origin {}", disk.path))?;
    stage.mapped("snapshot", &format!("0 {size} snapshot {} {} N 16", disk.path, copies.path))?;
    Ok(origin)
}

/// A RAID 5 of three slow disks.
fn parity(stage: &mut Stage) -> Result<(Vec<Disk>, Disk)> {
    let _ = run("modprobe", &["raid456"]);
    let disks = (0..3).map(|_| stage.served_disk(200)).collect::<Result<Vec<Disk>>>()?;
    let mut args = vec!["--create", "/dev/md150", "-l5", "-n3", "--run", "--assume-clean", "--metadata=1.2"];
    args.extend(disks.iter().map(|disk| &*disk.path));
    run("mdadm", &args)?;
    stage.remove_by(&["mdadm", "--stop", "/dev/md150"]);
    let array = stage.add_disk("md150", "/dev/md150");
    Ok((disks, array))
}

/// Without it the kernel lets hardly any writes from the page cache in flight while reads are slow.
fn without_writeback_throttling(disk: &Disk) -> Result<()> {
    let file = format!("/sys/block/{}/queue/wbt_lat_usec", disk.name);
    // A kernel without it throttles nothing.
    if Path::new(&file).exists() { std::fs::write(&file, "0").map_err(|err| format!("{file}: {err}")) } else { Ok(()) }
}

/// The two partitions of a slow disk.
fn partitions(stage: &mut Stage) -> Result<(Disk, [Disk; 2])> {
    let slow = stage.served_disk(1024)?;
    let half = (500 << 11).to_string();
    run("addpart", &[&slow.path, "1", "2048", &(498 << 11).to_string()])?;
    run("addpart", &[&slow.path, "2", &half, &half])?;
    let parts = ["p1", "p2"].map(|part| stage.add_disk(&(slow.name.clone() + part), &(slow.path.clone() + part)));
    Ok((slow, parts))
}

pub const SITUATIONS: &[Situation] = &[
    situation("scan-of-partition", "a scan of one partition delays a program on the other one", 10.0, |stage| {
        let (slow, [first, second]) = partitions(stage)?;
        let (scans, shops) = (stage.format("ext4", &first)?, stage.format("ext4", &second)?);
        let (index, table) = (stage.file(&scans, "index", 64)?, stage.file(&shops, "table", 64)?);
        stage.behave(&slow, ONE_BY_ONE);
        stage.load_on("scan", &index, SCAN)?;
        stage.load_on("shop", &table, READ)?;
        let truth = on(&slow, WARNING).culprits("scan").victims("shop").file("index");
        Ok(Truth { other_disks: vec![first.name, second.name], ..truth })
    }),
    situation(
        "image-to-partition",
        "an image is written through the page cache to a partition without a file system; a program reads the other one",
        12.0,
        |stage| {
            let (slow, [first, second]) = partitions(stage)?;
            let at = stage.format("ext4", &second)?;
            let table = stage.file(&at, "table", 64)?;
            without_writeback_throttling(&slow)?;
            stage.behave(&slow, "slots=2 read=2 write=2 mb_per_s=40");
            stage.load("imager", &format!("op=write bs=1048576 mb=300 fsync=100 path={}", first.path))?;
            stage.load_on("shop", &table, READ)?;
            let truth = on(&slow, LOUD).culprits("imager").victims("shop");
            Ok(Truth { other_disks: vec![first.name, second.name], ..truth })
        },
    ),
    situation("overlay", "two programs of a container use the same slow disk through an overlay", 10.0, |stage| {
        let (slow, at) = stage.served("ext4", 512)?;
        for dir in ["lower", "upper", "work"] {
            std::fs::create_dir(at.join(dir)).map_err(|err| err.to_string())?;
        }
        stage.file(&at.join("lower"), "index", 64)?;
        stage.file(&at.join("upper"), "table", 64)?;
        let root = stage.new_dir("container")?;
        let layers = format!("lowerdir={0}/lower,upperdir={0}/upper,workdir={0}/work", at.display());
        run("mount", &["-t", "overlay", "-o", &layers, "overlay", &root.to_string_lossy()])?;
        stage.add_mount(&root);
        stage.behave(&slow, ONE_BY_ONE);
        stage.load_on("scan", &root.join("index"), "op=randread threads=8")?;
        stage.load_on("shop", &root.join("table"), "op=randread")?;
        Ok(on(&slow, WARNING).culprits("scan").victims("shop").file("index"))
    }),
    situation(
        "deleted-file",
        "a program writes to a file that was deleted; another one reads the disk",
        12.0,
        |stage| {
            let (slow, at) = stage.served("ext4", 1024)?;
            let table = stage.file(&at, "table", 64)?;
            let spool = stage.file(&at, "spool", 64)?;
            stage.load_on("export", &spool, "op=randwrite direct=1 threads=8")?;
            std::thread::sleep(std::time::Duration::from_secs(1));
            std::fs::remove_file(&spool).map_err(|err| err.to_string())?;
            stage.behave(&slow, ONE_BY_ONE);
            stage.load_on("shop", &table, READ)?;
            Ok(on(&slow, WARNING).culprits("export").victims("shop").file("spool"))
        },
    ),
    situation("aio-scan", "fio with libaio and 16 reads in flight, beside a program that reads", 10.0, |stage| {
        fio_beside_shop(stage, "--ioengine=libaio --iodepth=16 --rw=randread --direct=1")
    }),
    situation(
        "uring-polled",
        "fio with a submitting thread of the kernel, beside a program that reads",
        10.0,
        |stage| fio_beside_shop(stage, "--ioengine=io_uring --sqthread_poll=1 --iodepth=16 --rw=randread --direct=1"),
    ),
    situation(
        "uring-buffered-writes",
        "fio writes through the page cache with io_uring and syncs now and then, beside a program that reads",
        12.0,
        |stage| fio_beside_shop(stage, "--ioengine=io_uring --iodepth=16 --rw=randwrite --fsync=500"),
    ),
    situation(
        "mapped-writes",
        "a program writes to mapped memory and syncs it; another one reads the disk",
        12.0,
        |stage| {
            let (slow, at) = stage.served("ext4", 1024)?;
            let (index, table) = (stage.file(&at, "index", 64)?, stage.file(&at, "table", 64)?);
            without_writeback_throttling(&slow)?;
            stage.load_on("indexer", &index, "op=mapwrite sync=200")?;
            std::thread::sleep(std::time::Duration::from_secs(2));
            stage.behave(&slow, ONE_BY_ONE);
            stage.load_on("shop", &table, READ)?;
            Ok(on(&slow, LOUD).culprits("indexer").victims("shop").file("index"))
        },
    ),
    situation("copy-of-a-file", "cp copies a file of 200 MB on the disk that a program reads", 12.0, |stage| {
        let (slow, at) = stage.served("ext4", 1024)?;
        let (film, table) = (stage.file(&at, "film", 200)?, stage.file(&at, "table", 64)?);
        stage.behave(&slow, "slots=1 read=5 write=5 mb_per_s=20");
        let copy = at.join("copy");
        stage.load("nightly", &format!("op=program run=cp,{},{}", film.display(), copy.display()))?;
        stage.load_on("shop", &table, READ)?;
        Ok(on(&slow, LOUD).culprits("cp").victims("shop").others("nightly"))
    }),
    situation("btrfs-scrub", "a scrub of a btrfs keeps its disk busy; a program reads", 12.0, |stage| {
        let (slow, at) = stage.served("btrfs", 1024)?;
        let table = stage.file(&at, "table", 300)?;
        stage.behave(&slow, "slots=1 read=8 write=8 mb_per_s=40");
        stage.load("weekly", &format!("op=program run=btrfs,scrub,start,-B,{}", at.display()))?;
        stage.load_on("shop", &table, "op=randread direct=1 rate=20")?;
        Ok(on(&slow, LOUD).victims("shop").culprits("btrfs").others("weekly"))
    }),
    situation(
        "syncs-beside-syncs",
        "sixteen threads sync a log of their own on a disk of 15 ms a flush, beside a database that syncs its own",
        12.0,
        |stage| {
            let (slow, at) = stage.served("xfs", 512)?;
            stage.behave(&slow, "slots=1 read=1 write=1 flush=15");
            stage.load_on("audit", &at.join("audit"), "op=write fsync=1 mb=8 threads=16")?;
            stage.load_on("database", &at.join("log"), "op=write fsync=1 mb=8")?;
            Ok(on(&slow, LOUD).victims("database").others("audit"))
        },
    ),
];

/// fio with these options on a file, and `shop`, which reads another one.
fn fio_beside_shop(stage: &mut Stage, options: &str) -> Result<Truth> {
    let (slow, at) = stage.served("ext4", 512)?;
    let (table, index) = (stage.file(&at, "table", 64)?, stage.file(&at, "index", 64)?);
    run("fio", &["--version"])?;
    without_writeback_throttling(&slow)?;
    stage.behave(&slow, ONE_BY_ONE);
    let run = format!("fio,--name=x,--time_based,--runtime=60,{}", options.replace(' ', ","));
    stage.load("service", &format!("op=program run={run},--filename={}", index.display()))?;
    stage.load_on("shop", &table, READ)?;
    Ok(on(&slow, LOUD).culprits("fio").victims("shop").others("service").file("index"))
}

/// Those of them that take a guest.
pub const IN_GUESTS: &[Situation] = &[
    in_guest("crypt-scan", "a scan of an encrypted disk delays a program that reads there", 12.0, |stage| {
        let (slow, upper, at) = below(stage, |stage, disk| encrypted(stage, "secret0", disk))?;
        import_and_shop(stage, &at, SCAN)?;
        let truth = on(&slow, WARNING).culprits("import").victims("shop");
        Ok(Truth { other_disks: vec![upper.name], ..truth })
    }),
    in_guest(
        "crypt-flood",
        "a program writes to an encrypted disk through the page cache; another one reads there",
        12.0,
        |stage| {
            let (slow, upper, at) = below(stage, |stage, disk| encrypted(stage, "secret1", disk))?;
            import_and_shop(stage, &at, "op=randwrite mb=64 fsync=300")?;
            // The kernel throttles writeback while reads are slow: the reader waits little.
            let truth = on(&slow, LOUD).culprits("import").others("shop");
            Ok(Truth { other_disks: vec![upper.name], ..truth })
        },
    ),
    in_guest(
        "raid5-import",
        "an import writes at random to a RAID 5 of slow disks; a program reads there",
        12.0,
        |stage| {
            let (disks, array) = parity(stage)?;
            let at = stage.format("ext4", &array)?;
            for file in ["import", "table"] {
                stage.file(&at, file, 32)?;
            }
            disks.iter().for_each(|disk| stage.behave(disk, SLOWER));
            import_and_shop(stage, &at, "op=randwrite direct=1 threads=8")?;
            let truth = on(&array, LOUD).culprits("import").victims("shop");
            Ok(Truth { other_disks: disks.into_iter().map(|disk| disk.name).collect(), ..truth })
        },
    ),
    in_guest(
        "snapshot-copies",
        "a program writes to a volume with a snapshot, which has each chunk copied",
        12.0,
        |stage| {
            let (slow, upper, at) = below(stage, with_snapshot)?;
            import_and_shop(stage, &at, "op=randwrite direct=1 threads=8")?;
            let truth = on(&slow, LOUD).culprits("import").victims("shop");
            Ok(Truth { other_disks: vec![upper.name], ..truth })
        },
    ),
    in_guest(
        "nfsd-scan",
        "an NFS client scans a disk that its server shares; a program of the server reads it",
        12.0,
        |stage| {
            let (slow, at) = stage.served("ext4", 1024)?;
            let (index, table) = (stage.file(&at, "index", 500)?, stage.file(&at, "table", 64)?);
            let exported = stage.nfs_of(&at)?;
            // A server that has just started lets nobody open a file for its lease time.
            drop(std::fs::File::open(exported.join("index")).map_err(|err| err.to_string())?);
            stage.behave(&slow, ONE_BY_ONE);
            stage.load_on("scan", &exported.join(index.file_name().ok_or("no name")?), SCAN)?;
            stage.load_on("shop", &table, READ)?;
            Ok(on(&slow, LOUD).culprits("nfsd").victims("shop").others("scan"))
        },
    ),
];
