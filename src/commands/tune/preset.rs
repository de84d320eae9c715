//! `tune preset`: lists the presets, or applies one by the same way as `set`.

use super::super::FINE;
use super::out::Out;
use super::{Done, careful, set};
use crate::root::Root;
use crate::tune::presets::{PRESETS, find};

/// All of them, each with what it sets and what it costs.
pub fn list(root: &Root) -> Done {
    let mut out = Out::default();
    let mut io = careful(root);
    for preset in PRESETS {
        out.line(format!("{}: {}", preset.name, preset.title));
        out.paragraph(preset.about, 100);
        let (words, missing) = preset.words_here(&mut io);
        out.paragraph(&format!("sets {}", words.join(" ")), 100);
        if !missing.is_empty() {
            out.paragraph(&format!("not on this machine: {}", missing.join(" ")), 100);
        }
        out.line(format!("source: {}", preset.source));
        out.gap();
    }
    out.line("`iotop-plus tune preset NAME --dry-run` shows what would change here.");
    Ok(out.print().map(|()| FINE))
}

/// Applies one, all or nothing.
pub fn run(root: &Root, name: &str, lease_secs: Option<u64>, dry_run: bool) -> Done {
    let (words, _) = find(name)?.words_here(&mut careful(root));
    set::run(root, words, lease_secs, dry_run)
}
