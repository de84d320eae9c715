//! The parameters of a run with name, unit, range, getter and setter: one list for the
//! command line and the screen, so that both accept the same values and report the same errors.

use super::plan::{BenchPlan, CacheLayout, EngineChoice};
use crate::units::{format_bytes_exact, parse_bytes};

/// A parameter of a plan.
pub struct BenchParam {
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
    pub set: fn(&mut BenchPlan, &str) -> Result<(), String>,
}

const SWITCH_VALUES: &[&str] = &["off", "on"];

const fn number_param(
    name: &'static str,
    unit: &'static str,
    range: &'static str,
    about: &'static str,
    get: fn(&BenchPlan) -> String,
    set: fn(&mut BenchPlan, &str) -> Result<(), String>,
) -> BenchParam {
    BenchParam { name, unit, range, about, choices: &[], get, set }
}

const fn switch_param(
    name: &'static str,
    about: &'static str,
    get: fn(&BenchPlan) -> String,
    set: fn(&mut BenchPlan, &str) -> Result<(), String>,
) -> BenchParam {
    BenchParam { name, unit: "", range: "on or off", about, choices: SWITCH_VALUES, get, set }
}

fn format_switch(yes: bool) -> String {
    SWITCH_VALUES[usize::from(yes)].into()
}

fn parse_switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("is neither on nor off".into()),
    }
}

fn parse_count<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err("is no whole number".into());
    }
    text.parse().map_err(|_| "is too large".into())
}

/// Seconds as milliseconds.
fn parse_seconds_as_ms(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(s) if (0.0..=1e7).contains(&s) => Ok((s * 1000.0).round() as u64),
        _ => Err("is not a number of seconds".into()),
    }
}

fn format_ms_as_seconds(ms: u64) -> String {
    (ms as f64 / 1e3).to_string()
}

const LAYOUTS: [(&str, CacheLayout); 3] =
    [("small", CacheLayout::Small), ("large", CacheLayout::Large), ("cold", CacheLayout::Cold)];

