//! Applies the effects that `update` returns.

use super::state::{Runtime, callback};
use crate::collect::processes::ionice;
use crate::jobs::atomic_write::IfExists;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::model::process::{IoPrio, TaskKey};
use crate::model::reading::describe_io_error;
use crate::root::Root;
use crate::subprocess::handle::ChildMessage;
use crate::subprocess::runner::{ChildEvent, ChildRunner};
use crate::tui::effect::{Effect, RecordingEffect, RunEffect};
use crate::tui::event::Event;
use crate::tui::settings::Settings;
use crate::tui::terminal;
use crate::tui::view::PaneId;
use crate::tui::views::experiments::arm_checker::check_arms;
use std::time::{Duration, Instant};

/// How long stopping the process waits until programs are unloaded.
const UNLOAD_TIMEOUT: Duration = Duration::from_secs(2);

impl Runtime {
    pub(super) fn apply_effects(&mut self, effects: Vec<Effect>) -> anyhow::Result<()> {
        effects.into_iter().try_for_each(|effect| self.apply_effect(effect))
    }

    fn apply_effect(&mut self, effect: Effect) -> anyhow::Result<()> {
        let mut result = None;
        match effect {
            Effect::Quit => self.should_quit = true,
            Effect::Suspend => self.suspend()?,
            Effect::Redraw => self.redraw(),
            Effect::SetInterval(_)
            | Effect::ScanThreads(_)
            | Effect::WatchTasks(_)
            | Effect::ListSlowSyncs(_)
            | Effect::TraceFiles(_)
            | Effect::TraceWaits(_)
            | Effect::ReadGroups(_) => {
                self.reconfigure_collectors(effect);
            }
            Effect::Replay(effect) => self.player.iter().for_each(|player| player.run_effect(effect)),
            Effect::Recording(effect) => self.control_recording(effect)?,
            Effect::RunJob(job) => self.start_jobs(vec![job])?,
            Effect::RunJobsInSequence(jobs) => self.start_jobs(jobs)?,
            Effect::CopyToClipboard(text) => self.copy_to_clipboard(&text)?,
            Effect::SaveSettings(settings) => self.save_settings(&settings)?,
            Effect::Bench(effect) => {
                result = run_child(&mut self.bench, effect).map(|(run, failure)| Event::Bench(run, failure));
            }
            Effect::Experiment(effect) => {
                result = run_child(&mut self.experiment, effect).map(|(run, failure)| Event::Experiment(run, failure));
            }
            Effect::CheckArms(spec) => {
                let event = |check| Event::ArmsChecked(Box::new(check));
                result = check_arms(&self.options.root, *spec, callback(&self.events, event)).map(event);
            }
            Effect::Tune(effect) => result = self.tuning.run_effect(effect).err().map(Event::Notice),
            Effect::SetIoPrio { key, prio } => {
                result = Some(Event::IoPrioSet(key, set_io_priority(&self.options.root, key, prio)));
            }
        }
        result.map_or(Ok(()), |event| self.dispatch(event))
    }

    fn reconfigure_collectors(&mut self, effect: Effect) {
        let Some(collectors) = &mut self.collectors else { return };
        match effect {
            Effect::SetInterval(interval) => {
                collectors.set_interval(interval);
                self.sample_due = Instant::now() + interval;
            }
            Effect::ListSlowSyncs(threshold) => {
                self.sync_threshold = threshold;
                collectors.tracer.request_syncs(threshold);
            }
            Effect::TraceFiles(is_wanted) => {
                self.files_wanted = is_wanted;
                collectors.tracer.request_files(is_wanted);
            }
            Effect::TraceWaits(is_wanted) => {
                self.waits_wanted = is_wanted;
                collectors.tracer.request_waits(is_wanted);
            }
            Effect::ReadGroups(is_wanted) => collectors.request_groups(is_wanted),
            Effect::ScanThreads(threads) => {
                collectors.update_scan_options(|scan| scan.threads = threads);
                collectors.scan_now();
            }
            Effect::WatchTasks(keys) => {
                let wait_channels = self.app.screen.detail == Some(PaneId::ProcessDetail);
                collectors.update_scan_options(|scan| (scan.visible, scan.wait_channels) = (keys, wait_channels));
            }
            _ => {}
        }
    }

