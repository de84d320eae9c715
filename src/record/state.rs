//! What writer and reader both know at a frame, and how the news of a frame changes it.
//!
//! News that is rare (devices, mounts, queue settings, kernel lines) is JSON within the compressed frame: a
//! name that a later program adds is passed over, one that an old file lacks takes its default.

use super::Entry;
use super::sample::{get_sample, put_sample};
use super::tasks::Tasks;
use super::wire::{Bad, In, put_num, put_section};
use crate::model::facts::{Facts, Known, Room};
use crate::model::kernlog::{LogClock, Record};
use crate::model::queue::QueueAttrs;
use crate::model::sample::Sample;
use crate::model::section::{Blocked, Section};
use crate::model::topology::Topology;
use crate::text::clean;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Longest JSON that is looked at: a hostile one takes a multiple of it in memory.
const MOST_JSON: usize = 8 << 20;

/// Sections of a frame. A number is never used anew.
mod tag {
    pub const SAMPLE: u64 = 1;
    pub const PROCS: u64 = 2;
    pub const TOPOLOGY: u64 = 3;
    pub const QUEUES: u64 = 4;
    pub const GAPS: u64 = 5;
    pub const RECORDS: u64 = 6;
    pub const LOG_STATE: u64 = 7;
    pub const BLOCKED: u64 = 8;
    pub const HUNG: u64 = 9;
    pub const FACTS: u64 = 10;
    pub const ROOM: u64 = 11;
    /// Which key frame the base belongs to, by its number; then what was known before this frame.
    pub const BASE_KEY: u64 = 31;
    pub const BASE_SAMPLE: u64 = 32;
    pub const BASE_PROCS: u64 = 33;
    pub const BASE_REST: u64 = 34;
}

/// Kernel lines of one reading.
#[derive(Serialize, Deserialize)]
struct Lines {
    mono_ns: u64,
    wall_ns: i64,
    records: Vec<Record>,
}

/// All that is known but counters and tasks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Rest {
    #[serde(skip_serializing_if = "Option::is_none")]
    topology: Option<Section<Topology>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queues: Option<BTreeMap<String, QueueAttrs>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gaps: Option<Vec<(String, String)>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_state: Option<Section<()>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked: Option<Vec<Blocked>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hung: Option<Option<i64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<Known>,
}

impl Rest {
    /// Takes over what is there in `other`.
    fn merge(&mut self, other: Rest) {
        fn take<T>(mine: &mut Option<T>, other: Option<T>) {
            if other.is_some() {
                *mine = other;
            }
        }
        take(&mut self.topology, other.topology);
        take(&mut self.queues, other.queues);
        take(&mut self.gaps, other.gaps);
        take(&mut self.log_state, other.log_state);
        take(&mut self.blocked, other.blocked);
        take(&mut self.hung, other.hung);
        take(&mut self.facts, other.facts);
    }
}

/// What is known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    sample: Option<Sample>,
    tasks: Tasks,
    rest: Rest,
    /// What of `rest` changed since the last complete frame.
    changed: Rest,
    /// The key frame all this began with.
    key: Option<u32>,
    /// It could not be read: tasks that did nothing since then are missing.
    partial: bool,
}

impl State {
    /// Appends all that is known, or (not `complete`) the counters and what else changed since [`State::mark`]. `key` is the number of the key frame: this one's if `complete`.
    pub fn put_base(&self, out: &mut Vec<u8>, key: u32, complete: bool) {
        let mut body = Vec::new();
        put_num(&mut body, u64::from(key));
        body.push(u8::from(complete));
        put_section(out, tag::BASE_KEY, &body);
        body.clear();
        if let Some(sample) = &self.sample {
            put_sample(&mut body, None, sample);
            put_section(out, tag::BASE_SAMPLE, &body);
        }
        body.clear();
        self.tasks.put_base(&mut body, complete);
        put_section(out, tag::BASE_PROCS, &body);
        let rest = if complete { &self.rest } else { &self.changed };
        put_section(out, tag::BASE_REST, &json(rest));
    }

