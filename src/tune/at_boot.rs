//! What a knob will be at the next boot, whatever kind it is, and what decides that.

use super::address::Address;
use super::knob::{Persist, Place};
use super::persist;
use super::sysctl::{Decided, NextBoot, shown};
use crate::root::Root;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A knob at the next boot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtBoot {
    /// Its value, or the kernel's default in words.
    pub value: String,
    /// The file and line that decide it, or what else does.
    pub by: String,
    /// What our own file says of it.
    pub ours: Option<String>,
    /// The line that would win over our file if it said something.
    pub stronger: Option<String>,
}

/// Finds it out. Reads files of the root file system: only for a process that may wait.
pub fn at_boot(root: &Root, next: &NextBoot, at: &Address) -> AtBoot {
    let knob = at.knob();
    let own = persist::file(root, at).ok();
    let ours = own.as_deref().and_then(|f| persist::persisted(f).ok()?.get(at).cloned());
    let plain = |value: &str, by: &str| AtBoot {
        value: value.into(),
        by: by.into(),
        ours: ours.clone(),
        stronger: None,
    };
    match (knob.persist, knob.place) {
        (Persist::Sysctl, _) => match next.of(at) {
            Some(decided) => by_file(root, decided, own.as_deref(), ours),
            None => plain(knob.default_words(), "the kernel: no file sets it"),
        },
        (Persist::Elsewhere(_), Place::Atime) => plain("?", "/etc/fstab or a mount unit"),
        (Persist::Elsewhere(_), _) => plain("-", "the process is gone by then"),
        (_, place) => match (&ours, own) {
            (Some(value), Some(file)) => plain(value, &shown(root, &file)),
            _ => match (place, thp_on_cmdline(root, knob.name)) {
                (_, Some(value)) => plain(&value, "the kernel's command line"),
                (Place::Sys(_), None) => plain(knob.default_words(), "the kernel, or a program at boot"),
                _ => plain(knob.default_words(), "the driver, or another udev rule"),
            },
        },
    }
}

fn by_file(root: &Root, decided: Decided, own: Option<&Path>, ours: Option<String>) -> AtBoot {
    let foreign = own.filter(|o| **o != *decided.file);
    let loses = foreign.filter(|_| ours.is_some());
    let note = loses.map(|o| format!("; OURS LOSES ({})", shown(root, o))).unwrap_or_default();
    let over = match decided.losers.is_empty() || !note.is_empty() {
        true => String::new(),
        false => format!(" (over {})", decided.losers.join(", ")),
    };
    let later =
        |own: &Path| decided.file == root.etc("sysctl.conf") || decided.file.file_name() > own.file_name();
    AtBoot {
        stronger: foreign.filter(|own| later(own)).map(|_| decided.from.clone()),
        by: format!("{}{over}{note}", decided.from),
        value: decided.value,
        ours,
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
    fn a_file_that_comes_after_ours_is_known_before_ours_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let etc = dir.path().join("etc/sysctl.d");
        std::fs::create_dir_all(&etc).unwrap();
        let at = Address::parse("vm.swappiness").unwrap();
        let look = || at_boot(&root, &NextBoot::read(&root), &at);
        assert_eq!((look().value.as_str(), look().stronger), ("60", None));
        std::fs::write(etc.join("10-a.conf"), "vm.swappiness=10\n").unwrap();
        assert_eq!((look().value.as_str(), look().stronger), ("10", None));
        std::fs::write(etc.join("zzz.conf"), "vm.swappiness=20\n").unwrap();
        assert_eq!(look().stronger.as_deref(), Some("/etc/sysctl.d/zzz.conf:1"));
        std::fs::write(dir.path().join("etc/sysctl.conf"), "vm.swappiness = 30\n").unwrap();
        assert_eq!(look().stronger.as_deref(), Some("/etc/sysctl.conf:1"));
        persist::change(&root, &[(at.clone(), Some("40".into()))]).unwrap();
        assert_eq!((look().value.as_str(), look().ours.as_deref()), ("30", Some("40")));
        assert!(look().by.contains("OURS LOSES"), "{}", look().by);
    }
}
