//! The table of job files in docs/reference/fio-jobs.md: which are accepted, and whether fio does the same work.
//!
//! `FIO_JOB_FILES=DIR UPDATE_DOCS=1 cargo test --test bench_run job_files_of_others -- --nocapture` writes it. DIR holds
//! `examples/*.fio` of fio, and `OWNER+NAME/**/*.fio` of public repositories. Accepted files run in both programs with
//! sizes, times and numbers of files scaled down.

use crate::lab::{BIN, BenchDir};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Variables that some examples take from the environment.
const VARIABLES: [(&str, &str); 3] = [("FIO_RW", "randread"), ("FIO_IODEPTH", "4"), ("FIO_BS", "4k")];
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/fio-jobs.md");
const BEGIN: &str = "<!-- made by `cargo test --test bench_run job_files_of_others` -->\n";
const END: &str = "<!-- end -->";

fn job_files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => found.extend(job_files(&path)),
            // Parts of others are no jobs.
            path if path.to_string_lossy().ends_with("-include.fio") => {}
            path if path.extension().is_some_and(|e| e == "fio") => found.push(path),
            _ => {}
        }
    }
    found.sort();
    found
}

/// `value` if it is at most `most` in `units`, else `most` of the first unit.
fn capped(value: &str, most: u64, units: &[(&str, u64)]) -> Option<String> {
    let digits = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let n: u64 = value[..digits].parse().ok()?;
    let unit = value[digits..].trim().to_ascii_lowercase();
    let factor = units.iter().find(|(name, _)| unit == *name).map_or(1, |(_, factor)| *factor);
    (n.saturating_mul(factor) > most).then(|| format!("{most}"))
}

/// One line of a job file, scaled down; `None`: it is left out.
fn scaled_line(line: &str) -> Option<String> {
    const SIZES: [(&str, u64); 8] = [
        ("k", 1 << 10),
        ("m", 1 << 20),
        ("mb", 1 << 20),
        ("g", 1 << 30),
        ("gb", 1 << 30),
        ("gib", 1 << 30),
        ("t", 1 << 40),
        ("tb", 1 << 40),
    ];
    const SECONDS: [(&str, u64); 4] = [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)];
    let text = line.split(['#', ';']).next().unwrap_or_default().trim();
    let Some((key, value)) = text.split_once('=').map(|(key, value)| (key.trim(), value.trim())) else {
        return Some(text.to_owned());
    };
    let cap = |most: u64, units: &[(&str, u64)]| capped(value, most, units).unwrap_or(value.to_owned());
    let value = match key {
        // A share of a file that exists, which these are not yet.
        "size" if value.ends_with('%') => "16m".into(),
        "size" | "io_size" => cap(16 << 20, &SIZES),
        "filesize" if value.contains('-') => "4k-1m".into(),
        "filesize" => cap(4 << 20, &SIZES),
        "zonesize" | "zoneskip" | "zonerange" => cap(1 << 20, &SIZES),
        "runtime" | "timeout" | "startdelay" => cap(2, &SECONDS),
        "ramp_time" => cap(1, &SECONDS),
        "nrfiles" => cap(8, &[]),
        "loops" => cap(2, &[]),
        "ss_dur" | "steadystate_duration" => cap(2, &SECONDS),
        "ss_ramp" | "steadystate_ramp_time" => cap(1, &SECONDS),
        "latency_window" => cap(5_000, &[]),
        "directory" | "allow_file_create" => return None,
        "filename" => value.rsplit('/').next().unwrap_or(value).to_owned(),
        // A privilege or several nodes are not what is compared.
        key if key.starts_with("write_") && key.ends_with("_log") => return None,
        _ => value.to_owned(),
    };
    Some(format!("{key}={value}"))
}

/// A file's text with the files it includes.
fn with_includes(path: &Path) -> String {
    let text = String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned();
    let part = |line: &str| match line.trim().strip_prefix("include ") {
        Some(name) => with_includes(&path.with_file_name(name.trim())),
        None => format!("{line}\n"),
    };
    text.lines().map(part).collect()
}

fn scaled(text: &str, needs_size: bool) -> String {
    // A job that ends by its size is not to be cut short by its time: a loaded machine would decide what is equal.
    let is_timed = text.contains("time_based");
    let scale = |line| scaled_line(line).map(|new| if is_timed { new } else { new.replace("runtime=2", "runtime=60") });
    let mut lines: Vec<String> = text.lines().filter_map(scale).collect();
    let has = |key: &str| lines.iter().any(|line| line.starts_with(key));
    let mut new = vec!["[global]".to_owned()];
    new.extend(needs_size.then(|| "size=16m".to_owned()));
    // A rate of some bytes a second takes hours even for a small file.
    new.extend((has("rate=") && !has("runtime=")).then(|| "runtime=4".to_owned()));
    if new.len() > 1 {
        let at = lines.iter().position(|line| line.starts_with('[')).unwrap_or(0);
        lines.splice(at..at, new);
    }
    lines.join("\n") + "\n"
}

