//! Trims a recording for the tests: only chosen programs, devices and log lines stay, and the host has another name.
//!
//! `cargo run --example trim -- IN OUT DEVICE PROGRAM... [--rename FROM=TO]...` keeps a device, the processes whose names are
//! given, and kernel threads. A program given as `NAME=TEXT` has a command line with that text. `--rename` replaces a text in
//! command lines and names of control groups.

use clap::Parser;
use iotop_plus::cli::{self, Cli};
use iotop_plus::model::observation::Observation;
use iotop_plus::recording::reader::RecordingReader;
use iotop_plus::recording::writer::{RecorderOptions, RecorderState, RecordingWriter};
use iotop_plus::root::Root;
use serde_json::Value;
use std::collections::HashSet;
use std::fs::File;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    // The child that writes the file is a process of this program.
    if args.iter().any(|arg| arg == "record-io") {
        return match Cli::try_parse() {
            Ok(cli) => cli::run(cli),
            Err(err) => cli::print_usage_error(&err),
        };
    }
    let mut renames = Vec::new();
    while let Some(at) = args.iter().position(|arg| arg == "--rename").filter(|at| at + 1 < args.len()) {
        args.remove(at);
        let pair = args.remove(at);
        renames.extend(pair.split_once('=').map(|(from, to)| (from.to_owned(), to.to_owned())));
    }
    match args.as_slice() {
        [from, to, device, programs @ ..] => match trim([from, to], device, programs, renames) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("{why}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("usage: trim IN OUT DEVICE PROGRAM... [--rename FROM=TO]...");
            ExitCode::from(2)
        }
    }
}

