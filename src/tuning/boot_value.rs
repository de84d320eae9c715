//! The value a knob will have after the next boot, and what decides it.

use super::knob::{KnobLocation, PersistMethod};
use super::knob_id::KnobId;
use super::persist;
use super::sysctl::{BootSysctls, SysctlAssignment, display_path};
use crate::root::Root;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A knob's value after the next boot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootValue {
    /// The value, or a description of the kernel's default.
    pub value: String,
    /// What decides it: a file and line, the kernel, a driver.
    pub decided_by: String,
    /// The value in the file that `tune persist` writes, if it has one.
    pub persisted: Option<String>,
    /// The line that would override that file.
    pub overriding_line: Option<String>,
}

/// Determines it for one knob. Reads files of the root file system, so the caller must be able to wait.
pub(crate) fn boot_value(root: &Root, next: &BootSysctls, knob_id: &KnobId) -> BootValue {
    let definition = knob_id.definition();
    let our_path = persist::file_for(root, knob_id).ok();
    let ours = our_path.as_deref().and_then(|f| persist::read_persisted(f).ok()?.get(knob_id).cloned());
    let plain = |value: &str, by: &str| BootValue {
        value: value.into(),
        decided_by: by.into(),
        persisted: ours.clone(),
        overriding_line: None,
    };
    match (definition.persist_method, definition.location) {
        (PersistMethod::Sysctl, _) => match next.effective(knob_id) {
            Some(decided) => decided_by_file(root, decided, our_path.as_deref(), ours),
            None => plain(definition.default_display(), "the kernel: no file sets it"),
        },
        (PersistMethod::Manual(_), KnobLocation::Atime) => plain("?", "/etc/fstab or a mount unit"),
        (PersistMethod::Manual(_), _) => plain("-", "the process is gone by then"),
        (_, place) => match (&ours, our_path) {
            (Some(value), Some(file)) => plain(value, &display_path(root, &file)),
            _ => match (place, thp_on_cmdline(root, definition.name)) {
                (_, Some(value)) => plain(&value, "the kernel's command line"),
                (KnobLocation::Sys(_), None) => plain(definition.default_display(), "the kernel, or a program at boot"),
                _ => plain(definition.default_display(), "the driver, or another udev rule"),
            },
        },
    }
}

fn decided_by_file(root: &Root, decided: SysctlAssignment, our_path: Option<&Path>, ours: Option<String>) -> BootValue {
    let foreign = our_path.filter(|o| **o != *decided.file);
    let loses = foreign.filter(|_| ours.is_some());
    let note = loses.map(|o| format!("; OURS LOSES ({})", display_path(root, o))).unwrap_or_default();
    let over = match decided.overridden.is_empty() || !note.is_empty() {
        true => String::new(),
        false => format!(" (over {})", decided.overridden.join(", ")),
    };
    let later =
        |our_path: &Path| decided.file == root.etc("sysctl.conf") || decided.file.file_name() > our_path.file_name();
    BootValue {
        overriding_line: foreign.filter(|our_path| later(our_path)).map(|_| decided.location.clone()),
        decided_by: format!("{}{over}{note}", decided.location),
        value: decided.value,
        persisted: ours,
    }
}

fn thp_on_cmdline(root: &Root, name: &str) -> Option<String> {
    let line = std::fs::read_to_string(root.proc("cmdline")).ok()?;
    let value = line.split_ascii_whitespace().rev().find_map(|w| w.strip_prefix("transparent_hugepage="))?;
    (name == "transparent_hugepage.enabled").then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_file_is_reported_as_overriding_before_persisting() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let etc = dir.path().join("etc/sysctl.d");
        std::fs::create_dir_all(&etc).unwrap();
        let knob_id = KnobId::parse("vm.swappiness").unwrap();
        let look = || boot_value(&root, &BootSysctls::read(&root), &knob_id);
        assert_eq!((look().value.as_str(), look().overriding_line), ("60", None));
        std::fs::write(etc.join("10-a.conf"), "vm.swappiness=10\n").unwrap();
        assert_eq!((look().value.as_str(), look().overriding_line), ("10", None));
        std::fs::write(etc.join("zzz.conf"), "vm.swappiness=20\n").unwrap();
        assert_eq!(look().overriding_line.as_deref(), Some("/etc/sysctl.d/zzz.conf:1"));
        std::fs::write(dir.path().join("etc/sysctl.conf"), "vm.swappiness = 30\n").unwrap();
        assert_eq!(look().overriding_line.as_deref(), Some("/etc/sysctl.conf:1"));
        persist::update_files(&root, &[(knob_id.clone(), Some("40".into()))]).unwrap();
        assert_eq!((look().value.as_str(), look().persisted.as_deref()), ("30", Some("40")));
        assert!(look().decided_by.contains("OURS LOSES"), "{}", look().decided_by);
    }
}
