//! `status`, `persist` and `unpersist` on a tree of files: which value a knob has after reboot, and what decides it.

use std::path::Path;
use std::process::{Command, Output};

struct TuneTree(tempfile::TempDir);

impl TuneTree {
    fn new() -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        for (file, text) in [
            ("proc/sys/vm/swappiness", "60"),
            ("proc/sys/vm/page-cluster", "3"),
            ("proc/sys/vm/dirty_ratio", "20"),
            ("proc/sys/vm/dirty_bytes", "0"),
            ("proc/sys/vm/dirty_background_ratio", "10"),
            ("proc/sys/vm/dirty_background_bytes", "0"),
            ("proc/meminfo", "MemTotal: 8388608 kB"),
            ("proc/vmstat", "nr_dirty_threshold 400000"),
            ("sys/block/vda/queue/scheduler", "[none] bfq"),
            ("sys/block/vda/serial", "s-1"),
            ("sys/block/vda/diskseq", "1"),
            ("run/x", ""),
        ] {
            tree.write(file, &format!("{text}\n"));
        }
        tree
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn tune(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iotop-plus"));
        command.arg("--root").arg(self.0.path()).arg("tune").args(args).output().unwrap()
    }

    fn output_text(&self, args: &[&str]) -> String {
        let got = self.tune(args);
        format!("{}{}", String::from_utf8_lossy(&got.stdout), String::from_utf8_lossy(&got.stderr))
    }

    /// The line of a knob in `status`, with single spaces.
    fn status_line(&self, knob: &str) -> String {
        let all = self.output_text(&["status", knob]);
        let line = all.lines().find(|l| l.starts_with(&format!("{knob} "))).unwrap_or_else(|| panic!("{all}"));
        line.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
    }
}

#[test]
fn status_names_the_file_that_decides() {
    let t = TuneTree::new();
    assert_eq!(t.status_line("vm.swappiness"), "vm.swappiness 60 unchanged 60 60 the kernel: no file sets it");
    let said = t.output_text(&["persist", "vm.swappiness=10"]);
    assert!(said.contains("vm.swappiness will be 10 at the next boot"), "{said}");
    assert_eq!(
        t.status_line("vm.swappiness"),
        "vm.swappiness 60 unchanged 60 10 /etc/sysctl.d/99-zz-iotop-plus.conf:3"
    );
    // Our file overrides an earlier one.
    t.write("etc/sysctl.d/50-site.conf", "vm.swappiness = 40\n");
    assert!(t.status_line("vm.swappiness").ends_with("(over /etc/sysctl.d/50-site.conf:1)"));
    // A later name wins in any directory.
    t.write("usr/lib/sysctl.d/zz-vendor.conf", "\nvm/swappiness = 33\n");
    assert!(
        t.status_line("vm.swappiness")
            .ends_with("60 33 /usr/lib/sysctl.d/zz-vendor.conf:2; OURS LOSES (/etc/sysctl.d/99-zz-iotop-plus.conf)")
    );
    // A masked file does not count.
    std::os::unix::fs::symlink("/dev/null", t.0.path().join("etc/sysctl.d/zz-vendor.conf")).unwrap();
    assert!(t.status_line("vm.swappiness").contains(" 10 /etc/sysctl.d/99-zz-iotop-plus.conf:3"));
    let note = "note: /usr/lib/sysctl.d/zz-vendor.conf does not count, /etc/sysctl.d/zz-vendor.conf stands before it";
    assert!(t.output_text(&["status"]).contains(note));
    // sysctl.conf comes last.
    t.write("etc/sysctl.conf", "# site\nvm.swappiness=5\n");
    assert!(t.status_line("vm.swappiness").contains(" 5 /etc/sysctl.conf:2; OURS LOSES"));
    let said = t.output_text(&["persist", "vm.swappiness=11"]);
    assert!(said.contains("WARNING: vm.swappiness will be 5 at the next boot, not 11: /etc/sysctl.conf:2"), "{said}");
}

#[test]
fn unpersist_removes_everything_persist_wrote() {
    let t = TuneTree::new();
    let said = t.output_text(&["persist", "vm.dirty_background_bytes=16M", "scheduler@vda=bfq", "vm.page-cluster"]);
    assert!(said.contains("wrote /etc/udev/rules.d/99-zz-iotop-plus.rules"), "{said}");
    assert!(t.status_line("vm.dirty_background_ratio").contains(" 0 /etc/sysctl.d/99-zz-iotop-plus.conf"));
    assert!(t.status_line("scheduler@vda").ends_with(" bfq /etc/udev/rules.d/99-zz-iotop-plus.rules"));
    assert!(std::fs::read_to_string(t.0.path().join("proc/sys/vm/dirty_background_bytes")).unwrap() == "0\n");
    let said = t.output_text(&["unpersist", "vm.dirty_background_bytes", "scheduler@vda", "page-cluster"]);
    assert!(said.contains("nothing is left in /etc/sysctl.d/99-zz-iotop-plus.conf"), "{said}");
    let left = |dir: &str| std::fs::read_dir(t.0.path().join(dir)).unwrap().count();
    assert_eq!((left("etc/sysctl.d"), left("etc/udev/rules.d")), (0, 0));
}

#[test]
fn knobs_that_cannot_be_persisted_say_where_to_configure_them() {
    let t = TuneTree::new();
    for (args, part) in [
        (["persist", "vm.dirty_bytes"], "persist that one"),
        (["persist", "vm.swappiness=999"], "allowed: 0 to 200"),
        (["unpersist", "atime@/srv"], "/etc/fstab"),
        (["unpersist", "nofile@1"], "LimitNOFILE="),
        (["persist", "vm.bogus"], "no such knob"),
    ] {
        let got = t.tune(&args);
        assert_eq!(got.status.code(), Some(2), "{args:?}");
        assert!(t.output_text(&args).contains(part), "{args:?}: {}", t.output_text(&args));
    }
    assert!(!Path::new(&t.0.path().join("etc")).exists());
}

#[test]
fn list_and_get_show_every_knob_with_sanitized_names() {
    let t = TuneTree::new();
    t.write("proc/self/mountinfo", "21 1 8:1 / /a\\033[2Jb rw,noatime - ext4 /dev/x rw\n");
    let list = t.output_text(&["list"]);
    for part in ["vm.dirty_ratio", "scheduler@vda", "kernel.task_delayacct", "atime@/a\\x1b[2Jb", "nofile@PID"] {
        assert!(list.contains(part), "{part}: {list}");
    }
    assert!(!list.contains('\x1b'));
    let get = t.output_text(&["get", "vm.dirty_ratio"]);
    assert!(get.contains("vm.dirty_ratio = 20 % (1.53 GiB here)") && get.contains("sets vm.dirty_bytes to 0"), "{get}");
    assert_eq!(t.tune(&["get", "vm.bogus"]).status.code(), Some(2));
    assert_eq!(t.tune(&["get", "scheduler@nope"]).status.code(), Some(1));
}
