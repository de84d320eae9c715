//! `bench`: profiles and results, a run from the command line, two results compared.

use super::follow::{follow, overwrite};
use super::{FAILED, FINE, PRIVILEGE, REFUSED, USAGE, complain};
use crate::bench::host::Running;
use crate::bench::message::{Message, Progress};
use crate::bench::plan::{EngineChoice, Layout, Plan};
use crate::bench::report::{self, End, Report};
use crate::bench::session::Counters;
use crate::bench::store::{Kept, Store};
use crate::bench::workloads::{self, WORKLOADS, Workload};
use crate::bench::{child, compare, fiojob};
use crate::cli::{Bench, BenchFormat, BenchLoad, BenchRun, Engine, StoreLayout};
use crate::collect;
use crate::model::sample::Sample;
use crate::root::Root;
use crate::units::bytes_long;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Runs a subcommand of `bench`.
pub fn run(root: Root, what: Bench) -> anyhow::Result<u8> {
    match what {
        Bench::List => list(),
        Bench::Run(options) => start(&root, &options),
        Bench::Show { result, format } => show(&result, format),
        Bench::Compare { a, b } => compare_results(&a, &b),
    }
}

/// The measuring child: reads its plan from standard input.
pub fn child(root: Root) -> anyhow::Result<u8> {
    let source = collect::sources(&root).into_iter().find(|s| s.name().ends_with("diskstats"));
    let source = Mutex::new(source);
    let counters: Counters = Arc::new(move || {
        let mut sample = Sample::default();
        if let Some(source) = source.lock().unwrap_or_else(|e| e.into_inner()).as_mut() {
            source.read()(&mut sample);
        }
        sample.disks.ok().cloned().unwrap_or_default()
    });
    child::main(root, counters)?;
    Ok(FINE)
}

pub(super) fn say(text: &str) -> anyhow::Result<u8> {
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(FINE)
}

pub(super) fn wrong(why: &str) -> anyhow::Result<u8> {
    complain(why);
    Ok(USAGE)
}

fn list() -> anyhow::Result<u8> {
    let mut out = String::from("Profiles (iotop-plus bench run PROFILE DIRECTORY):\n");
    for w in WORKLOADS {
        out.push_str(&format!("  {:<10} {}\n", w.name(), w.about()));
    }
    if let Some(store) = Store::of_person() {
        let entries = store.list().map_err(anyhow::Error::msg)?;
        if !entries.is_empty() {
            out.push_str(&format!(
                "\nResults in {}:\n",
                crate::text::clean(store.path().as_os_str().as_encoded_bytes())
            ));
        }
        for e in entries {
            let about = store.load::<Report>(&e.id).map_or_else(|why| why, |r| headline(&r));
            out.push_str(&format!("  {:>3}  {:<28} {about}\n", e.number, e.id));
        }
    }
    say(&out)
}

/// A result in one line.
fn headline(r: &Report) -> String {
    let place = r.target.as_ref().map_or("", |t| t.directory.as_str());
    let best = r.parts.iter().max_by(|a, b| a.iops().total_cmp(&b.iops()));
    let rate = best.filter(|p| p.read.bytes + p.write.bytes > 0).map_or(String::new(), |p| {
        format!(", {:.0} IOPS, {}/s", p.iops(), bytes_long(p.bytes_per_s() as u64))
    });
    let end = if r.end == End::Complete { "" } else { ", not complete" };
    format!("{} {place}{rate}{end}", r.time)
}

/// Where results of a kind are kept.
pub(super) fn store<T: Kept>() -> anyhow::Result<Store> {
    Store::of_person_for::<T>()
        .ok_or_else(|| anyhow::anyhow!("no home directory of this user: set XDG_STATE_HOME to keep results"))
}

fn show(name: &str, format: BenchFormat) -> anyhow::Result<u8> {
    let report: Report = store::<Report>()?.load(name).map_err(anyhow::Error::msg)?;
    say(&written(&report, format)?)
}

fn compare_results(a: &str, b: &str) -> anyhow::Result<u8> {
    let store = store::<Report>()?;
    let load = |name| store.load::<Report>(name).map_err(anyhow::Error::msg);
    let (a, b) = (load(a)?, load(b)?);
    match compare::text(&a, &b) {
        Ok(text) => say(&text),
        Err(why) => wrong(&why),
    }
}

fn written(report: &Report, format: BenchFormat) -> anyhow::Result<String> {
    Ok(match format {
        BenchFormat::Text => report::text::report(report),
        BenchFormat::Markdown => report::markdown::report(report),
        BenchFormat::Json => serde_json::to_string(report)? + "\n",
        BenchFormat::Fio => serde_json::to_string_pretty(&report::fio::document(report))? + "\n",
    })
}

