//! The parameters of a run, each with its name, unit, range and its way into a plan: one list, read by the
//! command line and by the screen, so that both take the same texts and refuse them with the same words.

use super::plan::{EngineChoice, Layout, Plan};
use crate::units::{parse_bytes, format_bytes_exact};

/// A parameter of a plan.
pub struct Param {
    /// As it is called: the option of `bench run`, or the key of its `--set`.
    pub name: &'static str,
    /// What a number counts; empty for sizes and choices, which carry their unit.
    pub unit: &'static str,
    /// What may be given, in words.
    pub range: &'static str,
    /// What it is.
    pub about: &'static str,
    /// All it can be, where that is a handful of words; else empty.
    pub choices: &'static [&'static str],
    /// Its value in `plan`, in a form that `set` takes.
    pub get: fn(&Plan) -> String,
    /// Puts a text into `plan`. The error says what is wrong with the text; whether the plan as a whole
    /// holds is for [`Plan::check`] to say.
    pub set: fn(&mut Plan, &str) -> Result<(), String>,
}

const YES_NO: &[&str] = &["off", "on"];

const fn number(
    name: &'static str,
    unit: &'static str,
    range: &'static str,
    about: &'static str,
    get: fn(&Plan) -> String,
    set: fn(&mut Plan, &str) -> Result<(), String>,
) -> Param {
    Param { name, unit, range, about, choices: &[], get, set }
}

const fn switch(
    name: &'static str,
    about: &'static str,
    get: fn(&Plan) -> String,
    set: fn(&mut Plan, &str) -> Result<(), String>,
) -> Param {
    Param { name, unit: "", range: "on or off", about, choices: YES_NO, get, set }
}

fn on(yes: bool) -> String {
    YES_NO[usize::from(yes)].into()
}

fn yes(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("is neither on nor off".into()),
    }
}

fn count<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err("is no whole number".into());
    }
    text.parse().map_err(|_| "is too large".into())
}

/// Seconds as milliseconds.
fn ms(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(s) if (0.0..=1e7).contains(&s) => Ok((s * 1000.0).round() as u64),
        _ => Err("is not a number of seconds".into()),
    }
}

fn secs(ms: u64) -> String {
    (ms as f64 / 1e3).to_string()
}

const LAYOUTS: [(&str, Layout); 3] =
    [("small", Layout::Small), ("large", Layout::Large), ("cold", Layout::Cold)];

