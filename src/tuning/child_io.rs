//! Knobs of devices and mounts are touched in a child process with a deadline: such a read or write can wait
//! for ever, and not even SIGKILL ends it then. The child is left behind and named, never waited for; while it
//! lives nothing else is asked about the same device or mount, so that they cannot pile up.

use super::knob_id::KnobId;
use super::knob_io::{DirectKnobIo, KnobError, KnobIo, KnobReading};
use super::progress_check;
use crate::root::Root;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How long one answer may take. A scheduler switch waits for the queue to empty, so it is not short.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(3);
/// The longest line that is read.
const MAX_LINE: u64 = 256 * 1024;

/// What the child is asked, one line each.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum KnobRequest {
    Read(KnobId),
    Write(KnobId, String),
    Identity(KnobId),
}

impl KnobRequest {
    fn knob(&self) -> &KnobId {
        match self {
            KnobRequest::Read(at) | KnobRequest::Write(at, _) | KnobRequest::Identity(at) => at,
        }
    }
}

/// What it answers, one line for each line asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum KnobResponse {
    Reading(KnobReading),
    Written,
    Identity(String),
    Failed(KnobError),
}

/// Direct where nothing can block, by a child where something can.
#[derive(Debug, Clone)]
pub struct ChildKnobIo {
    direct: DirectKnobIo,
    root: Root,
    program: PathBuf,
    timeout: Duration,
    /// By device or mount: the child that never answered, and whether it lives still.
    abandoned: BTreeMap<String, (u32, Arc<AtomicBool>)>,
}

impl ChildKnobIo {
    /// `program` is this program's binary.
    pub fn new(root: &Root, program: PathBuf) -> Self {
        let direct = DirectKnobIo::new(root.clone());
        Self { direct, root: root.clone(), program, timeout: DEFAULT_TIMEOUT, abandoned: BTreeMap::new() }
    }

    /// Another deadline for an answer.
    pub fn with_timeout(mut self, within: Duration) -> Self {
        self.timeout = within;
        self
    }

    /// The child that is still waiting on the thing of this knob.
    fn abandoned_child_error(&self, at: &KnobId) -> Option<KnobError> {
        let (pid, _) = self.abandoned.get(at.instance()).filter(|(_, lives)| lives.load(Ordering::Relaxed))?;
        Some(KnobError::Blocked(format!("{at}: process {pid} still waits on {}", at.instance())))
    }

    /// Asks one child all of it. After the first answer that does not come the rest is asked of another,
    /// without what belongs to the same device or mount.
    fn request_all(&mut self, asks: Vec<KnobRequest>) -> Vec<KnobResponse> {
        let mut answers: Vec<Option<KnobResponse>> =
            asks.iter().map(|ask| self.abandoned_child_error(ask.knob()).map(KnobResponse::Failed)).collect();
        let mut left: VecDeque<usize> = (0..asks.len()).filter(|i| answers[*i].is_none()).collect();
        while !left.is_empty() {
            let part: Vec<usize> = left.drain(..).collect();
            let got = self.run_child(part.iter().map(|i| &asks[*i]));
            for (i, answer) in part.iter().zip(&got.0) {
                answers[*i] = Some(answer.clone());
            }
            let Some(stuck) = part.get(got.0.len()) else { break };
            let at = asks[*stuck].knob();
            if let NoResponse::TimedOut(pid, lives) = &got.1 {
                self.abandoned.insert(at.instance().to_owned(), (*pid, lives.clone()));
            }
            for i in &part[got.0.len()..] {
                match asks[*i].knob().instance() == at.instance() {
                    true => answers[*i] = Some(KnobResponse::Failed(got.1.clone().into_error(asks[*i].knob()))),
                    false => left.push_back(*i),
                }
            }
        }
        let lost = |at: &KnobId| KnobResponse::Failed(KnobError::Blocked(format!("{at}: not asked")));
        answers.into_iter().zip(&asks).map(|(a, ask)| a.unwrap_or_else(|| lost(ask.knob()))).collect()
    }

