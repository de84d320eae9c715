//! Frames in, news out: the reading side without any file.

use super::Entry;
use super::frame::{FrameHead, Kind};
use super::pack::Unpacker;
use super::state::State;
use super::wire::Bad;

/// What a frame brought.
#[derive(Debug, PartialEq)]
pub struct Moment {
    /// Its number in the file.
    pub number: u32,
    /// Wall clock of its tick, ns.
    pub wall_ns: i64,
    /// What was known before it, told anew, because the frames before it were not read.
    pub before: Option<Vec<Entry>>,
    /// Some of the tasks that did nothing lately are missing: a key frame could not be read.
    pub partial: bool,
    /// What came.
    pub news: Vec<Entry>,
}

impl Moment {
    /// Rows of tasks in it: a measure of what it takes in memory.
    pub fn rows(&self) -> usize {
        let all = self.before.iter().flatten().chain(&self.news);
        all.map(|entry| match entry {
            Entry::Procs(look) => look.ok().map_or(0, |u| u.changed.len() + u.names.len()),
            _ => 1,
        })
        .sum()
    }
}

/// Reads frames in the order of their numbers.
#[derive(Default)]
pub struct Decoder {
    state: State,
    unpacker: Unpacker,
    /// The frame read last, if the next one can follow it.
    last: Option<u32>,
    /// Kernel lines for the tick to come.
    lines: Vec<Entry>,
}

impl Decoder {
    /// Forgets everything; the next frame must stand by itself.
    pub fn start_anew(&mut self) {
        (self.state, self.last) = (State::default(), None);
        self.lines.clear();
    }

    /// What a frame holds; nothing yet where its news belong to the tick to come. An error means that it
    /// cannot be used, and no other up to the next one that stands by itself.
    pub fn frame(&mut self, head: &FrameHead, packed: &[u8]) -> Result<Option<Moment>, Bad> {
        if head.kind == Kind::Log {
            self.lines.extend(lines(head, packed)?);
            return Ok(None);
        }
        let follows = self.last.take().is_some_and(|last| last.wrapping_add(1) == head.number);
        if head.kind == Kind::Delta && !follows {
            return Err(Bad("a frame before it is missing"));
        }
        check(head, packed)?;
        let raw = self.unpacker.unpack(packed, head.len as usize, head.kind != Kind::Delta)?;
        let known = follows && !(head.kind == Kind::Key && self.state.is_partial());
        self.state.get_base(&raw, known)?;
        let before = (!known).then(|| self.state.told_anew());
        let mut news = self.state.get(&raw)?;
        news.append(&mut self.lines);
        self.last = Some(head.number);
        let (number, wall_ns, partial) = (head.number, head.wall_ns, self.state.is_partial());
        Ok(Some(Moment { number, wall_ns, before, partial, news }))
    }

    /// Takes in a key frame without telling it, so that an anchor behind it can be begun at.
    pub fn key(&mut self, head: &FrameHead, packed: &[u8]) -> Result<(), Bad> {
        self.start_anew();
        check(head, packed)?;
        let raw = self.unpacker.unpack(packed, head.len as usize, true)?;
        self.state.get_base(&raw, false)?;
        self.state.get(&raw).map(drop)
    }
}

/// The kernel lines of a frame that holds nothing else.
pub fn lines(head: &FrameHead, packed: &[u8]) -> Result<Vec<Entry>, Bad> {
    check(head, packed)?;
    let raw = Unpacker::default().unpack(packed, head.len as usize, true)?;
    let all = State::default().get(&raw)?;
    Ok(all.into_iter().filter(|e| matches!(e, Entry::Records(..))).collect())
}

fn check(head: &FrameHead, packed: &[u8]) -> Result<(), Bad> {
    let right = packed.len() == head.packed_len as usize && crc32fast::hash(packed) == head.crc;
    if right { Ok(()) } else { Err(Bad("damaged")) }
}
