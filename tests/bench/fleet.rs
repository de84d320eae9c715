//! A hundred hosts on one box: `cargo bench --bench fleet`, about five minutes.
//!
//! Exporters replay a recording for each host, ten hosts a process, four of the hosts in trouble: a slow disk, a storm of dirty
//! pages, a device that is slower than its siblings, and I/O errors. The real Prometheus scrapes them. Then `fleet` must rank
//! the four first; again after Prometheus, and after ten of the exporters, were killed and started again. Last it measures the
//! full screen: CPU and memory at one frame a second. Exits with 1 if a check fails.
//!
//! Needs Debian's package `prometheus`.

#[path = "../export_harness/mod.rs"]
mod export_harness;
#[path = "fleet/hosts.rs"]
mod hosts;
#[path = "../pty_harness/mod.rs"]
mod pty_harness;

use clap::Parser;
use export_harness::{PROGRAM, Running, get, is_installed, start};
use hosts::{TROUBLES, run_file_worker, write_recordings};
use pty_harness::Terminal;
use serde_json::Value;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Hosts that one exporter serves.
const HOSTS_PER_EXPORTER: usize = 10;
/// How long the hosts in trouble may take to be the first ones.
const PATIENCE: Duration = Duration::from_secs(240);

#[derive(Parser)]
struct Args {
    /// Hosts, a multiple of 10 from 20 on.
    #[arg(long, default_value_t = 100)]
    hosts: usize,
    /// Seconds for which the screen is measured.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Set by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

/// The hosts, their exporters, and Prometheus.
struct Site {
    dir: tempfile::TempDir,
    recordings: Vec<PathBuf>,
    first_port: u16,
    web_port: u16,
    exporters: Vec<Running>,
    prometheus: Option<Running>,
}

/// The first of so many free ports in a row.
fn free_ports(count: usize) -> u16 {
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let wanted = |first: &u16| (*first..*first + count as u16).all(is_free);
    (20_000..60_000).step_by(count).find(wanted).expect("no free ports")
}

fn host_name(number: usize) -> String {
    format!("host-{number:03}")
}

impl Site {
    fn create(hosts: usize) -> Result<Self, Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let recordings = write_recordings(dir.path(), hosts)?;
        let first_port = free_ports(hosts + 1);
        let mut config =
            "global: {scrape_interval: 2s}\nscrape_configs:\n- job_name: iotop-plus\n  static_configs:\n".to_owned();
        for at in 0..hosts {
            let (port, name) = (first_port + at as u16, host_name(at));
            config.push_str(&format!("  - {{targets: ['127.0.0.1:{port}'], labels: {{instance: {name}}}}}\n"));
        }
        std::fs::write(dir.path().join("prometheus.yml"), config)?;
        let web_port = first_port + hosts as u16;
        let mut site = Self { dir, recordings, first_port, web_port, exporters: Vec::new(), prometheus: None };
        site.exporters = (0..hosts / HOSTS_PER_EXPORTER).map(|at| site.start_exporter(at)).collect();
        site.start_prometheus();
        Ok(site)
    }

    fn start_exporter(&self, at: usize) -> Running {
        let first = at * HOSTS_PER_EXPORTER;
        let listen = format!("127.0.0.1:{}", self.first_port + first as u16);
        let files = &self.recordings[first..first + HOSTS_PER_EXPORTER];
        start(Command::new(PROGRAM).args(["export", "--listen", &listen, "--loop", "--all", "--replay"]).args(files))
    }

    fn start_prometheus(&mut self) {
        let path = |name: &str| self.dir.path().join(name).display().to_string();
        self.prometheus = Some(start(Command::new("prometheus").args([
            format!("--config.file={}", path("prometheus.yml")),
            format!("--storage.tsdb.path={}", path("data")),
            format!("--web.listen-address=127.0.0.1:{}", self.web_port),
        ])));
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.web_port)
    }

    /// How many hosts Prometheus reads.
    fn hosts_up(&self) -> usize {
        let answer = get(self.web_port, "/api/v1/query?query=sum(up)").unwrap_or_default();
        let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
        let value: Value = serde_json::from_str(body).unwrap_or_default();
        value["data"]["result"][0]["value"][1].as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// What `fleet` says.
    fn fleet(&self) -> Value {
        let output = Command::new(PROGRAM).args(["fleet", "--prometheus", &self.url(), "--format", "json"]).output();
        output.ok().and_then(|out| serde_json::from_slice(&out.stdout).ok()).unwrap_or_default()
    }

    /// The names of the hosts as `fleet` ranks them.
    fn ranking(&self) -> Vec<String> {
        let value = self.fleet();
        let hosts = value["hosts"].as_array().cloned().unwrap_or_default();
        hosts.iter().map(|host| host["host"].as_str().unwrap_or("?").to_owned()).collect()
    }
}

