//! A machine where neither /run nor /dev/shm is in memory.

use crate::apart::MountNamespace;
use crate::machine::{LiveMachine, output_text, read_vm_knobs};
use std::process::Command;

#[test]
fn nothing_is_changed_where_the_journal_would_be_on_a_disk() {
    let test = "nothing_is_changed_where_the_journal_would_be_on_a_disk";
    let Some(mut m) = LiveMachine::acquire(test) else { return };
    let disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let kind = Command::new("stat").args(["-f", "-c", "%T"]).arg(disk.path()).output().unwrap();
    if ["tmpfs", "ramfs"].contains(&String::from_utf8_lossy(&kind.stdout).trim()) {
        eprintln!("SKIPPED {test}: the build directory is in memory");
        return;
    }
    let dirs = ["run", "shm"].map(|name| disk.path().join(name));
    dirs.iter().for_each(|dir| std::fs::create_dir(dir).unwrap());
    let binds = [(dirs[0].as_path(), "/run"), (dirs[1].as_path(), "/dev/shm")];
    let Some(_apart) = MountNamespace::enter_with(&mut m, test, &binds) else { return };
    let word = format!("vm.page-cluster={}", if m.saved["page-cluster"] == "2" { "1" } else { "2" });
    let refused = m.tune(&["set", "--for", "60s", &word]);
    let said = output_text(&refused);
    assert_eq!(refused.status.code(), Some(3), "{said}");
    assert!(said.contains("nothing was changed: neither /run/iotop-plus nor /dev/shm/iotop-plus"), "{said}");
    assert_eq!(read_vm_knobs(), m.saved);
    assert!(dirs.iter().all(|dir| !dir.join("iotop-plus").exists()), "a journal was made");

    // What the error says to do helps.
    let command = said.split('`').nth(1).unwrap_or_else(|| panic!("{said}"));
    let [program, words @ ..] = m.wrapper.as_slice() else { panic!("no namespace") };
    let mounted = Command::new(program).args(words).args(["sh", "-c", command]).output().unwrap();
    assert!(mounted.status.success(), "{command}: {}", output_text(&mounted));
    let set = m.tune(&["set", "--for", "60s", &word]);
    assert_eq!(set.status.code(), Some(0), "{}", output_text(&set));
    assert_ne!(read_vm_knobs(), m.saved);
    let undone = m.tune(&["undo"]);
    assert_eq!(undone.status.code(), Some(0), "{}", output_text(&undone));
    assert_eq!(read_vm_knobs(), m.saved);
}
