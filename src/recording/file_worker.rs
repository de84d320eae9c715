//! The child processes that touch recordings, and the parent's ends of their pipes.
//!
//! A disk may hang, and whoever waits for it then cannot even be ended. So a child of the same binary writes
//! and reads; it decides nothing, and is left behind if it does not come back.

use crate::model::reading::describe_io_error;
use crate::root::Root;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Child;

/// The hidden subcommand.
pub const SUBCOMMAND: &str = "record-io";
/// The longest message.
const MAX_MESSAGE_BYTES: u32 = 80 << 20;
/// The longest piece that is read at once.
const MAX_READ_BYTES: u32 = 1 << 20;

/// What a child is for.
#[derive(Debug, Serialize, Deserialize)]
pub enum FileWorkerTask {
    /// Write what follows.
    Write,
    /// Read pieces of this file.
    Read(PathBuf),
}

/// What the writing child is told, before the bytes of a [`Order::Data`].
#[derive(Debug, Serialize, Deserialize)]
pub enum WriteCommand {
    /// Begin this file; the one before is complete.
    Open {
        /// Where.
        path: PathBuf,
        /// An existing file may be replaced, as soon as the first bytes of the new one are on disk.
        replace: bool,
    },
    /// Append so many bytes that follow.
    Data(u32),
    /// Bring what was written to the disk.
    Sync,
    /// Remove a file of this run.
    Remove(PathBuf),
}

/// What the writing child says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WriteReply {
    /// So many bytes are in the file, all told.
    Written(u64),
    /// It cannot be done; nothing more is written.
    Failed(String),
    /// Everything is written and on disk.
    Done,
}

/// Starts a child for `task`.
pub fn spawn_worker(root: &Root, task: &FileWorkerTask) -> io::Result<Child> {
    let mut child = crate::subprocess::command(Root::self_exe(), root, &[SUBCOMMAND]).spawn()?;
    if let Some(pipe) = &mut child.stdin {
        pipe.write_all(&to_json_line(task))?;
    }
    Ok(child)
}

/// One message as a line.
pub fn to_json_line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// The child's whole life.
pub fn worker_main() -> anyhow::Result<()> {
    // When the parent is gone the pipe ends, and what is in it by then is still written.
    crate::subprocess::child::enter();
    let mut stdin = BufReader::new(io::stdin().lock());
    let mut first = Vec::new();
    (&mut stdin).take(64 << 10).read_until(b'\n', &mut first)?;
    match serde_json::from_slice(&first)? {
        FileWorkerTask::Write => run_writer(stdin, io::stdout().lock()),
        FileWorkerTask::Read(path) => Ok(serve_reads(&path, stdin, io::stdout().lock())?),
    }
}

fn run_writer(mut orders: impl BufRead, mut out: impl Write) -> anyhow::Result<()> {
    let mut files = OutputFiles::default();
    let mut failed = false;
    let mut text = Vec::new();
    let mut data = Vec::new();
    loop {
        text.clear();
        if (&mut orders).take(64 << 10).read_until(b'\n', &mut text)? == 0 {
            break;
        }
        let order: WriteCommand = serde_json::from_slice(&text)?;
        if let WriteCommand::Data(n) = order {
            anyhow::ensure!(n <= MAX_MESSAGE_BYTES, "too much at once");
            data.resize(n as usize, 0);
            if orders.read_exact(&mut data).is_err() {
                // The parent was killed in the midst of it: a piece of a frame helps nobody.
                break;
            }
        }
        if failed {
            continue;
        }
        let said =
            files.execute(&order, &data).map_or_else(WriteReply::Failed, |()| WriteReply::Written(files.total_bytes));
        failed = matches!(said, WriteReply::Failed(_));
        send_reply(&mut out, &said);
    }
    if !failed {
        send_reply(&mut out, &files.close().map_or_else(WriteReply::Failed, |()| WriteReply::Done));
    }
    Ok(())
}

/// Tells the parent. It may be gone while the disk was waited for: then nobody hears it, and what it had handed
/// over is written all the same.
fn send_reply(out: &mut impl Write, said: &WriteReply) {
    let _ = out.write_all(&to_json_line(said)).and_then(|()| out.flush());
}

/// The files of one run.
#[derive(Default)]
struct OutputFiles {
    current: Option<OutputFile>,
    /// Made in this run: path, device and inode.
    created: Vec<(PathBuf, u64, u64)>,
    total_bytes: u64,
}

