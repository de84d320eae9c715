//! What writer and reader both know at a frame, and how observations change it.
//!
//! Rare observations (devices, mounts, queue settings, kernel log) are JSON within the compressed frame: an unknown
//! name is skipped, a missing one takes its default.

use super::codec::{Coded, DecodeError, Wire, next_section, put_section, written};
use super::cost::{COST_PER_BYTE, FREE_COST, QUEUE_COST, TASK_COST, json_cost, sample_cost};
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
    pub(super) const SAMPLE: u64 = 1;
    pub(super) const TASKS: u64 = 2;
    pub(super) const TOPOLOGY: u64 = 3;
    pub(super) const QUEUES: u64 = 4;
    pub(super) const UNAVAILABLE: u64 = 5;
    pub(super) const KERNEL_LOG: u64 = 6;
    pub(super) const KERNEL_LOG_STATE: u64 = 7;
    pub(super) const BLOCKED: u64 = 8;
    pub(super) const HUNG_TASK_WARNINGS: u64 = 9;
    pub(super) const FACTS: u64 = 10;
    pub(super) const DISK_SPACE: u64 = 11;
    /// The key frame that a base refers to; then what was known before this frame.
    pub(super) const BASE_KEY: u64 = 31;
    pub(super) const BASE_SAMPLE: u64 = 32;
    pub(super) const BASE_TASKS: u64 = 33;
    pub(super) const BASE_SLOW_STATE: u64 = 34;
}

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
    #[serde(rename = "gaps", skip_serializing_if = "Option::is_none")]
    unavailable: Option<Vec<(String, String)>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_state: Option<Reading<()>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked: Option<Vec<BlockedRead>>,
    #[serde(rename = "hung", skip_serializing_if = "Option::is_none")]
    hung_task_warnings: Option<Option<i64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<SlowFacts>,
}

impl SlowState {
    /// Replaces what is known by what `new` has.
    fn merge(&mut self, new: SlowState) {
        let old = std::mem::take(self);
        *self = Self {
            topology: new.topology.or(old.topology),
            queues: new.queues.or(old.queues),
            unavailable: new.unavailable.or(old.unavailable),
            log_state: new.log_state.or(old.log_state),
            blocked: new.blocked.or(old.blocked),
            hung_task_warnings: new.hung_task_warnings.or(old.hung_task_warnings),
            facts: new.facts.or(old.facts),
        };
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CodecState {
    sample: Option<Sample>,
    tasks: RecordedTasks,
    slow_state: SlowState,
    /// What of `slow_state` changed since the last key frame.
    slow_changes: SlowState,
    key_number: Option<u32>,
    /// That key frame could not be read: tasks that have not changed since are missing.
    pub is_partial: bool,
    /// What it may cost; only a reader has a limit.
    limit: Option<usize>,
    /// What its parts cost by tag, except tasks.
    costs: BTreeMap<u64, usize>,
    /// What the observations decoded last cost.
    decoded_cost: usize,
}

impl CodecState {
    /// Appends everything known, or (not `is_complete`) the counters and what else changed since the last key frame.
    /// `key` is the number of the key frame: this one's if it is complete.
    pub(crate) fn put_base(&mut self, out: &mut Vec<u8>, key: u32, is_complete: bool) {
        put_section(out, tag::BASE_KEY, &written(|w| base_key(w, &mut key.clone(), &mut is_complete.clone())));
        if let Some(sample) = &self.sample {
            put_section(out, tag::BASE_SAMPLE, &encode_sample(None, sample));
        }
        put_section(out, tag::BASE_TASKS, &written(|w| self.tasks.code_base(w, is_complete)));
        let rest = if is_complete { &self.slow_state } else { &self.slow_changes };
        put_section(out, tag::BASE_SLOW_STATE, &to_json(rest));
    }

    /// A key frame has been written: from now on a base holds what changes after it.
    pub(crate) fn mark_key_frame(&mut self) {
        self.slow_changes = SlowState::default();
        self.tasks.mark_key_frame();
    }

    /// Appends an observation and takes it over.
    pub(crate) fn encode(&mut self, out: &mut Vec<u8>, observation: &Observation) {
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
            // Among the facts.
            Observation::Containers(_) => return,
        };
        self.remember(observation);
        put_section(out, tag, &body);
    }

    /// Whether an observation says nothing new.
    pub(crate) fn is_known(&self, observation: &Observation) -> bool {
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
            Observation::Containers(_) => true,
        }
    }