    /// A key frame is complete, its news too: from now on counts what has changed since.
    pub fn mark(&mut self) {
        self.changed = Rest::default();
        self.tasks.mark();
    }

    /// Appends news, and takes it in.
    pub fn put(&mut self, out: &mut Vec<u8>, entry: &Entry) {
        let mut body = Vec::new();
        let tag = match entry {
            Entry::Sample(sample) => {
                put_sample(&mut body, self.sample.as_ref(), sample);
                self.sample = Some((**sample).clone());
                tag::SAMPLE
            }
            Entry::Procs(look) => {
                self.tasks.put(&mut body, look);
                tag::PROCS
            }
            Entry::Records(records, clock) => {
                let LogClock { mono_ns, wall_ns } = *clock;
                body = json(&Lines { mono_ns, wall_ns, records: records.clone() });
                tag::RECORDS
            }
            Entry::Topology(topology) => {
                body = json(topology);
                tag::TOPOLOGY
            }
            Entry::Queues(queues) => {
                body = json(queues);
                tag::QUEUES
            }
            Entry::Gaps(gaps) => {
                body = json(gaps);
                tag::GAPS
            }
            Entry::LogState(state) => {
                body = json(state);
                tag::LOG_STATE
            }
            Entry::Blocked(list) => {
                body = json(list);
                tag::BLOCKED
            }
            Entry::HungTaskWarnings(left) => {
                body = json(left);
                tag::HUNG
            }
            Entry::Facts(facts) => {
                body = json(facts);
                tag::FACTS
            }
            Entry::Room(room) => {
                body = json(room);
                tag::ROOM
            }
        };
        self.note(entry);
        put_section(out, tag, &body);
    }

    /// Whether news says nothing that is not known.
    pub fn knows(&self, entry: &Entry) -> bool {
        let rest = &self.rest;
        match entry {
            Entry::Topology(t) => rest.topology.as_ref() == Some(&**t),
            Entry::Queues(q) => rest.queues.as_ref() == Some(q),
            Entry::Gaps(g) => rest.gaps.as_ref().map_or(g.is_empty(), |known| known == g),
            Entry::LogState(s) => rest.log_state.as_ref() == Some(s),
            Entry::Blocked(b) => rest.blocked.as_ref().map_or(b.is_empty(), |known| known == b),
            Entry::HungTaskWarnings(n) => rest.hung.as_ref() == Some(n),
            Entry::Records(records, _) => records.is_empty(),
            Entry::Sample(_) | Entry::Procs(_) | Entry::Facts(_) | Entry::Room(_) => false,
        }
    }

    /// Keeps the newest of what is not counters or tasks.
    fn note(&mut self, entry: &Entry) {
        let mut news = Rest::default();
        match entry {
            Entry::Topology(t) => news.topology = Some((**t).clone()),
            Entry::Queues(q) => {
                let mut all = self.rest.queues.clone().unwrap_or_default();
                all.extend(q.clone());
                news.queues = Some(all);
            }
            Entry::Gaps(g) => news.gaps = Some(g.clone()),
            Entry::LogState(s) => news.log_state = Some(s.clone()),
            Entry::Records(..) => news.log_state = Some(Section::Ok(())),
            Entry::Blocked(b) => news.blocked = Some(b.clone()),
            Entry::HungTaskWarnings(n) => news.hung = Some(*n),
            Entry::Facts(facts) => {
                news.facts = Some(self.rest.facts.clone().unwrap_or_default());
                news.facts.iter_mut().for_each(|known| known.take((**facts).clone()));
            }
            Entry::Room(room) => {
                news.facts = Some(self.rest.facts.clone().unwrap_or_default());
                news.facts.iter_mut().for_each(|known| known.take_room(room.clone()));
            }
            Entry::Sample(_) | Entry::Procs(_) => return,
        }
        self.changed.merge(news.clone());
        self.rest.merge(news);
    }

