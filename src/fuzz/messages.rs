//! Messages from child processes.

use super::terminal::{Session, with_session};
use crate::bench::message::BenchMessage;
use crate::experiment::message::ExperimentMessage;
use crate::jobs::bench_jobs::StoreJob;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::subprocess::frame;
use crate::subprocess::runner::ChildEvent;
use crate::tui::app::Views;
use crate::tui::effect::Effect;
use crate::tui::event::Event;
use crate::tui::views::runs::{OpenedResult, Run, RunKind, RunView};
use crate::tuning::protocol::{MAX_LINE, TunerReply, TunerRequest};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
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

/// Keys that show a view or a page and have it ask for what the replies bring.
const PAGES: [&str; 13] = ["0", "1", "2", "2\n", "3", "3\n", "3\nv", ":path /\n", "6", "7", "7E", "8", "9"];

/// Goes to a page by its keys. Returns the jobs that it asks for.
fn open_page(session: &mut Session, keys: &str) -> Vec<WorkerJob> {
    let keys = "\x1b\x1b\x1b".chars().chain(keys.chars());
    let effects = keys.flat_map(|key| {
        let code = match key {
            '\x1b' => KeyCode::Esc,
            '\n' => KeyCode::Enter,
            key => KeyCode::Char(key),
        };
        session.update(Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    });
    effects.filter_map(|effect| if let Effect::RunJob(job) = effect { Some(job) } else { None }).collect()
}

/// Jobs that a reply may answer whatever is on screen.
fn other_jobs() -> [WorkerJob; 7] {
    [
        WorkerJob::DiskSpace { mounts: Vec::new(), network: true },
        WorkerJob::ReadConfig("/x".into()),
        WorkerJob::BootValues(Vec::new()),
        WorkerJob::InspectTarget("/".into()),
        WorkerJob::BenchReports(StoreJob::List),
        WorkerJob::ExperimentReports(StoreJob::List),
        WorkerJob::Persist { assignments: Vec::new(), remove: false },
    ]
}

/// Each reply answers what one page asks for, and one of the other jobs; then the page is drawn.
pub(super) fn worker_replies(input: &[u8]) {
    let replies = read_all::<WorkerReply>(input);
    if replies.is_empty() {
        return;
    }
    let number = crc32fast::hash(input) as usize;
    with_session(|session| {
        for reply in replies.into_iter().take(4) {
            let mut jobs = open_page(session, PAGES[number % PAGES.len()]);
            jobs.extend(other_jobs().into_iter().nth(number / PAGES.len() % 7));
            for job in jobs {
                if matches!(job, WorkerJob::BenchReports(_)) {
                    session.app.views.bench.opened = Some(OpenedResult::Loading(Vec::new()));
                    session.update(Event::JobReply(WorkerJob::BenchReports(StoreJob::Load(Vec::new())), reply.clone()));
                } else if matches!(job, WorkerJob::ExperimentReports(_)) {
                    session.app.views.experiments.opened = Some(OpenedResult::Loading(Vec::new()));
                    let load = WorkerJob::ExperimentReports(StoreJob::Load(Vec::new()));
                    session.update(Event::JobReply(load, reply.clone()));
                }
                session.update(Event::JobReply(job, reply.clone()));
            }
            session.draw();
        }
    });
}

/// Shows the messages of a run: each time the run ends, the next one begins.
fn show_run<K: RunKind>(
    session: &mut Session,
    view: impl Fn(&mut Views) -> &mut RunView<K>,
    events: impl Iterator<Item = Event>,
) where
    K::Plan: Default,
{
    for event in events {
        let run = &mut view(&mut session.app.views).run;
        if run.as_ref().is_none_or(|run| run.ending.is_some()) {
            *run = Some(Run::new(1, K::Plan::default(), 0));
        }
        view(&mut session.app.views).show_current_run();
        session.update(event);
        session.draw();
    }
}

/// The messages of a benchmark and those of an experiment, each on its page.
pub(super) fn run_messages(input: &[u8]) {
    let (benches, experiments) = (read_all::<BenchMessage>(input), read_all::<ExperimentMessage>(input));
    if benches.is_empty() && experiments.is_empty() {
        return;
    }
    with_session(|session| {
        let benches = benches.into_iter().map(|message| Event::Bench(1, Box::new(ChildEvent::Message(message))));
        open_page(session, "6");
        show_run(session, |views| &mut views.bench, benches);
        let experiments =
            experiments.into_iter().map(|message| Event::Experiment(1, Box::new(ChildEvent::Message(message))));
        open_page(session, "7E");
        show_run(session, |views| &mut views.experiments, experiments);
    });
}

pub(super) fn tuner_messages(input: &[u8]) {
    let _ = (read_all::<TunerRequest>(input), read_all::<TunerReply>(input), read_all::<WorkerJob>(input));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_ask_for_what_the_replies_bring() {
        let mut asked = Vec::new();
        for keys in PAGES {
            with_session(|session| asked.extend(open_page(session, keys)));
        }
        let is_asked = |is: fn(&WorkerJob) -> bool| assert!(asked.iter().any(is), "{asked:?}");
        is_asked(|job| matches!(job, WorkerJob::Mappings { .. }));
        is_asked(|job| matches!(job, WorkerJob::ResolvePath(_)));
    }
}
