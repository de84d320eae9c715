//! Topology and path reports of captured machines: a VM with loop, btrfs, overlay and bind mounts, and a database host
//! with NVMe, RAID, LVM, encryption, multipath and network mounts.

#[path = "fixture/tree.rs"]
mod tree;

use iotop_plus::collect::path::inspect_path;
use iotop_plus::collect::queue::read_queue_attrs;
use iotop_plus::collect::topology::TopologyReader;
use iotop_plus::model::Topology;
use iotop_plus::model::device_id::DevId;
use iotop_plus::model::path::{AtimePolicy, PathReport, ReadOnlyReason, StorageKind};
use iotop_plus::model::reading::Reading;
use iotop_plus::root::Root;
use std::path::Path;
use tree::captured;

fn read_topology(name: &str) -> Topology {
    match TopologyReader::new(&Root::at(captured(name))).refresh(&[]) {
        Some(Reading::Ok(topo)) => topo,
        other => panic!("{name}: {other:?}"),
    }
}

fn format_tree(topo: &Topology) -> String {
    let mut out = String::new();
    for row in topo.tree() {
        let dev = &topo.devices[row.device_index];
        let line = match row.mount_index.map(|m| &dev.mounts[m]) {
            Some(m) => format!(
                "* {} {}{}{}",
                m.mount_point.sanitized(),
                m.fs_type.sanitized(),
                if m.is_bind { " bind" } else { "" },
                if m.is_hidden { " hidden" } else { "" }
            ),
            None => format!(
                "{} {}{}{}",
                dev.display_name(),
                dev.kind.name(),
                if dev.swaps.is_empty() { "" } else { " swap" },
                if row.is_repeated { " (above)" } else { "" }
            ),
        };
        out += &format!("{}{line}\n", "  ".repeat(row.depth));
    }
    out
}

fn report_for(name: &str, path: &str) -> PathReport {
    inspect_path(&Root::at(captured(name)), Path::new(path)).unwrap()
}

fn format_chain(report: &PathReport) -> Vec<String> {
    report.chain.iter().map(|d| format!("{}{} {}", ">".repeat(d.depth), d.name, d.kind.name())).collect()
}

#[test]
fn the_mount_of_a_file_system_with_a_number_of_its_own_has_that_number() {
    let topology = read_topology("layered-vm");
    let mounts = topology.devices.iter().flat_map(|device| device.mounts.iter().map(move |mount| (device, mount)));
    let with_own = mounts.filter(|(device, mount)| mount.file_system != device.id);
    let found: Vec<_> = with_own.map(|(device, m)| (&*device.name, m.mount_point.sanitized(), m.file_system)).collect();
    println!("{found:?}");
    assert!(found.iter().all(|(.., number)| number.major == 0));
    let on = |point: &str| {
        found.iter().find(|(_, at, _)| at == point).map(|(device, _, number)| (*device, number.minor > 0))
    };
    assert_eq!((on("/srv/lab/btr"), on("/srv/lab/ov")), (Some(("loop2", true)), Some(("loop0", true))));
}

#[test]
fn the_tree_of_a_real_vm() {
    assert_eq!(
        format_tree(&read_topology("layered-vm")),
        "\
loop7 loop
zram0 zram
vda disk
  * / ext4
  loop0 loop
    * /srv/lab/e4 ext4
    * /srv/lab/bind ext4 bind
    * /srv/lab/ov overlay
    loop4 loop
      * /srv/lab/b/sp ace ext4
  loop1 loop
    loop1p1 partition
      * /srv/lab/part ext4
    loop1p2 partition swap
  loop2 loop
    * /srv/lab/btr btrfs
    * /srv/lab/sub btrfs
  loop3 loop
    * /srv/lab/btr btrfs
    * /srv/lab/sub btrfs
"
    );
}

#[test]
fn the_tree_of_raid_lvm_crypt_and_multipath() {
    assert_eq!(
        format_tree(&read_topology("database-host")),
        "\
sda disk
  mpatha multipath
    dm-5 partition
      * /data xfs
sdb disk
  mpatha multipath (above)
sr0 cdrom
nvme0n1 disk
  nvme0n1p1 partition
    * /boot/efi vfat
  nvme0n1p2 partition
    md127 md
      vg0-root lvm
        * / xfs
      vg0-swap lvm swap
      vg0-pg--data lvm
        luks-pgdata crypt swap
          * /var/lib/pgsql ext4
nvme1n1 disk
  nvme1n1p1 partition
  nvme1n1p2 partition
    md127 md (above)
"
    );
}

