//! The acting side of the Tune view: lives in the run loop, never waits, answers by events.
//!
//! One thread looks at the knobs, one more for each change that is made or unmade. None is ever joined.

use super::knob_snapshot::take_snapshot;
use super::lease_thread::{self, LeaseCommand};
use super::{TuneEffect, TuneEvent};
use crate::collect::clock;
use crate::root::Root;
use crate::sanitize::sanitize;
use crate::tuning::child_io::ChildKnobIo;
use crate::tuning::lifecycle;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// Takes news to the run loop; may be called from any thread.
pub type TuneEventSink = Arc<dyn Fn(TuneEvent) + Send + Sync>;

/// The threads that hold a lease, by change.
pub type LeaseThreads = Arc<Mutex<BTreeMap<u64, Sender<LeaseCommand>>>>;

/// What the view has running.
pub struct TuneEffectRunner {
    root: Root,
    sink: TuneEventSink,
    refresh_requests: Sender<Vec<String>>,
    lease_threads: LeaseThreads,
}

impl TuneEffectRunner {
    /// Starts with a look at everything: the values the program found are part of what it shows.
    pub fn new(root: Root, sink: TuneEventSink) -> Self {
        let (looks, asked) = channel();
        let _ = looks.send(Vec::new());
        let (r, s) = (root.clone(), sink.clone());
        // Without the thread a look that is asked for fails, and says so.
        let _ = spawn_thread(move || refresh_loop(&r, &s, &asked));
        Self { root, sink, refresh_requests: looks, lease_threads: LeaseThreads::default() }
    }

    /// Does it, without waiting. The error says why it cannot even be tried.
    pub fn run_effect(&mut self, effect: TuneEffect) -> Result<(), String> {
        match effect {
            TuneEffect::Refresh(extra) => {
                self.refresh_requests.send(extra).map_err(|_| "the thread that looks at the knobs is gone".into())
            }
            TuneEffect::Apply { assignments: words, lease_secs } => {
                let (root, sink, holders) = (self.root.clone(), self.sink.clone(), self.lease_threads.clone());
                spawn_thread(move || lease_thread::apply_with_lease(&root, words, lease_secs, &sink, &holders))
            }
            TuneEffect::ApplyPermanent(words) => {
                let (root, sink) = (self.root.clone(), self.sink.clone());
                spawn_thread(move || sink(lease_thread::apply_permanently(&root, words)))
            }
            TuneEffect::Keep(ids) => self.send_command(ids, LeaseCommand::Keep),
            TuneEffect::Undo(ids) => self.send_command(ids, LeaseCommand::Undo),
            TuneEffect::Detach(ids) => self.send_command(ids, LeaseCommand::Detach),
            TuneEffect::Renew { id, secs } => self.send_command(vec![id], LeaseCommand::Renew(secs)),
        }
    }

    /// Tells the thread that holds a change; where none does, another program's or nobody's tuner.
    fn send_command(&self, ids: Vec<u64>, order: LeaseCommand) -> Result<(), String> {
        let holders = self.lease_threads.lock().unwrap_or_else(|e| e.into_inner());
        let told = |id: &u64| holders.get(id).is_some_and(|to| to.send(order).is_ok());
        let others: Vec<u64> = ids.into_iter().filter(|id| !told(id)).collect();
        drop(holders);
        if others.is_empty() {
            return Ok(());
        }
        let (root, sink) = (self.root.clone(), self.sink.clone());
        spawn_thread(move || {
            for id in others {
                sink(command_foreign_change(&root, id, order));
            }
        })
    }
}

fn spawn_thread(body: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let thread = std::thread::Builder::new().name("tune".into()).stack_size(512 * 1024).spawn(body);
    thread.map(drop).map_err(|err| format!("no thread for the Tune view: {err}"))
}

fn refresh_loop(root: &Root, sink: &TuneEventSink, asked: &Receiver<Vec<String>>) {
    let mut io = ChildKnobIo::new(root, Root::self_exe().into());
    while let Ok(mut extra) = asked.recv() {
        // What was asked meanwhile is answered by the same look.
        while let Ok(newer) = asked.try_recv() {
            extra = newer;
        }
        sink(TuneEvent::Refreshed(take_snapshot(root, &mut io, &extra, clock::now())));
    }
}

/// A change this screen does not hold.
fn command_foreign_change(root: &Root, id: u64, order: LeaseCommand) -> TuneEvent {
    let done = match order {
        LeaseCommand::Undo => {
            let mut io = ChildKnobIo::new(root, Root::self_exe().into());
            lifecycle::undo_change(root, &mut io, id).map(|all| lease_thread::undone_event(id, &all, false))
        }
        LeaseCommand::Keep | LeaseCommand::Renew(_) | LeaseCommand::Detach => command_through_journal(root, id, order),
    };
    done.unwrap_or_else(|why| TuneEvent::Failed(sanitize(why.to_string())))
}

fn command_through_journal(
    root: &Root,
    id: u64,
    order: LeaseCommand,
) -> Result<TuneEvent, crate::tuning::plan::TuneError> {
    let Some((mut journal, _)) = lifecycle::open_journal(root)? else {
        return Ok(TuneEvent::Failed(format!("change {id}: there is no journal")));
    };
    match order {
        LeaseCommand::Renew(secs) => lifecycle::renew_lease(&journal, id, secs).map(|secs| TuneEvent::LeaseTime {
            id,
            secs_left: secs,
            was_renewed: true,
        }),
        LeaseCommand::Detach => Ok(TuneEvent::Detached(id)),
        LeaseCommand::Keep | LeaseCommand::Undo => {
            lifecycle::keep_change(&mut journal, id).map(|()| TuneEvent::Kept(id))
        }
    }
}
