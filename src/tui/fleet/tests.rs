//! Keys, reports and pictures of the screen.

use super::screen::FleetScreen;
use super::update::FleetEffect;
use crate::doctor::finding::Severity;
use crate::fleet::host::{FleetDevice, FleetFinding, FleetHost, FleetHostId};
use crate::fleet::poller::{FleetEvent, PollCommand};
use crate::fleet::query_error::QueryError;
use crate::fleet::source::{DevicesReport, HostsReport};
use crate::tui::settings::Settings;
use crate::tui::themes::ThemeList;
use crate::tui::widgets::CellBuffer;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;

fn host(name: &str, severity: Option<Severity>) -> FleetHost {
    let finding = |severity| FleetFinding { severity, rule: "slow-device".into(), subject: "sda".into() };
    FleetHost {
        id: FleetHostId { job: "j".into(), instance: format!("{name}:9755") },
        name: name.into(),
        address: name.into(),
        findings: Some(severity.map(finding).into_iter().collect()),
        io_pressure_pct: Some(40.0),
        age_secs: Some(1.0),
        ..FleetHost::default()
    }
}

fn device(host: &str, mean_secs: f64) -> FleetDevice {
    FleetDevice {
        host: FleetHostId { job: "j".into(), instance: format!("{host}:9755") },
        host_name: host.into(),
        device: "sda".into(),
        model: Some("DISK 1".into()),
        mean_secs: Some(mean_secs),
        p99_secs: Some(mean_secs * 2.0),
        ..FleetDevice::default()
    }
}

fn screen() -> FleetScreen {
    let mut screen = FleetScreen::new("http://p", &Settings::default(), ThemeList::default(), (100, 24));
    screen.now = 1000.0;
    let hosts = vec![host("fine", None), host("bad", Some(Severity::Critical)), host("warned", Some(Severity::Warn))];
    let report = HostsReport { hosts, evaluated_at: Some(1000.0), ..HostsReport::default() };
    screen.on_report(FleetEvent::Hosts(0, Ok(report)));
    let devices = vec![device("fine", 0.004), device("bad", 0.04)];
    screen.on_report(FleetEvent::Devices(0, DevicesReport { devices, failed: Vec::new() }));
    let slow = (host("bad", None).id, "sda".to_owned());
    screen.on_report(FleetEvent::Slow(0, Ok([(slow, "9.9x its siblings".to_owned())].into())));
    screen
}

fn press(screen: &mut FleetScreen, keys: &str) -> Vec<FleetEffect> {
    let mut effects = Vec::new();
    for c in keys.chars() {
        let code = match c {
            '\n' => KeyCode::Enter,
            '\x1b' => KeyCode::Esc,
            c => KeyCode::Char(c),
        };
        effects.extend(screen.on_key(KeyEvent::new(code, KeyModifiers::NONE)));
    }
    effects
}

fn lines(screen: &FleetScreen) -> Vec<String> {
    let mut buf = CellBuffer::new(Rect::new(0, 0, screen.size.0, screen.size.1));
    screen.draw(&mut buf);
    let shown = buf.to_buffer();
    let line = |y| (0..screen.size.0).map(|x| shown[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..screen.size.1).map(line).collect()
}

#[test]
fn the_worst_host_is_first_with_the_p99_of_its_device() {
    let shown = lines(&screen());
    assert!(shown[0].contains("3 hosts  1 critical  1 with warnings  1 slow device"), "{}", shown[0]);
    assert!(
        shown[3].contains("bad") && shown[3].contains("‼ slow device: sda") && shown[3].contains("80.0"),
        "{shown:#?}"
    );
    assert!(shown[4].contains("warned") && shown[5].contains("fine"));
}

#[test]
fn the_slow_device_is_first_among_those_of_its_model() {
    let mut screen = screen();
    press(&mut screen, "2");
    let shown = lines(&screen);
    assert!(shown[3].contains("bad") && shown[3].contains("9.9x its siblings"), "{shown:#?}");
    assert!(shown[4].contains("fine"));
}

#[test]
fn ages_grow_and_old_figures_are_said_to_be_old() {
    let mut screen = screen();
    screen.now = 1100.0;
    let why = QueryError::Connection { server: "p:80".into(), why: "connection refused".into() };
    screen.on_report(FleetEvent::Hosts(0, Err(why)));
    screen.now = 1200.0;
    let shown = lines(&screen);
    assert!(shown[0].contains("OLD by 3m20s"), "{}", shown[0]);
    assert!(shown[1].contains("No answer since 00:18:20: no connection to p:80"), "{}", shown[1]);
    assert!(shown[4].contains("201"), "the age of its sample: {}", shown[4]);
}

#[test]
fn choosing_a_time_drops_what_is_of_now() {
    let mut screen = screen();
    let effects = press(&mut screen, "[");
    assert!(
        matches!(&effects[..], [FleetEffect::Send(PollCommand::ChooseTime { time: Some(time), generation: 1 })] if *time == 940.0),
        "{effects:?}"
    );
    let shown = lines(&screen);
    assert!(shown[0].contains("PAST, 1m00s ago") && shown[0].contains("0 hosts"), "{}", shown[0]);
    assert!(matches!(&press(&mut screen, "G")[..], [FleetEffect::Send(PollCommand::ChooseTime { time: None, .. })]));
}

#[test]
fn lists_can_be_filtered_and_a_host_opened() {
    let mut screen = screen();
    press(&mut screen, "\\slow dev\n");
    assert_eq!(screen.host_rows().len(), 2);
    press(&mut screen, "\x1bo");
    assert_eq!(screen.host_rows().len(), 2, "fine is hidden");
    let effects = press(&mut screen, "\n");
    let [FleetEffect::Send(PollCommand::Range(request))] = &effects[..] else { panic!("{effects:?}") };
    assert!(request.expressions[0].1.contains("instance=\"bad:9755\""));
    assert!(press(&mut screen, "j").is_empty(), "it is asked for once");
    let answers = request.expressions.iter().map(|_| Ok(Vec::new())).collect();
    screen.on_report(FleetEvent::Range(request.clone(), answers));
    let shown = lines(&screen).join("\n");
    assert!(
        shown.contains("Host bad") && shown.contains("none in this time") && shown.contains("IO stall: not exported")
    );
}

#[test]
fn the_command_line_of_a_hostile_name_is_quoted() {
    let mut screen = screen();
    let evil = FleetHost { address: "-oProxyCommand=x; rm".into(), ..host("evil", Some(Severity::Critical)) };
    let report = HostsReport { hosts: vec![evil], evaluated_at: Some(1000.0), ..HostsReport::default() };
    screen.on_report(FleetEvent::Hosts(0, Ok(report)));
    let effects = press(&mut screen, "y");
    assert!(
        matches!(&effects[..], [FleetEffect::Copy(text)] if text == "ssh -t -- '-oProxyCommand=x; rm' iotop-plus"),
        "{effects:?}"
    );
}

#[test]
fn every_size_can_be_drawn_in_every_state() {
    for size in [(1, 1), (40, 12), (60, 13), (100, 24), (300, 90)] {
        let mut screen = screen();
        screen.size = size;
        for keys in ["", "2", "3", "g", "1\n", "?", "\x1b\x1b[", "\\x"] {
            press(&mut screen, keys);
            lines(&screen);
        }
    }
}
