//! `experiment`: a new one from the command line, and the kept ones.

use super::bench::{describe, erase, plan_of, say, store, told, wrong};
use super::follow::{follow, overwrite};
use super::snapshot::write_file;
use super::tune::{need_root, refused};
use super::{FAILED, FINE, complain};
use crate::bench::plan::Plan;
use crate::bench::report::End;
use crate::bench::store::Store;
use crate::bench::workloads;
use crate::cli::experiment::{self as cli, Experiment, ExperimentFormat, ExperimentRun, Kept};
use crate::experiment::arms::{self, Checked};
use crate::experiment::host::Running;
use crate::experiment::message::{Message, Phase};
use crate::experiment::report::{Report, compare, markdown, text, verdict};
use crate::experiment::spec::{Arm, Spec, Then};
use crate::experiment::{child, live};
use crate::root::Root;
use crate::units::{self, bytes_long};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// A page is written by its age at most so much later than dirty_expire says: a round lasts by this factor longer
/// unless its time is given.
const OUTLAST: f64 = 1.3;

/// Runs `experiment`.
pub fn run(root: Root, what: Experiment) -> anyhow::Result<u8> {
    match what.kept {
        None => new(&root, &what.run),
        Some(Kept::List) => list(),
        Some(Kept::Show { result, format, output }) => put(&root, &load(&result)?, format, output.as_deref()),
        Some(Kept::Compare { a, b }) => match compare::text(&load(&a)?, &load(&b)?) {
            Ok(text) => say(&text),
            Err(why) => wrong(&why),
        },
    }
}

/// The conducting child, or the one that syncs.
pub fn child(root: Root, sync: Option<Option<PathBuf>>) -> anyhow::Result<u8> {
    match sync {
        Some(directory) => live::sync(directory.as_deref())?,
        None => child::main(root)?,
    }
    Ok(FINE)
}

fn load(name: &str) -> anyhow::Result<Report> {
    store::<Report>()?.load(name).map_err(anyhow::Error::msg)
}

fn list() -> anyhow::Result<u8> {
    let store = store::<Report>()?;
    let entries = store.list().map_err(anyhow::Error::msg)?;
    if entries.is_empty() {
        return say("No experiment is kept.\n");
    }
    let mut out = String::new();
    for e in entries {
        let about = store.load::<Report>(&e.id).map_or_else(|why| why, |r| headline(&r));
        out.push_str(&format!("{:>3}  {:<24} {}\n", e.number, e.id, crate::text::clean(about)));
    }
    say(&out)
}

/// An experiment in two lines.
fn headline(r: &Report) -> String {
    let place = r.target().map_or("", |t| t.directory.as_str());
    let verdict = r.trials.first().map_or("", |t| t.verdict.text.as_str());
    let end = if r.end == End::Complete { "" } else { ", not complete" };
    format!("{} {place}, B: {}{end}. {verdict}", r.time, r.spec.set.join(" "))
}

fn put(root: &Root, report: &Report, format: ExperimentFormat, output: Option<&Path>) -> anyhow::Result<u8> {
    let written = match format {
        ExperimentFormat::Text => text::report(report),
        ExperimentFormat::Markdown => markdown::report(report),
        ExperimentFormat::Json => serde_json::to_string(report)? + "\n",
    };
    match output {
        Some(path) => write_file(root, path, written),
        None => say(&written),
    }
}

fn new(root: &Root, options: &ExperimentRun) -> anyhow::Result<u8> {
    let mut spec = match spec(options) {
        Ok(spec) => spec,
        Err(why) => return wrong(&why),
    };
    let checked = match arms::check(root, &spec) {
        Ok(checked) => checked,
        Err(refusal) => return Ok(refused(&refusal)),
    };
    outlast(&mut spec, &checked, options);
    if let Err(why) = spec.check() {
        return wrong(&why);
    }
    let told = announce(&spec, &checked);
    if options.dry_run {
        return say(&told);
    }
    if let Err(refusal) = need_root(root, "an experiment sets knobs, which") {
        return Ok(refused(&refusal));
    }
    if !options.quiet {
        eprint!("{told}");
    }
    match watched(root, &spec, options.quiet)? {
        Message::Report(report) => finish(root, *report, options),
        Message::Refused(refusal) => Ok(refused(&refusal)),
        Message::Failed(why) => anyhow::bail!("{why}"),
        Message::Progress(_) | Message::Round(_) | Message::Note(_) => {
            anyhow::bail!("the conducting process broke off")
        }
    }
}

/// The experiment of the command line.
fn spec(o: &ExperimentRun) -> Result<Spec, String> {
    let profile = o.workload.as_deref().unwrap_or_default();
    let (_, plan) = plan_of(profile, o.dir.as_deref(), &o.load, &o.tx)?;
    let spec = Spec {
        plan,
        base: o.base.clone(),
        set: o.set.clone(),
        rounds: o.rounds,
        control: o.control,
        then: match o.then {
            cli::Then::Undo => Then::Undo,
            cli::Then::Keep => Then::Keep,
            cli::Then::Lease(secs) => Then::Lease(secs),
        },
        drain_limit_ms: o.drain_limit * 1000,
        calm_ms: o.calm * 1000,
    };
    spec.check().map(|()| spec)
}

