//! The child's side: one spec in, messages out. It may wait, and it may be killed: the values an arm set are held
//! by the tuner, which takes them back when this process is gone.

use super::live::Live;
use super::message::Message;
use super::report::{Report, SCHEMA, warnings};
use super::run::conduct;
use super::spec::Spec;
use super::{arms, report};
use crate::bench::child::{lines, send, wall_ns};
use crate::bench::message::Command;
use crate::root::Root;
use crate::tune::plan::Refusal;
use crate::units::format_rfc3339;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// Reads a spec and commands from standard input, conducts, writes messages to standard output; ends the process.
pub fn main(root: Root) -> anyhow::Result<()> {
    // A session of its own: the terminal's signals and its hang-up are the parent's business.
    let _ = rustix::process::setsid();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(root))?;
    // Not by returning: the thread that reads standard input is not waited for.
    std::process::exit(0)
}

async fn serve(root: Root) -> anyhow::Result<()> {
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    let mut signals = kinds.into_iter().map(signal).collect::<std::io::Result<Vec<_>>>()?;
    let mut input = lines();
    let Some(line) = input.recv().await else { return Ok(()) };
    let spec: Spec = match serde_json::from_str(&line) {
        Ok(spec) => spec,
        Err(err) => {
            send(&Message::Refused(Refusal::Usage(format!("experiment not understood: {err}"))));
            return Ok(());
        }
    };
    let stop = Arc::new(AtomicBool::new(false));
    let (finished, mut done) = mpsc::unbounded_channel();
    let stopping = stop.clone();
    std::thread::Builder::new().name("conduct".into()).spawn(move || {
        send(&conducted(&root, spec, &stopping));
        drop(finished);
    })?;
    loop {
        tokio::select! {
            () = ended(&mut done) => return Ok(()),
            line = input.recv(), if !stop.load(Ordering::Relaxed) => {
                if line.as_deref().is_none_or(|l| matches!(serde_json::from_str(l), Ok(Command::Cancel))) {
                    stop.store(true, Ordering::Relaxed);
                }
            }
            () = any(&mut signals) => stop.store(true, Ordering::Relaxed),
        }
    }
}

/// Nothing is sent: the channel's end is the end.
async fn ended(done: &mut mpsc::UnboundedReceiver<()>) {
    while done.recv().await.is_some() {}
}

async fn any(signals: &mut [Signal]) {
    let [term, int, hup] = signals else { return std::future::pending().await };
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
        _ = hup.recv() => {}
    }
}

/// The last message.
fn conducted(root: &Root, spec: Spec, stop: &Arc<AtomicBool>) -> Message {
    let checked = match spec.check().map_err(Refusal::Usage).and_then(|()| arms::check(root, &spec)) {
        Ok(checked) => checked,
        Err(refusal) => return Message::Refused(refusal),
    };
    let wall = wall_ns();
    let mut lab = Live::new(
        root.clone(),
        stop.clone(),
        Duration::from_millis(spec.drain_limit_ms),
        Duration::from_millis(spec.calm_ms),
    );
    let mut say = |message: Message| {
        if !send(&message) {
            // Nobody reads any more.
            stop.store(true, Ordering::Relaxed);
        }
    };
    let done = match conduct(&spec, &mut lab, &mut say) {
        Ok(done) => done,
        Err(refusal) => return Message::Refused(refusal),
    };
    if done.trials.iter().all(|t| t.rounds.is_empty())
        && let report::End::Failed(why) = &done.end
    {
        return Message::Failed(why.clone());
    }
    let uname = rustix::system::uname();
    let mut report = Report {
        schema: SCHEMA,
        id: format!("{}-{}", wall / 1_000_000_000, spec.plan.profile),
        time: format_rfc3339(wall),
        host: uname.nodename().to_string_lossy().into_owned(),
        kernel: uname.release().to_string_lossy().into_owned(),
        version: env!("CARGO_PKG_VERSION").into(),
        spec,
        settings: checked.settings,
        only_page_cache: checked.only_page_cache,
        memory: checked.memory,
        thresholds: done.thresholds,
        trials: done.trials,
        warnings: Vec::new(),
        end: done.end,
        after: done.after,
    };
    report.warnings = warnings::of(&report);
    Message::Report(Box::new(report))
}