struct OutputFile {
    file: File,
    path: PathBuf,
    dir: OwnedFd,
    name: String,
    /// Under this name until its first bytes are on disk.
    temp_name: Option<String>,
    len: u64,
    /// Pieces in it: the header, then frames.
    chunks: u64,
}

impl OutputFiles {
    fn execute(&mut self, order: &WriteCommand, data: &[u8]) -> Result<(), String> {
        match order {
            WriteCommand::Open { path, replace } => {
                self.close()?;
                let open = OutputFile::new(path, *replace).map_err(|err| describe_error(path, &err))?;
                let stat = rustix::fs::fstat(&open.file).map_err(|err| describe_error(path, &err.into()))?;
                self.created.push((path.clone(), stat.st_dev, stat.st_ino));
                self.current = Some(open);
                Ok(())
            }
            WriteCommand::Data(_) => {
                let Some(open) = &mut self.current else { return Err("no file is open".into()) };
                let result = open.append(data).map_err(|err| describe_error(&open.path, &err));
                match result {
                    Ok(()) => self.total_bytes += data.len() as u64,
                    Err(_) if open.chunks < 2 => open.discard(),
                    Err(_) => {}
                }
                result
            }
            WriteCommand::Sync => match &mut self.current {
                Some(open) => open.file.sync_data().map_err(|err| describe_error(&open.path, &err)),
                None => Ok(()),
            },
            WriteCommand::Remove(path) => {
                let stat = rustix::fs::lstat(path).map_err(|err| describe_error(path, &err.into()));
                let mine = |s: &rustix::fs::Stat| {
                    self.created.iter().any(|(p, dev, ino)| p == path && (*dev, *ino) == (s.st_dev, s.st_ino))
                };
                // Somebody else put another there, or took ours away: not ours to remove.
                if stat.as_ref().is_ok_and(mine) {
                    std::fs::remove_file(path).map_err(|err| describe_error(path, &err))?;
                }
                Ok(())
            }
        }
    }

    fn close(&mut self) -> Result<(), String> {
        match self.current.take() {
            Some(open) if open.temp_name.is_some() => {
                open.discard();
                Ok(())
            }
            Some(open) => open.file.sync_all().map_err(|err| describe_error(&open.path, &err)),
            None => Ok(()),
        }
    }
}

fn describe_error(path: &Path, err: &io::Error) -> String {
    let next = match rustix::io::Errno::from_io_error(err) {
        Some(rustix::io::Errno::EXIST) => "; name another file, or --replace",
        Some(rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT) => "; free some space or write elsewhere",
        Some(rustix::io::Errno::ROFS | rustix::io::Errno::ACCESS) => "; write elsewhere",
        _ => "",
    };
    format!("{}: {}{next}", path.display(), describe_io_error(err))
}

impl OutputFile {
    fn new(path: &Path, replace: bool) -> io::Result<Self> {
        let dir = path.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = path
            .file_name()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "names no file"))?
            .to_string_lossy()
            .into_owned();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::openat(CWD, dir, flags, Mode::empty())?;
        let mut temporary = None;
        if replace {
            match rustix::fs::statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW).map(|s| s.st_mode) {
                Ok(mode) if !matches!(FileType::from_raw_mode(mode), FileType::RegularFile | FileType::Symlink) => {
                    return Err(io::Error::other("is no regular file, and is not replaced"));
                }
                Ok(_) => temporary = Some(format!(".{name}.{}", std::process::id())),
                Err(rustix::io::Errno::NOENT) => {}
                Err(err) => return Err(err.into()),
            }
        }
        // Neither through a link nor onto what is there.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = temporary.as_ref().unwrap_or(&name);
        let file = rustix::fs::openat(&dir, made, flags, Mode::RUSR | Mode::WUSR)?.into();
        Ok(Self { file, path: path.to_owned(), dir, name, temp_name: temporary, len: 0, chunks: 0 })
    }

    /// Appends all of it or nothing.
    fn append(&mut self, data: &[u8]) -> io::Result<()> {
        if let Err(err) = self.file.write_all(data) {
            let _ = self.file.set_len(self.len);
            return Err(err);
        }
        // It takes the old one's place when it is a recording: with its first frame.
        if let Some(temporary) = self.temp_name.as_ref().filter(|_| self.chunks > 0) {
            self.file.sync_all()?;
            rustix::fs::renameat_with(&self.dir, temporary, &self.dir, &self.name, RenameFlags::empty())?;
            self.temp_name = None;
        }
        (self.len, self.chunks) = (self.len + data.len() as u64, self.chunks + 1);
        Ok(())
    }

    /// Takes away a file into which not even one frame could be written.
    fn discard(&self) {
        let name = self.temp_name.as_ref().unwrap_or(&self.name);
        let _ = rustix::fs::unlinkat(&self.dir, name, AtFlags::empty());
    }
}

