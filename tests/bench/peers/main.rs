//! Cost of the whole program compared with other monitors: `cargo bench --bench peers -- --rounds 3 --seconds 30`, also
//! with many processes (`--herd`), devices, mounts, control groups or possible CPUs, which need root and are removed at
//! the end.
//!
//! Each installed program runs in turn in a pseudo-terminal of the same size, refreshing once a second, on the same
//! machine with the same processes. CPU is given per second and per frame, so that a program that misses refreshes does
//! not look cheap.

mod account;
mod control_groups;
mod helper;
mod herd;
mod loop_devices;
mod namespace;
mod term;

use clap::Parser;
use helper::{Helper, Population, be_helper};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The programs, with options for one refresh per second.
const PEERS: [(&str, &str); 5] = [
    ("htop", "htop -d 10"),
    ("iotop-c", "iotop-c -d 1"),
    ("btop", "btop"),
    ("bottom", "btm -r 1000"),
    ("atop", "atop 1"),
];

/// Compares iotop-plus with the monitors that are installed.
#[derive(Parser)]
struct Args {
    /// Runs of each program, in turn.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of each run; the first five (or a third, if less) are excluded from the steady figures.
    #[arg(long, default_value_t = 30.0)]
    seconds: f64,
    #[command(flatten)]
    population: Population,
    /// Mounts to add, for example 10000: half tmpfs, half bind mounts.
    #[arg(long, default_value_t = 0)]
    mounts: u32,
    /// Possible CPUs to show to the programs, for example 256.
    #[arg(long, default_value_t = 0)]
    cpus: u32,
    /// Run only these: iotop-plus,htop,iotop-c,btop,bottom,atop.
    #[arg(long, value_delimiter = ',')]
    tools: Vec<String>,
    /// Another program: NAME=COMMAND with options.
    #[arg(long, value_name = "NAME=COMMAND")]
    add: Vec<String>,
    /// Columns and rows of the terminal.
    #[arg(long, default_value = "200x50")]
    size: String,
    /// Seconds to wait at most, before each run, until the machine is idle.
    #[arg(long, default_value_t = 20.0)]
    patience: f64,
    #[arg(long, hide = true)]
    be_helper: bool,
    /// Set by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Figures of one run.
#[derive(Default, Clone)]
struct PeerRun {
    cpu_pct: f64,
    cpu_ms_per_frame: f64,
    frames_per_s: f64,
    bytes_per_frame: f64,
    rss_mib: f64,
    pss_mib: f64,
    open_files: f64,
    first_ms: Option<f64>,
    full_ms: Option<f64>,
    others_cores: f64,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    if args.be_helper {
        return be_helper(args.population);
    }
    let (cols, rows) = args.size.split_once('x').ok_or_else(|| anyhow::anyhow!("--size is COLSxROWS"))?;
    let size = (cols.parse()?, rows.parse()?);
    let helper = Helper::start(args.population)?;
    namespace::enter(&helper.dir, args.mounts, args.cpus)?;
    let home = helper.dir.join("home");
    let btop = home.join(".config/btop");
    fs::create_dir_all(&btop)?;
    fs::write(btop.join("btop.conf"), "update_ms = 1000\n")?;
    let tools = find_tools(&args);
    let population = describe_population(&args);
    let mut runs: Vec<Vec<PeerRun>> = vec![Vec::new(); tools.len()];
    for round in 1..=args.rounds {
        for (i, (name, argv)) in tools.iter().enumerate() {
            wait_for_quiet(args.patience);
            eprintln!("round {round}: {name}");
            match measure(argv, size, &home, args.seconds) {
                Ok(run) => runs[i].push(run),
                Err(err) => eprintln!("{name}: {err:#}"),
            }
        }
    }
    drop(helper);
    println!(
        "\n{population}; {}, {} rounds of {} s, refresh 1 s; median (min to max)\n",
        args.size, args.rounds, args.seconds
    );
    table(&tools, &runs);
    Ok(())
}

/// What there is on the machine: `100076 processes, 1014 block devices`.
fn describe_population(args: &Args) -> String {
    let count = |dir: &str| fs::read_dir(dir).map_or(0, Iterator::count);
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_or(0, |text| text.lines().count());
    let mut out =
        format!("{} processes, {} block devices, {mounts} mounts", account::processes(), count("/sys/class/block"));
    if args.population.cgroups > 0 {
        out += &format!(", {} control groups more", args.population.cgroups);
    }
    if args.cpus > 0 {
        out += &format!(", {} possible CPUs", args.cpus);
    }
    out
}

/// Returns the requested programs that are installed.
fn find_tools(args: &Args) -> Vec<(String, Vec<String>)> {
    let ours = format!("{} --config none -d 1", env!("CARGO_BIN_EXE_iotop-plus"));
    let mut all = vec![("iotop-plus".to_owned(), ours)];
    all.extend(PEERS.map(|(name, command)| (name.to_owned(), command.to_owned())));
    all.retain(|(name, _)| args.tools.is_empty() || args.tools.contains(name));
    all.extend(args.add.iter().filter_map(|a| a.split_once('=')).map(|(n, c)| (n.to_owned(), c.to_owned())));
    let mut out = Vec::new();
    for (name, command) in all {
        let mut argv: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        match argv.first().and_then(|program| find_program(program)) {
            Some(path) => {
                argv[0] = path.to_string_lossy().into_owned();
                out.push((name, argv));
            }
            None => eprintln!("{name}: not installed, left out"),
        }
    }
    out
}

fn find_program(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|p| p.exists());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let cargo = std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cargo/bin"));
    let dirs = std::env::split_paths(&path).chain(cargo).chain(["/usr/sbin".into(), "/sbin".into()]);
    dirs.map(|dir| dir.join(program)).find(|p| p.is_file())
}

