//! The tuner: a process of its own that makes a change and holds its lease.
//!
//! It lives in its own session, so no terminal's end reaches it. It takes the change back when the lease runs
//! out, when whoever asked goes away (the pipe ends) without having detached, on SIGTERM, SIGHUP or SIGINT, and
//! when told so on the pipe or on its socket. SIGKILL it cannot answer: then the journal has what
//! `iotop-plus tune undo` needs.

use super::apply::{Bench, apply, keep};
use super::change::Change;
use super::child::Careful;
use super::guard;
use super::journal::Journal;
use super::machine::Machine;
use super::plan::{Refusal, plan};
use super::protocol::{MAX_LINE, Reply, Request};
use super::restore::{Undone, undo};
use super::steps::{Plan, Steps};
use crate::root::Root;
use rustix::time::{ClockId, clock_gettime};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::unix::pipe;
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How often a restore that fails is tried again, and how many times.
const AGAIN: (Duration, u32) = (Duration::from_secs(5), 12);
/// The longest lease.
pub const MAX_LEASE: u64 = 24 * 3600;
/// A client of the socket gets so long for its line.
const CLIENT: Duration = Duration::from_secs(2);

/// Runs a tuner on its standard streams.
pub fn main(root: &Root, killing: Option<Plan>) -> anyhow::Result<()> {
    let _ = rustix::process::setsid();
    // Nothing that is mounted shall be busy because of us.
    let _ = std::env::set_current_dir("/");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(root, killing))
}

async fn run(root: &Root, killing: Option<Plan>) -> anyhow::Result<()> {
    // Before anything is written: from here on these signals mean "take it back".
    let signals = [SignalKind::terminate(), SignalKind::hangup(), SignalKind::interrupt()];
    let mut signals = signals.into_iter().map(signal).collect::<io::Result<Vec<_>>>()?;
    let mut input = Lines::new(pipe::Receiver::from_owned_fd(rustix::io::dup(io::stdin())?)?);
    let (words, lease_secs) = match input.next().await.as_deref().map(parse) {
        Some(Ok(Request::Set { words, lease_secs })) => (words, lease_secs.map(|s| s.min(MAX_LEASE))),
        Some(Ok(_)) => return say(&Reply::Bad("the first request must be Set".into())),
        Some(Err(why)) => return say(&Reply::Bad(why)),
        None => return Ok(()),
    };
    let mut io = Careful::new(root, Root::self_exe().into());
    let steps = Steps::with(killing);
    let (mut bench, change) = match make(root, &mut io, steps, &words, lease_secs) {
        Ok(made) => made,
        Err(refusal) => return say(&Reply::Refused(refusal)),
    };
    bench.steps.pass("before the answer");
    let told = say(&Reply::applied(&change));
    bench.steps.pass("after the answer");
    let Some(secs) = lease_secs.filter(|_| change.is_open()) else { return Ok(()) };
    let mut tuner = Tuner { id: change.id, until: boot_secs() + secs as f64, detached: false, bench };
    if told.is_err() {
        return tuner.end(None).await;
    }
    tuner.hold(&mut input, &mut signals).await
}

fn make<'a>(
    root: &Root,
    io: &'a mut Careful,
    steps: Steps,
    words: &[String],
    lease_secs: Option<u64>,
) -> Result<(Bench<'a>, Change), Refusal> {
    let planned = plan(io, &Machine::read(root), words)?;
    for p in &planned {
        guard::check(root, &p.at).map_err(Refusal::Unsafe)?;
    }
    let journal = Journal::open(root).map_err(|err| match err.kind() {
        io::ErrorKind::PermissionDenied => Refusal::Privilege(err.to_string()),
        _ => Refusal::Failed(format!("nothing was changed, as there is no journal: {err}")),
    })?;
    let mut bench = Bench { io, journal, steps };
    let change = apply(&mut bench, &planned, lease_secs)?;
    Ok((bench, change))
}

struct Tuner<'a> {
    id: u64,
    /// CLOCK_BOOTTIME in seconds: time asleep counts.
    until: f64,
    detached: bool,
    bench: Bench<'a>,
}

