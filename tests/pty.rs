//! The real program in a pseudo-terminal: views, keys, signals, and restoring the terminal.

mod pty_harness;

use crossterm::event::KeyCode;
use iotop_plus::export::screenshot::FORMATS;
use iotop_plus::sanitize::is_safe;
use iotop_plus::tui::action::Action;
use iotop_plus::tui::keymap::{BINDINGS, KeyBinding};
use pty_harness::{BINARY, TIMEOUT, Terminal, TerminalOptions, count_sequence, list_files};
use rustix::process::Signal;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Delay between keys, as of a fast typist. No assertion depends on it.
const TYPING_DELAY: Duration = Duration::from_millis(15);

fn start_and_wait(args: &[&str]) -> Terminal {
    let terminal = Terminal::with_args(args);
    terminal.wait_for_text("q quit");
    terminal
}

#[test]
fn every_view_can_be_opened() {
    let mut t = start_and_wait(&[]);
    for (key, text) in [
        ("2", "recent past"),
        ("3", "READ/s"),
        ("4", "Pressure"),
        ("5", "Kernel log"),
        ("1", "Writeback"),
        ("?", "Help: keys"),
    ] {
        t.send(key);
        t.wait_for_text(text);
    }
    t.send("\x1b");
    t.wait_until("the help closed", |s| !s.contents().contains("Help: keys"));
    // Shares of CPU time, which need two readings.
    t.wait_until("live figures", |s| s.contents().contains("iowait "));
    t.send("q");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
    t.assert_restored(1);
}

/// The bytes a terminal sends for a key.
fn key_bytes(b: &KeyBinding) -> Vec<u8> {
    match b.code {
        KeyCode::Char(c) if b.ctrl => vec![c as u8 & 0x1f],
        KeyCode::Char(c) => c.to_string().into_bytes(),
        KeyCode::Enter => b"\r".to_vec(),
        KeyCode::Esc => b"\x1b".to_vec(),
        KeyCode::Tab => b"\t".to_vec(),
        KeyCode::BackTab => b"\x1b[Z".to_vec(),
        KeyCode::Backspace => b"\x7f".to_vec(),
        KeyCode::Up => b"\x1b[A".to_vec(),
        KeyCode::Down => b"\x1b[B".to_vec(),
        KeyCode::Right => b"\x1b[C".to_vec(),
        KeyCode::Left => b"\x1b[D".to_vec(),
        KeyCode::Delete => b"\x1b[3~".to_vec(),
        KeyCode::Home => b"\x1b[H".to_vec(),
        KeyCode::End => b"\x1b[F".to_vec(),
        KeyCode::PageUp => b"\x1b[5~".to_vec(),
        KeyCode::PageDown => b"\x1b[6~".to_vec(),
        KeyCode::F(n @ 1..=4) => vec![0x1b, b'O', b'P' + n - 1],
        KeyCode::F(5) => b"\x1b[15~".to_vec(),
        // The numbers of F6 to F10 follow each other.
        KeyCode::F(n @ 6..=10) => format!("\x1b[{}~", 11 + n).into_bytes(),
        other => panic!("how is {other:?} sent?"),
    }
}

#[test]
fn every_bound_key_leaves_the_program_running() {
    let mut t = start_and_wait(&[]);
    for view in ["1", "2", "3", "5"] {
        t.send(view);
        for b in BINDINGS.iter() {
            // Confirm would change the machine; quitting and suspending have their own tests.
            let leaves = matches!(b.action, Action::Quit | Action::Suspend) || b.code == KeyCode::Char('q');
            let leaves = leaves || (b.ctrl && b.code == KeyCode::Char('c'));
            if leaves || matches!(b.action, Action::Confirm | Action::ShowView(_)) {
                continue;
            }
            t.send(key_bytes(b));
            std::thread::sleep(TYPING_DELAY);
            // Close what opened, with a delay: Esc followed at once by a letter would be read as Alt.
            t.send("\x1b");
            std::thread::sleep(TYPING_DELAY);
        }
    }
    // On a busy machine the last Esc and a letter may be read as one key: the second letter stands alone.
    t.send("4");
    std::thread::sleep(TYPING_DELAY);
    t.send("4");
    t.wait_for_text("Pressure");
    assert!(t.is_running());
    let written = list_files(t.home.path());
    assert!(t.home.path().join(".config/iotop-plus/config.toml").exists(), "{written:?}");
    t.send("\x03");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
    t.assert_restored(1);
}

