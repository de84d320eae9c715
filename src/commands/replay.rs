//! `replay`: a recording on the screen, or printed.

use super::bench::usage_error;
use super::offscreen::{self, OffscreenScene};
use super::{EXIT_FAILED, EXIT_OK, print_error};
use crate::cli::record::{ReplayArgs, ReplayFormat};
use crate::doctor::RuleEngine;
use crate::export::csv;
use crate::export::json::{self, LogSince, UnavailableSource};
use crate::export::report::markdown::to_markdown;
use crate::export::report::{ReportExtras, WindowFindings, build_report};
use crate::export::snapshot;
use crate::model::kernel_log::LogClock;
use crate::model::system_state::SystemState;
use crate::recording::decoder::DecodedTick;
use crate::recording::reader::{ReadAt, RecordingReader};
use crate::recording::{Observation, apply, file_worker, time_spec};
use crate::root::Root;
use crate::tui::replay::ReplayUi;
use std::io::Write;
use std::time::Duration;

/// Samples read before the one asked for, so that what takes a while to be seen (a task that hangs) is seen.
const WARM_UP_SAMPLES: u32 = 30;

/// Prints a recording, or shows it.
pub fn run(root: Root, args: ReplayArgs) -> anyhow::Result<u8> {
    match args.format {
        Some(format) => print_recording(&args, format),
        None => super::top::replay(root, &args),
    }
}

/// The printing side: a world that follows the recording.
pub(super) struct RecordingPlayer {
    pub(super) state: SystemState,
    pub(super) findings: RuleEngine,
    pub(super) gaps: Vec<UnavailableSource>,
    pub(super) since: LogSince,
    last_record: u64,
    /// What was found on the way.
    observed: WindowFindings,
    /// Where it stands.
    tick: u32,
    log_clock: LogClock,
}

impl RecordingPlayer {
    pub(super) fn new<B: ReadAt>(reader: &RecordingReader<B>) -> Self {
        let world = SystemState::new(reader.header.host(), reader.header.log_clock());
        Self {
            state: world,
            findings: RuleEngine::default(),
            gaps: Vec::new(),
            since: LogSince::Time(0),
            last_record: 0,
            observed: WindowFindings::default(),
            tick: 0,
            log_clock: reader.header.log_clock(),
        }
    }

    pub(super) fn apply_tick(&mut self, moment: DecodedTick) {
        let told = self.last_record;
        self.tick = moment.number;
        moment.full_state.into_iter().flatten().chain(moment.observations).for_each(|entry| self.apply_event(entry));
        self.findings.evaluate(&self.state);
        self.observed.update(&self.findings, self.state.now());
        self.since = LogSince::after_record(told, self.state.now().wall_ns);
    }

    fn apply_event(&mut self, entry: Observation) {
        match &entry {
            Observation::Unavailable(gaps) => {
                self.gaps =
                    gaps.iter().map(|(source, why)| UnavailableSource::new(known_gap_source(source), why)).collect();
            }
            Observation::KernelLog(records, clock) => {
                self.log_clock = *clock;
                let newest = records.iter().map(|r| r.seq).max().unwrap_or(0);
                self.last_record = self.last_record.max(newest);
            }
            _ => {}
        }
        apply(&mut self.state, entry);
    }
}

/// The screen where the player stands.
fn render_screenshot<B: ReadAt>(
    player: RecordingPlayer,
    reader: &RecordingReader<B>,
    args: &ReplayArgs,
    form: &str,
) -> Vec<u8> {
    let name = args.file.file_name().unwrap_or_default().to_string_lossy();
    let mut ui = ReplayUi::new(&name, reader.header.host(), reader.header.log_clock(), reader.span());
    (ui.is_playing, ui.tick_number) = (false, player.tick);
    let scene = OffscreenScene {
        args: &args.picture,
        pane: args.pane.first().copied(),
        utc_offset_secs: reader.header.utc_offset_secs,
        log_clock: player.log_clock,
        interval: Duration::from_secs(1),
        replay: Some(ui),
    };
    offscreen::render(player.state, player.findings, scene, form)
}

/// The source a gap is about, as the README has it.
fn known_gap_source(source: &str) -> &'static str {
    ["queue_settings", "settings", "room"].into_iter().find(|name| *name == source).unwrap_or("other")
}