/// The plan of the command line.
fn plan(options: &BenchRun) -> Result<(&'static dyn Workload, Plan), String> {
    plan_of(&options.profile, options.directory.as_deref(), &options.load, &options.set)
}

/// The plan of a profile, or of a fio job file, in `directory`, as `load` and the pairs of `txlog` change it.
pub(super) fn plan_of(
    profile: &str,
    directory: Option<&Path>,
    load: &BenchLoad,
    txlog: &[String],
) -> Result<(&'static dyn Workload, Plan), String> {
    let mut plan = if profile.ends_with(".fio") {
        let text = std::fs::read_to_string(profile)
            .map_err(|e| format!("{profile}: {}", crate::model::section::describe(&e)))?;
        fiojob::parse(&text).map_err(|e| format!("{profile}: {e}"))?
    } else {
        let workload = workloads::find(profile)
            .ok_or_else(|| format!("no profile {profile}; `iotop-plus bench list` shows them"))?;
        workload.defaults()
    };
    let workload = workloads::find(&plan.profile).ok_or("no such profile")?;
    if let Some(directory) = directory {
        plan.directory = directory.to_owned();
    }
    fill(&mut plan, load)?;
    fill_txlog(&mut plan, load, txlog)?;
    if workload.needs_directory() {
        if plan.directory.as_os_str().is_empty() {
            return Err(format!("{} needs a directory on the storage to measure", plan.profile));
        }
        // The child has the same working directory, but results are read elsewhere.
        plan.directory = std::path::absolute(&plan.directory).map_err(|e| e.to_string())?;
        plan.network = plan.network.map(|d| std::path::absolute(&d).unwrap_or(d));
    } else if directory.is_some() {
        return Err(format!("{} takes no directory", plan.profile));
    }
    plan.check().and_then(|()| workload.check(&plan))?;
    Ok((workload, plan))
}

fn fill(plan: &mut Plan, o: &BenchLoad) -> Result<(), String> {
    fn set<T: Copy>(field: &mut T, value: Option<T>) {
        if let Some(value) = value {
            *field = value;
        }
    }
    let ms = |what: &str, s: Option<f64>| match s {
        None => Ok(None),
        Some(s) if (0.0..=1e7).contains(&s) => Ok(Some((s * 1000.0).round() as u64)),
        Some(s) => Err(format!("{what} {s}: not a number of seconds")),
    };
    plan.network.clone_from(&o.network);
    set(&mut plan.size, o.size);
    let block = o.block.map(u32::try_from).transpose().map_err(|_| "block size: too large")?;
    set(&mut plan.block, block);
    set(&mut plan.depth, o.depth);
    set(&mut plan.jobs, o.jobs);
    set(&mut plan.read_pct, o.read_pct);
    plan.direct = (plan.direct || o.direct) && !o.buffered;
    set(&mut plan.fsync_every, o.fsync);
    set(&mut plan.rate_iops, o.rate);
    set(&mut plan.rate_bytes, o.rate_bytes);
    plan.refill |= o.refill;
    set(&mut plan.time_ms, ms("time", o.time)?);
    set(&mut plan.ramp_ms, ms("ramp", o.ramp)?);
    set(&mut plan.io_bytes, o.io_size);
    set(&mut plan.stall_limit_ms, ms("stall limit", o.stall_limit)?);
    plan.idle |= o.idle;
    set(
        &mut plan.engine,
        o.engine.map(|e| match e {
            Engine::Auto => EngineChoice::Auto,
            Engine::Uring => EngineChoice::Uring,
            Engine::Threads => EngineChoice::Threads,
        }),
    );
    plan.sqpoll |= o.sqpoll;
    plan.iopoll |= o.iopoll;
    set(&mut plan.seed, o.seed);
    Ok(())
}

