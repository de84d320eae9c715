//! User names from `/etc/passwd`, read on a guarded thread: it lies on the very file system that may
//! be dead. No NSS: its modules open sockets and wait for servers.

use super::guard::{DEADLINE, Guard, Hand, Outcome, Step};
use crate::collect::byte_parse::{lines, parse_u64};
use crate::root::Root;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

/// Looks between two checks whether the file changed.
const EVERY: u32 = 30;

/// Largest file read: more is no user list.
const LIMIT: u64 = 16 << 20;

/// Modification time, in s and ns, and size.
type Stamp = (i64, i64, u64);

struct Passwd(PathBuf);

impl Hand for Passwd {
    type Job = Option<Stamp>;
    type Out = Option<(Stamp, HashMap<u32, Arc<str>>)>;

    /// The names, unless the file still has the stamp.
    fn run(&mut self, known: &Option<Stamp>, _step: &Step) -> Self::Out {
        let meta = std::fs::metadata(&self.0).ok()?;
        let stamp = (meta.mtime(), meta.mtime_nsec(), meta.len());
        if *known == Some(stamp) || !meta.is_file() || meta.len() > LIMIT {
            return None;
        }
        Some((stamp, parse(&std::fs::read(&self.0).ok()?)))
    }
}

/// Names by uid; the first entry of a uid wins, as in getpwuid(3).
fn parse(text: &[u8]) -> HashMap<u32, Arc<str>> {
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
pub struct Users {
    guard: Guard<Passwd>,
    stamp: Option<Stamp>,
    names: HashMap<u32, Arc<str>>,
    told: HashMap<u32, Option<Arc<str>>>,
    looks: u32,
}

impl Users {
    /// Below `root`.
    pub fn new(root: &Root) -> Self {
        let path = root.etc("passwd");
        let guard = Guard::new(DEADLINE, move || Passwd(path.clone()));
        Self { guard, stamp: None, names: HashMap::new(), told: HashMap::new(), looks: 0 }
    }

    /// Forgets what was told: a new listener begins.
    pub fn retell(&mut self) {
        self.told.clear();
    }

    /// Whether the name of this uid was told (or found missing).
    pub fn knows(&self, uid: u32) -> bool {
        self.told.contains_key(&uid)
    }

    /// Names to tell: of `wanted` users not told yet, and of those whose name changed.
    pub fn tell(&mut self, wanted: &[u32], alive: impl FnMut(u32) -> bool) -> Vec<(u32, Arc<str>)> {
        let due = self.looks == 0;
        self.looks = (self.looks + 1) % EVERY;
        if due && self.guard.stuck() == 0 {
            self.refresh(alive);
        }
        for uid in wanted {
            self.told.entry(*uid).or_insert(None);
        }
        let mut out = Vec::new();
        if due || !wanted.is_empty() {
            for (uid, told) in &mut self.told {
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

    fn refresh(&mut self, alive: impl FnMut(u32) -> bool) {
        let mut fresh = None;
        self.guard.run(&[self.stamp], alive, |_, outcome| {
            if let Outcome::Done(found) = outcome {
                fresh = found;
            }
        });
        if let Some((stamp, names)) = fresh {
            self.stamp = Some(stamp);
            self.names = names;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_told_once_and_again_when_it_changes() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("etc")).unwrap();
        let file = dir.path().join("etc/passwd");
        std::fs::write(&file, "root:x:0:0:root:/root:/bin/sh\n# no user\npg:x:999:1::/:\ntoor:x:0:0::/:\n")
            .unwrap();
        let mut users = Users::new(&Root::at(dir.path()));
        assert_eq!(users.tell(&[0, 7], |_| true), [(0, Arc::from("root"))]);
        assert_eq!(users.tell(&[999], |_| true), [(999, Arc::from("pg"))]);
        assert!(users.knows(7) && !users.knows(8));
        assert_eq!(users.tell(&[0], |_| true), []);
        std::fs::write(&file, "admin:x:0:0:root:/root:/bin/sh\n").unwrap();
        let told: Vec<_> = (0..EVERY).flat_map(|_| users.tell(&[], |_| true)).collect();
        assert_eq!(told, [(0, Arc::from("admin"))]);
    }
}
