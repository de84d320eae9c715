//! Series over time: what is asked and answered.

use super::answer::AnswerSeries;
use super::query_error::QueryError;

/// Series over time: expressions, and the times to evaluate them at.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeRequest {
    /// Number of the request, to find what its answers are for.
    pub id: u64,
    /// Expressions, each with its name in messages.
    pub expressions: Vec<(&'static str, String)>,
    /// First time, seconds since 1970.
    pub start: f64,
    /// Last time.
    pub end: f64,
    /// Seconds between times.
    pub step: f64,
}

/// The answers to a [`RangeRequest`], in its order.
pub type RangeAnswers = Vec<Result<Vec<AnswerSeries>, QueryError>>;
