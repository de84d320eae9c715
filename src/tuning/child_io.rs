//! Accesses knobs of devices and mounts in a child process with a deadline: such a read or write can block for ever,
//! and SIGKILL does not end it.
//!
//! A child that does not answer is abandoned and named in the error. While it lives, knobs of the same device or
//! mount are not accessed again, so that blocked children cannot accumulate.

use super::knob_id::KnobId;
use super::knob_io::{DirectKnobIo, KnobError, KnobIo, KnobReading};
use super::progress_check;
use crate::root::Root;
use crate::subprocess::budget::{ChildBudget, MAX_CHILDREN};
use crate::subprocess::child;
use crate::subprocess::request::RequestChild;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The longest wait for one response. A scheduler switch waits until the queue is empty, which takes a while.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(3);

/// A request to the child, one JSON line each.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct KnobRequest(KnobId, KnobAccess);

#[derive(Debug, Clone, Serialize, Deserialize)]
enum KnobAccess {
    Read,
    Write(String),
    Identity,
}

impl KnobRequest {
    fn run(&self, io: &mut DirectKnobIo) -> KnobResponse {
        let Self(knob_id, access) = self;
        match access {
            KnobAccess::Read => io.read(knob_id),
            KnobAccess::Write(value) => io.write(knob_id, value).map(|()| KnobReading::default()),
            KnobAccess::Identity => io.identity(knob_id).map(|value| KnobReading { value, ..KnobReading::default() }),
        }
    }
}

/// A reply of the child, one JSON line for each request: a reading, an empty one for a write, or one with the identity
/// as its value.
type KnobResponse = Result<KnobReading, KnobError>;

/// Accesses knobs directly where that cannot block, and through a child where it can.
#[derive(Debug, Clone)]
pub(crate) struct ChildKnobIo {
    direct: DirectKnobIo,
    root: Root,
    program: PathBuf,
    timeout: Duration,
    /// By device or mount: the pid of the child that did not answer, and whether it is still alive.
    abandoned: BTreeMap<String, (u32, Arc<AtomicBool>)>,
}

impl ChildKnobIo {
    /// `program` is the path of this program.
    pub(crate) fn new(root: &Root, program: PathBuf) -> Self {
        let direct = DirectKnobIo::new(root.clone());
        Self { direct, root: root.clone(), program, timeout: DEFAULT_TIMEOUT, abandoned: BTreeMap::new() }
    }

    /// The error for a knob whose device or mount still blocks an abandoned child.
    fn abandoned_child_error(&self, knob_id: &KnobId) -> Option<KnobError> {
        let (pid, _) = self.abandoned.get(knob_id.instance()).filter(|(_, lives)| lives.load(Ordering::Relaxed))?;
        Some(KnobError::Blocked(format!("{knob_id}: process {pid} still waits on {}", knob_id.instance())))
    }

    /// Executes requests that cannot block, and sends all others to one child. After a missing response, another child
    /// gets the rest, except what concerns the same device or mount.
    fn request_all(&mut self, asks: &[KnobRequest]) -> Vec<KnobResponse> {
        let mut answers: Vec<Option<KnobResponse>> = Vec::new();
        for ask in asks {
            answers.push(match ask.0.definition().may_block() {
                true => self.abandoned_child_error(&ask.0).map(Err),
                false => Some(ask.run(&mut self.direct)),
            });
        }
        let mut left: Vec<usize> = (0..asks.len()).filter(|i| answers[*i].is_none()).collect();
        while !left.is_empty() {
            let part = std::mem::take(&mut left);
            let (got, missing) = self.run_child(&part.iter().map(|i| &asks[*i]).collect::<Vec<_>>());
            let answered = got.len();
            part.iter().zip(got).for_each(|(i, answer)| answers[*i] = Some(answer));
            let Some(stuck) = part.get(answered) else { break };
            let instance = asks[*stuck].0.instance();
            if let NoResponse::TimedOut(pid, lives) = &missing {
                self.abandoned.insert(instance.to_owned(), (*pid, lives.clone()));
            }
            for i in &part[answered..] {
                match asks[*i].0.instance() == instance {
                    true => answers[*i] = Some(Err(missing.to_error(&asks[*i].0))),
                    false => left.push(*i),
                }
            }
        }
        answers.into_iter().zip(asks).map(|(answer, ask)| answer.unwrap_or_else(|| not_asked(&ask.0))).collect()
    }

