//! The config file, read in a child because its file system may not answer.

use crate::model::reading::describe_io_error;
use crate::root::Root;
use crate::sanitize::is_safe;
use rustix::fs::{CWD, Mode, OFlags};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::Path;

/// Themes of the user that are read at most, and entries of their directory that are looked at.
const MAX_THEMES: usize = 64;
const MAX_ENTRIES: usize = 1000;

/// The themes in a directory by name, in this order: the text of each file, or why it could not be read.
pub(super) fn read_themes(directory: &Path) -> Vec<(String, Result<String, String>)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().take(MAX_ENTRIES).flatten();
    let name = |entry: std::fs::DirEntry| entry.file_name().to_str()?.strip_suffix(".toml").map(str::to_owned);
    let mut names: Vec<String> = entries.filter_map(name).filter(|name| name.chars().all(is_safe)).collect();
    names.sort_unstable();
    names.truncate(MAX_THEMES);
    let read = |name: String| {
        let text = read_config_file(&directory.join(format!("{name}.toml")));
        let text = text.map(Option::unwrap_or_default).map_err(|err| describe_io_error(&err));
        (name, text)
    };
    names.into_iter().map(read).collect()
}

/// A config file's text, at most 64 KiB; `None` if there is none. Root refuses another user's, who could control it.
pub(super) fn read_config_file(path: &Path) -> io::Result<Option<String>> {
    // Looked at before it is opened: opening a device node can have effects.
    let file = match rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Ok(file) => file,
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(None),
        Err(err) => return Err(err.into()),
    };
    let stat = rustix::fs::fstat(&file)?;
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
    // The same file, whatever its name leads to by now.
    let fd = rustix::fs::openat(
        CWD,
        Root::live().proc(&format!("self/fd/{}", file.as_raw_fd())),
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    std::fs::File::from(fd).take(64 * 1024).read_to_string(&mut text)?;
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn themes_are_read_by_name_and_only_from_files_of_the_user() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [("b.toml", "# b"), ("a.toml", "# a"), ("a.txt", "no theme"), ("\u{1b}[2J.toml", "")] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        std::fs::create_dir(dir.path().join("c.toml")).unwrap();
        let themes = read_themes(dir.path());
        assert_eq!(themes[..2], [("a".into(), Ok("# a".into())), ("b".into(), Ok("# b".into()))]);
        assert!(themes.len() == 3 && themes[2].1.as_ref().unwrap_err().contains("not a regular file"), "{themes:?}");
        assert_eq!(read_themes(&dir.path().join("none")), []);
    }

    #[test]
    fn what_is_no_file_is_not_opened() {
        use rustix::fs::{FileType, inotify, mknodat};
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("config.toml");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        // Opening the pipe would wait for a writer.
        let _writer = std::fs::File::options().read(true).write(true).open(&pipe).unwrap();
        let opened = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
        inotify::add_watch(&opened, &pipe, inotify::WatchFlags::OPEN).unwrap();
        let has_opened = || rustix::io::read(&opened, &mut [0; 4096]).is_ok();
        assert!(read_config_file(&pipe).unwrap_err().to_string().contains("not a regular file"));
        assert!(!has_opened());
        drop(std::fs::File::open(&pipe).unwrap());
        assert!(has_opened());
    }

    #[test]
    fn root_reads_no_other_users_settings_and_no_device() {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("config.toml");
        assert_eq!(read_config_file(&config).unwrap(), None);
        std::fs::write(&config, "mouse = true\n").unwrap();
        assert_eq!(read_config_file(&config).unwrap().as_deref(), Some("mouse = true\n"));
        assert!(read_config_file(Root::null()).unwrap_err().to_string().contains("not a regular file"));
        if !rustix::process::geteuid().is_root() {
            return println!("skipped root_reads_no_other_users_settings_and_no_device: needs root");
        }
        std::os::unix::fs::chown(&config, Some(12345), None).unwrap();
        assert!(read_config_file(&config).unwrap_err().to_string().contains("belongs to user 12345"));
    }
}
