//! The tuner: a process that makes a change and holds its lease.
//!
//! It runs in its own session, so that a closing terminal does not signal it. It restores the old values when the
//! lease expires; when its client closes the pipe without having detached; on SIGTERM, SIGHUP and SIGINT; and on
//! request, by the pipe or its socket. After SIGKILL, `iotop-plus tune undo` restores them from the journal.

use super::apply::{apply, mark_kept};
use super::change_set::ChangeSet;
use super::child_io::ChildKnobIo;
use super::context::TuningContext;
use super::journal::{Journal, require_memory};
use super::kill_points::{KillPlan, KillPoints};
use super::machine_limits::MachineLimits;
use super::plan::{TuneError, plan_writes};
use super::progress_check;
use super::protocol::{MAX_LINE, TunerReply, TunerRequest};
use super::restore::{restore, restore_locked, restore_within};
use crate::root::Root;
use crate::subprocess::child::{self, next_signal};
use crate::subprocess::frame::{self, FrameError};
use rustix::time::{ClockId, clock_gettime};
use std::io::{self, BufReader};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// The seconds between attempts to restore, and the number of attempts.
const RESTORE_RETRY: (f64, u32) = (1.0, 60);
/// How long an attempt waits for another process that is making a change, and how many attempts do: one that hangs must
/// not keep the old values from coming back.
const RESTORE_LOCK_TIMEOUT: (Duration, u32) = (Duration::from_millis(200), 4);
/// The longest lease, seconds.
pub(crate) const MAX_LEASE_SECS: u64 = 24 * 3600;
/// How long a client of the socket may take to send its request, or to take the reply.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(2);

/// Separates a tuner from the program that started it, which it may outlive: its first call.
pub(crate) fn detach_process() {
    child::enter("tuner");
    child::close_inherited_descriptors();
    // Do not keep a mount busy.
    let _ = std::env::set_current_dir("/");
}

/// Runs a tuner on standard input and output.
pub(crate) fn run_tuner_process(root: &Root, kill_plan: Option<KillPlan>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(root, kill_plan))
}

async fn run(root: &Root, kill_plan: Option<KillPlan>) -> io::Result<()> {
    // Before anything is written: from here on these signals restore the old values.
    let mut signals =
        [signal(SignalKind::terminate())?, signal(SignalKind::hangup())?, signal(SignalKind::interrupt())?];
    let mut input = child::stdin_lines();
    let refuse = |reply| {
        child::send(&reply);
        Ok(())
    };
    let (assignments, lease_secs) = match input.recv().await.as_deref().map(parse_request) {
        Some(Ok(TunerRequest::Set { assignments, lease_secs })) => {
            (assignments, lease_secs.map(|s| s.min(MAX_LEASE_SECS)))
        }
        Some(Ok(_)) => return refuse(TunerReply::Error("the first request must be Set".into())),
        Some(Err(err)) => return refuse(invalid_request(&err)),
        None => return Ok(()),
    };
    let mut io = ChildKnobIo::new(root, Root::self_exe().into());
    let kill_points = KillPoints::with_plan(kill_plan);
    let (mut context, change) = match make_change(root, &mut io, kill_points, &assignments, lease_secs) {
        Ok(applied) => applied,
        Err(error) => return refuse(TunerReply::Refused(error)),
    };
    context.kill_points.reach("before the answer");
    let is_reply_sent = child::send(&TunerReply::for_change(&change));
    context.kill_points.reach("after the answer");
    let Some(secs) = lease_secs.filter(|_| change.is_open()) else { return Ok(()) };
    // Where nobody reads the reply the lease ends at once.
    let expires_at = now_boot_secs() + if is_reply_sent { secs as f64 } else { 0.0 };
    let mut tuner = Tuner { id: change.id, expires_at, is_detached: false, attempts: None, context };
    tuner.serve(&mut input, &mut signals).await
}