    /// Runs one child: the responses that arrived, and why the next one did not.
    fn run_child(&self, asks: &[&KnobRequest]) -> (Vec<KnobResponse>, NoResponse) {
        let mut got = Vec::new();
        let Some(slot) = ChildBudget::shared().acquire() else {
            return (got, NoResponse::ChildFailed(format!("{MAX_CHILDREN} are stuck already")));
        };
        let started = RequestChild::start(&self.program, &self.root, &["tuner", "--io"])
            .and_then(|mut child| child.send(asks.iter().copied()).map(|()| child));
        let mut child = match started {
            Ok(child) => child,
            Err(err) => return (got, NoResponse::ChildFailed(err.to_string())),
        };
        while got.len() < asks.len() {
            if !child.wait_for_reply(self.timeout) {
                let (pid, is_alive) = (child.pid(), Arc::new(AtomicBool::new(true)));
                let ended = is_alive.clone();
                child.abandon(move || {
                    ended.store(false, Ordering::Relaxed);
                    drop(slot);
                });
                return (got, NoResponse::TimedOut(pid, is_alive));
            }
            let Ok(Some(answer)) = child.read_reply() else { break };
            got.push(answer);
        }
        // It has sent all its answers, or closed its pipe.
        let _ = child.finish();
        (got, NoResponse::ChildFailed("it ended without an answer".into()))
    }

    fn request(&mut self, knob_id: &KnobId, access: KnobAccess) -> KnobResponse {
        self.request_all(&[KnobRequest(knob_id.clone(), access)]).pop().unwrap_or_else(|| not_asked(knob_id))
    }
}

fn not_asked(knob_id: &KnobId) -> KnobResponse {
    Err(KnobError::Blocked(format!("{knob_id}: not asked")))
}

/// Why a response is missing.
enum NoResponse {
    TimedOut(u32, Arc<AtomicBool>),
    ChildFailed(String),
}

impl NoResponse {
    fn to_error(&self, knob_id: &KnobId) -> KnobError {
        match self {
            NoResponse::TimedOut(pid, _) => KnobError::Blocked(format!(
                "{knob_id}: no answer in time; process {pid} is left behind waiting, and what it asked may still happen"
            )),
            NoResponse::ChildFailed(why) => KnobError::Invalid(format!("{knob_id}: child process: {why}")),
        }
    }
}

impl KnobIo for ChildKnobIo {
    fn read(&mut self, knob_id: &KnobId) -> Result<KnobReading, KnobError> {
        self.request(knob_id, KnobAccess::Read)
    }

    fn write(&mut self, knob_id: &KnobId, value: &str) -> Result<(), KnobError> {
        // Restores are refused too: the journal keeps the old value until the device makes progress.
        progress_check::require_progress(&self.root, knob_id)?;
        self.request(knob_id, KnobAccess::Write(value.into())).map(drop)
    }

    fn identity(&mut self, knob_id: &KnobId) -> Result<String, KnobError> {
        self.request(knob_id, KnobAccess::Identity).map(|reading| reading.value)
    }

    fn read_all(&mut self, all: &[KnobId]) -> Vec<Result<KnobReading, KnobError>> {
        self.request_all(&all.iter().map(|knob_id| KnobRequest(knob_id.clone(), KnobAccess::Read)).collect::<Vec<_>>())
    }
}

/// The child process: requests on standard input, responses on standard output.
pub(crate) fn run_child_process(root: &Root) -> anyhow::Result<()> {
    child::enter("tuner-io");
    let mut io = DirectKnobIo::new(root.clone());
    child::serve_requests(|request: serde_json::Result<KnobRequest>| {
        Ok(request.context("request not understood")?.run(&mut io))
    })
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
        // Records that it was started, then never answers.
        let program = dir.path().join("mute");
        let script = "#!/bin/sh\necho >> \"$4/started\"\nexec sleep 60\n";
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut io = ChildKnobIo::new(&Root::at(dir.path()), program);
        io.timeout = Duration::from_millis(50);
        let knob_id = |text: &str| KnobId::parse(text).unwrap();
        let all = [
            knob_id("nr_requests@sda"),
            knob_id("vm.swappiness"),
            knob_id("scheduler@sda"),
            knob_id("nr_requests@sdb"),
        ];
        let got = io.read_all(&all);
        assert!(matches!(&got[0], Err(KnobError::Blocked(why)) if why.contains("left behind")), "{got:?}");
        assert_eq!(got[1].as_ref().unwrap().value, "60");
        assert!(matches!(&got[2], Err(KnobError::Blocked(_))) && matches!(&got[3], Err(KnobError::Blocked(_))));
        // A child that SIGKILL did not end: its device is not accessed again.
        io.abandoned.insert("sda".into(), (4242, Arc::new(AtomicBool::new(true))));
        std::fs::remove_file(dir.path().join("started")).unwrap();
        let got = io.write(&knob_id("nr_requests@sda"), "32").unwrap_err();
        assert!(matches!(&got, KnobError::Blocked(why) if why.contains("4242 still waits")), "{got:?}");
        assert!(!dir.path().join("started").exists(), "no child was started");
    }
}
