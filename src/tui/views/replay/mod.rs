//! Replay of a recording: its state, actions, effects and events.
//!
//! Recorded observations are applied like those of the collectors, so every view shows what it would have shown then.

pub mod player;
pub mod search;
#[cfg(test)]
mod tests;
pub mod update;

use crate::doctor::transitions::FindingTransition;
use crate::model::kernel_log::LogClock;
use crate::model::observation::Observation;
use crate::model::system_state::HostInfo;
use crate::recording::decoder::DecodedTick;
use crate::recording::reader::RecordingSpan;

/// Ticks read before the one to show: graphs need a past, and hung tasks are found by how long they wait.
const HISTORY_TICKS: u32 = 300;
/// Playback speeds, as multiples of the recorded pace.
pub const SPEEDS: [u16; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/// State of a replay.
#[derive(Debug, Clone, Default)]
pub struct ReplayUi {
    /// Name of the file, sanitized.
    pub file: String,
    /// The recorded machine.
    pub host: HostInfo,
    /// The kernel log's clock at the start.
    pub log_clock: LogClock,
    /// Times and ticks the recording covers.
    pub span: RecordingSpan,
    /// Number of the tick on screen.
    pub tick_number: u32,
    /// Whether it is playing.
    pub is_playing: bool,
    /// Index in [`SPEEDS`].
    pub speed_index: usize,
    /// Number of frames that could not be read so far, and bytes that belong to none.
    pub damaged: u64,
    /// Whether idle tasks are missing, because a key frame could not be read.
    pub is_partial: bool,
    /// Whether a finding is being searched.
    pub is_searching: bool,
}

impl ReplayUi {
    /// At the start of a recording, playing.
    pub fn new(file: &str, host: HostInfo, log_clock: LogClock, span: RecordingSpan) -> Self {
        let file = crate::sanitize::sanitize(file);
        Self { file, host, log_clock, span, is_playing: true, damaged: span.damaged_bytes, ..Self::default() }
    }
}

/// An action in a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayAction {
    /// Play or pause.
    TogglePlay,
    /// Go this many ticks forward, or back.
    StepTicks(i8),
    /// Go this many seconds forward, or back.
    SkipSecs(i16),
    /// Play faster.
    Faster,
    /// Play slower.
    Slower,
    /// Ask for a time to go to.
    JumpToTime,
    /// Go to the last tick.
    Last,
    /// Go to the first tick.
    First,
    /// Go to the next or previous tick at which a finding begins or gets worse.
    JumpToFinding {
        /// Search forward.
        forward: bool,
    },
}

/// Work for the player.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayEffect {
    /// Play at this multiple of the recorded pace.
    Play(u16),
    /// Pause.
    Pause,
    /// Go this many ticks forward, or back.
    Step(i32),
    /// Go to the tick at this wall clock, ns since 1970.
    SeekTime(i64),
    /// Search the tick at which a finding begins, and go there. Any other effect ends the search.
    FindFinding {
        /// Search forward.
        forward: bool,
    },
}

/// An event of the player.
#[derive(Debug)]
pub enum ReplayEvent {
    /// Everything before is void. Holds the kernel log up to there; everything else follows.
    Reset(Vec<Observation>),
    /// Ticks to apply.
    Ticks {
        /// The ticks, in order.
        ticks: Vec<DecodedTick>,
        /// Whether the last one is the one to show; if not, more follow.
        is_settled: bool,
        /// Number of frames that could not be read so far.
        unreadable_frames: u64,
    },
    /// Progress of a search for a finding.
    Searching {
        /// Search forward.
        forward: bool,
        /// Wall clock reached, ns since 1970.
        wall_ns: i64,
    },
    /// A search has ended.
    SearchEnded {
        /// Searched forward.
        forward: bool,
        /// Findings that begin at the tick found; empty: there is no such tick; `None`: the search was stopped.
        transitions: Option<Vec<FindingTransition>>,
    },
    /// There is no tick after the one on screen.
    EndReached,
    /// The file cannot be read any further; says why.
    Failed(String),
}

impl ReplayEvent {
    /// Whether the event changes what is on screen.
    pub fn needs_redraw(&self) -> bool {
        match self {
            ReplayEvent::Reset(_) => false,
            ReplayEvent::Ticks { is_settled: settled, .. } => *settled,
            ReplayEvent::Searching { .. } | ReplayEvent::SearchEnded { .. } => true,
            ReplayEvent::EndReached | ReplayEvent::Failed(_) => true,
        }
    }
}
