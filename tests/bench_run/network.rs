//! A network mount must be named twice. The mount table is a made one that calls an ordinary directory NFS, so
//! no server is needed.

use crate::lab::BenchDir;
use rustix::fs::{AtFlags, CWD, StatxFlags};
use std::path::{Path, PathBuf};

/// A root whose mount table says that `dir` is on `kind`.
fn root_with_mount(at: &Path, dir: &Path, kind: &str) -> PathBuf {
    let root = at.join(format!("root-{kind}"));
    let own = root.join("proc/self");
    std::fs::create_dir_all(&own).unwrap();
    std::os::unix::fs::symlink("/proc/self/fd", own.join("fd")).unwrap();
    std::os::unix::fs::symlink("/sys", root.join("sys")).unwrap();
    let id = rustix::fs::statx(CWD, dir, AtFlags::empty(), StatxFlags::MNT_ID).unwrap().stx_mnt_id;
    let line = format!("{id} 1 0:99 / /mnt/far rw,relatime - {kind} server:/export rw,vers=4.2\n");
    std::fs::write(own.join("mountinfo"), line).unwrap();
    root
}

#[test]
fn a_network_mount_is_refused_unless_named_twice() {
    let Some(place) = BenchDir::new() else { return };
    let dir = place.path().join("data");
    std::fs::create_dir(&dir).unwrap();
    let name = dir.to_str().unwrap().to_owned();
    for kind in ["nfs4", "cifs", "fuse.sshfs", "9p"] {
        let root = root_with_mount(place.path(), &dir, kind);
        let run = |more: &[&str]| {
            let base = ["--root", root.to_str().unwrap(), "bench", "run", "randread", &name, "-q", "--no-keep"];
            let usual = ["--size", "16M", "--time", "0.2", "--ramp", "0"];
            let out = place.run(&[&base[..], &usual, more].concat());
            let text = [out.stdout, out.stderr].concat();
            (out.status.code(), String::from_utf8_lossy(&text).into_owned())
        };
        let (code, why) = run(&[]);
        assert_eq!(code, Some(3), "{kind}: {why}");
        assert!(why.contains(&format!("network mount ({kind} from server:/export)")), "{why}");
        assert!(why.contains("name it twice"), "{why}");
        let elsewhere = place.path().to_str().unwrap();
        assert_eq!(run(&["--network", elsewhere]).0, Some(3), "{kind}: another directory is not this one");
        let (code, text) = run(&["--network", &format!("{name}/")]);
        assert_eq!(code, Some(0), "{kind}: {text}");
        assert!(text.contains("a network is in between"), "{text}");
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
        let base = ["--root", root.to_str().unwrap(), "bench", "run", "sweep", &name, "-q", "--network", &name];
        let out = place.run(&[&base[..], &["--readahead", "--size", "16M"]].concat());
        let why = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.code() == Some(3) && why.contains("read-ahead of its own"), "{why}");
    }
}
