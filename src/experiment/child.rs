//! The child process that runs an experiment: reads a spec, sends messages. It may block, and it may be killed: the tuner holds
//! the values of an arm and restores them when this process is gone.

use super::message::ExperimentMessage;
use super::report::{ExperimentReport, SCHEMA, warnings};
use super::run::run_experiment;
use super::spec::ExperimentSpec;
use super::system_environment::SystemEnvironment;
use super::{arm_settings, report};
use crate::root::Root;
use crate::subprocess::child::{self, next_signal, send, stdin_lines, stop_signals};
use crate::subprocess::handle::ChildCommand;
use crate::tuning::apply::now_wall_ns;
use crate::tuning::plan::TuneError;
use crate::units::format_rfc3339;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::signal::unix::SignalKind;
use tokio::sync::mpsc;

/// Reads a spec and commands from standard input, conducts, writes messages to standard output; ends the process.
pub(crate) fn main(root: Root) -> anyhow::Result<()> {
    child::enter("experiment");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(root))?;
    // Returning would wait for the thread that reads standard input.
    std::process::exit(0)
}

async fn serve(root: Root) -> anyhow::Result<()> {
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    let mut signals = stop_signals(&kinds);
    let mut input = stdin_lines();
    let Some(line) = input.recv().await else { return Ok(()) };
    let spec: ExperimentSpec = match serde_json::from_slice(line.as_bytes()) {
        Ok(spec) => spec,
        Err(err) => {
            send(&ExperimentMessage::Refused(TuneError::Usage(format!("experiment not understood: {err}"))));
            return Ok(());
        }
    };
    let stop = Arc::new(AtomicBool::new(false));
    let (finished, mut done) = mpsc::unbounded_channel::<()>();
    let stopping = stop.clone();
    std::thread::Builder::new().name("conduct".into()).spawn(move || {
        send(&run_to_last_message(&root, spec, &stopping));
        drop(finished);
    })?;
    loop {
        let asked = tokio::select! {
            // Nothing is sent: the channel ends with the thread.
            _ = done.recv() => return Ok(()),
            line = input.recv(), if !stop.load(Ordering::Relaxed) => ChildCommand::is_cancel(line.as_deref()),
            () = next_signal(&mut signals) => true,
        };
        stop.fetch_or(asked, Ordering::Relaxed);
    }
}

fn run_to_last_message(root: &Root, spec: ExperimentSpec, stop: &Arc<AtomicBool>) -> ExperimentMessage {
    let checked =
        match spec.check().map_err(|why| TuneError::Usage(why.0)).and_then(|()| arm_settings::validate(root, &spec)) {
            Ok(checked) => checked,
            Err(refusal) => return ExperimentMessage::Refused(refusal),
        };
    let wall = now_wall_ns();
    let mut lab = SystemEnvironment::new(
        root.clone(),
        stop.clone(),
        Duration::from_millis(spec.drain_limit_ms),
        Duration::from_millis(spec.baseline_ms),
    );
    let mut say = |message: ExperimentMessage| {
        if !send(&message) {
            // The parent is gone.
            stop.store(true, Ordering::Relaxed);
        }
    };
    let done = match run_experiment(&spec, &mut lab, &mut say) {
        Ok(done) => done,
        Err(refusal) => return ExperimentMessage::Refused(refusal),
    };
    if done.trials.iter().all(|t| t.rounds.is_empty())
        && let report::RunEnd::Failed(why) = &done.end
    {
        return ExperimentMessage::Failed(why.clone());
    }
    let uname = rustix::system::uname();
    let mut report = ExperimentReport {
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
        aftermath: done.aftermath,
    };
    report.warnings = warnings::warnings_for(&report);
    ExperimentMessage::Report(Box::new(report))
}
