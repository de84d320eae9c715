//! What writer and reader both know at a frame, and how the news of a frame changes it.
//!
//! News that is rare (devices, mounts, queue settings, kernel lines) is JSON within the compressed frame: a
//! name that a later program adds is passed over, one that an old file lacks takes its default.

use super::Observation;
use super::codec::{ByteReader, DecodeError, put_section, put_varint};
use super::sample::{get_sample, put_sample};
use super::tasks::RecordedTasks;
use crate::model::kernel_log::{KmsgRecord, LogClock};
use crate::model::queue::QueueAttrs;
use crate::model::reading::{BlockedRead, Reading};
use crate::model::sample::Sample;
use crate::model::slow_facts::{SlowFacts, SpaceReport, SystemFacts};
use crate::model::topology::Topology;
use crate::sanitize::sanitize;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Longest JSON that is looked at: a hostile one takes a multiple of it in memory.
const MAX_JSON_BYTES: usize = 8 << 20;

/// Sections of a frame. A number is never used anew.
mod tag {
    pub const SAMPLE: u64 = 1;
    pub const TASKS: u64 = 2;
    pub const TOPOLOGY: u64 = 3;
    pub const QUEUES: u64 = 4;
    pub const UNAVAILABLE: u64 = 5;
    pub const KERNEL_LOG: u64 = 6;
    pub const KERNEL_LOG_STATE: u64 = 7;
    pub const BLOCKED: u64 = 8;
    pub const HUNG_TASK_WARNINGS: u64 = 9;
    pub const FACTS: u64 = 10;
    pub const DISK_SPACE: u64 = 11;
    /// Which key frame the base belongs to, by its number; then what was known before this frame.
    pub const BASE_KEY: u64 = 31;
    pub const BASE_SAMPLE: u64 = 32;
    pub const BASE_TASKS: u64 = 33;
    pub const BASE_SLOW_STATE: u64 = 34;
}

/// Kernel lines of one reading.
#[derive(Serialize, Deserialize)]
struct LogBatch {
    mono_ns: u64,
    wall_ns: i64,
    records: Vec<KmsgRecord>,
}

/// All that is known but counters and tasks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct SlowState {
    #[serde(skip_serializing_if = "Option::is_none")]
    topology: Option<Reading<Topology>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queues: Option<BTreeMap<String, QueueAttrs>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "gaps")]
    unavailable: Option<Vec<(String, String)>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_state: Option<Reading<()>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked: Option<Vec<BlockedRead>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "hung")]
    hung_task_warnings: Option<Option<i64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<SlowFacts>,
}

impl SlowState {
    /// Takes over what is there in `other`.
    fn merge(&mut self, other: SlowState) {
        fn replace_if_some<T>(mine: &mut Option<T>, other: Option<T>) {
            if other.is_some() {
                *mine = other;
            }
        }
        replace_if_some(&mut self.topology, other.topology);
        replace_if_some(&mut self.queues, other.queues);
        replace_if_some(&mut self.unavailable, other.unavailable);
        replace_if_some(&mut self.log_state, other.log_state);
        replace_if_some(&mut self.blocked, other.blocked);
        replace_if_some(&mut self.hung_task_warnings, other.hung_task_warnings);
        replace_if_some(&mut self.facts, other.facts);
    }
}

/// What is known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CodecState {
    sample: Option<Sample>,
    tasks: RecordedTasks,
    slow_state: SlowState,
    /// What of `rest` changed since the last complete frame.
    slow_changes: SlowState,
    /// The key frame all this began with.
    key_number: Option<u32>,
    /// It could not be read: tasks that did nothing since then are missing.
    is_partial: bool,
}

impl CodecState {
    /// Appends all that is known, or (not `complete`) the counters and what else changed since [`State::mark`]. `key` is the number of the key frame: this one's if `complete`.
    pub fn put_base(&self, out: &mut Vec<u8>, key: u32, complete: bool) {
        let mut body = Vec::new();
        put_varint(&mut body, u64::from(key));
        body.push(u8::from(complete));
        put_section(out, tag::BASE_KEY, &body);
        body.clear();
        if let Some(sample) = &self.sample {
            put_sample(&mut body, None, sample);
            put_section(out, tag::BASE_SAMPLE, &body);
        }
        body.clear();
        self.tasks.put_base(&mut body, complete);
        put_section(out, tag::BASE_TASKS, &body);
        let rest = if complete { &self.slow_state } else { &self.slow_changes };
        put_section(out, tag::BASE_SLOW_STATE, &to_json(rest));
    }

