//! A server that speaks as much of Prometheus' query API as `fleet` asks for, well or badly.

#![allow(dead_code)]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How the server answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Mood {
    /// As Prometheus does.
    Well,
    /// Not JSON.
    Garbage,
    /// More than 10 MB of it.
    Huge,
    /// Never, but the connection stays open.
    Silent,
    /// With an error for queries that contain this text.
    Refusing(&'static str),
    /// As one that shuts down, from the query on that contains this text.
    Ending(&'static str),
    /// As a proxy whose server is gone.
    BadGateway,
    /// Only who has this header.
    Authorized(&'static str),
}

/// A host that the server has figures of.
#[derive(Debug, Clone, Default)]
pub struct FakeHost {
    pub job: &'static str,
    pub instance: &'static str,
    /// Severity, rule, subject.
    pub findings: Vec<[&'static str; 3]>,
    /// Share of time.
    pub pressure: Option<f64>,
    pub scraped_secs_ago: f64,
    /// How far its clock is ahead.
    pub clock_ahead_secs: f64,
    /// Device, model, mean time of a request in seconds.
    pub devices: Vec<(&'static str, &'static str, f64)>,
}

/// What the server has.
pub struct ServerState {
    pub mood: Mood,
    pub hosts: Vec<FakeHost>,
    /// Every path that was asked for, decoded.
    pub asked: Vec<String>,
}

/// A running server; it ends with the test.
pub struct FakePrometheus {
    pub url: String,
    pub state: Arc<Mutex<ServerState>>,
}

impl FakePrometheus {
    pub fn start(hosts: Vec<FakeHost>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(ServerState { mood: Mood::Well, hosts, asked: Vec::new() }));
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = shared.clone();
                std::thread::spawn(move || serve(stream, &state));
            }
        });
        Self { url, state }
    }

    pub fn set_mood(&self, mood: Mood) {
        self.state.lock().unwrap().mood = mood;
    }

    pub fn asked(&self, part: &str) -> bool {
        self.state.lock().unwrap().asked.iter().any(|path| path.contains(part))
    }
}

/// Three hosts: one with a stalled device, one with a warning, one that is fine.
pub fn three_hosts() -> Vec<FakeHost> {
    let host = |instance, pressure| FakeHost {
        job: "iotop-plus",
        instance,
        pressure: Some(pressure),
        devices: vec![("sda", "DISK 4000", 0.004)],
        ..FakeHost::default()
    };
    vec![
        host("fine:9755", 0.02),
        FakeHost { findings: vec![["warn", "writers-throttled", ""]], ..host("dirty:9755", 0.9) },
        FakeHost {
            findings: vec![["warn", "slow-tail", "sdb"], ["critical", "device-stalled", "sda"]],
            ..host("stuck.example:9755", 0.5)
        },
    ]
}

fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        if bytes[at] == b'%' {
            out.push(u8::from_str_radix(&text[at + 1..at + 3], 16).unwrap());
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(out).unwrap()
}

fn serve(stream: TcpStream, state: &Mutex<ServerState>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut out = stream;
    loop {
        let (mut head, mut line) = (String::new(), String::new());
        while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
            head.push_str(&line);
            line.clear();
        }
        let Some(path) = head.split(' ').nth(1).map(decode) else { return };
        let (mood, hosts) = {
            let mut state = state.lock().unwrap();
            state.asked.push(path.clone());
            (state.mood.clone(), state.hosts.clone())
        };
        let body = match mood {
            Mood::Silent => {
                // Until the client gives up.
                let _ = reader.read(&mut [0; 1]);
                return;
            }
            Mood::Garbage => "<html>\u{1b}[31mnot what you want</html>".into(),
            Mood::Huge => format!("{{\"status\":\"{}\"}}", "x".repeat(11_000_000)),
            Mood::Refusing(part) if path.contains(part) => {
                json!({"status": "error", "errorType": "execution", "error": "too many samples"}).to_string()
            }
            Mood::Ending(part) if path.contains(part) => {
                json!({"status": "error", "errorType": "canceled", "error": "query was canceled"}).to_string()
            }
            Mood::BadGateway => "<html>Bad Gateway</html>".into(),
            _ => json!({"status": "success", "data": answer(&path, &hosts)}).to_string(),
        };
        let status = match mood {
            Mood::Authorized(header) if !head.contains(header) => "401 Unauthorized",
            Mood::Ending(part) if path.contains(part) => "503 Service Unavailable",
            Mood::BadGateway => "502 Bad Gateway",
            _ => "200 OK",
        };
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        if out.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// Seconds since 1970 now.
pub fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs_f64()
}

