//! `cpu`, `writeback`, `swap`, `pressure` and `stalls`. These objects always have all keys; only values are `null`.

use crate::model::memory::{SwapArea, WritebackRate};
use crate::model::memory_stalls::{ProcessStalls, RECLAIM, StallRate, THROTTLE};
use crate::model::pressure::ResourcePressure;
use crate::model::snapshot::Snapshot;
use crate::sanitize::sanitize;
use serde::Serialize;
use serde_json::{Value, json};

/// A value as an object; without one, every key is `null`.
fn object_or_nulls<T: Serialize + Default>(value: Option<&T>) -> Value {
    let mut object = json!(value.unwrap_or(&T::default()));
    if let (None, Some(entries)) = (value, object.as_object_mut()) {
        entries.values_mut().for_each(|value| *value = Value::Null);
    }
    object
}

pub(super) fn cpu(snapshot: &Snapshot) -> Value {
    object_or_nulls(snapshot.cpu.ok())
}

pub(super) fn writeback(snapshot: &Snapshot) -> WritebackRate {
    snapshot.writeback.ok().copied().unwrap_or_default()
}

pub(super) fn swap(snapshot: &Snapshot) -> Value {
    let mut object = json!(snapshot.swap.ok().cloned().unwrap_or_default());
    let sanitized = |area: &SwapArea| SwapArea { name: sanitize(&area.name), kind: sanitize(&area.kind), ..*area };
    object["devices"] = json!(snapshot.swap_areas.ok().map(|areas| areas.iter().map(sanitized).collect::<Vec<_>>()));
    object
}

pub(super) fn pressure(snapshot: &Snapshot) -> Value {
    let pressure = snapshot.pressure.ok();
    let of = |p: Option<ResourcePressure>| {
        json!({
            "some_avg10": p.and_then(|p| p.some).map(|psi| psi.avg10),
            "full_avg10": p.and_then(|p| p.full).map(|psi| psi.avg10),
        })
    };
    json!({ "cpu": of(pressure.map(|p| p.cpu)), "memory": of(pressure.map(|p| p.memory)), "io": of(pressure.map(|p| p.io)) })
}

pub(super) fn stalls(snapshot: &Snapshot) -> Value {
    let stalls = snapshot.memory_stalls.ok();
    // Null where the kind is not counted.
    let stall = |kind: usize, of_task: Option<&StallRate>| {
        let total = stalls.and_then(|s| s.totals[kind].as_ref());
        object_or_nulls(total.map(|total| of_task.unwrap_or(total)))
    };
    let task = |t: &ProcessStalls| {
        json!({
            "pid": t.key.pid,
            "starttime": t.key.starttime,
            "comm": t.comm,
            "throttled_on": Some(&*t.bdi).filter(|bdi| !bdi.is_empty()),
            "throttle": stall(THROTTLE, Some(&t.rates[THROTTLE])),
            "reclaim": stall(RECLAIM, Some(&t.rates[RECLAIM])),
        })
    };
    json!({
        "throttle": stall(THROTTLE, None),
        "reclaim": stall(RECLAIM, None),
        "tasks": stalls.map(|s| s.processes.iter().map(task).collect::<Vec<_>>()),
    })
}