/// Output of a command that ends within a time, or is killed.
fn output_within(command: &mut Command, most: Duration) -> Option<Output> {
    let dir = tempfile::tempdir().ok()?;
    let (out, err) = (dir.path().join("out"), dir.path().join("err"));
    let create = |path: &Path| std::fs::File::create(path).unwrap();
    // fio's jobs are processes of their own: a group ends them all.
    command.process_group(0);
    let mut child = command.stdin(Stdio::null()).stdout(create(&out)).stderr(create(&err)).spawn().ok()?;
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().ok()? {
            return Some(Output { status, stdout: std::fs::read(&out).ok()?, stderr: std::fs::read(&err).ok()? });
        }
        if start.elapsed() > most {
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Operations and bytes of each direction, and depths in percent.
type Sums = ([(u64, u64); 3], BTreeMap<String, f64>);

fn sums(out: &Output) -> Result<Sums, String> {
    let text = String::from_utf8_lossy(&out.stdout);
    let wrong = String::from_utf8_lossy(&out.stderr);
    let first = wrong.lines().chain(text.lines()).find(|line| !line.trim().is_empty()).unwrap_or("no output");
    let document: Option<Value> = text.find('{').and_then(|at| serde_json::from_str(&text[at..]).ok());
    let document = document.filter(|_| out.status.success()).ok_or(first.to_owned())?;
    let mut all: Sums = Default::default();
    let jobs = document["jobs"].as_array().ok_or("no jobs")?;
    let total = |job: &Value| {
        ["read", "write", "trim", "mixed"].iter().map(|d| job[*d]["total_ios"].as_u64().unwrap_or(0)).sum::<u64>()
            as f64
    };
    let whole: f64 = jobs.iter().map(total).sum();
    for job in jobs {
        for (at, direction) in ["read", "write", "trim", "mixed"].iter().enumerate() {
            let of = |key: &str| job[*direction][key].as_u64().unwrap_or(0);
            // Those of all directions together are counted as reads.
            let sum = &mut all.0[at % 3];
            *sum = (sum.0 + of("total_ios"), sum.1 + of("io_bytes"));
        }
        for (level, share) in job["iodepth_level"].as_object().into_iter().flatten() {
            *all.1.entry(level.clone()).or_default() += share.as_f64().unwrap_or(0.0) * total(job) / whole.max(1.0);
        }
    }
    Ok(all)
}

/// What differs between fio and this program on a job file; `Err`: fio does not run it.
fn compare(place: &BenchDir, text: &str) -> Result<Vec<String>, String> {
    let job = place.path().join("job.fio");
    std::fs::write(&job, text).unwrap();
    let run = |is_fio: bool| {
        let dir = tempfile::tempdir_in(place.path()).unwrap();
        let mut command = Command::new(if is_fio { "fio" } else { BIN });
        match is_fio {
            true => command.args(["--output-format=json", "--eta=never", "--directory"]).arg(dir.path()).arg(&job),
            false => {
                command.args(["bench", "run"]).arg(&job).arg(dir.path()).args(["-q", "--no-keep", "--format", "fio"])
            }
        };
        let out = output_within(command.envs(VARIABLES).current_dir(dir.path()), Duration::from_secs(90));
        out.ok_or("does not end within 90 s".to_owned()).and_then(|out| sums(&out))
    };
    let fio = run(true)?;
    let is_unified = text.contains("unified_rw_reporting=1");
    let together = |all: [(u64, u64); 3]| [all.iter().fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1)), (0, 0), (0, 0)];
    let own = match run(false) {
        Ok(own) if is_unified => (together(own.0), own.1),
        Ok(own) => own,
        Err(why) => return Ok(vec![format!("here: {why}")]),
    };
    // Times, targets and thresholds end jobs when the machine has it so.
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let is_timed = has(&["time_based", "latency_target", "steadystate", "ss=", "exitall", "flow", "rate="]);
    let mut differences = Vec::new();
    for (direction, (fio, own)) in ["reads", "writes", "trims"].iter().zip(fio.0.iter().zip(own.0)) {
        let differs = if is_timed { (fio.0 > 0) != (own.0 > 0) } else { *fio != own };
        // Drawn at random: within three standard deviations of a count, or 5 %.
        let is_drawn = has(&["rw=rw", "rw=randrw", "bsrange", "bssplit", "readwrite=rw", "readwrite=randrw"]);
        let near = (fio.0 as f64 / 20.0).max(3.0 * (fio.0 as f64).sqrt());
        let close = (fio.0.abs_diff(own.0) as f64) <= near && !is_timed && is_drawn;
        if differs && !close {
            differences.push(format!("{direction}: {} of {} bytes, here {} of {}", fio.0, fio.1, own.0, own.1));
        }
    }
    // Few operations, and those that wait for a time, have the depths that the device's speed gives them.
    let few = fio.0.iter().map(|(n, _)| n).sum::<u64>() < 200;
    let is_paced = has(&["rate", "flow", "latency_target", "thinktime"]);
    for (level, share) in fio.1.iter().filter(|_| !few && !is_paced) {
        let here = own.1.get(level).copied().unwrap_or(0.0);
        if (share - here).abs() > 12.0 {
            differences.push(format!("depth {level}: {share:.0} %, here {here:.0} %"));
        }
    }
    Ok(differences)
}