fn param(path: &str, name: &str) -> Option<f64> {
    path.split('&').find_map(|part| part.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}

fn answer(path: &str, hosts: &[FakeHost]) -> Value {
    let is_range = path.contains("/query_range?");
    let at = param(path, "time").unwrap_or_else(now);
    let series: Vec<(Value, f64)> = hosts.iter().flat_map(|host| host_series(path, host, at)).collect();
    let result: Vec<Value> = series
        .into_iter()
        .map(|(metric, value)| match (param(path, "start"), param(path, "end"), param(path, "step")) {
            (Some(start), Some(end), Some(step)) if is_range => {
                let count = ((end - start) / step).round() as usize;
                // Figures begin half way.
                let values: Vec<Value> =
                    (count / 2..=count).map(|i| json!([start + step * i as f64, value.to_string()])).collect();
                json!({"metric": metric, "values": values})
            }
            _ => json!({"metric": metric, "value": [at, value.to_string()]}),
        })
        .collect();
    json!({"resultType": if is_range { "matrix" } else { "vector" }, "result": result})
}

/// The series of a host that answer a query, with their values.
fn host_series(path: &str, host: &FakeHost, at: f64) -> Vec<(Value, f64)> {
    let labels = |more: &[(&str, &str)]| {
        let mut labels = json!({"job": host.job, "instance": host.instance});
        for (name, value) in more {
            labels[*name] = json!(value);
        }
        labels
    };
    let scraped = at - host.scraped_secs_ago;
    let devices = |value: fn(f64) -> f64| {
        let series = host.devices.iter();
        series.map(|(name, _, mean)| (labels(&[("device", name)]), value(*mean))).collect::<Vec<_>>()
    };
    let has = |part: &str| path.contains(part);
    if has("instance=\"") && !has(&format!("instance=\"{}\"", host.instance)) {
        return Vec::new();
    }
    match () {
        () if has("timestamp(iotop_plus_sample") => vec![(labels(&[]), scraped)],
        () if has("last_over_time(") => vec![(labels(&[]), scraped)],
        () if has("count_over_time") || has("count(device:") => Vec::new(),
        () if has("iotop_plus_sample_age_seconds|") => vec![
            (labels(&[("__name__", "iotop_plus_sample_timestamp_seconds")]), scraped - 0.5 + host.clock_ahead_secs),
            (labels(&[("__name__", "iotop_plus_sample_age_seconds")]), 0.5),
            (labels(&[("__name__", "iotop_plus_rules_skipped")]), 0.0),
        ],
        () if has("iotop_plus_stalled_devices|") => {
            [("dirty_bytes", 4e8), ("writeback_bytes", 1e8), ("dirty_threshold_bytes", 1e9)]
                .iter()
                .map(|(name, value)| (labels(&[("__name__", &format!("iotop_plus_{name}"))]), *value))
                .collect()
        }
        () if has("iotop_plus_findings{") => vec![(labels(&[]), f64::from(u8::from(!host.findings.is_empty())) * 2.0)],
        () if has("iotop_plus_finding_info") => {
            let finding = |[severity, rule, subject]: &[&str; 3]| {
                (labels(&[("severity", severity), ("rule", rule), ("subject", subject)]), 1.0)
            };
            host.findings.iter().map(finding).collect()
        }
        () if has("pressure_waiting") => host.pressure.map(|share| (labels(&[]), share)).into_iter().collect(),
        () if has("iotop_plus_device_info") => {
            host.devices.iter().map(|(name, model, _)| (labels(&[("device", name), ("model", model)]), 1.0)).collect()
        }
        // The sum of times is the mean times the requests.
        () if has("request_seconds_sum") && has(") / ") => devices(|mean| mean),
        () if has("request_seconds_sum") => devices(|mean| mean * 100.0),
        () if has("request_seconds_count") => devices(|_| 100.0),
        () if has("request_seconds_bucket") => devices(|mean| mean * 4.0),
        () if has("iotop_plus_sample_timestamp_seconds") => vec![(labels(&[]), scraped)],
        () => Vec::new(),
    }
}
