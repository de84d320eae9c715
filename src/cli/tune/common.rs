//! What several subcommands of `tune`, and other subcommands that read or change knobs, share.

use crate::root::Root;
use crate::tuning::child_io::ChildKnobIo;
use crate::tuning::knob_id::KnobId;
use crate::tuning::plan::TuneError;

/// Access to knobs that cannot hang this process.
pub(in crate::cli) fn child_knob_io(root: &Root) -> ChildKnobIo {
    ChildKnobIo::new(root, Root::self_exe().into())
}

/// Requires root, except for captured trees.
pub(in crate::cli) fn require_root(root: &Root, action: &str) -> Result<(), TuneError> {
    match rustix::process::geteuid().is_root() || !root.is_live() {
        true => Ok(()),
        false => Err(TuneError::Privilege(format!("{action} needs root"))),
    }
}

pub(in crate::cli) fn parse_knob_ids(ids: &[String]) -> Result<Vec<KnobId>, TuneError> {
    ids.iter().map(|id| Ok(KnobId::parse(id)?)).collect()
}