    /// The answers that came, and why the next one did not.
    fn run_child<'a>(&self, asks: impl Iterator<Item = &'a KnobRequest>) -> (Vec<KnobResponse>, NoResponse) {
        let mut request = Vec::new();
        let mut count = 0;
        for ask in asks {
            count += 1;
            request.extend(serde_json::to_vec(ask).unwrap_or_default());
            request.push(b'\n');
        }
        let spawned = Command::new(&self.program)
            .args(["tuner", "--io", "--root"])
            .arg(self.root.base())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = match spawned {
            Ok(child) => child,
            Err(err) => return (Vec::new(), NoResponse::ChildFailed(err.to_string())),
        };
        let pid = child.id();
        let lives = Arc::new(AtomicBool::new(true));
        let ends = lives.clone();
        let (tx, rx) = mpsc::channel();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        // This thread ends when the child does, or is left behind with it.
        std::thread::spawn(move || {
            // Writing cannot wait long: the child reads all before it does anything.
            if let Some(mut stdin) = stdin {
                let _ = stdin.write_all(&request);
            }
            if let Some(stdout) = stdout {
                for line in BufReader::new(stdout.take(MAX_LINE)).lines().map_while(Result::ok) {
                    let answer = serde_json::from_str::<KnobResponse>(&line);
                    if answer.is_err() || answer.is_ok_and(|a| tx.send(a).is_err()) {
                        break;
                    }
                }
            }
            drop(tx);
            let _ = child.wait();
            ends.store(false, Ordering::Relaxed);
        });
        let mut got = Vec::new();
        while got.len() < count {
            match rx.recv_timeout(self.timeout) {
                Ok(answer) => got.push(answer),
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    if let Some(pid) = rustix::process::Pid::from_raw(pid as i32) {
                        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                    }
                    return (got, NoResponse::TimedOut(pid, lives));
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    return (got, NoResponse::ChildFailed("it ended without an answer".into()));
                }
            }
        }
        (got, NoResponse::ChildFailed(String::new()))
    }

    fn request(&mut self, ask: KnobRequest) -> KnobResponse {
        self.request_all(vec![ask]).pop().unwrap_or(KnobResponse::Written)
    }
}

/// Why an answer is missing.
#[derive(Debug, Clone)]
enum NoResponse {
    TimedOut(u32, Arc<AtomicBool>),
    ChildFailed(String),
}

impl NoResponse {
    fn into_error(self, at: &KnobId) -> KnobError {
        match self {
            NoResponse::TimedOut(pid, _) => KnobError::Blocked(format!(
                "{at}: no answer in time; process {pid} is left behind waiting, and what it asked may still happen"
            )),
            NoResponse::ChildFailed(why) => KnobError::Invalid(format!("{at}: child process: {why}")),
        }
    }
}

impl KnobIo for ChildKnobIo {
    fn read(&mut self, at: &KnobId) -> Result<KnobReading, KnobError> {
        if !at.knob().may_block() {
            return self.direct.read(at);
        }
        match self.request(KnobRequest::Read(at.clone())) {
            KnobResponse::Reading(reading) => Ok(reading),
            other => Err(unexpected_response(at, other)),
        }
    }

    fn write(&mut self, at: &KnobId, value: &str) -> Result<(), KnobError> {
        if !at.knob().may_block() {
            return self.direct.write(at, value);
        }
        // Also when taking back: the journal keeps it until the device moves again.
        progress_check::require_progress(&self.root, at).map_err(KnobError::Blocked)?;
        match self.request(KnobRequest::Write(at.clone(), value.into())) {
            KnobResponse::Written => Ok(()),
            other => Err(unexpected_response(at, other)),
        }
    }

    fn identity(&mut self, at: &KnobId) -> Result<String, KnobError> {
        if !at.knob().may_block() {
            return self.direct.identity(at);
        }
        match self.request(KnobRequest::Identity(at.clone())) {
            KnobResponse::Identity(ident) => Ok(ident),
            other => Err(unexpected_response(at, other)),
        }
    }

