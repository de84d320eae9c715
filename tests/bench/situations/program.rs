//! Runs the program that is judged.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// Environment variable with the program to judge, instead of the one built with this.
pub const BINARY_ENV: &str = "IOTOP_PLUS_SITUATIONS_BINARY";

pub fn path() -> std::ffi::OsString {
    std::env::var_os(BINARY_ENV).unwrap_or_else(|| env!("CARGO_BIN_EXE_iotop-plus").into())
}

/// What it says after so many seconds: the incidents of `doctor --json`. It also writes a recording if a file is given.
pub fn look(secs: f64, recording: Option<&Path>) -> Result<Value, String> {
    let mut command = Command::new(path());
    command.args(["doctor", "--json", "-d", &secs.to_string()]).stdin(Stdio::null());
    if let Some(file) = recording {
        command.arg("--record").arg(file);
    }
    let out = command.output().map_err(|err| err.to_string())?;
    let doctor: Value = serde_json::from_slice(&out.stdout)
        .map_err(|err| format!("{err}: {}", String::from_utf8_lossy(&out.stderr)))?;
    Ok(doctor["stories"].clone())
}

/// What it says at each sample of a recording.
pub fn replay(file: &Path) -> Result<Vec<Value>, String> {
    let mut command = Command::new(path());
    command.arg("replay").arg(file).args(["--format", "json", "--pane", "findings"]).stdin(Stdio::null());
    let out = command.output().map_err(|err| err.to_string())?;
    let text = String::from_utf8_lossy(&out.stdout);
    let samples: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str::<Value>).collect();
    let samples = samples.map_err(|err| format!("{err}: {}", String::from_utf8_lossy(&out.stderr)))?;
    Ok(samples.into_iter().map(|sample| sample["findings"].clone()).collect())
}
