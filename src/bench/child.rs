//! The child's side: one plan in, messages out. It does all that may block; the program that draws only
//! reads its messages, and may leave it behind.

use super::engine::monotonic_ns;
use super::message::{Command, Message};
use super::plan::Plan;
use super::report::{End, Report, SCHEMA, ruler, warnings};
use super::session::{Counters, Session, Stop};
use super::watch::Watch;
use super::workloads::{self, Workload};
use crate::root::Root;
use crate::units::format_rfc3339;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc;

/// Between two progress messages.
const TICK: Duration = Duration::from_millis(250);
/// How long a run that was told to stop may take until its figures are sent without it.
const PATIENCE_NS: u64 = 3_000_000_000;
/// Longest plan that is read.
const MAX_LINE: usize = 1 << 20;

/// What the run came to.
enum Outcome {
    Done(Result<(), Stop>),
    GaveUp(End),
}

/// Reads a plan and commands from standard input, measures, writes messages to standard output.
/// Does not return while threads may be stuck: it ends the process.
pub fn main(root: Root, counters: Counters) -> anyhow::Result<()> {
    // A session of its own: the terminal's signals and its hang-up are the parent's business.
    let _ = rustix::process::setsid();
    // Started through a link in /proc it would be called `exe`, and so would it be when it is stuck.
    let _ = rustix::thread::set_name(c"iotop-plus");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(root, counters))?;
    // Not by returning: a thread stuck in the kernel must not be waited for.
    std::process::exit(0)
}

/// Sends a message as one line; `false`: nobody reads any more.
pub fn send(message: &impl serde::Serialize) -> bool {
    let mut out = std::io::stdout().lock();
    let Ok(mut line) = serde_json::to_vec(message) else { return false };
    line.push(b'\n');
    out.write_all(&line).and_then(|()| out.flush()).is_ok()
}

/// Standard input line by line, on a thread of its own; its end is the channel's end.
pub fn lines() -> mpsc::UnboundedReceiver<String> {
    let (tx, rx) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if line.len() > MAX_LINE || tx.send(line).is_err() {
                break;
            }
        }
    });
    rx
}

async fn serve(root: Root, counters: Counters) -> anyhow::Result<()> {
    let mut input = lines();
    let Some(line) = input.recv().await else { return Ok(()) };
    let plan: Plan = match serde_json::from_str(&line) {
        Ok(plan) => plan,
        Err(err) => {
            send(&Message::Failed(format!("plan not understood: {err}")));
            return Ok(());
        }
    };
    let checked = plan.check().and_then(|()| {
        let workload = workloads::find(&plan.profile).ok_or(format!("no profile {}", plan.profile))?;
        workload.check(&plan).map(|()| workload)
    });
    match checked {
        Ok(workload) => run(workload, plan, root, counters, &mut input).await,
        Err(why) => {
            send(&Message::Failed(why));
            Ok(())
        }
    }
}

async fn run(
    workload: &'static dyn Workload,
    plan: Plan,
    root: Root,
    counters: Counters,
    input: &mut mpsc::UnboundedReceiver<String>,
) -> anyhow::Result<()> {
    let watch = Arc::new(Watch::default());
    watch.pulse(monotonic_ns());
    if plan.idle
        && let Err(err) = super::sys::idle_io_priority()
    {
        watch.note(format!("idle I/O priority not set: {err}"));
    }
    let wall = wall_ns();
    let (finished, mut done) = mpsc::unbounded_channel();
    let mut session = Session::new(plan.clone(), root, watch.clone(), counters);
    std::thread::Builder::new().name("measure".into()).spawn(move || {
        let ended = workload.run(&mut session);
        session.look_again();
        let _ = finished.send(ended);
    })?;
    let outcome = attend(&watch, &plan, input, &mut done).await;
    let end = match outcome {
        Outcome::GaveUp(end) => end,
        Outcome::Done(Ok(())) => End::Complete,
        Outcome::Done(Err(Stop::Cancelled)) => End::Cancelled,
        Outcome::Done(Err(Stop::Refused(refused))) => {
            send(&Message::Refused(refused));
            return Ok(());
        }
        Outcome::Done(Err(Stop::Failed(why))) => End::Failed(why),
    };
    let report = report(workload, plan, &watch, end, wall);
    let nothing = report.parts.is_empty();
    send(&match (&report.end, nothing) {
        (End::Failed(why) | End::Stalled(why), true) => Message::Failed(why.clone()),
        _ => Message::Report(Box::new(report)),
    });
    Ok(())
}