fn trim(
    [from, to]: [&String; 2],
    device: &str,
    programs: &[String],
    renames: Vec<(String, String)>,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut reader = RecordingReader::open(File::open(from)?)?;
    let mut header = reader.header.clone();
    header.host = "db1".into();
    let options = RecorderOptions { path: to.into(), replace: true, max_size: None, rotate: None };
    let mut writer = RecordingWriter::start(&Root::live(), options, header)?;
    let mut filter = Filter {
        device: device.into(),
        started_us: reader.header.mono_ns / 1000,
        programs: programs.to_vec(),
        renames,
        ..Filter::default()
    };
    while let Some(tick) = reader.next_tick()? {
        let all = tick.full_state.into_iter().flatten().chain(tick.observations);
        let kept: Result<Vec<Observation>, _> = all.map(|one| filter.trim(one)).collect();
        writer.record_tick(kept?, tick.wall_ns);
    }
    writer.finish();
    while writer.status().state == RecorderState::Running {
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("{:?}", writer.status());
    Ok(())
}

#[derive(Default)]
struct Filter {
    device: String,
    programs: Vec<String>,
    /// Texts in command lines and names of control groups, and what replaces them.
    renames: Vec<(String, String)>,
    /// Tasks that stay, by pid.
    pids: HashSet<u64>,
    dropped: HashSet<u64>,
    /// Number of the device, as it is in JSON.
    device_id: Value,
    /// Whether the last line of the log stays: its continuations do, too.
    is_log_kept: bool,
    /// Lines of the log that stayed so far.
    log_lines: u64,
    /// When the recording began, on the clock of the log, us.
    started_us: u64,
}

impl Filter {
    fn trim(&mut self, one: Observation) -> Result<Observation, serde_json::Error> {
        let mut value = serde_json::to_value(one)?;
        if let Some((kind, body)) = value.as_object_mut().and_then(|all| all.iter_mut().next()) {
            self.edit(kind, body);
        }
        serde_json::from_value(value)
    }

    fn edit(&mut self, kind: &str, body: &mut Value) {
        match kind {
            "Tasks" => self.edit_tasks(reading(body)),
            "Sample" => self.edit_sample(body),
            "Topology" => {
                let device = &self.device;
                retain(reading(body), "devices", |one| one["name"] == **device);
            }
            "KernelLog" => self.edit_log(&mut body[0]),
            "Facts" => {
                let pids = &self.pids;
                retain(body, "files", |files| files["key"]["pid"].as_u64().is_some_and(|pid| pids.contains(&pid)));
                retain(body, "results", |_| false);
                retain(body, "health", |_| false);
            }
            "DiskSpace" => retain(body, "mounts", |mount| mount.to_string().contains("/srv/")),
            _ => {}
        }
    }

    /// Keeps the lines that name the device, and reports of hung tasks with their traces.
    fn edit_log(&mut self, lines: &mut Value) {
        let Some(lines) = lines.as_array_mut() else { return };
        lines.retain(|line| {
            let text = text_of(&line["message"]);
            if !text.starts_with(' ') {
                let is_of_task = self.pids.iter().any(|pid| text.contains(&format!(":{pid} blocked for more than")));
                let is_new = line["boot_us"].as_u64() >= Some(self.started_us);
                self.is_log_kept = is_new && (has_word(&text, &self.device) || is_of_task);
            }
            self.is_log_kept
        });
        for line in lines {
            // A gap in the numbers means lost lines.
            self.log_lines += 1;
            line["seq"] = self.log_lines.into();
        }
    }

    fn is_kept(&self, task: &Value, names: &[Value]) -> bool {
        let comm = text_of(&task["raw"]["comm"]);
        if task["raw"]["kernel_thread"] == true {
            // Those of other devices are not.
            let is_of_one = ["loop", "jbd2", "ext4"].iter().any(|start| comm.starts_with(start));
            return !is_of_one || comm.contains(&self.device);
        }
        let of_task = names.iter().find(|pair| pair[0] == task["raw"]["key"]);
        let command = of_task.map_or(String::new(), |pair| text_of(&pair[1]["cmdline"]));
        self.programs.iter().any(|program| match program.split_once('=') {
            Some((name, part)) => comm == name && command.contains(part),
            None => comm == *program,
        })
    }

    fn edit_tasks(&mut self, update: &mut Value) {
        let changed = update["changed"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let names = update["names"].as_array().cloned().unwrap_or_default();
        let pid = |task: &Value| task["raw"]["key"]["pid"].as_u64().unwrap_or(0);
        let is_known = |task: &Value| self.pids.contains(&pid(task)) || self.dropped.contains(&pid(task));
        let (known, new): (Vec<Value>, Vec<Value>) = changed.into_iter().partition(is_known);
        let (mut kept, dropped): (Vec<Value>, Vec<Value>) =
            new.into_iter().partition(|task| self.is_kept(task, &names));
        self.pids.extend(kept.iter().map(pid));
        self.dropped.extend(dropped.iter().map(pid));
        kept.extend(known.into_iter().filter(|task| self.pids.contains(&pid(task))));
        update["changed"] = kept.into();
        let pids = &self.pids;
        let has_pid = |key: &Value| key["pid"].as_u64().is_some_and(|pid| pids.contains(&pid));
        retain(update, "exited", has_pid);
        retain(update, "names", |pair| has_pid(&pair[0]));
        for pair in update["names"].as_array_mut().into_iter().flatten() {
            for field in ["cmdline", "cgroup"] {
                let mut text = text_of(&pair[1][field]);
                self.renames.iter().for_each(|(from, to)| text = text.replace(from, to));
                let is_text = pair[1][field].is_string();
                pair[1][field] = if is_text { text.into() } else { text.into_bytes().into() };
            }
        }
        retain(update, "wait_channels", |pair| has_pid(&pair[0]));
        retain(update, "blocked", |task| has_pid(&task["key"]));
        retain(update, "users", |pair| pair[0] == 0);
        update["total"] = pids.len().into();
        update["hidden_count"] = 0.into();
    }

    fn edit_sample(&mut self, sample: &mut Value) {
        if let Some(disks) = reading(&mut sample["disks"]).as_array_mut() {
            disks.retain(|disk| disk["name"] == *self.device);
            self.device_id = disks.first().map_or(Value::Null, |disk| disk["id"].clone());
        }
        let (pids, device) = (&self.pids, &self.device_id);
        let is_kept = |pid: &Value| pid.as_u64().is_some_and(|pid| pid == 0 || pids.contains(&pid));
        let accounts = reading(&mut sample["io_accounts"]);
        retain(accounts, "accounts", |account| is_kept(&account["key"]["pid"]) && account["key"]["device"] == *device);
        retain(accounts, "names", |pair| is_kept(&pair[0]));
        retain(reading(&mut sample["memory_stalls"]), "tasks", |task| is_kept(&task["key"]["pid"]));
        retain(reading(&mut sample["latency"]), "devices", |one| {
            one.as_object().is_some_and(|fields| fields.values().any(|value| value == device))
        });
        if let Some(interfaces) = reading(&mut sample["nics"]).as_array_mut() {
            interfaces.clear();
        }
    }
}

/// Whether a text contains a name that no letter or digit follows.
fn has_word(text: &str, name: &str) -> bool {
    let follows = |(at, _): (usize, &str)| text[at + name.len()..].chars().next();
    text.match_indices(name).any(|found| !follows(found).is_some_and(char::is_alphanumeric))
}

/// Text that JSON has as a list of bytes, without padding, or as a string.
fn text_of(value: &Value) -> String {
    let bytes: Vec<u8> = value.as_array().into_iter().flatten().filter_map(|byte| Some(byte.as_u64()? as u8)).collect();
    let text = String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned();
    value.as_str().map_or(text, str::to_owned)
}

/// What a reading holds, or the value itself.
fn reading(value: &mut Value) -> &mut Value {
    if value.get("ok").is_some() { &mut value["ok"] } else { value }
}

/// Keeps the elements of a list for which `keep` holds.
fn retain(of: &mut Value, list: &str, keep: impl Fn(&Value) -> bool) {
    if let Some(all) = of.get_mut(list).and_then(Value::as_array_mut) {
        all.retain(keep);
    }
}
