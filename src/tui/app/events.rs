//! Events of collectors, child processes and the player.

use super::state::App;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::model::observation::{Change, Observation};
use crate::tui::view::{Effect, Event};
use crate::units::format_bytes_long;

impl App {
    pub(super) fn on_event(&mut self, event: Event, effects: &mut Vec<Effect>) {
        match event {
            Event::Observed(observation) => self.on_observation(observation, effects),
            Event::Replay(event) => self.on_replay_event(*event, effects),
            Event::ReplayJudged(slots) => {
                if let Some(replay) = &mut self.shared.replay {
                    slots.into_iter().for_each(|(slot, worst)| replay.timeline.judge(slot, worst));
                }
            }
            Event::RecordingStatus(status) => self.on_recorder_status(*status),
            Event::JobReply(WorkerJob::InspectTarget(directory), reply) => {
                self.shared.target.on_inspected(directory, reply);
                self.select_target_device();
            }
            Event::JobReply(job, reply) if job.is_for_doctor() => self.on_facts(&job, reply),
            Event::Notice(text) => self.screen.error(text),
            Event::Key(_) | Event::Mouse(_) | Event::Resize(..) => {}
            other => self.offer_event(other, effects),
        }
    }

    fn offer_event(&mut self, event: Event, effects: &mut Vec<Effect>) {
        let mut pending = Some(event);
        self.visit_views(effects, |view, cx, out| {
            pending = view.on_event(pending.take()?, cx, out);
            pending.is_none().then_some(())
        });
        match pending {
            Some(Event::JobReply(WorkerJob::QueueSettings(..), WorkerReply::Observed(queues))) => {
                self.shared.system.apply(queues);
            }
            Some(Event::JobReply(_, WorkerReply::FileWritten { path, bytes })) => {
                self.screen.info(format!("written: {} ({})", path.display(), format_bytes_long(bytes)));
            }
            Some(Event::JobReply(_, WorkerReply::Failed(why))) => self.screen.error(why),
            _ => {}
        }
    }

    /// Updates the system state with what a collector read, and what is shown of it.
    pub(super) fn on_observation(&mut self, observation: Observation, effects: &mut Vec<Effect>) {
        match &observation {
            Observation::Sample(_) => self.run_overdue_rules(effects),
            Observation::KernelLog(_, clock) => self.shared.log_clock = *clock,
            _ => {}
        }
        let change = self.shared.system.apply(observation);
        self.tell_views(change, effects);
        match change {
            Change::Counters => self.screen.age_message(),
            Change::Tasks => self.run_rules_if_due(effects),
            Change::Topology => {
                let names = self.shared.system.devices_to_query();
                if !names.is_empty() {
                    effects.push(Effect::RunJob(WorkerJob::QueueSettings(names)));
                }
            }
            Change::KernelLog | Change::Other | Change::None => {}
        }
    }

    pub(super) fn tell_views(&mut self, change: Change, effects: &mut Vec<Effect>) {
        if !matches!(change, Change::Other | Change::None) {
            self.visit_views(effects, |view, cx, out| -> Option<()> {
                view.on_change(change, cx, out);
                None
            });
        }
    }
}
