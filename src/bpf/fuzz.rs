//! Fuzz targets: what the BPF programs write, and the kernel's BTF. See [`crate::fuzz`].

use super::btf::TracepointArguments;
use super::file_io::{end_functions, tables as file_tables};
use super::io_accounting::account_map::{self, AccountSum};
use super::latency::histogram_maps;
use super::memory_stalls::{KIND_LEN, parse_stall};
use super::syncs::tables;
use super::task_iter::{TaskCounters, TaskRecord};
use super::task_waits::symbols::Symbols;
use super::task_waits::tables as wait_tables;
use crate::model::task_waits::reason;
use crate::sanitize::assert_safe;
use std::sync::Arc;
use zerocopy::IntoBytes as _;

/// The next `N` bytes of the input, with zeros where it ends.
fn take<const N: usize>(input: &mut &[u8]) -> [u8; N] {
    let (now, rest) = input.split_at(input.len().min(N));
    *input = rest;
    std::array::from_fn(|i| now.get(i).copied().unwrap_or(0))
}

pub(crate) fn tasks(input: &[u8]) {
    let mut sum = TaskCounters::default();
    for bytes in input.chunks(size_of::<TaskRecord>()) {
        if let Some(record) = TaskRecord::parse(bytes) {
            assert_eq!(record.as_bytes(), bytes);
            sum += record.counters;
        }
    }
}

pub(crate) fn syncs(mut input: &[u8]) {
    let boot_offset = u64::from_ne_bytes(take(&mut input));
    while !input.is_empty() {
        let key: [u8; tables::KEY_LEN] = take(&mut input);
        let value: [u8; tables::COUNTS_LEN] = take(&mut input);
        let file = tables::parse_file(&key, &value);
        assert_safe(&file.comm.sanitized());
        assert_safe(&file.path_tail.sanitized());
        let file = Arc::new(file);
        tables::parse_counts(file.clone(), &value, boot_offset);
        tables::parse_slow(&take(&mut input), &take::<{ tables::SLOW_LEN }>(&mut input), file, boot_offset);
    }
}

pub(crate) fn accounts(mut input: &[u8]) {
    let mut sum = AccountSum::<{ account_map::KEY_LEN }>::default();
    while !input.is_empty() {
        let key: [u8; account_map::KEY_LEN] = take(&mut input);
        account_map::parse_key(&key);
        sum.add(key, &take::<{ account_map::VALUE_LEN }>(&mut input));
    }
}

pub(crate) fn files(mut input: &[u8]) {
    end_functions::parse(input);
    let mut sum = AccountSum::<{ file_tables::KEY_LEN }>::default();
    while !input.is_empty() {
        let key: [u8; file_tables::KEY_LEN] = take(&mut input);
        let id = file_tables::parse_key(&key).unwrap_or_default().file;
        let name = file_tables::parse_name(id, &take::<{ file_tables::PATH_LEN }>(&mut input));
        assert_safe(&name.path_tail.sanitized());
        sum.add(key, &take::<{ account_map::VALUE_LEN }>(&mut input));
    }
}

pub(crate) fn latency(mut input: &[u8]) {
    histogram_maps::parse_key(take(&mut input));
    let mut sums = vec![0; histogram_maps::VALUE_COUNTERS];
    histogram_maps::sum_cpus(input, &mut sums);
    histogram_maps::parse_request_pattern(&sums);
    histogram_maps::parse_request_pattern(&sums[..input.len().min(sums.len())]);
}

pub(crate) fn stalls(mut input: &[u8]) {
    let (period, unit_ns) = (u64::from_ne_bytes(take(&mut input)), u64::from_ne_bytes(take(&mut input)));
    parse_stall(&take::<KIND_LEN>(&mut input), period, unit_ns);
}

pub(crate) fn waits(mut input: &[u8]) {
    let symbols = Symbols::parse(input);
    while !input.is_empty() {
        wait_tables::parse_key(&take(&mut input));
        if let Some(wait) = wait_tables::parse_thread(&take::<{ wait_tables::THREAD_LEN }>(&mut input)) {
            wait_tables::parse_key(&wait.key);
        }
        let stack = [(); 4].map(|()| symbols.name(u64::from_ne_bytes(take(&mut input))));
        reason::classify(&stack, reason::WaitFacts::default());
    }
}

pub(crate) fn btf(input: &[u8]) {
    if let Some(found) = TracepointArguments::parse(input) {
        found.argument_count("block_rq_issue");
    }
}