    /// Takes over an observation that is neither counters nor tasks.
    fn remember(&mut self, observation: &Observation) {
        let mut changes = SlowState::default();
        match observation {
            Observation::Topology(t) => changes.topology = Some((**t).clone()),
            Observation::Queues(q) => {
                changes.queues.insert(self.slow_state.queues.clone().unwrap_or_default()).extend(q.clone());
            }
            Observation::Unavailable(g) => changes.unavailable = Some(g.clone()),
            Observation::KernelLogState(s) => changes.log_state = Some(s.clone()),
            Observation::KernelLog(..) => changes.log_state = Some(Reading::Ok(())),
            Observation::BlockedSources(b) => changes.blocked = Some(b.clone()),
            Observation::HungTaskWarnings(n) => changes.hung_task_warnings = Some(*n),
            Observation::Facts(new) => {
                changes.facts.insert(self.slow_state.facts.clone().unwrap_or_default()).update((**new).clone());
            }
            Observation::DiskSpace(space) => {
                changes.facts.insert(self.slow_state.facts.clone().unwrap_or_default()).update_space(space.clone());
            }
            Observation::Sample(_) | Observation::Tasks(_) | Observation::Containers(_) => return,
        }
        if self.limit.is_none() {
            self.slow_changes.merge(changes.clone());
        }
        self.slow_state.merge(changes);
    }

    /// Takes over the state before a frame. If that `is_known` already, only the number of the key frame.
    pub(crate) fn get_base(&mut self, mut payload: &[u8], is_known: bool) -> Result<(), DecodeError> {
        while let Some((tag, body)) = next_section(&mut payload)? {
            match tag {
                tag::BASE_KEY => self.begin_base(body, is_known)?,
                _ if is_known => {}
                tag::BASE_SAMPLE => self.take_sample(decode_sample(body, None)?)?,
                tag::BASE_TASKS => {
                    self.limit_tasks();
                    self.tasks.code_base(&mut Wire::Read(body), false)?;
                }
                tag::BASE_SLOW_STATE => {
                    self.add_json(tag, body)?;
                    self.slow_state.merge(from_json_with(body, sanitize_slow_state)?);
                }
                _ => {}
            }
        }
        self.decoded_cost = if is_known { 0 } else { self.cost() };
        Ok(())
    }

    /// Lets the state of a reader grow as far as the compressed bytes that it was made from allow.
    pub(crate) fn set_limit(&mut self, packed_bytes: usize) {
        self.limit = Some(packed_bytes.saturating_mul(COST_PER_BYTE).saturating_add(FREE_COST));
    }

    pub(crate) fn check_limit(&self) -> Coded {
        match self.limit.is_some_and(|limit| self.cost() > limit) {
            true => Err(DecodeError("frames describe more than their size allows")),
            false => Ok(()),
        }
    }

    fn cost(&self) -> usize {
        self.costs.values().sum::<usize>() + self.tasks.len() * TASK_COST
    }

    /// What the observations cost that were decoded last.
    pub(crate) fn take_decoded_cost(&mut self) -> usize {
        std::mem::take(&mut self.decoded_cost)
    }

    fn take_sample(&mut self, sample: Sample) -> Coded {
        self.costs.insert(tag::SAMPLE, sample_cost(&sample));
        self.sample = Some(sample);
        self.check_limit()
    }

    /// Counts JSON before it is parsed.
    fn add_json(&mut self, tag: u64, body: &[u8]) -> Coded {
        let cost = json_cost(body);
        self.decoded_cost += cost;
        // Queue settings are merged with those before; the others replace them. Log records are not kept.
        let known = match tag {
            tag::QUEUES => self.slow_state.queues.as_ref().map_or(0, |queues| queues.len() * QUEUE_COST),
            _ => 0,
        };
        if tag != tag::KERNEL_LOG {
            self.costs.insert(tag, known + cost);
        }
        self.check_limit()
    }

    fn limit_tasks(&mut self) {
        let others = self.costs.values().sum();
        self.tasks.set_row_limit(self.limit.map(|limit| limit.saturating_sub(others) / TASK_COST));
    }

    /// Starts a base. If it refers to a key frame that was not read, the state is partial.
    fn begin_base(&mut self, body: &[u8], is_known: bool) -> Result<(), DecodeError> {
        let (mut key, mut is_complete) = (0, false);
        base_key(&mut Wire::Read(body), &mut key, &mut is_complete)?;
        if !is_known && (is_complete || self.key_number != Some(key)) {
            *self = Self { is_partial: !is_complete, limit: self.limit, ..Self::default() };
        }
        self.key_number = Some(key);
        Ok(())
    }

    /// Decodes the observations of a frame and takes them over.
    pub(crate) fn decode(&mut self, mut payload: &[u8]) -> Result<Vec<Observation>, DecodeError> {
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
        if matches!(tag, tag::TOPOLOGY..=tag::DISK_SPACE) {
            self.add_json(tag, body)?;
        }
        Ok(Some(match tag {
            tag::SAMPLE => {
                let sample = decode_sample(body, self.sample.as_ref())?;
                self.take_sample(sample.clone())?;
                self.decoded_cost += sample_cost(&sample);
                Observation::Sample(Box::new(sample))
            }
            tag::TASKS => {
                let mut update = Reading::Ok(ProcessUpdate::default());
                self.limit_tasks();
                self.tasks.code(&mut Wire::Read(body), &mut update)?;
                self.decoded_cost += update.ok().map_or(0, |u| (u.changed.len() + u.names.len()) * TASK_COST);
                Observation::Tasks(Box::new(update))
            }
            tag::TOPOLOGY => Observation::Topology(Box::new(from_json_with(body, sanitize_topology)?)),
            tag::QUEUES => Observation::Queues(from_json_with(body, sanitize_queues)?),
            tag::UNAVAILABLE => Observation::Unavailable(from_json(body)?),
            tag::KERNEL_LOG => {
                let LogBatch { mono_ns, wall_ns, records } = from_json(body)?;
                Observation::KernelLog(records, LogClock { mono_ns, wall_ns })
            }
            tag::KERNEL_LOG_STATE => Observation::KernelLogState(from_json_with(body, sanitize_reading)?),
            tag::BLOCKED => {
                Observation::BlockedSources(from_json_with(body, |list: &mut Vec<_>| sanitize_blocked(list))?)
            }
            tag::HUNG_TASK_WARNINGS => Observation::HungTaskWarnings(from_json(body)?),
            tag::FACTS => Observation::Facts(Box::new(from_json_with(body, sanitize_facts)?)),
            tag::DISK_SPACE => Observation::DiskSpace(from_json_with(body, sanitize_disk_space)?),
            _ => return Ok(None),
        }))
    }

