//! State of the Syncs view, and whether syncs are wanted at all.

use super::action::View;
use super::state::App;
use super::widgets::table::Scroll;
use crate::model::syncs::SLOW_THRESHOLD_MS;
use std::time::Duration;

/// The view's state.
#[derive(Debug, Clone)]
pub struct SyncsUi {
    /// Selection among those who wait.
    pub scroll: Scroll,
    /// Selection among the slow ones.
    pub slow: Scroll,
    /// Column sorted by (its place in the list of columns); `None`: who waits longest.
    pub sort: Option<usize>,
    /// The other way round.
    pub reverse: bool,
    /// Rows must contain this.
    pub filter: String,
    /// Columns passed over after the first.
    pub shift: usize,
    /// From how many milliseconds on a sync is listed by itself.
    pub threshold_ms: u64,
    /// What the collector was told last.
    pub asked: Option<Duration>,
}

impl Default for SyncsUi {
    fn default() -> Self {
        Self {
            scroll: Scroll::default(),
            slow: Scroll::default(),
            sort: None,
            reverse: false,
            filter: String::new(),
            shift: 0,
            threshold_ms: SLOW_THRESHOLD_MS,
            asked: None,
        }
    }
}

impl App {
    /// From which duration on syncs are to be listed: only while somebody looks at them, or at what is found in them.
    pub fn wanted_syncs(&self) -> Option<Duration> {
        matches!(self.ui.view, View::Syncs | View::Findings)
            .then(|| Duration::from_millis(self.ui.syncs.threshold_ms))
    }
}
