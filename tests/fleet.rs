//! `fleet` printed once: against a server that answers well or badly, and against the real Prometheus where it is installed.

mod fake_prometheus;

use fake_prometheus::{FakeHost, FakePrometheus, Mood, three_hosts};
use serde_json::Value;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_iotop-plus");
/// Longer than anything takes, even beside builds.
const TIMEOUT: Duration = Duration::from_secs(90);

fn fleet(url: &str, args: &[&str]) -> Output {
    Command::new(PROGRAM).args(["fleet", "--prometheus", url]).args(args).stdin(Stdio::null()).output().unwrap()
}

fn fleet_json(url: &str, args: &[&str]) -> Value {
    let out = fleet(url, &[&["--format", "json"], args].concat());
    assert!(out.status.success(), "{out:?}");
    serde_json::from_slice(&out.stdout).unwrap()
}

/// The error of a run that fails.
fn fleet_error(url: &str, args: &[&str]) -> String {
    let out = fleet(url, &[&["--format", "text"], args].concat());
    assert!(!out.status.success() && out.stdout.is_empty(), "{out:?}");
    String::from_utf8(out.stderr).unwrap()
}

#[test]
fn hosts_are_ranked_by_what_is_wrong() {
    let server = FakePrometheus::start(three_hosts());
    let json = fleet_json(&server.url, &[]);
    let hosts = json["hosts"].as_array().unwrap();
    let names: Vec<&str> = hosts.iter().map(|host| host["host"].as_str().unwrap()).collect();
    assert_eq!(names, ["stuck.example", "dirty", "fine"]);
    assert_eq!(hosts[0]["findings"][0]["rule"], "device-stalled");
    assert_eq!(
        (hosts[1]["io_pressure_percent"].as_f64(), hosts[1]["dirty_percent"].as_f64()),
        (Some(90.0), Some(50.0))
    );
    assert_eq!(hosts[2]["findings"].as_array().map(Vec::len), Some(0));
    // What was not exported is not 0.
    assert!(hosts[0]["throttled_seconds_per_second"].is_null() && hosts[0]["stalled_devices"].is_null());
    let device = &json["devices"][0];
    assert_eq!((device["model"].as_str(), device["p99_seconds"].as_f64()), (Some("DISK 4000"), Some(0.016)));
    assert_eq!(device["mean_seconds"].as_f64(), Some(0.004));
    assert_eq!(json["problems"].as_array().map(Vec::len), Some(0));
    let text = String::from_utf8(fleet(&server.url, &["--format", "text"]).stdout).unwrap();
    assert!(text.contains("‼ device stalled: sda  +1"), "{text}");
}

#[test]
fn queries_have_the_matchers_and_the_time() {
    let server = FakePrometheus::start(three_hosts());
    let at = ["--match", "job=\"iotop-plus\"", "--at", "2026-11-21T14:35:12Z"];
    let json = fleet_json(&server.url, &at);
    assert_eq!(json["time"], "2026-11-21T14:35:12.000Z");
    assert!(server.asked("iotop_plus_finding_info{severity!=\"note\",job=\"iotop-plus\"}"));
    let state = server.state.lock().unwrap();
    assert!(
        state.asked.iter().all(|path| path.contains("time=1795271712.000") || path.contains("end=1795271712.000")),
        "{:?}",
        state.asked
    );
    assert!(state.asked.len() < 20, "{} queries for three hosts", state.asked.len());
}

