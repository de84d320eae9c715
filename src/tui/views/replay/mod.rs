//! Replay of a recording: its state, actions, effects and events.
//!
//! Recorded observations are applied like those of the collectors, so every view shows what it would have shown then.

pub(crate) mod judge;
pub(crate) mod player;
mod search;
#[cfg(test)]
mod tests;

/// Ticks read before the one to show: hung tasks are found by how long they wait, and graphs need a past, two samples a cell
/// on a screen of 200 columns.
pub(crate) const HISTORY_TICKS: u32 = 420;
