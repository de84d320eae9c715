//! `tune persist` and `tune unpersist`.

use super::super::text_output::TextOutput;
use super::common::{child_knob_io, require_root};
use crate::root::Root;
use crate::tuning::persist_plan::{self, PersistChanges};

/// Persists the given values, or the current ones.
pub(super) fn persist(root: &Root, words: &[String]) -> anyhow::Result<u8> {
    let wanted = persist_plan::plan_persist(root, &mut child_knob_io(root), words)?;
    write_and_print(root, &wanted)
}

/// Removes values from our files. Current values stay.
pub(super) fn unpersist(root: &Root, words: &[String]) -> anyhow::Result<u8> {
    write_and_print(root, &persist_plan::plan_unpersist(root, words)?)
}

fn write_and_print(root: &Root, wanted: &PersistChanges) -> anyhow::Result<u8> {
    require_root(root, "writing below /etc")?;
    let mut out = TextOutput::default();
    for line in persist_plan::write_and_report(root, wanted)? {
        out.push_line(line);
    }
    out.print()
}
