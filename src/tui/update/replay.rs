//! What a replay does with keys and news, and what recording does with its own.

use super::data;
use crate::diagnose::RuleEngine;
use crate::diagnose::transitions::FindingTransition;
use crate::model::system_state::SystemState;
use crate::record::decoder::DecodedTick;
use crate::record::writer::{RecorderState, RecorderStatus, default_file_name, has_file_name};
use crate::record::{Observation, apply, time_spec};
use crate::tui::action::{Action, ViewId};
use crate::tui::effect::Effect;
use crate::tui::event::Event;
use crate::tui::panes::kernel_log;
use crate::tui::replay::{ReplayAction, ReplayEffect, ReplayNews, SPEEDS};
use crate::tui::state::{App, Overlay, Prompt, PromptPurpose};
use crate::tui::recording::RecordingEffect;
use crate::worker::job::Job;
use std::path::PathBuf;

/// Why much cannot be done in a replay.
pub const NOT_THE_MACHINE: &str = "this is a recording, not the machine it was made on";

/// Why an action is refused while a recording is on the screen, if it is.
pub fn refuses(app: &App, action: Action) -> Option<String> {
    app.ui.replay.as_ref()?;
    let what = match action {
        Action::ShowView(ViewId::Bench) | Action::Bench(_) => "measuring",
        Action::ShowView(ViewId::Tune) | Action::Tune(_) => "settings",
        Action::Experiment(_) => "experiments",
        Action::Ionice => "I/O priority",
        Action::LoadMappings => "mappings",
        Action::ToggleRecording => "recording",
        Action::ToggleThreads => return Some("processes or threads: shown as they were recorded".into()),
        Action::SetInterval | Action::ShorterInterval | Action::LongerInterval => {
            return Some("a recording has its own interval; + and - change how fast it is played".into());
        }
        _ => return None,
    };
    Some(format!("{what}: {NOT_THE_MACHINE}"))
}

/// Whether an effect makes sense in a replay: nothing is asked of the machine the viewer happens to sit at.
pub fn is_possible(effect: &Effect) -> bool {
    match effect {
        Effect::Quit
        | Effect::Suspend
        | Effect::Redraw
        | Effect::CopyToClipboard(_)
        | Effect::SaveSettings(_)
        | Effect::Replay(_) => true,
        Effect::RunJob(job) => matches!(job, Job::WriteFile { .. }),
        Effect::RunJobsInSequence(_)
        | Effect::SetInterval(_)
        | Effect::ScanThreads(_)
        | Effect::WatchTasks(_)
        | Effect::ListSlowSyncs(_)
        | Effect::Bench(_)
        | Effect::Tune(_)
        | Effect::Experiment(_)
        | Effect::Recording(_)
        | Effect::SetIoPrio { .. } => false,
    }
}

/// A key.
pub fn act(app: &mut App, action: ReplayAction, effects: &mut Vec<Effect>) {
    let Some(replay) = &mut app.ui.replay else { return };
    let pace = |speed: usize| ReplayEffect::Play(SPEEDS[speed]);
    let effect = match action {
        ReplayAction::Play => {
            replay.playing = !replay.playing;
            if replay.playing { pace(replay.speed) } else { ReplayEffect::Pause }
        }
        ReplayAction::Step(by) => {
            if std::mem::take(&mut replay.playing) {
                effects.push(Effect::Replay(ReplayEffect::Pause));
            }
            ReplayEffect::Step(i32::from(by))
        }
        ReplayAction::Skip(secs) => {
            let now = app.system.now().wall_ns;
            ReplayEffect::Time(now.saturating_add(i64::from(secs) * 1_000_000_000))
        }
        ReplayAction::Finding { forward } => {
            replay.playing = false;
            ReplayEffect::Find { forward }
        }
        ReplayAction::First => ReplayEffect::Time(i64::MIN),
        ReplayAction::Last => ReplayEffect::Time(i64::MAX),
        ReplayAction::Jump => return ask(app, PromptPurpose::ReplayTime, String::new()),
        ReplayAction::Faster | ReplayAction::Slower => {
            let faster = action == ReplayAction::Faster;
            replay.speed = if faster {
                (replay.speed + 1).min(SPEEDS.len() - 1)
            } else {
                replay.speed.saturating_sub(1)
            };
            let (speed, playing) = (replay.speed, replay.playing);
            app.ui.info(format!("{} times the recording's pace", SPEEDS[speed]));
            if !playing {
                return;
            }
            pace(speed)
        }
    };
    effects.push(Effect::Replay(effect));
}

fn ask(app: &mut App, what: PromptPurpose, text: String) {
    let cursor = text.len();
    app.ui.overlay = Some(Overlay::Prompt(Prompt { purpose: what, text, cursor, error: None }));
}

/// A time that was typed.
pub fn jump_to(app: &mut App, text: &str, effects: &mut Vec<Effect>) -> Result<(), String> {
    let Some(replay) = &app.ui.replay else { return Ok(()) };
    let at = time_spec::parse(text, &replay.span, app.ui.utc_offset_secs)?;
    effects.push(Effect::Replay(ReplayEffect::Time(at)));
    Ok(())
}

