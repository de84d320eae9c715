//! What tracing would have counted of who did the I/O on the disk; the captured tree has no such thing.

use iotop_plus::model::charge::{Account, ChargeRaw, Key, Kind};
use iotop_plus::model::latency::Counts;
use iotop_plus::model::sample::Sample;
use iotop_plus::model::section::Section;
use std::sync::Arc;

/// The process that writes most, that with syncs, the reader; a flusher; one that has ended.
const LOGGER: u32 = 6398;
const LEDGER: u32 = 6405;
const FIO: u32 = 6408;
const FLUSHER: u32 = 28_188;
const ENDED: u32 = 6300;

/// So much until that tick.
pub fn charge(sample: &Sample, ticks: u64) -> Section<Arc<ChargeRaw>> {
    let Some(disk) = sample.disks.ok().and_then(|d| d.iter().find(|d| &*d.name == "vda")) else {
        return Section::default();
    };
    // Who, in which group, what, requests a tick, KiB each, us each.
    let each = [
        (LOGGER, 90, Kind::Back, 120, 512, 0),
        (LEDGER, 91, Kind::Write, 400, 16, 900),
        (LEDGER, 91, Kind::Flush, 380, 0, 2100),
        (LEDGER, 91, Kind::Back, 400, 16, 0),
        (FIO, 92, Kind::Read, 3000, 4, 140),
        (FIO, 92, Kind::Write, 3000, 4, 1200),
        (FLUSHER, 90, Kind::Write, 130, 512, 9000),
        (ENDED, 1, Kind::Back, 10, 512, 0),
        (0, 1, Kind::Metadata, 6, 4, 0),
    ];
    let account = |(pid, group, kind, requests, kib, us): (u32, u64, Kind, u64, u64, u64)| {
        let requests = requests * ticks;
        let slow = requests / 60;
        let bucket = |us: u64| ((us.max(3) * 1000).ilog2() as u16 - 11) * 2;
        let times = [(bucket(us), (requests - slow) as u32), (bucket(us * 9), slow as u32)];
        Account {
            key: Key { pid, dev: disk.id, group, kind },
            requests,
            bytes: requests * kib * 1024,
            ns: requests * us * 1000,
            times: if us > 0 { Counts::sparse(times) } else { Counts::default() },
        }
    };
    let mut accounts: Vec<Account> = each.into_iter().map(account).collect();
    accounts.sort_by_key(|a| a.key);
    let names =
        [(ENDED, "dd"), (LOGGER, "写日志"), (LEDGER, "ledgerd"), (FIO, "fio"), (FLUSHER, "kworker/u8:10")];
    let groups = [(1, "/"), (90, "/system.slice/写日志"), (91, "/system.slice/ledger.service")];
    Section::Ok(Arc::new(ChargeRaw {
        accounts,
        names: names.map(|(pid, name)| (pid, name.into())).into(),
        groups: groups.map(|(id, path)| (id, path.into())).into(),
        lost: 0,
        without: vec!["zram, dm, md are not counted by process".into()],
    }))
}
