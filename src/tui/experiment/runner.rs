//! The acting side: lives in the run loop, never waits, answers by events. A thread of its own looks at the knobs
//! of a plan, for which it asks a child where a device may not answer.

use super::{Arms, ExperimentEffect, ExperimentNews, Judged, ChildEvent};
use crate::bench::host::FromChild;
use crate::experiment::arms::check;
use crate::experiment::host::COMMAND;
use crate::experiment::message::Message;
use crate::experiment::spec::Spec;
use crate::root::Root;
use crate::tui::child_runner::ChildRunner;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Takes news to the run loop; may be called from any thread.
pub type Sink = Arc<dyn Fn(ExperimentNews) + Send + Sync>;

/// What is running.
pub struct Runner {
    launcher: ChildRunner<Message>,
    root: Root,
    sink: Sink,
    /// To the thread that looks, once there was something to look at.
    looks: Option<Sender<Spec>>,
}

impl Runner {
    /// Nothing runs yet.
    pub fn new(root: Root, sink: Sink) -> Self {
        let to = sink.clone();
        let news = move |run, what| to(ExperimentNews::Run(run, what));
        Self { launcher: ChildRunner::new(root.clone(), COMMAND, Arc::new(news)), root, sink, looks: None }
    }

    /// Does it, without waiting. What can be told at once comes back: news by the sink would wait here.
    pub fn act(&mut self, effect: ExperimentEffect) -> Option<ExperimentNews> {
        match effect {
            ExperimentEffect::Check(spec) => {
                let arms = Arms::of(&spec);
                let why = self.look(*spec).err()?;
                return Some(ExperimentNews::Checked(Judged { arms, found: Err(why) }));
            }
            ExperimentEffect::Start { run, spec } => {
                let why = self.launcher.start(run, *spec).err()?;
                return Some(ExperimentNews::Run(run, ChildEvent::Message(Message::failed(why))));
            }
            ExperimentEffect::Cancel => self.launcher.cancel(),
            ExperimentEffect::Kill => self.launcher.kill(),
        }
        None
    }

    fn look(&mut self, spec: Spec) -> Result<(), String> {
        let spec = match &self.looks {
            Some(looks) => match looks.send(spec) {
                Ok(()) => return Ok(()),
                Err(back) => back.0,
            },
            None => spec,
        };
        let (to, asked) = channel();
        let (root, sink) = (self.root.clone(), self.sink.clone());
        let body = move || look(&root, &sink, &asked);
        let thread = std::thread::Builder::new().name("arms".into()).stack_size(512 * 1024).spawn(body);
        thread.map_err(|err| format!("no thread to look at the knobs: {err}"))?;
        let sent = to.send(spec).map_err(|_| "the thread that looks at the knobs is gone".to_owned());
        self.looks = Some(to);
        sent
    }
}

fn look(root: &Root, sink: &Sink, asked: &Receiver<Spec>) {
    while let Ok(mut spec) = asked.recv() {
        // Of several only the newest is still wanted.
        while let Ok(newer) = asked.try_recv() {
            spec = newer;
        }
        let found = check(root, &spec).map_err(|why| crate::text::sanitize(why.to_string()));
        sink(ExperimentNews::Checked(Judged { arms: Arms::of(&spec), found }));
    }
}
