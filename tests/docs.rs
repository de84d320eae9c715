//! What the README, the changelog and the man page say, held against the program.

use clap::CommandFactory;
use iotop_plus::cli::Cli;
use iotop_plus::tui::action::ViewId;
use iotop_plus::tui::keymap::{BINDINGS, KeyContext, key_name};
use iotop_plus::tui::settings::{SETTING_DESCRIPTIONS, Settings};
use std::process::{Command, Stdio};

const README: &str = include_str!("../README.md");
const CHANGELOG: &str = include_str!("../CHANGELOG.md");

/// The README from a heading to the next of its rank.
fn readme_section(title: &str) -> &'static str {
    let from = README.find(&format!("\n## {title}\n")).unwrap_or_else(|| panic!("no section {title}"));
    let rest = &README[from + 4..];
    &rest[..rest.find("\n## ").unwrap_or(rest.len())]
}

/// The blocks of one language in a text.
fn code_blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let open = format!("```{language}\n");
    text.split(open.as_str()).skip(1).filter_map(|b| b.split("```").next()).collect()
}

fn run_program(args: &[&str]) -> std::process::Output {
    let program = env!("CARGO_BIN_EXE_iotop-plus");
    Command::new(program).args(args).stdin(Stdio::null()).output().unwrap()
}

fn man_page() -> String {
    String::from_utf8(run_program(&["man"]).stdout).unwrap().replace("\\-", "-")
}

#[test]
fn the_readme_opens_with_a_screenshot_and_both_commands() {
    let first: Vec<&str> = README.lines().take(24).collect();
    let first = first.join("\n");
    assert!(first.contains("](assets/screen.svg)"));
    let commands: Vec<&str> =
        code_blocks(&first, "sh")[0].lines().filter_map(|l| l.split('#').next()).map(str::trim).collect();
    assert_eq!(commands, ["cargo run --release", "cargo test"]);
}

#[test]
fn every_readme_file_link_resolves() {
    let base = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let links = README.split("](").skip(1).filter_map(|l| l.split(')').next());
    let files: Vec<_> = links.filter(|l| !l.starts_with("http") && !l.starts_with('#')).collect();
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        assert!(base.join(file).exists(), "{file}");
    }
    let svg = std::fs::read_to_string(base.join("assets/screen.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
}

#[test]
fn every_option_is_in_readme_and_man_page() {
    let man = man_page();
    let mut commands = vec![(String::from("iotop-plus"), Cli::command())];
    while let Some((path, command)) = commands.pop() {
        let below = command.get_subcommands().filter(|c| !c.is_hide_set());
        commands.extend(below.map(|c| (format!("{path} {}", c.get_name()), c.clone())));
        for long in command.get_arguments().filter(|a| !a.is_hide_set()).filter_map(|a| a.get_long()) {
            let (option, place) = (format!("--{long}"), command.get_name());
            assert!(man.contains(&option), "man page: {option} of {place}");
            let known = matches!(long, "help" | "version") || README.contains(&option);
            assert!(known, "README: {option} of {place}");
        }
        assert!(README.contains(&path), "README: {path}");
    }
}

#[test]
fn readme_commands_parse() {
    use clap::Parser;
    let lines = README.lines().map(str::trim).filter(|l| l.starts_with("iotop-plus "));
    let mut seen = 0;
    for line in lines {
        let words = line.split('#').next().unwrap().split_whitespace();
        Cli::try_parse_from(words).unwrap_or_else(|err| panic!("{line}: {err}"));
        seen += 1;
    }
    assert!(seen >= 4, "only {seen} commands found");
}

#[test]
fn the_readme_config_file_matches_the_defaults() {
    let text = code_blocks(readme_section("Config file"), "toml")[0];
    let shown = Settings::parse(text).unwrap();
    let mut default = Settings::default();
    default.kernel.exclude = Some(iotop_plus::model::kernel_log::DEFAULT_EXCLUDE.to_owned());
    assert_eq!(shown, default);
    for (name, _) in SETTING_DESCRIPTIONS {
        let key = name.rsplit('.').next().unwrap();
        let there = |l: &str| l.trim_start_matches("# ").starts_with(&format!("{key} = "));
        assert!(text.lines().any(there), "{name}");
    }
}

#[test]
fn the_readme_key_table_matches_the_bindings() {
    let table = readme_section("Keys");
    let mut cells: Vec<&str> = table
        .lines()
        .filter(|l| l.starts_with("| `"))
        .filter_map(|l| l.split('|').nth(1))
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    let views: Vec<String> = (1..=ViewId::ALL.len()).map(|n| n.to_string()).collect();
    cells.extend(views.iter().map(String::as_str));
    for cell in &cells {
        assert!(BINDINGS.iter().any(|b| key_name(b) == *cell), "no key {cell}");
    }
    for b in BINDINGS {
        assert!(!b.help.trim().is_empty(), "{}", key_name(b));
        let general = !matches!(b.context, KeyContext::Dialog | KeyContext::Help | KeyContext::Scroll);
        // One key of an action is enough, and those of a detail stand in the text.
        let mut same = BINDINGS.iter().filter(|o| o.action == b.action).map(key_name);
        let told = same.any(|n| cells.contains(&&*n) || README.contains(&format!("`{n}`")));
        assert!(!general || told, "README: {} {}", key_name(b), b.help);
    }
}

#[test]
fn exit_codes_match_the_readme() {
    let table = readme_section("Exit codes");
    for code in 0..=4 {
        assert!(table.contains(&format!("\n| {code} | ")), "{code}");
    }
    assert_eq!(run_program(&["completions", "bash"]).status.code(), Some(0));
    assert_eq!(run_program(&["--bogus"]).status.code(), Some(2));
    // Standard output is a pipe here, no terminal.
    let out = run_program(&["--config", "none"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&out.stderr).contains("iotop-plus -b"));
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("c.toml");
    std::fs::write(&config, "mouse = true\nmouze = true\n").unwrap();
    let out = run_program(&["--config", config.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("line 2"));
}

#[test]
fn the_changelog_has_an_entry_for_this_version() {
    let heading = format!("## [{}]", env!("CARGO_PKG_VERSION"));
    assert!(CHANGELOG.lines().any(|l| l.starts_with(&heading)), "{heading}");
}

#[test]
fn completions_include_subcommands_options_and_values() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let out = run_program(&["completions", shell]);
        let text = String::from_utf8(out.stdout).unwrap();
        for word in ["snapshot", "format", "no-mouse", "high-contrast"] {
            assert!(text.contains(word), "{shell}: {word}");
        }
        assert!(README.contains(shell), "{shell}");
    }
}
