//! State of the Syncs view, and whether syncs are wanted at all.

use super::action::ViewId;
use super::state::App;
use super::widgets::table::Scroll;
use crate::model::syncs::SLOW_THRESHOLD_MS;
use std::time::Duration;

/// The view's state.
#[derive(Debug, Clone)]
pub struct SyncsState {
    /// Selection among those who wait.
    pub scroll: Scroll,
    /// Selection among the slow ones.
    pub slow_scroll: Scroll,
    /// Column sorted by (its place in the list of columns); `None`: who waits longest.
    pub sort_column: Option<usize>,
    /// The other way round.
    pub reverse: bool,
    /// Rows must contain this.
    pub filter: String,
    /// Columns passed over after the first.
    pub column_offset: usize,
    /// From how many milliseconds on a sync is listed by itself.
    pub threshold_ms: u64,
    /// What the collector was told last.
    pub requested_threshold: Option<Duration>,
}

impl Default for SyncsState {
    fn default() -> Self {
        Self {
            scroll: Scroll::default(),
            slow_scroll: Scroll::default(),
            sort_column: None,
            reverse: false,
            filter: String::new(),
            column_offset: 0,
            threshold_ms: SLOW_THRESHOLD_MS,
            requested_threshold: None,
        }
    }
}

impl App {
    /// From which duration on syncs are to be listed: only while somebody looks at them, or at what is found in them.
    pub fn slow_sync_threshold(&self) -> Option<Duration> {
        matches!(self.screen.view, ViewId::Syncs | ViewId::Findings)
            .then(|| Duration::from_millis(self.views.syncs.threshold_ms))
    }
}