/// Opens a recording to be read: a regular file, and nothing that waits.
pub fn open_recording(path: &Path) -> Result<File, String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let told = |err: io::Error| format!("{}: {}", path.display(), describe_io_error(&err));
    let fd = rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(|err| told(err.into()))?;
    let stat = rustix::fs::fstat(&fd).map_err(|err| told(err.into()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(format!("{}: is not a regular file", path.display()));
    }
    Ok(fd.into())
}

/// Serves pieces of a file: first why it cannot be opened, or an empty line; then for each place and length the
/// count of bytes (or, negative, an errno) and the bytes.
fn serve_reads(path: &Path, mut asks: impl Read, mut out: impl Write) -> io::Result<()> {
    let file = match open_recording(path) {
        Ok(file) => file,
        Err(why) => return out.write_all(&to_json_line(&Some(why))),
    };
    out.write_all(&to_json_line(&None::<String>))?;
    out.flush()?;
    let mut buf = Vec::new();
    loop {
        let mut ask = [0; 12];
        if asks.read_exact(&mut ask).is_err() {
            return Ok(());
        }
        let at = u64::from_le_bytes(std::array::from_fn(|i| ask[i]));
        let n = u32::from_le_bytes(std::array::from_fn(|i| ask[8 + i])).min(MAX_READ_BYTES);
        buf.resize(n as usize, 0);
        match std::os::unix::fs::FileExt::read_at(&file, &mut buf, at) {
            Ok(n) => {
                out.write_all(&(n as i32).to_le_bytes())?;
                out.write_all(&buf[..n])?;
            }
            Err(err) => {
                let code = err.raw_os_error().unwrap_or(rustix::io::Errno::IO.raw_os_error());
                out.write_all(&(-code).to_le_bytes())?;
            }
        }
        out.flush()?;
    }
}

/// A file read by a child. It ends with its pipes; a child that is stuck is left behind.
pub struct RemoteFile {
    child: Child,
}

impl RemoteFile {
    /// Opens the file; an error says which, why, and what next.
    pub fn open(root: &Root, path: &Path) -> Result<Self, String> {
        let broken = |err: io::Error| format!("{}: the reading process: {}", path.display(), describe_io_error(&err));
        let mut remote = Self { child: spawn_worker(root, &FileWorkerTask::Read(path.to_owned())).map_err(broken)? };
        let mut first = Vec::new();
        let mut byte = [0];
        while byte[0] != b'\n' && first.len() < 64 << 10 {
            remote.read_exact(&mut byte).map_err(broken)?;
            first.push(byte[0]);
        }
        match serde_json::from_slice::<Option<String>>(&first) {
            Ok(None) => Ok(remote),
            Ok(Some(why)) => Err(why),
            Err(err) => Err(broken(err.into())),
        }
    }

    fn read_exact(&mut self, buf: &mut [u8]) -> io::Result<()> {
        match &mut self.child.stdout {
            Some(pipe) => pipe.read_exact(buf),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl super::reader::ReadAt for RemoteFile {
    fn read_at(&mut self, at: u64, buf: &mut [u8]) -> io::Result<usize> {
        let n = (buf.len() as u64).min(u64::from(MAX_READ_BYTES)) as u32;
        let mut ask = at.to_le_bytes().to_vec();
        ask.extend(n.to_le_bytes());
        self.child.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.write_all(&ask)?;
        let mut count = [0; 4];
        self.read_exact(&mut count)?;
        match i32::from_le_bytes(count) {
            code if code < 0 => Err(io::Error::from_raw_os_error(-code)),
            n if n as usize > buf.len() => Err(io::ErrorKind::InvalidData.into()),
            n => {
                self.read_exact(&mut buf[..n as usize])?;
                Ok(n as usize)
            }
        }
    }
}

impl Drop for RemoteFile {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.try_wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A parent that is gone.
    struct ClosedPipe;

    impl Write for ClosedPipe {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }

    #[test]
    fn pending_data_is_written_after_the_parent_exits() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.iotop");
        let mut orders = to_json_line(&WriteCommand::Open { path: path.clone(), replace: false });
        for piece in ["header", "frame", "and another"] {
            orders.extend(to_json_line(&WriteCommand::Data(piece.len() as u32)));
            orders.extend(piece.as_bytes());
        }
        run_writer(orders.as_slice(), ClosedPipe).unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), "headerframeand another");
    }
}
