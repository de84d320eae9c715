//! User names from `/etc/passwd`, read on a guarded thread: it lies on the very file system that may
//! be dead. No NSS: its modules open sockets and wait for servers.

use super::deadline_executor::DeadlineExecutor;
use crate::parse::bytes::{lines, parse_u64};
use crate::root::Root;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Looks between two checks whether the file changed.
const CHECK_INTERVAL_SCANS: u32 = 30;

/// Largest file read: more is no user list.
const MAX_FILE_SIZE: u64 = 16 << 20;

/// Modification time, in s and ns, and size.
type FileStamp = (i64, i64, u64);

/// Reads the names, unless the file still has the stamp `known`.
fn read_passwd(path: &Path, known: Option<FileStamp>) -> Option<(FileStamp, HashMap<u32, Arc<str>>)> {
    let meta = std::fs::metadata(path).ok()?;
    let stamp = (meta.mtime(), meta.mtime_nsec(), meta.len());
    if known == Some(stamp) || !meta.is_file() || meta.len() > MAX_FILE_SIZE {
        return None;
    }
    Some((stamp, parse_passwd(&std::fs::read(path).ok()?)))
}

/// Names by uid; the first entry of a uid wins, as in getpwuid(3).
fn parse_passwd(text: &[u8]) -> HashMap<u32, Arc<str>> {
    let mut names = HashMap::new();
    for line in lines(text) {
        let mut fields = line.split(|b| *b == b':');
        let (Some(name), Some(uid)) = (fields.next(), fields.nth(1).and_then(parse_u64)) else { continue };
        if let Ok(uid) = u32::try_from(uid) {
            names.entry(uid).or_insert_with(|| String::from_utf8_lossy(name).into());
        }
    }
    names
}

/// The names known, and which of them were told already.
pub struct UserNames {
    path: PathBuf,
    executor: DeadlineExecutor,
    stamp: Option<FileStamp>,
    names: HashMap<u32, Arc<str>>,
    reported: HashMap<u32, Option<Arc<str>>>,
    scans: u32,
}

impl UserNames {
    /// Below `root`.
    pub fn new(root: &Root) -> Self {
        Self {
            path: root.etc("passwd"),
            executor: DeadlineExecutor::default(),
            stamp: None,
            names: HashMap::new(),
            reported: HashMap::new(),
            scans: 0,
        }
    }

    /// Forgets what was told: a new listener begins.
    pub fn forget_reported(&mut self) {
        self.reported.clear();
    }

    /// Whether the name of this uid was told (or found missing).
    pub fn has_reported(&self, uid: u32) -> bool {
        self.reported.contains_key(&uid)
    }

    /// Names to tell: of `wanted` users not told yet, and of those whose name changed.
    pub fn take_unreported(&mut self, wanted: &[u32]) -> Vec<(u32, Arc<str>)> {
        let due = self.scans == 0;
        self.scans = (self.scans + 1) % CHECK_INTERVAL_SCANS;
        if due {
            self.refresh();
        }
        for uid in wanted {
            self.reported.entry(*uid).or_insert(None);
        }
        let mut out = Vec::new();
        if due || !wanted.is_empty() {
            for (uid, told) in &mut self.reported {
                if let Some(name) = self.names.get(uid)
                    && told.as_ref() != Some(name)
                {
                    *told = Some(name.clone());
                    out.push((*uid, name.clone()));
                }
            }
        }
        out.sort_unstable();
        out
    }

    fn refresh(&mut self) {
        let (path, stamp) = (self.path.clone(), self.stamp);
        if let Some((stamp, names)) = self.executor.run(move || read_passwd(&path, stamp)).flatten() {
            self.stamp = Some(stamp);
            self.names = names;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_name_is_reported_once_and_again_when_it_changes() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("etc")).unwrap();
        let file = dir.path().join("etc/passwd");
        std::fs::write(&file, "root:x:0:0:root:/root:/bin/sh\n# no user\npg:x:999:1::/:\ntoor:x:0:0::/:\n").unwrap();
        let mut users = UserNames::new(&Root::at(dir.path()));
        assert_eq!(users.take_unreported(&[0, 7]), [(0, Arc::from("root"))]);
        assert_eq!(users.take_unreported(&[999]), [(999, Arc::from("pg"))]);
        assert!(users.has_reported(7) && !users.has_reported(8));
        assert_eq!(users.take_unreported(&[0]), []);
        std::fs::write(&file, "admin:x:0:0:root:/root:/bin/sh\n").unwrap();
        let told: Vec<_> = (0..CHECK_INTERVAL_SCANS).flat_map(|_| users.take_unreported(&[])).collect();
        assert_eq!(told, [(0, Arc::from("admin"))]);
    }
}