fn print_recording(args: &ReplayArgs, format: ReplayFormat) -> anyhow::Result<u8> {
    if format == ReplayFormat::Csv && args.pane.len() != 1 {
        return usage_error("--format csv: the panes have different columns; choose one with --pane");
    }
    if let Err(why) = offscreen::check_options(format.screenshot_format_name(), &args.picture, &args.pane, true) {
        return usage_error(&why);
    }
    let scope = super::snapshot::scope_of_panes(&args.pane);
    let mut reader = match file_worker::open_recording(&args.file)
        .and_then(|file| RecordingReader::open(file).map_err(|why| format!("{}: {why}", args.file.display())))
    {
        Ok(reader) => reader,
        Err(why) => {
            print_error(&why);
            return Ok(EXIT_FAILED);
        }
    };
    let (span, offset) = (reader.span(), reader.header.utc_offset_secs);
    let time = |text: &Option<String>| text.as_deref().map(|t| time_spec::parse(t, &span, offset)).transpose();
    let (from, to) =
        match time(args.from.as_ref().map_or(&args.at, |_| &args.from)).and_then(|from| Ok((from, time(&args.to)?))) {
            Ok(times) => times,
            Err(why) => return usage_error(&why),
        };
    let mut player = RecordingPlayer::new(&reader);
    if let Some(from) = from {
        let number = reader.tick_number_at(from)?;
        for entry in reader.seek(number.saturating_sub(WARM_UP_SAMPLES).max(span.first_number))? {
            let tick = matches!(entry, Observation::Tasks(_));
            player.apply_event(entry);
            if tick {
                player.findings.evaluate(&player.state);
            }
        }
    }
    let damaged = span.damaged_bytes;
    let mut out = std::io::stdout().lock();
    let (mut named, mut first) = (false, true);
    // A picture is of the time asked for, or of the end.
    let one = format.screenshot_format_name().is_some() && args.at.is_some();
    let mut left = args.count.unwrap_or(if one { 1 } else { u64::MAX });
    while let Some(moment) = reader.next_tick()?.filter(|_| left > 0) {
        let wall = moment.wall_ns;
        player.apply_tick(moment);
        if to.is_some_and(|to| wall > to) {
            break;
        }
        // Whoever asks for a time beyond the end sees the end.
        if from.is_some_and(|from| wall < from) && wall != span.last_ns {
            continue;
        }
        let blank = if std::mem::take(&mut first) { "" } else { "\n" };
        let text = match format {
            ReplayFormat::Text => blank.to_owned() + &snapshot::text(&player.state, &player.findings, scope),
            ReplayFormat::Markdown => snapshot::markdown(&player.state, &player.findings, scope),
            ReplayFormat::Json => {
                json::snapshot_json(&player.state, &player.findings, scope, player.since, &player.gaps)? + "\n"
            }
            ReplayFormat::Csv => csv::csv_lines(&player.state, &player.findings, scope, player.since, &mut named)?,
            _ => String::new(),
        };
        out.write_all(text.as_bytes())?;
        left -= 1;
    }
    if format == ReplayFormat::Report {
        let gaps = player.gaps.iter().map(|g| format!("{}: {}", g.source, g.reason)).collect();
        let extra = ReportExtras { window_findings: player.observed, missing_data: gaps, ..ReportExtras::default() };
        out.write_all(to_markdown(&build_report(&player.state, &player.findings, &extra)).as_bytes())?;
    } else if let Some(form) = format.screenshot_format_name() {
        out.write_all(&render_screenshot(player, &reader, args, form))?;
    }
    out.flush()?;
    if damaged > 0 || reader.unreadable_frames > 0 {
        print_error(&format!(
            "{}: damaged; {} samples could not be read, {damaged} bytes belong to none",
            args.file.display(),
            reader.unreadable_frames
        ));
    }
    Ok(EXIT_OK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::snapshot::PaneName;
    use crate::export::snapshot::SnapshotScope;

    #[test]
    fn unknown_gap_sources_become_other() {
        assert_eq!(
            (known_gap_source("settings"), known_gap_source("room"), known_gap_source("\u{1b}")),
            ("settings", "room", "other")
        );
    }

    #[test]
    fn scope_of_one_pane() {
        assert_eq!(
            super::super::snapshot::scope_of_panes(&[PaneName::Memory]),
            SnapshotScope { memory: true, ..empty_scope() }
        );
    }

    fn empty_scope() -> SnapshotScope {
        SnapshotScope {
            devices: false,
            processes: false,
            memory: false,
            kernel_log: false,
            findings: false,
            syncs: false,
        }
    }
}
