//! Runs programs of the system: takes what one prints, or talks to one. It may wait for servers, or for the disk that it is
//! on: only children of this program, and threads that nothing waits for, do so.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// What the program prints on standard output, whatever its exit code; nothing else of it is read.
///
/// # Errors
/// If it cannot be started.
pub(crate) fn output_of(program: &Path, arguments: &[String]) -> io::Result<Vec<u8>> {
    let mut command = Command::new(program);
    Ok(command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output()?.stdout)
}

/// Starts the program with this socket as standard input and output; its errors go to a pipe.
///
/// # Errors
/// If it cannot be started.
pub(crate) fn start_with_socket(program: &Path, arguments: &[OsString], socket: UnixStream) -> io::Result<Child> {
    let input: OwnedFd = socket.try_clone()?.into();
    let mut command = Command::new(program);
    command.args(arguments).stdin(input).stdout(OwnedFd::from(socket)).stderr(Stdio::piped()).spawn()
}

/// Kills a program, and has a thread reap it when it ends.
pub(crate) fn end_program(mut child: Child) {
    let _ = child.kill();
    let reap = move || _ = child.wait();
    // Without a thread it stays a zombie until this process ends.
    let _ = std::thread::Builder::new().name("reap".into()).spawn(reap);
}
