//! Counters by label, bounded: the largest have a series of their own, what all others counted is in one named `other`.
//!
//! A counter may only grow. So a series keeps its place, even when others grow faster, until it has not grown for
//! [`IDLE_AFTER_NS`] and another one needs the place; it is left out then, and what it counted is not moved to `other`.

use std::collections::BTreeMap;

/// A place is given away after so long without growth, ns.
const IDLE_AFTER_NS: u64 = 900_000_000_000;
/// The label of what has no series of its own.
pub(super) const OTHER: &str = "other";

/// What a series counts.
pub(super) trait Count: Default {
    /// Adds what was counted in an interval.
    fn add(&mut self, increment: &Self);
    /// How important it is to have a series of its own.
    fn weight(&self) -> f64;
}

#[derive(Default)]
struct CountedSeries<V> {
    value: V,
    grew_ns: u64,
}

/// The series of one label set; `N` is the number of labels.
pub(super) struct TopSeries<const N: usize, V> {
    limit: usize,
    series: BTreeMap<[String; N], CountedSeries<V>>,
    other: V,
}

impl<const N: usize, V: Count> TopSeries<N, V> {
    /// At most `limit` series besides `other`.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, series: BTreeMap::new(), other: V::default() }
    }

    /// Adds what was counted in the interval that ends at `now_ns`, by label.
    pub(super) fn add(&mut self, increments: BTreeMap<[String; N], V>, now_ns: u64) {
        let mut increments: Vec<_> = increments.into_iter().collect();
        increments.sort_by(|a, b| b.1.weight().total_cmp(&a.1.weight()));
        for (labels, increment) in increments {
            // A program that calls itself that must not make a second series of that name.
            let is_other = labels.iter().all(|label| label == OTHER);
            if is_other || !self.has_place(&labels, now_ns) {
                self.other.add(&increment);
                continue;
            }
            let series = self.series.entry(labels).or_default();
            series.value.add(&increment);
            series.grew_ns = now_ns;
        }
    }

    /// Whether there is a series with these labels or a place for one, which an idle series may have to give away.
    fn has_place(&mut self, labels: &[String; N], now_ns: u64) -> bool {
        if self.series.contains_key(labels) || self.series.len() < self.limit {
            return true;
        }
        let Some((idle, series)) = self.series.iter().min_by_key(|(_, series)| series.grew_ns) else { return false };
        let is_idle = now_ns.saturating_sub(series.grew_ns) >= IDLE_AFTER_NS;
        if is_idle {
            let idle = idle.clone();
            self.series.remove(&idle);
        }
        is_idle
    }

    /// All series in the order of their labels, `other` last.
    pub(super) fn iter(&self) -> impl Iterator<Item = ([&str; N], &V)> {
        let series =
            self.series.iter().map(|(labels, series)| (labels.each_ref().map(|label| &**label), &series.value));
        series.chain([([OTHER; N], &self.other)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Count for f64 {
        fn add(&mut self, increment: &Self) {
            *self += increment;
        }

        fn weight(&self) -> f64 {
            *self
        }
    }

    fn counts(pairs: &[(&str, f64)]) -> BTreeMap<[String; 1], f64> {
        pairs.iter().map(|(name, n)| ([(*name).to_owned()], *n)).collect()
    }

    fn shown(series: &TopSeries<1, f64>) -> Vec<(&str, f64)> {
        series.iter().map(|([name], n)| (name, *n)).collect()
    }

    #[test]
    fn the_largest_get_a_series_and_keep_it() {
        let mut series = TopSeries::new(2);
        series.add(counts(&[("a", 1.0), ("b", 5.0), ("c", 3.0)]), 1);
        assert_eq!(shown(&series), [("b", 5.0), ("c", 3.0), (OTHER, 1.0)]);
        series.add(counts(&[("a", 100.0), ("b", 1.0)]), 2);
        assert_eq!(shown(&series), [("b", 6.0), ("c", 3.0), (OTHER, 101.0)]);
    }

    #[test]
    fn an_idle_series_gives_its_place_to_one_that_grows() {
        let mut series = TopSeries::new(2);
        series.add(counts(&[("b", 5.0), ("c", 3.0)]), 1);
        series.add(counts(&[("b", 1.0), ("d", 2.0)]), IDLE_AFTER_NS);
        assert_eq!(shown(&series), [("b", 6.0), ("c", 3.0), (OTHER, 2.0)]);
        series.add(counts(&[("d", 4.0)]), IDLE_AFTER_NS + 1);
        assert_eq!(shown(&series), [("b", 6.0), ("d", 4.0), (OTHER, 2.0)]);
    }

    #[test]
    fn a_program_called_other_has_no_second_series() {
        let mut series = TopSeries::new(2);
        series.add(counts(&[(OTHER, 5.0)]), 1);
        assert_eq!(shown(&series), [(OTHER, 5.0)]);
    }
}
