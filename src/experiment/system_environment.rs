//! The real machine: children write back dirty pages, a tuner sets values on a short lease, the workload runs in its
//! own child. This process waits for none of them without a deadline.

use super::dirty_pages::{DirtyPagesMonitor, SystemCounters};
use super::message::ExperimentMessage;
use super::report::{Baseline, DirtyThresholds};
use super::run::{Environment, RoundResult, WorkloadEvent};
use crate::bench::message::BenchMessage;
use crate::bench::plan::BenchPlan;
use crate::bench::session::RunError;
use crate::bench::workloads;
use crate::root::Root;
use crate::sanitize::sanitize;
use crate::subprocess::budget::ChildBudget;
use crate::subprocess::child;
use crate::subprocess::handle::{ChildHandle, ChildMessage};
use crate::subprocess::process::ChildProcess;
use crate::tuning::change_set::changes_from_records;
use crate::tuning::child_io::ChildKnobIo;
use crate::tuning::context::TuningContext;
use crate::tuning::journal::Journal;
use crate::tuning::kill_points::KillPoints;
use crate::tuning::knob_id::KnobId;
use crate::tuning::protocol::{TunerReply, TunerRequest};
use crate::tuning::restore::{self, RestoreResult};
use crate::tuning::tuner_client::LeaseHandle;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The lease of a round's values, which this process renews.
pub(crate) const LEASE_DURATION: Duration = Duration::from_secs(60);
const RENEW_INTERVAL: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Silence after which the measuring process, which sends progress four times a second, is abandoned.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a sync of all other file systems may take.
const OTHER_SYNC_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct SystemEnvironment {
    root: Root,
    stop: Arc<AtomicBool>,
    counters: SystemCounters,
    drain_limit: Duration,
    baseline_duration: Duration,
    /// The tuner that holds the arm's values, and the change's number.
    lease: Option<(LeaseHandle, u64)>,
    /// The measuring process of the previous round, until it has ended and freed its file.
    previous_child: Option<ChildHandle>,
    /// A file system did not finish its sync, so no further sync of all is started.
    sync_hangs: bool,
}

impl SystemEnvironment {
    pub(crate) fn new(root: Root, stop: Arc<AtomicBool>, drain_limit: Duration, calm: Duration) -> Self {
        let counters = SystemCounters::new(&root, &["/proc/diskstats", "/proc/stat", "/proc/vmstat"]);
        Self {
            root,
            stop,
            counters,
            drain_limit,
            baseline_duration: calm,
            lease: None,
            previous_child: None,
            sync_hangs: false,
        }
    }

    fn check_cancelled(&self) -> Result<(), RunError> {
        if self.stop.load(Ordering::Relaxed) { Err(RunError::Cancelled) } else { Ok(()) }
    }

