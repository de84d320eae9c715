//! A file system on a device, mounted for the time of a test.

use std::path::Path;
use std::process::{Command, Stdio};

/// A file system on a device, mounted until this is dropped.
pub struct Mounted {
    /// Mount point.
    pub dir: tempfile::TempDir,
}

impl Mounted {
    /// Formats and mounts the device.
    pub fn new(mkfs: &[&str], device: &Path) -> Result<Self, String> {
        let run = |command: &mut Command| {
            let name = format!("{:?}", command.get_program());
            let out = command.stdin(Stdio::null()).output().map_err(|err| format!("needs {name}: {err}"))?;
            let message = String::from_utf8_lossy(&out.stderr).trim().to_owned();
            out.status.success().then_some(()).ok_or_else(|| format!("needs {name}: {message}"))
        };
        run(Command::new(mkfs[0]).args(&mkfs[1..]).arg(device))?;
        let dir = tempfile::tempdir().map_err(|err| err.to_string())?;
        run(Command::new("mount").args(["-o", "noatime"]).arg(device).arg(dir.path()))?;
        Ok(Self { dir })
    }

    /// Writes everything to the device.
    #[allow(dead_code)]
    pub fn sync(&self) {
        rustix::fs::syncfs(std::fs::File::open(self.dir.path()).unwrap()).unwrap();
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.dir.path()).status();
    }
}