/// Refuses a lease where the process that restores the old values would end before it.
fn require_lasting_process(root: &Root) -> Result<(), TuneError> {
    let place = match root.is_initial_pid_namespace() {
        Ok(false) => "a container's PID namespace",
        _ if root.is_container() => "a container",
        _ => return Ok(()),
    };
    Err(TuneError::Unsafe(format!(
        "nothing was changed: a lease cannot be held in {place}, with which the process that restores the old values would \
         end; run on the host, or use --keep and `tune undo`"
    )))
}

fn make_change<'a>(
    root: &Root,
    io: &'a mut ChildKnobIo,
    kill_points: KillPoints,
    assignments: &[String],
    lease_secs: Option<u64>,
) -> Result<(TuningContext<'a>, ChangeSet), TuneError> {
    if lease_secs.is_some() {
        require_lasting_process(root)?;
    }
    let planned = plan_writes(io, &MachineLimits::read(root), assignments)?;
    for p in &planned {
        progress_check::require_progress(root, &p.knob)?;
    }
    require_memory(root).map_err(|why| TuneError::Unsafe(format!("nothing was changed: {why}")))?;
    let journal = Journal::open(root).map_err(|err| match err.kind() {
        io::ErrorKind::PermissionDenied => TuneError::Privilege(err.to_string()),
        _ => TuneError::Failed(format!("nothing was changed, as there is no journal: {err}")),
    })?;
    let mut context = TuningContext { io, journal, kill_points };
    let change = apply(&mut context, &planned, lease_secs)?;
    Ok((context, change))
}

struct Tuner<'a> {
    id: u64,
    /// CLOCK_BOOTTIME in seconds, which includes time in suspend.
    expires_at: f64,
    is_detached: bool,
    /// How often it has tried to restore the old values; `None`: the lease goes on.
    attempts: Option<u32>,
    context: TuningContext<'a>,
}

