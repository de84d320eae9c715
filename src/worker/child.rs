//! The child's side: one job in, one reply out.

use super::job::{Job, Reply};
use crate::root::Root;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use std::io::{self, Read, Write};
use std::path::Path;

/// Runs the job that stands on standard input; the reply goes to standard output.
pub fn main(root: &Root) -> anyhow::Result<()> {
    // A session of its own: the terminal's signals and its hang-up are the parent's business.
    let _ = rustix::process::setsid();
    // Started through a link in /proc it would be called `exe`, and so would it be when it is stuck.
    let _ = rustix::thread::set_name(c"iotop-plus");
    // Should the parent be killed, nobody is left to read the reply.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let reply = match serde_json::from_str::<Job>(&text) {
        Ok(job) => job.run(root),
        Err(err) => Reply::Failed(format!("worker: request not understood: {err}")),
    };
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, &reply)?;
    out.flush()?;
    Ok(())
}

/// A config file's text, at most 64 KiB; `None` if there is none. Refused, when run as root, if it is
/// another user's: whoever can write there would steer a root program.
pub fn read_own_file(path: &Path) -> io::Result<Option<String>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
        Ok(fd) => fd,
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(None),
        Err(err) => return Err(err.into()),
    };
    let stat = rustix::fs::fstat(&fd)?;
    let refuse = |why: String| Err(io::Error::other(why));
    if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::RegularFile {
        return refuse("is not a regular file".into());
    }
    if rustix::process::geteuid().is_root() && stat.st_uid != 0 {
        return refuse(format!(
            "belongs to user {}, and root does not read another user's settings; use --config none",
            stat.st_uid
        ));
    }
    if stat.st_size > 64 * 1024 {
        return refuse("is larger than 64 KiB".into());
    }
    let mut text = String::new();
    std::fs::File::from(fd).take(64 * 1024).read_to_string(&mut text)?;
    Ok(Some(text))
}

/// Writes a file so that its old content is intact until the new one is complete and on disk.
pub fn write_file(path: &Path, contents: &str, replace: bool, make_dir: bool) -> io::Result<()> {
    let dir = match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "names no file"))?
        .to_string_lossy()
        .into_owned();
    if make_dir && !dir.exists() {
        use std::os::unix::fs::DirBuilderExt;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    let dir =
        rustix::fs::openat(CWD, dir, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let temporary = format!(".{name}.{}", std::process::id());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(&dir, &temporary, flags, Mode::RUSR | Mode::WUSR)?;
    let mut file = std::fs::File::from(fd);
    let done = file.write_all(contents.as_bytes()).and_then(|()| file.sync_all()).and_then(|()| {
        if replace {
            return Ok(rustix::fs::renameat(&dir, &temporary, &dir, &name)?);
        }
        let no_replace = rustix::fs::RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(&dir, &temporary, &dir, &name, no_replace) {
            Err(rustix::io::Errno::EXIST) => {
                Err(io::Error::new(io::ErrorKind::AlreadyExists, "exists already; name another file"))
            }
            other => Ok(other?),
        }
    });
    if done.is_err() {
        let _ = rustix::fs::unlinkat(&dir, &temporary, AtFlags::empty());
        return done;
    }
    let _ = rustix::fs::fsync(&dir);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, symlink};

    #[test]
    fn files_are_whole_private_and_never_reached_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("victim");
        std::fs::write(&target, "old").unwrap();
        let link = dir.path().join("conf");
        symlink(&target, &link).unwrap();
        write_file(&link, "new", true, false).unwrap();
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "old", "the link was replaced, not followed");
        assert_eq!(std::fs::read_to_string(&link).unwrap(), "new");
        assert_eq!(std::fs::metadata(&link).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn an_existing_file_is_kept_unless_told_and_nothing_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("shot.svg");
        write_file(&path, "1", false, false).unwrap();
        let err = write_file(&path, "2", false, false).unwrap_err();
        assert_eq!(err.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(write_file(&dir.path().join("no/such/f"), "", false, false).is_err());
        write_file(&dir.path().join("made/f"), "", false, true).unwrap();
    }
}