#[test]
fn a_saved_config_is_loaded_at_the_next_start() {
    let mut t = start_and_wait(&[]);
    t.send("4W");
    t.wait_for_text("written: ");
    let config = t.home.path().join(".config/iotop-plus/config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    assert!(text.contains("view = \"memory\""), "{text}");
    let again = start_and_wait(&["--config", config.to_str().unwrap()]);
    again.wait_for_text("Pressure");
}

#[test]
fn resizing_redraws_the_screen() {
    let mut t = start_and_wait(&[]);
    for (w, h) in [(140, 45), (80, 24), (40, 12)] {
        t.resize(w, h);
        t.wait_until("a footer in the last line", |s| {
            let last = s.contents_between(h - 1, 0, h - 1, w);
            last.trim_end().ends_with("q quit")
        });
    }
    // Far more rows than any monitor has.
    t.report_size(200, 32_776);
    for view in 1..9 {
        t.send(view.to_string());
        std::thread::sleep(Duration::from_millis(100));
    }
    t.resize(25, 6);
    t.wait_for_text("iotop-plus needs");
    t.resize(100, 30);
    t.wait_for_text("q quit");
    t.send("q");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
    t.assert_restored(1);
}

#[test]
fn every_terminating_signal_restores_the_terminal() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT] {
        let mut t = start_and_wait(&[]);
        assert_ne!(t.modes(), t.initial_modes(), "taken");
        t.signal(signal);
        let status = t.wait_for_exit();
        assert_eq!((status.exit_code(), status.signal()), (0, None), "{signal:?}");
        t.assert_restored(1);
    }
}

#[test]
fn a_killed_or_aborted_program_leaves_a_restored_terminal() {
    // An allocation that fails aborts, as does a fault in the program.
    for signal in [Signal::KILL, Signal::ABORT] {
        let mut t = start_and_wait(&[]);
        t.signal(signal);
        t.wait_for_exit();
        t.wait_for_text("iotop-plus was killed or aborted; the terminal is restored.");
        t.wait_until("the modes before the start", |_| t.modes() == t.initial_modes());
        t.assert_restored(1);
    }
}

#[test]
fn modes_set_after_the_death_of_the_program_stay() {
    let mut t = start_and_wait(&[]);
    // A shell that sets its own modes before the program's last child sees that the program is dead.
    t.set_echo();
    t.signal(Signal::KILL);
    t.wait_for_exit();
    t.wait_for_text("the terminal is restored");
    assert_ne!(t.modes(), t.initial_modes());
}

#[test]
fn a_signal_during_startup_restores_the_terminal() {
    for _ in 0..10 {
        let mut t = Terminal::with_args(&[]);
        let start = Instant::now();
        // As soon as the modes have changed, before anything is drawn.
        while t.modes() == t.initial_modes() && start.elapsed() < TIMEOUT {}
        t.signal(Signal::TERM);
        t.wait_for_exit();
        assert_eq!(t.modes(), t.initial_modes());
    }
}

#[test]
fn stop_and_continue_restore_and_retake_the_terminal() {
    let mut t = start_and_wait(&[]);
    for (round, stop) in [(1, None), (2, Some(Signal::TSTP))] {
        match stop {
            Some(signal) => t.signal(signal),
            None => t.send("\x1a"),
        }
        let stat = format!("/proc/{}/stat", t.pid());
        t.wait_until("stopped", |_| {
            std::fs::read_to_string(&stat).is_ok_and(|s| s.rsplit(')').next().unwrap().starts_with(" T"))
        });
        t.wait_until("the shell's screen", |s| !s.alternate_screen() && !s.hide_cursor());
        assert_eq!(t.modes(), t.initial_modes());
        t.signal(Signal::CONT);
        t.wait_until("back", |s| s.alternate_screen() && s.contents().contains("q quit"));
        t.wait_until("raw again", |_| t.modes() != t.initial_modes());
        assert!(count_sequence(&t.raw(), "\x1b[?1049l") >= round);
    }
    t.send("5");
    t.wait_for_text("Kernel log");
    t.send("q");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
    t.wait_until("the shell's screen", |s| !s.alternate_screen() && !s.hide_cursor());
    assert_eq!(t.modes(), t.initial_modes());
}

