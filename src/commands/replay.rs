//! `replay`: a recording on the screen, or printed.

use super::bench::wrong;
use super::picture::{self, Scene};
use super::{FAILED, FINE, complain};
use crate::cli::record::{Replay, ReplayFormat};
use crate::diagnose::RuleEngine;
use crate::export::csv;
use crate::export::json::{self, UnavailableSource, LogSince};
use crate::export::snapshot;
use crate::export::report::markdown::to_markdown;
use crate::export::report::{ReportExtras, WindowFindings, build_report};
use crate::model::kernel_log::LogClock;
use crate::model::system_state::SystemState;
use crate::record::decoder::DecodedTick;
use crate::record::reader::{ReadAt, RecordingReader};
use crate::record::{Observation, apply, file_worker, time_spec};
use crate::root::Root;
use crate::tui::replay::ReplayUi;
use std::io::Write;
use std::time::Duration;

/// Samples read before the one asked for, so that what takes a while to be seen (a task that hangs) is seen.
const BEFORE: u32 = 30;

/// Prints a recording, or shows it.
pub fn run(root: Root, args: Replay) -> anyhow::Result<u8> {
    match args.format {
        Some(format) => print(&args, format),
        None => super::top::replay(root, &args),
    }
}

/// The printing side: a world that follows the recording.
pub(super) struct Player {
    pub(super) world: SystemState,
    pub(super) findings: RuleEngine,
    pub(super) gaps: Vec<UnavailableSource>,
    pub(super) since: LogSince,
    last_record: u64,
    /// What was found on the way.
    seen: WindowFindings,
    /// Where it stands.
    number: u32,
    log_clock: LogClock,
}

impl Player {
    pub(super) fn new<B: ReadAt>(reader: &RecordingReader<B>) -> Self {
        let world = SystemState::new(reader.header.host(), reader.header.log_clock());
        Self {
            world,
            findings: RuleEngine::default(),
            gaps: Vec::new(),
            since: LogSince::Time(0),
            last_record: 0,
            seen: WindowFindings::default(),
            number: 0,
            log_clock: reader.header.log_clock(),
        }
    }

    pub(super) fn take(&mut self, moment: DecodedTick) {
        let told = self.last_record;
        self.number = moment.number;
        moment.full_state.into_iter().flatten().chain(moment.observations).for_each(|entry| self.entry(entry));
        self.findings.evaluate(&self.world);
        self.seen.update(&self.findings, self.world.now());
        self.since = LogSince::after_record(told, self.world.now().wall_ns);
    }

    fn entry(&mut self, entry: Observation) {
        match &entry {
            Observation::Unavailable(gaps) => {
                self.gaps = gaps.iter().map(|(source, why)| UnavailableSource::new(known(source), why)).collect();
            }
            Observation::KernelLog(records, clock) => {
                self.log_clock = *clock;
                let newest = records.iter().map(|r| r.seq).max().unwrap_or(0);
                self.last_record = self.last_record.max(newest);
            }
            _ => {}
        }
        apply(&mut self.world, entry);
    }
}

/// The screen where the player stands.
fn drawn<B: ReadAt>(player: Player, reader: &RecordingReader<B>, args: &Replay, form: &str) -> Vec<u8> {
    let name = args.file.file_name().unwrap_or_default().to_string_lossy();
    let mut ui = ReplayUi::new(&name, reader.header.host(), reader.header.log_clock(), reader.span());
    (ui.is_playing, ui.tick_number) = (false, player.number);
    let scene = Scene {
        wanted: &args.picture,
        pane: args.pane.first().copied(),
        utc_offset_secs: reader.header.utc_offset_secs,
        log_clock: player.log_clock,
        interval: Duration::from_secs(1),
        replay: Some(ui),
    };
    picture::picture(player.world, player.findings, scene, form)
}

/// The source a gap is about, as the README has it.
fn known(source: &str) -> &'static str {
    ["queue_settings", "settings", "room"].into_iter().find(|name| *name == source).unwrap_or("other")
}

