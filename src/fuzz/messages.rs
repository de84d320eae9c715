//! Messages from child processes.

use super::terminal::{draw, screen};
use crate::bench::message::BenchMessage;
use crate::experiment::message::ExperimentMessage;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::subprocess::frame;
use crate::subprocess::runner::ChildEvent;
use crate::tui::action::ViewId;
use crate::tui::app::{App, update};
use crate::tui::event::Event;
use crate::tuning::protocol::{MAX_LINE, TunerReply, TunerRequest};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// All messages of this type in the input; each is also written and read back.
fn read_all<T: DeserializeOwned + Serialize>(mut input: &[u8]) -> Vec<T> {
    let mut out = Vec::new();
    loop {
        match frame::read::<T>(&mut input, MAX_LINE) {
            Ok(None) | Err(frame::FrameError::CutOff | frame::FrameError::Io(_)) => return out,
            Ok(Some(message)) => {
                let line = frame::to_line(&message).unwrap();
                assert!(frame::read::<T>(&mut line.as_slice(), u64::MAX).unwrap().is_some());
                out.push(message);
            }
            Err(frame::FrameError::Malformed(_)) => {}
        }
    }
}

fn show(app: &mut App, event: Event) {
    update(app, event);
    draw(app);
}

pub(super) fn worker_replies(input: &[u8]) {
    let replies = read_all::<WorkerReply>(input);
    let jobs = [
        WorkerJob::ResolvePath { path: "/".into() },
        WorkerJob::TaskDetails { pid: 1, starttime: 1 },
        WorkerJob::Mappings { pid: 1, starttime: 1 },
        WorkerJob::DiskSpace { mounts: Vec::new(), network: true },
        WorkerJob::ReadFile { path: "/x".into() },
        WorkerJob::BootValues { knobs: Vec::new() },
        WorkerJob::InspectTarget { directory: "/".into() },
    ];
    for reply in replies.into_iter().take(4) {
        let mut app = screen((100, 30));
        for (job, view) in jobs.iter().zip(ViewId::ALL) {
            app.screen.view = view;
            show(&mut app, Event::JobReply(job.clone(), reply.clone()));
        }
    }
}

pub(super) fn run_messages(input: &[u8]) {
    let (benches, experiments) = (read_all::<BenchMessage>(input), read_all::<ExperimentMessage>(input));
    if benches.is_empty() && experiments.is_empty() {
        return;
    }
    let mut app = screen((100, 30));
    for message in benches {
        app.screen.view = ViewId::Bench;
        show(&mut app, Event::Bench(1, Box::new(ChildEvent::Message(message))));
    }
    for message in experiments {
        app.screen.view = ViewId::Tune;
        show(&mut app, Event::Experiment(1, Box::new(ChildEvent::Message(message))));
    }
}

pub(super) fn tuner_messages(input: &[u8]) {
    let _ = (read_all::<TunerRequest>(input), read_all::<TunerReply>(input), read_all::<WorkerJob>(input));
}