    /// A key frame is complete, its news too: from now on counts what has changed since.
    pub fn mark_key_frame(&mut self) {
        self.slow_changes = SlowState::default();
        self.tasks.mark_key_frame();
    }

    /// Appends news, and takes it in.
    pub fn encode(&mut self, out: &mut Vec<u8>, entry: &Observation) {
        let mut body = Vec::new();
        let tag = match entry {
            Observation::Sample(sample) => {
                put_sample(&mut body, self.sample.as_ref(), sample);
                self.sample = Some((**sample).clone());
                tag::SAMPLE
            }
            Observation::Tasks(look) => {
                self.tasks.encode(&mut body, look);
                tag::TASKS
            }
            Observation::KernelLog(records, clock) => {
                let LogClock { mono_ns, wall_ns } = *clock;
                body = to_json(&LogBatch { mono_ns, wall_ns, records: records.clone() });
                tag::KERNEL_LOG
            }
            Observation::Topology(topology) => {
                body = to_json(topology);
                tag::TOPOLOGY
            }
            Observation::Queues(queues) => {
                body = to_json(queues);
                tag::QUEUES
            }
            Observation::Unavailable(gaps) => {
                body = to_json(gaps);
                tag::UNAVAILABLE
            }
            Observation::KernelLogState(state) => {
                body = to_json(state);
                tag::KERNEL_LOG_STATE
            }
            Observation::BlockedSources(list) => {
                body = to_json(list);
                tag::BLOCKED
            }
            Observation::HungTaskWarnings(left) => {
                body = to_json(left);
                tag::HUNG_TASK_WARNINGS
            }
            Observation::Facts(facts) => {
                body = to_json(facts);
                tag::FACTS
            }
            Observation::DiskSpace(room) => {
                body = to_json(room);
                tag::DISK_SPACE
            }
        };
        self.remember(entry);
        put_section(out, tag, &body);
    }

    /// Whether news says nothing that is not known.
    pub fn is_known(&self, entry: &Observation) -> bool {
        let rest = &self.slow_state;
        match entry {
            Observation::Topology(t) => rest.topology.as_ref() == Some(&**t),
            Observation::Queues(q) => rest.queues.as_ref() == Some(q),
            Observation::Unavailable(g) => rest.unavailable.as_ref().map_or(g.is_empty(), |known| known == g),
            Observation::KernelLogState(s) => rest.log_state.as_ref() == Some(s),
            Observation::BlockedSources(b) => rest.blocked.as_ref().map_or(b.is_empty(), |known| known == b),
            Observation::HungTaskWarnings(n) => rest.hung_task_warnings.as_ref() == Some(n),
            Observation::KernelLog(records, _) => records.is_empty(),
            Observation::Sample(_) | Observation::Tasks(_) | Observation::Facts(_) | Observation::DiskSpace(_) => false,
        }
    }

    /// Keeps the newest of what is not counters or tasks.
    fn remember(&mut self, entry: &Observation) {
        let mut news = SlowState::default();
        match entry {
            Observation::Topology(t) => news.topology = Some((**t).clone()),
            Observation::Queues(q) => {
                let mut all = self.slow_state.queues.clone().unwrap_or_default();
                all.extend(q.clone());
                news.queues = Some(all);
            }
            Observation::Unavailable(g) => news.unavailable = Some(g.clone()),
            Observation::KernelLogState(s) => news.log_state = Some(s.clone()),
            Observation::KernelLog(..) => news.log_state = Some(Reading::Ok(())),
            Observation::BlockedSources(b) => news.blocked = Some(b.clone()),
            Observation::HungTaskWarnings(n) => news.hung_task_warnings = Some(*n),
            Observation::Facts(facts) => {
                news.facts = Some(self.slow_state.facts.clone().unwrap_or_default());
                news.facts.iter_mut().for_each(|known| known.update((**facts).clone()));
            }
            Observation::DiskSpace(room) => {
                news.facts = Some(self.slow_state.facts.clone().unwrap_or_default());
                news.facts.iter_mut().for_each(|known| known.update_space(room.clone()));
            }
            Observation::Sample(_) | Observation::Tasks(_) => return,
        }
        self.slow_changes.merge(news.clone());
        self.slow_state.merge(news);
    }