fn print(args: &Replay, format: ReplayFormat) -> anyhow::Result<u8> {
    if format == ReplayFormat::Csv && args.pane.len() != 1 {
        return wrong("--format csv: the panes have different columns; choose one with --pane");
    }
    if let Err(why) = picture::check(format.screen(), &args.picture, &args.pane, true) {
        return wrong(&why);
    }
    let scope = super::snapshot::scope(&args.pane);
    let mut reader = match file_worker::open_recording(&args.file)
        .and_then(|file| RecordingReader::open(file).map_err(|why| format!("{}: {why}", args.file.display())))
    {
        Ok(reader) => reader,
        Err(why) => {
            complain(&why);
            return Ok(FAILED);
        }
    };
    let (span, offset) = (reader.span(), reader.header.utc_offset_secs);
    let time = |text: &Option<String>| text.as_deref().map(|t| time_spec::parse(t, &span, offset)).transpose();
    let (from, to) = match time(args.from.as_ref().map_or(&args.at, |_| &args.from))
        .and_then(|from| Ok((from, time(&args.to)?)))
    {
        Ok(times) => times,
        Err(why) => return wrong(&why),
    };
    let mut player = Player::new(&reader);
    if let Some(from) = from {
        let number = reader.tick_number_at(from)?;
        for entry in reader.seek(number.saturating_sub(BEFORE).max(span.first_number))? {
            let tick = matches!(entry, Observation::Tasks(_));
            player.entry(entry);
            if tick {
                player.findings.evaluate(&player.world);
            }
        }
    }
    let damaged = span.damaged_bytes;
    let mut out = std::io::stdout().lock();
    let (mut named, mut first) = (false, true);
    // A picture is of the time asked for, or of the end.
    let one = format.screen().is_some() && args.at.is_some();
    let mut left = args.count.unwrap_or(if one { 1 } else { u64::MAX });
    while let Some(moment) = reader.next_tick()?.filter(|_| left > 0) {
        let wall = moment.wall_ns;
        player.take(moment);
        if to.is_some_and(|to| wall > to) {
            break;
        }
        // Whoever asks for a time beyond the end sees the end.
        if from.is_some_and(|from| wall < from) && wall != span.last_ns {
            continue;
        }
        let blank = if std::mem::take(&mut first) { "" } else { "\n" };
        let text = match format {
            ReplayFormat::Text => blank.to_owned() + &snapshot::text(&player.world, &player.findings, scope),
            ReplayFormat::Markdown => snapshot::markdown(&player.world, &player.findings, scope),
            ReplayFormat::Json => {
                json::snapshot_json(&player.world, &player.findings, scope, player.since, &player.gaps)? + "\n"
            }
            ReplayFormat::Csv => {
                csv::csv_lines(&player.world, &player.findings, scope, player.since, &mut named)?
            }
            _ => String::new(),
        };
        out.write_all(text.as_bytes())?;
        left -= 1;
    }
    if format == ReplayFormat::Report {
        let gaps = player.gaps.iter().map(|g| format!("{}: {}", g.source, g.reason)).collect();
        let extra = ReportExtras { window_findings: player.seen, missing_data: gaps, ..ReportExtras::default() };
        out.write_all(to_markdown(&build_report(&player.world, &player.findings, &extra)).as_bytes())?;
    } else if let Some(form) = format.screen() {
        out.write_all(&drawn(player, &reader, args, form))?;
    }
    out.flush()?;
    if damaged > 0 || reader.unreadable_frames > 0 {
        complain(&format!(
            "{}: damaged; {} samples could not be read, {damaged} bytes belong to none",
            args.file.display(),
            reader.unreadable_frames
        ));
    }
    Ok(FINE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::snapshot::PaneName;
    use crate::export::snapshot::SnapshotScope;

    #[test]
    fn a_gap_keeps_its_name() {
        assert_eq!((known("settings"), known("room"), known("\u{1b}")), ("settings", "room", "other"));
    }

    #[test]
    fn csv_is_of_one_pane() {
        assert_eq!(super::super::snapshot::scope(&[PaneName::Memory]), SnapshotScope { memory: true, ..none() });
    }

    fn none() -> SnapshotScope {
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