/// All parameters, the most used ones first.
pub const PARAMS: &[BenchParam] = &[
    number_param(
        "size",
        "",
        "one block to 1P (k, M, G, T)",
        "bytes of the file (of the memory, for fork)",
        |p| format_bytes_exact(p.size),
        |p, t| parse_bytes(t).map(|n| p.size = n),
    ),
    number_param(
        "block",
        "",
        "1 to 64M; with direct I/O a multiple of 512",
        "bytes of one operation, record or piece",
        |p| format_bytes_exact(p.block.into()),
        |p, t| {
            let n = parse_bytes(t)?;
            p.block = u32::try_from(n).map_err(|_| "is more than 64M")?;
            Ok(())
        },
    ),
    number_param(
        "depth",
        "",
        "1 to 4096",
        "operations in flight per job",
        |p| p.depth.to_string(),
        |p, t| parse_count(t).map(|n| p.depth = n),
    ),
    number_param(
        "jobs",
        "",
        "1 to 64",
        "worker threads, each with a depth of its own",
        |p| p.jobs.to_string(),
        |p, t| parse_count(t).map(|n| p.jobs = n),
    ),
    number_param(
        "read-pct",
        "%",
        "0 to 100",
        "reads among 100 operations",
        |p| p.read_pct.to_string(),
        |p, t| parse_count(t).map(|n| p.read_pct = n),
    ),
    switch_param(
        "readahead",
        "sequential reads through the page cache with the disk's read-ahead off and on (needs root)",
        |p| format_switch(p.readahead),
        |p, t| {
            p.readahead = parse_switch(t)?;
            // Read-ahead acts on buffered reads only; a sweep without it uses direct I/O.
            p.direct = !p.readahead;
            Ok(())
        },
    ),
    number_param(
        "transactions",
        "",
        "0 for as many as the time allows, or more",
        "transactions of the test",
        |p| p.txlog.transactions.to_string(),
        |p, t| parse_count(t).map(|n| p.txlog.transactions = n),
    ),
    BenchParam {
        name: "layout",
        unit: "",
        range: "small, large or cold",
        about: "how the store lies in the page cache at the start",
        choices: &["small", "large", "cold"],
        get: |p| LAYOUTS.iter().find(|(_, l)| *l == p.txlog.layout).map_or("", |(name, _)| name).into(),
        set: |p, t| {
            let found = LAYOUTS.iter().find(|(name, _)| *name == t);
            p.txlog.layout = found.ok_or("is neither small nor large nor cold")?.1;
            Ok(())
        },
    },
    number_param(
        "min",
        "",
        "1 to max",
        "fewest records of a transaction",
        |p| p.txlog.min_records.to_string(),
        |p, t| parse_count(t).map(|n| p.txlog.min_records = n),
    ),
    number_param(
        "max",
        "",
        "min to 1000000",
        "most records of a transaction",
        |p| p.txlog.max_records.to_string(),
        |p, t| parse_count(t).map(|n| p.txlog.max_records = n),
    ),
    number_param(
        "time",
        "s",
        "0 (no limit) to 604800",
        "seconds that are counted, of every step where there are several",
        |p| format_ms_as_seconds(p.time_ms),
        |p, t| parse_seconds_as_ms(t).map(|n| p.time_ms = n),
    ),
    number_param(
        "rate",
        "/s",
        "0 (no cap) or more",
        "operations per second at most, all jobs together",
        |p| p.rate_iops.to_string(),
        |p, t| parse_count(t).map(|n| p.rate_iops = n),
    ),
    number_param(
        "rate-bytes",
        "/s",
        "0 (no cap) or more; k, M, G",
        "bytes per second at most, all jobs together",
        |p| format_bytes_exact(p.rate_bytes),
        |p, t| parse_bytes(t).map(|n| p.rate_bytes = n),
    ),
    BenchParam {
        name: "direct",
        unit: "",
        range: "on: past the page cache (O_DIRECT); off: through it",
        about: "whether operations go past the page cache",
        choices: SWITCH_VALUES,
        get: |p| format_switch(p.direct),
        set: |p, t| parse_switch(t).map(|v| p.direct = v),
    },
    number_param(
        "fsync",
        "",
        "0 (never) or more",
        "fdatasync after so many writes",
        |p| p.fsync_every.to_string(),
        |p, t| parse_count(t).map(|n| p.fsync_every = n),
    ),
    number_param(
        "ramp",
        "s",
        "0 to 3600",
        "seconds at the start that are not counted",
        |p| format_ms_as_seconds(p.ramp_ms),
        |p, t| parse_seconds_as_ms(t).map(|n| p.ramp_ms = n),
    ),
    number_param(
        "io-size",
        "",
        "0 (no limit) or more; k, M, G, T",
        "ends after so many counted bytes",
        |p| format_bytes_exact(p.io_bytes),
        |p, t| parse_bytes(t).map(|n| p.io_bytes = n),
    ),
    switch_param(
        "idle",
        "served only when nobody else wants the disk",
        |p| format_switch(p.idle),
        |p, t| parse_switch(t).map(|v| p.idle = v),
    ),
    number_param(
        "stall-limit",
        "s",
        "1 to 3600",
        "gives up when nothing has moved for so long",
        |p| format_ms_as_seconds(p.stall_limit_ms),
        |p, t| parse_seconds_as_ms(t).map(|n| p.stall_limit_ms = n),
    ),
    BenchParam {
        name: "engine",
        unit: "",
        range: "auto: io_uring, or threads where it is refused; uring; threads",
        about: "which way operations reach the kernel",
        choices: &["auto", "uring", "threads"],
        get: |p| engine_name(p.engine).into(),
        set: |p, t| {
            let all = [EngineChoice::Auto, EngineChoice::Uring, EngineChoice::Threads];
            p.engine = all.into_iter().find(|e| engine_name(*e) == t).ok_or("is none of auto, uring, threads")?;
            Ok(())
        },
    },
    switch_param(
        "refill",
        "fresh random data for every write, for stores that compress",
        |p| format_switch(p.refill),
        |p, t| parse_switch(t).map(|v| p.refill = v),
    ),
    switch_param(
        "sqpoll",
        "io_uring with a submitting kernel thread, which costs a core",
        |p| format_switch(p.sqpoll),
        |p, t| parse_switch(t).map(|v| p.sqpoll = v),
    ),
    switch_param(
        "iopoll",
        "io_uring with polled completions; the device needs polling queues",
        |p| format_switch(p.iopoll),
        |p, t| parse_switch(t).map(|v| p.iopoll = v),
    ),
    switch_param(
        "mmap",
        "the store through a memory mapping; off: pread and pwrite",
        |p| format_switch(p.txlog.mmap),
        |p, t| parse_switch(t).map(|v| p.txlog.mmap = v),
    ),
    switch_param(
        "readrecords",
        "read the records first",
        |p| format_switch(p.txlog.read),
        |p, t| parse_switch(t).map(|v| p.txlog.read = v),
    ),
    switch_param(
        "writelog",
        "append the records to the log",
        |p| format_switch(p.txlog.write_log),
        |p, t| parse_switch(t).map(|v| p.txlog.write_log = v),
    ),
    switch_param(
        "synclog",
        "sync the log at the end of every transaction",
        |p| format_switch(p.txlog.sync),
        |p, t| parse_switch(t).map(|v| p.txlog.sync = v),
    ),
    switch_param(
        "writestore",
        "write the records back to the store",
        |p| format_switch(p.txlog.write_store),
        |p, t| parse_switch(t).map(|v| p.txlog.write_store = v),
    ),
    number_param(
        "seed",
        "",
        "any whole number",
        "of positions and data: the same seed, the same work",
        |p| p.seed.to_string(),
        |p, t| parse_count(t).map(|n| p.seed = n),
    ),
];

fn engine_name(engine: EngineChoice) -> &'static str {
    match engine {
        EngineChoice::Auto => "auto",
        EngineChoice::Uring => "uring",
        EngineChoice::Threads => "threads",
    }
}

/// The parameter called `name`.
pub fn find_param(name: &str) -> Option<&'static BenchParam> {
    PARAMS.iter().find(|p| p.name == name)
}

/// Sets the parameter called `name` from `text`. The error names both.
pub fn set_param(plan: &mut BenchPlan, name: &str, text: &str) -> Result<(), String> {
    let param = find_param(name).ok_or_else(|| format!("{name}: no such parameter"))?;
    (param.set)(plan, text)
        .map_err(|why| format!("{name} \"{}\": {why}; {}", crate::sanitize::sanitize(text), param.range))
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
                assert_eq!((p.set)(&mut again, &(p.get)(&plan)), Ok(()), "{} {}", w.name(), p.name);
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
            assert!(names.iter().all(|n| find_param(n).is_some()), "{}: {names:?}", w.name());
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), w.params().len(), "{}", w.name());
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
            let why = set_param(&mut plan, name, text).expect_err(name);
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