/// Sends progress until the run is over, somebody stops it, or nothing moves any more.
async fn attend(
    watch: &Watch,
    plan: &Plan,
    input: &mut mpsc::UnboundedReceiver<String>,
    done: &mut mpsc::UnboundedReceiver<Result<(), Stop>>,
) -> Outcome {
    use tokio::signal::unix::{SignalKind, signal};
    let mut tick = tokio::time::interval(TICK);
    let mut term = signal(SignalKind::terminate()).ok();
    let mut int = signal(SignalKind::interrupt()).ok();
    let mut notes = 0;
    // When it was told to stop, and why.
    let mut stopping: Option<(u64, End)> = None;
    loop {
        let mut stop = None;
        tokio::select! {
            biased;
            ended = done.recv() => {
                let ended = ended.unwrap_or_else(|| Err(Stop::Failed("the measuring thread broke off".into())));
                flush_notes(watch, &mut notes);
                return match (ended, stopping) {
                    (Err(Stop::Cancelled), Some((_, end @ End::Stalled(_)))) => Outcome::GaveUp(end),
                    (ended, _) => Outcome::Done(ended),
                };
            }
            line = input.recv(), if stopping.is_none() => {
                let cancel = line.as_deref().is_none_or(|l| matches!(serde_json::from_str(l), Ok(Command::Cancel)));
                stop = cancel.then_some(End::Cancelled);
            }
            _ = async { match &mut term { Some(s) => s.recv().await, None => std::future::pending().await } } => {
                stop = Some(End::Cancelled);
            }
            _ = async { match &mut int { Some(s) => s.recv().await, None => std::future::pending().await } } => {
                stop = Some(End::Cancelled);
            }
            _ = tick.tick() => {}
        }
        let now = monotonic_ns();
        let progress = watch.progress(now);
        let stalled = progress.silent_ms >= plan.stall_limit_ms;
        if stalled && watch.measured.load(Ordering::Relaxed) {
            watch.note(format!(
                "the file is still being given back after {} s: the device is behind with its dirty pages",
                progress.silent_ms / 1000
            ));
            return Outcome::Done(Ok(()));
        }
        if stalled && stopping.is_none() {
            let what = progress.phase.clone();
            stop = Some(End::Stalled(format!(
                "{what}: nothing has moved for {} s: is the file system frozen, its server gone, or the device hung?",
                progress.silent_ms / 1000
            )));
        }
        flush_notes(watch, &mut notes);
        if !send(&Message::Progress(Box::new(progress))) && stopping.is_none() {
            // Nobody reads any more.
            stop = Some(End::Cancelled);
        }
        if let (Some(end), None) = (stop, &stopping) {
            watch.stop.store(true, Ordering::Relaxed);
            stopping = Some((now, end));
        }
        match &stopping {
            Some((since, end)) if now > since + PATIENCE_NS => return Outcome::GaveUp(end.clone()),
            _ => {}
        }
    }
}

fn flush_notes(watch: &Watch, sent: &mut usize) {
    for note in watch.notes(*sent) {
        send(&Message::Note(note));
        *sent += 1;
    }
}

fn report(workload: &dyn Workload, plan: Plan, watch: &Watch, end: End, wall: i64) -> Report {
    let (parts, target) = watch.harvest(monotonic_ns());
    let uname = rustix::system::uname();
    let on_ruler = workload.on_ruler(&plan);
    let mut report = Report {
        schema: SCHEMA,
        id: format!("{}-{}", wall / 1_000_000_000, plan.profile),
        time: format_rfc3339(wall),
        host: uname.nodename().to_string_lossy().into_owned(),
        kernel: uname.release().to_string_lossy().into_owned(),
        version: env!("CARGO_PKG_VERSION").into(),
        ruler: if on_ruler { parts.first().and_then(|p| ruler::place(p, target.as_ref())) } else { None },
        plan,
        target,
        parts,
        warnings: watch.notes(0),
        end,
    };
    let more = warnings::of(&report);
    report.warnings.extend(more);
    report
}

/// Now, ns since 1970.
pub fn wall_ns() -> i64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    t.tv_sec * 1_000_000_000 + t.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_is_given_back_slowly_is_no_stalled_run() {
        let (watch, plan) = (Watch::default(), Plan { stall_limit_ms: 1000, ..Plan::default() });
        watch.pulse(monotonic_ns().saturating_sub(40_000_000_000));
        watch.measured.store(true, Ordering::Relaxed);
        // Nobody says anything: both channels stay open and empty.
        let (_input, mut input) = mpsc::unbounded_channel();
        let (_done, mut done) = mpsc::unbounded_channel();
        let outcome = attend(&watch, &plan, &mut input, &mut done).await;
        assert!(matches!(outcome, Outcome::Done(Ok(()))));
        assert!(watch.notes(0)[0].contains("given back"));
    }
}
