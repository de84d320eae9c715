//! Limits how many frames are drawn, whatever arrives: a flood in the kernel log, a key that is held down, children that
//! report.
//!
//! A token bucket: each frame takes one of two tokens, a token comes back every 125 ms. So any second has at most ten
//! frames. Data may only take the first token, so that a key finds one left and is drawn at once even in a flood. The
//! first picture may take the other one: the empty screen drawn at the start took the first.

use std::time::{Duration, Instant};

/// Time in which one token comes back.
const REFILL_INTERVAL: Duration = Duration::from_millis(125);
/// Tokens of a full bucket.
const CAPACITY: u32 = 2;

/// What a frame is drawn for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameReason {
    /// The user pressed a key, used the mouse, resized or resumed.
    Input,
    /// Anything else.
    Data,
}

/// When the next frame may be drawn.
#[derive(Debug)]
pub(super) struct FrameLimit {
    /// When the bucket is full again.
    full_at: Instant,
    /// Data may take the last token, too.
    awaits_first_picture: bool,
}

impl FrameLimit {
    /// A full bucket.
    pub(super) fn new(now: Instant, awaits_first_picture: bool) -> Self {
        Self { full_at: now, awaits_first_picture }
    }

    /// Whether data of the first picture is still awaited.
    pub(super) fn awaits_first_picture(&self) -> bool {
        self.awaits_first_picture
    }

    /// All data of the first picture is there: what follows leaves a token for keys.
    pub(super) fn end_first_picture(&mut self) {
        self.awaits_first_picture = false;
    }

    /// The earliest time for a frame.
    pub(super) fn earliest(&self, reason: FrameReason) -> Instant {
        let may_be_missing = match reason {
            FrameReason::Input => CAPACITY - 1,
            FrameReason::Data if self.awaits_first_picture => CAPACITY - 1,
            FrameReason::Data => 0,
        };
        // Not before the start of the clock, which a full bucket may be close to.
        self.full_at.checked_sub(REFILL_INTERVAL * may_be_missing).unwrap_or(self.full_at)
    }

    /// Takes the token of a frame drawn now.
    pub(super) fn take(&mut self, now: Instant) {
        self.full_at = self.full_at.max(now) + REFILL_INTERVAL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);

    /// The times in ms at which frames are drawn when something asks for one at each of `asked`.
    fn frames(asked: impl IntoIterator<Item = (u64, FrameReason)>) -> Vec<u64> {
        let start = Instant::now();
        let mut limit = FrameLimit::new(start, false);
        let mut drawn = Vec::new();
        for (ms, reason) in asked {
            let now = start + MS * ms as u32;
            if limit.earliest(reason) <= now {
                limit.take(now);
                drawn.push(ms);
            }
        }
        drawn
    }

    #[test]
    fn a_flood_draws_eight_frames_a_second_evenly() {
        let drawn = frames((0..2000).map(|ms| (ms, FrameReason::Data)));
        assert_eq!(drawn, (0..16).map(|n| n * 125).collect::<Vec<_>>());
    }

    #[test]
    fn a_key_in_a_flood_is_drawn_at_once() {
        let flood = (0..1000).map(|ms| (ms, if ms == 510 { FrameReason::Input } else { FrameReason::Data }));
        assert!(frames(flood).contains(&510));
    }

    #[test]
    fn two_keys_after_rest_are_drawn_at_once() {
        assert_eq!(frames([(0, FrameReason::Input), (1, FrameReason::Input), (2, FrameReason::Input)]), [0, 1]);
    }

    #[test]
    fn the_first_picture_does_not_wait_for_a_token_after_the_empty_screen() {
        let start = Instant::now();
        let mut limit = FrameLimit::new(start, true);
        limit.take(start);
        assert_eq!(limit.earliest(FrameReason::Data), start);
        limit.end_first_picture();
        assert_eq!(limit.earliest(FrameReason::Data), start + REFILL_INTERVAL);
    }

    proptest! {
        #[test]
        fn no_second_has_more_than_ten_frames(keys in proptest::collection::vec(any::<bool>(), 3000)) {
            let reason = |is_key: &bool| if *is_key { FrameReason::Input } else { FrameReason::Data };
            let drawn = frames(keys.iter().enumerate().map(|(ms, key)| (ms as u64, reason(key))));
            for first in &drawn {
                let in_second = drawn.iter().filter(|ms| (*first..first + 1000).contains(ms)).count();
                prop_assert!(in_second <= 10, "{in_second} from {first}");
            }
        }
    }
}
