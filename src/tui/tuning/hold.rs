//! A change this screen made: a thread for each, which starts the tuner, speaks to it, and tells what came of
//! it. If this program goes, the pipe ends and the tuner takes the change back.

use super::TuneNews;
use super::runner::{Holders, Sink};
use crate::collect::clock;
use crate::root::Root;
use crate::text::sanitize;
use crate::tune::address::Address;
use crate::tune::client::{Held, Said};
use crate::tune::protocol::{Reply, Request};
use crate::tune::record::Outcome;
use crate::tune::restore::Undone;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How often the countdown moves.
const BEAT: Duration = Duration::from_secs(1);

/// What a lease's thread is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Let it stay.
    Keep,
    /// Take it back.
    Undo,
    /// Start the lease anew.
    Renew(u64),
    /// Let it go on without us.
    Detach,
}

/// Makes the change and stays with it until it is over.
pub fn run(root: &Root, words: Vec<String>, lease_secs: u64, sink: &Sink, holders: &Holders) {
    let refused = |why: String| sink(TuneNews::Refused(sanitize(why)));
    let (held, reply) = match Held::start(Root::self_exe(), root, words, Some(lease_secs)) {
        Ok(made) => made,
        Err(err) => return refused(err.to_string()),
    };
    let (id, changed) = match reply {
        Reply::Applied { id, members, .. } => (id, members.iter().any(|m| !m.after.is_empty())),
        Reply::Refused(refusal) => return refused(refusal.to_string()),
        other => return refused(format!("the tuner said {other:?}")),
    };
    if !changed {
        return sink(TuneNews::Applied { id, lease_secs: None });
    }
    let (to, orders) = channel();
    holders.lock().unwrap_or_else(|e| e.into_inner()).insert(id, to);
    sink(TuneNews::Applied { id, lease_secs: Some(lease_secs) });
    let until = boot_secs() + lease_secs as f64;
    Lease { id, held, until, sink, orders }.follow();
    holders.lock().unwrap_or_else(|e| e.into_inner()).remove(&id);
}

/// Makes a change that stays.
pub fn settle(root: &Root, words: Vec<String>) -> TuneNews {
    let refused = |why: String| TuneNews::Refused(sanitize(why));
    match Held::start(Root::self_exe(), root, words, None) {
        Ok((_, Reply::Applied { id, .. })) => TuneNews::Settled(id),
        Ok((_, Reply::Refused(refusal))) => refused(refusal.to_string()),
        Ok((_, other)) => refused(format!("the tuner said {other:?}")),
        Err(err) => refused(err.to_string()),
    }
}

struct Lease<'a> {
    id: u64,
    held: Held,
    /// CLOCK_BOOTTIME in seconds.
    until: f64,
    sink: &'a Sink,
    orders: Receiver<Order>,
}

impl Lease<'_> {
    fn follow(mut self) {
        loop {
            let order = match self.orders.recv_timeout(BEAT) {
                Ok(order) => order,
                Err(RecvTimeoutError::Timeout) => {
                    if self.beat() {
                        return;
                    }
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if order == Order::Detach {
                return self.detach();
            }
            if self.obey(order) {
                return;
            }
        }
    }

    /// Whether that was all.
    fn beat(&self) -> bool {
        let id = self.id;
        match self.held.said() {
            Said::Nothing => {
                let secs = (self.until - boot_secs()).max(0.0).ceil() as u64;
                (self.sink)(TuneNews::Left { id, secs, renewed: false });
                false
            }
            Said::Reply(Reply::Undone(all)) => {
                (self.sink)(undone(id, &all, true));
                true
            }
            Said::Reply(other) => {
                self.fail(&format!("the tuner said {other:?}"));
                false
            }
            Said::Ended => {
                (self.sink)(TuneNews::Lost(id));
                true
            }
        }
    }

    fn obey(&mut self, order: Order) -> bool {
        let id = self.id;
        let request = match order {
            Order::Keep => Request::Keep,
            Order::Renew(secs) => Request::Renew { secs },
            Order::Undo | Order::Detach => Request::Undo,
        };
        match self.held.ask(&request) {
            Ok(Reply::Kept) => (self.sink)(TuneNews::Kept(id)),
            // Also when the lease ended a moment before the request came.
            Ok(Reply::Undone(all)) => {
                let over = is_over(&all);
                (self.sink)(undone(id, &all, order != Order::Undo));
                return over;
            }
            Ok(Reply::Left { secs }) => {
                self.until = boot_secs() + secs as f64;
                (self.sink)(TuneNews::Left { id, secs, renewed: true });
                return false;
            }
            Ok(Reply::Bad(why)) => {
                self.fail(&why);
                return false;
            }
            Ok(other) => {
                self.fail(&format!("the tuner said {other:?}"));
                return false;
            }
            Err(err) => {
                self.fail(&err.to_string());
                return false;
            }
        }
        true
    }

    fn detach(self) {
        let (id, sink) = (self.id, self.sink);
        match self.held.detach() {
            Ok(Reply::Undone(all)) => sink(undone(id, &all, true)),
            Ok(_) => sink(TuneNews::Detached(id)),
            Err(err) => sink(TuneNews::Failed(sanitize(format!("change {id}: {err}")))),
        }
    }

    fn fail(&self, why: &str) {
        (self.sink)(TuneNews::Failed(sanitize(format!("change {}: {why}", self.id))));
    }
}

/// The news of what became of each knob.
pub fn undone(id: u64, all: &[(Address, Undone)], by_itself: bool) -> TuneNews {
    let fine = |u: &Undone| matches!(u, Undone::Closed(Outcome::Restored | Outcome::Already));
    TuneNews::Undone {
        id,
        boot_ns: clock::now().boot_ns,
        by_itself,
        lines: all.iter().map(|(at, u)| sanitize(format!("{at}: {u}"))).collect(),
        clean: all.iter().all(|(_, u)| fine(u)),
        over: is_over(all),
    }
}

fn is_over(all: &[(Address, Undone)]) -> bool {
    all.iter().all(|(_, u)| matches!(u, Undone::Closed(_)))
}

fn boot_secs() -> f64 {
    clock::now().boot_ns as f64 / 1e9
}
