//! The plan of the house, held: who may import whom, where kernel paths stand, how long a file may be.
//!
//! Reads the source as text. Each rule is a function of one file, shown to fail on a file that breaks it.

use regex_lite::Regex;
use std::path::{Path, PathBuf};

/// Floors from the top down. A room may import its own floor's room only if it is itself, and whatever is
/// below.
const LAYERS: &[&[&str]] = &[
    &["main", "lib"],
    &["cli"],
    &["tui"],
    &["export"],
    &["doctor"],
    &["jobs"],
    &["recording"],
    &["experiment"],
    &["collect"],
    &["bpf"],
    &["bench"],
    &["tuning"],
    &["model"],
    &["root", "units", "sanitize", "allocator"],
];

/// Rooms that may name less than what lies below them.
const RESTRICTED_IMPORTS: &[(&str, &[&str])] = &[("model", &["units", "sanitize"]), ("root", &[]), ("sanitize", &[])];

/// Lines a file may have.
const MAX_LINES: usize = 500;

/// One source file.
struct SourceFile<'a> {
    /// Below the crate: `src/tui/run.rs`.
    path: &'a str,
    /// As it is.
    text: &'a str,
}

impl SourceFile<'_> {
    /// The modules it is: `tui`, `run`.
    fn module(&self) -> Vec<String> {
        let rel = self.path.trim_start_matches("src/").trim_end_matches(".rs");
        let mut parts: Vec<String> = rel.split('/').map(str::to_owned).collect();
        if parts.last().is_some_and(|last| last == "mod") {
            parts.pop();
        }
        parts
    }

    fn area(&self) -> String {
        self.module()[0].clone()
    }

    /// Tests may reach anywhere.
    fn is_test(&self) -> bool {
        self.module().iter().any(|m| m == "tests" || m.ends_with("_tests")) || !self.path.starts_with("src/")
    }

    /// Without comments and without the tests at its end.
    fn code(&self) -> String {
        let body = self.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let lines = body.lines().map(|line| {
            let line = line.trim_start();
            // A `//` within a string is followed by no blank in this house.
            if line.starts_with("//") { "" } else { line.split(" // ").next().unwrap_or_default() }
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Every path into the crate that it names, from the crate's root: `tui::panes::PaneId`.
    fn imports(&self) -> Vec<String> {
        let code = self.code();
        let mut out = Vec::new();
        let start = Regex::new(r"\b(crate|iotop_plus|super(?:::super)*)::").unwrap();
        for found in start.captures_iter(&code) {
            let base = match &found[1] {
                "crate" | "iotop_plus" => Vec::new(),
                supers => {
                    let mut module = self.module();
                    module.truncate(module.len().saturating_sub(supers.matches("super").count()));
                    module
                }
            };
            let rest = &code[found.get(0).unwrap().end()..];
            out.extend(expand_use_tree(rest).into_iter().map(|tail| {
                base.iter().cloned().chain(tail.split("::").map(str::to_owned)).collect::<Vec<_>>().join("::")
            }));
        }
        out
    }
}

/// `a::{b, c::d}` as `a::b` and `a::c::d`; stops where the path ends.
fn expand_use_tree(text: &str) -> Vec<String> {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(text.len());
    let head = text[..end].trim_end_matches(':');
    if !text[end..].starts_with('{') {
        return vec![head.to_owned()];
    }
    let (mut depth, mut from, mut out) = (0, end + 1, Vec::new());
    let prefix = if head.is_empty() { String::new() } else { format!("{head}::") };
    for (at, c) in text[end..].char_indices().map(|(i, c)| (end + i, c)) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if (c == ',' && depth == 1) || depth == 0 {
            let part = text[from..at].trim();
            if !part.is_empty() {
                out.extend(expand_use_tree(part).into_iter().map(|tail| format!("{prefix}{tail}")));
            }
            from = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    out
}

fn layer_of(room: &str) -> Option<usize> {
    LAYERS.iter().position(|f| f.contains(&room))
}

/// Imports run downwards.
fn imports_run_downwards(file: &SourceFile) -> Vec<String> {
    let room = file.area();
    let Some(own) = layer_of(&room) else {
        return vec![format!("the room {room} is on no floor: add it to the plan")];
    };
    let allowed = |to: &str| {
        let below = layer_of(to).is_some_and(|f| f > own);
        let listed = RESTRICTED_IMPORTS.iter().find(|(r, _)| *r == room).is_none_or(|(_, only)| only.contains(&to));
        to == room || (below && listed) || room == "lib" || room == "main"
    };
    let rooms = file.imports().into_iter().map(|n| n.split("::").next().unwrap_or_default().to_owned());
    // Macros of ours and the crate's own name are no rooms.
    let rooms = rooms.filter(|r| layer_of(r).is_some());
    rooms.filter(|to| !allowed(to)).map(|to| format!("{room} may not name {to}")).collect()
}

/// A pane shows what it is given: it collects, tunes and starts nothing.
fn panes_only_draw(file: &SourceFile) -> Vec<String> {
    if !file.path.starts_with("src/tui/panes/") {
        return Vec::new();
    }
    let starts = ["collect", "tuning", "recording", "jobs::pool", "jobs::child"];
    let bad = |name: &String| starts.iter().any(|s| name == s || name.starts_with(&format!("{s}::")));
    file.imports().into_iter().filter(bad).map(|name| format!("a pane may not name {name}")).collect()
}

/// A widget knows no domain type.
fn widgets_use_no_domain_types(file: &SourceFile) -> Vec<String> {
    if !file.path.starts_with("src/tui/widgets/") {
        return Vec::new();
    }
    let fine = ["tui::widgets", "model::column", "sanitize", "units"];
    let bad = |name: &String| !fine.iter().any(|s| name == s || name.starts_with(&format!("{s}::")));
    file.imports().into_iter().filter(bad).map(|name| format!("a widget may not name {name}")).collect()
}

/// Only `root.rs` says where the kernel's directories are; messages may of course name them.
fn kernel_paths_only_in_root(file: &SourceFile) -> Vec<String> {
    if file.path == "src/root.rs" {
        return Vec::new();
    }
    let used = Regex::new(concat!(
        r#"(Path(?:Buf)?::(?:new|from)|\bopen(?:at)?|\bread(?:_to_string|_once|_dir|link)?|\bstat(?:fs|x)?|\bKept::new|"#,
        r#"\bWatched::new|\b(?:fs|File|OpenOptions)::\w+|Command::new|\.(?:join|push|arg))"#,
        r#"\(\s*(?:CWD,\s*)?&?\s*(?:format!\(\s*)?b?"/(?:proc|sys|dev|run|etc)\b"#
    ))
    .unwrap();
    let code = file.code();
    used.captures_iter(&code).map(|c| format!("{:?}: a path of the kernel's outside root.rs", &c[0])).collect()
}

fn file_is_short(file: &SourceFile) -> Vec<String> {
    let lines = file.text.lines().count();
    if lines > MAX_LINES { vec![format!("{lines} lines; {MAX_LINES} are the most")] } else { Vec::new() }
}

fn has_module_docs(file: &SourceFile) -> Vec<String> {
    if file.text.starts_with("//!") { Vec::new() } else { vec!["does not open with //!, why it exists".into()] }
}

type Rule = fn(&SourceFile) -> Vec<String>;

const RULES: &[Rule] = &[
    imports_run_downwards,
    panes_only_draw,
    widgets_use_no_domain_types,
    kernel_paths_only_in_root,
    file_is_short,
    has_module_docs,
];

/// Rules for tests, too.
const TEST_RULES: &[Rule] = &[file_is_short, has_module_docs];

fn check(path: &str, text: &str) -> Vec<String> {
    let file = SourceFile { path, text };
    let rules = if file.is_test() { TEST_RULES } else { RULES };
    rules.iter().flat_map(|rule| rule(&file)).map(|what| format!("{path}: {what}")).collect()
}

fn collect_sources(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect_sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

#[test]
fn the_source_follows_the_architecture() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    collect_sources(&top.join("src"), &mut files);
    collect_sources(&top.join("tests"), &mut files);
    assert!(files.len() > 50, "looked at {} files", files.len());
    let mut wrong: Vec<String> = files
        .iter()
        .flat_map(|path| {
            let rel = path.strip_prefix(top).unwrap().to_str().unwrap();
            check(rel, &std::fs::read_to_string(path).unwrap())
        })
        .collect();
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn each_rule_detects_a_violation() {
    let long = format!("//! Long.\n{}", "\n".repeat(MAX_LINES));
    for (path, text, has) in [
        ("src/model/x.rs", "//! X.\nuse crate::collect::read;\n", "model may not name collect"),
        ("src/model/x.rs", "//! X.\nuse crate::root::Root;\n", "model may not name root"),
        ("src/collect/x.rs", "//! X.\nfn f() { crate::jobs::pool::go() }\n", "collect may not name jobs"),
        ("src/collect/x.rs", "//! X.\nuse crate::{text::clean, tui::state::App};\n", "collect may not name tui"),
        ("src/jobs/x.rs", "//! X.\nuse super::super::tui::state;\n", "jobs may not name tui"),
        ("src/export/x.rs", "//! X.\nuse crate::model::{raw, disk}; use crate::cli;\n", "may not name cli"),
        ("src/cellar/x.rs", "//! X.\n", "on no floor"),
        ("src/tui/panes/x.rs", "//! X.\nuse crate::collect::clock;\n", "a pane may not name collect::clock"),
        ("src/tui/panes/x.rs", "//! X.\nuse crate::jobs::{job::Job, pool::Pool};\n", "jobs::pool::Pool"),
        ("src/tui/widgets/x.rs", "//! X.\nuse crate::model::disk::DevId;\n", "a widget may not name model::disk"),
        ("src/tui/widgets/x.rs", "//! X.\nuse super::super::state::App;\n", "a widget may not name tui::state"),
        ("src/tui/x.rs", "//! X.\nlet f = Path::new(\"/proc/stat\");\n", "outside root.rs"),
        ("src/tui/x.rs", "//! X.\nfs::read_to_string(&format!(\"/sys/{x}\"));\n", "outside root.rs"),
        ("src/tui/x.rs", "//! X.\nopenat(CWD, b\"/dev/tty\");\n", "outside root.rs"),
        ("src/tui/x.rs", &long, "501 lines"),
        ("src/tui/x.rs", "use std::fmt;\n", "//!"),
        ("tests/x.rs", &long, "501 lines"),
    ] {
        let wrong = check(path, text).join("\n");
        assert!(wrong.contains(has), "{text:?} should break the rule {has:?}, but: {wrong:?}");
    }
}

#[test]
fn allowed_code_passes() {
    for (path, text) in [
        ("src/tui/panes/x.rs", "//! X.\nuse crate::jobs::job::Reply;\nuse crate::model::disk::DevId;\n"),
        ("src/tui/widgets/x.rs", "//! X.\nuse super::put::put;\nuse crate::model::column::Value;\n"),
        ("src/collect/x.rs", "//! X.\nSection::from_io(\"/proc/stat\", &err); // see /proc/stat\n"),
        ("src/collect/x.rs", "//! X.\n#[cfg(test)]\nmod tests {\n use crate::tui::state;\n}\n"),
        ("src/cli/x.rs", "//! X.\nuse crate::tui::state;\n"),
        ("src/collect/tests/x.rs", "//! X.\nuse crate::tui::state;\n"),
        ("src/model/a/b.rs", "//! X.\nuse super::super::section::Section;\n"),
    ] {
        assert_eq!(check(path, text), [""; 0], "{text:?}");
    }
}
