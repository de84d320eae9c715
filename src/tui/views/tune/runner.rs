//! Runs the effects of the Tune view without blocking; results come back as events.
//! One thread takes snapshots, one more runs for each change being applied or reverted. None is ever joined.

use crate::collect::clock;
use crate::root::Root;
use crate::sanitize::sanitize;
use crate::tui::knob_snapshot::take_snapshot;
use crate::tui::view::{LeaseCommand, TuneEffect, TuneEvent};
use crate::tui::views::tune::lease_thread::{self, LeaseThreads, TuneEventSink};
use crate::tuning::child_io::ChildKnobIo;
use crate::tuning::lifecycle;
use crate::tuning::plan::TuneError;
use std::sync::mpsc::{Receiver, Sender, channel};

pub(crate) struct TuneEffectRunner {
    root: Root,
    sink: TuneEventSink,
    refresh_requests: Sender<Vec<String>>,
    lease_threads: LeaseThreads,
}

impl TuneEffectRunner {
    /// Starts with a snapshot: the view shows the values this program found at its start.
    pub(crate) fn new(root: Root, sink: TuneEventSink) -> Self {
        let (refresh_requests, requests) = channel();
        let _ = refresh_requests.send(Vec::new());
        let (r, s) = (root.clone(), sink.clone());
        // If the thread cannot be started, each refresh fails with a message.
        let _ = spawn_thread(move || refresh_loop(&r, &s, &requests));
        Self { root, sink, refresh_requests, lease_threads: LeaseThreads::default() }
    }

    /// Starts an effect without waiting for it.
    /// Errors: when no thread can be started for it.
    pub(crate) fn run_effect(&mut self, effect: TuneEffect) -> Result<(), String> {
        match effect {
            TuneEffect::Refresh(extra) => {
                self.refresh_requests.send(extra).map_err(|_| "the thread that reads the knobs has ended".into())
            }
            TuneEffect::Apply { assignments, lease_secs } => {
                let (root, sink, holders) = (self.root.clone(), self.sink.clone(), self.lease_threads.clone());
                spawn_thread(move || lease_thread::apply(&root, assignments, lease_secs, &sink, &holders))
            }
            TuneEffect::Command(ids, command) => self.send_command(ids, command),
        }
    }

    /// Sends a command to the threads of these changes. A change without a thread here belongs to another program, or to
    /// none: it goes through the change's tuner or the journal.
    fn send_command(&self, ids: Vec<u64>, command: LeaseCommand) -> Result<(), String> {
        let holders = self.lease_threads.lock().unwrap_or_else(|e| e.into_inner());
        let send = |id: &u64| holders.get(id).is_some_and(|sender| sender.send(command).is_ok());
        let foreign: Vec<u64> = ids.into_iter().filter(|id| !send(id)).collect();
        drop(holders);
        if foreign.is_empty() {
            return Ok(());
        }
        let (root, sink) = (self.root.clone(), self.sink.clone());
        spawn_thread(move || {
            for id in foreign {
                let event = try_foreign_change(&root, id, command);
                sink(event.unwrap_or_else(|why| TuneEvent::Failed(sanitize(why.to_string()))));
            }
        })
    }
}

fn spawn_thread(body: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let thread = std::thread::Builder::new().name("tune".into()).stack_size(512 * 1024).spawn(body);
    thread.map(drop).map_err(|err| format!("cannot start a thread for the Tune view: {err}"))
}

fn refresh_loop(root: &Root, sink: &TuneEventSink, requests: &Receiver<Vec<String>>) {
    let mut io = ChildKnobIo::new(root, Root::self_exe().into());
    while let Ok(mut extra) = requests.recv() {
        // Requests that came meanwhile are served by the same snapshot.
        while let Ok(newer) = requests.try_recv() {
            extra = newer;
        }
        sink(TuneEvent::Refreshed(take_snapshot(root, &mut io, &extra, clock::now())));
    }
}

/// Runs a command on a change that this screen did not make.
fn try_foreign_change(root: &Root, id: u64, command: LeaseCommand) -> Result<TuneEvent, TuneError> {
    if command == LeaseCommand::Undo {
        let mut io = ChildKnobIo::new(root, Root::self_exe().into());
        let all = lifecycle::undo_change(root, &mut io, id)?;
        return Ok(lease_thread::undone_event(id, &all, false));
    }
    let Some((mut journal, _)) = lifecycle::open_journal(root)? else {
        return Ok(TuneEvent::Failed(format!("change {id}: no journal found")));
    };
    match command {
        LeaseCommand::Renew(secs) => {
            let secs_left = lifecycle::renew_lease(&journal, id, secs)?;
            Ok(TuneEvent::LeaseTime { id, secs_left, was_renewed: true })
        }
        LeaseCommand::Detach => Ok(TuneEvent::Detached(id)),
        LeaseCommand::Keep | LeaseCommand::Undo => {
            lifecycle::keep_change(&mut journal, id)?;
            Ok(TuneEvent::Kept(id))
        }
    }
}
