//! The figures that the rules judge, with their limits: what is shown where nothing is wrong, and below a finding where
//! there is room.

use crate::doctor::{Check, checks, rule_count};
use crate::tui::view::Shared;
use crate::tui::widgets::wrap;

/// Cells of the name of a figure, and of its value where both are in one line.
const NAME_WIDTH: usize = 30;
const VALUE_WIDTH: usize = 42;
/// From this width on value and limit are in columns.
const COLUMNS_WIDTH: usize = 118;

/// `48 of 51 rules judged`.
pub(super) fn judged_text(shared: &Shared) -> String {
    let skipped = &shared.findings.skipped_rules;
    format!("{} of {} rules judged", rule_count().saturating_sub(skipped.len()), rule_count())
}

/// One figure a line, in so many cells; where they are few, with further lines.
pub(super) fn check_lines(shared: &Shared, width: u16) -> Vec<String> {
    checks(&shared.system).iter().flat_map(|check| lines_of(check, width.into())).collect()
}

fn lines_of(check: &Check, width: usize) -> Vec<String> {
    let limit = if check.limit.is_empty() { String::new() } else { format!("a finding from {}", check.limit) };
    if width >= COLUMNS_WIDTH && check.now.chars().count() < VALUE_WIDTH {
        return vec![format!("{:<NAME_WIDTH$}{:<VALUE_WIDTH$}{limit}", check.what, check.now).trim_end().to_owned()];
    }
    let separator = if limit.is_empty() { "" } else { " · " };
    let text = format!("{}{separator}{limit}", check.now);
    let lines = wrap(&text, width.saturating_sub(NAME_WIDTH).max(20));
    let name = |i: usize| if i == 0 { check.what } else { "" };
    lines.iter().enumerate().map(|(i, line)| format!("{:<NAME_WIDTH$}{line}", name(i))).collect()
}
