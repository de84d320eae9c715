//! A process that makes what a run needs on the machine, and removes it when the benchmark ends, however that ends: also
//! after ^C or SIGKILL.

use super::control_groups::ControlGroups;
use super::herd::Herd;
use super::loop_devices::LoopDevices;
use anyhow::{Context, bail};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

/// What to make.
#[derive(clap::Args, Debug, Clone, Copy)]
pub struct Population {
    /// Sleeping processes to add, for example 5000 or 100000.
    #[arg(long, default_value_t = 0)]
    pub herd: u32,
    /// Loop devices to add, for example 1000.
    #[arg(long, default_value_t = 0)]
    pub devices: u32,
    /// Control groups to add, for example 20000; the processes of --herd are spread over them.
    #[arg(long, default_value_t = 0)]
    pub cgroups: u32,
}

/// The running helper. It removes everything when this is dropped.
pub struct Helper {
    process: Child,
    stdin: Option<ChildStdin>,
    /// An empty directory, removed with everything else.
    pub dir: PathBuf,
}

impl Helper {
    /// Starts it, and waits until it has made everything.
    pub fn start(population: Population) -> anyhow::Result<Self> {
        let Population { herd, devices, cgroups } = population;
        let mut process = Command::new(std::env::current_exe()?)
            .arg("--be-helper")
            .args(["--herd", &herd.to_string(), "--devices", &devices.to_string(), "--cgroups", &cgroups.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdin = process.stdin.take();
        let mut line = String::new();
        BufReader::new(process.stdout.take().context("no pipe")?).read_line(&mut line)?;
        let mut helper = Self { process, stdin, dir: PathBuf::new() };
        match line.trim().split_once(' ') {
            Some(("ready", dir)) => helper.dir = dir.into(),
            _ => bail!("{}", line.trim()),
        }
        Ok(helper)
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // End of file tells the helper to remove everything.
        self.stdin = None;
        let _ = self.process.wait();
    }
}

/// The helper: makes everything, reports, waits for the end of its standard input, then removes everything.
pub fn be_helper(population: Population) -> anyhow::Result<()> {
    // ^C in the terminal reaches the benchmark, but not this process.
    rustix::process::setsid()?;
    let all = make_all(population);
    let reply = match &all {
        Ok((.., dir)) => format!("ready {}", dir.path().display()),
        Err(err) => format!("{err:#}"),
    };
    let _ = writeln!(std::io::stdout(), "{reply}");
    let _ = std::io::stdin().read(&mut [0]);
    Ok(())
}

/// Everything, in the order in which it must be removed.
type All = (Herd, ControlGroups, LoopDevices, tempfile::TempDir);

fn make_all(population: Population) -> anyhow::Result<All> {
    let dir = tempfile::tempdir()?;
    let devices = LoopDevices::create(population.devices)?;
    let groups = ControlGroups::create(population.cgroups)?;
    let herd = Herd::start(population.herd)?;
    groups.spread(herd.pids())?;
    Ok((herd, groups, devices, dir))
}
