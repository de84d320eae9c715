//! Healthy loads for minutes: nothing may be said above a note at any time.

use crate::judge::{Level, Said};
use crate::list::{Place, Situation};
use crate::stage::Stage;
use crate::{interrupt, program};
use std::process::ExitCode;

/// Watches those of the situations that are healthy and that nothing else may disturb.
pub fn watch(wanted: &[&'static Situation], minutes: f64) -> ExitCode {
    let mut is_quiet = true;
    let is_healthy = |s: &&&Situation| s.name.starts_with("healthy-") && s.place == Place::Alone;
    for situation in wanted.iter().filter(is_healthy).take_while(|_| !interrupt::is_over()) {
        let (name, result) = (situation.name, watch_one(situation, minutes * 60.0));
        match &result {
            Err(why) => println!("{name:<32} skipped: {why}"),
            Ok((ticks, said)) if said.is_empty() => {
                println!("{name:<32} quiet for {minutes} minutes ({ticks} samples)");
            }
            Ok((_, said)) => {
                is_quiet = false;
                println!("{name:<32} FALSE");
                said.iter().for_each(|line| println!("    {line}"));
            }
        }
    }
    if is_quiet { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The number of samples, and what was said above a note, each once.
fn watch_one(situation: &Situation, secs: f64) -> Result<(usize, Vec<String>), String> {
    let mut stage = Stage::new()?;
    (situation.make)(&mut stage)?;
    let dir = tempfile::tempdir_in("/dev/shm").map_err(|err| err.to_string())?;
    let file = dir.path().join("healthy.iotop");
    program::look(secs, Some(&file))?;
    drop(stage);
    // A finding that has gone by the end was said nevertheless.
    let samples = program::replay(&file)?;
    let mut said: Vec<String> = Vec::new();
    for finding in samples.iter().flat_map(Said::all).filter(|finding| finding.level >= Level::Warning) {
        let key = format!("{} {}: ", finding.level.name(), finding.rule);
        if !said.iter().any(|line| line.starts_with(&key)) {
            said.push(key + &finding.title);
        }
    }
    Ok((samples.len(), said))
}
