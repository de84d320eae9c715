//! Actions and events of a replay, and those of recording.
//!
//! A replay has no panes: it changes the machine that all views show, so it belongs to the program above them.

use super::state::App;
use crate::doctor::RuleEngine;
use crate::doctor::transitions::FindingTransition;
use crate::jobs::job::WorkerJob;
use crate::model::observation::{Change, Observation};
use crate::model::system_state::SystemState;
use crate::recording::decoder::DecodedTick;
use crate::recording::time_spec;
use crate::recording::writer::{RecorderState, RecorderStatus, default_file_name};
use crate::tui::shared::{NOT_IN_REPLAY, SPEEDS};
use crate::tui::view::{
    Action, Effect, PromptPurpose, RecordingEffect, ReplayAction, ReplayEffect, ReplayEvent, ViewId,
};
use std::path::PathBuf;

/// Whether an effect is allowed in a replay: nothing may be requested from the viewer's own machine.
pub(super) fn is_allowed_in_replay(effect: &Effect) -> bool {
    match effect {
        Effect::Quit | Effect::Suspend | Effect::Redraw | Effect::Replay(_) => true,
        Effect::CopyToClipboard(_) | Effect::SaveSettings(_) => true,
        Effect::RunJob(job) => matches!(job, WorkerJob::WriteFile { .. }),
        _ => false,
    }
}

impl App {
    /// Why an action is unavailable in a replay, if it is.
    pub(super) fn refusal_reason(&self, action: Action) -> Option<String> {
        self.shared.replay.as_ref()?;
        let what = match action {
            Action::ShowView(ViewId::Bench) | Action::Run(_) => "measuring",
            Action::ShowView(ViewId::Tune) | Action::Tune(_) | Action::TaskKnobs => "settings",
            Action::Experiment(_) => "experiments",
            Action::Ionice => "I/O priority",
            Action::LoadMappings => "mappings",
            Action::ToggleRecording => "recording",
            Action::ToggleThreads => return Some("processes or threads are shown as they were recorded".into()),
            Action::SetInterval | Action::ShorterInterval | Action::LongerInterval => {
                let [faster, slower] = [ReplayAction::Faster, ReplayAction::Slower].map(Action::Replay);
                let [faster, slower] = [faster, slower].map(|action| self.shared.key(action));
                return Some(format!(
                    "a recording has its own interval; {faster} and {slower} change the playback speed"
                ));
            }
            _ => return None,
        };
        Some(format!("{what}: {NOT_IN_REPLAY}"))
    }

    pub(super) fn apply_replay_action(&mut self, action: ReplayAction, effects: &mut Vec<Effect>) {
        let Some(replay) = &mut self.shared.replay else { return };
        let effect = match action {
            ReplayAction::TogglePlay => {
                replay.is_playing = !replay.is_playing;
                if replay.is_playing { ReplayEffect::Play(replay.speed()) } else { ReplayEffect::Pause }
            }
            ReplayAction::StepTicks(by) => {
                if std::mem::take(&mut replay.is_playing) {
                    effects.push(Effect::Replay(ReplayEffect::Pause));
                }
                ReplayEffect::Step(i32::from(by))
            }
            ReplayAction::SkipSecs(secs) => {
                let now = self.shared.system.now().wall_ns;
                ReplayEffect::SeekTime(now.saturating_add(i64::from(secs) * 1_000_000_000))
            }
            ReplayAction::JumpToFinding { forward } => {
                replay.is_playing = false;
                ReplayEffect::FindFinding { forward }
            }
            ReplayAction::First => ReplayEffect::SeekTime(i64::MIN),
            ReplayAction::Last => ReplayEffect::SeekTime(i64::MAX),
            ReplayAction::JumpToTime => {
                let label = "jump to (14:35, 14:35:12, +90 after the start, -10m before the end): ";
                return self.open_prompt(PromptPurpose::ReplayTime, label, String::new());
            }
            ReplayAction::Faster | ReplayAction::Slower => {
                let by = if action == ReplayAction::Faster { 1 } else { -1 };
                replay.speed_index = replay.speed_index.saturating_add_signed(by).min(SPEEDS.len() - 1);
                let (speed, is_playing) = (replay.speed(), replay.is_playing);
                self.screen.info(format!("playback speed {speed}x"));
                if !is_playing {
                    return;
                }
                ReplayEffect::Play(speed)
            }
        };
        effects.push(Effect::Replay(effect));
    }

    pub(super) fn seek_to_typed_time(&self, text: &str, effects: &mut Vec<Effect>) -> Result<(), String> {
        let Some(replay) = &self.shared.replay else { return Ok(()) };
        let at = time_spec::parse(text, &replay.span, self.shared.utc_offset_secs).map_err(|why| why.to_string())?;
        effects.push(Effect::Replay(ReplayEffect::SeekTime(at)));
        Ok(())
    }

