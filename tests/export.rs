//! `export` with the real Prometheus: promtool checks the metrics, Prometheus scrapes them, and the HTTP server bears what
//! clients may do. Where Debian's package `prometheus` is missing, what needs it is skipped by name.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_iotop-plus");
/// Longer than anything takes, even beside builds.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Ends a program at the end of a test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(command: &mut Command) -> Running {
    Running(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// Whether a program is installed; prints that a test is skipped if not.
fn is_installed(program: &str, test: &str) -> bool {
    let is_there = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !is_there {
        eprintln!("SKIPPED {test}: needs {program}");
    }
    is_there
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Sends a request and returns the whole answer.
fn ask(mut stream: impl Read + Write, request: &str) -> std::io::Result<String> {
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn get(port: u16, path: &str) -> std::io::Result<String> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    ask(stream, &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
}

/// Repeats until there is an answer that is wanted.
fn wait_for(what: &str, attempt: impl Fn() -> Option<String>) -> String {
    let started = Instant::now();
    loop {
        match attempt() {
            Some(answer) => return answer,
            None => assert!(started.elapsed() < TIMEOUT, "waited in vain for {what}"),
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn wait_for_metrics(port: u16) -> String {
    wait_for("metrics", || get(port, "/metrics").ok().filter(|answer| answer.starts_with("HTTP/1.1 200")))
}

fn start_exporter(address: &str) -> Running {
    start(Command::new(PROGRAM).args(["export", "--listen", address, "-d", "0.3", "--all"]))
}

/// Feeds a text to promtool, which must have no complaint.
fn promtool(args: &[&str], input: &[u8]) {
    let mut command = Command::new("promtool");
    let mut child =
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "promtool {args:?}: {said}");
    assert!(args[0] != "check" || args[1] != "metrics" || said.is_empty(), "{said}");
}

#[test]
fn promtool_has_no_complaint() {
    if !is_installed("promtool", "promtool_has_no_complaint") {
        return;
    }
    let args = ["export", "-d", "0.5", "--format", "prometheus", "--all"];
    let output = Command::new(PROGRAM).args(args).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    promtool(&["check", "metrics"], &output.stdout);
}

#[test]
fn prometheus_scrapes_the_metrics() {
    if !is_installed("prometheus", "prometheus_scrapes_the_metrics") {
        return;
    }
    let (port, web, dir) = (free_port(), free_port(), tempfile::tempdir().unwrap());
    let _exporter = start_exporter(&format!("127.0.0.1:{port}"));
    let config = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs: [{{job_name: box, static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}]\n"
    );
    std::fs::write(dir.path().join("prometheus.yml"), config).unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let _prometheus = start(Command::new("prometheus").args([
        format!("--config.file={}", path("prometheus.yml")),
        format!("--storage.tsdb.path={}", path("data")),
        format!("--web.listen-address=127.0.0.1:{web}"),
    ]));
    let query =
        |text: &str| get(web, &format!("/api/v1/query?query={text}")).ok().filter(|a| a.contains("\"metric\":{"));
    let up = wait_for("a scrape", || query("iotop_plus_sample_interval_seconds"));
    assert!(up.contains("\"job\":\"box\""), "{up}");
    wait_for("the type of a histogram", || {
        get(web, "/api/v1/metadata?metric=iotop_plus_findings").ok().filter(|answer| answer.contains("\"gauge\""))
    });
}

#[test]
fn a_socket_in_the_file_system_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("metrics.sock");
    let _exporter = start_exporter(path.to_str().unwrap());
    let request = "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text\r\n\r\n";
    let attempt = || ask(UnixStream::connect(&path).ok()?, request).ok().filter(|a| a.starts_with("HTTP/1.1 200"));
    let answer = wait_for("metrics", attempt);
    assert!(answer.ends_with("# EOF\n") && answer.contains("iotop_plus_sample_age_seconds "), "{answer}");
}

#[test]
fn a_socket_of_systemd_is_served() {
    if !is_installed("systemd-socket-activate", "a_socket_of_systemd_is_served") {
        return;
    }
    let port = free_port();
    let listen = format!("127.0.0.1:{port}");
    let args = ["-l", &listen, PROGRAM, "export", "--listen", "systemd", "-d", "0.3"];
    let _exporter = start(Command::new("systemd-socket-activate").args(args));
    assert!(wait_for_metrics(port).contains("iotop_plus_build_info"));
}

#[test]
fn hostile_clients_do_not_keep_others_from_the_metrics() {
    let port = free_port();
    let _exporter = start_exporter(&format!("127.0.0.1:{port}"));
    wait_for_metrics(port);
    let connect = || TcpStream::connect(("127.0.0.1", port)).unwrap();
    // Clients that say nothing, fewer than may be connected at a time.
    let silent: Vec<TcpStream> = (0..10).map(|_| connect()).collect();
    for garbage in ["\0\0\0\r\n\r\n", "GET /metrics\r\n\r\n", &format!("GET /{} HTTP/1.1\r\n", "x".repeat(1 << 20))] {
        let mut stream = connect();
        let _ = stream.write_all(garbage.as_bytes());
    }
    assert!(get(port, "/../../etc/passwd").unwrap().starts_with("HTTP/1.1 404"));
    assert!(get(port, "/metrics").unwrap().starts_with("HTTP/1.1 200"));
    drop(silent);
}

fn packaged(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/prometheus").join(name)
}

#[test]
fn the_rules_pass_their_tests() {
    if !is_installed("promtool", "the_rules_pass_their_tests") {
        return;
    }
    promtool(&["check", "rules", packaged("iotop-plus.rules.yml").to_str().unwrap()], b"");
    promtool(&["test", "rules", packaged("iotop-plus.rules.test.yml").to_str().unwrap()], b"");
}

/// All values of a key, at any depth.
fn values<'a>(value: &'a Value, key: &str, out: &mut Vec<&'a Value>) {
    match value {
        Value::Object(map) => {
            out.extend(map.get(key));
            map.values().for_each(|value| values(value, key, out));
        }
        Value::Array(list) => list.iter().for_each(|value| values(value, key, out)),
        _ => {}
    }
}

/// The names of metrics in a text, without what a histogram or a rule adds.
fn metric_names(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | ':')));
    let names = words.filter(|word| word.starts_with("iotop_plus_"));
    names
        .map(|name| name.trim_end_matches("_bucket").trim_end_matches("_sum").trim_end_matches("_count").into())
        .collect()
}

#[test]
fn dashboard_and_rules_use_documented_metrics() {
    let page = include_str!("../docs/reference/metrics.md");
    let documented = metric_names(page);
    let dashboard = include_str!("../packaging/prometheus/grafana-dashboard.json");
    let rules = include_str!("../packaging/prometheus/iotop-plus.rules.yml");
    let parsed: Value = serde_json::from_str(dashboard).unwrap();
    let mut queries = Vec::new();
    values(&parsed, "expr", &mut queries);
    assert!(queries.len() >= 6, "{queries:?}");
    let used = queries.iter().flat_map(|query| metric_names(query.as_str().unwrap())).chain(metric_names(rules));
    for name in used {
        assert!(documented.contains(&name), "{name} is not in docs/reference/metrics.md");
    }
    let panels = parsed["panels"].as_array().unwrap();
    for panel in panels {
        assert_eq!(panels.iter().filter(|other| other["id"] == panel["id"]).count(), 1, "{}", panel["title"]);
        let place = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        assert!(place("x") + place("w") <= 24 && place("h") > 0, "{}", panel["title"]);
    }
}
