//! A point in logarithms, and the medians of many.

/// The median absolute deviation of a normal distribution, times this, is its standard deviation.
pub(super) const MAD_TO_SIGMA: f64 = 1.4826;

/// What a device did in an interval, in logarithms.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoadPoint {
    /// End of the interval; not a logarithm.
    pub(super) at_secs: f64,
    /// Of the latency in ms.
    pub(super) latency: f64,
    /// Of requests per second.
    pub(super) requests: f64,
    /// Of bytes per request.
    pub(super) size: f64,
}

impl LoadPoint {
    /// The logarithm of the mean number of requests in flight, in thousandths (Little's law).
    pub(super) fn in_flight(&self) -> f64 {
        self.requests + self.latency
    }
}

/// The median; 0 of nothing.
pub(super) fn median(values: impl Iterator<Item = f64>) -> f64 {
    quantile(&mut values.collect::<Vec<_>>(), 0.5)
}

/// The value below which that part of the values lies; 0 of nothing.
pub(super) fn quantile(values: &mut [f64], part: f64) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let at = ((values.len() - 1) as f64 * part).round() as usize;
    *values.select_nth_unstable_by(at, f64::total_cmp).1
}