    pub(super) fn on_replay_event(&mut self, event: ReplayEvent, effects: &mut Vec<Effect>) {
        let Some(replay) = &mut self.shared.replay else { return };
        match event {
            ReplayEvent::Reset(log) => {
                self.shared.system = SystemState::new(replay.host.clone(), replay.log_clock);
                self.shared.log_clock = replay.log_clock;
                self.shared.findings = RuleEngine::default();
                log.into_iter().for_each(|observation| self.apply_past(observation));
                // Indexes into the previous log and process table are void.
                self.tell_views(Change::KernelLog, effects);
            }
            ReplayEvent::Ticks { mut ticks, is_settled, unreadable_frames } => {
                replay.damaged = replay.span.damaged_bytes + unreadable_frames;
                let last = ticks.pop();
                for tick in ticks {
                    let observations = tick.full_state.into_iter().flatten().chain(tick.observations);
                    observations.for_each(|observation| self.apply_past(observation));
                }
                if let Some(last) = last {
                    self.show_tick(last, is_settled, effects);
                }
            }
            ReplayEvent::Searching { forward, wall_ns } => {
                replay.is_searching = true;
                let direction = if forward { "next" } else { "previous" };
                let time = self.shared.format_time_of_day(wall_ns);
                let end = self.shared.key(Action::Back);
                self.screen.info(format!("searching for the {direction} finding, at {time}; {end} ends the search"));
            }
            ReplayEvent::SearchEnded { forward, transitions } => {
                replay.is_searching = false;
                self.screen.info(search_result_text(forward, transitions.as_deref()));
            }
            ReplayEvent::EndReached => replay.is_playing = false,
            ReplayEvent::Failed(why) => {
                replay.is_playing = false;
                self.screen.error(format!("{}: {why}", replay.file));
            }
        }
    }

    /// Handles Esc during a search for a finding. Returns whether one was under way.
    pub(super) fn stop_search_for_finding(&self, effects: &mut Vec<Effect>) -> bool {
        let is_searching = self.shared.replay.as_ref().is_some_and(|replay| replay.is_searching);
        if is_searching {
            effects.push(Effect::Replay(ReplayEffect::Pause));
        }
        is_searching
    }

    /// Shows a tick, by applying it like the collectors' events.
    fn show_tick(&mut self, tick: DecodedTick, is_settled: bool, effects: &mut Vec<Effect>) {
        if let Some(replay) = &mut self.shared.replay {
            (replay.tick_number, replay.is_partial) = (tick.number, tick.is_partial);
        }
        tick.full_state.into_iter().flatten().for_each(|observation| self.apply_past(observation));
        for observation in tick.observations {
            match observation {
                Observation::Sample(_) | Observation::Tasks(_) if is_settled => {
                    self.on_observation(observation, effects);
                }
                _ => self.apply_past(observation),
            }
        }
        if is_settled {
            self.tell_views(Change::KernelLog, effects);
        }
    }

    /// Applies an observation of the past without showing it.
    fn apply_past(&mut self, observation: Observation) {
        if let Observation::KernelLog(_, clock) = &observation {
            self.shared.log_clock = *clock;
        }
        if self.shared.system.apply(observation) == Change::Tasks {
            self.shared.findings.evaluate(&self.shared.system);
        }
    }

    /// Starts or stops a recording; asks for the file first.
    pub(super) fn toggle_recording(&mut self, effects: &mut Vec<Effect>) {
        if self.shared.recording_status.is_some() {
            return effects.push(Effect::Recording(RecordingEffect::Stop));
        }
        let text = default_file_name(&self.shared.system.host.name, self.shared.system.now().wall_ns);
        self.open_prompt(PromptPurpose::RecordingPath, "record to: ", text);
    }

    pub(super) fn start_recording(&mut self, text: &str, effects: &mut Vec<Effect>) -> Result<(), String> {
        let path = PathBuf::from(text);
        if path.file_name().is_none() {
            return Err(format!("\"{text}\" is not a file name"));
        }
        self.shared.recording_status = Some(RecorderStatus { path: path.clone(), ..RecorderStatus::default() });
        effects.push(Effect::Recording(RecordingEffect::Start(path)));
        Ok(())
    }

    pub(super) fn on_recorder_status(&mut self, status: RecorderStatus) {
        match &status.state {
            RecorderState::Running | RecorderState::Full => return self.shared.recording_status = Some(status),
            RecorderState::Done => {
                let size = crate::units::format_bytes_long(status.bytes_sent);
                let path = status.path.display();
                self.screen.info(format!("recorded: {path}, {} samples, {size}", status.frames_sent));
            }
            RecorderState::Failed(why) => self.screen.error(format!("recording stopped: {why}")),
        }
        self.shared.recording_status = None;
    }
}

fn search_result_text(forward: bool, onsets: Option<&[FindingTransition]>) -> String {
    let Some(onsets) = onsets else { return "search stopped; still at the same sample".into() };
    let Some((first, others)) = onsets.split_first() else {
        return match forward {
            true => "no later finding up to the end of the recording".into(),
            false => "no earlier finding down to the start of the recording".into(),
        };
    };
    let more = match others.len() {
        0 => String::new(),
        n => format!(" (and {n} more)"),
    };
    let how = if first.got_worse { "gets worse" } else { "begins" };
    format!("{how} here, {}: {}{more}", first.severity.name(), first.title)
}
