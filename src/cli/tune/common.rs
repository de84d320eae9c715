//! What several subcommands of `tune`, and other subcommands that read or change knobs, share.

use super::super::exit::{EXIT_FAILED, EXIT_PRIVILEGE, EXIT_REFUSED, EXIT_USAGE, print_error};
use crate::root::Root;
use crate::tuning::child_io::ChildKnobIo;
use crate::tuning::knob_id::KnobId;
use crate::tuning::plan::TuneError;
use crate::tuning::sudo::sudo_command_line;

/// Prints why nothing was done, with a sudo command if a privilege is missing; returns the exit code.
pub fn print_refusal(error: &TuneError) -> u8 {
    print_error(&error.to_string());
    match error {
        TuneError::Usage(_) => EXIT_USAGE,
        TuneError::Unsafe(_) => EXIT_REFUSED,
        TuneError::Privilege(_) => {
            print_error(&format!("to do it as root: {}", sudo_this_command()));
            EXIT_PRIVILEGE
        }
        TuneError::Failed(_) => EXIT_FAILED,
    }
}

/// The result of a subcommand: an error of tuning, or an exit code, or an error of the output.
pub type CommandResult = Result<anyhow::Result<u8>, TuneError>;

/// Access to knobs that cannot hang this process.
pub fn child_knob_io(root: &Root) -> ChildKnobIo {
    ChildKnobIo::new(root, Root::self_exe().into())
}

/// Requires root, except for captured trees.
pub fn require_root(root: &Root, action: &str) -> Result<(), TuneError> {
    match rustix::process::geteuid().is_root() || !root.is_live() {
        true => Ok(()),
        false => Err(TuneError::Privilege(format!("{action} needs root"))),
    }
}

/// Parses knob ids.
pub fn parse_knob_ids(ids: &[String]) -> Result<Vec<KnobId>, TuneError> {
    ids.iter().map(|id| Ok(KnobId::parse(id)?)).collect()
}

/// This command line under sudo.
pub fn sudo_this_command() -> String {
    let program = std::env::current_exe().map(|p| p.to_string_lossy().into_owned());
    sudo_command_line(&program.unwrap_or_else(|_| "iotop-plus".into()), std::env::args().skip(1))
}
