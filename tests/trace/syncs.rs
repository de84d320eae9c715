//! Syncs on the running kernel: every one is counted, on the file it was for, and nothing stays attached when nobody
//! looks any more.
//!
//! Skips by name where this machine does not let us trace.

use crate::machine::may_trace;
use crate::until;
use iotop_plus::model::section::Section;
use iotop_plus::model::syncs::{Call, SyncCounts, SyncsRaw};
use iotop_plus::root::Root;
use iotop_plus::trace::Tracer;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// A tracer whose syncs are there.
fn tracer(threshold: Duration) -> Tracer {
    let tracer = Tracer::new(&Root::live());
    tracer.begin();
    tracer.want_syncs(Some(threshold));
    until("the programs", || tracer.syncs.read().ok().map(drop));
    tracer
}

fn read(tracer: &Tracer) -> SyncsRaw {
    match tracer.syncs.read() {
        Section::Ok(raw) => raw,
        other => panic!("{other:?}"),
    }
}

fn of(raw: &SyncsRaw, call: Call, ino: u64) -> Option<&SyncCounts> {
    raw.files.iter().find(|c| c.file.pid == std::process::id() && c.file.call == call && c.file.ino == ino)
}

fn inode(path: &Path) -> u64 {
    rustix::fs::stat(path).unwrap().st_ino
}

#[test]
fn every_sync_is_counted_on_its_file() {
    if let Err(why) = may_trace() {
        return println!("skipped every_sync_is_counted_on_its_file: {why}");
    }
    let tracer = tracer(Duration::ZERO);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/b/c/d/e");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = File::create(&path).unwrap();
    for _ in 0..300 {
        rustix::fs::fsync(&file).unwrap();
    }
    for _ in 0..200 {
        rustix::fs::fdatasync(&file).unwrap();
    }
    rustix::fs::fsync(std::io::stdin()).unwrap_err();
    let raw = read(&tracer);
    println!(
        "{:#?}",
        raw.files.iter().map(|c| (c.file.clone(), c.calls, c.errors, c.worst_ns)).collect::<Vec<_>>()
    );
    println!(
        "{:?} {:?} {:?} {:?}",
        raw.slow.iter().take(5).collect::<Vec<_>>(),
        raw.lost,
        raw.without,
        raw.uring
    );
    let fsync = of(&raw, Call::Fsync, inode(&path)).unwrap();
    assert_eq!((fsync.calls, fsync.errors, fsync.counts.samples()), (300, 0, 300));
    assert_eq!(of(&raw, Call::Fdatasync, inode(&path)).unwrap().calls, 200);
}
