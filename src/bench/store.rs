//! Results kept between runs: one JSON file each under the state directory, the newest 200.
//!
//! `$XDG_STATE_HOME/iotop-plus/bench`, else `~/.local/state/iotop-plus/bench`: a person's own, root's for
//! root; experiments beside it in a directory of their own. Directories 0700, files 0600, nothing made through a symlink. Root keeps nothing under another
//! user's directories (sudo may leave HOME pointing there). All of this may block on a dead home.

use super::report::{End, Report, SCHEMA};
use crate::model::reading::describe_io_error;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Results kept.
pub const KEEP: usize = 200;
/// A file larger than this is not one of ours.
const MAX_FILE: u64 = 64 << 20;

/// The directory of results of one kind.
pub struct Store {
    path: PathBuf,
    kind: &'static str,
}

/// What can be kept.
pub trait Keepable: Serialize + DeserializeOwned {
    /// The subcommand it belongs to, and its directory's name.
    const KIND: &'static str;
    /// The version of the stored form this program reads.
    const SCHEMA: u32;
    /// Time in seconds and what it was, as in `1700000000-randrw`.
    fn id(&self) -> &str;
    /// The version it was stored in.
    fn schema(&self) -> u32;
}

impl Keepable for Report {
    const KIND: &'static str = "bench";
    const SCHEMA: u32 = SCHEMA;

    fn id(&self) -> &str {
        &self.id
    }

    fn schema(&self) -> u32 {
        self.schema
    }
}

/// A kept result, as far as a list shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Number in the list, the newest is 1.
    pub number: usize,
    /// Its name.
    pub id: String,
}

/// A kept result in a line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Number in the list, the newest is 1.
    pub number: usize,
    /// Its name.
    pub id: String,
    /// Its profile; empty where the result cannot be read.
    pub profile: String,
    /// When it began, RFC 3339.
    pub time: String,
    /// Its directory, clean; empty for profiles without one.
    pub place: String,
    /// The best part's operations and bytes per second; `None` where neither was measured.
    pub rate: Option<(f64, f64)>,
    /// It ran to its end.
    pub complete: bool,
    /// Why it cannot be read.
    pub damaged: Option<String>,
}

impl Kept {
    fn of(entry: Entry, report: Result<Report, String>) -> Self {
        let Entry { number, id } = entry;
        let r = match report {
            Ok(report) => report,
            Err(why) => return Self { number, id, damaged: Some(why), ..Self::default() },
        };
        let moved = r.parts.iter().filter(|p| p.read.bytes + p.write.bytes > 0);
        Self {
            number,
            id,
            rate: moved.map(|p| (p.iops(), p.bytes_per_s())).max_by(|a, b| a.0.total_cmp(&b.0)),
            place: r.target.map_or(String::new(), |t| t.directory),
            profile: r.plan.profile,
            time: r.time,
            complete: r.end == End::Complete,
            damaged: None,
        }
    }

    /// When, where, how fast.
    pub fn headline(&self) -> String {
        if let Some(why) = &self.damaged {
            return why.clone();
        }
        let rate = self.rate.map_or(String::new(), |(iops, bytes)| {
            format!(", {iops:.0} IOPS, {}/s", crate::units::format_bytes_long(bytes as u64))
        });
        let end = if self.complete { "" } else { ", not complete" };
        format!("{} {}{rate}{end}", self.time, self.place)
    }
}

impl Store {
    /// The person's own of benchmarks. `None` without a home, or for root with somebody else's.
    pub fn of_person() -> Option<Self> {
        Self::of_person_for::<Report>()
    }

