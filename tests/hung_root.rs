//! The program on a root file system whose disk hangs: its binary, its libraries, `/etc`, `/usr`, the home directory and
//! `/run` lie on a disk where every read and write waits. The page cache is dropped before: what the program needs from
//! then on must have been locked in memory.
//!
//! Needs root, FUSE, loop devices, util-linux and e2fsprogs; otherwise the test prints that it is skipped.

mod hung_fs;
mod pty_harness;

use hung_fs::hanging_disk::HangingDisk;
use hung_fs::{missing_requirement, run_command, run_in_mount_namespace};
use pty_harness::{BINARY, Terminal, TerminalOptions};
use std::path::{Path, PathBuf};
use std::process::Command;

const UNREAD_FILE: &str = "unread";
const LAB_ENV: &str = "IOTOP_PLUS_HUNG_ROOT";

#[test]
fn the_program_goes_on_when_its_own_disk_hangs() {
    if let Some(missing) = missing_requirement(&["unshare", "losetup", "mkfs.ext4", "chroot"]) {
        eprintln!("SKIPPED the_program_goes_on_when_its_own_disk_hangs: {missing}");
        return;
    }
    run_in_mount_namespace("the_program_goes_on_when_its_own_disk_hangs", LAB_ENV);
}

/// A root file system with the program on a device of its own.
struct RootDisk {
    mount_point: PathBuf,
    disk: HangingDisk,
}

impl RootDisk {
    fn mount(dir: &Path) -> Result<Self, String> {
        let (disk, mount_point) = (HangingDisk::create(dir, 512 << 20)?, dir.join("root"));
        std::fs::create_dir(&mount_point).map_err(|e| e.to_string())?;
        run_command("mkfs.ext4", &["-qF", &disk.device])?;
        run_command("mount", &[&disk.device, mount_point.to_str().unwrap()])?;
        let disk = Self { mount_point, disk };
        disk.fill().map_err(|e| e.to_string())?;
        for shared in ["proc", "sys", "dev", "tmp"] {
            let to = disk.mount_point.join(shared);
            run_command("mount", &["--rbind", &format!("/{shared}"), to.to_str().unwrap()])?;
        }
        Ok(disk)
    }

    /// Copies the program with its libraries, and what of `/etc` it reads.
    fn fill(&self) -> std::io::Result<()> {
        for dir in ["proc", "sys", "dev", "tmp", "etc", "run", "root", "usr/bin"] {
            std::fs::create_dir_all(self.mount_point.join(dir))?;
        }
        // Nobody has read it when the disk begins to hang.
        std::fs::write(self.mount_point.join(UNREAD_FILE), vec![1; 1 << 20])?;
        std::fs::copy(BINARY, self.mount_point.join("usr/bin/iotop-plus"))?;
        let listed = Command::new("ldd").arg(BINARY).output()?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let libraries = listed.split_whitespace().filter(|word| word.starts_with('/'));
        for file in libraries.chain(["/etc/passwd", "/etc/localtime"]) {
            let to = self.mount_point.join(&file[1..]);
            std::fs::create_dir_all(to.parent().unwrap())?;
            std::fs::copy(file, to)?;
        }
        Ok(())
    }

    /// From now on every read and write of the disk waits.
    fn hang(&self) {
        run_command("sync", &["-f", self.mount_point.to_str().unwrap()]).unwrap();
        std::fs::write("/proc/sys/vm/drop_caches", "3").unwrap();
        self.disk.hang(true);
        let unread = self.mount_point.join(UNREAD_FILE);
        let read = Command::new("timeout").args(["--signal=KILL", "0.3", "cat"]).arg(unread).output().unwrap();
        assert_ne!(read.stdout.len(), 1 << 20, "the disk does not hang");
    }
}

impl Drop for RootDisk {
    fn drop(&mut self) {
        self.disk.hang(false);
        let _ = run_command("umount", &["-R", "-l", self.mount_point.to_str().unwrap()]);
    }
}

#[test]
#[ignore = "run by the_program_goes_on_when_its_own_disk_hangs in a mount namespace of its own"]
fn in_mount_namespace() {
    let lab = PathBuf::from(std::env::var(LAB_ENV).expect("set by the_program_goes_on_when_its_own_disk_hangs"));
    let disk = match RootDisk::mount(&lab) {
        Ok(disk) => disk,
        Err(why) => {
            eprintln!("SKIPPED {why}");
            return;
        }
    };
    let root = disk.mount_point.to_str().unwrap();
    let mut t = Terminal::start(TerminalOptions {
        program: Path::new("/usr/sbin/chroot"),
        args: vec![root, "/usr/bin/iotop-plus", "-d", "0.2"],
        env: vec![("HOME", "/root")],
        size: (160, 45),
    });
    t.wait_for_text("q quit");
    // It says so once everything has been read.
    t.send("?\x1b[F");
    t.wait_for_text("locked in memory:");
    t.send("\x1b");
    disk.hang();
    use_every_view(&mut t);
    t.send("q");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
    t.assert_restored(1);
}

/// Shows every view for the first time, while nothing can be read from the disk.
fn use_every_view(t: &mut Terminal) {
    let views = [
        ("2", "recent past"),
        ("3", "READ/s"),
        ("4", "Pressure"),
        ("5", "Kernel log"),
        ("b", "Bench"),
        ("t", "Tune"),
        ("f", "Findings"),
        ("?", "Help"),
        ("\x1b", "Findings"),
        ("1", "Writeback"),
    ];
    for (key, text) in views {
        t.send(key);
        t.wait_for_text(text);
    }
    // Children start: the settings come from one, and so does what is known of a path.
    t.send("t");
    t.wait_for_text("vm.dirty_ratio");
    t.send(":path /usr/bin\r");
    t.wait_for_text("mounted at");
    t.take_frame_times();
    t.wait_for_output("frames", |seen| seen.frame_times.len() > 10);
}
