//! Writes files for the user atomically, private, never through a symlink; in a child, because the file
//! system may be full, read-only or dead.

use crate::model::reading::describe_io_error;
use crate::subprocess::owner;
use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Numbered names tried beside an existing file.
const MAX_NUMBERED_NAMES: u32 = 99;

/// What to do if the file exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum IfExists {
    /// Keep it and write nothing.
    Fail,
    /// Keep it and number the new one: `name-2.png`.
    AddNumber,
    /// Replace it when the new one is complete and on disk.
    Replace,
}

/// Why a file could not be written, and what to do.
pub(crate) fn write_error_message(path: &Path, err: &io::Error) -> String {
    let next = match err.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "; nothing was left there; write elsewhere or make room",
        ErrorKind::ReadOnlyFilesystem => "; write elsewhere",
        ErrorKind::PermissionDenied => "; name a directory you may write in",
        ErrorKind::NotFound => "; name a directory that exists",
        _ => "",
    };
    format!("{} not written: {}{next}", path.display(), describe_io_error(err))
}

/// Writes a file so that an old one is intact until the new one is complete and on disk. Returns its absolute path. Root
/// writes as the owner of the directory. With `make_dir`, missing directories are made, except by root below a directory
/// of another user (sudo may leave HOME pointing there).
pub(crate) fn write_file(path: &Path, contents: &[u8], existing: IfExists, make_dir: bool) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let (dir, name) = split(&path)?;
    let owner = owner::find_foreign_owner(dir)?;
    if let (Some(owner), true) = (owner, make_dir) {
        return Err(io::Error::other(format!(
            "the directory belongs to user {}, and root keeps no settings there; use sudo -H, or --config FILE",
            owner.uid
        )));
    }
    let _acting = owner.map(owner::act_as).transpose()?;
    if make_dir && !dir.exists() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    let temporary = dir.join(format!(".{name}.{}", std::process::id()));
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    let written = file
        .write_all(contents)
        .and_then(|()| file.sync_all())
        .and_then(|()| rename_into_place(&temporary, &path, &name, existing));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
        return written;
    }
    let _ = std::fs::File::open(dir).and_then(|dir| dir.sync_all());
    written
}

/// The directory and the name of a file.
fn split(path: &Path) -> io::Result<(&Path, String)> {
    match (path.parent(), path.file_name()) {
        (Some(dir), Some(name)) => Ok((dir, name.to_string_lossy().into_owned())),
        _ => Err(io::Error::new(ErrorKind::InvalidInput, "names no file")),
    }
}

/// Replaces a file that other users read, or makes it, readable by all. Readers find the old content or the new one, never a
/// part; it is not waited for until it is on disk, because it is soon replaced again. Root writes as the owner of the
/// directory.
pub(crate) fn publish_file(path: &Path, contents: &[u8]) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let (dir, name) = split(&path)?;
    let _acting = owner::find_foreign_owner(dir)?.map(owner::act_as).transpose()?;
    let temporary = dir.join(format!(".{name}.{}", std::process::id()));
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    let written = file
        .write_all(contents)
        .and_then(|()| file.set_permissions(std::fs::Permissions::from_mode(0o644)))
        .and_then(|()| rename_into_place(&temporary, &path, &name, IfExists::Replace));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

fn rename_into_place(temporary: &Path, path: &Path, name: &str, existing: IfExists) -> io::Result<PathBuf> {
    let names = match existing {
        IfExists::Replace => return std::fs::rename(temporary, path).map(|()| path.to_owned()),
        IfExists::Fail => 1,
        IfExists::AddNumber => MAX_NUMBERED_NAMES,
    };
    for n in 1..=names {
        let path = path.with_file_name(numbered_name(name, n));
        match rename_no_replace(temporary, &path) {
            Err(err) if err.kind() == ErrorKind::AlreadyExists => {}
            renamed => return renamed.map(|()| path),
        }
    }
    Err(io::Error::new(ErrorKind::AlreadyExists, "exists already; name another file"))
}

/// `shot.png`, `shot-2.png`, `shot-3.png`
fn numbered_name(name: &str, n: u32) -> String {
    match (n, name.rsplit_once('.')) {
        (1, _) => name.to_owned(),
        (_, Some((stem, ending))) if !stem.is_empty() => format!("{stem}-{n}.{ending}"),
        _ => format!("{name}-{n}"),
    }
}

