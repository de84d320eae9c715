//! User names from `/etc/passwd`, read by a child process, because the root file system may be the one that hangs: a
//! thread that waits for it would keep this process from ending. Names that are not there come from [`super::user_resolver`],
//! whenever it answers.

use super::passwd::{Names, SUBCOMMAND, parse_passwd};
use super::stuck_read::DEADLINE;
use super::user_resolver::UserResolver;
use crate::root::Root;
use crate::subprocess::budget::ChildBudget;
use crate::subprocess::child;
use crate::subprocess::request::RequestChild;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Scans between two checks whether the file changed.
const CHECK_INTERVAL_SCANS: u32 = 30;

/// A larger file is not a user list.
const MAX_FILE_SIZE: u64 = 16 << 20;

/// Modification time, in s and ns, and size.
type FileStamp = (i64, i64, u64);

/// The main function of the child: replies to a known stamp with stamp and names, or `null` if they have not changed.
///
/// # Errors
/// If the parent is gone.
pub(crate) fn run_child_process(root: &Root) -> anyhow::Result<()> {
    child::enter(SUBCOMMAND);
    let path = root.etc("passwd");
    child::serve_requests(|known: serde_json::Result<Option<FileStamp>>| Ok(read_passwd(&path, known?)))
}

/// Reads the names, unless the file still has the stamp `known`.
fn read_passwd(path: &Path, known: Option<FileStamp>) -> Option<(FileStamp, Names)> {
    let meta = std::fs::metadata(path).ok()?;
    let stamp = (meta.mtime(), meta.mtime_nsec(), meta.len());
    if known == Some(stamp) || !meta.is_file() || meta.len() > MAX_FILE_SIZE {
        return None;
    }
    Some((stamp, parse_passwd(&std::fs::read(path).ok()?)))
}

/// User names, and which of them were reported.
pub(super) struct UserNames {
    root: Root,
    /// Whether a child has not answered yet.
    is_pending: Arc<AtomicBool>,
    stamp: Option<FileStamp>,
    names: Names,
    /// Names from the system's resolver.
    resolved: Names,
    resolver: UserResolver,
    reported: HashMap<u32, Option<Arc<str>>>,
    scans: u32,
}

impl UserNames {
    /// Reads below `root`.
    pub(super) fn new(root: &Root) -> Self {
        Self {
            root: root.clone(),
            is_pending: Arc::default(),
            stamp: None,
            names: HashMap::new(),
            resolved: HashMap::new(),
            resolver: UserResolver::default(),
            reported: HashMap::new(),
            scans: 0,
        }
    }

    /// Forgets what was reported, for a full update.
    pub(super) fn forget_reported(&mut self) {
        self.reported.clear();
    }

    /// Returns names not reported yet: of the `wanted` users, and of users whose name changed.
    pub(super) fn take_unreported(&mut self, wanted: impl IntoIterator<Item = u32>) -> Vec<(u32, Arc<str>)> {
        if self.scans == 0 {
            self.refresh();
        }
        self.scans = (self.scans + 1) % CHECK_INTERVAL_SCANS;
        for uid in wanted {
            self.reported.entry(uid).or_insert(None);
        }
        // The resolver of a container does not know the users of the host.
        if self.root.is_live() && !self.root.is_of_host() {
            let is_unknown = |uid: &u32| !self.names.contains_key(uid) && !self.resolved.contains_key(uid);
            let unknown = self.reported.keys().copied().filter(is_unknown);
            let arrived = self.resolver.poll(&self.root, unknown);
            self.resolved.extend(arrived);
        }
        let mut out = Vec::new();
        for (uid, reported_name) in &mut self.reported {
            let name = self.names.get(uid).or_else(|| self.resolved.get(uid));
            if name.is_some() && reported_name.as_ref() != name {
                *reported_name = name.cloned();
                out.extend(name.map(|name| (*uid, name.clone())));
            }
        }
        out.sort_unstable();
        out
    }

    fn refresh(&mut self) {
        let read = match self.root.is_live() {
            true => self.read_in_child(),
            // A captured tree is a directory like any other.
            false => read_passwd(&self.root.etc("passwd"), self.stamp),
        };
        if let Some((stamp, names)) = read {
            self.stamp = Some(stamp);
            self.names = names;
        }
    }

    /// Gives the child [`DEADLINE`]. `None` if nothing has changed or is known; at most one child hangs.
    fn read_in_child(&self) -> Option<(FileStamp, Names)> {
        let slot = ChildBudget::shared().acquire().filter(|_| !self.is_pending.load(Relaxed))?;
        let mut child = RequestChild::start(Root::self_exe(), &self.root, &[SUBCOMMAND]).ok()?;
        if child.send([&self.stamp]).is_ok() && child.wait_for_reply(DEADLINE) {
            let reply = child.read_reply().ok().flatten().flatten();
            let _ = child.finish();
            return reply;
        }
        self.is_pending.store(true, Relaxed);
        let is_pending = self.is_pending.clone();
        child.abandon(move || {
            is_pending.store(false, Relaxed);
            drop(slot);
        });
        None
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
        assert_eq!(users.take_unreported([0, 7]), [(0, Arc::from("root"))]);
        assert_eq!(users.take_unreported([999]), [(999, Arc::from("pg"))]);
        assert!(users.take_unreported([7]).is_empty());
        assert_eq!(users.take_unreported([0]), []);
        std::fs::write(&file, "admin:x:0:0:root:/root:/bin/sh\n").unwrap();
        let reported_name: Vec<_> = (0..CHECK_INTERVAL_SCANS).flat_map(|_| users.take_unreported([])).collect();
        assert_eq!(reported_name, [(0, Arc::from("admin"))]);
    }
}
