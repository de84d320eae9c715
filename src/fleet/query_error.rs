//! Why a query has no answer.

use std::time::Duration;

/// Why a query has no answer: what failed, why, and what to do. Texts of the server are sanitized.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// No connection, or it broke.
    #[error("no connection to {server}: {why}")]
    Connection {
        /// Host and port.
        server: String,
        /// The cause.
        why: String,
    },
    /// No complete answer in time.
    #[error("no answer within {} s; fewer hosts by --match, or more time by --timeout", .0.as_secs_f64())]
    Timeout(Duration),
    /// The answer is larger than what is read of one.
    #[error("the answer has more than {} MB; ask for fewer hosts by --match", .0 / 1_000_000)]
    TooLarge(usize),
    /// The server, or a proxy before it, answers no query at present.
    #[error("the server answers no queries at present: {0}")]
    Unavailable(String),
    /// The server refused the query.
    #[error("refused by the server: {0}")]
    Refused(String),
    /// There are no figures of a host.
    #[error("{0}")]
    NoHost(String),
    /// The server answered something else than the query API does.
    #[error("not an answer of Prometheus' query API: {0}")]
    Garbage(String),
}

impl QueryError {
    /// Whether the next query would fail too, so that it need not be sent.
    pub fn concerns_server(&self) -> bool {
        matches!(self, QueryError::Connection { .. } | QueryError::Unavailable(_))
    }
}
