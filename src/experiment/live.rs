//! The real machine: dirty pages drained by children, values set by a tuner on a short lease, the workload in its
//! own child. This process waits on none of them without a deadline.

use super::lab::{Fail, Lab, Seen, Worked};
use super::report::Calm;
use super::watch::{Counters, Watch};
use crate::bench::host::Running;
use crate::bench::message::Message as BenchMessage;
use crate::bench::plan::Plan;
use crate::bench::workloads;
use crate::root::Root;
use crate::tune::apply::Bench;
use crate::tune::change::fold;
use crate::tune::child::Careful;
use crate::tune::client::{Held, Said};
use crate::tune::journal::Journal;
use crate::tune::plan::Refusal;
use crate::tune::protocol::{Reply, Request};
use crate::tune::record::Outcome;
use crate::tune::restore::{self, Undone};
use crate::tune::steps::Steps;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, pidfd_open};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// A round's values come back so long after this process last gave a sign of life, at the latest.
pub const LEASE: Duration = Duration::from_secs(60);
/// How often that sign is given.
const RENEW: Duration = Duration::from_secs(10);
/// Between two looks at dirty pages.
const LOOK: Duration = Duration::from_millis(250);
/// Without a word from the measuring process for so long it is given up: it speaks four times a second.
const SILENCE: Duration = Duration::from_secs(20);
/// How long file systems that have nothing to do with the workload may take to write what they have.
const OTHERS: Duration = Duration::from_secs(30);

/// The machine this runs on.
pub struct Live {
    root: Root,
    stop: Arc<AtomicBool>,
    counters: Counters,
    drain_limit: Duration,
    calm: Duration,
    /// What holds the arm's values now: the tuner and the change's number.
    held: Option<(Held, u64)>,
    renewed: Instant,
    /// The measuring process of the round before, until it is gone with its file.
    before: Option<(u32, OwnedFd)>,
    /// A file system did not finish its sync: asked again, another process would be left behind.
    sync_hangs: bool,
}

impl Live {
    /// `stop` ends whatever is going on.
    pub fn new(root: Root, stop: Arc<AtomicBool>, drain_limit: Duration, calm: Duration) -> Self {
        let counters = Counters::new(&root);
        Self {
            root,
            stop,
            counters,
            drain_limit,
            calm,
            held: None,
            renewed: Instant::now(),
            before: None,
            sync_hangs: false,
        }
    }

    fn check(&self) -> Result<(), Fail> {
        if self.stop.load(Ordering::Relaxed) { Err(Fail::Cancelled) } else { Ok(()) }
    }

    fn pause(&self, span: Duration) -> Result<(), Fail> {
        let end = Instant::now() + span;
        while let Some(left) = end.checked_duration_since(Instant::now()).filter(|l| !l.is_zero()) {
            self.check()?;
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
        self.check()
    }

    /// Has a child sync `directory`'s file system, or all; `false`: not within `limit`, the child is left behind.
    fn sync(&mut self, directory: Option<&Path>, limit: Duration) -> Result<bool, Fail> {
        let failed = |err: std::io::Error| Fail::Failed(format!("draining dirty pages: {err}"));
        let mut command = Command::new(Root::self_exe());
        command.arg(super::host::COMMAND).arg("--sync");
        if let Some(directory) = directory {
            command.arg(directory);
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let begun = Instant::now();
        loop {
            match child.try_wait().map_err(failed)? {
                Some(status) if status.success() => return Ok(true),
                Some(status) => {
                    let what = directory.map_or("all file systems".into(), |d| {
                        crate::text::sanitize(d.as_os_str().as_encoded_bytes())
                    });
                    return Err(Fail::Failed(format!(
                        "draining dirty pages: sync of {what} failed ({status})"
                    )));
                }
                None => {}
            }
            let stopped = self.pause(Duration::from_millis(20));
            if stopped.is_err() || begun.elapsed() >= limit {
                let _ = child.kill();
                std::thread::spawn(move || child.wait());
                return stopped.map(|()| false);
            }
        }
    }

    /// Keeps the lease while the workload runs; an error if the values are not ours any more.
    fn renew(&mut self) -> Result<(), Fail> {
        let Some((held, id)) = &mut self.held else { return Ok(()) };
        match held.said() {
            Said::Nothing => {}
            Said::Reply(said) => return Err(lost(*id, &format!("it said {said:?}"))),
            Said::Ended => return Err(lost(*id, "it ended")),
        }
        if self.renewed.elapsed() < RENEW {
            return Ok(());
        }
        self.renewed = Instant::now();
        match held.ask(&Request::Renew { secs: LEASE.as_secs() }) {
            Ok(Reply::Left { .. }) => Ok(()),
            Ok(other) => Err(lost(*id, &format!("it said {other:?}"))),
            Err(err) => Err(lost(*id, &err.to_string())),
        }
    }

    /// Waits for the measuring process of the round before: what is written of its file would be written into the
    /// next one.
    fn gone(&mut self) -> Result<(), Fail> {
        let Some((pid, fd)) = self.before.take() else { return Ok(()) };
        let end = Instant::now() + self.drain_limit;
        loop {
            self.check()?;
            let slice = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            if poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&slice)) == Ok(1) {
                return Ok(());
            }
            if Instant::now() >= end {
                return Err(Fail::Failed(format!(
                    "the measuring process {pid} has not ended within {} s: its file's last pages are still being \
                     written. Allow more by --drain-limit",
                    self.drain_limit.as_secs()
                )));
            }
        }
    }

