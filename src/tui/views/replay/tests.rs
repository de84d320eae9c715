//! Searching a synthetic recording for findings through the player.

use crate::doctor::finding::Severity;
use crate::model::kernel_log::{KmsgRecord, LogClock};
use crate::model::observation::Observation;
use crate::model::process::ProcessUpdate;
use crate::model::reading::Reading;
use crate::model::sample::Sample;
use crate::model::timestamp::Timestamp;
use crate::recording::encoder::FrameEncoder;
use crate::recording::frame::RecordingHeader;
use crate::recording::reader::RecordingReader;
use crate::tui::replay_timeline::{ReplayTimeline, TimelineSlot};
use crate::tui::view::{ReplayEffect, ReplayEvent};
use crate::tui::views::replay::judge::judge_recording;
use crate::tui::views::replay::player::{ReplayEventSink, ReplayPlayer};
use std::io::Cursor;
use std::sync::mpsc::{Receiver, channel};

const SEC: u64 = 1_000_000_000;
/// More ticks than two chunks of a backward search.
const TICKS: u64 = 3000;
/// Ticks at which a disk fails.
const FAILURE_TICKS: [u64; 3] = [100, 2500, 2600];

impl crate::recording::reader::ReadAt for Cursor<Vec<u8>> {
    fn read_at(&mut self, at: u64, buf: &mut [u8]) -> std::io::Result<usize> {
        self.set_position(at);
        std::io::Read::read(self, buf)
    }
}

fn recording_bytes() -> Vec<u8> {
    let header = RecordingHeader { host: "box".into(), ..RecordingHeader::default() };
    let mut bytes = header.to_bytes();
    let mut encoder = FrameEncoder::default();
    for n in 0..TICKS {
        let at = Timestamp { boot_ns: (n + 10) * SEC, wall_ns: (n * SEC) as i64 };
        let look = ProcessUpdate { seq: n, time: at, reset: n == 0, ..ProcessUpdate::default() };
        let mut news = Vec::new();
        if let Some(which) = FAILURE_TICKS.iter().position(|fail| *fail == n) {
            let message = format!("I/O error, dev sd{which}, sector 81239 op 0x1:(WRITE)").into_bytes();
            let record = KmsgRecord { seq: n, boot_us: at.boot_ns / 1000, level: 3, message, ..KmsgRecord::default() };
            let clock = LogClock { wall_ns: at.wall_ns, mono_ns: at.boot_ns };
            news.push(Observation::KernelLog(vec![record], clock));
        }
        news.push(Observation::Sample(Box::new(Sample { seq: n, time: at, ..Sample::default() })));
        news.push(Observation::Tasks(Box::new(Reading::Ok(look))));
        bytes.extend(encoder.encode_tick(&news, at.wall_ns));
    }
    bytes
}

/// A player paused at a tick, and its events.
struct TestPlayer {
    player: ReplayPlayer,
    events: Receiver<ReplayEvent>,
}

impl TestPlayer {
    fn paused_at(number: u64) -> Self {
        let (to, news) = channel();
        let sink: ReplayEventSink = Box::new(move |news| to.send(news).is_ok());
        let reader = RecordingReader::open(Cursor::new(recording_bytes())).unwrap();
        let player = ReplayPlayer::start(reader, Some((number * SEC) as i64), sink).unwrap();
        let mut deck = Self { player, events: news };
        assert_eq!(deck.wait_until_settled(), number);
        deck.player.run_effect(ReplayEffect::Pause);
        deck
    }

    fn next_event(&mut self) -> ReplayEvent {
        let news = self.events.recv_timeout(std::time::Duration::from_secs(60)).expect("the player tells something");
        self.player.acknowledge();
        news
    }

    /// Waits until the player shows a tick; returns its number.
    fn wait_until_settled(&mut self) -> u64 {
        loop {
            if let ReplayEvent::Ticks { ticks: moments, is_settled: true, .. } = self.next_event() {
                return u64::from(moments.last().unwrap().number);
            }
        }
    }

