//! The child processes that read and write recording files, and the parent's ends of their pipes.
//!
//! A disk may hang, and a process that waits for it cannot even be killed. So a child of the same binary does the I/O;
//! it decides nothing, and is abandoned if it does not return.

use crate::model::reading::describe_io_error;
use crate::root::Root;
use crate::subprocess::owner::{ForeignOwner, act_as, find_foreign_owner};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Child;

/// The hidden subcommand.
pub const SUBCOMMAND: &str = "record-io";
/// The longest message, bytes.
const MAX_MESSAGE_BYTES: u32 = 80 << 20;
/// The most that is read at once, bytes.
const MAX_READ_BYTES: u32 = 1 << 20;

/// What a child is started for.
#[derive(Debug, Serialize, Deserialize)]
pub enum FileWorkerTask {
    /// Write files as commanded.
    Write,
    /// Read pieces of this file.
    Read(PathBuf),
}

/// A command to the writing child. The bytes of a [`WriteCommand::Data`] follow it.
#[derive(Debug, Serialize, Deserialize)]
pub enum WriteCommand {
    /// Start this file; the one before is complete.
    Open {
        /// Its path.
        path: PathBuf,
        /// Whether an existing file may be replaced, once the first frame of the new one is on disk.
        replace: bool,
    },
    /// Append as many bytes, which follow.
    Data(u32),
    /// Sync the file to the disk.
    Sync,
    /// Remove a file of this recording.
    Remove(PathBuf),
}

/// A reply of the writing child.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WriteReply {
    /// Bytes written to files so far.
    Written(u64),
    /// An error; nothing more is written.
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

/// A message as a line of JSON.
pub fn to_json_line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// The main function of the child.
pub fn worker_main() -> anyhow::Result<()> {
    // When the parent exits, the pipe ends, and what is still in it is written.
    crate::subprocess::child::enter();
    let mut stdin = BufReader::new(io::stdin().lock());
    let mut first = Vec::new();
    (&mut stdin).take(64 << 10).read_until(b'\n', &mut first)?;
    match serde_json::from_slice(&first)? {
        FileWorkerTask::Write => run_writer(stdin, io::stdout().lock()),
        FileWorkerTask::Read(path) => Ok(serve_reads(&path, stdin, io::stdout().lock())?),
    }
}

fn run_writer(mut commands: impl BufRead, mut out: impl Write) -> anyhow::Result<()> {
    let mut files = OutputFiles::default();
    let mut failed = false;
    let mut text = Vec::new();
    let mut data = Vec::new();
    loop {
        text.clear();
        if (&mut commands).take(64 << 10).read_until(b'\n', &mut text)? == 0 {
            break;
        }
        let command: WriteCommand = serde_json::from_slice(&text)?;
        if let WriteCommand::Data(n) = command {
            anyhow::ensure!(n <= MAX_MESSAGE_BYTES, "too much at once");
            data.resize(n as usize, 0);
            if commands.read_exact(&mut data).is_err() {
                // The parent was killed while it wrote: part of a frame is useless.
                break;
            }
        }
        if failed {
            continue;
        }
        let reply =
            files.execute(&command, &data).map_or_else(WriteReply::Failed, |()| WriteReply::Written(files.total_bytes));
        failed = matches!(reply, WriteReply::Failed(_));
        send_reply(&mut out, &reply);
    }
    if !failed {
        send_reply(&mut out, &files.close().map_or_else(WriteReply::Failed, |()| WriteReply::Done));
    }
    Ok(())
}

/// Replies to the parent. It may have exited meanwhile; what it sent is written all the same.
fn send_reply(out: &mut impl Write, reply: &WriteReply) {
    let _ = out.write_all(&to_json_line(reply)).and_then(|()| out.flush());
}

/// The files of one recording.
#[derive(Default)]
struct OutputFiles {
    current: Option<OutputFile>,
    /// Created by this recording: path, device and inode.
    created: Vec<(PathBuf, u64, u64)>,
    total_bytes: u64,
    /// As whom root writes: the owner of the directory.
    owner: Option<ForeignOwner>,
}

struct OutputFile {
    file: File,
    path: PathBuf,
    dir: OwnedFd,
    name: String,
    /// Its name until its first frame is on disk, if it replaces a file.
    temp_name: Option<String>,
    len: u64,
    /// Chunks in it: the header, then frames.
    chunks: u64,
}

impl OutputFiles {
    fn execute(&mut self, command: &WriteCommand, data: &[u8]) -> Result<(), String> {
        if let WriteCommand::Open { path, .. } = command {
            let owner = std::path::absolute(path).and_then(|path| find_foreign_owner(path.parent().unwrap_or(&path)));
            self.owner = owner.map_err(|err| describe_error(path, &err))?;
        }
        let acting = self.owner.map(act_as).transpose();
        let _acting = acting.map_err(|err| format!("cannot act as the owner of the directory: {err}"))?;
        match command {
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
                let is_ours = |s: &rustix::fs::Stat| {
                    self.created.iter().any(|(p, dev, ino)| p == path && (*dev, *ino) == (s.st_dev, s.st_ino))
                };
                // A file that somebody else put there is not removed.
                if stat.as_ref().is_ok_and(is_ours) {
                    std::fs::remove_file(path).map_err(|err| describe_error(path, &err))?;
                }
                Ok(())
            }
        }
    }

    fn close(&mut self) -> Result<(), String> {
        match self.current.take() {
            Some(open) if open.chunks < 2 => {
                open.discard();
                Ok(())
            }
            Some(open) => open.file.sync_all().map_err(|err| describe_error(&open.path, &err)),
            None => Ok(()),
        }
    }
}

