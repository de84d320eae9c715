//! The child processes that read and write recording files, and the parent's ends of their pipes.
//!
//! A disk may hang, and a process that waits for it cannot even be killed. So a child of the same binary does the I/O;
//! it decides nothing, and is abandoned if it does not return.

use crate::model::reading::describe_io_error;
use crate::root::Root;
use crate::subprocess::frame::{self, FrameError};
use crate::subprocess::owner::{ForeignOwner, act_as, find_foreign_owner};
use crate::subprocess::process::ChildProcess;
use anyhow::Context;
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout};

/// The hidden subcommand.
pub(crate) const SUBCOMMAND: &str = "record-io";
/// The longest message, bytes.
const MAX_MESSAGE_BYTES: u32 = 80 << 20;
/// The longest command without its data, bytes.
const MAX_COMMAND_BYTES: u64 = 64 << 10;
/// The most that is read at once, bytes.
const MAX_READ_BYTES: u32 = 1 << 20;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FileWorkerTask {
    /// Write files as commanded.
    Write,
    /// Read pieces of this file.
    Read(PathBuf),
}

/// A command to the writing child. The bytes of a [`WriteCommand::Data`] follow it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum WriteCommand {
    /// Start this file; the one before is complete.
    Open {
        path: PathBuf,
        /// Whether an existing file may be replaced, once the first frame of the new one is on disk.
        replace: bool,
    },
    /// Append as many bytes, which follow.
    Data(u32),
    Sync,
    /// Remove a file of this recording.
    Remove(PathBuf),
}

/// A reply of the writing child.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum WriteReply {
    /// Bytes written to files so far.
    Written(u64),
    /// An error; nothing more is written.
    Failed(String),
    /// Everything is written and on disk.
    Done,
}

/// The number of bytes read, which follow, or an errno.
type ReadReply = Result<usize, i32>;

pub(crate) fn spawn_worker(root: &Root, task: &FileWorkerTask) -> io::Result<ChildProcess> {
    let mut child = ChildProcess::start(Root::self_exe(), root, &[SUBCOMMAND])?;
    if let Some(pipe) = &mut child.stdin {
        frame::write(pipe, task)?;
    }
    Ok(child)
}

pub(crate) fn worker_main() -> anyhow::Result<()> {
    // When the parent exits, the pipe ends, and what is still in it is written.
    crate::subprocess::child::enter(SUBCOMMAND);
    let mut stdin = BufReader::new(io::stdin().lock());
    match frame::read(&mut stdin, MAX_COMMAND_BYTES)?.context("no task")? {
        FileWorkerTask::Write => run_writer(stdin, io::stdout().lock()),
        FileWorkerTask::Read(path) => serve_reads(&path, stdin, io::stdout().lock()),
    }
}

fn run_writer(mut commands: impl BufRead, mut out: impl Write) -> anyhow::Result<()> {
    let mut files = OutputFiles::default();
    let mut failed = false;
    let mut data = Vec::new();
    while let Some(command) = frame::read::<WriteCommand>(&mut commands, MAX_COMMAND_BYTES)? {
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
        let done = files.execute(&command, &data);
        failed = done.is_err();
        let reply =
            done.map_or_else(|e| WriteReply::Failed(e.to_string()), |()| WriteReply::Written(files.total_bytes));
        // The parent may have exited meanwhile; what it sent is written all the same.
        let _ = frame::write(&mut out, &reply);
    }
    if !failed {
        let reply = files.close().map_or_else(|e| WriteReply::Failed(e.to_string()), |()| WriteReply::Done);
        let _ = frame::write(&mut out, &reply);
    }
    Ok(())
}

/// Why a file cannot be read or written, and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{}: {}{}", .0.display(), describe_io_error(.1), next_step(.1))]
    Io(PathBuf, #[source] io::Error),
    #[error("{}: the reading process: {}", .0.display(), describe_io_error(.1))]
    Worker(PathBuf, #[source] io::Error),
    #[error("{}: is not a regular file", .0.display())]
    NotRegular(PathBuf),
    #[error("no file is open")]
    NotOpen,
    #[error("cannot act as the owner of the directory: {0}")]
    Owner(#[source] io::Error),
    #[error("{0}")]
    Reported(String),
}

fn next_step(err: &io::Error) -> &'static str {
    match Errno::from_io_error(err) {
        Some(Errno::EXIST) => "; name another file, or --replace",
        Some(Errno::NOSPC | Errno::DQUOT) => "; free some space or write elsewhere",
        Some(Errno::ROFS | Errno::ACCESS) => "; write elsewhere",
        _ => "",
    }
}

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
    /// Its name until its first frame is on disk, if it replaces a file.
    temp_path: Option<PathBuf>,
    len: u64,
    /// Chunks in it: the header, then frames.
    chunks: u64,
}