/// What the player brings.
pub fn take(app: &mut App, news: ReplayNews, effects: &mut Vec<Effect>) {
    let Some(replay) = &mut app.ui.replay else { return };
    match news {
        ReplayNews::Anew(lines) => {
            app.system = SystemState::new(replay.host.clone(), replay.log_clock);
            app.ui.log_clock = replay.log_clock;
            app.findings = RuleEngine::default();
            // Places in a table that is gone.
            app.ui.processes.window = Default::default();
            app.ui.kernel.visible_entries.clear();
            lines.into_iter().for_each(|entry| remember(app, entry));
        }
        ReplayNews::Ticks { mut moments, settled, unreadable } => {
            replay.damaged = replay.span.damaged_bytes + unreadable;
            let last = moments.pop();
            for moment in moments {
                moment.full_state.into_iter().flatten().chain(moment.observations).for_each(|entry| remember(app, entry));
            }
            if let Some(last) = last {
                show(app, last, settled, effects);
            }
        }
        ReplayNews::Searching { forward, wall_ns } => {
            replay.searching = true;
            let (way, time) = (if forward { "next" } else { "previous" }, app.format_time_of_day(wall_ns));
            app.ui.info(format!("searching for the {way} finding, at {time}; Esc ends the search"));
        }
        ReplayNews::Searched { forward, onsets } => {
            replay.searching = false;
            app.ui.info(searched(forward, onsets.as_deref()));
        }
        ReplayNews::End => replay.playing = false,
        ReplayNews::Failed(why) => {
            replay.playing = false;
            let file = replay.file.clone();
            app.ui.error(format!("{file}: {why}"));
        }
    }
}

/// What a search for a finding has come to.
fn searched(forward: bool, onsets: Option<&[FindingTransition]>) -> String {
    let Some(onsets) = onsets else { return "search ended; still at the same sample".into() };
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

/// Esc while a finding is searched for; whether that was so.
pub fn stop_search(app: &mut App, effects: &mut Vec<Effect>) -> bool {
    let searching = app.ui.replay.as_ref().is_some_and(|replay| replay.searching);
    if searching {
        effects.push(Effect::Replay(ReplayEffect::Pause));
    }
    searching
}

/// The tick that is on screen from now on, by the door through which the collectors' news comes.
fn show(app: &mut App, moment: DecodedTick, settled: bool, effects: &mut Vec<Effect>) {
    if let Some(replay) = &mut app.ui.replay {
        (replay.number, replay.partial) = (moment.number, moment.is_partial);
    }
    moment.full_state.into_iter().flatten().for_each(|entry| remember(app, entry));
    for entry in moment.observations {
        match entry {
            Observation::Sample(sample) if settled => data::take(app, Event::Sample(sample), effects),
            Observation::Tasks(look) if settled => data::take(app, Event::Processes(look), effects),
            other => remember(app, other),
        }
    }
    if settled {
        kernel_log::refresh_visible_entries(app);
        app.refresh_visible_tasks();
    }
}

/// News that is not looked at by itself.
fn remember(app: &mut App, entry: Observation) {
    if let Observation::KernelLog(_, clock) = &entry {
        app.ui.log_clock = *clock;
    }
    let tick = matches!(entry, Observation::Tasks(_));
    apply(&mut app.system, entry);
    if tick {
        app.findings.evaluate(&app.system);
    }
}

/// `R`: asks for a file, or ends the recording.
pub fn record(app: &mut App, effects: &mut Vec<Effect>) {
    if app.ui.recording_status.is_some() {
        return effects.push(Effect::Recording(RecordingEffect::Stop));
    }
    let text = default_file_name(&app.system.host.name, app.system.now().wall_ns);
    ask(app, PromptPurpose::RecordingPath, text);
}

/// A file's name that was typed.
pub fn record_to(app: &mut App, text: &str, effects: &mut Vec<Effect>) -> Result<(), String> {
    let path = PathBuf::from(text);
    if !has_file_name(&path) {
        return Err(format!("\"{text}\" names no file"));
    }
    app.ui.recording_status = Some(RecorderStatus { path: path.clone(), ..RecorderStatus::default() });
    effects.push(Effect::Recording(RecordingEffect::Start(path)));
    Ok(())
}

/// How far the recorder is.
pub fn recorded(app: &mut App, status: RecorderStatus) {
    let file = status.path.display().to_string();
    match &status.state {
        RecorderState::Running | RecorderState::Full => app.ui.recording_status = Some(status),
        RecorderState::Done => {
            let size = crate::units::format_bytes_long(status.bytes_sent);
            app.ui.info(format!("recorded: {file}, {} samples, {size}", status.frames_sent));
            app.ui.recording_status = None;
        }
        RecorderState::Failed(why) => {
            app.ui.error(format!("recording ended: {why}"));
            app.ui.recording_status = None;
        }
    }
}
