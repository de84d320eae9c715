//! The source follows the architecture: imports run downward between areas, no files import each other in a
//! circle, public types have names of their own, files and functions are short.
//!
//! The rules read the source as tokens. Each is shown to fail on a small example that breaks it.

mod graph;
mod rules;
mod source;
mod wording;

use graph::{ImportGraph, summarize};
use rules::{MAX_FILE_LINES, check, is_upward, long_functions};
use source::{ItemPath, SourceFile};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// All files below `dir`, sorted.
fn read_sources(dir: &str) -> Vec<SourceFile> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    rust_files(&top.join(dir), &mut paths);
    paths.sort();
    let read = |path: &PathBuf| {
        let relative = path.strip_prefix(top).unwrap().to_str().unwrap();
        SourceFile::new(relative, &fs::read_to_string(path).unwrap())
    };
    paths.iter().map(read).collect()
}

/// The files of the program itself, without modules declared under `#[cfg(test)]`.
fn program_sources() -> Vec<SourceFile> {
    let files = read_sources("src");
    let mut test_modules: BTreeSet<ItemPath> = BTreeSet::new();
    for file in &files {
        let declared = SourceFile { code: file.all_tokens.clone(), ..SourceFile::new(&file.path, &file.text) };
        let in_program = file.child_modules();
        for name in declared.child_modules().into_iter().filter(|name| !in_program.contains(name)) {
            let parent = if file.path == "src/lib.rs" { Vec::new() } else { file.module() };
            test_modules.insert([parent, vec![name]].concat());
        }
    }
    let is_test = |file: &SourceFile| {
        let module = file.module();
        file.is_test() || (1..=module.len()).any(|n| test_modules.contains(&module[..n]))
    };
    files.into_iter().filter(|file| !is_test(file)).collect()
}

fn shared_names(files: &[SourceFile]) -> Vec<String> {
    let mut defined: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for file in files {
        for name in file.public_types() {
            defined.entry(name).or_default().push(&file.path);
        }
    }
    let shared = defined.into_iter().filter(|(_, paths)| paths.len() > 1);
    shared.map(|(name, paths)| format!("{name}: {}", paths.join(", "))).collect()
}

fn cycle_lines(files: &[SourceFile], graph: &ImportGraph) -> Vec<String> {
    let name = |i: &usize| files[*i].path.as_str();
    graph.cycles().iter().map(|cycle| cycle.iter().map(name).collect::<Vec<_>>().join(", ")).collect()
}

