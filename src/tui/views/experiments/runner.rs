//! Runs the effects of experiments without blocking; results come back as events. A thread checks the arms; it uses a
//! child process for knobs of devices that may not answer.

use crate::experiment::arm_settings::validate;
use crate::experiment::message::ExperimentMessage;
use crate::experiment::spec::ExperimentSpec;
use crate::root::Root;
use crate::subprocess::handle::ChildMessage;
use crate::subprocess::runner::ChildRunner;
use crate::tui::views::experiments::{ArmCheck, ArmSettings, ChildEvent, ExperimentEffect, ExperimentEvent};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Sends events to the event loop; callable from any thread.
pub type ExperimentEventSink = Arc<dyn Fn(ExperimentEvent) + Send + Sync>;

/// Runs one experiment at a time in a child process, and checks arms.
pub struct ExperimentEffectRunner {
    launcher: ChildRunner<ExperimentMessage>,
    root: Root,
    sink: ExperimentEventSink,
    /// To the thread that checks arms, once it has been started.
    check_requests: Option<Sender<ExperimentSpec>>,
}

impl ExperimentEffectRunner {
    /// Creates the runner; nothing runs yet.
    pub fn new(root: Root, sink: ExperimentEventSink) -> Self {
        let to = sink.clone();
        let news = move |run, what| to(ExperimentEvent::Child(run, what));
        Self { launcher: ChildRunner::new(root.clone(), Arc::new(news)), root, sink, check_requests: None }
    }

    /// Starts an effect without waiting for it. A failure is returned as an event: the caller must not use the event queue.
    pub fn run_effect(&mut self, effect: ExperimentEffect) -> Option<ExperimentEvent> {
        match effect {
            ExperimentEffect::CheckArms(spec) => {
                let arms = ArmSettings::from_spec(&spec);
                let why = self.request_check(*spec).err()?;
                return Some(ExperimentEvent::ArmsChecked(ArmCheck { arms, result: Err(why) }));
            }
            ExperimentEffect::Start { run, spec } => {
                let why = self.launcher.start(run, *spec).err()?;
                return Some(ExperimentEvent::Child(
                    run,
                    ChildEvent::Message(ExperimentMessage::from_spawn_error(why)),
                ));
            }
            ExperimentEffect::Cancel => self.launcher.cancel(),
            ExperimentEffect::Kill => self.launcher.kill(),
        }
        None
    }

    fn request_check(&mut self, spec: ExperimentSpec) -> Result<(), String> {
        let spec = match &self.check_requests {
            Some(looks) => match looks.send(spec) {
                Ok(()) => return Ok(()),
                Err(back) => back.0,
            },
            None => spec,
        };
        let (to, asked) = channel();
        let (root, sink) = (self.root.clone(), self.sink.clone());
        let body = move || check_loop(&root, &sink, &asked);
        let thread = std::thread::Builder::new().name("arms".into()).stack_size(512 * 1024).spawn(body);
        thread.map_err(|err| format!("cannot start the thread that checks the arms: {err}"))?;
        let sent = to.send(spec).map_err(|_| "the thread that checks the arms has ended".to_owned());
        self.check_requests = Some(to);
        sent
    }
}

fn check_loop(root: &Root, sink: &ExperimentEventSink, asked: &Receiver<ExperimentSpec>) {
    while let Ok(mut spec) = asked.recv() {
        // Only the newest request still matters.
        while let Ok(newer) = asked.try_recv() {
            spec = newer;
        }
        let found = validate(root, &spec).map_err(|why| crate::sanitize::sanitize(why.to_string()));
        sink(ExperimentEvent::ArmsChecked(ArmCheck { arms: ArmSettings::from_spec(&spec), result: found }));
    }
}
