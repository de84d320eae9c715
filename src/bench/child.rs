//! The measuring child: reads a plan, sends messages. What may block happens here; the parent may abandon it.

use super::disturbance::{DisturbanceCause, STALL_LOOK_MS, find_stall_cause};
use super::engine::monotonic_ns;
use super::message::{BenchMessage, BenchProgress};
use super::plan::{BenchPlan, PlanError};
use super::report::cache::is_from_cache;
use super::report::foreign::foreign_pct;
use super::report::{BenchReport, RunEnd, SCHEMA, reference_classes, warnings};
use super::run_progress::RunProgress;
use super::session::{BenchSession, DiskCounterReader, RunError};
use super::workloads::{self, Workload};
use crate::model::disk::SECTOR_BYTES;
use crate::root::Root;
use crate::subprocess::child::{self, next_signal, send, stdin_lines, stop_signals};
use crate::subprocess::handle::ChildCommand;
use crate::tuning::apply::now_wall_ns;
use crate::tuning::plan::TuneError;
use crate::units::format_rfc3339;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind};
use tokio::sync::mpsc;

const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);
/// A longer time between two looks at the run means that this process did not run.
const PAUSE_NS: u64 = 1_500_000_000;
/// How long the runtime may take to hand a signal over.
const SIGNAL_DELAY: Duration = Duration::from_millis(50);
/// How long a cancelled run may take to stop before the report is sent without waiting for it.
const STOP_TIMEOUT_NS: u64 = 3_000_000_000;

/// Reads a plan and commands, measures, sends messages; ends the process, since threads may be stuck.
pub(crate) fn main(root: Root, counters: DiskCounterReader) -> anyhow::Result<()> {
    child::enter("bench");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(root, counters))?;
    // Returning would wait for threads that may be stuck in the kernel.
    std::process::exit(0)
}

async fn serve(root: Root, counters: DiskCounterReader) -> anyhow::Result<()> {
    let mut input = stdin_lines();
    let Some(line) = input.recv().await else { return Ok(()) };
    let last = match read_plan(&line) {
        Ok((workload, plan)) => run_workload(workload, plan, root, counters, &mut input).await?,
        Err(why) => BenchMessage::Failed(why.0),
    };
    send(&last);
    Ok(())
}

fn read_plan(line: &str) -> Result<(&'static Workload, BenchPlan), PlanError> {
    let plan: BenchPlan =
        serde_json::from_slice(line.as_bytes()).map_err(|err| format!("plan not understood: {err}"))?;
    plan.check()?;
    let workload = workloads::find_workload(&plan.profile).ok_or(format!("no profile {}", plan.profile))?;
    (workload.check)(&plan)?;
    Ok((workload, plan))
}

/// Returns the last message.
async fn run_workload(
    workload: &'static Workload,
    plan: BenchPlan,
    root: Root,
    counters: DiskCounterReader,
    input: &mut mpsc::UnboundedReceiver<String>,
) -> anyhow::Result<BenchMessage> {
    let watch = Arc::new(RunProgress::default());
    watch.heartbeat(monotonic_ns());
    watch.keeps_histograms.store(plan.interval_histograms, Ordering::Relaxed);
    if plan.idle
        && let Err(err) = super::syscalls::set_idle_io_priority()
    {
        watch.add_note(format!("idle I/O priority not set: {err}"));
    }
    let wall = now_wall_ns();
    let (finished, mut done) = mpsc::unbounded_channel();
    let machine = Machine { root: root.clone(), counters: counters.clone() };
    let mut session = BenchSession::new(plan.clone(), root, watch.clone(), counters);
    std::thread::Builder::new().name("measure".into()).spawn(move || {
        let ended = (workload.run)(&mut session);
        session.recheck_target();
        let _ = finished.send(ended);
    })?;
    let end = match supervise(&watch, &machine, &plan, input, &mut done).await {
        Ok(end) => end,
        Err(refused) => return Ok(BenchMessage::Refused(refused)),
    };
    let report = build_report(workload, plan, &watch, end, wall);
    Ok(match &report.end {
        RunEnd::Failed(why) | RunEnd::Stalled(why) if report.measurements.is_empty() => {
            BenchMessage::Failed(why.clone())
        }
        _ => BenchMessage::Report(Box::new(report)),
    })
}

