//! What a knob will be at the next boot, whatever kind it is, and what decides that.

use super::knob::{KnobLocation, PersistMethod};
use super::knob_id::KnobId;
use super::persist;
use super::sysctl::{BootSysctls, EffectiveSetting, display_path};
use crate::root::Root;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A knob at the next boot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootValue {
    /// Its value, or the kernel's default in words.
    pub value: String,
    /// The file and line that decide it, or what else does.
    pub decided_by: String,
    /// What our own file says of it.
    pub persisted: Option<String>,
    /// The line that would win over our file if it said something.
    pub overriding_line: Option<String>,
}

/// Finds it out. Reads files of the root file system: only for a process that may wait.
pub fn boot_value(root: &Root, next: &BootSysctls, at: &KnobId) -> BootValue {
    let knob = at.knob();
    let own = persist::file_for(root, at).ok();
    let ours = own.as_deref().and_then(|f| persist::read_persisted(f).ok()?.get(at).cloned());
    let plain = |value: &str, by: &str| BootValue {
        value: value.into(),
        decided_by: by.into(),
        persisted: ours.clone(),
        overriding_line: None,
    };
    match (knob.persist_method, knob.location) {
        (PersistMethod::Sysctl, _) => match next.effective(at) {
            Some(decided) => decided_by_file(root, decided, own.as_deref(), ours),
            None => plain(knob.default_display(), "the kernel: no file sets it"),
        },
        (PersistMethod::Manual(_), KnobLocation::Atime) => plain("?", "/etc/fstab or a mount unit"),
        (PersistMethod::Manual(_), _) => plain("-", "the process is gone by then"),
        (_, place) => match (&ours, own) {
            (Some(value), Some(file)) => plain(value, &display_path(root, &file)),
            _ => match (place, thp_on_cmdline(root, knob.name)) {
                (_, Some(value)) => plain(&value, "the kernel's command line"),
                (KnobLocation::Sys(_), None) => plain(knob.default_display(), "the kernel, or a program at boot"),
                _ => plain(knob.default_display(), "the driver, or another udev rule"),
            },
        },
    }
}

fn decided_by_file(root: &Root, decided: EffectiveSetting, own: Option<&Path>, ours: Option<String>) -> BootValue {
    let foreign = own.filter(|o| **o != *decided.file);
    let loses = foreign.filter(|_| ours.is_some());
    let note = loses.map(|o| format!("; OURS LOSES ({})", display_path(root, o))).unwrap_or_default();
    let over = match decided.overridden.is_empty() || !note.is_empty() {
        true => String::new(),
        false => format!(" (over {})", decided.overridden.join(", ")),
    };
    let later = |own: &Path| decided.file == root.etc("sysctl.conf") || decided.file.file_name() > own.file_name();
    BootValue {
        overriding_line: foreign.filter(|own| later(own)).map(|_| decided.location.clone()),
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
        let at = KnobId::parse("vm.swappiness").unwrap();
        let look = || boot_value(&root, &BootSysctls::read(&root), &at);
        assert_eq!((look().value.as_str(), look().overriding_line), ("60", None));
        std::fs::write(etc.join("10-a.conf"), "vm.swappiness=10\n").unwrap();
        assert_eq!((look().value.as_str(), look().overriding_line), ("10", None));
        std::fs::write(etc.join("zzz.conf"), "vm.swappiness=20\n").unwrap();
        assert_eq!(look().overriding_line.as_deref(), Some("/etc/sysctl.d/zzz.conf:1"));
        std::fs::write(dir.path().join("etc/sysctl.conf"), "vm.swappiness = 30\n").unwrap();
        assert_eq!(look().overriding_line.as_deref(), Some("/etc/sysctl.conf:1"));
        persist::update_files(&root, &[(at.clone(), Some("40".into()))]).unwrap();
        assert_eq!((look().value.as_str(), look().persisted.as_deref()), ("30", Some("40")));
        assert!(look().decided_by.contains("OURS LOSES"), "{}", look().decided_by);
    }
}
