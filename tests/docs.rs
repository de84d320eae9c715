//! The README, the book, the changelog and the man page agree with the program. Five pages of the book, and a table of a sixth, are
//! generated from it: `UPDATE_DOCS=1 cargo test --test docs` writes them.

use clap::CommandFactory;
use iotop_plus::cli::Cli;
use iotop_plus::tui::action_name::action_name;
use iotop_plus::tui::keymap::{BINDINGS, KeyContext};
use iotop_plus::tui::settings::{SETTING_DESCRIPTIONS, Settings};
use iotop_plus::tuning::knobs::KNOBS;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const README: &str = include_str!("../README.md");
const CHANGELOG: &str = include_str!("../CHANGELOG.md");
const CONFIG: &str = include_str!("../docs/reference/config.md");
const EXIT_CODES: &str = include_str!("../docs/reference/exit-codes.md");

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Markdown file a reader may start from: the ones at the top level, and the book.
fn documents() -> Vec<(PathBuf, String)> {
    let mut files: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].iter().map(|f| repository().join(f)).collect();
    let mut dirs = vec![repository().join("docs")];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                files.push(path);
            }
        }
    }
    files.sort();
    files.into_iter().map(|f| (f.clone(), std::fs::read_to_string(f).unwrap())).collect()
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
fn the_readme_fits_two_screens() {
    assert!(README.lines().count() <= 150, "{} lines", README.lines().count());
}

