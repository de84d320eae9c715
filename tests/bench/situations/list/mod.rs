//! All situations, by what is wrong.

mod devices;
mod healthy;
mod neighbours;
mod stuck;

use crate::judge::{Level, Truth};
use crate::stage::{Disk, Result, Stage};

/// Something that happens on a machine, with what is true of it.
pub struct Situation {
    pub name: &'static str,
    /// What happens, for the table.
    pub about: &'static str,
    /// How long the program looks.
    pub secs: f64,
    /// Makes it, and returns the truth; `Err`: what is missing here.
    pub make: fn(&mut Stage) -> Result<Truth>,
}

pub fn all() -> impl Iterator<Item = &'static Situation> {
    [healthy::SITUATIONS, devices::SITUATIONS, neighbours::SITUATIONS, stuck::SITUATIONS].into_iter().flatten()
}

const HEALTHY: [Level; 2] = [Level::Nothing, Level::Note];
const WARNING: [Level; 2] = [Level::Warning, Level::Warning];
const CRITICAL: [Level; 2] = [Level::Critical, Level::Critical];
const LOUD: [Level; 2] = [Level::Warning, Level::Critical];

/// Something above a note about a disk.
fn on(disk: &Disk, severity: [Level; 2]) -> Truth {
    Truth { severity, device: Some(disk.name.clone()), ..Truth::default() }
}
