//! Records what the collectors observe: observations are copied as they arrive and sent to the writing thread.

use crate::collect::clock;
use crate::collect::kmsg::KmsgReader;
use crate::jobs::job::WorkerReply;
use crate::model::observation::Observation;
use crate::model::reading::Reading;
use crate::model::slow_facts::SlowFacts;
use crate::recording::frame::RecordingHeader;
use crate::recording::writer::{RecorderOptions, RecorderState, RecorderStatus, RecordingWriter};
use crate::root::Root;
use crate::tui::app::App;
use crate::tui::event::Event;
use std::path::PathBuf;
use std::time::Duration;

/// How long the end of the program waits for the writing child: its disk may hang.
const FINISH_TIMEOUT: Duration = Duration::from_millis(300);

#[derive(Default)]
pub(super) struct ActiveRecording {
    recorder: Option<RecordingWriter>,
    /// Observations of the tick that is not complete.
    pending_events: Vec<Observation>,
    is_stopping: bool,
}

impl ActiveRecording {
    /// Starts a recording with everything known so far.
    pub(super) fn start(&mut self, root: &Root, path: PathBuf, app: &App) -> Result<(), String> {
        let (at, log_clock) = (clock::now(), clock::now_log_clock());
        let header = RecordingHeader {
            program: concat!("iotop-plus ", env!("CARGO_PKG_VERSION")).into(),
            host: app.shared.system.host.name.clone(),
            kernel: app.shared.system.host.kernel.clone(),
            program_pid: app.shared.system.host.program_pid,
            started_at: at,
            mono_ns: log_clock.mono_ns,
            interval_ns: app.shared.interval.as_nanos() as u64,
            utc_offset_secs: app.shared.utc_offset_secs,
        };
        let plan = RecorderOptions { path, replace: false, max_size: None, rotate: None };
        let recorder =
            RecordingWriter::start(root, plan, header).map_err(|err| format!("no thread to record: {err}"))?;
        let mut known = initial_events(app);
        if let Reading::Ok(mut reader) = KmsgReader::open(root) {
            let records = std::iter::from_fn(|| reader.next_record().ok().flatten()).collect();
            known.push(Observation::KernelLog(records, log_clock));
        }
        // Before the first tick there is no time stamp: the observations go with that tick.
        if app.shared.system.last_sample.is_some() {
            recorder.record_tick(std::mem::take(&mut known), app.shared.system.now().wall_ns);
        }
        *self = Self { recorder: Some(recorder), pending_events: known, is_stopping: false };
        Ok(())
    }

    /// Ends it; [`Self::observe_event`] returns its last status once everything is written.
    pub(super) fn stop(&mut self, wall_ns: i64) {
        self.flush(wall_ns);
        if let Some(recorder) = &mut self.recorder {
            recorder.finish();
        }
        self.is_stopping = true;
    }

    /// Ends it because the program ends: waits briefly until the writing child has received everything.
    pub(super) fn finish(&mut self, wall_ns: i64) {
        self.stop(wall_ns);
        let since = std::time::Instant::now();
        let open = |r: &RecordingWriter| {
            let status = r.status();
            !status.is_handed_over && !matches!(status.state, RecorderState::Failed(_))
        };
        while self.recorder.as_ref().is_some_and(open) && since.elapsed() < FINISH_TIMEOUT {
            std::thread::sleep(FINISH_TIMEOUT / 100);
        }
    }

    /// Copies an observation. Returns the status after each tick.
    pub(super) fn observe_event(&mut self, event: &Event, wall_ns: i64) -> Option<RecorderStatus> {
        self.recorder.as_ref()?;
        let (Event::Observed(entry) | Event::JobReply(_, WorkerReply::Observed(entry))) = event else { return None };
        let tick = matches!(entry, Observation::Sample(_));
        if tick && self.pending_events.iter().any(|e| matches!(e, Observation::Sample(_))) {
            // The scan of the previous tick is late.
            self.flush(wall_ns);
        }
        let complete = matches!(entry, Observation::Tasks(_));
        if !self.is_stopping {
            self.pending_events.push(entry.clone());
        }
        if complete && self.pending_events.iter().any(|e| matches!(e, Observation::Sample(_))) {
            self.flush(wall_ns);
        }
        tick.then(|| self.status()).flatten()
    }

    fn flush(&mut self, wall_ns: i64) {
        let observations = std::mem::take(&mut self.pending_events);
        if let Some(recorder) = self.recorder.as_ref().filter(|_| !observations.is_empty()) {
            let newest = observations
                .iter()
                .rev()
                .find_map(|e| if let Observation::Sample(s) = e { Some(s.time.wall_ns) } else { None });
            recorder.record_tick(observations, newest.unwrap_or(wall_ns));
        }
    }

    fn status(&mut self) -> Option<RecorderStatus> {
        let status = self.recorder.as_ref()?.status();
        if !matches!(status.state, RecorderState::Running | RecorderState::Full) {
            self.recorder = None;
        }
        Some(status)
    }
}

/// Everything known, as the first observations.
fn initial_events(app: &App) -> Vec<Observation> {
    let system = &app.shared.system;
    let mut out = Vec::new();
    out.extend(system.last_sample.clone().map(|s| Observation::Sample(Box::new(s))));
    if system.processes_status.ok().is_some() {
        out.push(Observation::Tasks(Box::new(Reading::Ok(system.processes.full_update()))));
    }
    out.push(Observation::Topology(Box::new(system.topology.clone())));
    out.push(Observation::Queues(system.queues.clone()));
    out.push(Observation::KernelLogState(system.kernel_log_status.clone()));
    out.push(Observation::BlockedSources(system.blocked_reads.clone()));
    out.push(Observation::HungTaskWarnings(system.hung_task_warnings));
    let SlowFacts { previous: before, latest: now, local_space: room, network_space: network_room } =
        system.slow_facts.clone();
    out.extend([before, now].into_iter().flatten().map(|facts| Observation::Facts(Box::new(facts))));
    out.extend([room, network_room].into_iter().flatten().map(Observation::DiskSpace));
    out
}