impl Tuner<'_> {
    async fn serve(
        &mut self,
        input: &mut mpsc::UnboundedReceiver<String>,
        signals: &mut [Signal; 3],
    ) -> io::Result<()> {
        let path = socket_path(&self.context.journal, self.id);
        let _ = std::fs::remove_file(&path);
        let mut clients = accept_clients(&path);
        loop {
            let left = self.expires_at - now_boot_secs();
            if left <= 0.0 {
                if self.try_restore() {
                    break;
                }
                continue;
            }
            let (request, client) = tokio::select! {
                line = input.recv(), if !self.is_detached => match line {
                    Some(line) => (parse_request(&line), None),
                    None => {
                        self.is_detached = true;
                        self.end_lease();
                        continue;
                    }
                },
                Some((request, stream)) = clients.recv() => (request, Some(stream)),
                // Timers stop during suspend, so check the boot clock every second.
                () = tokio::time::sleep(Duration::from_secs_f64(left.min(1.0))) => continue,
                () = next_signal(signals) => {
                    self.end_lease();
                    continue;
                }
            };
            let (reply, is_done) = self.handle(request);
            // To the client that asked, or to the pipe. Nobody needs to be reading.
            match client {
                Some(mut stream) => drop(frame::write(&mut stream, &reply)),
                None => drop(child::send(&reply)),
            }
            if is_done {
                break;
            }
        }
        let _ = std::fs::remove_file(&path);
        Ok(())
    }

    /// Ends the lease now, unless it has ended already.
    fn end_lease(&mut self) {
        if self.attempts.is_none() {
            self.expires_at = now_boot_secs();
        }
    }

    /// Tries to restore the old values; true: they are, or it was tried often enough. Otherwise `expires_at` is the time
    /// of the next attempt, and requests are answered meanwhile.
    fn try_restore(&mut self) -> bool {
        let attempts = self.attempts.get_or_insert(0);
        *attempts += 1;
        let is_last = *attempts >= RESTORE_RETRY.1;
        let (timeout, waiting_attempts) = RESTORE_LOCK_TIMEOUT;
        let restored = match *attempts > waiting_attempts {
            true => restore(&mut self.context, self.id),
            false => restore_within(&mut self.context, self.id, timeout),
        };
        self.expires_at = now_boot_secs() + RESTORE_RETRY.0;
        match restored {
            Ok(all) if all.iter().all(|(_, u)| u.outcome().is_some()) => {
                child::send(&TunerReply::Restored(all));
                true
            }
            _ => is_last,
        }
    }

    fn handle(&mut self, request: serde_json::Result<TunerRequest>) -> (TunerReply, bool) {
        match request {
            Ok(TunerRequest::Renew { .. } | TunerRequest::Keep | TunerRequest::Detach) if self.attempts.is_some() => {
                (TunerReply::Error("its lease has ended, the old values are being restored".into()), false)
            }
            Ok(TunerRequest::Renew { secs }) => {
                self.expires_at = now_boot_secs() + secs.min(MAX_LEASE_SECS) as f64;
                (self.time_left(), false)
            }
            Ok(TunerRequest::Status) => (self.time_left(), false),
            Ok(TunerRequest::Detach) => {
                self.is_detached = true;
                (self.time_left(), false)
            }
            Ok(TunerRequest::Keep) => {
                match mark_kept(&mut self.context.journal, &mut self.context.kill_points, self.id) {
                    Ok(()) => (TunerReply::Kept, true),
                    Err(err) => (TunerReply::Error(format!("not kept: {err}")), false),
                }
            }
            Ok(TunerRequest::Undo) => match restore_locked(&mut self.context, self.id) {
                Ok(all) => {
                    let is_done = all.iter().all(|(_, u)| u.outcome().is_some());
                    (TunerReply::Restored(all), is_done)
                }
                Err(err) => (TunerReply::Error(format!("not undone: {err}")), false),
            },
            Ok(TunerRequest::Set { .. }) => (TunerReply::Error("a tuner makes one change".into()), false),
            Err(err) => (invalid_request(&err), false),
        }
    }

    fn time_left(&self) -> TunerReply {
        let left = if self.attempts.is_some() { 0.0 } else { self.expires_at - now_boot_secs() };
        TunerReply::TimeLeft { secs: left.max(0.0).ceil() as u64 }
    }
}

/// The socket of a change's tuner.
pub(crate) fn socket_path(journal: &Journal, id: u64) -> PathBuf {
    journal.dir().join(format!("{id}.sock"))
}

fn parse_request(line: &str) -> serde_json::Result<TunerRequest> {
    serde_json::from_slice(line.as_bytes())
}

fn invalid_request(err: &serde_json::Error) -> TunerReply {
    TunerReply::Error(format!("invalid request: {err}"))
}

/// A client of the socket with its request.
type Client = (serde_json::Result<TunerRequest>, UnixStream);

/// Accepts clients on the socket. Without one, the lease and the pipe still work.
fn accept_clients(path: &Path) -> mpsc::UnboundedReceiver<Client> {
    let (sender, clients) = mpsc::unbounded_channel();
    let Ok(listener) = UnixListener::bind(path) else { return clients };
    let accept = move || {
        while let Ok((stream, _)) = listener.accept() {
            let limits = stream.set_read_timeout(Some(CLIENT_TIMEOUT));
            if limits.and_then(|()| stream.set_write_timeout(Some(CLIENT_TIMEOUT))).is_err() {
                continue;
            }
            let request = match frame::read(&mut BufReader::new(&stream), MAX_LINE) {
                Ok(Some(request)) => Ok(request),
                Err(FrameError::Malformed(err)) => Err(err),
                Ok(None) | Err(_) => continue,
            };
            if sender.send((request, stream)).is_err() {
                break;
            }
        }
    };
    let _ = std::thread::Builder::new().name("clients".into()).stack_size(128 * 1024).spawn(accept);
    clients
}

fn now_boot_secs() -> f64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}
