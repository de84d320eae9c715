//! Accounts as differences to the tick before: which went and which came, then those in which something was counted.

use super::codec::{ByteReader, DecodeError, get_reasons, put_blob, put_reasons, put_signed_varint, put_varint};
use super::latency::{get_counts, put_counts};
use super::sample::{get_outcome, put_outcome};
use crate::model::disk::DevId;
use crate::model::io_accounting::{AccountKey, AccountKind, IoAccount, IoAccountsRaw, LATENCY_BUCKETS};
use crate::model::latency::SparseHistogram;
use crate::model::reading::Reading;
use std::sync::Arc;

/// Accounts, names or groups of one sample at most.
const MAX_ACCOUNTS: usize = 65_536;

/// Appends a reading as it differs from `prev`.
pub fn encode(out: &mut Vec<u8>, prev: &Reading<Arc<IoAccountsRaw>>, cur: &Reading<Arc<IoAccountsRaw>>) {
    if !put_outcome(out, cur) {
        return;
    }
    let (none, Reading::Ok(now)) = (IoAccountsRaw::default(), cur) else { return };
    let old = prev.ok().map_or(&none, |p| &**p);
    put_varint(out, now.dropped);
    put_reasons(out, &now.unavailable);
    put_list_edits(out, &old.names, &now.names, |out, (pid, name)| {
        put_varint(out, u64::from(*pid));
        put_blob(out, name.as_bytes());
    });
    put_list_edits(out, &old.cgroups, &now.cgroups, |out, (id, path)| {
        put_varint(out, *id);
        put_blob(out, path.as_bytes());
    });
    let keys = |raw: &IoAccountsRaw| raw.accounts.iter().map(|a| a.key).collect::<Vec<_>>();
    put_list_edits(out, &keys(old), &keys(now), put_key);
    let mut last = 0;
    let mut before = old.accounts.iter().peekable();
    for (at, account) in now.accounts.iter().enumerate() {
        while before.next_if(|b| b.key < account.key).is_some() {}
        let new = empty_account(account.key);
        let before = before.next_if(|b| b.key == account.key).unwrap_or(&new);
        if before == account {
            continue;
        }
        put_varint(out, (at - last) as u64);
        last = at;
        let figures = |a: &IoAccount| [a.requests, a.bytes, a.total_ns];
        for (a, b) in figures(before).into_iter().zip(figures(account)) {
            put_signed_varint(out, b.wrapping_sub(a) as i64);
        }
        put_counts(out, &before.histogram, &account.histogram);
    }
}

/// What [`put`] wrote.
pub fn decode(
    inp: &mut ByteReader,
    prev: &Reading<Arc<IoAccountsRaw>>,
) -> Result<Reading<Arc<IoAccountsRaw>>, DecodeError> {
    if let other @ (Reading::Denied(_) | Reading::Absent(_) | Reading::Blocked(_)) = get_outcome(inp)? {
        return Ok(other.map(|()| Arc::default()));
    }
    let none = IoAccountsRaw::default();
    let old = prev.ok().map_or(&none, |p| &**p);
    let lost = inp.varint()?;
    let without = get_reasons(inp)?;
    let text = |inp: &mut ByteReader| Ok::<Arc<str>, DecodeError>(crate::sanitize::sanitize(inp.blob()?).into());
    let names = get_list_edits(inp, old.names.iter().cloned(), |inp| Ok((inp.varint_u32()?, text(inp)?)))?;
    let groups = get_list_edits(inp, old.cgroups.iter().cloned(), |inp| Ok((inp.varint()?, text(inp)?)))?;
    let keys = get_list_edits(inp, old.accounts.iter().map(|a| a.key), get_key)?;
    let mut before = old.accounts.iter().peekable();
    let account = |key: AccountKey| {
        while before.next_if(|b| b.key < key).is_some() {}
        before.next_if(|b| b.key == key).cloned().unwrap_or_else(|| empty_account(key))
    };
    let mut accounts: Vec<IoAccount> = keys.into_iter().map(account).collect();
    let mut at = 0usize;
    while !inp.is_empty() {
        at = at.saturating_add(inp.varint()? as usize);
        let account = accounts.get_mut(at).ok_or(DecodeError("an account that is not there"))?;
        for figure in [&mut account.requests, &mut account.bytes, &mut account.total_ns] {
            *figure = figure.wrapping_add(inp.signed_varint()? as u64);
        }
        account.histogram = get_counts(inp, &account.histogram, LATENCY_BUCKETS)?;
    }
    Ok(Reading::Ok(Arc::new(IoAccountsRaw { accounts, names, cgroups: groups, dropped: lost, unavailable: without })))
}

fn empty_account(key: AccountKey) -> IoAccount {
    IoAccount { key, requests: 0, bytes: 0, total_ns: 0, histogram: SparseHistogram::default() }
}

fn put_key(out: &mut Vec<u8>, key: &AccountKey) {
    put_varint(out, u64::from(key.pid));
    put_varint(out, u64::from(key.device.major));
    put_varint(out, u64::from(key.device.minor));
    put_varint(out, key.cgroup_id);
    put_varint(out, key.kind as u64);
}

fn get_key(inp: &mut ByteReader) -> Result<AccountKey, DecodeError> {
    Ok(AccountKey {
        pid: inp.varint_u32()?,
        device: DevId { major: inp.varint_u32()?, minor: inp.varint_u32()? },
        cgroup_id: inp.varint()?,
        kind: *AccountKind::ALL.get(inp.varint()? as usize).ok_or(DecodeError("a kind that is none"))?,
    })
}

