//! Whether the program stays as small as it began: `cargo bench --bench soak -- --minutes 48 --write docs/soak.md`, as root.
//! With a sample every 0.1 s, 48 minutes have as many as eight hours.
//!
//! Beside it processes, mounts, loop devices, control groups and kernel messages come and go. Every five seconds it reads
//! the figures of the program and its helpers, and at the end prints a page in Markdown: the medians of the quarters and a
//! graph of each figure. It fails if the median of the last quarter exceeds that of the second one by a tenth and more than
//! noise. ^C ends it early, with the page of what was read.

#[path = "peers/control_groups.rs"]
mod control_groups;
mod interrupt;
#[path = "peers/loop_devices.rs"]
mod loop_devices;
#[path = "../pty_harness/mod.rs"]
mod pty_harness;

use clap::Parser;
use control_groups::ControlGroups;
use iotop_plus::tui::widgets::{CellBuffer, draw_columns};
use loop_devices::LoopDevices;
use pty_harness::{Terminal, TerminalOptions};
use ratatui::layout::Rect;
use ratatui::style::Style;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const READ_INTERVAL: Duration = Duration::from_secs(5);
const KEYS: &[&str] = &["1", "2", "3", "4", "5", "t", "f", "F", "3\r", "\x1b", "2\r", "\x1b"];
const GRAPH_SIZE: (u16, u16) = (100, 4);

/// One reading of all [`FIGURES`].
type Figures = [f64; 5];

/// Name, unit, and the growth that is no leak: the history takes up to 3 MiB, and 90 s to fill.
const FIGURES: [(&str, &str, f64); 5] = [
    ("resident memory of the program", "KiB", 4096.0),
    ("memory with all helpers (PSS)", "KiB", 4096.0),
    ("open files", "", 10.0),
    ("threads", "", 4.0),
    ("kernel memory of BPF maps", "KiB", 512.0),
];

/// Measures whether the program grows while the machine changes.
#[derive(Parser)]
struct Args {
    /// Length. Below 6 minutes the history still fills while the second quarter is read.
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// Writes the page to this file, too.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Set by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if !rustix::process::geteuid().is_root() {
        println!("soak: needs root to mount and to make devices");
        return ExitCode::SUCCESS;
    }
    interrupt::catch();
    let dir = tempfile::tempdir().expect("a temporary directory");
    let rows = std::thread::scope(|scope| {
        let _end = interrupt::EndOnDrop;
        for churn in [churn_processes, churn_mounts, churn_devices, churn_groups, churn_kernel_log] {
            let path = dir.path();
            scope.spawn(move || (0..).take_while(|_| !interrupt::is_over()).for_each(|round| churn(path, round)));
        }
        watch(Duration::from_secs_f64(args.minutes * 60.0))
    });
    let (page, has_grown) = report(&rows);
    println!("{page}");
    if let Some(file) = &args.write {
        fs::write(file, page).unwrap_or_else(|err| panic!("{}: {err}", file.display()));
    }
    if has_grown { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn watch(length: Duration) -> Vec<Figures> {
    let mut t = Terminal::start(TerminalOptions { args: vec!["-d", "0.1"], size: (160, 45), ..Default::default() });
    t.wait_for_text("q quit");
    let (start, mut rows) = (Instant::now(), Vec::new());
    for (i, key) in KEYS.iter().cycle().enumerate() {
        if start.elapsed() >= length || interrupt::is_over() {
            break;
        }
        assert!(t.is_running(), "the program ended by itself:\n{}", t.contents());
        t.send(key);
        std::thread::sleep(READ_INTERVAL);
        rows.push(read_figures(t.pid()));
        if i % 12 == 11 {
            eprintln!("{:.0} of {:.0} minutes", start.elapsed().as_secs_f64() / 60.0, length.as_secs_f64() / 60.0);
        }
        t.forget_output();
    }
    quit(&mut t);
    rows
}

/// Quits, out of whatever page or prompt the last key opened. What was read counts also where that fails.
fn quit(t: &mut Terminal) {
    for key in ["\x1b", "q"].iter().cycle().take(40) {
        if !t.is_running() {
            return;
        }
        t.send(key);
        std::thread::sleep(Duration::from_millis(500));
    }
    eprintln!("the program does not end after q; it is killed. Its screen:\n{}", t.contents());
}

/// The figures of a process and its children.
fn read_figures(pid: u32) -> Figures {
    let [mut largest, mut pss, mut files, mut threads, mut maps] = [0.0; 5];
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    for process in children.split_whitespace().map(str::to_owned).chain([pid.to_string()]) {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let shares = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
        let infos = fs::read_dir(format!("/proc/{process}/fdinfo")).into_iter().flatten().flatten();
        let infos: Vec<String> = infos.filter_map(|e| fs::read_to_string(e.path()).ok()).collect();
        largest = f64::max(largest, field(&status, "VmRSS:"));
        pss += field(&shares, "Pss:");
        files += infos.len() as f64;
        threads += field(&status, "Threads:");
        let of_maps = infos.iter().filter(|info| info.contains("map_type"));
        maps += of_maps.map(|info| field(info, "memlock:")).sum::<f64>() / 1024.0;
    }
    [largest, pss, files, threads, maps]
}

/// The number after `name` in a file with a name in each line; 0 if the process has ended.
fn field(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or_default()
}

/// The page, and whether a figure has grown.
fn report(rows: &[Figures]) -> (String, bool) {
    let secs = rows.len() as u64 * READ_INTERVAL.as_secs();
    let mut table = String::from("| | unit | quarter 1 | quarter 2 | quarter 3 | quarter 4 | most | |\n");
    table += "|---|---|--:|--:|--:|--:|--:|---|\n";
    let (mut graphs, mut has_grown) = (String::new(), false);
    for (i, (name, unit, noise)) in FIGURES.into_iter().enumerate() {
        let all: Vec<f64> = rows.iter().map(|row| row[i]).collect();
        let quarter = |n: usize| median(&all[all.len() * n / 4..all.len() * (n + 1) / 4]);
        let [first, second, third, last] = [0, 1, 2, 3].map(quarter);
        let most = all.iter().copied().fold(0.0, f64::max);
        let grew = last > second * 1.1 && last - second > noise;
        has_grown |= grew;
        let verdict = if grew { "GREW" } else { "flat" };
        let _ = writeln!(
            table,
            "| {name} | {unit} | {first:.0} | {second:.0} | {third:.0} | {last:.0} | {most:.0} | {verdict} |"
        );
        let scale = format!("{name}, 0 to {most:.0} {unit}");
        let _ = writeln!(graphs, "{}\n{}", scale.trim_end(), graph(&all, most));
    }
    (format!("{}\n{table}\n```text\n{}\n```\n", introduction(rows.len(), secs), graphs.trim_end()), has_grown)
}

fn introduction(readings: usize, secs: u64) -> String {
    format!(
        "# Soak\n\nWhether the program stays as small as it began: `cargo bench --bench soak -- --minutes 48 --write docs/soak.md`, as root,\n\
         writes this page. The program takes a sample every 0.1 s, ten times as many as usual; processes, mounts, loop devices, control\n\
         groups and kernel messages come and go, and every {} s a key opens another view. A figure has grown if its median in the last\n\
         quarter exceeds that of the second one by more than a tenth and more than what comes and goes by itself.\n\n\
         {readings} readings in {:.1} minutes of a {} build; medians of each quarter:\n",
        READ_INTERVAL.as_secs(),
        secs as f64 / 60.0,
        if cfg!(debug_assertions) { "debug" } else { "release" }
    )
}

fn median(all: &[f64]) -> f64 {
    let mut all = all.to_vec();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or_default()
}

/// The graph that the program draws, as text: from 0 to `most`, the oldest on the left. A column is the median of its
/// readings.
fn graph(all: &[f64], most: f64) -> String {
    let columns: Vec<f64> = all.chunks(all.len().div_ceil(usize::from(GRAPH_SIZE.0)).max(1)).map(median).collect();
    let area = Rect::new(0, 0, columns.len() as u16, GRAPH_SIZE.1);
    let mut buf = CellBuffer::new(area);
    buf.symbols = iotop_plus::tui::widgets::SymbolSet::Blocks;
    draw_columns(&mut buf, area, columns.into_iter().map(Some), most, |_| Style::new());
    let buf = buf.to_buffer();
    let row = |y| (0..area.width).map(|x| buf[(x, y)].symbol()).collect::<String>();
    (0..area.height).fold(String::new(), |text, y| text + row(y).trim_end() + "\n")
}

fn run(program: &str, args: &[&str]) -> String {
    let out = Command::new(program).args(args).stderr(Stdio::null()).output();
    out.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned()).unwrap_or_default()
}

