//! Actions and events of a replay, and those of recording.

use crate::doctor::RuleEngine;
use crate::doctor::transitions::FindingTransition;
use crate::jobs::job::WorkerJob;
use crate::model::observation::{Change, Observation};
use crate::model::system_state::SystemState;
use crate::recording::decoder::DecodedTick;
use crate::recording::time_spec;
use crate::recording::writer::{RecorderState, RecorderStatus, default_file_name, has_file_name};
use crate::tui::action::ReplayAction;
use crate::tui::action::{Action, ViewId};
use crate::tui::effect::Effect;
use crate::tui::effect::RecordingEffect;
use crate::tui::effect::ReplayEffect;
use crate::tui::event::ReplayEvent;
use crate::tui::state::{App, Overlay, Prompt, PromptPurpose};
use crate::tui::update::events;
use crate::tui::views::replay::SPEEDS;
use std::path::PathBuf;

/// Why much is unavailable in a replay.
pub const NOT_IN_REPLAY: &str = "not available in a replay";

/// Returns why an action is unavailable in a replay, if it is.
pub fn refusal_reason(app: &App, action: Action) -> Option<String> {
    app.shared.replay.as_ref()?;
    let what = match action {
        Action::ShowView(ViewId::Bench) | Action::Run(_) => "measuring",
        Action::ShowView(ViewId::Tune) | Action::Tune(_) => "settings",
        Action::Experiment(_) => "experiments",
        Action::Ionice => "I/O priority",
        Action::LoadMappings => "mappings",
        Action::ToggleRecording => "recording",
        Action::ToggleThreads => return Some("processes or threads are shown as they were recorded".into()),
        Action::SetInterval | Action::ShorterInterval | Action::LongerInterval => {
            return Some("a recording has its own interval; + and - change the playback speed".into());
        }
        _ => return None,
    };
    Some(format!("{what}: {NOT_IN_REPLAY}"))
}

/// Whether an effect is allowed in a replay: nothing may be requested from the viewer's own machine.
pub fn is_allowed_in_replay(effect: &Effect) -> bool {
    match effect {
        Effect::Quit
        | Effect::Suspend
        | Effect::Redraw
        | Effect::CopyToClipboard(_)
        | Effect::SaveSettings(_)
        | Effect::Replay(_) => true,
        Effect::RunJob(job) => matches!(job, WorkerJob::WriteFile { .. }),
        Effect::RunJobsInSequence(_)
        | Effect::SetInterval(_)
        | Effect::ScanThreads(_)
        | Effect::WatchTasks(_)
        | Effect::ListSlowSyncs(_)
        | Effect::Bench(_)
        | Effect::Tune(_)
        | Effect::Experiment(_)
        | Effect::CheckArms(_)
        | Effect::Recording(_)
        | Effect::SetIoPrio { .. } => false,
    }
}

/// Applies an action.
pub fn apply_action(app: &mut App, action: ReplayAction, effects: &mut Vec<Effect>) {
    let Some(replay) = &mut app.shared.replay else { return };
    let pace = |speed: usize| ReplayEffect::Play(SPEEDS[speed]);
    let effect = match action {
        ReplayAction::TogglePlay => {
            replay.is_playing = !replay.is_playing;
            if replay.is_playing { pace(replay.speed_index) } else { ReplayEffect::Pause }
        }
        ReplayAction::StepTicks(by) => {
            if std::mem::take(&mut replay.is_playing) {
                effects.push(Effect::Replay(ReplayEffect::Pause));
            }
            ReplayEffect::Step(i32::from(by))
        }
        ReplayAction::SkipSecs(secs) => {
            let now = app.shared.system.now().wall_ns;
            ReplayEffect::SeekTime(now.saturating_add(i64::from(secs) * 1_000_000_000))
        }
        ReplayAction::JumpToFinding { forward } => {
            replay.is_playing = false;
            ReplayEffect::FindFinding { forward }
        }
        ReplayAction::First => ReplayEffect::SeekTime(i64::MIN),
        ReplayAction::Last => ReplayEffect::SeekTime(i64::MAX),
        ReplayAction::JumpToTime => return open_prompt(app, PromptPurpose::ReplayTime, String::new()),
        ReplayAction::Faster | ReplayAction::Slower => {
            let faster = action == ReplayAction::Faster;
            replay.speed_index = if faster {
                (replay.speed_index + 1).min(SPEEDS.len() - 1)
            } else {
                replay.speed_index.saturating_sub(1)
            };
            let (speed, playing) = (replay.speed_index, replay.is_playing);
            app.screen.info(format!("playback speed {}x", SPEEDS[speed]));
            if !playing {
                return;
            }
            pace(speed)
        }
    };
    effects.push(Effect::Replay(effect));
}

fn open_prompt(app: &mut App, what: PromptPurpose, text: String) {
    let cursor = text.len();
    app.screen.overlay = Some(Overlay::Prompt(Prompt { purpose: what, text, cursor, error: None }));
}

