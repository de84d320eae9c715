//! Runs a program of the system and takes what it prints. Only children of this program do so: it may wait for servers, or
//! for the disk that it is on.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// What the program prints on standard output, whatever its exit code; nothing else of it is read.
///
/// # Errors
/// If it cannot be started.
pub(crate) fn output_of(program: &Path, arguments: &[String]) -> io::Result<Vec<u8>> {
    let mut command = Command::new(program);
    Ok(command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output()?.stdout)
}