#[test]
fn every_file_follows_the_rules() {
    let files: Vec<SourceFile> = ["src", "tests"].into_iter().flat_map(read_sources).collect();
    assert!(files.len() > 50, "only {} files found", files.len());
    let mut problems: Vec<String> = files.iter().flat_map(|file| check(&file.path, &file.text)).collect();
    problems.sort();
    problems.dedup();
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn imports_have_no_cycles_and_run_down() {
    let files = program_sources();
    let graph = ImportGraph::new(&files);
    let areas = summarize(&files, &graph, is_upward);
    println!(
        "{:<12}{:>8}{:>8}{:>8}{:>9}{:>8}{:>10}",
        "area", "modules", "lines", "inside", "outside", "upward", "in cycles"
    );
    for (area, s) in &areas {
        println!(
            "{area:<12}{:>8}{:>8}{:>8}{:>9}{:>8}{:>10}",
            s.modules, s.lines, s.inside, s.outside, s.upward, s.in_cycles
        );
    }
    let upward: Vec<&String> = areas.iter().filter(|(_, s)| s.upward > 0).map(|(area, _)| area).collect();
    assert!(upward.is_empty(), "areas that import upward: {upward:?}");
    let lines = cycle_lines(&files, &graph);
    println!("{} cycles{}", lines.len(), lines.iter().map(|l| format!("\n  {l}")).collect::<String>());
    assert!(lines.is_empty(), "files import each other in a circle:\n{}", lines.join("\n"));
}

#[test]
fn public_types_have_unique_names() {
    let shared = shared_names(&program_sources());
    println!("{} shared names\n{}", shared.len(), shared.join("\n"));
    assert!(shared.is_empty(), "\n{}", shared.join("\n"));
}

#[test]
fn functions_are_short() {
    let files = ["src", "tests"].into_iter().flat_map(read_sources);
    let long: Vec<String> = files.flat_map(|file| long_functions(&file)).collect();
    println!("{} long functions\n{}", long.len(), long.join("\n"));
    assert!(long.is_empty(), "\n{}", long.join("\n"));
}

#[test]
fn each_rule_detects_a_violation() {
    let long = format!("//! Long.\n{}", "\n".repeat(MAX_FILE_LINES));
    for (path, text, expected) in [
        ("src/model/x.rs", "//! X.\nuse crate::collect::read;\n", "model may not import collect"),
        ("src/model/x.rs", "//! X.\nuse crate::root::Root;\n", "model may not import root"),
        ("src/collect/x.rs", "//! X.\nfn f() { crate::jobs::pool::go() }\n", "collect may not import jobs"),
        ("src/jobs/x.rs", "//! X.\nfn f() { Command::new(\"mount\").status() }\n", "a program is started outside"),
        ("src/jobs/x.rs", "//! X.\n#![allow(unsafe_code)]\n", "not in UNSAFE_FILES"),
        ("src/collect/x.rs", "//! X.\nuse crate::{sanitize::sanitize, tui::App};\n", "collect may not import tui"),
        ("src/jobs/x.rs", "//! X.\nuse super::super::tui::state;\n", "jobs may not import tui"),
        ("src/export/x.rs", "//! X.\nuse crate::model::{raw, disk}; use crate::cli;\n", "may not import cli"),
        ("src/tui/x.rs", "//! X.\nconst S: &str = \"nobody waits\";\n", "use the standard term"),
        ("src/tui/x.rs", "//! X.\npub(crate) struct Desk<T>(T);\n", "the type Desk needs a standard name"),
        ("src/other/x.rs", "//! X.\n", "in no layer"),
        ("src/tui/views/x.rs", "//! X.\nuse crate::tui::app::App;\n", "views/x.rs may not import tui::app::App"),
        ("src/tui/view.rs", "//! X.\nuse super::views::{devices, tune::TuneView};\n", "tui::views::tune::TuneView"),
        ("src/tui/widgets/x.rs", "//! X.\nuse crate::model::disk::DevId;\n", "a widget may not import model::disk"),
        ("src/tui/widgets/x.rs", "//! X.\nuse super::super::App;\n", "a widget may not import tui::App"),
        ("src/tui/x.rs", "//! X.\nlet f = Path::new(\"/proc/stat\");\n", "outside root.rs"),
        ("src/tui/x.rs", "//! X.\nfs::read_to_string(&format!(\"/sys/{x}\"));\n", "outside root.rs"),
        ("src/tui/x.rs", "//! X.\nopenat(CWD, b\"/dev/tty\");\n", "outside root.rs"),
        ("src/tui/x.rs", &long, "501 lines"),
        ("src/tui/x.rs", "use std::fmt;\n", "//!"),
        ("tests/x.rs", &long, "501 lines"),
    ] {
        let problems = check(path, text).join("\n");
        assert!(problems.contains(expected), "{text:?} should give {expected:?}, but gives {problems:?}");
    }
}

#[test]
fn allowed_code_passes() {
    for (path, text) in [
        ("src/tui/app/x.rs", "//! X.\nuse crate::tui::views::devices::DevicesView;\nuse crate::model::disk::DevId;\n"),
        ("src/tui/widgets/x.rs", "//! X.\nuse super::text::text;\nuse crate::model::column::Value;\n"),
        ("src/collect/x.rs", "//! X.\nReading::from_io(\"/proc/stat\", &err); // see crate::tui\n"),
        ("src/collect/x.rs", "//! X.\nconst S: &str = \"use crate::tui;\";\n"),
        ("src/collect/x.rs", "//! X.\n#[cfg(test)]\nmod tests {\n use crate::tui::App;\n}\n"),
        ("src/cli/x.rs", "//! X.\nuse crate::tui::App;\n"),
        ("src/collect/tests/x.rs", "//! X.\nuse crate::tui::App;\n"),
        ("src/model/a/b.rs", "//! X.\nuse super::super::reading::Reading;\n"),
    ] {
        assert_eq!(check(path, text), [""; 0], "{text:?}");
    }
}

fn example(files: &[(&str, &str)]) -> Vec<SourceFile> {
    files.iter().map(|(path, text)| SourceFile::new(path, text)).collect()
}

#[test]
fn a_cycle_is_found_and_a_reexport_is_none() {
    let parent = ("src/a/mod.rs", "pub mod b;\npub mod c;\npub use b::B;\n");
    let chain = [parent, ("src/a/b.rs", "pub struct B;\n"), ("src/a/c.rs", "use super::B;\n")];
    let files = example(&chain);
    let graph = ImportGraph::new(&files);
    assert!(graph.cycles().is_empty());
    assert_eq!(graph.edges[2].iter().copied().collect::<Vec<_>>(), [1], "B counts for the file that defines it");

    let siblings =
        [parent, ("src/a/b.rs", "use super::c::C;\npub struct B;\n"), ("src/a/c.rs", "pub struct C(super::B);\n")];
    assert_eq!(ImportGraph::new(&example(&siblings)).cycles(), [vec![1, 2]]);

    let with_parent = [
        ("src/a/mod.rs", "mod b;\npub struct A;\nfn f() { b::g() }\n"),
        ("src/a/b.rs", "use super::A;\npub fn g() {}\n"),
    ];
    assert_eq!(ImportGraph::new(&example(&with_parent)).cycles(), [vec![0, 1]]);
}

#[test]
fn upward_imports_are_counted() {
    let files = example(&[("src/model/x.rs", "use crate::tui::y::Y;\n"), ("src/tui/y.rs", "pub struct Y;\n")]);
    let areas = summarize(&files, &ImportGraph::new(&files), is_upward);
    assert_eq!((areas["model"].upward, areas["tui"].upward), (1, 0));
}

#[test]
fn shared_type_names_and_long_functions_are_found() {
    let files = example(&[("src/a.rs", "pub struct Row;\n"), ("src/b.rs", "pub(crate) enum Row {}\nstruct Column;\n")]);
    assert_eq!(shared_names(&files), ["Row: src/a.rs, src/b.rs"]);
    let long = format!("fn f() {{\n{}}}\n", "    g();\n".repeat(59));
    assert!(long_functions(&SourceFile::new("src/a.rs", &long))[0].contains("f has 61 lines"));
    assert!(long_functions(&SourceFile::new("src/a.rs", &long.replacen("g();\n    ", "", 1))).is_empty());
}
