//! What keeps tasks from being listed, or gives them other numbers: for the notes of every scan.

use crate::collect::kernel_file::read_once;
use crate::parse::bytes::{lines, words};
use crate::root::Root;

/// Notes for the user; none on most machines.
pub(super) fn notes(root: &Root) -> Vec<String> {
    let mut out = Vec::new();
    if let Some(option) = hidepid_option(root).filter(|_| !root.proc("1").exists()) {
        out.push(format!("/proc is mounted with {option}: only your own processes are listed; run with sudo"));
    }
    if root.is_initial_pid_namespace().is_ok_and(|is_initial| !is_initial) {
        out.push("in a container: these process numbers are its own, those of the kernel log are the host's".into());
    }
    out
}

/// `hidepid=2` or `hidepid=invisible`, if `/proc` is mounted with it.
fn hidepid_option(root: &Root) -> Option<String> {
    let mut buf = Vec::new();
    let text = read_once(&root.mount_table("mountinfo"), &mut buf).ok()?;
    let proc = lines(text).rfind(|line| words(line).nth(4) == Some(b"/proc"))?;
    let options = words(proc).last()?;
    let option = options.split(|byte| *byte == b',').find(|option| option.starts_with(b"hidepid="))?;
    Some(String::from_utf8_lossy(option).into_owned()).filter(|text| !matches!(&**text, "hidepid=0" | "hidepid=off"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes_with(options: &str, has_init: bool) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        let line = format!("22 1 0:20 / /proc rw,nosuid - proc proc rw,{options}\n");
        std::fs::write(dir.path().join("proc/self/mountinfo"), line).unwrap();
        if has_init {
            std::fs::create_dir(dir.path().join("proc/1")).unwrap();
        }
        notes(&Root::at(dir.path()))
    }

    #[test]
    fn hidden_processes_are_explained_where_they_are_hidden() {
        for option in ["hidepid=2", "hidepid=invisible,gid=27"] {
            let [note] = &notes_with(option, false)[..] else { panic!("{option}") };
            let name = option.split(',').next().unwrap();
            assert_eq!(
                note,
                &format!("/proc is mounted with {name}: only your own processes are listed; run with sudo")
            );
        }
        assert_eq!(notes_with("hidepid=2", true), [""; 0], "root sees all");
        assert_eq!(notes_with("hidepid=0", false), [""; 0]);
        assert_eq!(notes_with("relatime", false), [""; 0]);
    }

    #[test]
    fn numbers_of_a_container_are_said_to_be_its_own() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/self/ns")).unwrap();
        // Its inode is not that of the first namespace.
        std::fs::write(dir.path().join("proc/self/ns/pid"), "").unwrap();
        assert!(notes(&Root::at(dir.path()))[0].starts_with("in a container: these process numbers are its own"));
    }
}
