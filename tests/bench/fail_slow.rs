//! Recall and false alarms of the judgement on fail-slow devices: `cargo bench --bench fail_slow`, as root, 20 minutes.
//!
//! 20 loop devices on files that this program serves by FUSE take 2 ms for a request, one after the other, and do more or less
//! work every 10 seconds. In each round 0 to 3 of them, others each time, take longer from the second load on. The counters
//! of /proc/diskstats are read once a second, and each round is judged at its end. Prints a table by delay. `--samples FILE`
//! judges the samples that an earlier run wrote to `--keep FILE`. ^C ends it after the round.

#[path = "../hung_fs/mod.rs"]
mod hung_fs;
#[allow(dead_code)]
mod interrupt;
#[path = "fail_slow/load.rs"]
mod load;
#[path = "../pty_harness/mod.rs"]
mod pty_harness;
#[path = "fail_slow/round.rs"]
mod round;

use clap::Parser;
use hung_fs::hanging_disk::HangingDisk;
use hung_fs::{missing_requirement, run_command};
use interrupt::is_over;
use load::{DeviceLoad, Random};
use round::{Round, Tally};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const DEVICES: usize = 20;
const DISK_BYTES: u64 = 64 << 20;
/// What each request takes, and what it takes longer on slow devices.
const BASE: Duration = Duration::from_millis(2);
const DELAYS_MS: [u64; 5] = [1, 2, 4, 8, 20];
/// Loads of a round; the slow devices are slow from the second on.
const SEGMENTS: usize = 5;
const SEGMENT: Duration = Duration::from_secs(10);
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
const LAB_ENV: &str = "IOTOP_PLUS_FAIL_SLOW_BENCH";

#[derive(Parser)]
struct Args {
    /// Rounds; 20 have each delay with 0, 1, 2 and 3 slow devices.
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Start of the random numbers that choose loads and devices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Judge these samples and measure nothing.
    #[arg(long)]
    samples: Option<PathBuf>,
    /// What a request of the samples takes on healthy devices, ms.
    #[arg(long, default_value_t = BASE.as_millis() as u64, requires = "samples")]
    base_ms: u64,
    /// Write the samples to this file, too.
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Set by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(file) = &args.samples {
        let text = std::fs::read_to_string(file).expect("a file of samples");
        let rounds = round::parse(&text);
        rounds.iter().for_each(|round| println!("{}", round.summary()));
        print_table(&rounds, args.base_ms);
        return ExitCode::SUCCESS;
    }
    if let Some(lab) = std::env::var_os(LAB_ENV) {
        interrupt::catch();
        return measure(Path::new(&lab), &args);
    }
    if let Some(missing) = missing_requirement(&["unshare", "mount", "losetup"]) {
        println!("fail_slow: {missing}");
        return ExitCode::SUCCESS;
    }
    let lab = tempfile::tempdir().expect("a temporary directory");
    let status = Command::new("unshare")
        .args(["--mount", "--propagation", "private"])
        .arg(std::env::current_exe().expect("this program"))
        .args(std::env::args_os().skip(1))
        .env(LAB_ENV, lab.path())
        .status();
    if status.is_ok_and(|status| status.success()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn create_disks(lab: &Path) -> Result<Vec<HangingDisk>, String> {
    let create = |at: usize| {
        let dir = lab.join(at.to_string());
        std::fs::create_dir(&dir).map_err(|why| why.to_string())?;
        let disk = HangingDisk::create(&dir, DISK_BYTES)?;
        // Else the page cache of the file answers.
        run_command("losetup", &["--direct-io=on", &disk.device])?;
        disk.set_delay(BASE);
        Ok(disk)
    };
    (0..DEVICES).map(create).collect()
}

fn measure(lab: &Path, args: &Args) -> ExitCode {
    let disks = match create_disks(lab) {
        Ok(disks) => disks,
        Err(why) => {
            println!("fail_slow: {why}");
            return ExitCode::FAILURE;
        }
    };
    let mut random = Random::new(args.seed);
    let mut text = String::new();
    for number in 0..args.rounds {
        if is_over() {
            break;
        }
        let delay_ms = DELAYS_MS[number % DELAYS_MS.len()];
        let slow: Vec<usize> = random.distinct(number % 4, DEVICES);
        let _ = write!(text, "ROUND {delay_ms}");
        slow.iter().for_each(|at| text.push_str(&format!(" {}", name_of(&disks[*at]))));
        text.push('\n');
        play_round(&disks, &slow, Duration::from_millis(delay_ms), &mut random, &mut text);
        if let Some(file) = &args.keep {
            std::fs::write(file, &text).expect("the samples can be kept");
        }
        println!("{}", round::parse(&text).last().map(Round::summary).unwrap_or_default());
    }
    print_table(&round::parse(&text), args.base_ms);
    ExitCode::SUCCESS
}

fn name_of(disk: &HangingDisk) -> &str {
    disk.device.trim_start_matches("/dev/")
}

/// Loads the disks for a round and appends what diskstats says of them.
fn play_round(disks: &[HangingDisk], slow: &[usize], delay: Duration, random: &mut Random, text: &mut String) {
    let loads: Vec<DeviceLoad> = disks.iter().map(|disk| DeviceLoad::start(&disk.device, random.next())).collect();
    let names: BTreeMap<&str, ()> = disks.iter().map(|disk| (name_of(disk), ())).collect();
    for segment in 0..SEGMENTS {
        loads.iter().for_each(|load| load.change(random));
        if segment == 1 {
            slow.iter().for_each(|at| disks[*at].set_delay(BASE + delay));
        }
        let started = Instant::now();
        while started.elapsed() < SEGMENT {
            std::thread::sleep(SAMPLE_INTERVAL);
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
            let _ = writeln!(text, "T {now}");
            let counters = std::fs::read_to_string("/proc/diskstats").unwrap_or_default();
            let is_ours = |line: &&str| line.split_whitespace().nth(2).is_some_and(|name| names.contains_key(name));
            counters.lines().filter(is_ours).for_each(|line| text.push_str(&format!("{}\n", line.trim())));
        }
    }
    drop(loads);
    disks.iter().for_each(|disk| disk.set_delay(BASE));
}

fn print_table(rounds: &[Round], base_ms: u64) {
    let mut tallies: BTreeMap<u64, Tally> = BTreeMap::new();
    let mut all = Tally::default();
    for round in rounds {
        let delay = if round.slow.is_empty() { 0 } else { round.delay_ms };
        tallies.entry(delay).or_default().add(round);
        all.add(round);
    }
    println!("\n| delay | rounds | slow devices | found | slowdown, median | healthy devices | false alarms |");
    println!("|---|---|---|---|---|---|---|");
    for (delay, tally) in &mut tallies {
        let name = if *delay == 0 { "none".to_owned() } else { format!("{delay} ms more than {base_ms} ms") };
        println!("{}", tally.row(&name));
    }
    println!("{}", all.row("all"));
}