/// What the supervisor reads of the machine.
struct Machine {
    root: Root,
    counters: DiskCounterReader,
}

impl Machine {
    /// Takes down what the disk has moved, and whether nothing completes, and why.
    fn look(&self, watch: &RunProgress, now: u64) {
        let disk = watch.disk().and_then(|id| (self.counters)().into_iter().find(|d| d.id == id));
        if let Some(d) = &disk {
            watch.set_disk_bytes(d.read.sectors.saturating_add(d.write.sectors).saturating_mul(SECTOR_BYTES));
        }
        match watch.idle_ms(now) {
            idle if idle >= STALL_LOOK_MS => {
                watch.continue_stall(now, idle, || find_stall_cause(&self.root, disk.map(|d| d.in_flight)));
            }
            _ => watch.end_stall(),
        }
    }
}

/// Sends progress until the run ends, is cancelled, or stalls; returns how it ended.
async fn supervise(
    watch: &RunProgress,
    machine: &Machine,
    plan: &BenchPlan,
    input: &mut mpsc::UnboundedReceiver<String>,
    done: &mut mpsc::UnboundedReceiver<Result<(), RunError>>,
) -> Result<RunEnd, TuneError> {
    let mut tick = tokio::time::interval(PROGRESS_INTERVAL);
    let mut signals = stop_signals(&[SignalKind::terminate(), SignalKind::interrupt()]);
    let mut continued = stop_signals(&[SignalKind::from_raw(libc::SIGCONT)]);
    let (mut notes, mut looked_ns) = (0, monotonic_ns());
    // When it was asked to stop, and why.
    let mut stopping: Option<(u64, RunEnd)> = None;
    loop {
        let mut stop = None;
        tokio::select! {
            biased;
            ended = done.recv() => {
                note_pause(watch, looked_ns, &mut continued).await;
                let ended = ended.unwrap_or_else(|| Err(RunError::Failed("the measuring thread ended early".into())));
                flush_notes(watch, &mut notes);
                return match (ended, stopping) {
                    (Err(RunError::Cancelled), Some((_, end))) => Ok(end),
                    (ended, _) => run_end(ended),
                };
            }
            line = input.recv(), if stopping.is_none() => {
                stop = ChildCommand::is_cancel(line.as_deref()).then_some(RunEnd::Cancelled);
            }
            () = next_signal(&mut signals) => stop = Some(RunEnd::Cancelled),
            _ = tick.tick() => {}
        }
        note_pause(watch, looked_ns, &mut continued).await;
        let now = monotonic_ns();
        looked_ns = now;
        machine.look(watch, now);
        let progress = watch.snapshot(now);
        match stalled_end(watch, &progress, plan) {
            Some(RunEnd::Complete) => return Ok(RunEnd::Complete),
            stalled => stop = stalled.or(stop),
        }
        flush_notes(watch, &mut notes);
        if !send(&BenchMessage::Progress(Box::new(progress))) {
            // The parent is gone.
            stop.get_or_insert(RunEnd::Cancelled);
        }
        match (&stopping, stop) {
            (None, Some(end)) => {
                watch.stop_requested.store(true, Ordering::Relaxed);
                stopping = Some((now, end));
            }
            (Some((since, end)), _) if now > since + STOP_TIMEOUT_NS => return Ok(end.clone()),
            _ => {}
        }
    }
}

