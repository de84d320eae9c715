//! Makes values survive a reboot: writes one file of our own for each mechanism, atomically.

use super::knob::{KnobLink, KnobLocation, PersistMethod};
use super::knob_id::KnobId;
use super::value::is_plausible;
use crate::model::reading::describe_io_error;
use crate::root::Root;
use crate::sanitize::sanitize;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Sorts after 99-sysctl.conf, so that only /etc/sysctl.conf, as read by procps, comes later.
const SYSCTL_FILE: &str = "sysctl.d/99-zz-iotop-plus.conf";
const UDEV_FILE: &str = "udev/rules.d/99-zz-iotop-plus.rules";
const TMPFILES_FILE: &str = "tmpfiles.d/zz-iotop-plus.conf";
const HEADER: &str = "# Written by `iotop-plus tune persist`; `iotop-plus tune unpersist` takes lines out.\n";
/// Starts the comment line that is parsed when the file is read again.
const ENTRY_PREFIX: &str = "# iotop-plus: ";

/// Why a value could not be persisted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PersistError {
    #[error("{0}: not by this program; {1}")]
    Manual(KnobId, &'static str),
    #[error("{0}: its name cannot be used in a udev rule")]
    UdevName(KnobId),
    #[error("{path}: {1}", path = .0.display())]
    Foreign(PathBuf, &'static str),
    #[error("{path}: {problem}", path = .0.display(), problem = describe_io_error(.1))]
    Io(PathBuf, #[source] io::Error),
}

/// The file a knob is persisted in.
/// Errors: if the knob is not persisted by this program; the text says where it belongs.
pub(crate) fn file_for(root: &Root, knob_id: &KnobId) -> Result<PathBuf, PersistError> {
    match knob_id.definition().persist_method {
        PersistMethod::Sysctl => Ok(root.etc(SYSCTL_FILE)),
        PersistMethod::Udev => Ok(root.etc(UDEV_FILE)),
        PersistMethod::Tmpfiles => Ok(root.etc(TMPFILES_FILE)),
        PersistMethod::Manual(instruction) => Err(PersistError::Manual(knob_id.clone(), instruction)),
    }
}

/// The values in one of our files; none if it does not exist.
/// Errors: if the file does not start with our header: rewriting it would lose lines that are not ours.
pub(crate) fn read_persisted(path: &Path) -> Result<BTreeMap<KnobId, String>, PersistError> {
    let foreign = |problem| PersistError::Foreign(path.to_owned(), problem);
    let mut file = match File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path) {
        Ok(file) => file.take(1 << 20),
        Err(err) if matches!(err.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(BTreeMap::new());
        }
        Err(err) if err.raw_os_error() == Some(libc::ELOOP) => return Err(foreign("is a link; remove it first")),
        Err(err) => return Err(PersistError::Io(path.to_owned(), err)),
    };
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|err| PersistError::Io(path.to_owned(), err))?;
    if !text.starts_with(HEADER) {
        return Err(foreign("was not written by this program; move it away first"));
    }
    let entry = |line: &str| {
        let (knob_id, value) = line.strip_prefix(ENTRY_PREFIX)?.rsplit_once('=')?;
        let knob_id = KnobId::parse(knob_id).ok()?;
        is_plausible(knob_id.definition(), value).then(|| (knob_id, value.to_owned()))
    };
    Ok(text.lines().filter_map(entry).collect())
}

/// Adds or replaces values (`Some`) and removes them (`None`). Returns the files that were written. All files are
/// read and rendered before the first one is written.
pub(crate) fn update_files(root: &Root, changes: &[(KnobId, Option<String>)]) -> Result<Vec<PathBuf>, PersistError> {
    let mut files: BTreeMap<PathBuf, BTreeMap<KnobId, String>> = BTreeMap::new();
    for (knob_id, value) in changes {
        let path = file_for(root, knob_id)?;
        let all = match files.entry(path.clone()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(read_persisted(&path)?),
        };
        // Only one half of a pair: the kernel sets the other to 0.
        if let (KnobLink::Pair(other), Some(_)) = (knob_id.definition().link, value) {
            all.retain(|a, _| a.definition().name != other);
        }
        match value {
            Some(value) => drop(all.insert(knob_id.clone(), value.clone())),
            None => drop(all.remove(knob_id)),
        }
    }
    let mut texts = Vec::new();
    for (path, all) in &files {
        texts.push((path, render_file(root, all)?));
    }
    for (path, text) in texts {
        let done = match text {
            Some(text) => write_atomically(path, &text),
            None => remove_if_exists(path),
        };
        done.map_err(|err| PersistError::Io(path.clone(), err))?;
    }
    Ok(files.into_keys().collect())
}

fn render_file(root: &Root, all: &BTreeMap<KnobId, String>) -> Result<Option<String>, PersistError> {
    let mut text = HEADER.to_owned();
    for (knob_id, value) in all {
        let knob = knob_id.definition();
        let line = match (knob.persist_method, knob.location, knob.device_file()) {
            (PersistMethod::Manual(instruction), ..) => {
                return Err(PersistError::Manual(knob_id.clone(), instruction));
            }
            (_, KnobLocation::Sys(file), _) => format!("w {} - - - - {value}", Root::live().sys(file).display()),
            (_, _, Some(attribute)) => udev_rule(root, knob_id, &attribute, value)?,
            _ => format!("{} = {value}", knob.name),
        };
        text.push_str(&format!("{ENTRY_PREFIX}{knob_id}={value}\n{line}\n"));
    }
    Ok((!all.is_empty()).then_some(text))
}

