//! The place of a row in the tree of processes, and the lines that show it.

use std::fmt::Write as _;

/// Levels that are drawn; of a deeper row the innermost ones.
const MAX_LEVELS: u16 = 10;

/// Place of a row in the tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TreePosition {
    /// Number of rows above it, up to the root.
    pub depth: u16,
    /// Whether its siblings end with it.
    pub is_last: bool,
    /// For each of the innermost 64 levels above it, from bit 0 on: whether further siblings follow at that level.
    pub continued_levels: u64,
    /// Number of rows below it that are folded into it.
    pub folded: u32,
    /// It does not pass the filter itself; a row below it does.
    pub is_context: bool,
}

impl TreePosition {
    /// Appends the lines before its command, two cells a level, and the number of rows folded into it: `│ └─[+3] `.
    pub(crate) fn write(&self, out: &mut String) {
        if self.depth > 0 {
            let levels = self.depth.min(MAX_LEVELS);
            out.push_str(if self.depth > levels { "… " } else { "" });
            for level in (0..levels - 1).rev() {
                out.push_str(if self.continued_levels >> level & 1 == 1 { "│ " } else { "  " });
            }
            out.push_str(if self.is_last { "└─" } else { "├─" });
        }
        if self.folded > 0 {
            let _ = write!(out, "[+{}] ", self.folded);
        }
    }
}