fn churn_processes(_: &Path, round: u32) {
    let sleeps: Vec<_> =
        (0..20).filter_map(|_| Command::new("sleep").arg(format!("0.{}", round % 9)).spawn().ok()).collect();
    sleeps.into_iter().for_each(|mut sleep| drop(sleep.wait()));
}

fn churn_mounts(dir: &Path, round: u32) {
    let at = dir.join(format!("mount{}", round % 7));
    let _ = fs::create_dir(&at);
    let at = at.to_str().expect("a path");
    run("mount", &["-t", "tmpfs", "none", at]);
    std::thread::sleep(Duration::from_millis(150));
    run("umount", &[at]);
}

fn churn_devices(_: &Path, _: u32) {
    match LoopDevices::create(3) {
        Ok(devices) => {
            for number in &devices.numbers {
                run("dd", &[&format!("if=/dev/loop{number}"), "of=/dev/null", "bs=64k", "iflag=direct"]);
            }
            std::thread::sleep(Duration::from_millis(300));
        }
        Err(err) => {
            eprintln!("{err:#}");
            std::thread::sleep(READ_INTERVAL);
        }
    }
}

fn churn_groups(_: &Path, _: u32) {
    let Ok(mut sleep) = Command::new("sleep").arg("0.2").spawn() else { return };
    let groups = ControlGroups::create(3).and_then(|groups| {
        groups.spread(&[rustix::process::Pid::from_child(&sleep)])?;
        Ok(groups)
    });
    let _ = sleep.wait();
    if let Err(err) = groups {
        eprintln!("{err:#}");
        std::thread::sleep(READ_INTERVAL);
    }
}

fn churn_kernel_log(_: &Path, round: u32) {
    let _ = fs::write("/dev/kmsg", format!("<4>iotop-plus soak, message {round} of device sd{}", round % 26));
    std::thread::sleep(Duration::from_millis(100));
}