#[test]
fn bad_answers_are_errors_that_say_what_to_do() {
    let server = FakePrometheus::start(three_hosts());
    for (mood, wanted) in [
        (Mood::Garbage, "not an answer of Prometheus' query API: it begins with \"<html>"),
        (Mood::Huge, "more than 10 MB; ask for fewer hosts by --match"),
        (Mood::Silent, "no answer within 0.5 s"),
        (Mood::Refusing("timestamp("), "refused by the server: too many samples"),
        (Mood::Ending("pressure_waiting"), "answers no queries at present: query was canceled"),
        (Mood::BadGateway, "answers no queries at present: HTTP status 502"),
        (Mood::Authorized("uthorization: Bearer secret"), "--token-file"),
    ] {
        server.set_mood(mood);
        let error = fleet_error(&server.url, &["--timeout", "0.5"]);
        assert!(error.contains(wanted) && error.lines().count() == 1, "{error}");
        assert!(!error.contains('\u{1b}'), "{error:?}");
    }
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert!(fleet_error(&format!("http://{free}"), &[]).contains("connection refused"));
    server.set_mood(Mood::Well);
    server.state.lock().unwrap().hosts.clear();
    let out = fleet(&server.url, &["--format", "json", "--match", "job=\"nosuch\""]);
    let error = String::from_utf8(out.stderr).unwrap();
    assert!(error.contains("no series iotop_plus_sample_timestamp_seconds{job=\"nosuch\"}"), "{error}");
}

#[test]
fn a_query_that_fails_costs_its_column_only() {
    let server = FakePrometheus::start(three_hosts());
    server.set_mood(Mood::Refusing("pressure_waiting"));
    let json = fleet_json(&server.url, &[]);
    assert!(json["hosts"][0]["io_pressure_percent"].is_null());
    assert_eq!(json["hosts"][0]["p99_seconds"].as_f64(), Some(0.016));
    assert_eq!(json["problems"][0], "No pressure: refused by the server: too many samples");
}

#[test]
fn passwords_and_tokens_are_read_from_files() {
    let server = FakePrometheus::start(three_hosts());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("secret");
    std::fs::write(&file, "secret\n").unwrap();
    let path = file.to_str().unwrap();
    // base64 of "u:secret".
    server.set_mood(Mood::Authorized("uthorization: Basic dTpzZWNyZXQ="));
    assert_eq!(
        fleet_json(&server.url, &["--user", "u", "--password-file", path])["hosts"].as_array().unwrap().len(),
        3
    );
    server.set_mood(Mood::Authorized("uthorization: Bearer secret\r\n"));
    assert_eq!(fleet_json(&server.url, &["--token-file", path])["hosts"].as_array().unwrap().len(), 3);
    std::fs::write(&file, "two\nlines\n").unwrap();
    let error = fleet_error(&server.url, &["--token-file", path]);
    assert!(error.contains("must be one line") && !error.contains("two"), "{error}");
}

#[test]
fn clocks_ages_and_names_used_twice_are_shown() {
    let host = |job, instance| FakeHost { job, instance, ..FakeHost::default() };
    let server = FakePrometheus::start(vec![
        host("a", "web1:9755"),
        host("a", "web1:9756"),
        FakeHost { clock_ahead_secs: 3600.0, ..host("a", "ahead:9755") },
        FakeHost { scraped_secs_ago: 240.0, ..host("a", "old:9755") },
    ]);
    let json = fleet_json(&server.url, &[]);
    let find = |name: &str| json["hosts"].as_array().unwrap().iter().find(|host| host["host"] == name).unwrap();
    assert_eq!((&find("web1:9755")["duplicate_name"], &find("ahead")["duplicate_name"]), (&true.into(), &false.into()));
    assert!((find("ahead")["clock_offset_seconds"].as_f64().unwrap() - 3600.0).abs() < 1.0);
    assert!(find("ahead")["age_seconds"].as_f64().unwrap() < 60.0, "its clock does not make it old or new");
    assert!(find("old")["age_seconds"].as_f64().unwrap() >= 240.0);
    assert_eq!(json["hosts"][0]["host"], "old", "a silent host comes first");
}