#[test]
fn closing_the_terminal_ends_the_program() {
    let pair = portable_pty::native_pty_system().openpty(Default::default()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let mut command = portable_pty::CommandBuilder::new(BINARY);
    command.env("TERM", "xterm");
    command.env("HOME", home.path());
    // Without a controlling terminal there is no SIGHUP: the program must notice the hang-up itself.
    command.set_controlling_tty(false);
    let mut child = pair.slave.spawn_command(command).unwrap();
    let mut reader = pair.master.try_clone_reader().unwrap();
    let (mut buf, mut got) = ([0; 4096], Vec::new());
    while !String::from_utf8_lossy(&got).contains("quit") {
        let n = reader.read(&mut buf).unwrap();
        got.extend_from_slice(&buf[..n]);
    }
    drop((reader, pair));
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(5) {
            let _ = child.kill();
            panic!("goes on without a terminal");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    println!("ended {:?} after the terminal", start.elapsed());
}

#[test]
fn a_slow_terminal_gets_the_newest_frame() {
    let mut t = Terminal::start(TerminalOptions { size: (200, 50), ..Default::default() });
    t.wait_for_text("q quit");
    t.set_reading(false);
    let from = t.raw().len();
    // Each key redraws the whole screen.
    for i in 0..300 {
        t.send(["2", "3", "4", "\x0c"][i % 4]);
        std::thread::sleep(Duration::from_millis(4));
    }
    t.send("5");
    assert!(t.is_running());
    t.set_reading(true);
    t.wait_until("the newest picture", |s| s.contents().contains("Kernel log") && !s.contents().contains("Pressure"));
    let came = t.raw().len() - from;
    println!("{came} bytes for 300 pictures to a terminal that did not read");
    assert!(came < 300_000, "{came} bytes: a backlog was kept");
    // Quit while output is blocked: a frame may be cut off, but the terminal must be restored.
    t.set_reading(false);
    for i in 0..100 {
        t.send(["2", "3", "4", "\x0c"][i % 4]);
        std::thread::sleep(Duration::from_millis(4));
    }
    t.send("q");
    t.wait_for_exit();
    t.set_reading(true);
    t.wait_until("the shell's screen", |s| !s.alternate_screen() && !s.hide_cursor());
    assert_eq!(t.modes(), t.initial_modes());
}

#[test]
fn no_color_disables_colour() {
    let mut t = Terminal::start(TerminalOptions { env: vec![("NO_COLOR", "1")], ..Default::default() });
    t.wait_for_text("q quit");
    for key in ["2", "3", "4", "5", "T", "?"] {
        t.send(key);
        std::thread::sleep(TYPING_DELAY);
    }
    t.wait_for_text("Help: keys");
    t.send("\x1b");
    // An Esc that is read together with the q would be Alt-q.
    t.wait_until("the help closed", |s| !s.contents().contains("Help: keys"));
    t.send("q");
    t.wait_for_exit();
    let raw = String::from_utf8(t.raw()).unwrap();
    let sgr = regex_lite::Regex::new(r"\x1b\[([0-9;]*)m").unwrap();
    for found in sgr.captures_iter(&raw) {
        for n in found[1].split(';').filter_map(|n| n.parse::<u8>().ok()) {
            assert!(!matches!(n, 30..=38 | 40..=48 | 58 | 90..=97 | 100..=107), "{:?}", &found[0]);
        }
    }
    let mut coloured = start_and_wait(&[]);
    coloured.send("q");
    coloured.wait_for_exit();
    assert!(
        sgr.captures_iter(&String::from_utf8(coloured.raw()).unwrap())
            .any(|c| c[1].starts_with("3") && !c[1].starts_with("39") || c[1].contains("38;5"))
    );
}

fn run_without_terminal(args: &[&str], env: &[(&str, &str)]) -> (i32, String) {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(BINARY);
    command.args(args).env_clear().env("HOME", home.path()).env("TERM", "xterm").envs(env.iter().copied());
    let out = command.stdin(Stdio::null()).output().unwrap();
    (out.status.code().unwrap(), String::from_utf8(out.stderr).unwrap())
}

#[test]
fn a_missing_terminal_is_reported() {
    let (code, said) = run_without_terminal(&[], &[]);
    assert!(code == 1 && said.contains("not a terminal") && said.contains("-b"), "{code} {said}");
    for term in ["dumb", ""] {
        let mut t = Terminal::start(TerminalOptions { env: vec![("TERM", term)], ..Default::default() });
        assert_eq!(t.wait_for_exit().exit_code(), 1);
        t.wait_for_text("TERM");
        assert_eq!((t.modes(), count_sequence(&t.raw(), "\x1b")), (t.initial_modes().to_owned(), 0));
    }
}

#[test]
fn a_config_error_names_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    let path = file.to_str().unwrap();
    for (text, has) in [
        ("interval = 1\n\nbogus = 2\n", vec!["line 3", "bogus"]),
        ("interval = 0\n", vec!["0.1 to 3600"]),
        ("theme = \"\\u001b[31mpink\"\n", vec!["theme", "there are dark, light"]),
        ("view = \"\\u001b[31mpink\"\n", vec!["line 1"]),
    ] {
        std::fs::write(&file, text).unwrap();
        let (code, said) = run_without_terminal(&["--config", path], &[]);
        assert!(code == 2 && said.contains(path), "{code} {said}");
        assert!(has.iter().all(|h| said.contains(h)), "{said}");
        assert!(said.trim_end().chars().all(is_safe), "{said:?}");
    }
    std::fs::write(&file, vec![b'#'; 100_000]).unwrap();
    assert_eq!(run_without_terminal(&["--config", path], &[]).0, 2);
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED another user's config: needs root");
        return;
    }
    std::fs::write(&file, "").unwrap();
    std::os::unix::fs::chown(&file, Some(65534), None).unwrap();
    let (code, said) = run_without_terminal(&["--config", path], &[]);
    assert!(code == 2 && said.contains("another user"), "{code} {said}");
}