impl Tuner<'_> {
    async fn hold(
        &mut self,
        input: &mut Lines<pipe::Receiver>,
        signals: &mut [Signal],
    ) -> anyhow::Result<()> {
        let path = socket(&self.bench.journal, self.id);
        let _ = std::fs::remove_file(&path);
        // Without a socket the lease and the pipe still work.
        let listener = UnixListener::bind(&path).ok();
        let [term, hup, int] = signals else { anyhow::bail!("three signals") };
        loop {
            let left = self.until - boot_secs();
            if left <= 0.0 {
                break;
            }
            let (request, client) = tokio::select! {
                line = input.next(), if !self.detached => match line {
                    Some(line) => (parse(&line), None),
                    None => break,
                },
                Some(stream) = accept(listener.as_ref()) => match first_line(stream).await {
                    Some((line, stream)) => (parse(&line), Some(stream)),
                    None => continue,
                },
                // The clock of the timer stands still while the machine sleeps: look again.
                () = tokio::time::sleep(Duration::from_secs_f64(left.min(1.0))) => continue,
                _ = term.recv() => break,
                _ = hup.recv() => break,
                _ = int.recv() => break,
            };
            let (reply, over) = self.answer(request);
            tell(&reply, client.as_ref());
            if over {
                let _ = std::fs::remove_file(&path);
                return Ok(());
            }
        }
        self.end(Some(&path)).await
    }

    /// The reply, and whether that was all.
    fn answer(&mut self, request: Result<Request, String>) -> (Reply, bool) {
        match request {
            Ok(Request::Renew { secs }) => {
                self.until = boot_secs() + secs.min(MAX_LEASE) as f64;
                (self.left(), false)
            }
            Ok(Request::State) => (self.left(), false),
            Ok(Request::Detach) => {
                self.detached = true;
                (self.left(), false)
            }
            Ok(Request::Keep) => match keep(&mut self.bench.journal, &mut self.bench.steps, self.id) {
                Ok(()) => (Reply::Kept, true),
                Err(err) => (Reply::Bad(format!("not kept: {err}")), false),
            },
            Ok(Request::Undo) => match undo(&mut self.bench, self.id) {
                Ok(all) => {
                    let over = all.iter().all(|(_, u)| matches!(u, Undone::Closed(_)));
                    (Reply::Undone(all), over)
                }
                Err(err) => (Reply::Bad(format!("not undone: {err}")), false),
            },
            Ok(Request::Set { .. }) => (Reply::Bad("a tuner makes one change".into()), false),
            Err(why) => (Reply::Bad(why), false),
        }
    }

    fn left(&self) -> Reply {
        Reply::Left { secs: (self.until - boot_secs()).max(0.0).ceil() as u64 }
    }

    /// Takes the change back, again and again while that fails.
    async fn end(&mut self, path: Option<&PathBuf>) -> anyhow::Result<()> {
        for _ in 0..AGAIN.1 {
            match undo(&mut self.bench, self.id) {
                Ok(all) if all.iter().all(|(_, u)| matches!(u, Undone::Closed(_))) => {
                    tell(&Reply::Undone(all), None);
                    break;
                }
                _ => tokio::time::sleep(AGAIN.0).await,
            }
        }
        if let Some(path) = path {
            let _ = std::fs::remove_file(path);
        }
        Ok(())
    }
}

/// Where a change's tuner listens.
pub fn socket(journal: &Journal, id: u64) -> PathBuf {
    journal.dir().join(format!("{id}.sock"))
}

fn parse(line: impl AsRef<[u8]>) -> Result<Request, String> {
    serde_json::from_slice(line.as_ref()).map_err(|err| format!("request not understood: {err}"))
}

fn encode(reply: &Reply) -> Vec<u8> {
    let mut line = serde_json::to_vec(reply).unwrap_or_default();
    line.push(b'\n');
    line
}

fn say(reply: &Reply) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(&encode(reply))?;
    Ok(out.flush()?)
}

/// To the client that asked, or to the pipe. Nobody there to read it is no reason to stop.
fn tell(reply: &Reply, client: Option<&UnixStream>) {
    match client {
        Some(stream) => drop(stream.try_write(&encode(reply))),
        None => drop(say(reply)),
    }
}

async fn accept(listener: Option<&UnixListener>) -> Option<UnixStream> {
    match listener {
        Some(listener) => listener.accept().await.ok().map(|(stream, _)| stream),
        None => std::future::pending().await,
    }
}

async fn first_line(stream: UnixStream) -> Option<(Vec<u8>, UnixStream)> {
    let mut lines = Lines::new(stream);
    let line = tokio::time::timeout(CLIENT, lines.next()).await.ok()??;
    Some((line, lines.from))
}

/// Lines of a pipe or socket, without ever waiting in a system call.
struct Lines<R> {
    from: R,
    rest: Vec<u8>,
}

trait Readable {
    async fn ready(&self) -> io::Result<()>;
    fn take(&self, buf: &mut [u8]) -> io::Result<usize>;
}

impl Readable for pipe::Receiver {
    async fn ready(&self) -> io::Result<()> {
        self.readable().await
    }

    fn take(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.try_read(buf)
    }
}

impl Readable for UnixStream {
    async fn ready(&self) -> io::Result<()> {
        self.readable().await
    }

    fn take(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.try_read(buf)
    }
}

impl<R: Readable> Lines<R> {
    fn new(from: R) -> Self {
        Self { from, rest: Vec::new() }
    }

    /// The next line without its newline; `None` at the end, after an error, or when it is too long. May be
    /// dropped while it waits: what was read stays.
    async fn next(&mut self) -> Option<Vec<u8>> {
        let mut buf = [0; 4096];
        loop {
            if let Some(at) = self.rest.iter().position(|b| *b == b'\n') {
                let line = self.rest.drain(..=at).take(at).collect();
                return Some(line);
            }
            if self.rest.len() > MAX_LINE {
                return None;
            }
            self.from.ready().await.ok()?;
            match self.from.take(&mut buf) {
                Ok(0) => return None,
                Ok(n) => self.rest.extend_from_slice(&buf[..n]),
                Err(err) if err.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
    }
}

fn boot_secs() -> f64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}