impl OutputFiles {
    fn execute(&mut self, command: &WriteCommand, data: &[u8]) -> Result<(), FileError> {
        if let WriteCommand::Open { path, .. } = command {
            let owner = std::path::absolute(path).and_then(|path| find_foreign_owner(path.parent().unwrap_or(&path)));
            self.owner = owner.map_err(|err| FileError::Io(path.clone(), err))?;
        }
        let _acting = self.owner.map(act_as).transpose().map_err(FileError::Owner)?;
        match command {
            WriteCommand::Open { path, replace } => {
                self.close()?;
                let error = |err| FileError::Io(path.clone(), err);
                let open = OutputFile::new(path, *replace).map_err(error)?;
                let stat = rustix::fs::fstat(&open.file).map_err(|err| error(err.into()))?;
                self.created.push((path.clone(), stat.st_dev, stat.st_ino));
                self.current = Some(open);
                Ok(())
            }
            WriteCommand::Data(_) => {
                let open = self.current.as_mut().ok_or(FileError::NotOpen)?;
                let result = open.append(data);
                match result {
                    Ok(()) => self.total_bytes += data.len() as u64,
                    Err(_) if open.chunks < 2 => open.discard(),
                    Err(_) => {}
                }
                result.map_err(|err| FileError::Io(open.path.clone(), err))
            }
            WriteCommand::Sync => match &mut self.current {
                Some(open) => open.file.sync_data().map_err(|err| FileError::Io(open.path.clone(), err)),
                None => Ok(()),
            },
            WriteCommand::Remove(path) => {
                let is_ours = |s: &rustix::fs::Stat| {
                    self.created.iter().any(|(p, dev, ino)| p == path && (*dev, *ino) == (s.st_dev, s.st_ino))
                };
                // A file that somebody else put there is not removed.
                match rustix::fs::lstat(path).is_ok_and(|stat| is_ours(&stat)) {
                    true => std::fs::remove_file(path).map_err(|err| FileError::Io(path.clone(), err)),
                    false => Ok(()),
                }
            }
        }
    }

    fn close(&mut self) -> Result<(), FileError> {
        match self.current.take() {
            Some(open) if open.chunks < 2 => {
                open.discard();
                Ok(())
            }
            Some(open) => open.file.sync_all().map_err(|err| FileError::Io(open.path, err)),
            None => Ok(()),
        }
    }
}

impl OutputFile {
    fn new(path: &Path, replace: bool) -> io::Result<Self> {
        let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "names no file"))?;
        let mut temp_path = None;
        if replace {
            match path.symlink_metadata().map(|meta| meta.file_type()) {
                Ok(kind) if !kind.is_file() && !kind.is_symlink() => {
                    return Err(io::Error::other("is not a regular file and is not replaced"));
                }
                Ok(_) => {
                    let name = format!(".{}.{}", name.to_string_lossy(), std::process::id());
                    temp_path = Some(path.with_file_name(name));
                }
                Err(err) if err.kind() == io::ErrorKind::NotFound => {}
                Err(err) => return Err(err),
            }
        }
        // Neither through a symbolic link nor over an existing file.
        let mut options = File::options();
        let file = options.write(true).create_new(true).mode(0o600).open(temp_path.as_deref().unwrap_or(path))?;
        Ok(Self { file, path: path.to_owned(), temp_path, len: 0, chunks: 0 })
    }

    /// Appends all of `data` or nothing.
    fn append(&mut self, data: &[u8]) -> io::Result<()> {
        if let Err(err) = self.file.write_all(data) {
            let _ = self.file.set_len(self.len);
            return Err(err);
        }
        // With its first frame it is a recording, and replaces the old file.
        if let Some(temporary) = self.temp_path.as_ref().filter(|_| self.chunks > 0) {
            self.file.sync_all()?;
            std::fs::rename(temporary, &self.path)?;
            self.temp_path = None;
        }
        (self.len, self.chunks) = (self.len + data.len() as u64, self.chunks + 1);
        Ok(())
    }

    /// Removes a file into which not even one frame could be written.
    fn discard(&self) {
        let _ = std::fs::remove_file(self.temp_path.as_ref().unwrap_or(&self.path));
    }
}