    /// What a frame says was known before it, taken in; nothing but which key frame it belongs to where the
    /// rest is known already.
    pub fn get_base(&mut self, payload: &[u8], known: bool) -> Result<(), DecodeError> {
        let mut inp = ByteReader(payload);
        while !inp.is_empty() {
            let (tag, body) = (inp.varint()?, inp.blob()?);
            match tag {
                tag::BASE_KEY => self.begin_base(&mut ByteReader(body), known)?,
                _ if known => {}
                tag::BASE_SAMPLE => self.sample = Some(get_sample(&mut ByteReader(body), None)?),
                tag::BASE_TASKS => self.tasks.get_base(&mut ByteReader(body))?,
                tag::BASE_SLOW_STATE => self.slow_state.merge(sanitize_slow_state(from_json(body)?)),
                _ => {}
            }
        }
        Ok(())
    }

    /// A base begins. One that builds on a key frame that was not read has to do without.
    fn begin_base(&mut self, inp: &mut ByteReader, known: bool) -> Result<(), DecodeError> {
        let (key, complete) = (Some(inp.varint_u32()?), inp.byte()? != 0);
        if !known && (complete || self.key_number != key) {
            *self = Self { is_partial: !complete, ..Self::default() };
        }
        self.key_number = key;
        Ok(())
    }

    /// Tasks that did nothing since a key frame that could not be read are missing.
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// What a frame brings, taken in.
    pub fn decode(&mut self, payload: &[u8]) -> Result<Vec<Observation>, DecodeError> {
        let mut inp = ByteReader(payload);
        let mut news = Vec::new();
        while !inp.is_empty() {
            let (tag, body) = (inp.varint()?, inp.blob()?);
            if let Some(entry) = self.decode_observation(tag, body)? {
                self.remember(&entry);
                news.push(entry);
            }
        }
        Ok(news)
    }

    fn decode_observation(&mut self, tag: u64, body: &[u8]) -> Result<Option<Observation>, DecodeError> {
        Ok(Some(match tag {
            tag::SAMPLE => {
                let sample = get_sample(&mut ByteReader(body), self.sample.as_ref())?;
                self.sample = Some(sample.clone());
                Observation::Sample(Box::new(sample))
            }
            tag::TASKS => Observation::Tasks(Box::new(self.tasks.decode(&mut ByteReader(body))?)),
            tag::TOPOLOGY => Observation::Topology(Box::new(sanitize_topology(from_json(body)?))),
            tag::QUEUES => Observation::Queues(sanitize_queues(from_json(body)?)),
            tag::UNAVAILABLE => Observation::Unavailable(from_json(body)?),
            tag::KERNEL_LOG => {
                let LogBatch { mono_ns, wall_ns, records } = from_json(body)?;
                Observation::KernelLog(records, LogClock { mono_ns, wall_ns })
            }
            tag::KERNEL_LOG_STATE => Observation::KernelLogState(sanitize_reading(from_json(body)?)),
            tag::BLOCKED => Observation::BlockedSources(sanitize_blocked(from_json(body)?)),
            tag::HUNG_TASK_WARNINGS => Observation::HungTaskWarnings(from_json(body)?),
            tag::FACTS => Observation::Facts(Box::new(sanitize_facts(from_json(body)?))),
            tag::DISK_SPACE => Observation::DiskSpace(sanitize_disk_space(from_json(body)?)),
            _ => return Ok(None),
        }))
    }

