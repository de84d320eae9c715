//! Who delays whom: what a task gains when another one is stopped, beside what the program predicts.
//!
//! The disk serves one request after the other, as a hard disk or a volume with a limit does.

use crate::stage::{Result, Stage};
use crate::traced::{self, ByTask, Times};
use iotop_plus::model::io_accounting::delay::{QueueUse, gain_without};
use std::time::Duration;

const SECONDS: u64 = 5;
/// Until the requests of a stopped task are done.
const DRAIN: Duration = Duration::from_secs(2);
/// Points of 100.
const MOST_OFF: f64 = 20.0;

/// The delayed task.
const VICTIMS: [(&str, &str); 2] = [
    ("reader", "op=randread direct=1 rate=8 path=PATH/table"),
    ("syncer", "op=write direct=1 dsync=1 bs=4096 rate=6 mb=8 path=PATH/log"),
];
/// The task that delays it.
const AGGRESSORS: [(&str, &str); 5] = [
    ("random reader", "op=randread direct=1 threads=4 path=PATH/big"),
    ("random writer", "op=randwrite direct=1 threads=8 mb=64 path=PATH/big"),
    ("sequential reader", "op=read direct=1 bs=262144 threads=2 path=PATH/big"),
    ("sequential writer", "op=write direct=1 bs=262144 threads=3 mb=64 path=PATH/big"),
    ("paced reader", "op=randread direct=1 threads=1 path=PATH/big"),
];

/// Runs all pairs; whether all predictions hold.
pub fn run() -> bool {
    println!("\n| delayed | by | its requests, ms: beside it, without | gained | predicted |\n|---|---|---|---|---|");
    let mut is_right = true;
    for victim in &VICTIMS {
        for aggressor in &AGGRESSORS {
            match check(victim, aggressor) {
                Ok(is_close) => is_right &= is_close,
                Err(why) => println!("skipped {} by {}: {why}", victim.0, aggressor.0),
            }
        }
    }
    is_right
}

fn check(victim: &(&str, &str), aggressor: &(&str, &str)) -> Result<bool> {
    let mut stage = Stage::new()?;
    let (disk, at) = stage.served("ext4", 512)?;
    stage.file(&at, "table", 32)?;
    stage.file(&at, "big", 96)?;
    stage.file(&at, "log", 8)?;
    stage.behave(&disk, "read=8 write=8 flush=8 mb_per_s=40 slots=1");
    let (tracer, device) = (traced::load_tracer(false)?, traced::device_id(&disk));
    let path = at.to_string_lossy().into_owned();
    stage.load(victim.0, &victim.1.replace("PATH", &path))?;
    stage.load(aggressor.0, &aggressor.1.replace("PATH", &path))?;
    let (one, other) = (stage.pid(victim.0)?, stage.pid(aggressor.0)?);
    std::thread::sleep(DRAIN);
    let beside = measure(&tracer, device);
    stage.stop_load(aggressor.0);
    std::thread::sleep(DRAIN);
    let without = measure(&tracer, device);
    let (before, after) = (of(&beside, one), of(&without, one));
    let gained = (1.0 - after.mean_ms() / before.mean_ms()) * 100.0;
    let predicted = predict(&beside, one, other) * 100.0;
    println!(
        "| {} | {} | {:.1}, {:.1} | {gained:.0} % | {predicted:.0} % |",
        victim.0,
        aggressor.0,
        before.mean_ms(),
        after.mean_ms()
    );
    Ok((gained - predicted).abs() <= MOST_OFF)
}

fn measure(tracer: &iotop_plus::bpf::Tracer, device: iotop_plus::model::device_id::DevId) -> ByTask {
    let before = traced::read_tasks(tracer, device);
    std::thread::sleep(Duration::from_secs(SECONDS));
    traced::since(&traced::read_tasks(tracer, device), &before)
}

/// All requests of a process.
fn of(tasks: &ByTask, pid: u32) -> Times {
    let mut sum = Times::default();
    tasks.iter().filter(|((of, _), _)| *of == pid).for_each(|(_, times)| sum.add(*times));
    sum
}

/// The share of the time of one process's requests that would go without the other one.
fn predict(tasks: &ByTask, one: u32, other: u32) -> f64 {
    let (delayed, by) = (of(tasks, one), of(tasks, other));
    let seconds = SECONDS as f64;
    let by = QueueUse { in_flight: by.ms() / 1e3 / seconds, requests_per_s: by.requests as f64 / seconds };
    gain_without(delayed.mean_ms() / 1e3, delayed.requests as f64 / seconds, by).unwrap_or(0.0)
}