/// Appends what makes one sorted list of another: the places of those that went, then those that came.
fn put_list_edits<T: Ord>(out: &mut Vec<u8>, old: &[T], now: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
    let not_in = |all: &[T], others: &[T]| -> Vec<usize> {
        let gone = all.iter().enumerate().filter(|(_, item)| others.binary_search(item).is_err());
        gone.map(|(at, _)| at).collect()
    };
    let gone = not_in(old, now);
    put_varint(out, gone.len() as u64);
    let mut last = 0;
    for at in gone {
        put_varint(out, (at - last) as u64);
        last = at;
    }
    let came = not_in(now, old);
    put_varint(out, came.len() as u64);
    came.into_iter().for_each(|at| put(out, &now[at]));
}

/// What [`put_edits`] wrote.
fn get_list_edits<T: Ord + Clone>(
    inp: &mut ByteReader,
    old: impl Iterator<Item = T>,
    get: impl Fn(&mut ByteReader) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let mut all: Vec<Option<T>> = old.map(Some).collect();
    let mut at = 0usize;
    for _ in 0..inp.count()? {
        at = at.saturating_add(inp.varint()? as usize);
        *all.get_mut(at).ok_or(DecodeError("one went that was not there"))? = None;
    }
    let mut all: Vec<T> = all.into_iter().flatten().collect();
    let came = inp.count()?;
    if all.len() + came > MAX_ACCOUNTS {
        return Err(DecodeError("more accounts than there can be"));
    }
    for _ in 0..came {
        all.push(get(inp)?);
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(
        prev: &Reading<Arc<IoAccountsRaw>>,
        cur: &Reading<Arc<IoAccountsRaw>>,
    ) -> Reading<Arc<IoAccountsRaw>> {
        let mut out = Vec::new();
        encode(&mut out, prev, cur);
        decode(&mut ByteReader(&out), prev).unwrap()
    }

    fn any_reading() -> impl Strategy<Value = Reading<Arc<IoAccountsRaw>>> {
        let key = (0..5u32, 0..3u32, any::<u8>(), 0..AccountKind::ALL.len()).prop_map(|(pid, minor, group, kind)| {
            AccountKey {
                pid,
                device: DevId { major: 8, minor },
                cgroup_id: u64::from(group),
                kind: AccountKind::ALL[kind],
            }
        });
        let times = || {
            proptest::collection::btree_map(0..LATENCY_BUCKETS as u16, 1..=u32::MAX, 0..4)
                .prop_map(SparseHistogram::from_sparse)
        };
        let account = (any::<u64>(), any::<u64>(), any::<u64>(), times());
        let accounts = proptest::collection::btree_map(key, account, 0..6);
        let names = proptest::collection::btree_map(0..9u32, "[a-z]{0,9}", 0..4);
        let groups = proptest::collection::btree_map(any::<u64>(), "/[a-z]{0,9}", 0..4);
        let without = proptest::collection::vec("[a-z]{0,9}", 0..2);
        (accounts, names, groups, any::<u64>(), without).prop_map(|(accounts, names, groups, lost, without)| {
            let account = |(key, (requests, bytes, ns, times))| IoAccount {
                key,
                requests,
                bytes,
                total_ns: ns,
                histogram: times,
            };
            Reading::Ok(Arc::new(IoAccountsRaw {
                accounts: accounts.into_iter().map(account).collect(),
                names: names.into_iter().map(|(pid, name)| (pid, name.into())).collect(),
                cgroups: groups.into_iter().map(|(id, path)| (id, path.into())).collect(),
                dropped: lost,
                unavailable: without,
            }))
        })
    }

    #[test]
    fn an_unchanged_tick_takes_at_most_nine_bytes() {
        let key = |pid| AccountKey { pid, device: DevId::default(), cgroup_id: 1, kind: AccountKind::Read };
        let accounts = (0..200).map(|pid| IoAccount { requests: 9, ..empty_account(key(pid)) }).collect();
        let some = Reading::Ok(Arc::new(IoAccountsRaw { accounts, ..IoAccountsRaw::default() }));
        let mut out = Vec::new();
        encode(&mut out, &some, &some);
        assert!(out.len() <= 9, "{out:?}");
    }

    #[test]
    fn unavailable_readings_round_trip() {
        let no = Reading::Denied("no".into());
        let some =
            Reading::Ok(Arc::new(IoAccountsRaw { unavailable: vec!["zram: no".into()], ..IoAccountsRaw::default() }));
        for (a, b) in [(&no, &some), (&some, &no), (&some, &some)] {
            assert_eq!(round_trip(a, b), *b);
        }
    }

    proptest! {
        #[test]
        fn readings_come_back_as_differences(a in any_reading(), b in any_reading()) {
            prop_assert_eq!(round_trip(&a, &b), b.clone());
            prop_assert_eq!(round_trip(&Reading::default(), &b), b);
        }

        #[test]
        fn damage_is_refused_or_read(
            a in any_reading(), b in any_reading(), at in any::<proptest::sample::Index>(), to in any::<u8>(),
        ) {
            let mut out = Vec::new();
            encode(&mut out, &a, &b);
            let at = at.index(out.len());
            out[at] = to;
            let _ = decode(&mut ByteReader(&out), &a);
            let _ = decode(&mut ByteReader(&out[..at]), &a);
        }
    }
}
