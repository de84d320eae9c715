//! Screenshots with the real program: the files written, and the messages when that fails.

mod pty_harness;

use pty_harness::{Terminal, TerminalOptions, list_files};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

fn start_and_wait() -> Terminal {
    let t = Terminal::start(TerminalOptions {
        args: vec!["--config", "none"],
        size: (120, 40),
        ..TerminalOptions::default()
    });
    t.wait_for_text("q quit");
    t
}

/// Takes a screenshot with this name instead of the proposed one.
fn take_screenshot(t: &mut Terminal, name: &str) {
    t.send("s");
    t.wait_for_text("to file (Tab");
    t.send(format!("\x15{name}\r"));
}

fn quit(mut t: Terminal) {
    t.send("q");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
    t.assert_restored(1);
}

#[test]
fn a_screenshot_is_complete_and_private() {
    let mut t = start_and_wait();
    t.wait_until("figures", |s| s.contents().contains(" id "));
    t.send("s\r");
    t.wait_for_text("written: ");
    let all = list_files(t.home.path());
    let [file] = &all[..] else { panic!("{all:?}") };
    let name = file.file_name().unwrap().to_str().unwrap();
    let form = regex_lite::Regex::new(r"^[A-Za-z0-9._-]+-screen-\d{8}T\d{6}\.png$").unwrap();
    assert!(form.is_match(name), "{name}");
    assert!(t.contents().contains(name), "{}", t.contents());
    assert_eq!(std::fs::metadata(file).unwrap().mode() & 0o777, 0o600);
    let decoder = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(file).unwrap()));
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let frame = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((frame.width, frame.height), (120 * 12 + 16, 40 * 24 + 16));
    quit(t);
}

#[test]
fn existing_files_stay_and_symlinks_are_not_followed() {
    let mut t = start_and_wait();
    let at = |name: &str| t.home.path().join(name);
    let (victim, old, numbered) = (at("victim"), at("old.txt"), [at("link-2.svg"), at("old-2.txt")]);
    std::fs::write(&victim, "precious").unwrap();
    std::fs::write(&old, "precious").unwrap();
    symlink(&victim, at("link.svg")).unwrap();
    for (typed, there) in [("link.svg", &numbered[0]), ("old.txt", &numbered[1])] {
        take_screenshot(&mut t, typed);
        t.wait_for_text(&format!("{} (", there.file_name().unwrap().to_str().unwrap()));
        assert!(std::fs::read_to_string(there).unwrap().contains("Overview"), "{there:?}");
    }
    for path in [victim, old] {
        assert_eq!(std::fs::read_to_string(path).unwrap(), "precious");
    }
    quit(t);
}

#[test]
fn a_failed_write_names_the_path_and_a_next_step() {
    let mut t = start_and_wait();
    take_screenshot(&mut t, "/no/such/dir/x.png");
    t.wait_for_text("/no/such/dir/x.png not written: no such file or directory; name a directory that exists");
    let locked = t.home.path().join("locked");
    std::fs::create_dir(&locked).unwrap();
    let mounted = rustix::process::geteuid().is_root() && mount(&locked, "ro");
    if !mounted && rustix::process::geteuid().is_root() {
        println!("SKIPPED a read-only directory: root may write anywhere, and cannot mount tmpfs");
        return quit(t);
    }
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o555)).unwrap_or_default();
    take_screenshot(&mut t, "locked/x.png");
    t.wait_until("the reason", |s| {
        let s = s.contents();
        s.contains("read-only file system; write elsewhere") || s.contains("permission denied; name a directory")
    });
    if mounted {
        umount(&locked);
    }
    quit(t);
}

/// Needs root and tmpfs.
#[test]
fn a_full_disk_leaves_the_old_file_and_nothing_else() {
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED a_full_disk_leaves_the_old_file_and_nothing_else: needs root");
    }
    let dir = tempfile::tempdir().unwrap();
    if !mount(dir.path(), "size=64k") {
        return println!("SKIPPED a_full_disk_leaves_the_old_file_and_nothing_else: cannot mount tmpfs");
    }
    std::fs::write(dir.path().join("ballast"), vec![7; 60 << 10]).unwrap();
    let old = dir.path().join("x.svg");
    std::fs::write(&old, "old").unwrap();
    let mut t = start_and_wait();
    take_screenshot(&mut t, old.to_str().unwrap());
    t.wait_for_text("x.svg not written: no space left on device; nothing was left there; write elsewhere or make room");
    let (kept, names) = (std::fs::read_to_string(&old).unwrap(), list_files(dir.path()).len());
    umount(dir.path());
    assert_eq!((kept.as_str(), names), ("old", 2));
    quit(t);
}

fn mount(at: &Path, options: &str) -> bool {
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(at).status();
    mounted.is_ok_and(|s| s.success())
}

fn umount(at: &Path) {
    let _ = Command::new("umount").arg(at).status();
}
