//! Batch mode (`-b`): prints reports line by line, for pipes and logs.

use super::exit::{EXIT_OK, print_error};
use super::full_screen::TopArgs;
use super::printer::Printer;
use super::sampler::{Sampler, SamplerOptions};
use crate::export::batch::{BatchOptions, batch_report, missing_data_notes};
use crate::root::Root;
use std::collections::HashSet;
use std::time::Duration;

pub(super) fn run(root: &Root, top: &TopArgs) -> anyhow::Result<u8> {
    let options = BatchOptions { only_active: top.only, is_accumulated: top.accumulated, is_tree: top.tree };
    let interval = Duration::from_secs_f64(top.delay.unwrap_or(1.0));
    super::printer::block_on(async {
        let sampler_options = SamplerOptions { threads: !top.processes, ..SamplerOptions::default() };
        let mut sampler = Sampler::start(root, interval, sampler_options)?;
        let mut printer = Printer::new(top.count);
        let mut printed = HashSet::new();
        while printer.wait_for_sample(&mut sampler).await? {
            for note in missing_data_notes(&sampler.state) {
                // Ignore the numbers in a note when checking whether it was printed before.
                let kind: String = note.chars().filter(|c| !c.is_ascii_digit()).collect();
                if printed.insert(kind) {
                    print_error(&note);
                }
            }
            printer.print(batch_report(&sampler.state, options));
        }
        Ok(EXIT_OK)
    })
}
