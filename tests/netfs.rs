//! NFS and CIFS mounts of a captured host, from files to displayed rows.

#[path = "fixture/tree.rs"]
mod tree;

use iotop_plus::collect::sources;
use iotop_plus::model::network::{NetFsKind, NetFsRate, NicRate};
use iotop_plus::model::sample::Sample;
use iotop_plus::root::Root;

fn read_sample(name: &str) -> Sample {
    let mut sample = Sample::default();
    for source in &mut sources(&Root::at(tree::captured(name))) {
        source.read(&mut sample);
    }
    sample
}

#[test]
fn every_network_mount_is_listed_once() {
    let sample = read_sample("database-host");
    let rows = sample.netfs.ok().unwrap();
    let got: Vec<_> = rows
        .iter()
        .map(|r| (r.kind, r.mount.sanitized(), r.server.sanitized(), r.version.as_deref(), r.interface.as_deref()))
        .collect();
    assert_eq!(
        got,
        [
            (NetFsKind::Nfs, "/mnt/home".into(), "10.8.0.20:/export/home".into(), Some("3"), Some("bond0")),
            (NetFsKind::Nfs, "/mnt/back up".into(), "nas.example.net:/back up".into(), Some("4.2"), Some("bond0")),
            (NetFsKind::Cifs, "/mnt/share".into(), "//FILES/Team Share".into(), Some("3.1.1"), Some("eth0")),
        ]
    );
}

#[test]
fn nfs_and_cifs_counters_match_the_kernel_files() {
    let sample = read_sample("database-host");
    let v3 = &sample.netfs.ok().unwrap()[0];
    assert_eq!((v3.age_s, v3.read_bytes, v3.write_bytes), (Some(266_318), Some(905_969_664), Some(771_190_000)));
    assert_eq!((v3.ops, v3.read_ops, v3.write_ops), (Some(76_302), Some(884), Some(18_024)));
    assert_eq!((v3.retransmits, v3.timeouts, v3.errors), (Some(33), Some(3), Some(894)));
    assert_eq!((v3.queue_ms, v3.rtt_ms, v3.execute_ms), (Some(90_402), Some(249_987), Some(342_373)));
    let cifs = &sample.netfs.ok().unwrap()[2];
    assert_eq!((cifs.ops, cifs.read_bytes, cifs.write_bytes), (Some(67), Some(90_177_536), Some(2)));
    assert_eq!((cifs.read_ops, cifs.errors, cifs.rtt_ms, cifs.retransmits), (Some(22), Some(2), None, None));
}

#[test]
fn link_utilisation_is_shown_for_mounts_on_that_link() {
    let before = read_sample("database-host");
    let mut after = before.clone();
    let (mb, secs) = (1 << 20, 2.0);
    {
        let row = &mut after.netfs.ok_mut().unwrap()[1];
        row.write_bytes = row.write_bytes.map(|b| b + 220 * mb);
        row.ops = row.ops.map(|n| n + 220);
        row.rtt_ms = row.rtt_ms.map(|n| n + 22_000);
        row.retransmits = row.retransmits.map(|n| n + 4);
        let nic = after.nics.ok_mut().unwrap().iter_mut().find(|n| n.name == "bond0").unwrap();
        assert_eq!(nic.speed_bits, Some(1_000_000_000));
        nic.tx_bytes += 237_500_000;
    }
    let nics = NicRate::derive_all(before.nics.ok().map(|v| &v[..]), after.nics.ok().unwrap(), secs);
    let rates = NetFsRate::derive_all(before.netfs.ok().map(|v| &v[..]), after.netfs.ok().unwrap(), &nics, secs);
    assert_eq!(
        serde_json::to_value(&rates[1]).unwrap(),
        serde_json::json!({"mount": "/mnt/back up", "kind": "nfs", "server": "nas.example.net:/back up",
            "read_mb_per_s": 0.0, "write_mb_per_s": 110.0, "rtt_ms": 100.0, "retransmits_per_s": 2.0,
            "interface": "bond0", "link_used_pct": 95.0})
    );
    assert_eq!(
        serde_json::to_value(&rates[2]).unwrap(),
        serde_json::json!({"mount": "/mnt/share", "kind": "cifs", "server": "//FILES/Team Share",
            "read_mb_per_s": 0.0, "write_mb_per_s": 0.0, "rtt_ms": null, "retransmits_per_s": null,
            "interface": "eth0", "link_used_pct": 0.0})
    );
}

#[test]
fn without_network_mounts_interfaces_are_not_read() {
    let sample = read_sample("layered-vm");
    assert_eq!(sample.netfs.ok(), Some(&vec![]));
    assert_eq!(sample.nics.ok(), Some(&vec![]), "and its interfaces are not read");
}
