//! Knobs of devices and mounts are touched in a child process with a deadline: such a read or write can wait
//! for ever, and not even SIGKILL ends it then. The child is left behind and named, never waited for; while it
//! lives nothing else is asked about the same device or mount, so that they cannot pile up.

use super::address::Address;
use super::guard;
use super::kernel::{Direct, Fail, KnobIo, Reading};
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
const WITHIN: Duration = Duration::from_secs(3);
/// The longest line that is read.
const MAX_LINE: u64 = 256 * 1024;

/// What the child is asked, one line each.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Ask {
    Read(Address),
    Write(Address, String),
    Identity(Address),
}

impl Ask {
    fn at(&self) -> &Address {
        match self {
            Ask::Read(at) | Ask::Write(at, _) | Ask::Identity(at) => at,
        }
    }
}

/// What it answers, one line for each line asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Answer {
    Reading(Reading),
    Written,
    Identity(String),
    Failed(Fail),
}

/// Direct where nothing can block, by a child where something can.
#[derive(Debug, Clone)]
pub struct Careful {
    direct: Direct,
    root: Root,
    program: PathBuf,
    within: Duration,
    /// By device or mount: the child that never answered, and whether it lives still.
    stuck: BTreeMap<String, (u32, Arc<AtomicBool>)>,
}

impl Careful {
    /// `program` is this program's binary.
    pub fn new(root: &Root, program: PathBuf) -> Self {
        let direct = Direct::new(root.clone());
        Self { direct, root: root.clone(), program, within: WITHIN, stuck: BTreeMap::new() }
    }

    /// Another deadline for an answer.
    pub fn within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    /// The child that is still waiting on the thing of this knob.
    fn waiting(&self, at: &Address) -> Option<Fail> {
        let (pid, _) = self.stuck.get(at.at()).filter(|(_, lives)| lives.load(Ordering::Relaxed))?;
        Some(Fail::Blocked(format!("{at}: process {pid} still waits on {}", at.at())))
    }

    /// Asks one child all of it. After the first answer that does not come the rest is asked of another,
    /// without what belongs to the same device or mount.
    fn ask(&mut self, asks: Vec<Ask>) -> Vec<Answer> {
        let mut answers: Vec<Option<Answer>> =
            asks.iter().map(|ask| self.waiting(ask.at()).map(Answer::Failed)).collect();
        let mut left: VecDeque<usize> = (0..asks.len()).filter(|i| answers[*i].is_none()).collect();
        while !left.is_empty() {
            let part: Vec<usize> = left.drain(..).collect();
            let got = self.converse(part.iter().map(|i| &asks[*i]));
            for (i, answer) in part.iter().zip(&got.0) {
                answers[*i] = Some(answer.clone());
            }
            let Some(stuck) = part.get(got.0.len()) else { break };
            let at = asks[*stuck].at();
            if let Missing::Late(pid, lives) = &got.1 {
                self.stuck.insert(at.at().to_owned(), (*pid, lives.clone()));
            }
            for i in &part[got.0.len()..] {
                match asks[*i].at().at() == at.at() {
                    true => answers[*i] = Some(Answer::Failed(got.1.clone().about(asks[*i].at()))),
                    false => left.push_back(*i),
                }
            }
        }
        let lost = |at: &Address| Answer::Failed(Fail::Blocked(format!("{at}: not asked")));
        answers.into_iter().zip(&asks).map(|(a, ask)| a.unwrap_or_else(|| lost(ask.at()))).collect()
    }

    /// The answers that came, and why the next one did not.
    fn converse<'a>(&self, asks: impl Iterator<Item = &'a Ask>) -> (Vec<Answer>, Missing) {
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
            Err(err) => return (Vec::new(), Missing::NoChild(err.to_string())),
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
                    let answer = serde_json::from_str::<Answer>(&line);
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
            match rx.recv_timeout(self.within) {
                Ok(answer) => got.push(answer),
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    if let Some(pid) = rustix::process::Pid::from_raw(pid as i32) {
                        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                    }
                    return (got, Missing::Late(pid, lives));
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    return (got, Missing::NoChild("it ended without an answer".into()));
                }
            }
        }
        (got, Missing::NoChild(String::new()))
    }

    fn one(&mut self, ask: Ask) -> Answer {
        self.ask(vec![ask]).pop().unwrap_or(Answer::Written)
    }
}

/// Why an answer is missing.
#[derive(Debug, Clone)]
enum Missing {
    Late(u32, Arc<AtomicBool>),
    NoChild(String),
}