/// A udev rule for this disk. It matches the disk's WWID or serial number, because names such as sda may change at
/// boot.
fn udev_rule(root: &Root, knob_id: &KnobId, attr: &str, value: &str) -> Result<String, PersistError> {
    let plain = |s: &str| s.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-+:!@ ".contains(&b));
    let attribute = |file: &str| {
        let text = std::fs::read_to_string(root.sys(&format!("block/{}/{file}", knob_id.instance()))).ok()?;
        Some(text.trim().to_owned()).filter(|t| !t.is_empty() && plain(t))
    };
    let match_key = match (attribute("wwid").or_else(|| attribute("device/wwid")), attribute("serial")) {
        (Some(wwid), _) => format!("ATTRS{{wwid}}==\"{wwid}\""),
        (None, Some(serial)) => format!("ATTR{{serial}}==\"{serial}\""),
        _ if plain(knob_id.instance()) => format!("KERNEL==\"{}\"", knob_id.instance()),
        _ => return Err(PersistError::UdevName(knob_id.clone())),
    };
    Ok(format!(
        "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{{DEVTYPE}}==\"disk\", {match_key}, ATTR{{{attr}}}=\"{value}\""
    ))
}

/// Writes a temporary file, syncs it and renames it to `path`.
fn write_atomically(path: &Path, text: &str) -> io::Result<()> {
    let dir = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    std::fs::create_dir_all(dir)?;
    let temporary = dir.join(format!(".iotop-plus.{}", std::process::id()));
    // Services that are not root may read it; it contains no secrets.
    let mut file = File::options().write(true).create_new(true).mode(0o644).open(&temporary)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    let done = written.and_then(|()| std::fs::rename(&temporary, path));
    match done {
        Ok(()) => drop(File::open(dir).and_then(|dir| dir.sync_all())),
        Err(_) => drop(std::fs::remove_file(&temporary)),
    }
    done
}

fn remove_if_exists(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => Err(err),
        _ => Ok(()),
    }
}

/// A note on other programs that set knobs at boot or later.
pub(crate) fn other_tuning_program(root: &Root) -> Option<String> {
    let profile = std::fs::read_to_string(root.etc("tuned/active_profile")).ok()?;
    Some(format!("tuned is set up (profile {}): it may set values again after the boot", sanitize(profile.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn knob_id(text: &str) -> KnobId {
        KnobId::parse(text).unwrap()
    }

    fn assignment(k: &str, v: &str) -> (KnobId, Option<String>) {
        (knob_id(k), Some(v.into()))
    }

    #[test]
    fn entries_are_added_removed_and_replace_the_other_half_of_a_pair() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let disk = dir.path().join("sys/block/vda");
        std::fs::create_dir_all(&disk).unwrap();
        std::fs::write(disk.join("serial"), "abc-1\n").unwrap();
        let wrote = update_files(
            &root,
            &[
                assignment("vm.dirty_ratio", "40"),
                assignment("vm.page-cluster", "0"),
                assignment("scheduler@vda", "none"),
                assignment("bdi.max_ratio@sdx", "30"),
                assignment("transparent_hugepage.enabled", "madvise"),
            ],
        )
        .unwrap();
        assert_eq!(wrote.len(), 3);
        let read = |p: &str| std::fs::read_to_string(dir.path().join("etc").join(p)).unwrap_or_default();
        assert!(
            read(SYSCTL_FILE).contains("\nvm.dirty_ratio = 40\n")
                && read(SYSCTL_FILE).contains("\nvm.page-cluster = 0\n")
        );
        assert!(
            read(UDEV_FILE).contains("ATTR{serial}==\"abc-1\", ATTR{queue/scheduler}=\"none\""),
            "{}",
            read(UDEV_FILE)
        );
        assert!(read(UDEV_FILE).contains("KERNEL==\"sdx\", ATTR{bdi/max_ratio}=\"30\""));
        assert!(read(TMPFILES_FILE).contains("\nw /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise\n"));
        update_files(&root, &[assignment("vm.dirty_bytes", "8192"), (knob_id("vm.page-cluster"), None)]).unwrap();
        let all = read_persisted(&root.etc(SYSCTL_FILE)).unwrap();
        assert_eq!(all.into_iter().collect::<Vec<_>>(), [(knob_id("vm.dirty_bytes"), "8192".into())]);
        update_files(&root, &[(knob_id("vm.dirty_bytes"), None)]).unwrap();
        assert!(!root.etc(SYSCTL_FILE).exists(), "an empty file goes");
        assert_eq!(std::fs::read_dir(dir.path().join("etc/sysctl.d")).unwrap().count(), 0, "nothing else is left");
    }

    #[test]
    fn foreign_files_are_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let path = root.etc(SYSCTL_FILE);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "vm.swappiness=1\n").unwrap();
        let err = update_files(&root, &[assignment("scheduler@a", "none"), assignment("vm.swappiness", "2")])
            .unwrap_err()
            .to_string();
        assert!(err.contains("not written by this program"), "{err}");
        assert!(!root.etc(UDEV_FILE).exists(), "nothing is written before all is known to be fine");
        std::fs::remove_file(&path).unwrap();
        symlink("/dev/null", &path).unwrap();
        assert!(
            update_files(&root, &[assignment("vm.swappiness", "2")]).unwrap_err().to_string().contains("is a link")
        );
        assert!(update_files(&root, &[assignment("atime@/srv", "noatime")]).unwrap_err().to_string().contains("fstab"));
    }
}
