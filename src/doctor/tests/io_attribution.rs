//! With traced I/O, findings name the process it is attributed to, not the one with the largest counters.

use super::test_machine::*;
use crate::model::disk::DevId;
use crate::model::io_accounting::rates::{DeviceIo, IoAttribution, IoRates, OwnerIo};
use crate::model::process::{IoBytes, TaskRaw};
use crate::model::reading::Reading;
use crate::model::snapshot::Snapshot;
use std::sync::Arc;

const MIB: f64 = 1_048_576.0;

fn owner_io(pid: u32, id: DevId, figures: IoRates) -> OwnerIo<u32> {
    OwnerIo { owner: pid, total: figures, devices: vec![DeviceIo { device: id, rates: figures }] }
}

fn set_attribution(t: &mut Snapshot, tasks: Vec<OwnerIo<u32>>) {
    let names = tasks.iter().map(|t| (t.owner, if t.owner == 901 { "fio" } else { "other" }.into())).collect();
    t.io_attribution = Reading::Ok(Arc::new(IoAttribution { processes: tasks, names, ..IoAttribution::default() }));
}

fn written(bytes: u64) -> IoBytes {
    IoBytes { write: bytes, ..IoBytes::default() }
}

#[test]
fn device_load_is_attributed_by_traced_io() {
    let mut s = TestMachine::new();
    s.ticks(8, |t| {
        set_device(t, busy_device(VDA, "vda", (800.0, 40.0, 32.0, 512.0, 0.0)));
        let flusher = IoRates { write_bytes_per_s: 400.0 * MIB, writes_in_flight: 32.0, ..IoRates::default() };
        let fio = IoRates { writeback_bytes_per_s: 400.0 * MIB, ..IoRates::default() };
        let elsewhere = IoRates { read_bytes_per_s: 900.0 * MIB, ..IoRates::default() };
        set_attribution(t, vec![owner_io(12, VDA, flusher), owner_io(900, SDA, elsewhere), owner_io(901, VDA, fio)]);
    });
    // By its counters, dd would be named, which writes to another device.
    s.scan(vec![TaskRaw { kernel_thread: true, ..task_counters(12, "kworker/u8:5-fl") }], false);
    s.add_task(901, "fio", |_| {}, IoBytes::default(), 0);
    s.add_task(900, "dd", |_| {}, written(400 << 20), 0);
    let (found, _) = s.evaluate_rule("device-saturated");
    assert!(found[0].title.contains("fio (901) has 100% of its queue"), "{}", found[0].title);
}

#[test]
fn writeback_storm_is_attributed_to_the_process_that_dirtied_the_pages() {
    let mut s = TestMachine::new();
    s.ticks(8, |t| {
        let w = t.writeback.ok_mut().unwrap();
        (w.dirty_bytes, w.dirtied_bytes_per_s, w.written_bytes_per_s) =
            (Some(5 << 29), Some(60.0 * MIB), Some(40.0 * MIB));
        let back = |n: f64| IoRates { writeback_bytes_per_s: n * MIB, ..IoRates::default() };
        set_attribution(t, vec![owner_io(900, VDA, back(10.0)), owner_io(901, VDA, back(30.0))]);
    });
    s.add_task(900, "dd", |_| {}, written(60 << 20), 0);
    let (found, _) = s.evaluate_rule("writeback-storm");
    assert!(found[0].title.contains("fio (901) dirties"), "{}", found[0].title);
    let fact = found[0].evidence.iter().find(|f| f.name == "most dirtied by").unwrap();
    assert_eq!(fact.value, "fio (901), 75%");
}
