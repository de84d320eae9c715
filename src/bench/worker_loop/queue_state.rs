//! Where a queue in fio's order stands.

/// Of the queue of one worker.
#[derive(Default)]
pub(super) struct QueueState {
    /// Operations queued since depths were counted last (`io_u_queued`).
    pub(super) uncounted: usize,
    /// The queue was full, and more than `iodepth_low` operations are in flight.
    pub(super) is_emptying: bool,
    /// So many have to be complete before anything else is done; 0: nothing is waited for.
    pub(super) wanted: usize,
}