    /// Starts worker jobs. One that cannot be started gets a failed reply if a view waits for it, else a message.
    fn start_jobs(&mut self, jobs: Vec<WorkerJob>) -> anyhow::Result<()> {
        for (job, why) in self.pool.start_all(jobs) {
            self.dispatch(if job.is_awaited() {
                Event::JobReply(job, WorkerReply::Failed(why))
            } else {
                Event::Notice(why)
            })?;
        }
        Ok(())
    }

    /// Starts or stops a recording of what is on screen.
    pub(super) fn control_recording(&mut self, effect: RecordingEffect) -> anyhow::Result<()> {
        match effect {
            RecordingEffect::Stop => self.recording.stop(self.app.shared.system.now().wall_ns),
            RecordingEffect::Start(path) => {
                let path = std::env::current_dir().unwrap_or_default().join(path);
                if let Err(why) = self.recording.start(&self.options.root, path, &self.app) {
                    self.app.shared.recording_status = None;
                    return self.dispatch(Event::Notice(why));
                }
            }
        }
        Ok(())
    }

    /// Sends text to the terminal's clipboard (OSC 52).
    fn copy_to_clipboard(&mut self, text: &str) -> anyhow::Result<()> {
        use crossterm::Command;
        let mut sequence = String::new();
        crossterm::clipboard::CopyToClipboard::to_clipboard_from(text).write_ansi(&mut sequence)?;
        Ok(self.tty.send(sequence.as_bytes())?)
    }

    fn save_settings(&mut self, settings: &Settings) -> anyhow::Result<()> {
        match self.options.config_path.clone() {
            Some(path) => self.start_jobs(vec![WorkerJob::WriteFile {
                path,
                contents: settings.to_toml().into(),
                existing: IfExists::Replace,
                make_dir: true,
            }]),
            None => self.dispatch(Event::Notice("no config directory: set HOME or XDG_CONFIG_HOME".into())),
        }
    }

    fn redraw(&mut self) {
        let size = self.tty.size();
        self.app.screen.size = size;
        self.screen.reset(size);
        self.schedule_draw_for_input();
    }

    /// Restores the terminal and stops the process; sets the terminal up again once it is continued. Programs on system
    /// calls are unloaded meanwhile: while nobody reads what they count, they only slow the machine down.
    pub(super) fn suspend(&mut self) -> anyhow::Result<()> {
        terminal::restore();
        if let Some(collectors) = self.collectors.as_ref().filter(|_| self.files_wanted) {
            collectors.tracer.request_files(false);
        }
        if let Some(collectors) = self.collectors.as_ref().filter(|_| self.waits_wanted) {
            collectors.tracer.request_waits(false);
        }
        if let (Some(collectors), Some(_)) = (&self.collectors, self.sync_threshold) {
            collectors.tracer.request_syncs(None);
            let end = Instant::now() + UNLOAD_TIMEOUT;
            while !collectors.tracer.is_sync_worker_idle() && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP)?;
        if let Some(collectors) = &self.collectors {
            collectors.tracer.request_syncs(self.sync_threshold);
            collectors.tracer.request_files(self.files_wanted);
            collectors.tracer.request_waits(self.waits_wanted);
        }
        self.resume()
    }

    /// Sets the terminal up again after a stop and redraws everything.
    pub(super) fn resume(&mut self) -> anyhow::Result<()> {
        terminal::restore();
        self.tty.enter_raw_mode()?;
        self.redraw();
        Ok(())
    }
}

/// Starts, cancels or kills a run. A failure to start is returned as the run's event.
fn run_child<M: ChildMessage>(
    runner: &mut ChildRunner<M>,
    effect: RunEffect<M::Order>,
) -> Option<(u64, Box<ChildEvent<M>>)> {
    match effect {
        RunEffect::Start { run, plan } => {
            let why = runner.start(run, *plan).err()?;
            return Some((run, Box::new(ChildEvent::Message(M::from_spawn_error(why)))));
        }
        RunEffect::Cancel => runner.cancel(),
        RunEffect::Kill => runner.kill(),
    }
    None
}

/// Sets a task's I/O priority and reads it back.
fn set_io_priority(root: &Root, key: TaskKey, prio: IoPrio) -> Result<IoPrio, String> {
    ionice::set_verified(root, key, prio).map_err(|err| match err.raw_os_error() {
        Some(libc::ESRCH) => format!("task {} has ended; nothing was changed", key.tid),
        _ => {
            let why = describe_io_error(&err);
            format!("ioprio_set on task {}: {why}; it needs the task's owner or CAP_SYS_NICE", key.tid)
        }
    })
}
