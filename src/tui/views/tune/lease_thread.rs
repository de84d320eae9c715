//! A leased change of this screen. One thread per change starts the tuner, sends it commands and reports its replies.
//! If this program dies, the pipe to the tuner closes and the tuner reverts the change.

use crate::collect::clock;
use crate::root::Root;
use crate::sanitize::sanitize;
use crate::tui::view::{LeaseCommand, TuneEvent};
use crate::tuning::knob_id::KnobId;
use crate::tuning::protocol::{TunerReply, TunerRequest};
use crate::tuning::restore::RestoreResult;
use crate::tuning::tuner_client::LeaseHandle;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Sends events to the event loop; callable from any thread.
pub(super) type TuneEventSink = Arc<dyn Fn(TuneEvent) + Send + Sync>;

/// Senders to the threads of leased changes, by change number.
pub(super) type LeaseThreads = Arc<Mutex<BTreeMap<u64, Sender<LeaseCommand>>>>;

/// Interval between updates of the countdown.
const COUNTDOWN_INTERVAL: Duration = Duration::from_secs(1);

/// Applies a change: for good, or on a lease, which it follows until it has ended.
pub(super) fn apply(
    root: &Root,
    assignments: Vec<String>,
    lease_secs: Option<u64>,
    sink: &TuneEventSink,
    holders: &LeaseThreads,
) {
    let refused = |why: String| sink(TuneEvent::Refused(sanitize(why)));
    let (handle, reply) = match LeaseHandle::start(Root::self_exe(), root, assignments, lease_secs) {
        Ok(made) => made,
        Err(err) => return refused(err.to_string()),
    };
    let (id, changed) = match reply {
        TunerReply::Applied { id, members, .. } => (id, members.iter().any(|m| !m.after.is_empty())),
        TunerReply::Refused(refusal) => return refused(refusal.to_string()),
        other => return refused(unexpected_reply(&other)),
    };
    let Some(lease_secs) = lease_secs else { return sink(TuneEvent::AppliedPermanently(id)) };
    if !changed {
        return sink(TuneEvent::Applied { id, lease_secs: None });
    }
    let (sender, commands) = channel();
    holders.lock().unwrap_or_else(|e| e.into_inner()).insert(id, sender);
    sink(TuneEvent::Applied { id, lease_secs: Some(lease_secs) });
    let expires_secs = boot_clock_secs() + lease_secs as f64;
    LeaseThread { id, handle, expires_secs, sink, commands }.run();
    holders.lock().unwrap_or_else(|e| e.into_inner()).remove(&id);
}

struct LeaseThread<'a> {
    id: u64,
    handle: LeaseHandle,
    /// End of the lease, CLOCK_BOOTTIME in seconds.
    expires_secs: f64,
    sink: &'a TuneEventSink,
    commands: Receiver<LeaseCommand>,
}

impl LeaseThread<'_> {
    fn run(mut self) {
        loop {
            let has_ended = match self.commands.recv_timeout(COUNTDOWN_INTERVAL) {
                Ok(LeaseCommand::Detach) => return self.detach(),
                Ok(command) => self.execute(command),
                Err(RecvTimeoutError::Timeout) => self.poll_tuner(),
                Err(RecvTimeoutError::Disconnected) => true,
            };
            if has_ended {
                return;
            }
        }
    }

    /// Reports the time left, or how the tuner ended. Returns whether the change has ended.
    fn poll_tuner(&self) -> bool {
        let id = self.id;
        match self.handle.poll_reply() {
            Err(TryRecvError::Empty) => {
                let secs = (self.expires_secs - boot_clock_secs()).max(0.0).ceil() as u64;
                (self.sink)(TuneEvent::LeaseTime { id, secs_left: secs, was_renewed: false });
                false
            }
            Ok(TunerReply::Restored(all)) => {
                (self.sink)(undone_event(id, &all, true));
                true
            }
            Ok(other) => {
                self.report_failure(&unexpected_reply(&other));
                false
            }
            Err(TryRecvError::Disconnected) => {
                (self.sink)(TuneEvent::TunerLost(id));
                true
            }
        }
    }

    /// Sends a command to the tuner. Returns whether the change has ended.
    fn execute(&mut self, command: LeaseCommand) -> bool {
        let id = self.id;
        let request = match command {
            LeaseCommand::Keep => TunerRequest::Keep,
            LeaseCommand::Renew(secs) => TunerRequest::Renew { secs },
            LeaseCommand::Undo | LeaseCommand::Detach => TunerRequest::Undo,
        };
        let failure = match self.handle.request(&request) {
            Ok(TunerReply::Kept) => {
                (self.sink)(TuneEvent::Kept(id));
                return true;
            }
            // Also the reply if the lease ended just before the request.
            Ok(TunerReply::Restored(all)) => {
                (self.sink)(undone_event(id, &all, command != LeaseCommand::Undo));
                return is_fully_closed(&all);
            }
            Ok(TunerReply::TimeLeft { secs }) => {
                self.expires_secs = boot_clock_secs() + secs as f64;
                (self.sink)(TuneEvent::LeaseTime { id, secs_left: secs, was_renewed: true });
                return false;
            }
            Ok(TunerReply::Error(why)) => why,
            Ok(other) => unexpected_reply(&other),
            Err(err) => err.to_string(),
        };
        self.report_failure(&failure);
        false
    }

    fn detach(self) {
        let (id, sink) = (self.id, self.sink);
        match self.handle.detach() {
            Ok(TunerReply::Restored(all)) => sink(undone_event(id, &all, true)),
            Ok(_) => sink(TuneEvent::Detached(id)),
            Err(err) => sink(TuneEvent::Failed(sanitize(format!("change {id}: {err}")))),
        }
    }

    fn report_failure(&self, why: &str) {
        (self.sink)(TuneEvent::Failed(sanitize(format!("change {}: {why}", self.id))));
    }
}

/// The event that reports the outcome for each knob.
pub(super) fn undone_event(id: u64, all: &[(KnobId, RestoreResult)], by_itself: bool) -> TuneEvent {
    TuneEvent::Undone {
        id,
        boot_ns: clock::now().boot_ns,
        was_automatic: by_itself,
        lines: all.iter().map(|(at, u)| sanitize(format!("{at}: {u}"))).collect(),
        is_fully_restored: all.iter().all(|(_, u)| u.is_restored()),
        is_closed: is_fully_closed(all),
    }
}

fn unexpected_reply(reply: &TunerReply) -> String {
    format!("unexpected reply of the tuner: {reply:?}")
}

fn is_fully_closed(all: &[(KnobId, RestoreResult)]) -> bool {
    all.iter().all(|(_, u)| u.outcome().is_some())
}

fn boot_clock_secs() -> f64 {
    clock::now().boot_ns as f64 / 1e9
}