/// Processes with names that contain terminal escape sequences; killed when dropped.
struct HostileProcesses(Vec<std::process::Child>, #[allow(dead_code)] tempfile::TempDir);

const HOSTILE_NAMES: [&str; 6] = [
    "\x1b[31mEVIL\x1b[0m",
    "\x1b]0;EVIL\x07",
    "\u{202e}EVILtxt",
    "\u{9b}2JEVIL",
    "EVIL\r\n\x08\x7f",
    "\u{200b}EVIL\u{2066}",
];

impl HostileProcesses {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let start = |name: &str| {
            let path = dir.path().join(name);
            std::fs::copy("/bin/sleep", &path).unwrap();
            Command::new(path).arg("1000").spawn().unwrap()
        };
        Self(HOSTILE_NAMES.map(start).into(), dir)
    }
}

impl Drop for HostileProcesses {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Asserts that the output consists of safe text and of the sequences the program itself uses.
fn assert_only_own_sequences(raw: &[u8]) {
    let text = std::str::from_utf8(raw).expect("valid UTF-8");
    let own = regex_lite::Regex::new(
        r"\x1b\[\?(1049|25|1000|1006|2026)[hl]|\x1b\[[0-9;]*[mHJBCD]|\x1b\]52;c;[A-Za-z0-9+/=]*(\x1b\\|\x07)",
    )
    .unwrap();
    let rest = own.replace_all(text, "");
    let at = rest.char_indices().find(|(_, c)| !is_safe(*c));
    if let Some((at, c)) = at {
        let around: String = rest[..at].chars().rev().take(30).collect::<Vec<_>>().into_iter().rev().collect();
        panic!("{c:?} after {around:?}");
    }
}

/// The texts sent to the clipboard.
fn clipboard_texts(raw: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(raw);
    text.split("\x1b]52;c;")
        .skip(1)
        .filter_map(|part| part.split(['\x1b', '\x07']).next())
        .map(|base64| String::from_utf8(decode_base64(base64)).unwrap())
        .collect()
}

fn decode_base64(base64: &str) -> Vec<u8> {
    let value =
        |c: u8| b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".iter().position(|x| *x == c);
    let mut out = Vec::new();
    for four in base64.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = four.iter().fold(0usize, |n, c| n << 6 | value(*c).unwrap()) << (6 * (4 - four.len()));
        out.extend((0..four.len() - 1).map(|i| (bits >> (16 - 8 * i)) as u8));
    }
    out
}

