//! Many hosts at once: figures that `iotop-plus export` writes, read back from Prometheus or what speaks its query API.
//!
//! [`poller`] asks a few questions for all hosts ([`plan`]), on a thread of its own; [`assemble`] makes hosts of the
//! answers; [`state`] knows what is old, gone or twice there; [`rank`] puts the worst first.

pub mod answer;
pub mod assemble;
pub mod client;
pub mod columns;
pub mod heat;
pub mod history;
pub mod history_text;
pub mod host;
pub mod judge;
mod openssl;
pub mod plan;
pub mod poller;
pub mod query_error;
pub mod range;
pub mod rank;
pub mod recordings;
pub mod recordings_poller;
pub mod source;
pub mod state;
pub mod text;
pub mod url;