fn describe_error(path: &Path, err: &io::Error) -> String {
    let hint = match rustix::io::Errno::from_io_error(err) {
        Some(rustix::io::Errno::EXIST) => "; name another file, or --replace",
        Some(rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT) => "; free some space or write elsewhere",
        Some(rustix::io::Errno::ROFS | rustix::io::Errno::ACCESS) => "; write elsewhere",
        _ => "",
    };
    format!("{}: {}{hint}", path.display(), describe_io_error(err))
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
                    return Err(io::Error::other("is not a regular file and is not replaced"));
                }
                Ok(_) => temporary = Some(format!(".{name}.{}", std::process::id())),
                Err(rustix::io::Errno::NOENT) => {}
                Err(err) => return Err(err.into()),
            }
        }
        // Neither through a symbolic link nor over an existing file.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let created = temporary.as_ref().unwrap_or(&name);
        let file = rustix::fs::openat(&dir, created, flags, Mode::RUSR | Mode::WUSR)?.into();
        Ok(Self { file, path: path.to_owned(), dir, name, temp_name: temporary, len: 0, chunks: 0 })
    }

    /// Appends all of `data` or nothing.
    fn append(&mut self, data: &[u8]) -> io::Result<()> {
        if let Err(err) = self.file.write_all(data) {
            let _ = self.file.set_len(self.len);
            return Err(err);
        }
        // With its first frame it is a recording, and replaces the old file.
        if let Some(temporary) = self.temp_name.as_ref().filter(|_| self.chunks > 0) {
            self.file.sync_all()?;
            rustix::fs::renameat_with(&self.dir, temporary, &self.dir, &self.name, RenameFlags::empty())?;
            self.temp_name = None;
        }
        (self.len, self.chunks) = (self.len + data.len() as u64, self.chunks + 1);
        Ok(())
    }

    /// Removes a file into which not even one frame could be written.
    fn discard(&self) {
        let name = self.temp_name.as_ref().unwrap_or(&self.name);
        let _ = rustix::fs::unlinkat(&self.dir, name, AtFlags::empty());
    }
}

/// Opens a recording for reading: a regular file, without waiting (for a FIFO, say).
pub fn open_recording(path: &Path) -> Result<File, String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let error = |err: io::Error| format!("{}: {}", path.display(), describe_io_error(&err));
    let fd = rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(|err| error(err.into()))?;
    let stat = rustix::fs::fstat(&fd).map_err(|err| error(err.into()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(format!("{}: is not a regular file", path.display()));
    }
    Ok(fd.into())
}

/// Serves reads: first why the file cannot be opened, or `null`; then for each offset and length the number of bytes
/// (or a negative errno) and the bytes.
fn serve_reads(path: &Path, mut requests: impl Read, mut out: impl Write) -> io::Result<()> {
    let file = match open_recording(path) {
        Ok(file) => file,
        Err(why) => return out.write_all(&to_json_line(&Some(why))),
    };
    out.write_all(&to_json_line(&None::<String>))?;
    out.flush()?;
    let mut buf = Vec::new();
    loop {
        let mut request = [0; 12];
        if requests.read_exact(&mut request).is_err() {
            return Ok(());
        }
        let at = u64::from_le_bytes(std::array::from_fn(|i| request[i]));
        let n = u32::from_le_bytes(std::array::from_fn(|i| request[8 + i])).min(MAX_READ_BYTES);
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

/// A file that a child reads. Dropping it ends the child; one that is stuck is abandoned.
pub struct RemoteFile {
    child: Child,
}

impl RemoteFile {
    /// Opens the file.
    ///
    /// # Errors
    ///
    /// Which file, why, and what to do next.
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
        let mut request = at.to_le_bytes().to_vec();
        request.extend(n.to_le_bytes());
        self.child.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.write_all(&request)?;
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

    /// The pipe to a parent that has exited.
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
        let mut commands = to_json_line(&WriteCommand::Open { path: path.clone(), replace: false });
        for piece in ["header", "frame", "and another"] {
            commands.extend(to_json_line(&WriteCommand::Data(piece.len() as u32)));
            commands.extend(piece.as_bytes());
        }
        run_writer(commands.as_slice(), ClosedPipe).unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), "headerframeand another");
    }

    #[test]
    fn a_file_without_a_frame_is_not_left_behind() {
        let dir = tempfile::tempdir().unwrap();
        let (new, old) = (dir.path().join("new"), dir.path().join("old"));
        std::fs::write(&old, "precious").unwrap();
        for (path, replace) in [(&new, false), (&old, true)] {
            let mut commands = to_json_line(&WriteCommand::Open { path: path.clone(), replace });
            commands.extend(to_json_line(&WriteCommand::Data(6)));
            commands.extend(b"header");
            let mut replies = Vec::new();
            run_writer(commands.as_slice(), &mut replies).unwrap();
            assert!(replies.ends_with(b"\"Done\"\n"));
        }
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "precious");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
