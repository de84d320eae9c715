//! What writer and reader both know at a frame, and how observations change it.
//!
//! Rare observations (devices, mounts, queue settings, kernel log) are JSON within the compressed frame: an unknown
//! name is skipped, a missing one takes its default.

use super::codec::{Coded, DecodeError, Wire, next_section, put_section};
use super::sample::{decode_sample, encode_sample};
use super::tasks::RecordedTasks;
use crate::model::kernel_log::{KmsgRecord, LogClock};
use crate::model::observation::Observation;
use crate::model::process::ProcessUpdate;
use crate::model::queue::QueueAttrs;
use crate::model::reading::{BlockedRead, Reading};
use crate::model::sample::Sample;
use crate::model::slow_facts::{SlowFacts, SpaceReport, SystemFacts};
use crate::model::topology::Topology;
use crate::sanitize::sanitize;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The longest JSON that is parsed: it takes a multiple of its size in memory.
const MAX_JSON_BYTES: usize = 8 << 20;

/// Sections of a frame. A number is never reused.
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
    /// The key frame that a base refers to; then what was known before this frame.
    pub const BASE_KEY: u64 = 31;
    pub const BASE_SAMPLE: u64 = 32;
    pub const BASE_TASKS: u64 = 33;
    pub const BASE_SLOW_STATE: u64 = 34;
}

/// Kernel log records read at one time.
#[derive(Serialize, Deserialize)]
struct LogBatch {
    mono_ns: u64,
    wall_ns: i64,
    records: Vec<KmsgRecord>,
}

/// Everything known except counters and tasks.
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
    /// Replaces what is known by what `other` has.
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

/// Everything known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CodecState {
    sample: Option<Sample>,
    tasks: RecordedTasks,
    slow_state: SlowState,
    /// What of `slow_state` changed since the last key frame.
    slow_changes: SlowState,
    /// The number of the last key frame.
    key_number: Option<u32>,
    /// That key frame could not be read: tasks that have not changed since are missing.
    is_partial: bool,
}

impl CodecState {
    /// Appends everything known, or (not `is_complete`) the counters and what else changed since the last key frame.
    /// `key` is the number of the key frame: this one's if it is complete.
    pub fn put_base(&mut self, out: &mut Vec<u8>, key: u32, is_complete: bool) {
        put_section(out, tag::BASE_KEY, &written(|w| base_key(w, &mut key.clone(), &mut is_complete.clone())));
        if let Some(sample) = &self.sample {
            put_section(out, tag::BASE_SAMPLE, &encode_sample(None, sample));
        }
        put_section(out, tag::BASE_TASKS, &written(|w| self.tasks.code_base(w, is_complete)));
        let rest = if is_complete { &self.slow_state } else { &self.slow_changes };
        put_section(out, tag::BASE_SLOW_STATE, &to_json(rest));
    }

    /// A key frame has been written: from now on a base holds what changes after it.
    pub fn mark_key_frame(&mut self) {
        self.slow_changes = SlowState::default();
        self.tasks.mark_key_frame();
    }

    /// Appends an observation and takes it over.
    pub fn encode(&mut self, out: &mut Vec<u8>, observation: &Observation) {
        let (tag, body) = match observation {
            Observation::Sample(sample) => {
                let body = encode_sample(self.sample.as_ref(), sample);
                self.sample = Some((**sample).clone());
                (tag::SAMPLE, body)
            }
            Observation::Tasks(update) => (tag::TASKS, written(|w| self.tasks.code(w, &mut (**update).clone()))),
            Observation::KernelLog(records, clock) => {
                let LogClock { mono_ns, wall_ns } = *clock;
                (tag::KERNEL_LOG, to_json(&LogBatch { mono_ns, wall_ns, records: records.clone() }))
            }
            Observation::Topology(topology) => (tag::TOPOLOGY, to_json(topology)),
            Observation::Queues(queues) => (tag::QUEUES, to_json(queues)),
            Observation::Unavailable(list) => (tag::UNAVAILABLE, to_json(list)),
            Observation::KernelLogState(state) => (tag::KERNEL_LOG_STATE, to_json(state)),
            Observation::BlockedSources(list) => (tag::BLOCKED, to_json(list)),
            Observation::HungTaskWarnings(left) => (tag::HUNG_TASK_WARNINGS, to_json(left)),
            Observation::Facts(facts) => (tag::FACTS, to_json(facts)),
            Observation::DiskSpace(space) => (tag::DISK_SPACE, to_json(space)),
        };
        self.remember(observation);
        put_section(out, tag, &body);
    }

