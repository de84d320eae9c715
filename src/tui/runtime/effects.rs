//! Effects, acted.

use super::super::effect::Effect;
use super::super::event::Event;
use super::super::settings::Settings;
use super::super::state::DetailPage;
use super::super::terminal;
use super::state::Runtime;
use crate::collect::processes::ionice;
use crate::jobs::atomic_write::IfExists;
use crate::jobs::job::{WorkerJob, WorkerReply};
use std::time::{Duration, Instant};

impl Runtime {
    pub(super) fn apply_effects(&mut self, effects: Vec<Effect>) -> anyhow::Result<()> {
        for effect in effects {
            match effect {
                Effect::Quit => self.should_quit = true,
                Effect::Suspend => self.suspend()?,
                Effect::Redraw => self.redraw(),
                Effect::SetInterval(_) | Effect::ScanThreads(_) | Effect::WatchTasks(_) | Effect::ListSlowSyncs(_) => {
                    self.reconfigure_collectors(effect);
                }
                Effect::Replay(effect) => self.player.iter().for_each(|p| p.run_effect(effect)),
                Effect::Recording(effect) => self.control_recording(effect)?,
                Effect::RunJob(job) => self.start_jobs(vec![job])?,
                Effect::RunJobsInSequence(jobs) => self.start_jobs(jobs)?,
                Effect::CopyToClipboard(text) => self.copy_to_clipboard(&text)?,
                Effect::SaveSettings(settings) => self.save_settings(&settings)?,
                Effect::Bench(effect) => {
                    if let Some(news) = self.bench.run_effect(effect) {
                        self.dispatch(Event::Bench(Box::new(news)))?;
                    }
                }
                Effect::Experiment(effect) => {
                    if let Some(news) = self.experiment.run_effect(effect) {
                        self.dispatch(Event::Experiment(Box::new(news)))?;
                    }
                }
                Effect::Tune(effect) => {
                    if let Err(why) = self.tuning.run_effect(effect) {
                        self.dispatch(Event::Notice(why))?;
                    }
                }
                Effect::SetIoPrio { key, prio } => {
                    let set = ionice::set(key.tid, prio).and_then(|()| ionice::get(key.tid));
                    let result = set.map_err(|err| {
                        let why = crate::model::reading::describe_io_error(&err);
                        format!("ioprio_set on task {}: {why}; it needs the task's owner or CAP_SYS_NICE", key.tid)
                    });
                    self.dispatch(Event::IoPrioSet(key, result))?;
                }
            }
        }
        Ok(())
    }

    /// What is wanted of the collectors.
    fn reconfigure_collectors(&mut self, effect: Effect) {
        let Some(feed) = &mut self.collectors else { return };
        match effect {
            Effect::SetInterval(interval) => {
                feed.set_interval(interval);
                self.sample_due = Instant::now() + interval;
            }
            Effect::ListSlowSyncs(from) => feed.set_sync_threshold(from),
            Effect::ScanThreads(threads) => {
                feed.update_scan_options(|w| w.threads = threads);
                feed.scan_now();
            }
            Effect::WatchTasks(keys) => {
                let waits = matches!(self.app.screen.detail, Some(DetailPage::Process(_)));
                feed.update_scan_options(|w| (w.visible, w.wait_channels) = (keys, waits));
            }
            _ => {}
        }
    }

    fn start_jobs(&mut self, jobs: Vec<WorkerJob>) -> anyhow::Result<()> {
        for (job, why) in self.pool.start_all(jobs) {
            self.dispatch(if job.is_for_bench() || job.is_for_experiments() || job.is_for_doctor() {
                Event::JobReply(job, WorkerReply::Failed(why))
            } else {
                Event::Notice(why)
            })?;
        }
        Ok(())
    }

    fn copy_to_clipboard(&mut self, text: &str) -> anyhow::Result<()> {
        use crossterm::Command;
        let mut bytes = String::new();
        crossterm::clipboard::CopyToClipboard::to_clipboard_from(text).write_ansi(&mut bytes)?;
        Ok(self.tty.send(bytes.as_bytes())?)
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
        self.schedule_draw(Duration::ZERO);
    }

    /// Gives the terminal back, stops, and takes it again when continued.
    pub(super) fn suspend(&mut self) -> anyhow::Result<()> {
        terminal::restore();
        let me = rustix::process::getpid();
        rustix::process::kill_process(me, rustix::process::Signal::STOP)?;
        self.resume()
    }

    pub(super) fn resume(&mut self) -> anyhow::Result<()> {
        terminal::restore();
        self.tty.reenter()?;
        self.redraw();
        Ok(())
    }
}
