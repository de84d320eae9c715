//! Stored results: one JSON file each under the state directory, the newest 200.
//!
//! `$XDG_STATE_HOME/iotop-plus/bench`, else `~/.local/state/iotop-plus/bench`, of the user who runs the program;
//! experiments in a directory beside it. Directories 0700, files 0600, nothing through a symlink. Root stores nothing
//! under another user's directories (sudo may leave HOME pointing there). All of this may block on a dead home.

use super::report::{BenchReport, RunEnd, SCHEMA};
use crate::model::reading::describe_io_error;
use crate::units::{format_bytes_long, write_count};
use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub(crate) const MAX_RESULTS: usize = 200;
const MAX_FILE_BYTES: u64 = 64 << 20;

#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("no home directory of this user: set XDG_STATE_HOME to keep results")]
    NoHome,
    #[error("results in {directory}: {}", describe_io_error(source))]
    Io { directory: String, source: std::io::Error },
    #[error("{0}")]
    Unreadable(String),
}

pub(crate) struct ResultStore {
    path: PathBuf,
    kind: &'static str,
}

/// A kind of report that can be stored.
pub trait Storable: Serialize + DeserializeOwned {
    /// The subcommand it belongs to, and its directory's name.
    const KIND: &'static str;
    /// The version of the format that this program reads.
    const SCHEMA: u32;
    /// Time in seconds and profile, as in `1700000000-randrw`.
    fn id(&self) -> &str;
    /// The version it was stored in.
    fn schema(&self) -> u32;
    /// Its summary, without number and name.
    fn summarize(&self) -> StoredReport;
}

impl Storable for BenchReport {
    const KIND: &'static str = "bench";
    const SCHEMA: u32 = SCHEMA;

    fn id(&self) -> &str {
        &self.id
    }

    fn schema(&self) -> u32 {
        self.schema
    }

    fn summarize(&self) -> StoredReport {
        let moved = self.measurements.iter().filter(|p| p.bytes() > 0);
        // Of the fastest measurement.
        let rate = moved.map(|p| (p.iops(), p.bytes_per_s())).max_by(|a, b| a.0.total_cmp(&b.0));
        let directory = self.target.as_ref().map_or("", |t| &t.directory);
        let is_complete = self.end == RunEnd::Complete;
        let mut out = StoredReport {
            profile: self.plan.profile.clone(),
            time: self.time.clone(),
            directory: directory.to_owned(),
            details: ["-".into(), "-".into()],
            summary: format!("{} {directory}", self.time),
            ..StoredReport::default()
        };
        if let Some((iops, bytes)) = rate {
            let bytes = format_bytes_long(bytes as u64);
            out.brief.push(' ');
            write_count(&mut out.brief, iops);
            out.summary += &format!(", {iops:.0} IOPS, {bytes}/s");
            out.details = [format!("{iops:.0}"), bytes];
        }
        if !is_complete {
            out.brief += " part";
            out.summary += ", not complete";
        }
        out
    }
}

/// The summary of a stored report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StoredReport {
    /// Number in the list; the newest is 1.
    pub number: usize,
    /// Its name.
    pub id: String,
    /// Its workload; empty if the report cannot be read.
    pub profile: String,
    /// When it began, RFC 3339.
    pub time: String,
    /// Where its files were; empty without any.
    pub directory: String,
    /// Follows the workload in a narrow list.
    pub brief: String,
    /// The last two cells in a table of such reports.
    pub details: [String; 2],
    /// Everything in a line, or why the report cannot be read.
    pub summary: String,
    /// Whether the report cannot be read.
    pub is_damaged: bool,
}

