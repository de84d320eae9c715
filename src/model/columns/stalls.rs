//! What a task is stalled by or waits for: the column that says so, and the order that has stalled tasks first.

use crate::model::process::ProcessRow;
use crate::model::wait_channel;
use crate::units::write_age;
use std::borrow::Cow;
use std::fmt::Write as _;

/// A task counts as stalled from this share of its time on, in per cent.
const STALLED_PCT: f64 = 20.0;
/// A task in state D counts as stalled for this share at least: whoever waits much is found there at most samples.
const WAITING_PCT: f64 = 25.0;
/// A task in state D for this long is stuck, not between two requests.
const STUCK_NS: u64 = 2_000_000_000;

/// Requests that take this long on average, in us, make a task wait: fast ones only keep it busy.
const SLOW_REQUEST_US: f64 = 20_000.0;

/// For how long a task waits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum WaitTime {
    /// Stuck for this long.
    Secs(u64),
    /// For this share of its time, in per cent.
    Percent(f64),
    /// Found waiting at the last sample.
    Brief,
}

impl WaitTime {
    /// `16s`, `97%`, `<2s`.
    pub(crate) fn text(self) -> String {
        let mut out = String::new();
        match self {
            Self::Secs(secs) => write_age(&mut out, secs),
            Self::Percent(pct) => _ = write!(out, "{pct:.0}%"),
            Self::Brief => _ = write!(out, "<{}s", STUCK_NS / 1_000_000_000),
        }
        out.trim_start().to_owned()
    }
}

/// Per cent of its time that a task was stalled: 100 if it is stuck in state D, else by the largest of its stalls, and more
/// than a busy one if it is in state D at present.
pub(super) fn stalled_pct(row: &ProcessRow<'_>) -> Option<f64> {
    if is_stuck(row) {
        return Some(100.0);
    }
    let at_least = row.is_in_d_state().then_some(WAITING_PCT);
    stalls(row).into_iter().filter_map(|(_, pct)| pct).chain(at_least).max_by(f64::total_cmp)
}

/// Whether a program waits for much of its time. Kernel threads wait for a living.
pub(crate) fn is_stalled(row: &ProcessRow<'_>) -> bool {
    !row.raw.kernel_thread && stalled_pct(row).is_some_and(|pct| pct >= STALLED_PCT)
}

fn is_stuck(row: &ProcessRow<'_>) -> bool {
    row.is_in_d_state() && row.state_duration_ns() >= STUCK_NS
}

/// The stalls of a task: what by, and the share of its time.
fn stalls(row: &ProcessRow<'_>) -> [(&'static str, Option<f64>); 5] {
    let slow_io = row.attributed_io().filter(|io| io.mean_us.is_some_and(|us| us >= SLOW_REQUEST_US));
    [
        ("throttled", row.throttled_pct()),
        ("reclaim", row.reclaim_pct()),
        ("swap", row.rates().swapin_delay_pct),
        ("I/O", row.rates().io_delay_pct),
        ("slow I/O", slow_io.map(|io| (io.reads_in_flight + io.writes_in_flight).min(1.0) * 100.0)),
    ]
}

/// The stall with the largest share, in per cent.
fn largest_stall(row: &ProcessRow<'_>) -> Option<(&'static str, f64)> {
    let known = stalls(row).into_iter().filter_map(|(what, pct)| Some((what, pct.filter(|pct| *pct >= 1.0)?)));
    known.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Above every rate in bytes per second.
const ABOVE_ALL_RATES: f64 = 1e15;

/// A number that sorts stalled tasks first, then the others by bytes read and written per second.
pub(super) fn stalled_then_io(row: &ProcessRow<'_>) -> Option<f64> {
    let io = row.rates().read_bytes_per_s.zip(row.rates().write_bytes_per_s).map(|(read, written)| read + written);
    match stalled_pct(row).filter(|_| is_stalled(row)) {
        Some(pct) => Some(ABOVE_ALL_RATES * pct.round() + io.unwrap_or(0.0)),
        None => io,
    }
}

/// What a task waits for and for how long: where it is in state D, else its largest stall.
pub(crate) fn wait<'a>(row: &ProcessRow<'a>) -> Option<(&'a str, WaitTime)> {
    let stall = largest_stall(row);
    if !row.is_in_d_state() {
        return stall.map(|(what, pct)| (what, WaitTime::Percent(pct)));
    }
    let time = match stall {
        _ if is_stuck(row) => WaitTime::Secs(row.state_duration_ns() / 1_000_000_000),
        Some((_, pct)) if pct >= STALLED_PCT => WaitTime::Percent(pct),
        _ => WaitTime::Brief,
    };
    let place = row.wait_channel().map(|function| wait_channel::find(function).map_or(function, |known| known.short));
    Some((place.or(stall.map(|(what, _)| what)).unwrap_or("state D"), time))
}

/// `ext4 journal`, `13s ext4 journal`, `throttled 97%`; empty if it waits for nothing.
pub(crate) fn waits_text<'a>(row: &ProcessRow<'a>) -> Cow<'a, str> {
    match wait(row) {
        // How long comes first: names of functions are cut.
        Some((what, time @ WaitTime::Secs(_))) => format!("{} {what}", time.text()).into(),
        Some((what, time @ WaitTime::Percent(_))) if !row.is_in_d_state() => format!("{what} {}", time.text()).into(),
        Some((what, _)) => what.into(),
        None => "".into(),
    }
}