    fn start(&mut self, words: &[String], lease: Option<u64>) -> Result<(Held, Reply), Fail> {
        Held::start(Root::self_exe(), &self.root, words.to_vec(), lease)
            .map_err(|err| Fail::Failed(format!("starting the tuner: {err}")))
    }

    /// The way back without the tuner that made the change: by the journal, as `tune undo` goes.
    fn by_journal(&self, id: u64) -> Result<Vec<(crate::tune::address::Address, Undone)>, String> {
        let mut io = Careful::new(&self.root, Root::self_exe().into());
        let mut journal = Journal::open(&self.root).map_err(|e| e.to_string())?;
        let (records, _) = journal.load().map_err(|e| e.to_string())?;
        if fold(&records).iter().any(|c| c.id == id && c.kept) {
            return Err("somebody decided to keep it meanwhile, so it stays".into());
        }
        let mut bench = Bench { io: &mut io, journal, steps: Steps::default() };
        restore::undo(&mut bench, id).map_err(|e| e.to_string())
    }
}

fn lost(id: u64, why: &str) -> Fail {
    Fail::Failed(format!(
        "the tuner of change {id} does not hold it any more ({why}): somebody kept or undid it, or ended the tuner"
    ))
}

impl Lab for Live {
    fn drain(&mut self, plan: &Plan) -> Result<u64, Fail> {
        let begun = Instant::now();
        self.gone()?;
        let needs = workloads::find(&plan.profile).is_some_and(|w| w.needs_directory());
        if needs && !self.sync(Some(&plan.directory), self.drain_limit)? {
            return Err(Fail::Failed(format!(
                "dirty pages of {} were not written within {} s: is the device hung, or slower than its dirty pages \
                 allow? Allow more by --drain-limit",
                crate::text::sanitize(plan.directory.as_os_str().as_encoded_bytes()),
                self.drain_limit.as_secs()
            )));
        }
        if !self.sync_hangs {
            self.sync_hangs = !self.sync(None, OTHERS.min(self.drain_limit))?;
        }
        Ok(begun.elapsed().as_millis() as u64)
    }

    fn calm(&mut self) -> Result<Calm, Fail> {
        if self.calm.is_zero() {
            return self.check().map(|()| Calm::default());
        }
        let before = self.counters.read();
        self.pause(self.calm)?;
        let calm = super::watch::calm(&before, &self.counters.read());
        Ok(Calm { undrained: self.sync_hangs, ..calm })
    }

    fn apply(&mut self, words: &[String]) -> Result<(), Fail> {
        self.check()?;
        if words.is_empty() {
            return Ok(());
        }
        let (held, reply) = self.start(words, Some(LEASE.as_secs()))?;
        match reply {
            Reply::Applied { id, members, .. } => {
                self.renewed = Instant::now();
                // Where all stood so already there is nothing to hold.
                self.held = members.iter().any(|m| !m.after.is_empty()).then_some((held, id));
                Ok(())
            }
            Reply::Refused(refusal) => Err(Fail::Refused(refusal)),
            other => Err(Fail::Failed(format!("the tuner said {other:?}"))),
        }
    }

    fn thresholds(&mut self) -> (Option<u64>, Option<u64>) {
        let vm = self.counters.read().vm;
        let bytes = |pages: Option<u64>| pages.map(|n| n * vm.page_size);
        (bytes(vm.nr_dirty_background_threshold), bytes(vm.nr_dirty_threshold))
    }

