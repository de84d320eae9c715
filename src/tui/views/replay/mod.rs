//! Replay of a recording: its state, actions, effects and events.
//!
//! Recorded observations are applied like those of the collectors, so every view shows what it would have shown then.

pub(crate) mod judge;
pub(crate) mod player;
mod search;
#[cfg(test)]
mod tests;

/// Ticks read before the one to show: graphs need a past, and hung tasks are found by how long they wait.
const HISTORY_TICKS: u32 = 300;
