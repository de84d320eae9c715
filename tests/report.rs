//! Reports for tickets: over the captured machine, and with the real binary.

mod fixture;
mod pty_harness;

use fixture::app;
use iotop_plus::export::report::graphs;
use iotop_plus::export::report::html::to_html;
use iotop_plus::export::report::markdown::to_markdown;
use iotop_plus::export::report::redact::Redactor;
use iotop_plus::export::report::{
    ChangedSetting, ReportBlock, ReportExtras, WindowFindings, build_report, redact_report,
};
use iotop_plus::sanitize::is_safe;
use pty_harness::{BINARY, Terminal};
use serde_json::Value;
use std::process::{Command, Output};

fn report_extras() -> ReportExtras {
    let one =
        ChangedSetting { name: "vm.dirty_ratio".into(), current: "40 % (9.08 GiB here)".into(), default: "20".into() };
    ReportExtras {
        changed_settings: Some(vec![one]),
        unread_settings: vec!["scheduler@vda: blocked".into()],
        results: vec![("Benchmark fsync-1".into(), "fsync on host\n```\nby ledger \u{1b}[2J".into())],
        window_findings: WindowFindings::default(),
        missing_data: vec!["room: no answer for 3 s".into()],
        utc_offset_secs: 3600,
    }
}

fn report_blocks() -> Vec<ReportBlock> {
    let app = app((120, 40));
    build_report(&app.shared.system, &app.shared.findings, &report_extras())
}

fn run_binary(args: &[&str]) -> Output {
    Command::new(BINARY).args(args).output().unwrap()
}

fn to_string(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn report_of_the_captured_host_matches_the_snapshot() {
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("report", to_markdown(&report_blocks()));
    });
}

