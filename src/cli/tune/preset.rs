//! `tune preset`: lists the presets, or applies one like `set`.

use super::super::text_output::TextOutput;
use super::common::child_knob_io;
use super::set;
use crate::root::Root;
use crate::tuning::presets::{PRESETS, find_preset};

/// Lists all presets with their settings and costs.
pub(super) fn list(root: &Root) -> anyhow::Result<u8> {
    let mut out = TextOutput::default();
    let mut io = child_knob_io(root);
    for preset in PRESETS {
        out.push_line(format!("{}: {}", preset.name, preset.title));
        out.push_paragraph(preset.description);
        let (words, missing) = preset.available_assignments(&mut io);
        out.push_paragraph(&format!("sets {}", words.join(" ")));
        if !missing.is_empty() {
            out.push_paragraph(&format!("not on this machine: {}", missing.join(" ")));
        }
        out.push_line(format!("source: {}", preset.source));
        out.push_blank();
    }
    out.push_line("`iotop-plus tune preset NAME --dry-run` shows what would change here.");
    out.print()
}

/// Applies a preset, all or nothing.
pub(super) fn run(root: &Root, name: &str, lease_secs: Option<u64>, dry_run: bool) -> anyhow::Result<u8> {
    let (words, _) = find_preset(name)?.available_assignments(&mut child_knob_io(root));
    set::run(root, words, lease_secs, dry_run)
}