    /// Searches; returns the tick found and the title of its first finding, or `None`.
    fn find(&mut self, forward: bool) -> Option<(u64, String)> {
        self.player.run_effect(ReplayEffect::FindFinding { forward });
        let mut at = None;
        loop {
            match self.next_event() {
                ReplayEvent::Ticks { ticks: moments, is_settled: true, .. } => {
                    at = moments.last().map(|m| u64::from(m.number))
                }
                ReplayEvent::SearchEnded { forward: way, transitions: onsets } => {
                    assert_eq!(way, forward);
                    return Some((at?, onsets.expect("not stopped").first()?.title.clone()));
                }
                _ => {}
            }
        }
    }
}

#[test]
fn findings_are_found_forward_and_backward() {
    let mut deck = TestPlayer::paused_at(50);
    for (n, want) in FAILURE_TICKS.iter().enumerate() {
        let (at, title) = deck.find(true).unwrap();
        assert!(at == *want && title.contains(&format!("sd{n}")), "{at}: {title}");
    }
    assert_eq!(deck.find(true), None, "there is no later one");
    // The position is unchanged, and playback continues from there.
    deck.player.run_effect(ReplayEffect::Step(1));
    assert_eq!(deck.wait_until_settled(), FAILURE_TICKS[2] + 1);
    for want in FAILURE_TICKS.iter().rev() {
        assert_eq!(deck.find(false).unwrap().0, *want);
    }
    let before = deck.find(false);
    assert_eq!(before, None, "nothing begins earlier");
    deck.player.run_effect(ReplayEffect::Step(1));
    assert_eq!(deck.wait_until_settled(), FAILURE_TICKS[0] + 1);
}

#[test]
fn any_other_effect_ends_a_search() {
    let mut deck = TestPlayer::paused_at(2700);
    deck.player.run_effect(ReplayEffect::FindFinding { forward: false });
    // The player receives this before the acknowledgement of its first event.
    let first = deck.events.recv().unwrap();
    assert!(matches!(first, ReplayEvent::Searching { forward: false, .. }), "{first:?}");
    deck.player.run_effect(ReplayEffect::Pause);
    deck.player.acknowledge();
    let ended = deck.next_event();
    assert!(matches!(ended, ReplayEvent::SearchEnded { transitions: None, .. }), "{ended:?}");
    deck.player.run_effect(ReplayEffect::Step(1));
    assert_eq!(deck.wait_until_settled(), 2701);
}

#[test]
fn a_recording_is_judged_for_its_timeline() {
    let mut reader = RecordingReader::open(Cursor::new(recording_bytes())).unwrap();
    let span = reader.span;
    let mut timeline = ReplayTimeline::new(span.first_ns, span.last_ns, span.ticks);
    let empty = timeline.clone();
    judge_recording(&mut reader, &empty, |slots| {
        slots.into_iter().for_each(|(slot, worst)| timeline.judge(slot, worst));
        true
    })
    .unwrap();
    // 200 slots of 15 ticks; an I/O error is a finding for ten minutes, and a finding stays for 10 s.
    let with_finding: Vec<usize> = (0..200)
        .filter(|slot| matches!(timeline.part(*slot, 200), TimelineSlot::Judged(Some(worst)) if worst > Severity::Note))
        .collect();
    let wanted: Vec<usize> = (100 / 15..=710 / 15).chain(2500 / 15..200).collect();
    assert_eq!(with_finding, wanted);
    assert!((0..200).all(|slot| timeline.part(slot, 200) != TimelineSlot::NotJudged));
}

#[test]
fn judging_ends_with_the_program() {
    let mut reader = RecordingReader::open(Cursor::new(recording_bytes())).unwrap();
    let timeline = ReplayTimeline::new(reader.span.first_ns, reader.span.last_ns, reader.span.ticks);
    let mut events = 0;
    judge_recording(&mut reader, &timeline, |_| {
        events += 1;
        false
    })
    .unwrap();
    assert_eq!(events, 1);
}
