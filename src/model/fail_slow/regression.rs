//! Latency regressed on load: a quadratic in the logarithms, fitted so that outliers have little weight.
//!
//! Iteratively reweighted least squares with Huber's weights (Maronna and others, "Robust Statistics", 2nd ed., chapter 5).

use super::load_point::{LoadPoint, MAD_TO_SIGMA, median};

/// Terms of the quadratic.
const TERMS: usize = 6;
/// Points of which a fit is made at most: of more, every so many-th is taken.
const MAX_POINTS: usize = 20_000;
/// Fewest points of a fit.
const MIN_POINTS: usize = 4 * TERMS;
/// Repetitions of the fit, each with the weights of the one before.
const ROUNDS: usize = 12;
/// Residuals, in standard deviations, from which on the weight falls; 95 % as efficient as least squares.
const HUBER: f64 = 1.345;
/// Keeps terms small that the points do not determine, such as those of the size where all requests have the same.
const RIDGE: f64 = 1e-4;
/// Least standard deviation: figures are not more exact.
const MIN_SIGMA: f64 = 0.01;

/// The latency that a load has among the devices of a group.
#[derive(Debug, Clone)]
pub(super) struct LatencyModel {
    /// Mean and spread of the load, to which the terms are relative.
    center: [f64; 2],
    scale: [f64; 2],
    terms: [f64; TERMS],
}

impl LatencyModel {
    /// Fits the model; `None` if there are too few points.
    pub(super) fn fit<'a>(points: impl Iterator<Item = &'a LoadPoint>) -> Option<Self> {
        let all: Vec<&LoadPoint> = points.collect();
        let points: Vec<_> = all.iter().step_by(all.len().div_ceil(MAX_POINTS).max(1)).collect();
        if points.len() < MIN_POINTS {
            return None;
        }
        let mean = |value: fn(&LoadPoint) -> f64| points.iter().map(|p| value(p)).sum::<f64>() / points.len() as f64;
        let center = [mean(|p| p.requests), mean(|p| p.size)];
        let deviation = |at: usize, value: fn(&LoadPoint) -> f64| {
            let squares: f64 = points.iter().map(|p| (value(p) - center[at]).powi(2)).sum();
            (squares / points.len() as f64).sqrt().max(0.1)
        };
        let scale = [deviation(0, |p| p.requests), deviation(1, |p| p.size)];
        let mut model = Self { center, scale, terms: [0.0; TERMS] };
        model.terms[0] = median(points.iter().map(|p| p.latency));
        for _ in 0..ROUNDS {
            let residuals: Vec<f64> = points.iter().map(|p| p.latency - model.latency(p)).collect();
            let sigma = (MAD_TO_SIGMA * median(residuals.iter().map(|r| r.abs()))).max(MIN_SIGMA);
            let weight = |residual: f64| (HUBER * sigma / residual.abs()).min(1.0);
            let rows = points.iter().zip(&residuals).map(|(p, residual)| (model.row(p), p.latency, weight(*residual)));
            model.terms = solve_least_squares(rows)?;
        }
        Some(model)
    }

    fn row(&self, point: &LoadPoint) -> [f64; TERMS] {
        let x = (point.requests - self.center[0]) / self.scale[0];
        let y = (point.size - self.center[1]) / self.scale[1];
        [1.0, x, y, x * x, x * y, y * y]
    }

    /// The logarithm of the latency in ms at the load of a point.
    pub(super) fn latency(&self, point: &LoadPoint) -> f64 {
        self.row(point).iter().zip(&self.terms).map(|(value, term)| value * term).sum()
    }
}

/// The terms with the least squares of (row, value, weight); `None` if there is no weight.
fn solve_least_squares(rows: impl Iterator<Item = ([f64; TERMS], f64, f64)>) -> Option<[f64; TERMS]> {
    let (mut matrix, mut right, mut total) = ([[0.0; TERMS]; TERMS], [0.0; TERMS], 0.0);
    for (row, value, weight) in rows {
        total += weight;
        for i in 0..TERMS {
            right[i] += weight * row[i] * value;
            for j in 0..TERMS {
                matrix[i][j] += weight * row[i] * row[j];
            }
        }
    }
    if total <= 0.0 {
        return None;
    }
    for (i, row) in matrix.iter_mut().enumerate().skip(1) {
        row[i] += RIDGE * total;
    }
    Some(solve(matrix, right))
}

/// Solves a symmetric positive definite system, by elimination.
fn solve(mut matrix: [[f64; TERMS]; TERMS], mut right: [f64; TERMS]) -> [f64; TERMS] {
    for pivot in 0..TERMS {
        for row in pivot + 1..TERMS {
            let pivot_row = matrix[pivot];
            let factor = matrix[row][pivot] / pivot_row[pivot];
            matrix[row].iter_mut().zip(pivot_row).for_each(|(value, above)| *value -= factor * above);
            right[row] -= factor * right[pivot];
        }
    }
    let mut out = [0.0; TERMS];
    for row in (0..TERMS).rev() {
        let known: f64 = (row + 1..TERMS).map(|column| matrix[row][column] * out[column]).sum();
        out[row] = (right[row] - known) / matrix[row][row];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_points_far_away_do_not_move_the_model() {
        let point = |n: usize| {
            let requests = 3.0 + (n % 40) as f64 / 10.0;
            let healthy = 1.0 + 0.1 * requests * requests;
            let far = if n.is_multiple_of(10) { 100.0_f64.ln() } else { 0.0 };
            LoadPoint { at_secs: 0.0, latency: healthy + far + 0.05 * (n as f64).sin(), requests, size: 8.0 }
        };
        let points: Vec<_> = (0..400).map(point).collect();
        let model = LatencyModel::fit(points.iter()).unwrap();
        for requests in [3.0, 5.0, 6.9] {
            let found = model.latency(&LoadPoint { requests, ..points[0] });
            assert!((found - 1.0 - 0.1 * requests * requests).abs() < 0.1, "{requests}: {found}");
        }
        assert!(LatencyModel::fit(points[..10].iter()).is_none());
    }
}