/// Renames to a name that nothing has, not even a dangling symlink.
fn rename_no_replace(temporary: &Path, path: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, temporary, CWD, path, RenameFlags::NOREPLACE) {
        // NFS has no such rename; a hard link fails likewise if the name exists.
        Err(Errno::INVAL | Errno::NOSYS) => {
            std::fs::hard_link(temporary, path)?;
            std::fs::remove_file(temporary)
        }
        renamed => Ok(renamed?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, symlink};

    fn write(path: &Path, contents: &str, existing: IfExists) -> io::Result<PathBuf> {
        write_file(path, contents.as_bytes(), existing, false)
    }

    fn read(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn files_are_complete_private_and_never_written_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("victim");
        std::fs::write(&target, "old").unwrap();
        let link = dir.path().join("conf");
        symlink(&target, &link).unwrap();
        write(&link, "new", IfExists::Replace).unwrap();
        assert_eq!(read(&target), "old", "the link was replaced, not followed");
        assert_eq!(read(&link), "new");
        assert_eq!(std::fs::metadata(&link).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_published_file_is_replaced_at_once_and_readable_by_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.prom");
        publish_file(&path, b"old").unwrap();
        let old = std::fs::File::open(&path).unwrap();
        publish_file(&path, b"new").unwrap();
        assert_eq!((std::io::read_to_string(old).unwrap(), read(&path)), ("old".into(), "new".into()));
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o644);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
        assert!(publish_file(&dir.path().join("none/a.prom"), b"x").is_err());
    }

    #[test]
    fn root_writes_as_the_owner_of_the_directory_and_makes_none_there() {
        use std::os::unix::fs::chown;
        let name = "root_writes_as_the_owner_of_the_directory_and_makes_none_there";
        if !rustix::process::geteuid().is_root() {
            return println!("skipped {name}: needs root");
        }
        let dir = tempfile::tempdir().unwrap();
        let (home, private) = (dir.path().join("home"), dir.path().join("private"));
        for (path, mode) in [(dir.path(), 0o755), (&home, 0o755), (&private, 0o700)] {
            let _ = std::fs::create_dir(path);
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        chown(&home, Some(12345), Some(12345)).unwrap();
        symlink(&private, home.join("planted")).unwrap();
        let path = write(&home.join("a.png"), "x", IfExists::Fail).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().uid(), 12345);
        assert!(write(&home.join("planted/a.png"), "x", IfExists::Fail).is_err());
        assert_eq!(std::fs::read_dir(&private).unwrap().count(), 0);
        let refused = write_file(&home.join(".config/iotop-plus/config.toml"), b"x", IfExists::Replace, true);
        assert!(refused.unwrap_err().to_string().contains("belongs to user 12345"));
        assert!(!home.join(".config").exists());
    }

    #[test]
    fn an_existing_file_is_kept_and_no_temporary_file_remains() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("shot.svg");
        assert_eq!(write(&path, "1", IfExists::Fail).unwrap(), path);
        let err = write(&path, "2", IfExists::Fail).unwrap_err();
        assert_eq!(err.kind(), ErrorKind::AlreadyExists);
        assert_eq!(read(&path), "1");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(write(&dir.path().join("no/such/f"), "", IfExists::Fail).is_err());
        write_file(&dir.path().join("made/f"), b"", IfExists::Fail, true).unwrap();
    }

    #[test]
    fn the_new_file_gets_a_number_beside_an_existing_file_or_link() {
        let dir = tempfile::tempdir().unwrap();
        let (path, victim) = (dir.path().join("shot.png"), dir.path().join("victim"));
        symlink(&victim, &path).unwrap();
        symlink(dir.path().join("nowhere"), dir.path().join("shot-2.png")).unwrap();
        assert_eq!(write(&path, "1", IfExists::AddNumber).unwrap(), dir.path().join("shot-3.png"));
        assert_eq!(write(&path, "2", IfExists::AddNumber).unwrap(), dir.path().join("shot-4.png"));
        assert_eq!(read(&dir.path().join("shot-3.png")), "1");
        assert!(!victim.exists() && !dir.path().join("nowhere").exists());
        let err = write(&path, "3", IfExists::Fail).unwrap_err();
        assert!(write_error_message(&path, &err).ends_with("shot.png not written: exists already; name another file"));
        assert_eq!(numbered_name(".hidden", 2), ".hidden-2");
        assert_eq!(numbered_name("plain", 12), "plain-12");
    }

    #[test]
    fn errors_suggest_a_next_step() {
        let said = |code| write_error_message(Path::new("/x/f"), &io::Error::from_raw_os_error(code));
        assert_eq!(
            said(28),
            "/x/f not written: no space left on device; nothing was left there; write elsewhere or make room"
        );
        assert_eq!(said(30), "/x/f not written: read-only file system; write elsewhere");
        assert!(said(13).ends_with("permission denied; name a directory you may write in"));
        assert!(said(2).ends_with("name a directory that exists"));
    }
}
