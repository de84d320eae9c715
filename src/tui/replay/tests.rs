//! Searching an invented recording for findings, by the player's door.

use super::player::{Player, Sink};
use super::{ReplayEffect, ReplayNews};
use crate::model::timestamp::Timestamp;
use crate::model::kernel_log::{LogClock, KmsgRecord};
use crate::model::process::ProcessUpdate;
use crate::model::sample::Sample;
use crate::model::reading::Reading;
use crate::record::Observation;
use crate::record::encoder::FrameEncoder;
use crate::record::frame::RecordingHeader;
use crate::record::reader::RecordingReader;
use std::io::Cursor;
use std::sync::mpsc::{Receiver, channel};

const SEC: u64 = 1_000_000_000;
/// Longer than two stretches of a search on the way back.
const TICKS: u64 = 3000;
/// Ticks at which a disk fails.
const FAILS: [u64; 3] = [100, 2500, 2600];

impl crate::record::reader::ReadAt for Cursor<Vec<u8>> {
    fn read_at(&mut self, at: u64, buf: &mut [u8]) -> std::io::Result<usize> {
        self.set_position(at);
        std::io::Read::read(self, buf)
    }
}

fn tape() -> Vec<u8> {
    let header = RecordingHeader { host: "box".into(), ..RecordingHeader::default() };
    let mut bytes = header.to_bytes();
    let mut encoder = FrameEncoder::default();
    for n in 0..TICKS {
        let at = Timestamp { boot_ns: (n + 10) * SEC, wall_ns: (n * SEC) as i64 };
        let look = ProcessUpdate { seq: n, time: at, reset: n == 0, ..ProcessUpdate::default() };
        let mut news = Vec::new();
        if let Some(which) = FAILS.iter().position(|fail| *fail == n) {
            let message = format!("I/O error, dev sd{which}, sector 81239 op 0x1:(WRITE)").into_bytes();
            let record =
                KmsgRecord { seq: n, boot_us: at.boot_ns / 1000, level: 3, message, ..KmsgRecord::default() };
            let clock = LogClock { wall_ns: at.wall_ns, mono_ns: at.boot_ns };
            news.push(Observation::KernelLog(vec![record], clock));
        }
        news.push(Observation::Sample(Box::new(Sample { seq: n, time: at, ..Sample::default() })));
        news.push(Observation::Tasks(Box::new(Reading::Ok(look))));
        bytes.extend(encoder.encode_tick(&news, at.wall_ns));
    }
    bytes
}

/// A player that is paused at a tick, and what it tells.
struct Deck {
    player: Player,
    news: Receiver<ReplayNews>,
}

impl Deck {
    fn at(number: u64) -> Self {
        let (to, news) = channel();
        let sink: Sink = Box::new(move |news| to.send(news).is_ok());
        let reader = RecordingReader::open(Cursor::new(tape())).unwrap();
        let player = Player::start(reader, Some((number * SEC) as i64), sink).unwrap();
        let mut deck = Self { player, news };
        assert_eq!(deck.settles(), number);
        deck.player.act(ReplayEffect::Pause);
        deck
    }

    fn next(&mut self) -> ReplayNews {
        let news =
            self.news.recv_timeout(std::time::Duration::from_secs(60)).expect("the player tells something");
        self.player.taken();
        news
    }

    /// The tick it comes to stand at.
    fn settles(&mut self) -> u64 {
        loop {
            if let ReplayNews::Ticks { moments, settled: true, .. } = self.next() {
                return u64::from(moments.last().unwrap().number);
            }
        }
    }

    /// Where a search leads, and the first title it names; `None`: it stays.
    fn find(&mut self, forward: bool) -> Option<(u64, String)> {
        self.player.act(ReplayEffect::Find { forward });
        let mut at = None;
        loop {
            match self.next() {
                ReplayNews::Ticks { moments, settled: true, .. } => {
                    at = moments.last().map(|m| u64::from(m.number))
                }
                ReplayNews::Searched { forward: way, onsets } => {
                    assert_eq!(way, forward);
                    return Some((at?, onsets.expect("not stopped").first()?.title.clone()));
                }
                _ => {}
            }
        }
    }
}

#[test]
fn from_finding_to_finding_and_back() {
    let mut deck = Deck::at(50);
    for (n, want) in FAILS.iter().enumerate() {
        let (at, title) = deck.find(true).unwrap();
        assert!(at == *want && title.contains(&format!("sd{n}")), "{at}: {title}");
    }
    assert_eq!(deck.find(true), None, "there is no later one");
    // It stands where it stood, and goes on from there.
    deck.player.act(ReplayEffect::Step(1));
    assert_eq!(deck.settles(), FAILS[2] + 1);
    for want in FAILS.iter().rev() {
        assert_eq!(deck.find(false).unwrap().0, *want);
    }
    let before = deck.find(false);
    assert_eq!(before, None, "nothing begins earlier");
    deck.player.act(ReplayEffect::Step(1));
    assert_eq!(deck.settles(), FAILS[0] + 1);
}

#[test]
fn whatever_is_wanted_meanwhile_ends_a_search() {
    let mut deck = Deck::at(2700);
    deck.player.act(ReplayEffect::Find { forward: false });
    // Before the player hears that its first news was taken in, it hears this.
    let first = deck.news.recv().unwrap();
    assert!(matches!(first, ReplayNews::Searching { forward: false, .. }), "{first:?}");
    deck.player.act(ReplayEffect::Pause);
    deck.player.taken();
    let ended = deck.next();
    assert!(matches!(ended, ReplayNews::Searched { onsets: None, .. }), "{ended:?}");
    deck.player.act(ReplayEffect::Step(1));
    assert_eq!(deck.settles(), 2701);
}