fn fill_txlog(plan: &mut Plan, o: &BenchLoad, pairs: &[String]) -> Result<(), String> {
    let flags = o.no_mmap || o.nosync || o.nowritelog || o.nowritestore || o.noread;
    let used = !pairs.is_empty() || flags || o.layout.is_some();
    if used && plan.profile != "txlog" {
        return Err(
            "transactions, min, max, --layout, --no-mmap, --nosync, --nowritelog, --nowritestore, --noread are txlog's"
                .into(),
        );
    }
    let t = &mut plan.txlog;
    if o.time.is_some_and(|s| s > 0.0) {
        t.transactions = 0; // as many as the time allows, unless a number is given, too
    }
    for pair in pairs {
        let (key, n) = pair.split_once('=').ok_or_else(|| format!("{pair}: KEY=N is needed"))?;
        let n = n.parse().map_err(|_| format!("{pair}: {n} is no number"))?;
        match key {
            "transactions" => t.transactions = n,
            "min" => t.min_records = n,
            "max" => t.max_records = n,
            _ => return Err(format!("{pair}: transactions, min or max")),
        }
    }
    if let Some(layout) = o.layout {
        t.layout = match layout {
            StoreLayout::Small => Layout::Small,
            StoreLayout::Large => Layout::Large,
            StoreLayout::Cold => Layout::Cold,
        };
    }
    t.mmap &= !o.no_mmap;
    t.sync &= !o.nosync;
    t.write_log &= !o.nowritelog;
    t.write_store &= !o.nowritestore;
    t.read &= !o.noread;
    Ok(())
}

fn start(root: &Root, options: &BenchRun) -> anyhow::Result<u8> {
    let (workload, plan) = match plan(options) {
        Ok(done) => done,
        Err(why) => return wrong(&why),
    };
    if options.fio_job {
        return match fiojob::emit(&plan) {
            Ok(text) => say(&text),
            Err(why) => wrong(&why),
        };
    }
    let described = describe(workload, &plan);
    if options.dry_run {
        return say(&described);
    }
    if !options.quiet {
        eprint!("{described}");
    }
    let last = match watched(root, &plan, options.quiet)? {
        Message::Report(report) => *report,
        Message::Refused(refused) => {
            complain(&format!("refused: {}", refused.why));
            return Ok(if refused.privilege { PRIVILEGE } else { REFUSED });
        }
        Message::Failed(why) => anyhow::bail!("{why}"),
        Message::Progress(_) | Message::Note(_) => anyhow::bail!("the measuring process broke off"),
    };
    finish(last, options)
}

/// Writes the result and keeps it.
fn finish(mut report: Report, options: &BenchRun) -> anyhow::Result<u8> {
    if !options.no_keep {
        match Store::of_person().map(|s| s.keep(&report)) {
            Some(Ok(id)) => report.id = id,
            Some(Err(why)) => complain(&format!("result not kept: {why}")),
            None => complain("result not kept: no home directory of this user (set XDG_STATE_HOME)"),
        }
    }
    say(&written(&report, options.format)?)?;
    Ok(if matches!(report.end, End::Failed(_) | End::Stalled(_)) { FAILED } else { FINE })
}

/// What is going to happen, before it does.
pub(super) fn describe(workload: &dyn Workload, plan: &Plan) -> String {
    let mut out = format!("{}: {}\n", workload.name(), workload.about());
    if workload.needs_directory() {
        let path = |p: &Path| crate::text::clean(p.as_os_str().as_encoded_bytes());
        out.push_str(&format!(
            "  in {}, {} of space\n",
            path(&plan.directory),
            bytes_long(workload.footprint(plan))
        ));
    }
    for line in workload.describe(plan) {
        out.push_str(&format!("  {line}\n"));
    }
    out
}

/// Runs the plan in its child and shows progress until the last message.
fn watched(root: &Root, plan: &Plan, quiet: bool) -> anyhow::Result<Message> {
    let live = !quiet && std::io::stderr().is_terminal();
    let last = follow(
        |sink| Running::start(root, plan, sink),
        |message| match message {
            Message::Progress(p) if live => overwrite(&told(&p)),
            Message::Note(note) if !quiet => {
                erase(live);
                complain(&note);
            }
            _ => {}
        },
    );
    erase(live);
    last
}

/// Progress in a line.
pub(super) fn told(p: &Progress) -> String {
    let done = p.done.map_or(String::new(), |d| format!(" {:3.0} %", d * 100.0));
    let mut line = format!("{}{done}", p.phase);
    if p.ramping {
        line.push_str(" (ramp-up)");
    } else if p.counts.iter().any(|n| *n > 0) {
        let us = |ns: Option<u64>| ns.map_or("-".into(), |n| format!("{:.0}us", n as f64 / 1e3));
        line.push_str(&format!(
            "  {:.0} IOPS  {}/s  p50 {} p99 {}",
            p.point.read_iops + p.point.write_iops,
            bytes_long((p.point.read_bytes_per_s + p.point.write_bytes_per_s) as u64),
            us(p.point.p50_ns),
            us(p.point.p99_ns)
        ));
    }
    if p.silent_ms >= 1000 {
        line.push_str(&format!("  nothing for {} s", p.silent_ms / 1000));
    }
    line
}

pub(super) fn erase(live: bool) {
    if live {
        overwrite("");
    }
}