#[test]
fn devices_have_their_sysfs_attributes() {
    let topo = read_topology("database-host");
    let md = topo.by_name("md127").unwrap();
    let info = md.md.as_ref().unwrap();
    assert_eq!((info.level.as_deref(), info.state.as_deref(), info.degraded), (Some("raid1"), Some("active"), Some(0)));
    assert_eq!(md.slaves, [DevId { major: 259, minor: 2 }, DevId { major: 259, minor: 5 }]);
    assert_eq!(md.holders.len(), 3);
    assert_eq!(topo.get(md.parent.unwrap()).unwrap().name, "nvme0n1p2");
    assert_eq!(topo.get(DevId { major: 8, minor: 0 }).unwrap().parent, None);
    assert_eq!(topo.by_name("/dev/mapper/luks-pgdata").unwrap().name, "dm-3");
    assert_eq!(topo.by_name("/dev/vg0/pg-data").unwrap().name, "dm-2");
    assert_eq!(topo.by_name("/dev/sda").unwrap().model.as_deref(), Some("LUN C-Mode"));
    assert_eq!(topo.by_name("nvme1n1").unwrap().size_bytes, Some(1_920_383_410_176));
    assert_eq!(topo.by_name("nvme0c0n1"), None, "a hidden path has no number");
    let disks: Vec<_> = topo.physical_disks(DevId { major: 253, minor: 3 }).map(|d| d.name.clone()).collect();
    assert_eq!(disks, ["nvme0n1", "nvme1n1"]);
    let json = serde_json::to_value(topo.by_name("dm-3").unwrap()).unwrap();
    assert_eq!((&json["kind"], &json["label"]), (&"crypt".into(), &"luks-pgdata".into()));
    assert_eq!(serde_json::from_value::<Topology>(serde_json::to_value(&topo).unwrap()).unwrap(), topo);
}

#[test]
fn a_path_is_resolved_down_to_the_disks() {
    let r = report_for("database-host", "/var/lib/pgsql/16/main");
    assert_eq!(r.mount.mount_point, "/var/lib/pgsql");
    assert_eq!(
        format_chain(&r),
        [
            "dm-3 crypt",
            ">dm-2 lvm",
            ">>md127 md",
            ">>>nvme0n1p2 partition",
            ">>>>nvme0n1 disk",
            ">>>nvme1n1p2 partition",
            ">>>>nvme1n1 disk"
        ]
    );
    assert_eq!(
        r.chain.iter().filter(|d| d.is_physical).map(|d| d.name.as_str()).collect::<Vec<_>>(),
        ["nvme0n1", "nvme1n1"]
    );
    let part = r.chain[3].queue.as_ref().expect("a partition shows its disk's queue");
    assert_eq!(
        (part.scheduler.as_deref(), part.rotational, part.read_ahead_kb),
        (Some("none"), Some(false), Some(128))
    );
    assert_eq!((r.read_only, r.atime), (Some(ReadOnlyReason::Emergency), AtimePolicy::Noatime));
    assert!(matches!(r.space, Reading::Absent(_)));
    assert_eq!(serde_json::from_str::<PathReport>(&serde_json::to_string(&r).unwrap()).unwrap(), r);
    assert_eq!(
        format_chain(&report_for("database-host", "/data/x")),
        ["dm-5 partition", ">dm-4 multipath", ">>sda disk", ">>sdb disk"]
    );
}

#[test]
fn mounts_without_a_device_are_explained() {
    let nfs = report_for("database-host", "/var/lib/pgsql/archive/f");
    assert_eq!((nfs.storage, nfs.chain.len(), nfs.is_bind), (StorageKind::Network, 0, true));
    assert_eq!(
        nfs.note,
        "NFS from nas.example.net:/back up (2001:db8:1::20): over the network, no block device of this machine"
    );
    assert_eq!(report_for("database-host", "/proc/1").storage, StorageKind::Kernel);
    let tmp = report_for("layered-vm", "/srv/lab/over/f");
    assert_eq!((tmp.storage, tmp.mount.source.sanitized().as_str()), (StorageKind::Memory, "two"));
}