/// The errors of a refused file in a few words: its engine, or its first options.
fn why_refused(stderr: &str) -> String {
    let errors: Vec<&str> =
        stderr.lines().filter_map(|line| line.split_once(": line ")?.1.split_once(": ")).map(|(_, o)| o).collect();
    if let Some(engine) = errors.iter().find(|o| o.starts_with("ioengine=")) {
        let why = engine.split([':', ';']).nth(1).unwrap_or_default().trim();
        return format!("engine `{}`: {why}", engine.split(['=', ':']).nth(1).unwrap_or_default());
    }
    let mut all: Vec<String> = errors
        .iter()
        .map(|o| match o.split_once(": ") {
            Some((option, why)) if !option.starts_with('[') => format!("`{option}`: {why}"),
            _ => (*o).to_owned(),
        })
        .collect();
    all.truncate(1);
    all.pop().unwrap_or_else(|| stderr.lines().next().unwrap_or("no reason").replace("iotop-plus: ", ""))
}

/// A row's text, and whether the file is accepted.
fn judge(place: &BenchDir, path: &Path) -> (bool, String) {
    let dry_run = |more: &[&str]| {
        let mut command = Command::new(BIN);
        command.args(["bench", "run"]).arg(path).arg(place.path()).arg("--dry-run").args(more);
        output_within(command.envs(VARIABLES), Duration::from_secs(30)).expect("a plan")
    };
    let mut needs_size = false;
    let mut out = dry_run(&[]);
    if !out.status.success() {
        needs_size = true;
        out = dry_run(&["--size", "64M"]);
    }
    if !out.status.success() {
        return (false, format!("refused: {}", why_refused(&String::from_utf8_lossy(&out.stderr))));
    }
    let text = with_includes(path);
    let has_size = text.lines().any(|line| line.starts_with("size=") || line.starts_with("filesize="));
    let mut result = match compare(place, &scaled(&text, needs_size || !has_size)) {
        Ok(differences) if differences.is_empty() => "accepted, equal".to_owned(),
        Ok(differences) => format!("accepted; {}", differences.join("; ")),
        Err(why) => format!("accepted; fio 3.33 does not run it: {}", why.replace('|', "/")),
    };
    if needs_size {
        result += "; with `--size`";
    }
    if VARIABLES.iter().any(|(name, _)| text.contains(&format!("${{{name}}}"))) {
        result += "; with its variables set";
    }
    (true, result)
}

#[test]
fn job_files_of_others_are_accepted_or_refused_as_the_page_says() {
    let Some(root) = std::env::var_os("FIO_JOB_FILES").map(PathBuf::from) else {
        return crate::lab::skip("FIO_JOB_FILES does not name a directory with job files");
    };
    let Some(place) = BenchDir::new() else { return };
    let (mut examples, mut others) = (BTreeMap::<(bool, String), Vec<String>>::new(), Vec::new());
    let mut accepted = 0;
    for path in job_files(&root) {
        let (is_accepted, text) = judge(&place, &path);
        let below = path.strip_prefix(&root).unwrap();
        let name = format!("`{}`", path.file_stem().unwrap().to_string_lossy());
        println!("{}: {text}", below.display());
        if below.starts_with("examples") {
            accepted += usize::from(is_accepted);
            let key = if is_accepted { format!("{name}{text}") } else { text.clone() };
            examples.entry((!is_accepted, key)).or_default().push(name);
            continue;
        }
        let repository = below.iter().next().unwrap().to_string_lossy().replace('+', "/");
        others.push((repository, text, name));
    }
    if std::env::var_os("UPDATE_DOCS").is_none() {
        return;
    }
    let count: usize = examples.values().map(Vec::len).sum();
    let mut page = format!(
        "{accepted} of the {count} job files in fio's `examples` are accepted.\n\n| example | result |\n|---|---|\n"
    );
    for ((is_refused, key), names) in &examples {
        let text = if *is_refused { key } else { &key[names[0].len()..] };
        page += &format!("| {} | {text} |\n", names.join(", "));
    }
    page += "\n## Job files from public repositories\n\n| files | result |\n|---|---|\n";
    let mut rows: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    others.into_iter().for_each(|(repository, text, name)| rows.entry((repository, text)).or_default().push(name));
    for ((repository, text), names) in rows {
        page += &format!("| {repository}: {} | {text} |\n", names.join(", "));
    }
    let old = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = old.split_once(BEGIN).expect("the table's beginning");
    let (_, after) = rest.split_once(END).expect("the table's end");
    std::fs::write(PAGE, format!("{before}{BEGIN}{page}{END}{after}")).unwrap();
}