    fn read_all(&mut self, all: &[KnobId]) -> Vec<Result<KnobReading, KnobError>> {
        let careful: Vec<KnobRequest> =
            all.iter().filter(|a| a.knob().may_block()).cloned().map(KnobRequest::Read).collect();
        let mut answers = self.request_all(careful).into_iter();
        all.iter()
            .map(|at| match at.knob().may_block() {
                false => self.direct.read(at),
                true => match answers.next() {
                    Some(KnobResponse::Reading(reading)) => Ok(reading),
                    Some(other) => Err(unexpected_response(at, other)),
                    None => Err(KnobError::Blocked(format!("{at}: not asked"))),
                },
            })
            .collect()
    }
}

fn unexpected_response(at: &KnobId, answer: KnobResponse) -> KnobError {
    match answer {
        KnobResponse::Failed(fail) => fail,
        _ => KnobError::Invalid(format!("{at}: child process: an answer to another question")),
    }
}

/// The child's side: questions on standard input, answers on standard output.
pub fn run_child_process(root: &Root) -> anyhow::Result<()> {
    let _ = rustix::process::setsid();
    let mut text = String::new();
    std::io::stdin().take(16 * MAX_LINE).read_to_string(&mut text)?;
    let mut io = DirectKnobIo::new(root.clone());
    let mut out = std::io::stdout().lock();
    for line in text.lines() {
        let answer = match serde_json::from_str::<KnobRequest>(line) {
            Ok(KnobRequest::Read(at)) => io.read(&at).map_or_else(KnobResponse::Failed, KnobResponse::Reading),
            Ok(KnobRequest::Write(at, value)) => {
                io.write(&at, &value).map_or_else(KnobResponse::Failed, |()| KnobResponse::Written)
            }
            Ok(KnobRequest::Identity(at)) => io.identity(&at).map_or_else(KnobResponse::Failed, KnobResponse::Identity),
            Err(err) => anyhow::bail!("question not understood: {err}"),
        };
        serde_json::to_writer(&mut out, &answer)?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_child_that_never_answers_is_abandoned_and_its_device_is_not_asked_again() {
        let dir = tempfile::tempdir().unwrap();
        for disk in ["sda", "sdb"] {
            let queue = dir.path().join(format!("sys/block/{disk}/queue"));
            std::fs::create_dir_all(&queue).unwrap();
            std::fs::write(queue.join("nr_requests"), "64\n").unwrap();
        }
        std::fs::create_dir_all(dir.path().join("proc/sys/vm")).unwrap();
        std::fs::write(dir.path().join("proc/sys/vm/swappiness"), "60\n").unwrap();
        // Notes that it was started, then never says anything.
        let program = dir.path().join("mute");
        let script = "#!/bin/sh\necho >> \"$4/started\"\nexec sleep 60\n";
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut io = ChildKnobIo::new(&Root::at(dir.path()), program).with_timeout(Duration::from_millis(50));
        let at = |text: &str| KnobId::parse(text).unwrap();
        let all = [at("nr_requests@sda"), at("vm.swappiness"), at("scheduler@sda"), at("nr_requests@sdb")];
        let got = io.read_all(&all);
        assert!(matches!(&got[0], Err(KnobError::Blocked(why)) if why.contains("left behind")), "{got:?}");
        assert_eq!(got[1].as_ref().unwrap().value, "60");
        assert!(matches!(&got[2], Err(KnobError::Blocked(_))) && matches!(&got[3], Err(KnobError::Blocked(_))));
        // One that not even SIGKILL ended: nothing more is asked about its device.
        io.abandoned.insert("sda".into(), (4242, Arc::new(AtomicBool::new(true))));
        std::fs::remove_file(dir.path().join("started")).unwrap();
        let got = io.write(&at("nr_requests@sda"), "32").unwrap_err();
        assert!(matches!(&got, KnobError::Blocked(why) if why.contains("4242 still waits")), "{got:?}");
        assert!(!dir.path().join("started").exists(), "no child was started");
    }
}
