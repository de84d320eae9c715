//! Compares two small samples without assuming a distribution: medians, the exact rank test, and
//! the corresponding confidence interval of the ratio.
//!
//! Mann and Whitney, Ann. Math. Statist. 18 (1947); Hodges and Lehmann, Ann. Math. Statist. 34 (1963); the interval
//! is the one of Moses: those ratios which the test would not reject.

use serde::{Deserialize, Serialize};

/// Below this p a difference counts as shown.
pub(crate) const ALPHA: f64 = 0.05;
/// Fewest rounds of an arm with which [`ALPHA`] can be reached.
pub(crate) const MIN_ROUNDS: usize = 4;
/// Rounds of an arm up to which the exact test is quick.
pub(crate) const MAX_ROUNDS: usize = 50;

/// The comparison of B with A.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmComparison {
    /// Number of values of A and of B.
    pub n: [usize; 2],
    /// Medians of A, of B.
    pub medians: [f64; 2],
    /// B over A: Hodges and Lehmann's estimate, the median of the ratios of every figure of B to every one of A.
    pub ratio: f64,
    /// The interval of that ratio; `None`: too few figures for 95 %.
    pub interval: Option<ConfidenceInterval>,
    /// Two-sided p of the exact Mann-Whitney test with ties.
    pub p: f64,
    /// The smallest p that this many values can reach.
    pub least_p: f64,
}

/// The confidence interval of the ratio.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ConfidenceInterval {
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// How often such an interval holds the true ratio, per cent: at least 95.
    pub(crate) confidence_pct: f64,
}

impl ArmComparison {
    /// Compares positive values; `None` if a group is empty or has other values.
    pub fn compare(a: &[f64], b: &[f64]) -> Option<Self> {
        let sound = |v: &[f64]| !v.is_empty() && v.len() <= MAX_ROUNDS && v.iter().all(|x| x.is_finite() && *x > 0.0);
        if !sound(a) || !sound(b) {
            return None;
        }
        // Logarithms: a shift of theirs is a ratio.
        let mut differences: Vec<f64> = a.iter().flat_map(|x| b.iter().map(move |y| y.ln() - x.ln())).collect();
        differences.sort_by(f64::total_cmp);
        let least_p = (2.0 / binomial(a.len() + b.len(), a.len())).min(1.0);
        Some(Self {
            n: [a.len(), b.len()],
            medians: [median(a)?, median(b)?],
            ratio: median(&differences)?.exp(),
            interval: confidence_interval(&differences, a.len(), b.len()),
            p: mann_whitney(a, b),
            least_p,
        })
    }

    pub(crate) fn is_shown(&self) -> bool {
        self.p < ALPHA
    }

    /// The smallest factor between the arms that would show, with the scatter of these values.
    pub(crate) fn detectable(&self) -> Option<f64> {
        let i = self.interval?;
        Some((self.ratio / i.low).max(i.high / self.ratio))
    }
}

/// The middle value; of an even number the mean of the two in the middle.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut v = values.to_vec();
    v.sort_by(f64::total_cmp);
    let n = v.len();
    match n {
        0 => None,
        _ if n % 2 == 1 => Some(v[n / 2]),
        _ => Some((v[n / 2 - 1] + v[n / 2]) / 2.0),
    }
}

/// Two-sided p: the share of all ways to deal the pooled figures into groups of these sizes whose rank sum lies at
/// least as far from the expected one.
pub(crate) fn mann_whitney(a: &[f64], b: &[f64]) -> f64 {
    let ranks = doubled_ranks(a, b);
    let (observed, total) = (ranks[..a.len()].iter().sum::<usize>(), ranks.iter().sum::<usize>());
    let ways = rank_sum_ways(&ranks, a.len());
    let n = ranks.len();
    // Sums are compared times n: the expected one, a.len() / n of the total, need not be whole.
    let far = |sum: usize| (sum * n).abs_diff(a.len() * total);
    let all: f64 = ways.iter().sum();
    let extreme: f64 = ways.iter().enumerate().filter(|(sum, _)| far(*sum) >= far(observed)).map(|(_, w)| w).sum();
    (extreme / all).min(1.0)
}

/// In how many ways `k` of the ranks have the sum 0, 1, ...
fn rank_sum_ways(ranks: &[usize], k: usize) -> Vec<f64> {
    let total: usize = ranks.iter().sum();
    let mut ways = vec![vec![0.0f64; total + 1]; k + 1];
    ways[0][0] = 1.0;
    for rank in ranks {
        for k in (1..=k).rev() {
            let (fewer, same) = ways.split_at_mut(k);
            for (to, from) in same[0][*rank..].iter_mut().zip(&fewer[k - 1]) {
                *to += from;
            }
        }
    }
    ways.swap_remove(k)
}