#[test]
fn every_link_between_documents_resolves() {
    let mut seen = 0;
    for (file, text) in documents() {
        for link in text.split("](").skip(1).filter_map(|l| l.split(')').next()) {
            if link.starts_with("http") || link.starts_with('#') {
                continue;
            }
            let target = file.parent().unwrap().join(link.split('#').next().unwrap());
            assert!(target.exists(), "{}: {link}", file.display());
            seen += 1;
        }
    }
    assert!(seen >= 30, "only {seen} links found");
    let svg = std::fs::read_to_string(repository().join("assets/screen.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
}

/// The words in backquotes in a line.
fn quoted_words(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The tests that the last cell of a row of promises names, after the file they are in; panics if one does not exist.
fn tests_of_promise(row: &str) -> Vec<&str> {
    let held_by = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
    let (mut file, mut tests) = (String::new(), Vec::new());
    for word in quoted_words(held_by).filter(|word| !word.starts_with("cargo ")) {
        if word.ends_with(".rs") {
            file = std::fs::read_to_string(repository().join(word)).unwrap_or_else(|err| panic!("{word}: {err}"));
        } else {
            let at = file.find(&format!("fn {word}()"));
            let is_test = at.is_some_and(|at| file[..at].lines().rev().take(5).any(|l| l.trim() == "#[test]"));
            assert!(is_test, "no such test: {word}");
            tests.push(word);
        }
    }
    assert!(!tests.is_empty(), "no test holds: {row}");
    tests
}

#[test]
fn every_promise_names_tests_that_exist() {
    let is_promise = |line: &&str| line.starts_with("| ") && !line.starts_with("| promise ");
    let page = std::fs::read_to_string(repository().join("docs/promises.md")).unwrap();
    let all: Vec<&str> = page.lines().filter(is_promise).flat_map(tests_of_promise).collect();
    assert!(all.len() >= 100, "only {} tests found", all.len());
    let mut in_readme = README.lines().filter(is_promise).flat_map(tests_of_promise).peekable();
    assert!(in_readme.peek().is_some());
    for test in in_readme {
        assert!(all.contains(&test), "{test} is in the README only");
    }
}

#[test]
fn every_page_of_the_book_is_in_its_summary() {
    let summary = std::fs::read_to_string(repository().join("docs/SUMMARY.md")).unwrap();
    for (file, _) in documents() {
        if let Ok(page) = file.strip_prefix(repository().join("docs"))
            && page != Path::new("SUMMARY.md")
        {
            assert!(summary.contains(&format!("]({})", page.display())), "{}", page.display());
        }
    }
}

/// The subcommands a person sees, with their whole names, the program itself first.
fn visible_commands() -> Vec<(String, clap::Command)> {
    let (mut found, mut left) = (Vec::new(), vec![(String::from("iotop-plus"), Cli::command())]);
    while let Some((path, command)) = left.pop() {
        let below = command.get_subcommands().filter(|c| !c.is_hide_set());
        left.extend(
            below.map(|c| (format!("{path} {}", c.get_name()), c.clone())).collect::<Vec<_>>().into_iter().rev(),
        );
        found.push((path, command));
    }
    found
}

#[test]
fn every_option_is_in_the_man_page() {
    let man = man_page();
    for (path, command) in visible_commands() {
        for long in command.get_arguments().filter(|a| !a.is_hide_set()).filter_map(|a| a.get_long()) {
            assert!(man.contains(&format!("--{long}")), "{path} --{long}");
        }
    }
}

#[test]
fn commands_in_the_documents_parse() {
    use clap::Parser;
    let mut seen = 0;
    for (file, text) in documents() {
        let lines = code_blocks(&text, "sh").into_iter().flat_map(str::lines).map(str::trim);
        for line in lines.filter(|l| l.starts_with("iotop-plus ")) {
            let words = line.split(" #").next().unwrap().split_whitespace();
            match Cli::try_parse_from(words) {
                Err(err) if err.use_stderr() => panic!("{}: {line}: {err}", file.display()),
                _ => seen += 1,
            }
        }
    }
    assert!(seen >= 30, "only {seen} commands found");
}

/// Compares a page with what the program says; `UPDATE_DOCS=1` writes it.
fn assert_page(name: &str, wanted: &str) {
    let path = repository().join("docs/reference").join(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == wanted, "docs/reference/{name} is out of date: run UPDATE_DOCS=1 cargo test --test docs");
}

#[test]
fn the_options_page_is_the_programs_own_help() {
    let mut page = String::from("# Options\n\nWhat `--help` prints, for every command.\n");
    for (path, mut command) in visible_commands() {
        if command.get_name() == "help" {
            continue;
        }
        let help = command.clone().bin_name(&path).term_width(100).render_long_help().to_string();
        let help: Vec<&str> = help.lines().map(str::trim_end).collect();
        command.build();
        page.push_str(&format!("\n## {path}\n\n```text\n{}\n```\n", help.join("\n").trim()));
    }
    assert_page("options.md", &page);
}

#[test]
fn the_themes_page_lists_all_styles() {
    let mut page = String::from(include_str!("fixtures/docs/themes.md"));
    page.push_str("\n## Styles\n\n| key | for |\n|---|---|\n");
    for (name, what) in iotop_plus::tui::widgets::THEME_STYLES {
        page.push_str(&format!("| `{name}` | {what} |\n"));
    }
    page.push_str("\n## The theme `slate`\n\n```toml\n");
    page.push_str(include_str!("../assets/themes/slate.toml"));
    page.push_str("```\n");
    assert_page("themes.md", &page);
}

#[test]
fn the_table_of_job_file_options_is_the_programs_own() {
    let page = std::fs::read_to_string(repository().join("docs/reference/fio-jobs.md")).unwrap();
    let (before, rest) = page.split_once("## Options\n").unwrap();
    let after = rest.split_once("\n## ").unwrap().1;
    let table = iotop_plus::bench::fio::table::options_markdown();
    assert_page("fio-jobs.md", &format!("{before}## Options\n\n{table}\n## {after}"));
}

#[test]
fn the_columns_page_is_the_programs_own_list() {
    use iotop_plus::model::columns::figures::{DEVICE_FIGURES, LOG_FIGURES, MEMORY_FIGURES, TASK_FIGURES};
    use iotop_plus::model::columns::{device, process};
    use iotop_plus::model::control_groups::columns::{CONTROL_GROUP_COLUMNS, SOURCE as GROUP_SOURCE};
    use iotop_plus::model::file_io::columns::{FILE_COLUMNS, SOURCE as FILE_SOURCE};
    use iotop_plus::model::syncs::columns::{SLOW_SYNC_COLUMNS, SOURCE as SYNC_SOURCE, SYNC_COLUMNS};
    let mut page = String::from(
        "# Columns\n\nThe key `e`, or the right mouse button, shows the same in the program. `name` is the column's name \
         for `sort` in the config file.\n",
    );
    page.push_str("\n## Processes\n\n| column | name | meaning | read from | - |\n|---|---|---|---|---|\n");
    for column in process::COLUMNS {
        let (source, name) = (column.id.source(), column.value.name);
        let [from, missing] = [source.read_from, source.missing];
        page.push_str(&format!("| {} | `{name}` | {} | {from} | {missing} |\n", column.header, column.help));
    }
    let mut section = |title: &str, columns: Vec<(&str, &str, [&str; 2])>| {
        page.push_str(&format!("\n## {title}\n\n| column | meaning | read from | - |\n|---|---|---|---|\n"));
        for (header, help, [from, missing]) in columns {
            page.push_str(&format!("| {header} | {help} | {from} | {missing} |\n"));
        }
    };
    let devices = device::COLUMNS.iter().map(|c| (c, c.id.source()));
    section("Devices", devices.map(|(c, from)| (c.header, c.help, [from.read_from, from.missing])).collect());
    let [groups, syncs, files] = [&GROUP_SOURCE, &SYNC_SOURCE, &FILE_SOURCE].map(|from| [from.read_from, from.missing]);
    section("Control groups", CONTROL_GROUP_COLUMNS.iter().map(|c| (c.header, c.help, groups)).collect());
    section("Syncs", SYNC_COLUMNS.iter().map(|c| (c.header, c.help, syncs)).collect());
    section("Files and directories", FILE_COLUMNS.iter().map(|c| (c.header, c.help, files)).collect());
    section("Slow syncs", SLOW_SYNC_COLUMNS.iter().map(|c| (c.header, c.help, syncs)).collect());
    let figures = [
        ("Memory and Writeback", MEMORY_FIGURES),
        ("Page of a process", TASK_FIGURES),
        ("Page of a device", DEVICE_FIGURES),
        ("Kernel log", LOG_FIGURES),
    ];
    for (title, list) in figures {
        section(title, list.iter().map(|f| (f.header, f.help, [f.value.read_from, f.value.missing])).collect());
    }
    assert_page("columns.md", &page);
}

#[test]
fn the_keys_page_is_the_programs_own_table() {
    let mut page = String::from(
        "# Keys\n\nThe footer shows the keys that act where you are, `?` shows them all. A key of a more specific \
         context takes precedence over the same key of a more general one. The section `keys` of the config file gives an \
         action other keys, by its name; the keys of questions and of the help stay.\n",
    );
    let mut contexts: Vec<KeyContext> = Vec::new();
    for binding in BINDINGS.iter() {
        if !contexts.contains(&binding.context) {
            contexts.push(binding.context);
        }
        assert!(!binding.help.trim().is_empty(), "{}", binding.name);
    }
    for context in contexts {
        page.push_str(&format!("\n## {}\n\n| key | does | name |\n|---|---|---|\n", <&str>::from(context)));
        for b in BINDINGS.iter().filter(|b| b.context == context) {
            let key = b.name.replace('|', "\\|");
            let (name, help) = (action_name(b.action), b.help.replace('|', "\\|"));
            page.push_str(&format!("| `{key}` | {help} | `{name}` |\n"));
        }
    }
    assert_page("keys.md", &page);
}

#[test]
fn the_knobs_page_is_the_programs_own_list() {
    let mut page = String::from(
        "# Knobs\n\nA knob is one kernel setting. `iotop-plus tune list` shows its value and range on this machine. Sizes, \
         times and percentages may carry units; ratios are also shown in bytes of this machine, and a ratio may be given as \
         a size and the reverse.\n\n\
         - **All or none.** Everything is checked before anything is written; if one knob of several cannot be written the \
         others are reverted.\n\
         - **A lease.** `set` hands the change to a process of its own that reverts it after `--for` (120 s by default, 24 h \
         at most), whatever becomes of your terminal, unless you `keep` it. `set --keep` does without a lease. `renew` \
         restarts it.\n\
         - **An admin's value is never overwritten.** A value is restored only while it is still ours; otherwise the \
         conflict is reported. What the kernel changes along with it (the other half of a ratio/bytes pair, the queue depth \
         of a new scheduler) is restored too.\n\
         - **A journal** in `/run/iotop-plus` (in `/dev/shm/iotop-plus` where `/run` lies on a disk, which could hang) has \
         each step before it is done; where both lie on a disk nothing is changed. If the process is killed, `status` shows what \
         was left behind and `undo` restores it.\n\
         - **A hung device is left alone**: its knobs are refused while requests are in flight and none completes (exit code \
         3). Knobs of devices and mounts are read and written by a child process, which is left behind if the kernel does \
         not answer.\n\
         - `persist` writes files of its own in `sysctl.d`, `udev/rules.d` or `tmpfiles.d`, and says so if another file \
         wins. Order of files as in procps: for the same name `/etc`, `/run`, `/usr/local/lib`, `/usr/lib`; then by name; \
         `/etc/sysctl.conf` last.\n",
    );
    let mut title = "";
    for knob in KNOBS {
        if knob.group.title() != title {
            title = knob.group.title();
            page.push_str(&format!("\n## {title}\n\n"));
        }
        page.push_str(&format!(
            "- `{}`: {} Default: {}. Source: {}.\n",
            knob.name,
            knob.description,
            knob.default_display(),
            knob.source
        ));
    }
    assert_page("knobs.md", &page);
}

#[test]
fn the_documented_config_file_has_the_defaults() {
    let text = code_blocks(CONFIG, "toml")[0];
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
fn exit_codes_match_the_documentation() {
    let table = EXIT_CODES;
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
        for word in ["snapshot", "format", "no-mouse"] {
            assert!(text.contains(word), "{shell}: {word}");
        }
        // The others complete no values.
        assert!(!matches!(shell, "bash" | "zsh" | "fish") || text.contains("overview"), "{shell}");
        assert!(README.contains(shell), "{shell}");
    }
}