/// Makes rounds of a buffered workload longer than pages stay dirty, unless a length was asked for.
fn outlast(spec: &mut Spec, checked: &Checked, o: &ExperimentRun) {
    let asked = o.load.time.is_some() || o.load.io_size.is_some() || !o.tx.is_empty();
    let plan = &mut spec.plan;
    let txlog = plan.profile == "txlog";
    let job_file = o.workload.as_ref().is_some_and(|w| w.ends_with(".fio"));
    let timed = txlog || (plan.time_ms > 0 && plan.profile != "sweep" && !job_file);
    let Some(expire) = checked.memory.expire_centisecs.filter(|_| checked.only_page_cache) else { return };
    if asked || !timed || plan.direct {
        return;
    }
    let least = (expire as f64 / 100.0 * OUTLAST).ceil() as u64 * 1000;
    plan.time_ms = plan.time_ms.max(least);
    if txlog {
        plan.txlog.transactions = 0;
    }
}

/// What is going to happen, before it does.
fn announce(spec: &Spec, checked: &Checked) -> String {
    let mut out = format!("Experiment, {} rounds of each arm\n", spec.rounds);
    let stands = if spec.base.is_empty() { "as it stands: " } else { "" };
    out.push_str(&format!("A {stands}{}\nB {}\n", checked.line(Arm::A), checked.line(Arm::B)));
    let mut work = |plan: &Plan| {
        if let Some(workload) = workloads::find(&plan.profile) {
            out.push_str(&describe(workload, plan));
        }
    };
    work(&spec.plan);
    if let Some(control) = spec.control_plan() {
        work(&control);
    }
    let order: Vec<&str> = spec.order().into_iter().map(Arm::name).collect();
    out.push_str(&format!(
        "order {}{}\n",
        order.join(" "),
        if spec.control { ", then the same with the control" } else { "" }
    ));
    out.push_str(&format!("time: {}\n", time(spec)));
    out.push_str(&format!(
        "before each round dirty pages are drained (at most {}) and others watched for {} s; values are on a lease of {} \
         that is renewed only while this runs, and put back after each round\n",
        units::span(spec.drain_limit_ms / 1000),
        spec.calm_ms as f64 / 1e3,
        units::span(live::LEASE.as_secs())
    ));
    out.push_str(&match spec.then {
        Then::Undo => "at the end the old values are back\n".to_owned(),
        Then::Keep => "at the end B is set until the boot if it is shown to be better\n".to_owned(),
        Then::Lease(s) => {
            format!("at the end B is set on a lease of {} if it is shown to be better\n", units::span(s))
        }
    });
    out
}

/// How long all of it takes, as far as anybody can know.
fn time(spec: &Spec) -> String {
    let one = |plan: &Plan| (plan.time_ms + plan.ramp_ms + spec.calm_ms) * u64::from(2 * spec.rounds) / 1000;
    let plans: Vec<Plan> = std::iter::once(spec.plan.clone()).chain(spec.control_plan()).collect();
    let files = plans.iter().filter_map(|p| workloads::find(&p.profile).map(|w| w.footprint(p))).max();
    let rounds = spec.all_rounds();
    let bytes =
        files.map_or(String::new(), |b| format!(", and making a file of up to {} each time", bytes_long(b)));
    match plans.iter().all(|p| p.time_ms > 0) {
        true => {
            format!("{} of measuring in {rounds} rounds{bytes}", units::span(plans.iter().map(one).sum()))
        }
        false => format!("{rounds} rounds until their work is done{bytes}"),
    }
}

/// Runs it in its child and shows how far it is.
fn watched(root: &Root, spec: &Spec, quiet: bool) -> anyhow::Result<Message> {
    let live = !quiet && std::io::stderr().is_terminal();
    let (mut at, note) = (0, |text: &str| {
        erase(live);
        let _ = writeln!(std::io::stderr(), "{}", crate::text::clean(text));
    });
    let last = follow(
        |sink| Running::start(root, spec, sink),
        |message| match message {
            Message::Progress(p) => {
                at = p.round;
                if live {
                    let what = match (&p.bench, p.phase) {
                        (Some(bench), Phase::Work) => told(bench),
                        (_, phase) => phase.words().into(),
                    };
                    let dirty = p.point.map_or(String::new(), |d| format!("  dirty {}", bytes_long(d.dirty)));
                    overwrite(&format!("round {} of {}, {}: {what}{dirty}", p.round, p.of, p.arm.name()));
                }
            }
            Message::Round(round) if !quiet => {
                let plan = &round.bench.plan.profile;
                let metric = workloads::headline::metric(plan);
                let value =
                    metric.zip(round.value).map(|(m, v)| format!("{} {}", m.name, verdict::value(&m, v)));
                note(&format!(
                    "round {at} of {}, {}: {}",
                    spec.all_rounds(),
                    round.arm.name(),
                    value.as_deref().unwrap_or("-")
                ));
            }
            Message::Note(text) if !quiet => note(&format!("iotop-plus: {text}")),
            _ => {}
        },
    );
    erase(live);
    last
}

/// Keeps and writes the result.
fn finish(root: &Root, mut report: Report, options: &ExperimentRun) -> anyhow::Result<u8> {
    if !options.no_keep {
        match Store::of_person_for::<Report>().map(|s| s.keep(&report)) {
            Some(Ok(id)) => report.id = id,
            Some(Err(why)) => complain(&format!("result not kept: {why}")),
            None => complain("result not kept: no home directory of this user (set XDG_STATE_HOME)"),
        }
    }
    let code = put(root, &report, options.format, options.output.as_deref())?;
    Ok(match &report.end {
        End::Failed(why) | End::Stalled(why) => {
            complain(&format!("{why}. {}", report.after));
            FAILED
        }
        End::Complete | End::Cancelled => code,
    })
}