/// Ranks of a's figures, then of b's, among all, times two: equal ones share the mean of their ranks, maybe a half.
fn doubled_ranks(a: &[f64], b: &[f64]) -> Vec<usize> {
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    let rank = |x: &f64| {
        let below = all.iter().filter(|y| *y < x).count();
        let equal = all.iter().filter(|y| *y == x).count();
        2 * below + equal + 1
    };
    all.iter().map(rank).collect()
}

/// The narrowest interval between two of the sorted differences that holds at least 95 %.
fn confidence_interval(differences: &[f64], n: usize, m: usize) -> Option<ConfidenceInterval> {
    let counts = u_counts(n, m);
    let all: f64 = counts.iter().sum();
    // The most steps inwards from both ends whose tail still is 2.5 % or less.
    let (mut tail, mut steps, mut kept) = (0.0, 0, 0.0);
    for (u, ways) in counts.iter().enumerate() {
        tail += ways;
        if tail / all > ALPHA / 2.0 || 2 * u >= n * m {
            break;
        }
        (steps, kept) = (u + 1, tail);
    }
    let at = steps.checked_sub(1)?;
    Some(ConfidenceInterval {
        low: differences[at].exp(),
        high: differences[n * m - 1 - at].exp(),
        confidence_pct: (1.0 - 2.0 * kept / all) * 100.0,
    })
}

/// In how many orders of n and m untied figures U is 0, 1, ... n * m: the rank sum of the n less its smallest value.
fn u_counts(n: usize, m: usize) -> Vec<f64> {
    let ranks: Vec<usize> = (1..=n + m).collect();
    let least = n * (n + 1) / 2;
    rank_sum_ways(&ranks, n)[least..=least + n * m].to_vec()
}