    /// All that is known, for a listener who knows nothing.
    pub fn full_update(&self) -> Vec<Observation> {
        let rest = self.slow_state.clone();
        let mut out: Vec<Observation> = Vec::new();
        out.extend(self.sample.clone().map(|s| Observation::Sample(Box::new(s))));
        out.extend(self.tasks.full_update().map(|t| Observation::Tasks(Box::new(t))));
        out.extend(rest.topology.map(|t| Observation::Topology(Box::new(t))));
        out.extend(rest.queues.map(Observation::Queues));
        out.extend(rest.unavailable.map(Observation::Unavailable));
        out.extend(rest.log_state.map(Observation::KernelLogState));
        out.extend(rest.blocked.map(Observation::BlockedSources));
        out.extend(rest.hung_task_warnings.map(Observation::HungTaskWarnings));
        let SlowFacts { latest: now, previous: before, local_space: room, network_space: network_room } =
            rest.facts.unwrap_or_default();
        out.extend([before, now].into_iter().flatten().map(|facts| Observation::Facts(Box::new(facts))));
        out.extend([room, network_room].into_iter().flatten().map(Observation::DiskSpace));
        out
    }
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    // Maps with other keys than texts are the only thing that fails, and there are none.
    serde_json::to_vec(value).unwrap_or_default()
}

fn from_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, DecodeError> {
    if body.len() > MAX_JSON_BYTES {
        return Err(DecodeError("a list longer than any machine has"));
    }
    serde_json::from_slice(body).map_err(|_| DecodeError("not what it should be"))
}

/// Reasons are only ever shown; a stranger's are cleaned.
fn sanitize_reading<T>(section: Reading<T>) -> Reading<T> {
    match section {
        Reading::Ok(value) => Reading::Ok(value),
        Reading::Denied(why) => Reading::Denied(sanitize(why)),
        Reading::Absent(why) => Reading::Absent(sanitize(why)),
        Reading::Blocked(b) => Reading::Blocked(BlockedRead { waiting_on: sanitize(b.waiting_on), ..b }),
    }
}

fn sanitize_blocked(list: Vec<BlockedRead>) -> Vec<BlockedRead> {
    list.into_iter().map(|b| BlockedRead { waiting_on: sanitize(b.waiting_on), ..b }).collect()
}

/// Names for people are cleaned where they are made; in a stranger's file that is here. The list is sought by
/// number, so it must be in order.
fn sanitize_topology(topology: Reading<Topology>) -> Reading<Topology> {
    let mut topology = sanitize_reading(topology);
    if let Reading::Ok(t) = &mut topology {
        t.devices.sort_by_key(|d| d.id);
        for d in &mut t.devices {
            d.name = sanitize(&d.name);
            d.model = d.model.take().map(sanitize);
            if let Some(md) = &mut d.md {
                for text in [&mut md.level, &mut md.state, &mut md.sync_action] {
                    *text = text.take().map(sanitize);
                }
            }
        }
    }
    topology
}

fn sanitize_queues(queues: BTreeMap<String, QueueAttrs>) -> BTreeMap<String, QueueAttrs> {
    let one = |mut q: QueueAttrs| {
        for text in [&mut q.scheduler, &mut q.write_cache, &mut q.zoned] {
            *text = text.take().map(sanitize);
        }
        q.schedulers = q.schedulers.into_iter().map(sanitize).collect();
        q
    };
    queues.into_iter().map(|(name, q)| (sanitize(name), one(q))).collect()
}

fn sanitize_facts(mut facts: SystemFacts) -> SystemFacts {
    facts.knobs = facts.knobs.into_iter().map(|(name, value)| (sanitize(name), sanitize(value))).collect();
    facts.thp = facts.thp.map(sanitize);
    for group in &mut facts.cgroups {
        group.path = sanitize(&group.path);
    }
    for result in &mut facts.results {
        for text in [&mut result.id, &mut result.profile, &mut result.time, &mut result.directory] {
            *text = sanitize(&*text);
        }
        result.device = result.device.take().map(sanitize);
    }
    facts
}

fn sanitize_disk_space(mut room: SpaceReport) -> SpaceReport {
    room.mounts.iter_mut().for_each(|m| m.space = sanitize_reading(std::mem::take(&mut m.space)));
    room
}

fn sanitize_slow_state(rest: SlowState) -> SlowState {
    SlowState {
        topology: rest.topology.map(sanitize_topology),
        queues: rest.queues.map(sanitize_queues),
        log_state: rest.log_state.map(sanitize_reading),
        blocked: rest.blocked.map(sanitize_blocked),
        facts: rest.facts.map(|known| SlowFacts {
            latest: known.latest.map(sanitize_facts),
            previous: known.previous.map(sanitize_facts),
            local_space: known.local_space.map(sanitize_disk_space),
            network_space: known.network_space.map(sanitize_disk_space),
        }),
        ..rest
    }
}