#[test]
fn both_formats_are_complete_and_have_no_control_characters() {
    let document = report_blocks();
    for (form, text) in [("markdown", to_markdown(&document)), ("html", to_html(&document))] {
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
    let page = to_html(&document);
    assert!(!page.contains("http") && !page.contains("<script") && page.contains("<svg "), "one file");
    let verdict = page.find("<div class=\"verdict critical\"><strong>1 critical, 2 warnings, 1 note</strong>");
    assert!(verdict.unwrap() < page.find("<table>").unwrap(), "what is wrong comes first");
    assert!(page.contains("<h3 class=\"warn\">! the machine is swapping"));
    // The fence is longer than what stands in it.
    assert!(to_markdown(&document).contains("````text\nfsync on host\n```\n"));
}

/// Whatever is called a name somewhere: none is left anywhere, in either form.
#[test]
fn no_redacted_name_remains() {
    let mut scrub = Redactor::default();
    // Words that stand in findings, command lines, kernel messages, results, tables.
    for user in ["ledger", "ledgerd", "backup-agent", "percpu", "logical", "fio"] {
        scrub.add_user(user);
    }
    scrub.add_host("loop0.storage.example");
    scrub.add_mount_source("/srv/lab");
    let words: Vec<String> = scrub.redacted_names().map(str::to_owned).collect();
    let before = to_markdown(&report_blocks()).to_lowercase();
    assert!(words.iter().filter(|w| before.contains(*w)).count() >= 7, "{words:?}");
    let clean = redact_report(&report_blocks(), scrub);
    for text in [to_markdown(&clean), to_html(&clean)] {
        // Escapes between letters hide nothing.
        let text = text.replace('\\', "").to_lowercase();
        for word in &words {
            assert!(!text.contains(word.as_str()), "{word}");
        }
        assert!(text.contains("user-1"), "the replacements are told apart");
    }
}

#[test]
fn graphs_show_only_active_quantities() {
    let app = app((120, 40));
    let all = graphs::build_graphs(&app.shared.system, &[]);
    assert!(all.iter().any(|g| g.name == "vda MB_wrtn/s" && g.max() > 100.0), "{all:?}");
    assert!(all.iter().all(|g| g.max() > 0.0 && g.points.len() <= 60));
    assert!(!all.iter().any(|g| g.name.starts_with("loop1 ")), "an idle device");
    // Devices of findings come first, however busy the others are.
    let zram = app.shared.snapshot().devices.ok().unwrap().iter().find(|d| &*d.name == "zram0").unwrap().id;
    let place = |first: &[_]| {
        let graphs = graphs::build_graphs(&app.shared.system, first);
        ["vda ", "zram0 "].map(|name| graphs.iter().position(|g| g.name.starts_with(name)).unwrap())
    };
    let ([vda, zram_place], [vda_after, zram_first]) = (place(&[]), place(&[zram]));
    assert!(vda < zram_place && zram_first < vda_after);
}

#[test]
fn report_is_written_to_a_new_private_file() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ticket.html");
    let args = ["report", "--for", "1", "--scrub", "-o", path.to_str().unwrap()];
    let out = run_binary(&args);
    assert!(out.status.success() && out.stdout.is_empty() && out.stderr.is_empty(), "{out:?}");
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(written.starts_with("<!DOCTYPE html>") && written.ends_with("</html>\n"));
    assert!(written.contains("<td>host-1</td>"), "{written}");
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    let again = run_binary(&args);
    assert_eq!(again.status.code(), Some(1));
    assert!(to_string(&again.stderr).contains("exists already"), "{again:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), written);
}

/// Root of a user namespace, as in a rootless container, meets directories of users that have no number there.
#[test]
fn root_of_a_user_namespace_writes_a_report() {
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65534;
    let name = "root_of_a_user_namespace_writes_a_report";
    if !rustix::process::geteuid().is_root() {
        return println!("skipped {name}: needs root");
    }
    let dir = tempfile::tempdir().unwrap();
    let (program, file) = (dir.path().join("iotop-plus"), dir.path().join("own/report.md"));
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::copy(BINARY, &program).unwrap();
    std::fs::create_dir(dir.path().join("own")).unwrap();
    chown(dir.path().join("own"), Some(NOBODY), Some(NOBODY)).unwrap();
    let as_nobody = |program: &str| {
        let mut command = Command::new(program);
        command.uid(NOBODY).gid(NOBODY).current_dir("/").env("HOME", dir.path().join("own"));
        command
    };
    if !as_nobody("unshare").args(["-r", "true"]).status().is_ok_and(|status| status.success()) {
        return println!("skipped {name}: no user namespaces for ordinary users");
    }
    let mut command = as_nobody("unshare");
    let out = command.arg("-r").arg(&program).args(["report", "--for", "1", "-o"]).arg(&file).output().unwrap();
    assert!(out.status.success() && file.exists(), "{out:?}");
}

#[test]
fn ctrl_c_ends_sampling_and_writes_the_report() {
    let mut t = Terminal::with_args(&["report", "--for", "10m"]);
    // A busy machine may pass over a second.
    let looked = |text: String| text.split("looking: ").nth(1)?.split(' ').next()?.parse::<u32>().ok();
    t.wait_until("a look of two seconds", |s| looked(s.contents()).is_some_and(|secs| secs >= 2));
    t.wait_for_text(" of 600 s; Ctrl-C ends it");
    t.send("\x03");
    t.wait_for_text("| setting | now | kernel default |");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
    assert!(to_string(&t.raw()).contains("# iotop-plus report"));
}

#[test]
fn unknown_result_is_reported_before_sampling() {
    let out = run_binary(&["report", "--for", "1h", "--bench", "no-such-result"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(to_string(&out.stderr).contains("--bench no-such-result: "), "{out:?}");
}

#[test]
fn a_recording_can_be_reported() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/recordings/v1-captured.iotop");
    let out = run_binary(&["replay", file, "--format", "report"]);
    let report = to_string(&out.stdout);
    assert!(report.contains("# iotop-plus report") && report.contains("Not in a recording."), "{report}");
    // What it says agrees with the recording's own JSON.
    let json: Value = serde_json::from_slice(&run_binary(&["replay", file, "--format", "json"]).stdout).unwrap();
    assert!(report.contains(json["kernel"].as_str().unwrap()));
}

#[test]
fn a_recording_can_be_reported_as_html_with_the_verdict_first() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/situations/fsync-victim.iotop");
    let [page, text] = ["report-html", "report"].map(|format| {
        let out = run_binary(&["replay", file, "--format", format]);
        assert!(out.status.success(), "{out:?}");
        to_string(&out.stdout)
    });
    let verdict = page.find("<div class=\"verdict ").expect("a verdict");
    assert!(page.starts_with("<!DOCTYPE html>") && verdict < page.find("<table").unwrap(), "{page}");
    // Both say the same, and the same number of findings.
    let title = text.lines().find_map(|line| line.strip_prefix("### ")).unwrap();
    let start = title.split(['<', '>', '&', '"', '\'', '\\']).next().unwrap();
    assert!(start.len() > 8 && page.contains(start), "{start:?} in\n{page}");
    assert_eq!(text.matches("\n### ").count(), page.matches("<h3 class=").count());
}
