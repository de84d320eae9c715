//! `-b`: reports in lines, for pipes and logs.

use super::exit::{EXIT_OK, print_error};
use super::full_screen::TopArgs;
use super::printer::{NextStep, Printer};
use super::sampler::{Sampler, SamplerOptions};
use crate::export::batch::{BatchOptions, batch_report, missing_data_notes};
use crate::root::Root;
use std::collections::HashSet;
use std::time::Duration;

/// Prints reports until there were enough, the reader leaves or a signal ends it.
pub fn run(root: &Root, top: &TopArgs) -> anyhow::Result<u8> {
    let options = BatchOptions { only_active: top.only, is_accumulated: top.accumulated };
    let interval = Duration::from_secs_f64(top.delay.unwrap_or(1.0));
    super::printer::block_on(async {
        let needs = SamplerOptions { threads: !top.processes, ..SamplerOptions::default() };
        let mut gather = Sampler::start(root, interval, needs)?;
        let mut printer = Printer::start(top.count)?;
        let mut said = HashSet::new();
        while let NextStep::Sample = printer.next_step(&mut gather).await? {
            for note in missing_data_notes(&gather.state) {
                // Numbers in it change; the reason does not.
                let kind: String = note.chars().filter(|c| !c.is_ascii_digit()).collect();
                if said.insert(kind) {
                    print_error(&note);
                }
            }
            printer.print(batch_report(&gather.state, options));
        }
        Ok(EXIT_OK)
    })
}
