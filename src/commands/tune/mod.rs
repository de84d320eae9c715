//! `tune`: the knobs without a screen.

mod out;
mod persist;
mod preset;
mod set;
pub(super) mod show;
mod status;
mod undo;

use super::{FAILED, FINE, PRIVILEGE, REFUSED, USAGE, complain};
use crate::cli::tune::Tune;
use crate::root::Root;
use crate::tune::address::Address;
use crate::tune::child::Careful;
use crate::tune::plan::Refusal;
use crate::tune::sudo::sudo_line;

/// Does it; the exit code says how it went.
pub fn run(root: &Root, action: Tune) -> anyhow::Result<u8> {
    let done = match action {
        Tune::List { part } => show::list(root, part.as_deref()),
        Tune::Get { knobs } => show::get(root, &knobs),
        Tune::Set { changes, lease, keep, dry_run } => {
            set::run(root, changes, (!keep).then_some(lease), dry_run)
        }
        Tune::Preset { name: None, .. } => preset::list(root),
        Tune::Preset { name: Some(name), lease, keep, dry_run } => {
            preset::run(root, &name, (!keep).then_some(lease), dry_run)
        }
        Tune::Keep { id } => undo::keep(root, id),
        Tune::Renew { id, lease } => undo::renew(root, id, lease),
        Tune::Undo { id } => undo::undo(root, id),
        Tune::Status { knobs } => status::run(root, &knobs),
        Tune::Persist { knobs } => persist::persist(root, &knobs),
        Tune::Unpersist { knobs } => persist::unpersist(root, &knobs),
    };
    match done {
        Ok(done) => done,
        Err(refusal) => Ok(refused(&refusal)),
    }
}

/// Says why nothing was done, and for want of a privilege the `sudo` line; the exit code.
pub(super) fn refused(refusal: &Refusal) -> u8 {
    complain(&refusal.to_string());
    match refusal {
        Refusal::Usage(_) => USAGE,
        Refusal::Unsafe(_) => REFUSED,
        Refusal::Privilege(_) => {
            complain(&format!("to do it as root: {}", this_as_root()));
            PRIVILEGE
        }
        Refusal::Failed(_) => FAILED,
    }
}

/// The process behind `tune set`; `kill` is a test's plan.
pub fn tuner(root: &Root, kill: Option<&str>) -> anyhow::Result<u8> {
    let plan = kill.map(str::parse).transpose().map_err(anyhow::Error::msg::<String>)?;
    crate::tune::lease::main(root, plan).map(|()| FINE)
}

/// What a step of `tune` comes to: refused with a reason, or an exit code, or an error of the output.
type Done = Result<anyhow::Result<u8>, Refusal>;

/// Access to knobs that never hangs this process.
pub(super) fn careful(root: &Root) -> Careful {
    Careful::new(root, Root::self_exe().into())
}

/// Only root changes anything.
pub(super) fn need_root(root: &Root, what: &str) -> Result<(), Refusal> {
    match rustix::process::geteuid().is_root() || !root.is_live() {
        true => Ok(()),
        false => Err(Refusal::Privilege(format!("{what} needs root"))),
    }
}

fn addresses(words: &[String]) -> Result<Vec<Address>, Refusal> {
    words.iter().map(|w| Address::parse(w).map_err(Refusal::Usage)).collect()
}

/// This very command under sudo.
pub fn this_as_root() -> String {
    let program = std::env::current_exe().map(|p| p.to_string_lossy().into_owned());
    sudo_line(&program.unwrap_or_else(|_| "iotop-plus".into()), std::env::args().skip(1))
}