#[test]
fn hostile_process_names_are_sanitized() {
    if !Path::new("/bin/sleep").exists() {
        eprintln!("SKIPPED hostile_process_names_are_sanitized: no /bin/sleep");
        return;
    }
    let mut hostile = HostileProcesses::start();
    if hostile.0.iter_mut().any(|c| c.try_wait().unwrap().is_some()) {
        eprintln!("SKIPPED hostile_process_names_are_sanitized: a copy of sleep does not run under another name");
        return;
    }
    let mut t = Terminal::start(TerminalOptions { size: (170, 40), ..Default::default() });
    t.wait_for_text("q quit");
    t.send("3\\EVIL\r");
    t.wait_until("all of them", |s| s.contents().matches("EVIL").count() > HOSTILE_NAMES.len());
    t.send("y");
    t.wait_for_output("the clipboard", |seen| count_sequence(&seen.raw, "\x1b]52;c;") == 1);
    for form in FORMATS {
        let name = format!("all.{}", form.extension);
        t.send(format!("s\x15{name}\r"));
        t.wait_for_text(&format!("{name} ("));
    }
    for _ in HOSTILE_NAMES {
        t.send("\r");
        t.wait_for_text("Task ");
        t.send("\x1b");
        t.wait_until("the list", |s| s.contents().contains("WRITE/s"));
        t.send("j");
    }
    for view in ["1", "2", "4", "5"] {
        t.send(view);
        std::thread::sleep(TYPING_DELAY);
    }
    t.send("q");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
    t.assert_restored(1);
    assert_only_own_sequences(&t.raw());
    let copied = clipboard_texts(&t.raw());
    assert!(copied[0].matches("EVIL").count() >= HOSTILE_NAMES.len(), "{copied:?}");
    assert!(copied[0].chars().all(|c| c == '\n' || is_safe(c)), "{:?}", copied[0]);
    let own = regex_lite::Regex::new("\x1b\\[[0-9;]*m").unwrap();
    for form in FORMATS.iter().filter(|f| f.name != "png") {
        let file = t.home.path().join(format!("all.{}", form.extension));
        let text = std::fs::read_to_string(file).unwrap();
        assert!(text.contains("EVIL"), "{}: {text}", form.name);
        // Only our own sequences are left.
        let text = if form.name == "ansi" { own.replace_all(&text, "").into_owned() } else { text };
        assert!(text.chars().all(|c| c == '\n' || is_safe(c)), "{}: {text:?}", form.name);
    }
}

/// A thread panics with a hostile message while the program has the terminal.
#[test]
fn a_panic_in_any_thread_restores_the_terminal() {
    let me = std::env::current_exe().unwrap();
    let args = vec!["--ignored", "--exact", "panic_in_a_terminal", "--nocapture"];
    let mut t = Terminal::start(TerminalOptions { program: &me, args, ..Default::default() });
    assert_eq!(t.wait_for_exit().exit_code(), 101);
    t.wait_for_text("internal error");
    assert!(t.contents().contains("EVIL\\x1b[31m"), "{}", t.contents());
    t.assert_restored(1);
}

#[test]
#[ignore = "run by a_panic_in_any_thread_restores_the_terminal in a terminal of its own"]
fn panic_in_a_terminal() {
    let mut tty = iotop_plus::tui::terminal::Tty::enter(true).unwrap();
    iotop_plus::tui::terminal::install_panic_hook();
    tty.send(b"a frame").unwrap();
    let _ = std::thread::spawn(|| panic!("EVIL\x1b[31m")).join();
    unreachable!("the hook ends the program");
}
