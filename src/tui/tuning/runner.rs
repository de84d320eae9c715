//! The acting side of the Tune view: lives in the run loop, never waits, answers by events.
//!
//! One thread looks at the knobs, one more for each change that is made or unmade. None is ever joined.

use super::hold::{self, Order};
use super::survey::survey;
use super::{TuneEffect, TuneNews};
use crate::collect::clock;
use crate::root::Root;
use crate::text::sanitize;
use crate::tune::child::Careful;
use crate::tune::manage;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// Takes news to the run loop; may be called from any thread.
pub type Sink = Arc<dyn Fn(TuneNews) + Send + Sync>;

/// The threads that hold a lease, by change.
pub type Holders = Arc<Mutex<BTreeMap<u64, Sender<Order>>>>;

/// What the view has running.
pub struct Runner {
    root: Root,
    sink: Sink,
    looks: Sender<Vec<String>>,
    holders: Holders,
}

impl Runner {
    /// Starts with a look at everything: the values the program found are part of what it shows.
    pub fn new(root: Root, sink: Sink) -> Self {
        let (looks, asked) = channel();
        let _ = looks.send(Vec::new());
        let (r, s) = (root.clone(), sink.clone());
        // Without the thread a look that is asked for fails, and says so.
        let _ = spawn(move || look(&r, &s, &asked));
        Self { root, sink, looks, holders: Holders::default() }
    }

    /// Does it, without waiting. The error says why it cannot even be tried.
    pub fn act(&mut self, effect: TuneEffect) -> Result<(), String> {
        match effect {
            TuneEffect::Survey(extra) => {
                self.looks.send(extra).map_err(|_| "the thread that looks at the knobs is gone".into())
            }
            TuneEffect::Apply { words, lease_secs } => {
                let (root, sink, holders) = (self.root.clone(), self.sink.clone(), self.holders.clone());
                spawn(move || hold::run(&root, words, lease_secs, &sink, &holders))
            }
            TuneEffect::Settle(words) => {
                let (root, sink) = (self.root.clone(), self.sink.clone());
                spawn(move || sink(hold::settle(&root, words)))
            }
            TuneEffect::Keep(ids) => self.order(ids, Order::Keep),
            TuneEffect::Undo(ids) => self.order(ids, Order::Undo),
            TuneEffect::Detach(ids) => self.order(ids, Order::Detach),
            TuneEffect::Renew { id, secs } => self.order(vec![id], Order::Renew(secs)),
        }
    }

    /// Tells the thread that holds a change; where none does, another program's or nobody's tuner.
    fn order(&self, ids: Vec<u64>, order: Order) -> Result<(), String> {
        let holders = self.holders.lock().unwrap_or_else(|e| e.into_inner());
        let told = |id: &u64| holders.get(id).is_some_and(|to| to.send(order).is_ok());
        let others: Vec<u64> = ids.into_iter().filter(|id| !told(id)).collect();
        drop(holders);
        if others.is_empty() {
            return Ok(());
        }
        let (root, sink) = (self.root.clone(), self.sink.clone());
        spawn(move || {
            for id in others {
                sink(foreign(&root, id, order));
            }
        })
    }
}

fn spawn(body: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let thread = std::thread::Builder::new().name("tune".into()).stack_size(512 * 1024).spawn(body);
    thread.map(drop).map_err(|err| format!("no thread for the Tune view: {err}"))
}

fn look(root: &Root, sink: &Sink, asked: &Receiver<Vec<String>>) {
    let mut io = Careful::new(root, Root::self_exe().into());
    while let Ok(mut extra) = asked.recv() {
        // What was asked meanwhile is answered by the same look.
        while let Ok(newer) = asked.try_recv() {
            extra = newer;
        }
        sink(TuneNews::Survey(survey(root, &mut io, &extra, clock::now())));
    }
}

/// A change this screen does not hold.
fn foreign(root: &Root, id: u64, order: Order) -> TuneNews {
    let done = match order {
        Order::Undo => {
            let mut io = Careful::new(root, Root::self_exe().into());
            manage::undo(root, &mut io, id).map(|all| hold::undone(id, &all, false))
        }
        Order::Keep | Order::Renew(_) | Order::Detach => journalled(root, id, order),
    };
    done.unwrap_or_else(|why| TuneNews::Failed(sanitize(why.to_string())))
}

fn journalled(root: &Root, id: u64, order: Order) -> Result<TuneNews, crate::tune::plan::Refusal> {
    let Some((mut journal, _)) = manage::opened(root)? else {
        return Ok(TuneNews::Failed(format!("change {id}: there is no journal")));
    };
    match order {
        Order::Renew(secs) => {
            manage::renew(&journal, id, secs).map(|secs| TuneNews::Left { id, secs, renewed: true })
        }
        Order::Detach => Ok(TuneNews::Detached(id)),
        Order::Keep | Order::Undo => manage::keep(&mut journal, id).map(|()| TuneNews::Kept(id)),
    }
}