impl Missing {
    fn about(self, at: &Address) -> Fail {
        match self {
            Missing::Late(pid, _) => Fail::Blocked(format!(
                "{at}: no answer in time; process {pid} is left behind waiting, and what it asked may still happen"
            )),
            Missing::NoChild(why) => Fail::Invalid(format!("{at}: child process: {why}")),
        }
    }
}

impl KnobIo for Careful {
    fn read(&mut self, at: &Address) -> Result<Reading, Fail> {
        if !at.knob().may_block() {
            return self.direct.read(at);
        }
        match self.one(Ask::Read(at.clone())) {
            Answer::Reading(reading) => Ok(reading),
            other => Err(unexpected(at, other)),
        }
    }

    fn write(&mut self, at: &Address, value: &str) -> Result<(), Fail> {
        if !at.knob().may_block() {
            return self.direct.write(at, value);
        }
        // Also when taking back: the journal keeps it until the device moves again.
        guard::check(&self.root, at).map_err(Fail::Blocked)?;
        match self.one(Ask::Write(at.clone(), value.into())) {
            Answer::Written => Ok(()),
            other => Err(unexpected(at, other)),
        }
    }

    fn identity(&mut self, at: &Address) -> Result<String, Fail> {
        if !at.knob().may_block() {
            return self.direct.identity(at);
        }
        match self.one(Ask::Identity(at.clone())) {
            Answer::Identity(ident) => Ok(ident),
            other => Err(unexpected(at, other)),
        }
    }

    fn read_many(&mut self, all: &[Address]) -> Vec<Result<Reading, Fail>> {
        let careful: Vec<Ask> = all.iter().filter(|a| a.knob().may_block()).cloned().map(Ask::Read).collect();
        let mut answers = self.ask(careful).into_iter();
        all.iter()
            .map(|at| match at.knob().may_block() {
                false => self.direct.read(at),
                true => match answers.next() {
                    Some(Answer::Reading(reading)) => Ok(reading),
                    Some(other) => Err(unexpected(at, other)),
                    None => Err(Fail::Blocked(format!("{at}: not asked"))),
                },
            })
            .collect()
    }
}

fn unexpected(at: &Address, answer: Answer) -> Fail {
    match answer {
        Answer::Failed(fail) => fail,
        _ => Fail::Invalid(format!("{at}: child process: an answer to another question")),
    }
}

/// The child's side: questions on standard input, answers on standard output.
pub fn main(root: &Root) -> anyhow::Result<()> {
    let _ = rustix::process::setsid();
    let mut text = String::new();
    std::io::stdin().take(16 * MAX_LINE).read_to_string(&mut text)?;
    let mut io = Direct::new(root.clone());
    let mut out = std::io::stdout().lock();
    for line in text.lines() {
        let answer = match serde_json::from_str::<Ask>(line) {
            Ok(Ask::Read(at)) => io.read(&at).map_or_else(Answer::Failed, Answer::Reading),
            Ok(Ask::Write(at, value)) => {
                io.write(&at, &value).map_or_else(Answer::Failed, |()| Answer::Written)
            }
            Ok(Ask::Identity(at)) => io.identity(&at).map_or_else(Answer::Failed, Answer::Identity),
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
    fn a_child_that_never_answers_is_left_and_nothing_piles_up() {
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
        let mut io = Careful::new(&Root::at(dir.path()), program).within(Duration::from_millis(50));
        let at = |text: &str| Address::parse(text).unwrap();
        let all = [at("nr_requests@sda"), at("vm.swappiness"), at("scheduler@sda"), at("nr_requests@sdb")];
        let got = io.read_many(&all);
        assert!(matches!(&got[0], Err(Fail::Blocked(why)) if why.contains("left behind")), "{got:?}");
        assert_eq!(got[1].as_ref().unwrap().value, "60");
        assert!(matches!(&got[2], Err(Fail::Blocked(_))) && matches!(&got[3], Err(Fail::Blocked(_))));
        // One that not even SIGKILL ended: nothing more is asked about its device.
        io.stuck.insert("sda".into(), (4242, Arc::new(AtomicBool::new(true))));
        std::fs::remove_file(dir.path().join("started")).unwrap();
        let got = io.write(&at("nr_requests@sda"), "32").unwrap_err();
        assert!(matches!(&got, Fail::Blocked(why) if why.contains("4242 still waits")), "{got:?}");
        assert!(!dir.path().join("started").exists(), "no child was started");
    }
}