#[test]
fn recordings_are_hosts_at_the_times_that_they_have() {
    let dir = tempfile::tempdir().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/situations");
    for name in ["dirty-storm.iotop", "slow-disk.iotop"] {
        std::fs::copy(fixtures.join(name), dir.path().join(name)).unwrap();
    }
    std::fs::write(dir.path().join("broken.iotop"), "no recording").unwrap();
    std::fs::write(dir.path().join("notes.txt"), "").unwrap();
    let path = dir.path().to_str().unwrap();
    let run = |more: &[&str]| {
        let args = [&["fleet", "--recordings", path, "--format", "json"], more].concat();
        let out = Command::new(PROGRAM).args(args).stdin(Stdio::null()).output().unwrap();
        assert!(out.status.success(), "{out:?}");
        serde_json::from_slice::<Value>(&out.stdout).unwrap()
    };
    let json = run(&[]);
    let hosts = json["hosts"].as_array().unwrap();
    assert_eq!(hosts.len(), 2, "{json}");
    let present: Vec<&Value> = hosts.iter().filter(|host| host["gone_since"].is_null()).collect();
    assert!(!present.is_empty() && present.iter().all(|host| host["dirty_bytes"].is_number()), "{json}");
    assert!(json["problems"][0].as_str().unwrap().contains("broken.iotop"), "{json}");
    assert!(json["devices"].as_array().is_some_and(|devices| !devices.is_empty()), "{json}");
    // Before any of them began there is none.
    assert_eq!(run(&["--at", "2001-01-01T00:00:00Z"])["hosts"].as_array().map(Vec::len), Some(0));
    let empty = tempfile::tempdir().unwrap();
    let args = ["fleet", "--recordings", empty.path().to_str().unwrap(), "--format", "text"];
    let out = Command::new(PROGRAM).args(args).output().unwrap();
    assert!(String::from_utf8_lossy(&out.stderr).contains("no file ends in .iotop"), "{out:?}");
}

#[test]
fn the_history_of_a_host_is_read_from_prometheus() {
    let server = FakePrometheus::start(three_hosts());
    let replay = |more: &[&str]| {
        let args = [&["replay", "--from-prometheus", &server.url], more].concat();
        Command::new(PROGRAM).args(args).stdin(Stdio::null()).output().unwrap()
    };
    let span = ["--from", "2026-11-21T14:00:00Z", "--to", "2026-11-21T15:00:00Z"];
    let out = replay(&[&["--host", "stuck.example", "--format", "json"], &span[..]].concat());
    assert!(out.status.success(), "{out:?}");
    let json: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&json["host"], &json["step_seconds"]), (&"stuck.example:9755".into(), &15.0.into()));
    let find = |name: &str| json["series"].as_array().unwrap().iter().find(|series| series["name"] == name).unwrap();
    let values = find("sda mean")["values"].as_array().unwrap();
    assert_eq!((values.len(), &values[0], &values[240]), (241, &Value::Null, &0.004.into()));
    let finding = &json["findings"][0];
    assert_eq!(
        (&finding["rule"], &finding["present"][0], &finding["present"][240]),
        (&"device-stalled".into(), &Value::Null, &true.into())
    );
    assert!(json["missing"].to_string().contains("bytes: not exported"), "{json}");
    let text =
        String::from_utf8(replay(&[&["--host", "dirty", "--format", "text"], &span[..]].concat()).stdout).unwrap();
    assert!(text.contains("writers throttled") && text.contains("4.0 ms"), "{text}");
    let error = String::from_utf8(replay(&["--host", "nosuch", "--format", "json"]).stderr).unwrap();
    assert!(error.contains("no figures of \"nosuch\" in this time; hosts: dirty, fine, stuck.example"), "{error}");
    let error = String::from_utf8(replay(&["--host", "fine", "--format", "csv"]).stderr).unwrap();
    assert!(error.contains("text and json"), "{error}");
}

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

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn prometheus_answers_every_query() {
    if Command::new("prometheus").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        eprintln!("SKIPPED prometheus_answers_every_query: needs prometheus");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (exporter, server) = (free_port(), free_port());
    let config = dir.path().join("p.yml");
    std::fs::write(
        &config,
        format!(
            "global: {{scrape_interval: 1s}}\nscrape_configs:\n  - job_name: j\n    static_configs: \
             [{{targets: ['127.0.0.1:{exporter}']}}]\n"
        ),
    )
    .unwrap();
    let listen = format!("127.0.0.1:{exporter}");
    let _exporter = start(Command::new(PROGRAM).args(["export", "--listen", &listen, "-d", "0.5", "--all"]));
    let _server = start(Command::new("prometheus").args([
        format!("--config.file={}", config.display()),
        format!("--storage.tsdb.path={}", dir.path().join("data").display()),
        format!("--web.listen-address=127.0.0.1:{server}"),
    ]));
    let url = format!("http://127.0.0.1:{server}");
    let started = Instant::now();
    loop {
        let out = fleet(&url, &["--format", "json"]);
        let json: Value = serde_json::from_slice(&out.stdout).unwrap_or_default();
        let host = &json["hosts"][0];
        let is_complete = ["io_pressure_percent", "dirty_percent", "stalled_devices", "age_seconds"]
            .iter()
            .all(|key| host[*key].is_number());
        if is_complete && host["findings"].is_array() && json["devices"].as_array().is_some_and(|d| !d.is_empty()) {
            assert_eq!(json["problems"].as_array().map(Vec::len), Some(0), "{json}");
            assert_eq!((&host["instance"], &host["job"]), (&format!("127.0.0.1:{exporter}").into(), &"j".into()));
            assert_ne!(host["host"], "127.0.0.1", "it has the name that it calls itself");
            assert!(host["clock_offset_seconds"].as_f64().unwrap().abs() < 5.0, "{json}");
            break;
        }
        assert!(started.elapsed() < TIMEOUT, "{json} {}", String::from_utf8_lossy(&out.stderr));
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// Prometheus with TLS, a certificate for localhost and the user `reader`, whose password is in the file `password`.
fn start_https_prometheus(dir: &Path, port: u16) -> Running {
    let file = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-nodes",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-subj",
            "/CN=localhost",
        ])
        .args(["-addext", "subjectAltName=DNS:localhost", "-keyout", &file("key.pem"), "-out", &file("cert.pem")])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let hash = bcrypt::hash("secret", 4).unwrap();
    let tls = "tls_server_config: {cert_file: cert.pem, key_file: key.pem}";
    std::fs::write(file("web.yml"), format!("{tls}\nbasic_auth_users: {{reader: '{hash}'}}\n")).unwrap();
    std::fs::write(file("password"), "secret\n").unwrap();
    std::fs::write(file("p.yml"), "").unwrap();
    start(Command::new("prometheus").args([
        format!("--config.file={}", file("p.yml")),
        format!("--web.config.file={}", file("web.yml")),
        format!("--storage.tsdb.path={}", file("data")),
        format!("--web.listen-address=localhost:{port}"),
    ]))
}

