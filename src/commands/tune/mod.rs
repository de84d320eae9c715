//! `tune`: the knobs without a screen.

mod persist;
mod preset;
mod set;
pub(super) mod show;
mod status;
mod text_output;
mod undo;

use super::{EXIT_FAILED, EXIT_OK, EXIT_PRIVILEGE, EXIT_REFUSED, EXIT_USAGE, print_error};
use crate::cli::tune::TuneCommand;
use crate::root::Root;
use crate::tuning::child_io::ChildKnobIo;
use crate::tuning::knob_id::KnobId;
use crate::tuning::plan::TuneError;
use crate::tuning::sudo::sudo_command_line;

/// Does it; the exit code says how it went.
pub fn run(root: &Root, action: TuneCommand) -> anyhow::Result<u8> {
    let done = match action {
        TuneCommand::List { part } => show::list(root, part.as_deref()),
        TuneCommand::Get { knobs } => show::get(root, &knobs),
        TuneCommand::Set { changes, lease, keep, dry_run } => {
            set::run(root, changes, (!keep).then_some(lease), dry_run)
        }
        TuneCommand::Preset { name: None, .. } => preset::list(root),
        TuneCommand::Preset { name: Some(name), lease, keep, dry_run } => {
            preset::run(root, &name, (!keep).then_some(lease), dry_run)
        }
        TuneCommand::Keep { id } => undo::keep(root, id),
        TuneCommand::Renew { id, lease } => undo::renew(root, id, lease),
        TuneCommand::Undo { id } => undo::undo(root, id),
        TuneCommand::Status { knobs } => status::run(root, &knobs),
        TuneCommand::Persist { knobs } => persist::persist(root, &knobs),
        TuneCommand::Unpersist { knobs } => persist::unpersist(root, &knobs),
    };
    match done {
        Ok(done) => done,
        Err(refusal) => Ok(print_refusal(&refusal)),
    }
}

/// Says why nothing was done, and for want of a privilege the `sudo` line; the exit code.
pub(super) fn print_refusal(refusal: &TuneError) -> u8 {
    print_error(&refusal.to_string());
    match refusal {
        TuneError::Usage(_) => EXIT_USAGE,
        TuneError::Unsafe(_) => EXIT_REFUSED,
        TuneError::Privilege(_) => {
            print_error(&format!("to do it as root: {}", sudo_this_command()));
            EXIT_PRIVILEGE
        }
        TuneError::Failed(_) => EXIT_FAILED,
    }
}

/// The process behind `tune set`; `kill` is a test's plan.
pub fn run_tuner(root: &Root, kill: Option<&str>) -> anyhow::Result<u8> {
    let plan = kill.map(str::parse).transpose().map_err(anyhow::Error::msg::<String>)?;
    crate::tuning::tuner::run_tuner_process(root, plan).map(|()| EXIT_OK)
}

/// What a step of `tune` comes to: refused with a reason, or an exit code, or an error of the output.
type CommandResult = Result<anyhow::Result<u8>, TuneError>;

/// Access to knobs that never hangs this process.
pub(super) fn child_knob_io(root: &Root) -> ChildKnobIo {
    ChildKnobIo::new(root, Root::self_exe().into())
}

/// Only root changes anything.
pub(super) fn require_root(root: &Root, what: &str) -> Result<(), TuneError> {
    match rustix::process::geteuid().is_root() || !root.is_live() {
        true => Ok(()),
        false => Err(TuneError::Privilege(format!("{what} needs root"))),
    }
}

fn parse_knob_ids(words: &[String]) -> Result<Vec<KnobId>, TuneError> {
    words.iter().map(|w| KnobId::parse(w).map_err(TuneError::Usage)).collect()
}

/// This very command under sudo.
pub fn sudo_this_command() -> String {
    let program = std::env::current_exe().map(|p| p.to_string_lossy().into_owned());
    sudo_command_line(&program.unwrap_or_else(|_| "iotop-plus".into()), std::env::args().skip(1))
}