/// Opens a recording for reading: a regular file, without waiting (for a FIFO, say).
pub(crate) fn open_recording(path: &Path) -> Result<File, FileError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let error = |err: Errno| FileError::Io(path.to_owned(), err.into());
    let fd = rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(error)?;
    match FileType::from_raw_mode(rustix::fs::fstat(&fd).map_err(error)?.st_mode) {
        FileType::RegularFile => Ok(fd.into()),
        _ => Err(FileError::NotRegular(path.to_owned())),
    }
}

/// Serves reads: first why the file cannot be opened, or `null`; then for each offset and length the number of bytes (or
/// an errno) and the bytes.
fn serve_reads(path: &Path, mut requests: impl BufRead, mut out: impl Write) -> anyhow::Result<()> {
    let file = match open_recording(path) {
        Ok(file) => file,
        Err(why) => return Ok(frame::write(&mut out, &Some(why.to_string()))?),
    };
    frame::write(&mut out, &None::<String>)?;
    let mut buf = Vec::new();
    while let Some((at, len)) = frame::read::<(u64, u32)>(&mut requests, MAX_COMMAND_BYTES)? {
        buf.resize(len.min(MAX_READ_BYTES) as usize, 0);
        let read = std::os::unix::fs::FileExt::read_at(&file, &mut buf, at);
        let errno = |err: io::Error| err.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
        let read: ReadReply = read.map_err(errno);
        frame::write(&mut out, &read)?;
        out.write_all(&buf[..read.unwrap_or(0)])?;
        out.flush()?;
    }
    Ok(())
}

/// A file that a child reads. Dropping it ends the child; one that is stuck is abandoned.
pub struct RemoteFile {
    child: ChildProcess,
    stdin: ChildStdin,
    replies: BufReader<ChildStdout>,
}

impl RemoteFile {
    pub fn open(root: &Root, path: &Path) -> Result<Self, FileError> {
        let broken = |err: io::Error| FileError::Worker(path.to_owned(), err);
        let mut child = spawn_worker(root, &FileWorkerTask::Read(path.to_owned())).map_err(broken)?;
        let (stdin, stdout) =
            child.stdin.take().zip(child.stdout.take()).ok_or_else(|| broken(io::ErrorKind::BrokenPipe.into()))?;
        let mut remote = Self { child, stdin, replies: BufReader::new(stdout) };
        match frame::read::<Option<String>>(&mut remote.replies, MAX_COMMAND_BYTES) {
            Ok(Some(None)) => Ok(remote),
            Ok(Some(Some(why))) => Err(FileError::Reported(why)),
            Ok(None) => Err(broken(io::ErrorKind::UnexpectedEof.into())),
            Err(FrameError::Io(err)) => Err(broken(err)),
            Err(err) => Err(broken(io::Error::other(err))),
        }
    }
}

impl super::reader::ReadAt for RemoteFile {
    fn read_at(&mut self, at: u64, buf: &mut [u8]) -> io::Result<usize> {
        let len = buf.len().min(MAX_READ_BYTES as usize) as u32;
        frame::write(&mut self.stdin, &(at, len))?;
        let reply = frame::read::<ReadReply>(&mut self.replies, MAX_COMMAND_BYTES).map_err(io::Error::other)?;
        let read = reply.ok_or(io::ErrorKind::UnexpectedEof)?.map_err(io::Error::from_raw_os_error)?;
        self.replies.read_exact(buf.get_mut(..read).ok_or(io::ErrorKind::InvalidData)?)?;
        Ok(read)
    }
}

impl Drop for RemoteFile {
    fn drop(&mut self) {
        self.child.kill();
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
        let mut commands = frame::to_line(&WriteCommand::Open { path: path.clone(), replace: false }).unwrap();
        for piece in ["header", "frame", "and another"] {
            commands.extend(frame::to_line(&WriteCommand::Data(piece.len() as u32)).unwrap());
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
            let mut commands = frame::to_line(&WriteCommand::Open { path: path.clone(), replace }).unwrap();
            commands.extend(frame::to_line(&WriteCommand::Data(6)).unwrap());
            commands.extend(b"header");
            let mut replies = Vec::new();
            run_writer(commands.as_slice(), &mut replies).unwrap();
            assert!(replies.ends_with(b"\"Done\"\n"));
        }
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "precious");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