    /// Everything known, as observations for a consumer that knows nothing.
    pub(crate) fn full_update(&self) -> Vec<Observation> {
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
        let facts = rest.facts.unwrap_or_default();
        out.extend(facts.previous.into_iter().chain(facts.latest).map(|facts| Observation::Facts(Box::new(facts))));
        out.extend(facts.local_space.into_iter().chain(facts.network_space).map(Observation::DiskSpace));
        out
    }
}

/// Which key frame a base belongs to, and whether it is that frame's own.
fn base_key(w: &mut Wire, key: &mut u32, is_complete: &mut bool) -> Coded {
    w.num(key)?;
    w.flag(is_complete)
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

/// The value, after `sanitize` has made it safe to show.
fn from_json_with<T: DeserializeOwned>(body: &[u8], sanitize: impl Fn(&mut T)) -> Result<T, DecodeError> {
    let mut value = from_json(body)?;
    sanitize(&mut value);
    Ok(value)
}

/// Sanitizes texts that are only ever shown: the file may come from anybody.
fn sanitize_all<'a>(texts: impl IntoIterator<Item = &'a mut String>) {
    texts.into_iter().for_each(|text| *text = sanitize(&*text));
}

fn sanitize_reading<T>(reading: &mut Reading<T>) {
    match reading {
        Reading::Ok(_) => {}
        Reading::Denied(why) | Reading::Absent(why) => sanitize_all([why]),
        Reading::Blocked(blocked) => sanitize_all([&mut blocked.waiting_on]),
    }
}

fn sanitize_blocked(list: &mut [BlockedRead]) {
    sanitize_all(list.iter_mut().map(|b| &mut b.waiting_on));
}

/// Also sorts the devices, which are found by binary search.
fn sanitize_topology(topology: &mut Reading<Topology>) {
    sanitize_reading(topology);
    let Reading::Ok(topology) = topology else { return };
    topology.devices.sort_by_key(|d| d.id);
    for device in &mut topology.devices {
        sanitize_all([&mut device.name].into_iter().chain(&mut device.model));
        if let Some(md) = &mut device.md {
            sanitize_all([&mut md.level, &mut md.state, &mut md.sync_action].into_iter().flatten());
        }
    }
}

fn sanitize_queues(queues: &mut BTreeMap<String, QueueAttrs>) {
    for (name, mut queue) in std::mem::take(queues) {
        let texts = [&mut queue.scheduler, &mut queue.write_cache, &mut queue.zoned];
        sanitize_all(texts.into_iter().flatten().chain(&mut queue.schedulers));
        queues.insert(sanitize(name), queue);
    }
}

fn sanitize_facts(facts: &mut SystemFacts) {
    let knobs = std::mem::take(&mut facts.knobs);
    facts.knobs = knobs.into_iter().map(|(name, value)| (sanitize(name), sanitize(value))).collect();
    sanitize_all(facts.thp.iter_mut().chain(facts.cgroups.iter_mut().map(|group| &mut group.path)));
    for found in &mut facts.health {
        sanitize_all(std::iter::once(&mut found.device).chain(found.health.texts()));
    }
    for result in &mut facts.results {
        let texts = [&mut result.id, &mut result.profile, &mut result.time, &mut result.directory, &mut result.mount];
        sanitize_all(texts.into_iter().chain(&mut result.device).chain(&mut result.model));
    }
}

fn sanitize_disk_space(report: &mut SpaceReport) {
    report.mounts.iter_mut().for_each(|mount| sanitize_reading(&mut mount.space));
}

fn sanitize_slow_state(state: &mut SlowState) {
    state.topology.iter_mut().for_each(sanitize_topology);
    state.queues.iter_mut().for_each(sanitize_queues);
    state.log_state.iter_mut().for_each(sanitize_reading);
    state.blocked.iter_mut().for_each(|list| sanitize_blocked(list));
    if let Some(facts) = &mut state.facts {
        facts.latest.iter_mut().chain(&mut facts.previous).for_each(sanitize_facts);
        facts.local_space.iter_mut().chain(&mut facts.network_space).for_each(sanitize_disk_space);
    }
}
