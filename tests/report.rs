//! Reports for tickets: over the captured machine, and with the real binary.

mod stage;
mod term;

use iotop_plus::export::report::graphs;
use iotop_plus::export::report::html::html;
use iotop_plus::export::report::markdown::markdown;
use iotop_plus::export::report::scrub::Scrub;
use iotop_plus::export::report::{Block, Extra, Seen, Setting, blocks, scrubbed};
use iotop_plus::text::is_safe;
use serde_json::Value;
use stage::app;
use std::process::{Command, Output};
use term::{BINARY, Terminal};

fn extra() -> Extra {
    let one =
        Setting { name: "vm.dirty_ratio".into(), now: "40 % (9.08 GiB here)".into(), default: "20".into() };
    Extra {
        settings: Some(vec![one]),
        unread: vec!["scheduler@vda: blocked".into()],
        results: vec![("Benchmark fsync-1".into(), "fsync on host\n```\nby ledger \u{1b}[2J".into())],
        seen: Seen::default(),
        gaps: vec!["room: no answer for 3 s".into()],
    }
}

fn document() -> Vec<Block> {
    let app = app((120, 40));
    blocks(&app.world, &app.findings, &extra())
}

fn run(args: &[&str]) -> Output {
    Command::new(BINARY).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_captured_machines_report_is_as_kept() {
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("report", markdown(&document()));
    });
}

#[test]
fn both_forms_hold_everything_and_nothing_a_terminal_obeys() {
    let document = document();
    for (form, text) in [("markdown", markdown(&document)), ("html", html(&document))] {
        for has in [
            "Findings",
            "backup-agent (6393) hangs",
            "vda",
            "Kernel warnings",
            "dirty, MiB",
            "Benchmark fsync-1",
            "9.08 GiB",
        ] {
            assert!(text.contains(has), "{form}: {has}");
        }
        let bad = text.chars().find(|c| *c != '\n' && !is_safe(*c));
        assert!(bad.is_none(), "{form}: {bad:?}");
    }
    let page = html(&document);
    assert!(!page.contains("http") && !page.contains("<script") && page.contains("<svg "), "one file");
    // The fence is longer than what stands in it.
    assert!(markdown(&document).contains("````text\nfsync on host\n```\n"));
}

/// Whatever is called a name somewhere: none is left anywhere, in either form.
#[test]
fn no_scrubbed_word_remains() {
    let mut scrub = Scrub::default();
    // Words that stand in findings, command lines, kernel messages, results, tables.
    for user in ["ledger", "ledgerd", "backup-agent", "percpu", "logical", "fio"] {
        scrub.user(user);
    }
    scrub.host("loop0.storage.example");
    scrub.source("/srv/lab");
    let words: Vec<String> = scrub.words().map(str::to_owned).collect();
    let before = markdown(&document()).to_lowercase();
    assert!(words.iter().filter(|w| before.contains(*w)).count() >= 7, "{words:?}");
    let clean = scrubbed(&document(), scrub);
    for text in [markdown(&clean), html(&clean)] {
        // Escapes between letters hide nothing.
        let text = text.replace('\\', "").to_lowercase();
        for word in &words {
            assert!(!text.contains(word.as_str()), "{word}");
        }
        assert!(text.contains("user-1"), "the replacements are told apart");
    }
}

#[test]
fn courses_are_of_what_moved() {
    let app = app((120, 40));
    let all = graphs::of(&app.world);
    assert!(all.iter().any(|g| g.name == "vda MB_wrtn/s" && g.most() > 100.0), "{all:?}");
    assert!(all.iter().all(|g| g.most() > 0.0 && g.points.len() <= 60));
    assert!(!all.iter().any(|g| g.name.starts_with("loop1 ")), "an idle device");
}

#[test]
fn a_report_is_one_new_private_file() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ticket.html");
    let args = ["report", "--for", "1", "--scrub", "-o", path.to_str().unwrap()];
    let out = run(&args);
    assert!(out.status.success() && out.stdout.is_empty() && out.stderr.is_empty(), "{out:?}");
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(written.starts_with("<!DOCTYPE html>") && written.ends_with("</html>\n"));
    assert!(written.contains("<td>host-1</td>"), "{written}");
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    let again = run(&args);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("exists already"), "{again:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), written);
}

#[test]
fn ctrl_c_ends_the_look_and_the_report_is_made_of_it() {
    let mut t = Terminal::with(&["report", "--for", "10m"]);
    // A busy machine may pass over a second.
    let looked = |text: String| text.split("looking: ").nth(1)?.split(' ').next()?.parse::<u32>().ok();
    t.until("a look of two seconds", |s| looked(s.contents()).is_some_and(|secs| secs >= 2));
    t.shows(" of 600 s; Ctrl-C ends it");
    t.send("\x03");
    t.shows("| setting | now | kernel default |");
    assert_eq!(t.ended().exit_code(), 0);
    assert!(text(&t.raw()).contains("# iotop-plus report"));
}

#[test]
fn a_result_that_is_not_kept_is_named_before_the_look() {
    let out = run(&["report", "--for", "1h", "--bench", "no-such-result"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).contains("--bench no-such-result: "), "{out:?}");
}

#[test]
fn a_recording_has_a_report_too() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/recordings/v1-captured.iotop");
    let out = run(&["replay", file, "--format", "report"]);
    let report = text(&out.stdout);
    assert!(report.contains("# iotop-plus report") && report.contains("Not in a recording."), "{report}");
    // What it says agrees with the recording's own JSON.
    let json: Value = serde_json::from_slice(&run(&["replay", file, "--format", "json"]).stdout).unwrap();
    assert!(report.contains(json["kernel"].as_str().unwrap()));
}