    /// The person's own of one kind.
    pub fn of_person_for<T: Keepable>() -> Option<Self> {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let base = absolute("XDG_STATE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local").join("state")))?;
        let path = base.join("iotop-plus").join(T::KIND);
        let foreign = rustix::process::geteuid().is_root() && !path.ancestors().all(mine_or_missing);
        (!foreign).then_some(Self { path, kind: T::KIND })
    }

    /// In `path`, which is made when something is kept.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), kind: Report::KIND }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self) -> Result<OwnedFd, String> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(CWD, &self.path, flags, Mode::empty()).map_err(|e| self.failed(e))
    }

    fn failed(&self, err: impl Into<std::io::Error>) -> String {
        format!(
            "results in {}: {}",
            crate::text::sanitize(self.path.as_os_str().as_encoded_bytes()),
            describe_io_error(&err.into())
        )
    }

    /// Keeps `report`, and drops the oldest beyond [`KEEP`]. Its id may get a suffix; the kept one comes back.
    pub fn keep<T: Keepable>(&self, report: &T) -> Result<String, String> {
        use std::os::unix::fs::DirBuilderExt;
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.path)
            .map_err(|e| self.failed(e))?;
        let dir = self.open()?;
        let text = serde_json::to_vec(report).map_err(|e| e.to_string())?;
        for n in 0..100 {
            let id = if n == 0 { report.id().to_owned() } else { format!("{}-{n}", report.id()) };
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let fd = match rustix::fs::openat(&dir, format!("{id}.json"), flags, Mode::RUSR | Mode::WUSR) {
                Ok(fd) => fd,
                Err(rustix::io::Errno::EXIST) => continue,
                Err(e) => return Err(self.failed(e)),
            };
            if let Err(e) = std::fs::File::from(fd).write_all(&text) {
                let _ = rustix::fs::unlinkat(&dir, format!("{id}.json"), AtFlags::empty());
                return Err(self.failed(e));
            }
            for old in self.ids()?.into_iter().skip(KEEP) {
                let _ = rustix::fs::unlinkat(&dir, format!("{old}.json"), AtFlags::empty());
            }
            return Ok(id);
        }
        Err(format!("results: too many runs called {}", report.id()))
    }

    /// Names of all, newest first.
    fn ids(&self) -> Result<Vec<String>, String> {
        let entries = match std::fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(self.failed(e)),
        };
        let mut ids: Vec<_> = entries
            .flatten()
            .filter_map(|e| {
                e.file_name().to_str()?.strip_suffix(".json").filter(|id| is_id(id)).map(Into::into)
            })
            .collect();
        // Names begin with the time in seconds; suffixes of the same second follow each other.
        ids.sort_by_key(|id: &String| {
            let seconds: u64 = id.split('-').next().and_then(|s| s.parse().ok()).unwrap_or(0);
            std::cmp::Reverse((seconds, id.clone()))
        });
        Ok(ids)
    }

    /// What is kept, newest first.
    pub fn list(&self) -> Result<Vec<Entry>, String> {
        let ids = self.ids()?;
        Ok(ids.into_iter().enumerate().map(|(i, id)| Entry { number: i + 1, id }).collect())
    }

    /// What is kept, newest first, each with what a line about it needs. Reads every result.
    pub fn kept(&self) -> Result<Vec<Kept>, String> {
        let all = self.list()?;
        Ok(all
            .into_iter()
            .map(|e| (self.load::<Report>(&e.id), e))
            .map(|(report, e)| Kept::of(e, report))
            .collect())
    }

    /// The result called `name`: its id, or its number in the list.
    pub fn load<T: Keepable>(&self, name: &str) -> Result<T, String> {
        let kind = self.kind;
        let shown = crate::text::sanitize(name);
        let ids = self.ids()?;
        let id = match name.parse::<usize>() {
            Ok(n) if n >= 1 && n <= ids.len() => ids[n - 1].clone(),
            Ok(n) if n <= KEEP => return Err(format!("no result number {n}: {} are kept", ids.len())),
            _ if is_id(name) => name.to_owned(),
            _ => return Err(format!("{shown}: neither a number nor a name from `{kind} list`")),
        };
        let dir = self.open()?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd = rustix::fs::openat(&dir, format!("{id}.json"), flags, Mode::empty())
            .map_err(|_| format!("{shown}: no such result; `{kind} list` shows them"))?;
        let mut text = Vec::new();
        std::fs::File::from(fd).take(MAX_FILE).read_to_end(&mut text).map_err(|e| self.failed(e))?;
        let report: T = serde_json::from_slice(&text).map_err(|e| format!("result {id} is damaged: {e}"))?;
        if report.schema() != T::SCHEMA {
            return Err(format!(
                "result {id} has form {}, this program reads {}",
                report.schema(),
                T::SCHEMA
            ));
        }
        Ok(report)
    }
}

/// Whether nobody but root can put a symlink there.
fn mine_or_missing(dir: &Path) -> bool {
    rustix::fs::lstat(dir).map_or(true, |s| s.st_uid == 0)
}

/// Whether a name can be one of ours: nothing that leads out of the directory.
fn is_id(name: &str) -> bool {
    (1..=80).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bench::plan::Plan;

    pub(crate) fn report(id: &str) -> Report {
        Report {
            schema: SCHEMA,
            id: id.into(),
            time: String::new(),
            host: "h".into(),
            kernel: "k".into(),
            version: "v".into(),
            plan: Plan::default(),
            target: None,
            parts: Vec::new(),
            warnings: Vec::new(),
            ruler: None,
            end: End::Complete,
        }
    }

    #[test]
    fn kept_results_come_back_by_number_and_name() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path().join("state").join("bench"));
        assert_eq!(store.list().unwrap(), []);
        assert_eq!(store.keep(&report("100-randrw")).unwrap(), "100-randrw");
        assert_eq!(store.keep(&report("100-randrw")).unwrap(), "100-randrw-1");
        store.keep(&report("99-fsync")).unwrap();
        let ids: Vec<_> = store.list().unwrap().into_iter().map(|e| e.id).collect();
        assert_eq!(ids, ["100-randrw-1", "100-randrw", "99-fsync"]);
        assert_eq!(store.load::<Report>("3").unwrap().id, "99-fsync");
        assert_eq!(store.load::<Report>("100-randrw").unwrap().id, "100-randrw");
        assert!(store.load::<Report>("4").unwrap_err().contains("3 are kept"));
        let mode = |p: &Path| std::fs::metadata(p).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(store.path()), mode(&store.path().join("99-fsync.json"))), (0o700, 0o600));
    }

    #[test]
    fn names_lead_nowhere_else() {
        let store = Store::at("/nonexistent");
        for name in ["../../etc/passwd", "", "a/b", "x\u{1b}[2J"] {
            assert!(store.load::<Report>(name).is_err_and(|e| !e.contains('\u{1b}')), "{name:?}");
        }
    }

    #[test]
    fn only_the_newest_stay() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path().join("b"));
        for n in 0..KEEP + 5 {
            store.keep(&report(&format!("{}-x", 1000 + n))).unwrap();
        }
        let all = store.list().unwrap();
        assert_eq!((all.len(), all[KEEP - 1].id.as_str()), (KEEP, "1005-x"));
    }
}
