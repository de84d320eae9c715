//! Recording what is on the screen: news is copied on its way in, and sent to the thread that writes.

use super::event::Event;
use super::state::App;
use crate::collect::clock;
use crate::collect::kmsg::KmsgReader;
use crate::model::facts::Known;
use crate::model::section::Section;
use crate::record::Entry;
use crate::record::frame::Header;
use crate::record::writer::{Course, Plan, Recorder, Status};
use crate::root::Root;
use crate::worker::job::{Job, Reply};
use std::path::PathBuf;
use std::time::Duration;

/// How long the end of the program waits for the writing child: its disk may hang.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// What is to be done about a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TapeEffect {
    /// Begin, in this file.
    Start(PathBuf),
    /// End.
    End,
}

/// A recording under way, if there is one.
#[derive(Default)]
pub struct Tape {
    recorder: Option<Recorder>,
    /// News of the tick that is not complete.
    news: Vec<Entry>,
    ending: bool,
}

impl Tape {
    /// Begins with all that is known; why not, if there is no thread.
    pub fn start(&mut self, root: &Root, path: PathBuf, app: &App) -> Result<(), String> {
        let (at, log_clock) = (clock::now(), clock::log_clock());
        let header = Header {
            program: concat!("iotop-plus ", env!("CARGO_PKG_VERSION")).into(),
            host: app.world.host.name.clone(),
            kernel: app.world.host.kernel.clone(),
            at,
            mono_ns: log_clock.mono_ns,
            interval_ns: app.ui.interval.as_nanos() as u64,
            utc_offset_secs: app.ui.utc_offset_secs,
        };
        let plan = Plan { path, replace: false, max_size: None, rotate: None };
        let recorder =
            Recorder::start(root, plan, header).map_err(|err| format!("no thread to record: {err}"))?;
        let mut known = known(app);
        if let Section::Ok(mut reader) = KmsgReader::open(root) {
            let mut records = Vec::new();
            while let Ok(Some(record)) = reader.next_record() {
                records.push(record);
            }
            known.push(Entry::Records(records, log_clock));
        }
        let mut news = Vec::new();
        match app.world.last.is_some() {
            true => recorder.tick(known, app.world.now().wall_ns),
            // Before the first tick there is no time to tell it of: it goes with that.
            false => news = known,
        }
        *self = Self { recorder: Some(recorder), news, ending: false };
        Ok(())
    }

    /// Ends it; [`Tape::note`] tells when everything is written.
    pub fn end(&mut self, wall_ns: i64) {
        self.flush(wall_ns);
        if let Some(recorder) = &self.recorder {
            recorder.end();
        }
        self.ending = true;
    }

    /// Ends it because the program ends: waits a moment until the writing child has everything. It does the rest
    /// by itself.
    pub fn finish(&mut self, wall_ns: i64) {
        self.end(wall_ns);
        let since = std::time::Instant::now();
        let open = |r: &Recorder| {
            let status = r.status();
            !status.handed_over && !matches!(status.course, Course::Failed(_))
        };
        while self.recorder.as_ref().is_some_and(open) && since.elapsed() < LAST_WORDS {
            std::thread::sleep(LAST_WORDS / 100);
        }
    }

    /// Takes a copy of an event that is news; after each tick, how far it is.
    pub fn note(&mut self, event: &Event, wall_ns: i64) -> Option<Status> {
        self.recorder.as_ref()?;
        let tick = matches!(event, Event::Sample(_));
        let entry = match event {
            Event::Sample(sample) => {
                if self.news.iter().any(|e| matches!(e, Entry::Sample(_))) {
                    // Its look at the tasks did not come in time.
                    self.flush(wall_ns);
                }
                Entry::Sample(sample.clone())
            }
            Event::Procs(look) => Entry::Procs(look.clone()),
            Event::Topology(topology) => Entry::Topology(topology.clone()),
            Event::Records(records, clock) => Entry::Records(records.clone(), *clock),
            Event::NoKernelLog(why) => Entry::LogState(why.clone()),
            Event::Blocked(list) => Entry::Blocked(list.clone()),
            Event::HungTaskWarnings(left) => Entry::HungTaskWarnings(*left),
            Event::Worker(Job::Queues { .. }, Reply::Queues(queues)) => Entry::Queues(queues.clone()),
            Event::Worker(_, Reply::Diagnosis(facts)) => Entry::Facts(facts.clone()),
            Event::Worker(_, Reply::Room(room)) => Entry::Room(room.clone()),
            _ => return None,
        };
        let complete = matches!(entry, Entry::Procs(_));
        if !self.ending {
            self.news.push(entry);
        }
        if complete && self.news.iter().any(|e| matches!(e, Entry::Sample(_))) {
            self.flush(wall_ns);
        }
        tick.then(|| self.status()).flatten()
    }

    fn flush(&mut self, wall_ns: i64) {
        let news = std::mem::take(&mut self.news);
        if let Some(recorder) = self.recorder.as_ref().filter(|_| !news.is_empty()) {
            let newest = news
                .iter()
                .rev()
                .find_map(|e| if let Entry::Sample(s) = e { Some(s.at.wall_ns) } else { None });
            recorder.tick(news, newest.unwrap_or(wall_ns));
        }
    }

    fn status(&mut self) -> Option<Status> {
        let status = self.recorder.as_ref()?.status();
        if !matches!(status.course, Course::Running | Course::Full) {
            self.recorder = None;
        }
        Some(status)
    }
}

/// Everything the screen knows, as the first news.
fn known(app: &App) -> Vec<Entry> {
    let world = &app.world;
    let mut out = Vec::new();
    out.extend(world.last.clone().map(|s| Entry::Sample(Box::new(s))));
    if world.procs_state.ok().is_some() {
        out.push(Entry::Procs(Box::new(Section::Ok(world.procs.told_anew()))));
    }
    out.push(Entry::Topology(Box::new(world.topo.clone())));
    out.push(Entry::Queues(world.queues.clone()));
    out.push(Entry::LogState(world.klog_state.clone()));
    out.push(Entry::Blocked(world.blocked.clone()));
    out.push(Entry::HungTaskWarnings(world.hung_task_warnings));
    let Known { before, now, room, network_room } = world.facts.clone();
    out.extend([before, now].into_iter().flatten().map(|facts| Entry::Facts(Box::new(facts))));
    out.extend([room, network_room].into_iter().flatten().map(Entry::Room));
    out
}
