//! The screen of many hosts with the real program in a pseudo-terminal, against a server that answers well or badly.

mod fake_prometheus;
mod pty_harness;

use fake_prometheus::{FakePrometheus, Mood, three_hosts};
use pty_harness::{Terminal, TerminalOptions};

fn start(server: &FakePrometheus, more: &[&str]) -> Terminal {
    let url = server.url.clone();
    let args = [&["fleet", "--prometheus", &url, "-d", "0.2", "--timeout", "1", "--config", "none"], more].concat();
    Terminal::start(TerminalOptions { args, size: (120, 30), ..TerminalOptions::default() })
}

fn line_of(screen: &str, text: &str) -> Option<usize> {
    screen.lines().position(|line| line.contains(text))
}

#[test]
fn hosts_devices_map_and_page_can_be_walked_through() {
    let server = FakePrometheus::start(three_hosts());
    let mut t = start(&server, &[]);
    t.wait_until("the hosts in their order", |s| {
        let text = s.contents();
        line_of(&text, "stuck.example") < line_of(&text, "│dirty ") && line_of(&text, "│fine ").is_some()
    });
    t.wait_for_text("‼ device stalled: sda  +1");
    t.send("y");
    t.wait_for_text("copied: ssh -t -- stuck.example iotop-plus");
    t.send("\r");
    t.wait_for_text("Host stuck.example");
    t.wait_for_text("sda p99");
    t.wait_for_text("processes, files, slow syncs");
    t.send("\x1b");
    t.wait_for_text("Worst finding");
    t.send("2");
    t.wait_for_text("DISK 4000");
    t.send("3");
    t.wait_for_text("Heat map of 15m00s");
    t.wait_for_text("█");
    t.send("1\\dirty\r");
    t.wait_for_text("1 of 3");
    t.send("\x1b");
    t.wait_for_text("3 of 3");
    t.send("[");
    t.wait_for_text("PAST, ");
    t.wait_for_text("stuck.example");
    t.send("G");
    t.wait_until("the present", |s| !s.contents().contains("PAST"));
    t.send("q");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
    t.assert_restored(1);
}

#[test]
fn an_outage_is_said_and_old_figures_are_marked() {
    let server = FakePrometheus::start(three_hosts());
    let mut t = start(&server, &[]);
    t.wait_for_text("stuck.example");
    for (mood, text) in [(Mood::Garbage, "query API"), (Mood::Huge, "10 MB"), (Mood::Silent, "within 1 s")] {
        server.set_mood(mood);
        t.wait_for_text("No answer since ");
        t.wait_for_text(text);
        t.wait_for_text("OLD by ");
    }
    // The screen goes on while the server says nothing.
    t.send("?");
    t.wait_for_text("Many hosts (iotop-plus fleet)");
    t.send("\x1b");
    server.set_mood(Mood::Well);
    t.wait_until("answers again", |s| !s.contents().contains("No answer"));
    server.state.lock().unwrap().hosts.remove(0);
    t.wait_for_text("gone: no figures since ");
    t.send("q");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
}

#[test]
fn a_server_that_is_not_there_is_waited_for() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{address}");
    let mut t = Terminal::with_args(&["fleet", "--prometheus", &url, "--config", "none"]);
    t.wait_for_text("connection refused");
    t.send("q");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
    t.assert_restored(1);
}
