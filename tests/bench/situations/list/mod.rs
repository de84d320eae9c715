//! All situations, by what is wrong. One takes a few lines: a name, what happens, how long the program looks, and a function
//! that makes it and returns the truth.

mod devices;
mod faults;
mod groups;
mod healthy;
mod indirect;
mod layers;
mod memory;
mod neighbours;
mod network;
mod stuck;

use crate::judge::{Level, Truth};
use crate::stage::{Disk, Result, Stage};

/// Where a situation is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// On this machine, beside other situations.
    Machine,
    /// On this machine, with no other situation beside it.
    Alone,
    /// In a guest: it takes a kernel that this machine need not have, or would disturb its other programs.
    Guest,
}

/// Something that happens on a machine, with what is true of it.
pub struct Situation {
    pub name: &'static str,
    /// What happens, for the table.
    pub about: &'static str,
    /// How long the program looks.
    pub secs: f64,
    pub place: Place,
    /// Makes it, and returns the truth; `Err`: what is missing here.
    pub make: fn(&mut Stage) -> Result<Truth>,
}

const fn situation(
    name: &'static str,
    about: &'static str,
    secs: f64,
    make: fn(&mut Stage) -> Result<Truth>,
) -> Situation {
    Situation { name, about, secs, place: Place::Machine, make }
}

/// A situation that others on the same machine would disturb.
const fn alone(name: &'static str, about: &'static str, secs: f64, make: fn(&mut Stage) -> Result<Truth>) -> Situation {
    Situation { name, about, secs, place: Place::Alone, make }
}

const fn in_guest(
    name: &'static str,
    about: &'static str,
    secs: f64,
    make: fn(&mut Stage) -> Result<Truth>,
) -> Situation {
    Situation { name, about, secs, place: Place::Guest, make }
}

pub fn all() -> impl Iterator<Item = &'static Situation> {
    let lists = [
        healthy::SITUATIONS,
        devices::SITUATIONS,
        neighbours::SITUATIONS,
        indirect::SITUATIONS,
        stuck::SITUATIONS,
        faults::SITUATIONS,
        memory::SITUATIONS,
        layers::SITUATIONS,
        indirect::IN_GUESTS,
        network::SITUATIONS,
        groups::SITUATIONS,
        layers::PATHS,
    ];
    lists.into_iter().flatten()
}

/// Whether a situation takes a boot of its own: what is in the kernel log would be said of the next one as well.
pub fn is_booted_alone(situation: &Situation) -> bool {
    layers::PATHS.iter().any(|alone| alone.name == situation.name)
}

/// Whether a guest runs no other situation after this one: what hangs in it cannot be removed before the timeout of TCP.
pub fn ends_its_boot(situation: &Situation) -> bool {
    situation.name == "nfs-silent"
}

const HEALTHY: [Level; 2] = [Level::Nothing, Level::Note];
const NOTE: [Level; 2] = [Level::Note, Level::Note];
const WARNING: [Level; 2] = [Level::Warning, Level::Warning];
const CRITICAL: [Level; 2] = [Level::Critical, Level::Critical];
const LOUD: [Level; 2] = [Level::Warning, Level::Critical];

/// Something about a disk.
fn on(disk: &Disk, severity: [Level; 2]) -> Truth {
    on_name(&disk.name, severity)
}

/// The same about a device that is no disk of the stage by itself, as an array.
fn on_name(name: &str, severity: [Level; 2]) -> Truth {
    Truth { device: Some(name.to_owned()), ..Truth::new(severity) }
}
