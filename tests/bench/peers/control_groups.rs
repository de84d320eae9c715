//! Many control groups, in the unified hierarchy or, where that is not mounted, in one of version 1.

use anyhow::Context;
use rustix::process::Pid;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A group in which a process is still ending cannot be removed.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Control groups, removed when this is dropped.
pub struct ControlGroups(Vec<PathBuf>);

impl ControlGroups {
    /// Creates `n` groups below one of their own.
    pub fn create(n: u32) -> anyhow::Result<Self> {
        let mut groups = Self(Vec::new());
        if n > 0 {
            let parent = mount_point().context("no control groups are mounted")?;
            let parent = parent.join(format!("iotop-plus-bench-{}", std::process::id()));
            groups.add(parent.clone())?;
            (0..n).try_for_each(|i| groups.add(parent.join(format!("group-{i:05}"))))?;
        }
        Ok(groups)
    }

    fn add(&mut self, group: PathBuf) -> anyhow::Result<()> {
        fs::create_dir(&group).with_context(|| group.display().to_string())?;
        self.0.push(group);
        Ok(())
    }

    /// Moves processes into the groups in turn.
    pub fn spread(&self, pids: &[Pid]) -> anyhow::Result<()> {
        let Some((_, groups @ [_, ..])) = self.0.split_first() else { return Ok(()) };
        for (pid, group) in pids.iter().zip(groups.iter().cycle()) {
            let file = group.join("cgroup.procs");
            let moved = fs::write(&file, pid.as_raw_nonzero().to_string());
            moved.with_context(|| format!("{}: cannot move process {pid:?}", file.display()))?;
        }
        Ok(())
    }
}

impl Drop for ControlGroups {
    fn drop(&mut self) {
        let start = Instant::now();
        for group in self.0.iter().rev() {
            while let Err(err) = fs::remove_dir(group) {
                if start.elapsed() > REMOVE_TIMEOUT {
                    eprintln!("{} stays: {err}", group.display());
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

/// Where the unified hierarchy is mounted, else one of version 1; cpuset groups take no process until they are set up.
fn mount_point() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let find = |fs_type: &str| {
        let mut of_type = mounts.lines().filter(|line| line.contains(fs_type) && !line.contains("cpuset"));
        of_type.find_map(|line| line.split(' ').nth(4)).map(PathBuf::from)
    };
    find(" - cgroup2 ").or_else(|| find(" - cgroup "))
}
