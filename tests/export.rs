//! `export` with the real Prometheus: promtool checks the metrics, Prometheus scrapes them, and the HTTP server bears what
//! clients may do. Where Debian's package `prometheus` is missing, what needs it is skipped by name.

mod export_harness;

use export_harness::{PROGRAM, Running, TIMEOUT, ask, free_port, get, is_installed, start, wait_for, wait_for_metrics};
use serde_json::Value;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

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
    // What Grafana fills in is replaced.
    let dashboard = serde_json::from_str(include_str!("../packaging/prometheus/grafana-dashboard.json")).unwrap();
    let mut queries = Vec::new();
    values(&dashboard, "expr", &mut queries);
    for text in queries.iter().map(|query| query.as_str().unwrap()) {
        let filled = text.replace("$__rate_interval", "5m").replace("$instance", ".*").replace("$device", ".*");
        let encoded: String = filled.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let answer = get(web, &format!("/api/v1/query?query={encoded}")).unwrap();
        assert!(answer.contains("\"status\":\"success\""), "{text}: {answer}");
    }
    wait_for("the type of a histogram", || {
        get(web, "/api/v1/metadata?metric=iotop_plus_findings").ok().filter(|answer| answer.contains("\"gauge\""))
    });
}

#[test]
fn only_users_of_the_web_config_read_the_metrics() {
    let (port, dir) = (free_port(), tempfile::tempdir().unwrap());
    let (file, listen) = (dir.path().join("web.yml"), format!("127.0.0.1:{port}"));
    // The password is "secret".
    let users = "basic_auth_users:\n  alice: $2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW\n";
    std::fs::write(&file, users).unwrap();
    let args = ["export", "--listen", &listen, "-d", "0.3", "--web-config"];
    let _exporter = start(Command::new(PROGRAM).args(args).arg(&file));
    let ask_as = |credentials: &str| {
        let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        ask(stream, &format!("GET /metrics HTTP/1.0\r\nHost: x\r\n{credentials}\r\n")).ok()
    };
    // alice:secret, and alice:Secret.
    let (right, wrong) = ("Authorization: Basic YWxpY2U6c2VjcmV0\r\n", "Authorization: Basic YWxpY2U6U2VjcmV0\r\n");
    let answer = wait_for("metrics", || ask_as(right).filter(|answer| answer.contains(" 200 OK")));
    assert!(answer.contains("iotop_plus_build_info"), "{answer}");
    for refused in [wrong, ""] {
        let answer = ask_as(refused).unwrap().to_lowercase();
        assert!(answer.contains(" 401 ") && answer.contains("www-authenticate: basic"), "{answer}");
        assert!(!answer.contains("iotop_plus_"), "{answer}");
    }
}

#[test]
fn a_web_config_with_tls_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("web.yml");
    std::fs::write(&file, "tls_server_config:\n  cert_file: a.pem\n").unwrap();
    let args = ["export", "--listen", "127.0.0.1:0", "--web-config"];
    let output = Command::new(PROGRAM).args(args).arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("reverse proxy"), "{said}");
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

/// A port that is free together with the next one.
fn two_free_ports() -> u16 {
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", port + 1)).is_ok();
    std::iter::repeat_with(free_port).filter(|port| *port < u16::MAX).find(is_free).unwrap()
}

#[test]
fn recordings_are_served_as_hosts() {
    let port = two_free_ports();
    let listen = format!("127.0.0.1:{port}");
    let recording = |name| format!("{}/tests/fixtures/situations/{name}.iotop", env!("CARGO_MANIFEST_DIR"));
    let files = [recording("slow-disk"), recording("dirty-storm")];
    let args = ["export", "--listen", &listen, "--loop", "--all", "--replay"];
    let _exporter = start(Command::new(PROGRAM).args(args).args(&files));
    let [slow, dirty] = [port, port + 1].map(|port| {
        wait_for("a finding of the recording", || {
            get(port, "/metrics").ok().filter(|answer| answer.contains("iotop_plus_finding_info{"))
        })
    });
    let value = |answer: &str, name: &str| {
        answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<f64>().ok())
    };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    for answer in [&slow, &dirty] {
        let sampled = value(answer, "iotop_plus_sample_timestamp_seconds").unwrap();
        assert!((now - sampled).abs() < 2.0 * TIMEOUT.as_secs_f64(), "it passes for a host of today: {sampled}");
        assert!(answer.contains("iotop_plus_host_info{host=\"") && answer.contains("iotop_plus_device_info{device=\""));
    }
    assert_ne!(value(&slow, "iotop_plus_dirtied_bytes_total"), value(&dirty, "iotop_plus_dirtied_bytes_total"));
}

#[test]
fn a_file_that_is_no_recording_is_not_served() {
    let args = ["export", "--listen", "127.0.0.1:0", "--replay", "Cargo.toml"];
    let output = Command::new(PROGRAM).args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("Cargo.toml: is not a recording"), "{said}");
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
    assert!(get(port, "/../../etc/passwd").unwrap().contains(" 404 "));
    assert!(get(port, "/metrics").unwrap().contains(" 200 OK"));
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

#[test]
fn systemd_accepts_the_units() {
    if !is_installed("systemd-analyze", "systemd_accepts_the_units") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let unit = |name: &str| {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/systemd").join(name);
        let text = std::fs::read_to_string(shipped).unwrap().replace("/usr/bin/iotop-plus", PROGRAM);
        std::fs::write(dir.path().join(name), text).unwrap();
        dir.path().join(name)
    };
    let (service, socket) = (unit("iotop-plus-export.service"), unit("iotop-plus-export.socket"));
    let check = |args: &[&str], units: &[&Path]| {
        let output = Command::new("systemd-analyze").args(args).args(units).output().unwrap();
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        assert!(output.status.success(), "systemd-analyze {args:?}: {said}");
        said
    };
    assert_eq!(check(&["verify", "--man=no"], &[&service, &socket]), "");
    // Tenths of systemd's measure of exposure.
    check(&["security", "--offline=true", "--threshold=50"], &[&service]);
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
