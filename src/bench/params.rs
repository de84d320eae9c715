//! The parameters of a run: one list for the command line and the screen, with the same values and errors.

use super::plan::{BenchPlan, CacheLayout, EngineChoice, PlanError};
use crate::units::{format_bytes_exact, parse_bytes};
use Field::{Bytes, Count, Engine, Layout, Seconds, Switch};
use clap::ValueEnum;

pub(crate) struct BenchParam {
    /// The option of `bench run`, or the key of its `--set`.
    pub name: &'static str,
    /// Unit of a number; empty for sizes and choices.
    pub unit: &'static str,
    /// Accepted values, for messages.
    pub range: &'static str,
    pub about: &'static str,
    field: fn(&mut BenchPlan) -> Field<'_>,
}

impl BenchParam {
    /// All values of a choice; else empty.
    pub(crate) fn choices(&self) -> &'static [&'static str] {
        match (self.field)(&mut BenchPlan::default()) {
            Switch(_) => SWITCH,
            Layout(_) => LAYOUTS,
            Engine(_) => ENGINES,
            Count(_) | Bytes(_) | Seconds(_) => &[],
        }
    }

    /// Its value in a plan, in a form that [`Self::set`] accepts.
    pub(crate) fn get(&self, plan: &BenchPlan) -> String {
        match (self.field)(&mut plan.clone()) {
            Count(n) => n.get().to_string(),
            Bytes(n) => format_bytes_exact(n.get()),
            Seconds(ms) => (*ms as f64 / 1e3).to_string(),
            Switch(on) => SWITCH[usize::from(*on)].into(),
            Layout(layout) => LAYOUTS[*layout as usize].into(),
            Engine(engine) => ENGINES[*engine as usize].into(),
        }
    }

    /// Sets it from a text. The error says what is wrong with the text; [`BenchPlan::check`] checks the plan as a whole.
    pub(crate) fn set(&self, plan: &mut BenchPlan, text: &str) -> Result<(), PlanError> {
        match (self.field)(plan) {
            Count(_) if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) => {
                return Err("is no whole number".into());
            }
            Count(n) => text.parse().ok().and_then(|value| n.set(value)).ok_or("is too large")?,
            Bytes(n) => n.set(parse_bytes(text)?).ok_or("is more than 64M")?,
            Seconds(ms) => {
                let secs = text.parse::<f64>().ok().filter(|secs| (0.0..=1e7).contains(secs));
                *ms = (secs.ok_or("is not a number of seconds")? * 1000.0).round() as u64;
            }
            Switch(on) => *on = SWITCH.iter().position(|n| *n == text).ok_or("is neither on nor off")? == 1,
            Layout(layout) => {
                *layout = ValueEnum::from_str(text, false).map_err(|_| "is neither small nor large nor cold")?;
            }
            Engine(engine) => {
                *engine = ValueEnum::from_str(text, false).map_err(|_| "is none of auto, uring, threads")?;
            }
        }
        if self.name == "readahead" {
            // Read-ahead acts on buffered reads only; a sweep without it uses direct I/O.
            plan.direct = !plan.readahead;
        }
        if self.name == "cold" && plan.cold {
            plan.direct = false;
        }
        Ok(())
    }
}

const SWITCH: &[&str] = &["off", "on"];
const LAYOUTS: &[&str] = &["small", "large", "cold"];
const ENGINES: &[&str] = &["auto", "uring", "threads"];