/// Every parameter, those that are changed most first.
pub const PARAMS: &[Param] = &[
    number(
        "size",
        "",
        "one block to 1P (k, M, G, T)",
        "bytes of the file (of the memory, for fork)",
        |p| format_bytes_exact(p.size),
        |p, t| parse_bytes(t).map(|n| p.size = n),
    ),
    number(
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
    number(
        "depth",
        "",
        "1 to 4096",
        "operations in flight per job",
        |p| p.depth.to_string(),
        |p, t| count(t).map(|n| p.depth = n),
    ),
    number(
        "jobs",
        "",
        "1 to 64",
        "worker threads, each with a depth of its own",
        |p| p.jobs.to_string(),
        |p, t| count(t).map(|n| p.jobs = n),
    ),
    number(
        "read-pct",
        "%",
        "0 to 100",
        "reads among 100 operations",
        |p| p.read_pct.to_string(),
        |p, t| count(t).map(|n| p.read_pct = n),
    ),
    switch(
        "readahead",
        "sequential reads through the page cache with the disk's read-ahead off and on (needs root)",
        |p| on(p.readahead),
        |p, t| {
            p.readahead = yes(t)?;
            // What it acts on; and what a sweep does otherwise.
            p.direct = !p.readahead;
            Ok(())
        },
    ),
    number(
        "transactions",
        "",
        "0 for as many as the time allows, or more",
        "transactions of the test",
        |p| p.txlog.transactions.to_string(),
        |p, t| count(t).map(|n| p.txlog.transactions = n),
    ),
    Param {
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
    number(
        "min",
        "",
        "1 to max",
        "fewest records of a transaction",
        |p| p.txlog.min_records.to_string(),
        |p, t| count(t).map(|n| p.txlog.min_records = n),
    ),
    number(
        "max",
        "",
        "min to 1000000",
        "most records of a transaction",
        |p| p.txlog.max_records.to_string(),
        |p, t| count(t).map(|n| p.txlog.max_records = n),
    ),
    number(
        "time",
        "s",
        "0 (no limit) to 604800",
        "seconds that are counted, of every step where there are several",
        |p| secs(p.time_ms),
        |p, t| ms(t).map(|n| p.time_ms = n),
    ),
    number(
        "rate",
        "/s",
        "0 (no cap) or more",
        "operations per second at most, all jobs together",
        |p| p.rate_iops.to_string(),
        |p, t| count(t).map(|n| p.rate_iops = n),
    ),
    number(
        "rate-bytes",
        "/s",
        "0 (no cap) or more; k, M, G",
        "bytes per second at most, all jobs together",
        |p| format_bytes_exact(p.rate_bytes),
        |p, t| parse_bytes(t).map(|n| p.rate_bytes = n),
    ),
    Param {
        name: "direct",
        unit: "",
        range: "on: past the page cache (O_DIRECT); off: through it",
        about: "whether operations go past the page cache",
        choices: YES_NO,
        get: |p| on(p.direct),
        set: |p, t| yes(t).map(|v| p.direct = v),
    },
    number(
        "fsync",
        "",
        "0 (never) or more",
        "fdatasync after so many writes",
        |p| p.fsync_every.to_string(),
        |p, t| count(t).map(|n| p.fsync_every = n),
    ),
    number(
        "ramp",
        "s",
        "0 to 3600",
        "seconds at the start that are not counted",
        |p| secs(p.ramp_ms),
        |p, t| ms(t).map(|n| p.ramp_ms = n),
    ),
    number(
        "io-size",
        "",
        "0 (no limit) or more; k, M, G, T",
        "ends after so many counted bytes",
        |p| format_bytes_exact(p.io_bytes),
        |p, t| parse_bytes(t).map(|n| p.io_bytes = n),
    ),
    switch(
        "idle",
        "served only when nobody else wants the disk",
        |p| on(p.idle),
        |p, t| yes(t).map(|v| p.idle = v),
    ),
    number(
        "stall-limit",
        "s",
        "1 to 3600",
        "gives up when nothing has moved for so long",
        |p| secs(p.stall_limit_ms),
        |p, t| ms(t).map(|n| p.stall_limit_ms = n),
    ),
    Param {
        name: "engine",
        unit: "",
        range: "auto: io_uring, or threads where it is refused; uring; threads",
        about: "which way operations reach the kernel",
        choices: &["auto", "uring", "threads"],
        get: |p| engine_name(p.engine).into(),
        set: |p, t| {
            let all = [EngineChoice::Auto, EngineChoice::Uring, EngineChoice::Threads];
            p.engine =
                all.into_iter().find(|e| engine_name(*e) == t).ok_or("is none of auto, uring, threads")?;
            Ok(())
        },
    },
    switch(
        "refill",
        "fresh random data for every write, for stores that compress",
        |p| on(p.refill),
        |p, t| yes(t).map(|v| p.refill = v),
    ),
    switch(
        "sqpoll",
        "io_uring with a submitting kernel thread, which costs a core",
        |p| on(p.sqpoll),
        |p, t| yes(t).map(|v| p.sqpoll = v),
    ),
    switch(
        "iopoll",
        "io_uring with polled completions; the device needs polling queues",
        |p| on(p.iopoll),
        |p, t| yes(t).map(|v| p.iopoll = v),
    ),
    switch(
        "mmap",
        "the store through a memory mapping; off: pread and pwrite",
        |p| on(p.txlog.mmap),
        |p, t| yes(t).map(|v| p.txlog.mmap = v),
    ),
    switch(
        "readrecords",
        "read the records first",
        |p| on(p.txlog.read),
        |p, t| yes(t).map(|v| p.txlog.read = v),
    ),
    switch(
        "writelog",
        "append the records to the log",
        |p| on(p.txlog.write_log),
        |p, t| yes(t).map(|v| p.txlog.write_log = v),
    ),
    switch(
        "synclog",
        "sync the log at the end of every transaction",
        |p| on(p.txlog.sync),
        |p, t| yes(t).map(|v| p.txlog.sync = v),
    ),
    switch(
        "writestore",
        "write the records back to the store",
        |p| on(p.txlog.write_store),
        |p, t| yes(t).map(|v| p.txlog.write_store = v),
    ),
    number(
        "seed",
        "",
        "any whole number",
        "of positions and data: the same seed, the same work",
        |p| p.seed.to_string(),
        |p, t| count(t).map(|n| p.seed = n),
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
pub fn find(name: &str) -> Option<&'static Param> {
    PARAMS.iter().find(|p| p.name == name)
}

/// Puts `text` into `plan` as the parameter called `name`. The error names the parameter and the text.
pub fn set(plan: &mut Plan, name: &str, text: &str) -> Result<(), String> {
    let param = find(name).ok_or_else(|| format!("{name}: no such parameter"))?;
    (param.set)(plan, text)
        .map_err(|why| format!("{name} \"{}\": {why}; {}", crate::text::sanitize(text), param.range))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::workloads::WORKLOADS;
    use proptest::prelude::*;

    #[test]
    fn what_is_shown_is_what_is_taken() {
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
    fn every_parameter_is_somebodys_and_each_workload_names_known_ones_once() {
        for p in PARAMS {
            assert!(WORKLOADS.iter().any(|w| w.takes().contains(&p.name)), "{}", p.name);
            assert_eq!(PARAMS.iter().filter(|o| o.name == p.name).count(), 1);
        }
        for w in WORKLOADS {
            let mut names = w.takes().to_vec();
            assert!(names.iter().all(|n| find(n).is_some()), "{}: {names:?}", w.name());
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), w.takes().len(), "{}", w.name());
        }
    }

    #[test]
    fn wrong_texts_are_named_with_what_would_do() {
        let mut plan = Plan::default();
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
            let why = set(&mut plan, name, text).expect_err(name);
            assert!(why.contains(has), "{name} {text}: {why}");
        }
        assert_eq!(plan, Plan::default());
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC*") {
            for p in PARAMS {
                let _ = (p.set)(&mut Plan::default(), &text);
            }
        }
    }
}