/// Other work on the machine disturbs the figures.
fn wait_for_quiet(patience: f64) {
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < patience {
        let (busy, from) = (account::machine_secs(), Instant::now());
        std::thread::sleep(Duration::from_millis(500));
        if (account::machine_secs() - busy) / from.elapsed().as_secs_f64() < 0.15 {
            return;
        }
    }
}

fn measure(argv: &[String], size: (u16, u16), home: &Path, seconds: f64) -> anyhow::Result<PeerRun> {
    let (warm_up, end) = (Duration::from_secs_f64((seconds / 3.0).min(5.0)), Duration::from_secs_f64(seconds));
    let mut term = term::Term::start(argv, size, home)?;
    let pid = term.pid();
    let alive = term.run_until(warm_up);
    let (cpu, machine, from) = (account::cpu_secs(pid), account::machine_secs(), Instant::now());
    if !alive || !term.run_until(end) {
        anyhow::bail!("ended early: {}", term.last_output());
    }
    let (cpu, secs) = (account::cpu_secs(pid) - cpu, from.elapsed().as_secs_f64());
    let machine = account::machine_secs() - machine;
    let (frames, bytes) = term.frames(warm_up, end);
    let per_frame = |n: f64| if frames > 0 { n / frames as f64 } else { f64::NAN };
    let (first, full) = term.first_frame_times();
    let ms = |d: Duration| d.as_secs_f64() * 1e3;
    let run = PeerRun {
        cpu_pct: 100.0 * cpu / secs,
        cpu_ms_per_frame: per_frame(1e3 * cpu),
        frames_per_s: frames as f64 / secs,
        bytes_per_frame: per_frame(bytes as f64),
        rss_mib: account::rss_mib(pid),
        pss_mib: account::pss_mib(pid),
        open_files: account::open_files(pid),
        first_ms: first.map(ms),
        full_ms: full.map(ms),
        others_cores: (machine - cpu).max(0.0) / secs,
    };
    term.end();
    Ok(run)
}

/// Prints the table in Markdown.
fn table(tools: &[(String, Vec<String>)], runs: &[Vec<PeerRun>]) {
    println!(
        "| | CPU ms/frame | % of a core | frames/s | RSS MiB | PSS MiB | open files | bytes/frame | first ms | full ms | others' cores |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for ((name, _), runs) in tools.iter().zip(runs) {
        let cell = |f: fn(&PeerRun) -> Option<f64>, digits: usize| format_median(runs.iter().filter_map(f), digits);
        println!(
            "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            cell(|r| Some(r.cpu_ms_per_frame), 2),
            cell(|r| Some(r.cpu_pct), 2),
            cell(|r| Some(r.frames_per_s), 2),
            cell(|r| Some(r.rss_mib), 1),
            cell(|r| Some(r.pss_mib), 1),
            cell(|r| Some(r.open_files), 0),
            cell(|r| Some(r.bytes_per_frame), 0),
            cell(|r| r.first_ms, 0),
            cell(|r| r.full_ms, 0),
            cell(|r| Some(r.others_cores), 2),
        );
    }
}

/// Formats `median (min to max)`, or the only value.
fn format_median(values: impl Iterator<Item = f64>, digits: usize) -> String {
    let mut v: Vec<f64> = values.filter(|v| v.is_finite()).collect();
    v.sort_by(f64::total_cmp);
    let (Some(min), Some(max)) = (v.first(), v.last()) else { return "-".into() };
    let median = (v[(v.len() - 1) / 2] + v[v.len() / 2]) / 2.0;
    match v.len() {
        1 => format!("{median:.digits$}"),
        _ => format!("{median:.digits$} ({min:.digits$} to {max:.digits$})"),
    }
}