    /// What a frame says was known before it, taken in; nothing but which key frame it belongs to where the
    /// rest is known already.
    pub fn get_base(&mut self, payload: &[u8], known: bool) -> Result<(), Bad> {
        let mut inp = In(payload);
        while !inp.is_empty() {
            let (tag, body) = (inp.num()?, inp.blob()?);
            match tag {
                tag::BASE_KEY => self.begin(&mut In(body), known)?,
                _ if known => {}
                tag::BASE_SAMPLE => self.sample = Some(get_sample(&mut In(body), None)?),
                tag::BASE_PROCS => self.tasks.get_base(&mut In(body))?,
                tag::BASE_REST => self.rest.merge(scrub_rest(parse(body)?)),
                _ => {}
            }
        }
        Ok(())
    }

    /// A base begins. One that builds on a key frame that was not read has to do without.
    fn begin(&mut self, inp: &mut In, known: bool) -> Result<(), Bad> {
        let (key, complete) = (Some(inp.num32()?), inp.byte()? != 0);
        if !known && (complete || self.key != key) {
            *self = Self { partial: !complete, ..Self::default() };
        }
        self.key = key;
        Ok(())
    }

    /// Tasks that did nothing since a key frame that could not be read are missing.
    pub fn is_partial(&self) -> bool {
        self.partial
    }

    /// What a frame brings, taken in.
    pub fn get(&mut self, payload: &[u8]) -> Result<Vec<Entry>, Bad> {
        let mut inp = In(payload);
        let mut news = Vec::new();
        while !inp.is_empty() {
            let (tag, body) = (inp.num()?, inp.blob()?);
            if let Some(entry) = self.entry(tag, body)? {
                self.note(&entry);
                news.push(entry);
            }
        }
        Ok(news)
    }

    fn entry(&mut self, tag: u64, body: &[u8]) -> Result<Option<Entry>, Bad> {
        Ok(Some(match tag {
            tag::SAMPLE => {
                let sample = get_sample(&mut In(body), self.sample.as_ref())?;
                self.sample = Some(sample.clone());
                Entry::Sample(Box::new(sample))
            }
            tag::PROCS => Entry::Procs(Box::new(self.tasks.get(&mut In(body))?)),
            tag::TOPOLOGY => Entry::Topology(Box::new(scrub_topology(parse(body)?))),
            tag::QUEUES => Entry::Queues(scrub_queues(parse(body)?)),
            tag::GAPS => Entry::Gaps(parse(body)?),
            tag::RECORDS => {
                let Lines { mono_ns, wall_ns, records } = parse(body)?;
                Entry::Records(records, LogClock { mono_ns, wall_ns })
            }
            tag::LOG_STATE => Entry::LogState(scrub_section(parse(body)?)),
            tag::BLOCKED => Entry::Blocked(scrub_blocked(parse(body)?)),
            tag::HUNG => Entry::HungTaskWarnings(parse(body)?),
            tag::FACTS => Entry::Facts(Box::new(scrub_facts(parse(body)?))),
            tag::ROOM => Entry::Room(scrub_room(parse(body)?)),
            _ => return Ok(None),
        }))
    }