#[test]
fn anonymous_device_numbers_are_resolved() {
    let ov = report_for("layered-vm", "/srv/lab/ov/f");
    assert_eq!(format_chain(&ov), ["loop0 loop", ">vda disk"]);
    assert_eq!(
        ov.note,
        "overlay: what is written goes to /srv/lab/e4/up (ext4 on loop0); unchanged files are read from lower layers"
    );
    let sub = report_for("layered-vm", "/srv/lab/sub/f");
    assert_eq!(format_chain(&sub), ["loop2 loop", ">vda disk", "loop3 loop"]);
    assert!(sub.note.starts_with("btrfs on loop2 and 1 more"), "{}", sub.note);
    assert_eq!(
        format_chain(&report_for("layered-vm", "/srv/lab/b/sp ace/f")),
        ["loop4 loop", ">loop0 loop", ">>vda disk"]
    );
    assert!(report_for("layered-vm", "/srv/lab/bind/f").is_bind);
}

#[test]
fn an_unchanged_topology_is_not_reported_again() {
    let dir = tempfile::tempdir().unwrap();
    let put = |rel: &str, text: &str| {
        let path = dir.path().join(rel);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("sys/block/sda/dev", "8:0\n");
    put("proc/self/mountinfo", "1 0 8:0 / / rw - ext4 /dev/sda rw\n");
    let sda = DevId { major: 8, minor: 0 };
    let sdb = DevId { major: 8, minor: 16 };
    let mut reader = TopologyReader::new(&Root::at(dir.path()));
    let names = |s: Option<Reading<Topology>>| {
        s.map(|s| s.ok().unwrap().devices.iter().map(|d| d.name.clone()).collect::<Vec<_>>())
    };
    assert_eq!(names(reader.refresh(&[sda])).unwrap(), ["sda"]);
    assert_eq!(reader.refresh(&[sda]), None);
    put("sys/block/sdb/dev", "8:16\n");
    assert_eq!(reader.refresh(&[sda]), None, "sysfs is not read again without a sign");
    assert_eq!(names(reader.refresh(&[sda, sdb])).unwrap(), ["sda", "sdb"]);
    put("proc/self/mountinfo", "1 0 8:0 / / rw - ext4 /dev/sda rw\n2 1 8:16 / /b rw - ext4 /dev/sdb rw\n");
    let topo = reader.refresh(&[sda, sdb]).unwrap();
    assert_eq!(topo.ok().unwrap().mounts_of(sdb)[0].mount_point, "/b");
}

#[test]
fn a_missing_sysfs_is_absent_not_empty() {
    let dir = tempfile::tempdir().unwrap();
    let got = TopologyReader::new(&Root::at(dir.path())).refresh(&[]);
    assert_eq!(got, Some(Reading::Absent("/sys/block: no such file or directory".into())));
}

#[test]
fn path_errors_state_cause_and_remedy() {
    let live = |p: &str| inspect_path(&Root::live(), Path::new(p)).unwrap_err().to_string();
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().to_str().unwrap();
    assert_eq!(
        live(&format!("{base}/a\u{1b}[2J/b")),
        format!(
            "cannot find {base}/a\\x1b[2J/b: no such file or directory; {base} exists: use that, or check the spelling"
        )
    );
    std::os::unix::fs::symlink("round", dir.path().join("round")).unwrap();
    assert!(live(&format!("{base}/round")).contains("loop"));
    assert!(live("").contains("give a directory"));
    let old = inspect_path(&Root::at(captured("layered-vm")), Path::new("var")).unwrap_err();
    assert!(old.to_string().contains("absolute"));
}

#[test]
fn the_queue_of_a_real_disk() {
    let q = &read_queue_attrs(&Root::at(captured("layered-vm")), &["vda", "zram0"]);
    assert_eq!(q.keys().collect::<Vec<_>>(), ["vda"]);
    assert_eq!(q["vda"].scheduler.as_deref(), Some("mq-deadline"));
    assert!(q["vda"].schedulers.contains(&"none".to_string()));
    assert_eq!((q["vda"].rotational, q["vda"].read_ahead_kb), (Some(true), Some(8192)));
}

/// On the live kernel the mount that statx(2) reports is the one found in the mount table.
#[test]
fn the_live_root_has_a_mount_and_space() {
    let r = inspect_path(&Root::live(), Path::new("/")).unwrap();
    assert_eq!(r.mount.mount_point, "/");
    assert!(r.space.ok().is_some_and(|s| s.total_bytes >= s.free_bytes && s.free_bytes >= s.available_bytes));
}
