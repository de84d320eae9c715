//! Root in a directory of another user acts as that user: whoever owns a directory on the way decides by links where
//! the rest of the path leads, so root must not lend its rights to it, nor leave files there that the owner cannot remove.

use crate::root::Root;
use rustix::fs::{FileType, Gid, Uid};
use rustix::io::Errno;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Links followed on one path, as in the kernel (MAXSYMLINKS).
const MAX_LINKS: u32 = 40;

/// The number that users have in a user namespace that has none for them (`/proc/sys/kernel/overflowuid`).
const OVERFLOW_UID: u32 = 65534;

/// The user who owns the first part of a path that is not root's, and the group of that part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignOwner {
    /// User id, not 0.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

/// The other user who can redirect an absolute path; `None` if only root can, or if this process is not root's. Parts
/// that do not exist belong to nobody. Links of root are followed. Users without a number in this user namespace do not
/// count: root of a rootless container has no rights over their files that it could lend.
///
/// # Errors
/// Those of lstat(2) and readlink(2), and ELOOP.
pub fn find_foreign_owner(path: &Path) -> io::Result<Option<ForeignOwner>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let components = |path: &Path| path.components().rev().map(|c| c.as_os_str().to_owned()).collect::<Vec<_>>();
    let (mut left, mut at, mut links) = (components(path), PathBuf::from("/"), 0);
    while let Some(next) = left.pop() {
        match Path::new(&next).components().next() {
            Some(Component::ParentDir) => drop(at.pop()),
            _ => at.push(&next),
        }
        let stat = match rustix::fs::lstat(&at) {
            Err(Errno::NOENT) => return Ok(None),
            stat => stat?,
        };
        if stat.st_uid != 0 && !is_unmapped(stat.st_uid) {
            return Ok(Some(ForeignOwner { uid: stat.st_uid, gid: stat.st_gid }));
        }
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            links += 1;
            if links > MAX_LINKS {
                return Err(Errno::LOOP.into());
            }
            left.extend(components(&std::fs::read_link(&at)?));
            at.pop();
        }
    }
    Ok(None)
}

/// Whether a user has no number in this user namespace; one that does have that number is taken for such a user in every
/// namespace but the initial one, where all users are mapped.
fn is_unmapped(uid: u32) -> bool {
    let maps_all = |map: &str| map.split_ascii_whitespace().eq(["0", "0", "4294967295"]);
    uid == OVERFLOW_UID && std::fs::read_to_string(Root::live().proc("self/uid_map")).is_ok_and(|map| !maps_all(&map))
}

/// Until it is dropped, the calling thread has the rights of another user.
#[derive(Debug)]
pub struct ActingAs {
    /// Root's own groups.
    groups: Vec<Gid>,
    /// Root's own group.
    gid: Gid,
}

/// Gives the calling thread the rights of that user, without root's groups and capabilities.
///
/// # Errors
/// Those of setresuid(2), such as EINVAL for a user that has no number in this user namespace.
pub fn act_as(owner: ForeignOwner) -> io::Result<ActingAs> {
    let gid = Gid::from_raw(owner.gid);
    // The guard undoes what was done, also when a call fails.
    let acting = ActingAs { groups: rustix::process::getgroups()?, gid: rustix::process::getegid() };
    rustix::thread::set_thread_groups(&[gid])?;
    rustix::thread::set_thread_res_gid(None, gid, None)?;
    rustix::thread::set_thread_res_uid(None, Uid::from_raw(owner.uid), None)?;
    Ok(acting)
}

impl Drop for ActingAs {
    fn drop(&mut self) {
        // Allowed, because the saved user id is still root's.
        let _ = rustix::thread::set_thread_res_uid(None, Uid::ROOT, None);
        let _ = rustix::thread::set_thread_res_gid(None, self.gid, None);
        let _ = rustix::thread::set_thread_groups(&self.groups);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    const OTHER: ForeignOwner = ForeignOwner { uid: 12345, gid: 12346 };

    /// A directory of root that others may enter, with a directory `home` of another user in it.
    fn other_home(test: &str) -> Option<tempfile::TempDir> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped {test}: needs root");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(dir.path().join("home")).unwrap();
        chown(dir.path().join("home"), Some(OTHER.uid), Some(OTHER.gid)).unwrap();
        Some(dir)
    }

    #[test]
    fn the_owner_of_the_first_foreign_part_is_found() {
        let Some(dir) = other_home("the_owner_of_the_first_foreign_part_is_found") else { return };
        let find = |path: &str| find_foreign_owner(&dir.path().join(path)).unwrap();
        assert_eq!(find(""), None);
        assert_eq!(find("missing/below"), None);
        assert_eq!(find("home"), Some(OTHER));
        assert_eq!(find("home/missing/below"), Some(OTHER));
        fs::create_dir(dir.path().join("home/of-root")).unwrap();
        assert_eq!(find("home/of-root"), Some(OTHER));
        assert_eq!(find("home/../other"), Some(OTHER));
        symlink("home/of-root", dir.path().join("link-of-root")).unwrap();
        assert_eq!(find("link-of-root"), Some(OTHER));
        symlink("loop", dir.path().join("loop")).unwrap();
        assert!(find_foreign_owner(&dir.path().join("loop")).is_err());
    }

    #[test]
    fn files_made_as_the_owner_are_the_owners_and_links_open_nothing_more() {
        let Some(dir) = other_home("files_made_as_the_owner_are_the_owners_and_links_open_nothing_more") else {
            return;
        };
        let (own, private) = (dir.path().join("home/file"), dir.path().join("private"));
        fs::create_dir(&private).unwrap();
        fs::set_permissions(&private, Permissions::from_mode(0o700)).unwrap();
        symlink(&private, dir.path().join("home/link")).unwrap();
        let groups = || (rustix::process::getegid(), rustix::process::getgroups().unwrap());
        let before = groups();
        let acting = act_as(OTHER).unwrap();
        fs::write(&own, "x").unwrap();
        assert!(fs::write(dir.path().join("home/link/file"), "x").is_err());
        drop(acting);
        assert_eq!(groups(), before);
        let made = fs::metadata(&own).unwrap();
        assert_eq!((made.uid(), made.gid()), (OTHER.uid, OTHER.gid));
        fs::write(private.join("file"), "root again").unwrap();
    }
}
