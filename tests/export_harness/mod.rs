//! Runs `export` and other servers, and asks them.

#![allow(dead_code)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_iotop-plus");
/// Longer than anything takes, even beside builds.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Ends a program at the end of a test.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn start(command: &mut Command) -> Running {
    Running(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// Whether a program is installed; prints that a test is skipped if not.
pub fn is_installed(program: &str, test: &str) -> bool {
    let is_there = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !is_there {
        eprintln!("SKIPPED {test}: needs {program}");
    }
    is_there
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Sends a request and returns the whole answer.
pub fn ask(mut stream: impl Read + Write, request: &str) -> std::io::Result<String> {
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

pub fn get(port: u16, path: &str) -> std::io::Result<String> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    // Version 1.0: the answer is not sent in chunks.
    ask(stream, &format!("GET {path} HTTP/1.0\r\nHost: x\r\n\r\n"))
}

/// Repeats until there is an answer that is wanted.
pub fn wait_for(what: &str, attempt: impl Fn() -> Option<String>) -> String {
    let started = Instant::now();
    loop {
        match attempt() {
            Some(answer) => return answer,
            None => assert!(started.elapsed() < TIMEOUT, "waited in vain for {what}"),
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

pub fn wait_for_metrics(port: u16) -> String {
    let is_ok = |answer: &String| answer.lines().next().is_some_and(|line| line.contains(" 200 "));
    wait_for("metrics", || get(port, "/metrics").ok().filter(is_ok))
}