    /// Whether an observation says nothing new.
    pub fn is_known(&self, observation: &Observation) -> bool {
        let rest = &self.slow_state;
        match observation {
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

    /// Takes over an observation that is neither counters nor tasks.
    fn remember(&mut self, observation: &Observation) {
        let mut changes = SlowState::default();
        match observation {
            Observation::Topology(t) => changes.topology = Some((**t).clone()),
            Observation::Queues(q) => {
                let mut all = self.slow_state.queues.clone().unwrap_or_default();
                all.extend(q.clone());
                changes.queues = Some(all);
            }
            Observation::Unavailable(g) => changes.unavailable = Some(g.clone()),
            Observation::KernelLogState(s) => changes.log_state = Some(s.clone()),
            Observation::KernelLog(..) => changes.log_state = Some(Reading::Ok(())),
            Observation::BlockedSources(b) => changes.blocked = Some(b.clone()),
            Observation::HungTaskWarnings(n) => changes.hung_task_warnings = Some(*n),
            Observation::Facts(facts) => {
                changes.facts = Some(self.slow_state.facts.clone().unwrap_or_default());
                changes.facts.iter_mut().for_each(|known| known.update((**facts).clone()));
            }
            Observation::DiskSpace(room) => {
                changes.facts = Some(self.slow_state.facts.clone().unwrap_or_default());
                changes.facts.iter_mut().for_each(|known| known.update_space(room.clone()));
            }
            Observation::Sample(_) | Observation::Tasks(_) => return,
        }
        self.slow_changes.merge(changes.clone());
        self.slow_state.merge(changes);
    }

    /// Takes over the state before a frame. If that `is_known` already, only the number of the key frame.
    pub fn get_base(&mut self, mut payload: &[u8], is_known: bool) -> Result<(), DecodeError> {
        while let Some((tag, body)) = next_section(&mut payload)? {
            match tag {
                tag::BASE_KEY => self.begin_base(body, is_known)?,
                _ if is_known => {}
                tag::BASE_SAMPLE => self.sample = Some(decode_sample(body, None)?),
                tag::BASE_TASKS => self.tasks.code_base(&mut Wire::Read(body), false)?,
                tag::BASE_SLOW_STATE => self.slow_state.merge(sanitize_slow_state(from_json(body)?)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Starts a base. If it refers to a key frame that was not read, the state is partial.
    fn begin_base(&mut self, body: &[u8], is_known: bool) -> Result<(), DecodeError> {
        let (mut key, mut is_complete) = (0, false);
        base_key(&mut Wire::Read(body), &mut key, &mut is_complete)?;
        if !is_known && (is_complete || self.key_number != Some(key)) {
            *self = Self { is_partial: !is_complete, ..Self::default() };
        }
        self.key_number = Some(key);
        Ok(())
    }

    /// Whether tasks that have not changed since an unreadable key frame are missing.
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Decodes the observations of a frame and takes them over.
    pub fn decode(&mut self, mut payload: &[u8]) -> Result<Vec<Observation>, DecodeError> {
        let mut observations = Vec::new();
        while let Some((tag, body)) = next_section(&mut payload)? {
            if let Some(observation) = self.decode_observation(tag, body)? {
                self.remember(&observation);
                observations.push(observation);
            }
        }
        Ok(observations)
    }

    fn decode_observation(&mut self, tag: u64, body: &[u8]) -> Result<Option<Observation>, DecodeError> {
        Ok(Some(match tag {
            tag::SAMPLE => {
                let sample = decode_sample(body, self.sample.as_ref())?;
                self.sample = Some(sample.clone());
                Observation::Sample(Box::new(sample))
            }
            tag::TASKS => {
                let mut update = Reading::Ok(ProcessUpdate::default());
                self.tasks.code(&mut Wire::Read(body), &mut update)?;
                Observation::Tasks(Box::new(update))
            }
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

    /// Everything known, as observations for a consumer that knows nothing.
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

/// Which key frame a base belongs to, and whether it is that frame's own.
fn base_key(w: &mut Wire, key: &mut u32, is_complete: &mut bool) -> Coded {
    w.num(key)?;
    w.flag(is_complete)
}

/// The bytes of a layout.
fn written(layout: impl FnOnce(&mut Wire) -> Coded) -> Vec<u8> {
    let mut out = Vec::new();
    // Only reading can fail.
    let _ = layout(&mut Wire::Write(&mut out));
    out
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    // Only maps with keys that are not strings can fail, and there are none.
    serde_json::to_vec(value).unwrap_or_default()
}

fn from_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, DecodeError> {
    if body.len() > MAX_JSON_BYTES {
        return Err(DecodeError("a list is too long"));
    }
    serde_json::from_slice(body).map_err(|_| DecodeError("JSON cannot be parsed"))
}

/// Sanitizes the reasons, which are only ever shown: the file may come from anybody.
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

/// Sanitizes names, which collectors do when they read them. Devices are found by binary search, so they are sorted.
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
