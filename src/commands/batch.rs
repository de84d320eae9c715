//! `-b`: reports in lines, for pipes and logs.

use super::gather::{Gather, Needs};
use super::printer::{Printer, Step};
use super::{FINE, complain};
use crate::cli::Top;
use crate::export::batch::{BatchOptions, missing_data_notes, batch_report};
use crate::root::Root;
use std::collections::HashSet;
use std::time::Duration;

/// Prints reports until there were enough, the reader leaves or a signal ends it.
pub fn run(root: &Root, top: &Top) -> anyhow::Result<u8> {
    let options = BatchOptions { only_active: top.only, is_accumulated: top.accumulated };
    let interval = Duration::from_secs_f64(top.delay.unwrap_or(1.0));
    super::printer::block_on(async {
        let needs = Needs { threads: !top.processes, ..Needs::default() };
        let mut gather = Gather::start(root, interval, needs)?;
        let mut printer = Printer::start(top.count)?;
        let mut said = HashSet::new();
        while let Step::Sample = printer.step(&mut gather).await? {
            for note in missing_data_notes(&gather.world) {
                // Numbers in it change; the reason does not.
                let kind: String = note.chars().filter(|c| !c.is_ascii_digit()).collect();
                if said.insert(kind) {
                    complain(&note);
                }
            }
            printer.print(batch_report(&gather.world, options));
        }
        Ok(FINE)
    })
}