/// A field of a plan, by how its value is written.
enum Field<'p> {
    Count(&'p mut dyn Number),
    /// Bytes with a unit.
    Bytes(&'p mut dyn Number),
    /// Seconds, of a field in ms.
    Seconds(&'p mut u64),
    Switch(&'p mut bool),
    Layout(&'p mut CacheLayout),
    Engine(&'p mut EngineChoice),
}

/// A field of any width.
trait Number {
    fn get(&self) -> u64;
    /// `None` if the value is too large for the field.
    fn set(&mut self, value: u64) -> Option<()>;
}

impl<T: Copy + Into<u64> + TryFrom<u64>> Number for T {
    fn get(&self) -> u64 {
        (*self).into()
    }

    fn set(&mut self, value: u64) -> Option<()> {
        *self = T::try_from(value).ok()?;
        Some(())
    }
}

/// Rows of name, unit, notation, field, range, description.
macro_rules! params {
    ($($name:literal $unit:literal $notation:ident, $($field:ident).+, $range:literal, $about:literal;)*) => {
        &[$(BenchParam {
            name: $name,
            unit: $unit,
            range: $range,
            about: $about,
            field: |plan| $notation(&mut plan.$($field).+),
        }),*]
    };
}

pub(crate) const PARAMS: &[BenchParam] = params! {
    "size" "" Bytes, size, "one block to 1P (k, M, G, T)", "bytes of the file (of the memory, for fork)";
    "block" "" Bytes, block, "1 to 64M; with direct I/O a multiple of 512",
        "bytes of one operation, record or piece";
    "depth" "" Count, depth, "1 to 4096", "operations in flight per job";
    "jobs" "" Count, jobs, "1 to 64", "worker threads, each with a depth of its own";
    "read-pct" "%" Count, read_pct, "0 to 100", "reads among 100 operations";
    "readahead" "" Switch, readahead, "on or off",
        "sequential reads through the page cache with the disk's read-ahead off and on (needs root)";
    "transactions" "" Count, txlog.transactions, "0 for as many as the time allows, or more",
        "transactions of the test";
    "layout" "" Layout, txlog.layout, "small, large or cold", "how the store lies in the page cache at the start";
    "min" "" Count, txlog.min_records, "1 to max", "fewest records of a transaction";
    "max" "" Count, txlog.max_records, "min to 1000000", "most records of a transaction";
    "time" "s" Seconds, time_ms, "0 (no limit) to 604800",
        "seconds that are counted, of every step where there are several";
    "rate" "/s" Count, rate_iops, "0 (no cap) or more", "operations per second at most, all jobs together";
    "rate-bytes" "/s" Bytes, rate_bytes, "0 (no cap) or more; k, M, G",
        "bytes per second at most, all jobs together";
    "latency-target" "us" Count, latency_target_us, "0 (none) or more", "99th percentile of latency that is asked for";
    "direct" "" Switch, direct, "on: past the page cache (O_DIRECT); off: through it",
        "whether operations go past the page cache";
    "cold" "" Switch, cold, "on: through the page cache, dropped before each pass; off",
        "whether the file is dropped from the page cache each time it was read through";
    "fsync" "" Count, fsync_every, "0 (never) or more", "fdatasync after so many writes";
    "ramp" "s" Seconds, ramp_ms, "0 to 3600", "seconds at the start that are not counted";
    "io-size" "" Bytes, io_bytes, "0 (no limit) or more; k, M, G, T", "ends after so many counted bytes";
    "idle" "" Switch, idle, "on or off", "served only when no other task wants the disk";
    "stall-limit" "s" Seconds, stall_limit_ms, "1 to 3600", "gives up when nothing has moved for so long";
    "engine" "" Engine, engine, "auto: io_uring, or threads where it is refused; uring; threads",
        "which way operations reach the kernel";
    "refill" "" Switch, refill, "on or off", "fresh random data for every write, for stores that compress";
    "sqpoll" "" Switch, sqpoll, "on or off", "io_uring with a submitting kernel thread, which costs a core";
    "iopoll" "" Switch, iopoll, "on or off", "io_uring with polled completions; the device needs polling queues";
    "huge-pages" "" Switch, huge_pages, "on or off", "buffers on huge pages, which most programs do not have";
    "mmap" "" Switch, txlog.mmap, "on or off", "the store through a memory mapping; off: pread and pwrite";
    "readrecords" "" Switch, txlog.read, "on or off", "read the records first";
    "writelog" "" Switch, txlog.write_log, "on or off", "append the records to the log";
    "synclog" "" Switch, txlog.sync, "on or off", "sync the log at the end of every transaction";
    "writestore" "" Switch, txlog.write_store, "on or off", "write the records back to the store";
    "seed" "" Count, seed, "any whole number", "of positions and data: the same seed, the same work";
};

pub(crate) fn find_param(name: &str) -> Option<&'static BenchParam> {
    PARAMS.iter().find(|p| p.name == name)
}

/// Sets the parameter called `name` from `text`. The error names both.
pub(crate) fn set_param(plan: &mut BenchPlan, name: &str, text: &str) -> Result<(), PlanError> {
    let param = find_param(name).ok_or_else(|| format!("{name}: no such parameter"))?;
    param
        .set(plan, text)
        .map_err(|why| format!("{name} \"{}\": {why}; {}", crate::sanitize::sanitize(text), param.range).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::workloads::WORKLOADS;
    use proptest::prelude::*;

    #[test]
    fn displayed_values_parse_back() {
        for w in WORKLOADS {
            let plan = w.defaults();
            let mut again = plan.clone();
            for p in PARAMS {
                assert_eq!(p.set(&mut again, &p.get(&plan)), Ok(()), "{} {}", w.name, p.name);
                for choice in p.choices() {
                    let mut other = plan.clone();
                    assert_eq!(p.set(&mut other, choice), Ok(()));
                    assert_eq!(p.get(&other), *choice);
                }
            }
            assert_eq!(again, plan);
        }
    }

    #[test]
    fn every_parameter_is_used_and_workloads_list_known_parameters_once() {
        for p in PARAMS {
            assert!(WORKLOADS.iter().any(|w| w.params().contains(&p.name)), "{}", p.name);
            assert_eq!(PARAMS.iter().filter(|o| o.name == p.name).count(), 1);
        }
        for w in WORKLOADS {
            let mut names = w.params().to_vec();
            assert!(names.iter().all(|n| find_param(n).is_some()), "{}: {names:?}", w.name);
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), w.params().len(), "{}", w.name);
        }
    }

    #[test]
    fn invalid_texts_are_named_with_the_accepted_range() {
        let mut plan = BenchPlan::default();
        for (name, text, has) in [
            ("size", "4X", "units are k, M, G, T"),
            ("size", "99999999T", "too large"),
            ("block", "5G", "more than 64M"),
            ("depth", "-1", "1 to 4096"),
            ("depth", "99999999999", "too large"),
            ("read-pct", "300", "too large"),
            ("time", "nan", "number of seconds"),
            ("engine", "aio", "none of auto"),
            ("direct", "1", "neither on nor off"),
            ("bogus", "1", "no such parameter"),
        ] {
            let why = set_param(&mut plan, name, text).expect_err(name).0;
            assert!(why.contains(has), "{name} {text}: {why}");
        }
        assert_eq!(plan, BenchPlan::default());
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC*") {
            for p in PARAMS {
                let _ = p.set(&mut BenchPlan::default(), &text);
            }
        }
    }
}
