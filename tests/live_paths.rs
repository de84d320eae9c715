//! Path reports compared with `df` on real loop, bind, overlay and stacked mounts in a private mount namespace. Needs
//! root, util-linux and e2fsprogs; prints what it skips.

use iotop_plus::collect::path::inspect_path;
use iotop_plus::collect::topology::TopologyReader;
use iotop_plus::model::reading::Reading;
use iotop_plus::root::Root;
use std::path::Path;
use std::process::Command;

const LAB_DIR_ENV: &str = "IOTOP_PLUS_TEST_LAB";

/// Everything is below $1, and is unmounted whatever the result.
const SETUP_SCRIPT: &str = r#"
set -e
cd "$1"
mkdir e4 bind ov low over 'a b'
truncate -s 64M e4.img && mkfs.ext4 -qF e4.img
outer=$(losetup -f --show "$PWD/e4.img"); inner=
finish() { cd /; umount "$1/a b" "$1/over" "$1/over" "$1/ov" "$1/bind" 2>/dev/null; [ -z "$inner" ] || losetup -d "$inner"
    umount "$1/e4"; losetup -d "$outer"; }
trap 'finish "$1"' EXIT
mount -o noatime "$outer" e4
mkdir e4/dir e4/up e4/work
truncate -s 20M e4/inner.img && mkfs.ext4 -qF e4/inner.img
inner=$(losetup -f --show "$PWD/e4/inner.img")
mount "$inner" 'a b'
mount --bind e4/dir bind
mount -t overlay ov -o "lowerdir=$PWD/low,upperdir=$PWD/e4/up,workdir=$PWD/e4/work" ov
mount -t tmpfs -o size=1m one over
mount -t tmpfs -o size=2m two over
"$2" --ignored --exact inside --nocapture
"#;

#[test]
fn path_reports_agree_with_df_on_real_mounts() {
    if let Some(missing) = missing_requirement() {
        eprintln!("SKIPPED df_agrees_on_real_mounts: {missing}");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().canonicalize().unwrap();
    let out = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", SETUP_SCRIPT, "sh"])
        .arg(&dir)
        .arg(std::env::current_exe().unwrap())
        .env(LAB_DIR_ENV, &dir)
        .output()
        .unwrap();
    let (said, err) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    if !said.contains("running 1 test") {
        eprintln!("SKIPPED df_agrees_on_real_mounts: the mounts could not be made: {err}");
        return;
    }
    assert!(out.status.success() && said.contains("1 passed"), "{said}\n{err}");
}

fn missing_requirement() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root to mount".into());
    }
    let has = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    ["unshare", "losetup", "df"].into_iter().find(|t| !has(t)).map(|t| format!("needs {t}"))
}

#[test]
#[ignore = "run by df_agrees_on_real_mounts in a mount namespace of its own"]
fn inside() {
    let lab = std::env::var(LAB_DIR_ENV).expect("set by df_agrees_on_real_mounts");
    let at = |name: &str| format!("{lab}/{name}");
    for (name, fs, kinds) in [
        ("e4", "ext4", &["loop"][..]),
        ("bind", "ext4", &["loop"]),
        ("ov", "overlay", &["loop"]),
        ("a b", "ext4", &["loop", "loop"]),
        ("over", "tmpfs", &[]),
        (".", "", &[]),
    ] {
        let path = at(name);
        let report = inspect_path(&Root::live(), Path::new(&path)).unwrap();
        let [source, size, target] = run_df(&path);
        assert_eq!(report.mount.mount_point.sanitized(), target, "{path}");
        assert_eq!(report.space.ok().unwrap().total_bytes.to_string(), size, "{path}");
        assert_eq!(report.mount.source.sanitized(), source, "{path}");
        if fs.is_empty() {
            continue;
        }
        assert_eq!(report.mount.fs_type, fs);
        let got: Vec<_> = report.chain.iter().map(|d| d.kind.name()).take(kinds.len()).collect();
        assert_eq!(got, kinds, "{path}: {:?}", report.chain);
        assert_eq!((report.is_bind, report.chain.is_empty()), (name == "bind", name == "over"));
    }
    let mut reader = TopologyReader::new(&Root::live());
    let Some(Reading::Ok(topo)) = reader.refresh(&[]) else { panic!("no topology") };
    let under = inspect_path(&Root::live(), Path::new(&at("a b"))).unwrap();
    let outer = &topo.get(under.chain[1].id).unwrap();
    assert_eq!(outer.label.as_ref().unwrap().sanitized(), at("e4.img"));
    assert_eq!(outer.holders, [under.chain[0].id]);
    assert_eq!(outer.mounts.iter().map(|m| m.is_bind).collect::<Vec<_>>(), [false, true, false]);
}

/// Source, size in bytes and mount point as reported by df(1).
fn run_df(path: &str) -> [String; 3] {
    let out = |field: &str| {
        let out = Command::new("df").args(["-B1", &format!("--output={field}"), path]).output().unwrap();
        String::from_utf8(out.stdout).unwrap().lines().nth(1).unwrap().trim().to_owned()
    };
    [out("source"), out("size"), out("target")]
}
