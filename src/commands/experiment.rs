//! `experiment`: a new one from the command line, and the kept ones.

use super::bench::{erase, plan_of, say, store, wrong};
use super::follow::{follow, overwrite};
use super::snapshot::write_file;
use super::tune::{need_root, refused};
use super::{FAILED, FINE, complain};
use crate::bench::outline::told;
use crate::bench::report::End;
use crate::bench::store::Store;
use crate::bench::workloads;
use crate::cli::experiment::{self as cli, Experiment, ExperimentFormat, ExperimentRun, Kept};
use crate::experiment::arms;
use crate::experiment::host::Running;
use crate::experiment::message::{Message, Phase};
use crate::experiment::outline::{outlast, outline};
use crate::experiment::report::{Form, Report, compare, verdict};
use crate::experiment::spec::{Spec, Then};
use crate::experiment::{child, kept, live};
use crate::root::Root;
use crate::units::format_bytes_long;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

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
    let entries = kept::all(&store::<Report>()?).map_err(anyhow::Error::msg)?;
    if entries.is_empty() {
        return say("No experiment is kept.\n");
    }
    let mut out = String::new();
    for e in entries {
        out.push_str(&format!("{:>3}  {:<24} {}\n", e.number, e.id, crate::text::sanitize(e.headline())));
    }
    say(&out)
}

fn put(root: &Root, report: &Report, format: ExperimentFormat, output: Option<&Path>) -> anyhow::Result<u8> {
    let written = report.written(match format {
        ExperimentFormat::Text => Form::Text,
        ExperimentFormat::Markdown => Form::Markdown,
        ExperimentFormat::Json => Form::Json,
    });
    match output {
        Some(path) => write_file(root, path, written.into()),
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
    if open_ended(options) {
        outlast(&mut spec, &checked);
    }
    if let Err(why) = spec.check() {
        return wrong(&why);
    }
    let told = outline(&spec, &checked);
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

/// Whether the command line leaves the length of a round to the program.
fn open_ended(o: &ExperimentRun) -> bool {
    let job_file = o.workload.as_ref().is_some_and(|w| w.ends_with(".fio"));
    o.load.time.is_none() && o.load.io_size.is_none() && o.tx.is_empty() && !job_file
}

/// Runs it in its child and shows how far it is.
fn watched(root: &Root, spec: &Spec, quiet: bool) -> anyhow::Result<Message> {
    let live = !quiet && std::io::stderr().is_terminal();
    let (mut at, note) = (0, |text: &str| {
        erase(live);
        let _ = writeln!(std::io::stderr(), "{}", crate::text::sanitize(text));
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
                    let dirty = p.point.map_or(String::new(), |d| format!("  dirty {}", format_bytes_long(d.dirty)));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::params::PARAMS;
    use crate::bench::plan::Plan;
    use crate::bench::workloads::WORKLOADS;
    use crate::cli::{Cli, Command};
    use crate::experiment::command;
    use clap::Parser;

    /// What the command line says about an experiment, as it reads it back.
    fn read_back(asked: &Spec) -> Spec {
        let args = command::args(asked);
        let cli = Cli::try_parse_from(std::iter::once("iotop-plus".to_owned()).chain(args.clone()))
            .unwrap_or_else(|err| panic!("{args:?}: {err}"));
        let Some(Command::Experiment(e)) = cli.command else { panic!("{args:?}") };
        spec(&e.run).unwrap_or_else(|why| panic!("{args:?}: {why}"))
    }

    #[test]
    fn the_line_for_root_conducts_the_same_experiment() {
        let mut lines = 0;
        for w in WORKLOADS {
            let directory = if w.needs_directory() { "/srv/a b".into() } else { Default::default() };
            let plan = Plan { directory, ..w.defaults() };
            let set = vec!["vm.dirty_ratio=80".into(), "atime@/a b=noatime".into()];
            let start = Spec { plan, set, ..Spec::default() };
            assert_eq!(read_back(&start), start);
            for p in PARAMS.iter().filter(|p| w.takes().contains(&p.name)) {
                for text in p.choices.iter().copied().chain(["1", "2", "512", "8192", "64M"]) {
                    let mut asked = start.clone();
                    let taken = (p.set)(&mut asked.plan, text);
                    if taken.is_ok() && asked.check().is_ok() {
                        assert_eq!(read_back(&asked), asked, "{} {} {text}", w.name(), p.name);
                        lines += 1;
                    }
                }
            }
        }
        assert!(lines > 200, "{lines}");
        let plan = Plan { directory: "/srv".into(), ..workloads::find("fsync").unwrap().defaults() };
        let all = Spec {
            plan: Plan { network: Some("/srv".into()), ..plan },
            base: vec!["vm.dirty_ratio=20".into()],
            set: vec!["vm.dirty_ratio=80".into()],
            rounds: 7,
            control: true,
            then: Then::Lease(90),
            drain_limit_ms: 7000,
            calm_ms: 0,
        };
        assert_eq!(read_back(&all), all);
        let kept = Spec { then: Then::Keep, ..all };
        assert_eq!(read_back(&kept), kept);
    }
}
