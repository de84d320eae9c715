//! Checks the arms of experiments on a thread, because knobs may be of devices that do not answer.

use crate::experiment::arm_settings::validate;
use crate::experiment::spec::ExperimentSpec;
use crate::root::Root;
use crate::tui::event::ArmCheck;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Takes the result of a check; callable from any thread.
pub type ArmCheckSink = Arc<dyn Fn(ArmCheck) + Send + Sync>;

/// Checks arms, one request after the other.
pub struct ArmChecker {
    root: Root,
    sink: ArmCheckSink,
    /// To the thread, once it has been started.
    requests: Option<Sender<ExperimentSpec>>,
}

impl ArmChecker {
    /// Creates the checker without its thread.
    pub fn new(root: Root, sink: ArmCheckSink) -> Self {
        Self { root, sink, requests: None }
    }

    /// Requests a check. A failure is returned as its result.
    pub fn request(&mut self, spec: ExperimentSpec) -> Option<ArmCheck> {
        let why = self.send(spec.clone()).err()?;
        Some(ArmCheck { spec, result: Err(why) })
    }

    fn send(&mut self, spec: ExperimentSpec) -> Result<(), String> {
        let requests = match &self.requests {
            Some(requests) => requests,
            None => self.requests.insert(self.start_thread()?),
        };
        requests.send(spec).map_err(|_| "the thread that checks the arms has ended".to_owned())
    }

    fn start_thread(&self) -> Result<Sender<ExperimentSpec>, String> {
        let (sender, receiver) = channel();
        let (root, sink) = (self.root.clone(), self.sink.clone());
        let thread = std::thread::Builder::new().name("arms".into()).stack_size(512 * 1024);
        let started = thread.spawn(move || check_loop(&root, &sink, &receiver));
        started.map_err(|err| format!("cannot start the thread that checks the arms: {err}"))?;
        Ok(sender)
    }
}

fn check_loop(root: &Root, sink: &ArmCheckSink, requests: &Receiver<ExperimentSpec>) {
    while let Ok(mut spec) = requests.recv() {
        // Only the newest request still matters.
        while let Ok(newer) = requests.try_recv() {
            spec = newer;
        }
        let result = validate(root, &spec).map_err(|why| crate::sanitize::sanitize(why.to_string()));
        sink(ArmCheck { spec, result });
    }
}