impl ResultStore {
    /// The user's results of one kind. An error without a home, or for root with another user's home.
    pub(crate) fn for_user_of<T: Storable>() -> Result<Self, StoreError> {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let base = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local").join("state")));
        let base = base.ok_or(StoreError::NoHome)?;
        let path = base.join("iotop-plus").join(T::KIND);
        let foreign = rustix::process::geteuid().is_root() && !path.ancestors().all(is_root_owned_or_missing);
        if foreign { Err(StoreError::NoHome) } else { Ok(Self { path, kind: T::KIND }) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn error(&self, err: impl Into<std::io::Error>) -> StoreError {
        let directory = crate::sanitize::sanitize(self.path.as_os_str().as_encoded_bytes());
        StoreError::Io { directory, source: err.into() }
    }

    fn file(&self, id: &str) -> PathBuf {
        self.path.join(format!("{id}.json"))
    }

    /// Refuses a directory that is a symlink.
    fn check_directory(&self) -> Result<(), StoreError> {
        let meta = std::fs::symlink_metadata(&self.path).map_err(|e| self.error(e))?;
        if meta.is_dir() { Ok(()) } else { Err(self.error(Errno::NOTDIR)) }
    }

    /// Saves `report` and removes the oldest results beyond [`MAX_RESULTS`]. Returns the ID, which may get a suffix.
    pub(crate) fn save<T: Storable>(&self, report: &T) -> Result<String, StoreError> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.path).map_err(|e| self.error(e))?;
        self.check_directory()?;
        let text = serde_json::to_vec(report).map_err(|e| StoreError::Unreadable(e.to_string()))?;
        for n in 0..100 {
            let id = if n == 0 { report.id().to_owned() } else { format!("{}-{n}", report.id()) };
            let path = self.file(&id);
            let mut file = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => file,
                Err(e) if e.kind() == ErrorKind::AlreadyExists => continue,
                Err(e) => return Err(self.error(e)),
            };
            if let Err(e) = file.write_all(&text) {
                let _ = std::fs::remove_file(path);
                return Err(self.error(e));
            }
            for old in self.ids()?.iter().skip(MAX_RESULTS) {
                let _ = std::fs::remove_file(self.file(old));
            }
            return Ok(id);
        }
        Err(StoreError::Unreadable(format!("results: too many runs called {}", report.id())))
    }

    /// All IDs, newest first.
    pub(crate) fn ids(&self) -> Result<Vec<String>, StoreError> {
        let entries = match std::fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(self.error(e)),
        };
        let id = |name: &str| name.strip_suffix(".json").filter(|id| is_valid_id(id)).map(str::to_owned);
        let mut ids: Vec<String> = entries.flatten().filter_map(|e| id(e.file_name().to_str()?)).collect();
        // IDs begin with the time in seconds, and may end with a suffix.
        ids.sort_by_key(|id| {
            let seconds: u64 = id.split('-').next().and_then(|s| s.parse().ok()).unwrap_or(0);
            std::cmp::Reverse((seconds, id.clone()))
        });
        Ok(ids)
    }

    /// Summaries of all reports, newest first. Reads every report.
    pub(crate) fn summaries<T: Storable>(&self) -> Result<Vec<StoredReport>, StoreError> {
        let summarize = |(number, id): (usize, String)| {
            let report = self.load::<T>(&id).map(|report| report.summarize());
            let damaged = |why: StoreError| StoredReport {
                summary: why.to_string(),
                is_damaged: true,
                ..StoredReport::default()
            };
            StoredReport { number, id, ..report.unwrap_or_else(damaged) }
        };
        Ok((1..).zip(self.ids()?).map(summarize).collect())
    }

    /// Loads a result by its ID or its number in the list.
    pub(crate) fn load<T: Storable>(&self, name: &str) -> Result<T, StoreError> {
        let kind = self.kind;
        let shown = crate::sanitize::sanitize(name);
        let failed = StoreError::Unreadable;
        let ids = self.ids()?;
        let id = match name.parse::<usize>() {
            Ok(n) if n >= 1 && n <= ids.len() => ids[n - 1].clone(),
            Ok(n) if n <= MAX_RESULTS => return Err(failed(format!("no result number {n}: {} are kept", ids.len()))),
            _ if is_valid_id(name) => name.to_owned(),
            _ => return Err(failed(format!("{shown}: neither a number nor a name from `{kind} list`"))),
        };
        self.check_directory()?;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(self.file(&id));
        let file = file.map_err(|_| failed(format!("{shown}: no such result; `{kind} list` shows them")))?;
        let mut text = Vec::new();
        file.take(MAX_FILE_BYTES).read_to_end(&mut text).map_err(|e| self.error(e))?;
        let report: T = serde_json::from_slice(&text).map_err(|e| failed(format!("result {id} is damaged: {e}")))?;
        match report.schema() {
            form if form == T::SCHEMA => Ok(report),
            form => Err(failed(format!("result {id} has form {form}, this program reads {}", T::SCHEMA))),
        }
    }
}

/// Whether only root can replace it with a symlink.
fn is_root_owned_or_missing(dir: &Path) -> bool {
    rustix::fs::lstat(dir).map_or(true, |s| s.st_uid == 0)
}

/// Whether a name can be an ID, so that it cannot lead out of the directory.
fn is_valid_id(name: &str) -> bool {
    (1..=80).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bench::plan::BenchPlan;

    fn store_in(path: impl Into<PathBuf>) -> ResultStore {
        ResultStore { path: path.into(), kind: BenchReport::KIND }
    }

    pub(crate) fn empty_report(id: &str) -> BenchReport {
        BenchReport {
            schema: SCHEMA,
            id: id.into(),
            time: String::new(),
            host: "h".into(),
            kernel: "k".into(),
            version: "v".into(),
            plan: BenchPlan::default(),
            target: None,
            measurements: Vec::new(),
            warnings: Vec::new(),
            reference: None,
            conclusion: None,
            end: RunEnd::Complete,
        }
    }

    #[test]
    fn saved_results_load_by_number_and_id() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let store = store_in(dir.path().join("state").join("bench"));
        assert_eq!(store.ids().unwrap(), [""; 0]);
        assert_eq!(store.save(&empty_report("100-randrw")).unwrap(), "100-randrw");
        assert_eq!(store.save(&empty_report("100-randrw")).unwrap(), "100-randrw-1");
        store.save(&empty_report("99-fsync")).unwrap();
        let ids = store.ids().unwrap();
        assert_eq!(ids, ["100-randrw-1", "100-randrw", "99-fsync"]);
        assert_eq!(store.load::<BenchReport>("3").unwrap().id, "99-fsync");
        assert_eq!(store.load::<BenchReport>("100-randrw").unwrap().id, "100-randrw");
        assert!(store.load::<BenchReport>("4").unwrap_err().to_string().contains("3 are kept"));
        let mode = |p: &Path| std::fs::metadata(p).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(store.path()), mode(&store.path().join("99-fsync.json"))), (0o700, 0o600));
    }

    #[test]
    fn ids_cannot_escape_the_directory() {
        let store = store_in("/nonexistent");
        for name in ["../../etc/passwd", "", "a/b", "x\u{1b}[2J"] {
            assert!(store.load::<BenchReport>(name).is_err_and(|e| !e.to_string().contains('\u{1b}')), "{name:?}");
        }
    }

    #[test]
    fn only_the_newest_results_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let store = store_in(dir.path().join("b"));
        for n in 0..MAX_RESULTS + 5 {
            store.save(&empty_report(&format!("{}-x", 1000 + n))).unwrap();
        }
        let all = store.ids().unwrap();
        assert_eq!((all.len(), all[MAX_RESULTS - 1].as_str()), (MAX_RESULTS, "1005-x"));
    }
}