/// Goes to a typed time.
pub fn seek_to_typed_time(app: &mut App, text: &str, effects: &mut Vec<Effect>) -> Result<(), String> {
    let Some(replay) = &app.shared.replay else { return Ok(()) };
    let at = time_spec::parse(text, &replay.span, app.shared.utc_offset_secs)?;
    effects.push(Effect::Replay(ReplayEffect::SeekTime(at)));
    Ok(())
}

/// Handles an event of the player.
pub fn on_event(app: &mut App, news: ReplayEvent, effects: &mut Vec<Effect>) {
    let Some(replay) = &mut app.shared.replay else { return };
    match news {
        ReplayEvent::Reset(lines) => {
            app.shared.system = SystemState::new(replay.host.clone(), replay.log_clock);
            app.shared.log_clock = replay.log_clock;
            app.shared.findings = RuleEngine::default();
            // Indices into the previous table are void.
            app.views.processes.window = Default::default();
            app.views.kernel_log.visible_entries.clear();
            lines.into_iter().for_each(|entry| apply_past(app, entry));
        }
        ReplayEvent::Ticks { ticks: mut moments, is_settled: settled, unreadable_frames: unreadable } => {
            replay.damaged = replay.span.damaged_bytes + unreadable;
            let last = moments.pop();
            for moment in moments {
                moment
                    .full_state
                    .into_iter()
                    .flatten()
                    .chain(moment.observations)
                    .for_each(|entry| apply_past(app, entry));
            }
            if let Some(last) = last {
                show_tick(app, last, settled, effects);
            }
        }
        ReplayEvent::Searching { forward, wall_ns } => {
            replay.is_searching = true;
            let (way, time) = (if forward { "next" } else { "previous" }, app.shared.format_time_of_day(wall_ns));
            app.screen.info(format!("searching for the {way} finding, at {time}; Esc ends the search"));
        }
        ReplayEvent::SearchEnded { forward, transitions: onsets } => {
            replay.is_searching = false;
            app.screen.info(search_result_text(forward, onsets.as_deref()));
        }
        ReplayEvent::EndReached => replay.is_playing = false,
        ReplayEvent::Failed(why) => {
            replay.is_playing = false;
            let file = replay.file.clone();
            app.screen.error(format!("{file}: {why}"));
        }
    }
}

/// Describes the outcome of a search for a finding.
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

/// Handles Esc during a search for a finding. Returns whether one was under way.
pub fn stop_search(app: &mut App, effects: &mut Vec<Effect>) -> bool {
    let searching = app.shared.replay.as_ref().is_some_and(|replay| replay.is_searching);
    if searching {
        effects.push(Effect::Replay(ReplayEffect::Pause));
    }
    searching
}

/// Shows a tick, by applying it like the collectors' events.
fn show_tick(app: &mut App, moment: DecodedTick, settled: bool, effects: &mut Vec<Effect>) {
    if let Some(replay) = &mut app.shared.replay {
        (replay.tick_number, replay.is_partial) = (moment.number, moment.is_partial);
    }
    moment.full_state.into_iter().flatten().for_each(|entry| apply_past(app, entry));
    for entry in moment.observations {
        match entry {
            Observation::Sample(_) | Observation::Tasks(_) if settled => events::on_observation(app, entry, effects),
            _ => apply_past(app, entry),
        }
    }
    if settled {
        app.views.kernel_log.refresh_entries(&app.shared);
    }
}

/// Applies an observation of the past without showing it.
fn apply_past(app: &mut App, entry: Observation) {
    if let Observation::KernelLog(_, clock) = &entry {
        app.shared.log_clock = *clock;
    }
    if app.shared.system.apply(entry) == Change::Tasks {
        app.shared.findings.evaluate(&app.shared.system);
    }
}

/// Starts or stops a recording; asks for the file first.
pub fn toggle_recording(app: &mut App, effects: &mut Vec<Effect>) {
    if app.shared.recording_status.is_some() {
        return effects.push(Effect::Recording(RecordingEffect::Stop));
    }
    let text = default_file_name(&app.shared.system.host.name, app.shared.system.now().wall_ns);
    open_prompt(app, PromptPurpose::RecordingPath, text);
}

/// Starts a recording in the typed file.
pub fn start_recording(app: &mut App, text: &str, effects: &mut Vec<Effect>) -> Result<(), String> {
    let path = PathBuf::from(text);
    if !has_file_name(&path) {
        return Err(format!("\"{text}\" is not a file name"));
    }
    app.shared.recording_status = Some(RecorderStatus { path: path.clone(), ..RecorderStatus::default() });
    effects.push(Effect::Recording(RecordingEffect::Start(path)));
    Ok(())
}

/// Handles a status of the recorder.
pub fn on_recorder_status(app: &mut App, status: RecorderStatus) {
    let file = status.path.display().to_string();
    match &status.state {
        RecorderState::Running | RecorderState::Full => app.shared.recording_status = Some(status),
        RecorderState::Done => {
            let size = crate::units::format_bytes_long(status.bytes_sent);
            app.screen.info(format!("recorded: {file}, {} samples, {size}", status.frames_sent));
            app.shared.recording_status = None;
        }
        RecorderState::Failed(why) => {
            app.screen.error(format!("recording stopped: {why}"));
            app.shared.recording_status = None;
        }
    }
}
