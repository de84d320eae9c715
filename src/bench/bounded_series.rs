//! A series of points that stays short however many are added.

/// A point of a [`BoundedSeries`].
pub(crate) trait Merge: Sized {
    /// Neighbouring points as one.
    fn merge(points: &[Self]) -> Self;
}

/// Fewer than `LIMIT` points: at `LIMIT` pairs of neighbours are merged, as is what is added from then on.
#[derive(Debug, Default)]
pub(crate) struct BoundedSeries<T, const LIMIT: usize> {
    pub points: Vec<T>,
    pending: Vec<T>,
    /// How often pairs were merged.
    halvings: u32,
}

impl<T: Merge, const LIMIT: usize> BoundedSeries<T, LIMIT> {
    pub(crate) fn push(&mut self, point: T) {
        self.pending.push(point);
        if self.pending.len() < 1 << self.halvings {
            return;
        }
        self.points.push(T::merge(&self.pending));
        self.pending.clear();
        if self.points.len() >= LIMIT {
            self.points = self.points.chunks(2).map(T::merge).collect();
            self.halvings += 1;
        }
    }

    /// The point added last, merged or not.
    pub(crate) fn newest(&self) -> Option<&T> {
        self.pending.last().or(self.points.last())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Merge for u64 {
        fn merge(points: &[Self]) -> Self {
            points.iter().copied().max().unwrap_or(0)
        }
    }

    #[test]
    fn a_series_stays_bounded_and_in_order() {
        let mut series = BoundedSeries::<u64, 1200>::default();
        (0..100_000).for_each(|n| series.push(n));
        assert!((600..1200).contains(&series.points.len()), "{}", series.points.len());
        assert!(series.points.is_sorted() && series.newest() == Some(&99_999));
    }
}