fn binomial(n: usize, k: usize) -> f64 {
    (0..k).fold(1.0, |c, i| c * (n - i) as f64 / (i + 1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_near(got: f64, want: f64) -> bool {
        (got - want).abs() < 1e-9 * want.abs().max(1.0)
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
    }

    /// Tables of the exact distribution, as in R's `wilcox.test(a, b, exact = TRUE)`.
    #[test]
    fn p_matches_published_tables() {
        let runs = |n: usize, from: f64| (0..n).map(|i| from + i as f64).collect::<Vec<_>>();
        for (a, b, p) in [
            (runs(3, 1.0), runs(3, 10.0), 2.0 / 20.0),
            (runs(4, 1.0), runs(4, 10.0), 2.0 / 70.0),
            (runs(5, 10.0), runs(5, 1.0), 2.0 / 252.0),
            (vec![1.0, 2.0, 3.0, 6.0], vec![4.0, 5.0, 7.0, 8.0], 8.0 / 70.0),
            (vec![1.0, 4.0, 5.0, 8.0], vec![2.0, 3.0, 6.0, 7.0], 1.0),
            // The example of its help page, p = 0.1272 on one side: wilcox.test(c(0.80,0.83,1.89,1.04,1.45,1.38,1.91,1.64,0.73,1.46), c(1.15,0.88,0.90,0.74,1.21))
            (
                vec![0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46],
                vec![1.15, 0.88, 0.90, 0.74, 1.21],
                764.0 / 3003.0,
            ),
        ] {
            let got = mann_whitney(&a, &b);
            assert!(is_near(got, p), "{a:?} {b:?}: {got} instead of {p}");
        }
    }

    #[test]
    fn ties_share_their_ranks() {
        assert!(is_near(mann_whitney(&[1.0; 4], &[1.0; 4]), 1.0));
        // {1,2,2} against {2,3,4}: doubled ranks 2 6 6 | 6 10 12; rank sum 14 against 21 expected. Of 20 deals
        // 14 (three ways, less the one more extreme there is none) and 28 or more (as many) are as far.
        assert_eq!(doubled_ranks(&[1.0, 2.0, 2.0], &[2.0, 3.0, 4.0]), [2, 6, 6, 6, 10, 12]);
        assert!(is_near(mann_whitney(&[1.0, 2.0, 2.0], &[2.0, 3.0, 4.0]), 6.0 / 20.0));
    }

    #[test]
    fn confidence_interval_matches_published_tables() {
        // Four and four: from the least to the greatest of 16, 1 - 2/70; five and five: the third of 25 (U <= 2
        // has 4 of 252).
        let four: Vec<f64> = (0..16).map(f64::from).collect();
        let i = confidence_interval(&four, 4, 4).unwrap();
        assert!(is_near(i.low, 1.0) && is_near(i.high, 15f64.exp()) && is_near(i.confidence_pct, 100.0 * 68.0 / 70.0));
        let five: Vec<f64> = (0..25).map(f64::from).collect();
        let i = confidence_interval(&five, 5, 5).unwrap();
        assert!(is_near(i.low, 2f64.exp()) && is_near(i.high, 22f64.exp()), "{i:?}");
        assert!(is_near(i.confidence_pct, 100.0 * (1.0 - 8.0 / 252.0)));
        assert_eq!(confidence_interval(&[0.0; 9], 3, 3), None, "three and three cannot say it at 95 %");
        assert_eq!(u_counts(2, 2), [1.0, 1.0, 2.0, 1.0, 1.0]);
    }

    #[test]
    fn a_clear_difference_is_shown_and_noise_is_not() {
        let c = ArmComparison::compare(&[40.0, 41.0, 42.0, 43.0], &[300.0, 305.0, 310.0, 290.0]).unwrap();
        assert!(c.is_shown() && (7.1..7.5).contains(&c.ratio), "{c:?}");
        assert_eq!(c.medians, [41.5, 302.5]);
        let i = c.interval.unwrap();
        assert!(is_near(i.low, 290.0 / 43.0) && is_near(i.high, 310.0 / 40.0), "{i:?}");
        let c = ArmComparison::compare(&[100.0, 103.0, 98.0, 101.0], &[99.0, 102.0, 104.0, 100.0]).unwrap();
        assert!(!c.is_shown() && (1.0..1.1).contains(&c.detectable().unwrap()), "{c:?}");
        assert_eq!(ArmComparison::compare(&[1.0, 0.0], &[1.0]), None);
        assert_eq!(ArmComparison::compare(&[], &[1.0]), None);
        let few = ArmComparison::compare(&[1.0, 1.1, 1.2], &[9.0, 9.1, 9.2]).unwrap();
        assert!(!few.is_shown() && is_near(few.least_p, 0.1) && few.interval.is_none());
    }

    /// All deals by hand: what the dynamic count is checked against.
    fn exhaustive_p(a: &[f64], b: &[f64]) -> f64 {
        let ranks = doubled_ranks(a, b);
        let (n, k, total) = (ranks.len(), a.len(), ranks.iter().sum::<usize>());
        let far = |sum: usize| (sum * n).abs_diff(k * total);
        let seen = far(ranks[..k].iter().sum());
        let sums = (0u32..1 << n)
            .filter(|m| m.count_ones() as usize == k)
            .map(|m| (0..n).filter(|i| m & (1 << i) != 0).map(|i| ranks[i]).sum::<usize>());
        let all: Vec<usize> = sums.collect();
        all.iter().filter(|s| far(**s) >= seen).count() as f64 / all.len() as f64
    }

    fn sample_group() -> impl Strategy<Value = Vec<f64>> {
        // Few different values, so that ties are frequent.
        proptest::collection::vec((1u32..12).prop_map(f64::from), 1..6)
    }

    proptest! {
        #[test]
        fn counting_is_dealing(a in sample_group(), b in sample_group()) {
            prop_assert!(is_near(mann_whitney(&a, &b), exhaustive_p(&a, &b)));
        }

        #[test]
        fn swapping_the_arms_turns_the_ratio_over(a in sample_group(), b in sample_group()) {
            let (x, y) = (ArmComparison::compare(&a, &b).unwrap(), ArmComparison::compare(&b, &a).unwrap());
            prop_assert!(is_near(x.p, y.p) && is_near(x.ratio * y.ratio, 1.0));
            prop_assert!((0.0..=1.0).contains(&x.p));
            if let (Some(i), Some(j)) = (x.interval, y.interval) {
                prop_assert!(is_near(i.low * j.high, 1.0) && is_near(i.confidence_pct, j.confidence_pct));
                prop_assert!(i.low <= x.ratio && x.ratio <= i.high && i.confidence_pct >= 95.0);
            }
        }

        #[test]
        fn units_do_not_matter(a in sample_group(), b in sample_group(), scale in 0.001f64..1000.0) {
            let times = |v: &[f64]| v.iter().map(|x| x * scale).collect::<Vec<_>>();
            let (x, y) = (ArmComparison::compare(&a, &b).unwrap(), ArmComparison::compare(&times(&a), &times(&b)).unwrap());
            prop_assert!(is_near(x.p, y.p) && is_near(x.ratio, y.ratio));
        }

        /// The interval holds exactly the ratios the test does not reject, as far as there are no ties.
        #[test]
        fn interval_and_test_agree(
            a in proptest::collection::vec(1.0f64..100.0, 4..7),
            b in proptest::collection::vec(1.0f64..100.0, 4..7),
        ) {
            let c = ArmComparison::compare(&a, &b).unwrap();
            let i = c.interval.unwrap();
            prop_assert_eq!(c.is_shown(), i.low > 1.0 || i.high < 1.0);
        }
    }
}