    /// All that is known, for a listener who knows nothing.
    pub fn told_anew(&self) -> Vec<Entry> {
        let rest = self.rest.clone();
        let mut out: Vec<Entry> = Vec::new();
        out.extend(self.sample.clone().map(|s| Entry::Sample(Box::new(s))));
        out.extend(self.tasks.told_anew().map(|t| Entry::Procs(Box::new(t))));
        out.extend(rest.topology.map(|t| Entry::Topology(Box::new(t))));
        out.extend(rest.queues.map(Entry::Queues));
        out.extend(rest.gaps.map(Entry::Gaps));
        out.extend(rest.log_state.map(Entry::LogState));
        out.extend(rest.blocked.map(Entry::Blocked));
        out.extend(rest.hung.map(Entry::HungTaskWarnings));
        let Known { now, before, room, network_room } = rest.facts.unwrap_or_default();
        out.extend([before, now].into_iter().flatten().map(|facts| Entry::Facts(Box::new(facts))));
        out.extend([room, network_room].into_iter().flatten().map(Entry::Room));
        out
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    // Maps with other keys than texts are the only thing that fails, and there are none.
    serde_json::to_vec(value).unwrap_or_default()
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Bad> {
    if body.len() > MOST_JSON {
        return Err(Bad("a list longer than any machine has"));
    }
    serde_json::from_slice(body).map_err(|_| Bad("not what it should be"))
}

/// Reasons are only ever shown; a stranger's are cleaned.
fn scrub_section<T>(section: Section<T>) -> Section<T> {
    match section {
        Section::Ok(value) => Section::Ok(value),
        Section::Denied(why) => Section::Denied(clean(why)),
        Section::Absent(why) => Section::Absent(clean(why)),
        Section::Blocked(b) => Section::Blocked(Blocked { on: clean(b.on), ..b }),
    }
}

fn scrub_blocked(list: Vec<Blocked>) -> Vec<Blocked> {
    list.into_iter().map(|b| Blocked { on: clean(b.on), ..b }).collect()
}

/// Names for people are cleaned where they are made; in a stranger's file that is here. The list is sought by
/// number, so it must be in order.
fn scrub_topology(topology: Section<Topology>) -> Section<Topology> {
    let mut topology = scrub_section(topology);
    if let Section::Ok(t) = &mut topology {
        t.devices.sort_by_key(|d| d.id);
        for d in &mut t.devices {
            d.name = clean(&d.name);
            d.model = d.model.take().map(clean);
            if let Some(md) = &mut d.md {
                for text in [&mut md.level, &mut md.state, &mut md.sync_action] {
                    *text = text.take().map(clean);
                }
            }
        }
    }
    topology
}

fn scrub_queues(queues: BTreeMap<String, QueueAttrs>) -> BTreeMap<String, QueueAttrs> {
    let one = |mut q: QueueAttrs| {
        for text in [&mut q.scheduler, &mut q.write_cache, &mut q.zoned] {
            *text = text.take().map(clean);
        }
        q.schedulers = q.schedulers.into_iter().map(clean).collect();
        q
    };
    queues.into_iter().map(|(name, q)| (clean(name), one(q))).collect()
}

fn scrub_facts(mut facts: Facts) -> Facts {
    facts.knobs = facts.knobs.into_iter().map(|(name, value)| (clean(name), clean(value))).collect();
    facts.thp = facts.thp.map(clean);
    for group in &mut facts.groups {
        group.path = clean(&group.path);
    }
    for result in &mut facts.results {
        for text in [&mut result.id, &mut result.profile, &mut result.time, &mut result.directory] {
            *text = clean(&*text);
        }
        result.device = result.device.take().map(clean);
    }
    facts
}

fn scrub_room(mut room: Room) -> Room {
    room.mounts.iter_mut().for_each(|m| m.space = scrub_section(std::mem::take(&mut m.space)));
    room
}

fn scrub_rest(rest: Rest) -> Rest {
    Rest {
        topology: rest.topology.map(scrub_topology),
        queues: rest.queues.map(scrub_queues),
        log_state: rest.log_state.map(scrub_section),
        blocked: rest.blocked.map(scrub_blocked),
        facts: rest.facts.map(|known| Known {
            now: known.now.map(scrub_facts),
            before: known.before.map(scrub_facts),
            room: known.room.map(scrub_room),
            network_room: known.network_room.map(scrub_room),
        }),
        ..rest
    }
}