#[test]
fn https_is_asked_by_openssl_and_checks_the_certificate() {
    for program in ["prometheus", "openssl"] {
        if Command::new(program).arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            eprintln!("SKIPPED https_is_asked_by_openssl_and_checks_the_certificate: needs {program}");
            return;
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let port = free_port();
    let _server = start_https_prometheus(dir.path(), port);
    let url = format!("https://localhost:{port}");
    let [ca, password] = ["cert.pem", "password"].map(|name| dir.path().join(name).to_str().unwrap().to_owned());
    let trusted = ["--ca-file", &ca];
    let known = ["--format", "json", "--ca-file", &ca, "--user", "reader", "--password-file", &password];
    let started = Instant::now();
    let said = loop {
        let out = fleet(&url, &known);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        if out.status.success() {
            break said;
        }
        assert!(started.elapsed() < TIMEOUT, "{said}");
        std::thread::sleep(Duration::from_millis(500));
    };
    assert!(said.contains(&format!("no host: {url} has no series")), "{said}");
    let untrusted = fleet_error(&url, &[]);
    assert!(untrusted.contains("self") && untrusted.contains("--ca-file"), "{untrusted}");
    let other_name = fleet_error(&format!("https://127.0.0.1:{port}"), &trusted);
    assert!(other_name.contains("mismatch") && other_name.contains("give the name"), "{other_name}");
    let unknown = fleet_error(&url, &trusted);
    assert!(unknown.contains("401") && unknown.contains("--password-file"), "{unknown}");
    let plain = fleet_error(&format!("http://localhost:{port}"), &trusted);
    assert!(plain.contains("--ca-file is for a URL"), "{plain}");
    let refused = fleet_error(&format!("https://localhost:{}", free_port()), &trusted);
    assert!(refused.contains("refused"), "{refused}");
}
