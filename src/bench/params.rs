//! The parameters of a run with name, unit, range, getter and setter: one list for the
//! command line and the screen, so that both accept the same values and report the same errors.

use super::plan::{BenchPlan, CacheLayout, EngineChoice, PlanError};
use crate::units::{format_bytes_exact, parse_bytes};
use std::fmt::Display;
use std::marker::PhantomData;
use std::str::FromStr;

pub(crate) struct BenchParam {
    /// The option of `bench run`, or the key of its `--set`.
    pub name: &'static str,
    /// Unit of a number; empty for sizes and choices.
    pub unit: &'static str,
    /// Accepted values, for messages.
    pub range: &'static str,
    /// Description.
    pub about: &'static str,
    /// All values of a choice; else empty.
    pub choices: &'static [&'static str],
    /// Its value in a plan, in a form that `set` accepts.
    pub get: fn(&BenchPlan) -> String,
    /// Sets it from a text. The error says what is wrong with the text;
    /// [`BenchPlan::check`] checks the plan as a whole.
    pub set: fn(&mut BenchPlan, &str) -> Result<(), PlanError>,
}

/// How values of one kind are written.
trait Notation {
    type Value;
    const CHOICES: &'static [&'static str] = &[];
    fn format(value: &Self::Value) -> String;
    fn parse(text: &str) -> Result<Self::Value, PlanError>;
}

struct Count<T>(PhantomData<T>);

impl<T: FromStr + Display> Notation for Count<T> {
    type Value = T;

    fn format(value: &T) -> String {
        value.to_string()
    }

    fn parse(text: &str) -> Result<T, PlanError> {
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err("is no whole number".into());
        }
        text.parse().map_err(|_| "is too large".into())
    }
}

struct Bytes<T>(PhantomData<T>);

impl<T: Copy + Into<u64> + TryFrom<u64>> Notation for Bytes<T> {
    type Value = T;

    fn format(value: &T) -> String {
        format_bytes_exact((*value).into())
    }

    fn parse(text: &str) -> Result<T, PlanError> {
        T::try_from(parse_bytes(text)?).map_err(|_| "is more than 64M".into())
    }
}

/// Seconds, of a field in ms.
struct Seconds;

impl Notation for Seconds {
    type Value = u64;

    fn format(ms: &u64) -> String {
        (*ms as f64 / 1e3).to_string()
    }

    fn parse(text: &str) -> Result<u64, PlanError> {
        match text.parse::<f64>() {
            Ok(s) if (0.0..=1e7).contains(&s) => Ok((s * 1000.0).round() as u64),
            _ => Err("is not a number of seconds".into()),
        }
    }
}

/// One of a few values: names, the values in the same order, what is said of any other text.
macro_rules! choice {
    ($value:ty, $names:expr, $values:expr, $invalid:literal) => {
        impl Notation for $value {
            type Value = $value;
            const CHOICES: &'static [&'static str] = &$names;

            fn format(value: &$value) -> String {
                $values.iter().position(|v| v == value).map_or("", |at| $names[at]).into()
            }

            fn parse(text: &str) -> Result<$value, PlanError> {
                $names.iter().position(|name| *name == text).map(|at| $values[at]).ok_or($invalid.into())
            }
        }
    };
}

choice!(bool, ["off", "on"], [false, true], "is neither on nor off");
choice!(
    CacheLayout,
    ["small", "large", "cold"],
    [CacheLayout::Small, CacheLayout::Large, CacheLayout::Cold],
    "is neither small nor large nor cold"
);
choice!(
    EngineChoice,
    ["auto", "uring", "threads"],
    [EngineChoice::Auto, EngineChoice::Uring, EngineChoice::Threads],
    "is none of auto, uring, threads"
);

/// Rows of name, unit, notation, field, range, description, and what else follows from the value.
macro_rules! params {
    ($(
        $name:literal $unit:literal $notation:ty, $($field:ident).+, $range:literal, $about:literal $(, $then:path)?;
    )*) => {
        &[$(BenchParam {
            name: $name,
            unit: $unit,
            range: $range,
            about: $about,
            choices: <$notation>::CHOICES,
            get: |plan| <$notation>::format(&plan.$($field).+),
            set: |plan, text| {
                plan.$($field).+ = <$notation>::parse(text)?;
                $($then(plan);)?
                Ok(())
            },
        }),*]
    };
}