    fn work(&mut self, plan: &Plan, seen: &mut dyn FnMut(Seen)) -> Result<Worked, Fail> {
        let (tx, messages) = channel();
        let running = Running::start(&self.root, plan, move |message| drop(tx.send(message)))
            .map_err(|err| Fail::Failed(format!("starting the measuring process: {err}")))?;
        let pid = rustix::process::Pid::from_raw(running.pid() as i32);
        // Without it, gone already.
        let fd = pid.and_then(|p| pidfd_open(p, PidfdFlags::empty()).ok());
        self.before = fd.map(|fd| (running.pid(), fd));
        let mut watch = Watch::default();
        let (mut cancelled, mut trouble) = (false, None);
        let mut heard = Instant::now();
        loop {
            let message = messages.recv_timeout(LOOK);
            if let Err(fail) = self.renew() {
                trouble.get_or_insert(fail);
            }
            let stop = self.stop.load(Ordering::Relaxed) || trouble.is_some();
            if stop && !std::mem::replace(&mut cancelled, true) {
                running.cancel();
                heard = Instant::now();
            }
            match message {
                Ok(BenchMessage::Progress(progress)) => {
                    heard = Instant::now();
                    let point = watch.look(&progress, &mut self.counters);
                    seen(Seen::Progress(&progress, point));
                }
                Ok(BenchMessage::Note(note)) => seen(Seen::Note(&note)),
                Ok(BenchMessage::Report(report)) => {
                    let (dirtied, written) = watch.sums();
                    let worked = Worked { report: *report, points: watch.points, dirtied, written };
                    return trouble.map_or(Ok(worked), Err);
                }
                Ok(BenchMessage::Refused(refused)) => {
                    let refusal = if refused.privilege { Refusal::Privilege } else { Refusal::Unsafe };
                    return Err(trouble.unwrap_or(Fail::Refused(refusal(refused.why))));
                }
                Ok(BenchMessage::Failed(why)) => return Err(trouble.unwrap_or(Fail::Failed(why))),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Fail::Failed("the measuring process broke off".into()));
                }
            }
            if heard.elapsed() > SILENCE {
                running.kill();
                return Err(trouble.unwrap_or(Fail::Failed(format!(
                    "the measuring process {} has said nothing for {} s and is left behind",
                    running.pid(),
                    SILENCE.as_secs()
                ))));
            }
        }
    }

    fn restore(&mut self) -> Result<(), Fail> {
        let Some((mut held, id)) = self.held.take() else { return Ok(()) };
        let undone = match held.ask(&Request::Undo) {
            Ok(Reply::Undone(all)) => Ok(all),
            Ok(other) => Err(format!("the tuner said {other:?}")),
            Err(_) => self.by_journal(id),
        };
        let undone = undone.map_err(|why| {
            Fail::Failed(format!(
                "change {id} could not be taken back: {why}; try `iotop-plus tune undo {id}`"
            ))
        })?;
        let fine = |u: &Undone| matches!(u, Undone::Closed(Outcome::Restored | Outcome::Already));
        let wrong: Vec<String> =
            undone.iter().filter(|(_, u)| !fine(u)).map(|(at, u)| format!("{at}: {u}")).collect();
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(Fail::Failed(format!("taking change {id} back: {}", wrong.join("; ")))),
        }
    }

    fn leave(&mut self, words: &[String], lease_secs: Option<u64>) -> Result<u64, Fail> {
        self.check()?;
        let (held, reply) = self.start(words, lease_secs)?;
        let id = match reply {
            Reply::Applied { id, .. } => id,
            Reply::Refused(refusal) => return Err(Fail::Refused(refusal)),
            other => return Err(Fail::Failed(format!("the tuner said {other:?}"))),
        };
        if lease_secs.is_some() {
            held.detach().map_err(|err| Fail::Failed(err.to_string()))?;
        }
        Ok(id)
    }
}

/// The child that syncs: one file system, or all.
pub fn sync(directory: Option<&Path>) -> std::io::Result<()> {
    use rustix::fs::{CWD, Mode, OFlags};
    let _ = rustix::process::setsid();
    let Some(directory) = directory else {
        rustix::fs::sync();
        return Ok(());
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match rustix::fs::openat(CWD, directory, flags, Mode::empty()) {
        Ok(fd) => Ok(rustix::fs::syncfs(fd)?),
        // What is wrong with it the workload says better.
        Err(_) => Ok(()),
    }
}