/// How a run ends that has not moved for as long as its limit allows.
fn stalled_end(watch: &RunProgress, progress: &BenchProgress, plan: &BenchPlan) -> Option<RunEnd> {
    if progress.idle_ms < plan.stall_limit_ms {
        return None;
    }
    let secs = progress.idle_ms / 1000;
    if watch.is_measured.load(Ordering::Relaxed) {
        watch.add_note(format!(
            "the file is still being given back after {secs} s: the device is behind with its dirty pages"
        ));
        return Some(RunEnd::Complete);
    }
    Some(RunEnd::Stalled(format!(
        "{}: nothing has moved for {secs} s: is the file system frozen, its server gone, or the device hung?",
        progress.phase
    )))
}

/// Notes that this process did not run since it looked last.
async fn note_pause(watch: &RunProgress, looked_ns: u64, continued: &mut [Signal]) {
    let now = monotonic_ns();
    if now.saturating_sub(looked_ns) < PAUSE_NS {
        return;
    }
    // SIGCONT reaches the process before anything else of it runs, the runtime a moment later.
    let was_stopped = tokio::time::timeout(SIGNAL_DELAY, next_signal(continued)).await.is_ok();
    let cause = if was_stopped { DisturbanceCause::Stopped } else { DisturbanceCause::NotRun };
    watch.add_pause(looked_ns, now, cause);
}

fn run_end(ended: Result<(), RunError>) -> Result<RunEnd, TuneError> {
    match ended {
        Ok(()) => Ok(RunEnd::Complete),
        Err(RunError::Cancelled) => Ok(RunEnd::Cancelled),
        Err(RunError::Failed(why)) => Ok(RunEnd::Failed(why)),
        Err(RunError::Refused(refused)) => Err(refused),
    }
}

fn flush_notes(watch: &RunProgress, sent: &mut usize) {
    for note in watch.notes_from(*sent) {
        send(&BenchMessage::Note(note));
        *sent += 1;
    }
}

fn build_report(workload: &Workload, plan: BenchPlan, watch: &RunProgress, end: RunEnd, wall: i64) -> BenchReport {
    let (mut parts, target) = watch.take_results(monotonic_ns());
    for part in &mut parts {
        let own = (workload.own_bytes)(&plan, part);
        part.from_cache = (workload.expects_device)(part) && is_from_cache(part);
        part.foreign_pct = own.and_then(|own| foreign_pct(part, own, target.as_ref()));
    }
    let uname = rustix::system::uname();
    let reference = parts.first().filter(|_| (workload.has_reference_classes)(&plan));
    let mut report = BenchReport {
        schema: SCHEMA,
        id: format!("{}-{}", wall / 1_000_000_000, plan.profile),
        time: format_rfc3339(wall),
        host: uname.nodename().to_string_lossy().into_owned(),
        kernel: uname.release().to_string_lossy().into_owned(),
        version: env!("CARGO_PKG_VERSION").into(),
        reference: reference.and_then(|p| reference_classes::place_measurement(p, target.as_ref())),
        plan,
        target,
        measurements: parts,
        warnings: watch.notes_from(0),
        conclusion: None,
        end,
    };
    report.conclusion = (workload.conclude)(&report);
    let more = warnings::warnings_for(&report);
    report.warnings.extend(more);
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn slow_file_removal_does_not_count_as_a_stall() {
        let (watch, plan) = (RunProgress::default(), BenchPlan { stall_limit_ms: 1000, ..BenchPlan::default() });
        watch.heartbeat(monotonic_ns().saturating_sub(40_000_000_000));
        watch.is_measured.store(true, Ordering::Relaxed);
        // Nobody says anything: both channels stay open and empty.
        let machine = Machine { root: Root::live(), counters: Arc::new(Vec::new) };
        let (_input, mut input) = mpsc::unbounded_channel();
        let (_done, mut done) = mpsc::unbounded_channel();
        let outcome = supervise(&watch, &machine, &plan, &mut input, &mut done).await;
        assert_eq!(outcome, Ok(RunEnd::Complete));
        assert!(watch.notes_from(0)[0].contains("given back"));
    }
}