/// Read-ahead acts on buffered reads only; a sweep without it uses direct I/O.
fn adapt_direct_to_readahead(plan: &mut BenchPlan) {
    plan.direct = !plan.readahead;
}

pub(crate) const PARAMS: &[BenchParam] = params! {
    "size" "" Bytes<u64>, size, "one block to 1P (k, M, G, T)", "bytes of the file (of the memory, for fork)";
    "block" "" Bytes<u32>, block, "1 to 64M; with direct I/O a multiple of 512",
        "bytes of one operation, record or piece";
    "depth" "" Count<u32>, depth, "1 to 4096", "operations in flight per job";
    "jobs" "" Count<u32>, jobs, "1 to 64", "worker threads, each with a depth of its own";
    "read-pct" "%" Count<u8>, read_pct, "0 to 100", "reads among 100 operations";
    "readahead" "" bool, readahead, "on or off",
        "sequential reads through the page cache with the disk's read-ahead off and on (needs root)",
        adapt_direct_to_readahead;
    "transactions" "" Count<u64>, txlog.transactions, "0 for as many as the time allows, or more",
        "transactions of the test";
    "layout" "" CacheLayout, txlog.layout, "small, large or cold", "how the store lies in the page cache at the start";
    "min" "" Count<u64>, txlog.min_records, "1 to max", "fewest records of a transaction";
    "max" "" Count<u64>, txlog.max_records, "min to 1000000", "most records of a transaction";
    "time" "s" Seconds, time_ms, "0 (no limit) to 604800",
        "seconds that are counted, of every step where there are several";
    "rate" "/s" Count<u64>, rate_iops, "0 (no cap) or more", "operations per second at most, all jobs together";
    "rate-bytes" "/s" Bytes<u64>, rate_bytes, "0 (no cap) or more; k, M, G",
        "bytes per second at most, all jobs together";
    "direct" "" bool, direct, "on: past the page cache (O_DIRECT); off: through it",
        "whether operations go past the page cache";
    "fsync" "" Count<u64>, fsync_every, "0 (never) or more", "fdatasync after so many writes";
    "ramp" "s" Seconds, ramp_ms, "0 to 3600", "seconds at the start that are not counted";
    "io-size" "" Bytes<u64>, io_bytes, "0 (no limit) or more; k, M, G, T", "ends after so many counted bytes";
    "idle" "" bool, idle, "on or off", "served only when nobody else wants the disk";
    "stall-limit" "s" Seconds, stall_limit_ms, "1 to 3600", "gives up when nothing has moved for so long";
    "engine" "" EngineChoice, engine, "auto: io_uring, or threads where it is refused; uring; threads",
        "which way operations reach the kernel";
    "refill" "" bool, refill, "on or off", "fresh random data for every write, for stores that compress";
    "sqpoll" "" bool, sqpoll, "on or off", "io_uring with a submitting kernel thread, which costs a core";
    "iopoll" "" bool, iopoll, "on or off", "io_uring with polled completions; the device needs polling queues";
    "mmap" "" bool, txlog.mmap, "on or off", "the store through a memory mapping; off: pread and pwrite";
    "readrecords" "" bool, txlog.read, "on or off", "read the records first";
    "writelog" "" bool, txlog.write_log, "on or off", "append the records to the log";
    "synclog" "" bool, txlog.sync, "on or off", "sync the log at the end of every transaction";
    "writestore" "" bool, txlog.write_store, "on or off", "write the records back to the store";
    "seed" "" Count<u64>, seed, "any whole number", "of positions and data: the same seed, the same work";
};

pub(crate) fn find_param(name: &str) -> Option<&'static BenchParam> {
    PARAMS.iter().find(|p| p.name == name)
}

/// Sets the parameter called `name` from `text`. The error names both.
pub(crate) fn set_param(plan: &mut BenchPlan, name: &str, text: &str) -> Result<(), PlanError> {
    let param = find_param(name).ok_or_else(|| format!("{name}: no such parameter"))?;
    (param.set)(plan, text)
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
                assert_eq!((p.set)(&mut again, &(p.get)(&plan)), Ok(()), "{} {}", w.name, p.name);
                for choice in p.choices {
                    let mut other = plan.clone();
                    assert_eq!((p.set)(&mut other, choice), Ok(()));
                    assert_eq!((p.get)(&other), *choice);
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
                let _ = (p.set)(&mut BenchPlan::default(), &text);
            }
        }
    }
}
