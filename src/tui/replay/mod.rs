//! A recording on the screen: where it stands, what can be asked of it, what it brings.
//!
//! Its news enters by the same door as that of the collectors, so every view shows it as it would have then.

pub mod player;
pub mod search;
#[cfg(test)]
mod tests;

use crate::doctor::transitions::FindingTransition;
use crate::model::kernel_log::LogClock;
use crate::model::observation::Observation;
use crate::model::system_state::HostInfo;
use crate::recording::decoder::DecodedTick;
use crate::recording::reader::RecordingSpan;

/// Speeds, in ticks of the recording's own pace.
pub const SPEEDS: [u16; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/// Where a replay stands.
#[derive(Debug, Clone, Default)]
pub struct ReplayUi {
    /// The file's name, cleaned.
    pub file: String,
    /// Whose machine.
    pub host: HostInfo,
    /// The kernel log's clock at the start.
    pub log_clock: LogClock,
    /// What it covers.
    pub span: RecordingSpan,
    /// Number of the tick on screen.
    pub tick_number: u32,
    /// It goes on by itself.
    pub is_playing: bool,
    /// Index into [`SPEEDS`].
    pub speed_index: usize,
    /// Frames that could not be read so far, and bytes that belong to none.
    pub damaged: u64,
    /// Tasks that did nothing for a while are missing: a key frame could not be read.
    pub is_partial: bool,
    /// A finding is searched for.
    pub is_searching: bool,
}

impl ReplayUi {
    /// At the start of a recording, playing.
    pub fn new(file: &str, host: HostInfo, log_clock: LogClock, span: RecordingSpan) -> Self {
        let file = crate::sanitize::sanitize(file);
        Self { file, host, log_clock, span, is_playing: true, damaged: span.damaged_bytes, ..Self::default() }
    }
}

/// What a key means in a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayAction {
    /// Play or pause.
    TogglePlay,
    /// So many ticks on, or back.
    StepTicks(i8),
    /// So many seconds on, or back.
    SkipSecs(i16),
    /// Quicker.
    Faster,
    /// Slower.
    Slower,
    /// Ask for a time.
    JumpToTime,
    /// To the last tick.
    Last,
    /// To the first tick.
    First,
    /// To the tick at which a finding begins or gets worse: the next one, or the one before.
    JumpToFinding {
        /// Towards the end.
        forward: bool,
    },
}

/// What the player is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayEffect {
    /// Go on by itself, so many times as quick as it was.
    Play(u16),
    /// Stay.
    Pause,
    /// So many ticks on, or back.
    Step(i32),
    /// To the tick at this wall clock, ns.
    SeekTime(i64),
    /// Search for the tick at which a finding begins, and go there. Anything else ends the search.
    FindFinding {
        /// Towards the end.
        forward: bool,
    },
}

/// What the player brings.
#[derive(Debug)]
pub enum ReplayEvent {
    /// Everything before is void: kernel lines of the time before, and what follows is told anew.
    Reset(Vec<Observation>),
    /// Ticks; more follow before there is anything to see, unless `settled`.
    Ticks {
        /// In their order.
        ticks: Vec<DecodedTick>,
        /// This is where it stands now.
        is_settled: bool,
        /// Frames that could not be read so far.
        unreadable_frames: u64,
    },
    /// How far the search for a finding is.
    Searching {
        /// Towards the end.
        forward: bool,
        /// The wall clock it has come to, ns.
        wall_ns: i64,
    },
    /// The search has ended.
    SearchEnded {
        /// It went towards the end.
        forward: bool,
        /// What begins at the tick it led to; nothing: there is no such tick that way; `None`: it was stopped.
        transitions: Option<Vec<FindingTransition>>,
    },
    /// There is nothing after the tick on screen.
    EndReached,
    /// The file cannot be read on: why.
    Failed(String),
}

impl ReplayEvent {
    /// Whether the screen is another one then.
    pub fn needs_redraw(&self) -> bool {
        match self {
            ReplayEvent::Reset(_) => false,
            ReplayEvent::Ticks { is_settled: settled, .. } => *settled,
            ReplayEvent::Searching { .. } | ReplayEvent::SearchEnded { .. } => true,
            ReplayEvent::EndReached | ReplayEvent::Failed(_) => true,
        }
    }
}