    fn pause(&self, span: Duration) -> Result<(), RunError> {
        let end = Instant::now() + span;
        while let Some(left) = end.checked_duration_since(Instant::now()).filter(|l| !l.is_zero()) {
            self.check_cancelled()?;
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
        self.check_cancelled()
    }

    /// Whether something is done within `limit`.
    fn wait_until(
        &self,
        limit: Duration,
        mut is_done: impl FnMut() -> Result<bool, RunError>,
    ) -> Result<bool, RunError> {
        let begun = Instant::now();
        while !is_done()? {
            self.pause(Duration::from_millis(20))?;
            if begun.elapsed() >= limit {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Syncs `directory`'s file system, or all, in a child; `false`: not within `limit`, the child is abandoned.
    fn sync_in_child(&mut self, directory: Option<&Path>, limit: Duration) -> Result<bool, RunError> {
        let failed = |why: String| RunError::Failed(format!("draining dirty pages: {why}"));
        let slot = ChildBudget::shared().acquire();
        let slot = slot.ok_or_else(|| failed("too many child processes are stuck already".into()))?;
        let mut subcommand = vec![OsStr::new(ExperimentMessage::SUBCOMMAND), OsStr::new("--sync")];
        subcommand.extend(directory.map(Path::as_os_str));
        let child = ChildProcess::start(Root::self_exe(), &self.root, &subcommand);
        let mut child = child.map_err(|err| failed(err.to_string()))?;
        let mut status = None;
        let is_done = self.wait_until(limit, || {
            status = child.try_wait().map_err(|err| failed(err.to_string()))?;
            Ok(status.is_some())
        });
        let Some(status) = status else {
            child.abandon(|| drop(slot));
            return is_done;
        };
        let what = directory.map_or("all file systems".into(), |d| sanitize(d.as_os_str().as_encoded_bytes()));
        if status.success() { Ok(true) } else { Err(failed(format!("sync of {what} failed ({status})"))) }
    }

    fn renew_lease(&mut self) -> Result<(), RunError> {
        let Some((held, id)) = &mut self.lease else { return Ok(()) };
        held.renew(LEASE_DURATION.as_secs(), RENEW_INTERVAL).map_err(|why| {
            RunError::Failed(format!(
                "the tuner of change {id} does not hold it any more ({why}): somebody kept or undid it, or ended the tuner"
            ))
        })
    }

    /// Waits for the previous round's measuring process, whose file's writeback would go on during the next one.
    fn wait_for_previous_child(&mut self) -> Result<(), RunError> {
        let Some(child) = self.previous_child.take() else { return Ok(()) };
        if self.wait_until(self.drain_limit, || Ok(child.wait_for_exit(Duration::ZERO)))? {
            return Ok(());
        }
        Err(RunError::Failed(format!(
            "the measuring process {} has not ended within {} s: its file's last pages are still being written. Allow \
             more by --drain-limit",
            child.pid(),
            self.drain_limit.as_secs()
        )))
    }

    /// Passes on what the measuring process sends until its last message.
    fn watch_workload(
        &mut self,
        child: &ChildHandle,
        messages: &Receiver<BenchMessage>,
        seen: &mut dyn FnMut(WorkloadEvent),
    ) -> Result<RoundResult, RunError> {
        let mut watch = DirtyPagesMonitor::default();
        let (mut cancelled, mut trouble) = (false, None);
        let mut heard = Instant::now();
        loop {
            let message = messages.recv_timeout(POLL_INTERVAL);
            if let Err(fail) = self.renew_lease() {
                trouble.get_or_insert(fail);
            }
            let stop = self.stop.load(Ordering::Relaxed) || trouble.is_some();
            if stop && !std::mem::replace(&mut cancelled, true) {
                child.cancel();
                heard = Instant::now();
            }
            match message {
                Ok(BenchMessage::Progress(progress)) => {
                    heard = Instant::now();
                    let point = watch.sample_if_counting(&progress, &mut self.counters);
                    seen(WorkloadEvent::Progress(&progress, point));
                }
                Ok(BenchMessage::Note(note)) => seen(WorkloadEvent::Note(&note)),
                Ok(BenchMessage::Report(report)) => {
                    let (dirtied, written) = watch.dirtied_and_written();
                    let worked = RoundResult {
                        report: *report,
                        dirty_points: watch.points.points,
                        dirtied_bytes: dirtied,
                        written_bytes: written,
                    };
                    return trouble.map_or(Ok(worked), Err);
                }
                Ok(BenchMessage::Refused(refused)) => {
                    return Err(trouble.unwrap_or(RunError::Refused(refused)));
                }
                Ok(BenchMessage::Failed(why)) => return Err(trouble.unwrap_or(RunError::Failed(why))),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(RunError::Failed("the measuring process ended early".into()));
                }
            }
            if heard.elapsed() > SILENCE_TIMEOUT {
                child.kill();
                return Err(trouble.unwrap_or(RunError::Failed(format!(
                    "the measuring process {} has said nothing for {} s and is left behind",
                    child.pid(),
                    SILENCE_TIMEOUT.as_secs()
                ))));
            }
        }
    }

    /// Starts a tuner that sets values, on a lease if given; returns the change's number and whether there is any.
    fn start_tuner(&mut self, words: &[String], lease: Option<u64>) -> Result<(LeaseHandle, u64, bool), RunError> {
        self.check_cancelled()?;
        let (held, reply) = LeaseHandle::start(Root::self_exe(), &self.root, words.to_vec(), lease)
            .map_err(|err| RunError::Failed(format!("starting the tuner: {err}")))?;
        match reply {
            TunerReply::Applied { id, members, .. } => Ok((held, id, members.iter().any(|m| !m.after.is_empty()))),
            TunerReply::Refused(refusal) => Err(RunError::Refused(refusal)),
            other => Err(RunError::Failed(format!("the tuner said {other:?}"))),
        }
    }

    /// Restores the values from the journal without the tuner, as `tune undo` does.
    fn undo_by_journal(&self, id: u64) -> Result<Vec<(KnobId, RestoreResult)>, Box<dyn std::error::Error>> {
        let mut io = ChildKnobIo::new(&self.root, Root::self_exe().into());
        let mut journal = Journal::open(&self.root)?;
        let (records, _) = journal.load()?;
        if changes_from_records(&records).iter().any(|c| c.id == id && c.is_kept) {
            return Err("somebody decided to keep it meanwhile, so it stays".into());
        }
        let mut context = TuningContext { io: &mut io, journal, kill_points: KillPoints::default() };
        Ok(restore::restore_locked(&mut context, id)?)
    }
}

impl Environment for SystemEnvironment {
    fn drain_dirty_pages(&mut self, plan: &BenchPlan) -> Result<u64, RunError> {
        let begun = Instant::now();
        self.wait_for_previous_child()?;
        let needs = workloads::find_workload(&plan.profile).is_some_and(|w| w.needs_directory);
        if needs && !self.sync_in_child(Some(&plan.directory), self.drain_limit)? {
            return Err(RunError::Failed(format!(
                "dirty pages of {} were not written within {} s: is the device hung, or slower than its dirty pages \
                 allow? Allow more by --drain-limit",
                sanitize(plan.directory.as_os_str().as_encoded_bytes()),
                self.drain_limit.as_secs()
            )));
        }
        if !self.sync_hangs {
            self.sync_hangs = !self.sync_in_child(None, OTHER_SYNC_TIMEOUT.min(self.drain_limit))?;
        }
        Ok(begun.elapsed().as_millis() as u64)
    }

    fn watch_baseline(&mut self) -> Result<Baseline, RunError> {
        if self.baseline_duration.is_zero() {
            return self.check_cancelled().map(|()| Baseline::default());
        }
        let (before, begun) = (self.counters.read(), Instant::now());
        self.pause(self.baseline_duration)?;
        let after = self.counters.read();
        let calm = super::dirty_pages::baseline_between(&before, &after, begun.elapsed().as_secs_f64());
        Ok(Baseline { sync_timed_out: self.sync_hangs, ..calm })
    }

    fn apply(&mut self, words: &[String]) -> Result<(), RunError> {
        self.check_cancelled()?;
        if !words.is_empty() {
            let (held, id, has_changed) = self.start_tuner(words, Some(LEASE_DURATION.as_secs()))?;
            // If all values were in force already there is nothing to hold.
            self.lease = has_changed.then_some((held, id));
        }
        Ok(())
    }

    fn thresholds(&mut self) -> DirtyThresholds {
        let vm = self.counters.read().vm.ok().copied().unwrap_or_default();
        let [background, limit] =
            [vm.nr_dirty_background_threshold, vm.nr_dirty_threshold].map(|pages| Some(pages? * vm.page_size));
        DirtyThresholds { background, limit }
    }

    fn run_workload(&mut self, plan: &BenchPlan, seen: &mut dyn FnMut(WorkloadEvent)) -> Result<RoundResult, RunError> {
        let (tx, messages) = channel();
        let child = ChildHandle::start(&self.root, plan, move |message| drop(tx.send(message)))
            .map_err(|err| RunError::Failed(format!("starting the measuring process: {err}")))?;
        let result = self.watch_workload(&child, &messages, seen);
        // Its work is over: this only closes its input.
        child.cancel();
        self.previous_child = Some(child);
        result
    }

    fn restore(&mut self) -> Result<(), RunError> {
        let Some((mut held, id)) = self.lease.take() else { return Ok(()) };
        let undone = match held.request(&TunerRequest::Undo) {
            Ok(TunerReply::Restored(all)) => Ok(all),
            Ok(other) => Err(format!("the tuner said {other:?}").into()),
            Err(_) => self.undo_by_journal(id),
        };
        let undone = undone.map_err(|why| {
            RunError::Failed(format!("change {id} could not be reverted: {why}; try `iotop-plus tune undo {id}`"))
        })?;
        let wrong = undone.iter().filter(|(_, result)| !result.is_restored());
        let wrong: Vec<String> = wrong.map(|(at, result)| format!("{at}: {result}")).collect();
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(RunError::Failed(format!("taking change {id} back: {}", wrong.join("; ")))),
        }
    }

    fn apply_permanently(&mut self, words: &[String], lease_secs: Option<u64>) -> Result<u64, RunError> {
        let (held, id, _) = self.start_tuner(words, lease_secs)?;
        if lease_secs.is_some() {
            held.detach().map_err(|err| RunError::Failed(err.to_string()))?;
        }
        Ok(id)
    }
}

pub(crate) fn sync_filesystems(directory: Option<&Path>) -> std::io::Result<()> {
    use rustix::fs::{CWD, Mode, OFlags};
    child::enter("sync");
    let Some(directory) = directory else {
        rustix::fs::sync();
        return Ok(());
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // The workload reports a missing directory.
    let Ok(fd) = rustix::fs::openat(CWD, directory, flags, Mode::empty()) else { return Ok(()) };
    Ok(rustix::fs::syncfs(fd)?)
}