/// Repeats a check until it holds; prints how long that took, or what was there instead.
fn expect(what: &str, mut check: impl FnMut() -> Result<(), String>) -> bool {
    let started = Instant::now();
    loop {
        match check() {
            Ok(()) => {
                println!("{what}: after {:.0} s", started.elapsed().as_secs_f64());
                return true;
            }
            Err(why) if started.elapsed() > PATIENCE => {
                println!("{what}: NO: {why}");
                return false;
            }
            Err(_) => std::thread::sleep(Duration::from_secs(1)),
        }
    }
}

fn all_are_up(site: &Site, hosts: usize) -> Result<(), String> {
    let up = site.hosts_up();
    if up == hosts { Ok(()) } else { Err(format!("{up} of {hosts} hosts are scraped")) }
}

/// The hosts in trouble come first, in whatever order.
fn troubled_come_first(site: &Site, hosts: usize) -> Result<(), String> {
    let ranking = site.ranking();
    let mut first: Vec<&str> = ranking.iter().take(TROUBLES.len()).map(String::as_str).collect();
    first.sort_unstable();
    let mut wanted: Vec<String> = TROUBLES.iter().map(|(at, ..)| host_name(*at % hosts)).collect();
    wanted.sort_unstable();
    match first == wanted && ranking.len() == hosts {
        true => Ok(()),
        false => Err(format!("of {} hosts these come first: {first:?}, not {wanted:?}", ranking.len())),
    }
}

/// CPU seconds and resident bytes of a process.
fn usage_of(pid: u32) -> (f64, u64) {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).unwrap_or_default();
    let fields: Vec<u64> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().map(|n| n.parse().unwrap_or(0)).collect();
    let at = |field: usize| fields.get(field).copied().unwrap_or(0);
    (
        (at(11) + at(12)) as f64 / rustix::param::clock_ticks_per_second() as f64,
        at(21) * rustix::param::page_size() as u64,
    )
}

fn measure_screen(site: &Site, seconds: u64) {
    let url = site.url();
    let terminal = Terminal::with_args(&["fleet", "--prometheus", &url, "-d", "1"]);
    terminal.wait_for_text("host-");
    std::thread::sleep(Duration::from_secs(5));
    let pid = terminal.pid();
    let (before, started) = (usage_of(pid).0, Instant::now());
    std::thread::sleep(Duration::from_secs(seconds));
    let (after, resident) = usage_of(pid);
    let cpu = (after - before) / started.elapsed().as_secs_f64() * 100.0;
    println!("screen at 1 Hz: {cpu:.1} % of a core, {:.1} MiB resident", resident as f64 / f64::from(1 << 20));
}

fn main() -> ExitCode {
    if let Some(code) = run_file_worker() {
        return code;
    }
    let args = Args::parse();
    if !is_installed("prometheus", "fleet") {
        return ExitCode::SUCCESS;
    }
    let hosts = args.hosts;
    let mut site = match Site::create(hosts) {
        Ok(site) => site,
        Err(why) => {
            println!("fleet: {why}");
            return ExitCode::FAILURE;
        }
    };
    TROUBLES.iter().for_each(|(at, what, _)| println!("{}: {what}", host_name(*at % hosts)));
    let mut holds = expect("all hosts are scraped", || all_are_up(&site, hosts));
    holds &= expect("the hosts in trouble come first", || troubled_come_first(&site, hosts));
    site.prometheus = None;
    site.exporters.remove(0);
    std::thread::sleep(Duration::from_secs(10));
    site.start_prometheus();
    holds &= expect("without ten hosts, the others are scraped", || all_are_up(&site, hosts - HOSTS_PER_EXPORTER));
    let again = site.start_exporter(0);
    site.exporters.push(again);
    holds &= expect("all hosts are scraped again", || all_are_up(&site, hosts));
    holds &= expect("the hosts in trouble come first again", || troubled_come_first(&site, hosts));
    measure_screen(&site, args.seconds);
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
