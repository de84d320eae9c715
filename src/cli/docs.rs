//! The subcommands `man` and `completions`, generated from the command definition, the key table and the list of
//! settings.

use super::exit::{EXIT_FAILED, EXIT_OK, EXIT_PRIVILEGE, EXIT_REFUSED, EXIT_USAGE};
use super::parser::Cli;
use crate::tui::app::help::help_lines;
use crate::tui::settings;
use anyhow::Context;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::io::{self, Write};
use std::path::Path;

const ENVIRONMENT: &[(&str, &str)] = &[
    ("NO_COLOR", "if not empty, disables colours in all themes."),
    (
        "COLORTERM, TERM",
        "how many colours the terminal has, and whether it is the Linux console, whose fonts have no braille.",
    ),
    ("XDG_CONFIG_HOME, HOME", "where the config file is; relative paths are ignored."),
    ("TZ", "the time zone of displayed times."),
];

/// Files read or written, except those of the kernel.
const FILES: &[(&str, &str)] = &[
    (
        "$XDG_CONFIG_HOME/iotop-plus/config.toml, else ~/.config/iotop-plus/config.toml",
        "Settings in TOML, written by the program when asked to, beside a directory themes with themes of your own. All are optional; an unknown one is an error that names its \
         line. Root does not read a file that belongs to another user.",
    ),
    (
        "/run/iotop-plus, else /dev/shm/iotop-plus",
        "The journal of changes made by tune since boot, and the sockets of leases; private to root. It is in /dev/shm \
         where /run lies on a disk.",
    ),
    (
        "/etc/sysctl.d/99-zz-iotop-plus.conf, /etc/udev/rules.d/99-zz-iotop-plus.rules, \
         /etc/tmpfiles.d/zz-iotop-plus.conf",
        "Written by tune persist.",
    ),
];

const EXIT_CODES: &[(u8, &str)] = &[
    (EXIT_OK, "Success, or the reader of standard output went away."),
    (EXIT_FAILED, "Failure; the reason is on standard error."),
    (EXIT_USAGE, "The command line or the config file is wrong."),
    (EXIT_REFUSED, "Refused for safety."),
    (EXIT_PRIVILEGE, "A privilege is missing; for tune and experiment the sudo line is on standard error."),
];

pub(super) fn print_man_page() -> anyhow::Result<u8> {
    io::stdout().write_all(&render_man_page()?)?;
    Ok(EXIT_OK)
}

/// Writes the main page and one page per visible subcommand, `iotop-plus-tune-set.8` and so on.
pub(super) fn write_man_pages(dir: &Path) -> anyhow::Result<u8> {
    for (name, page) in render_all_pages()? {
        let path = dir.join(name);
        std::fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(EXIT_OK)
}

/// The file names of all pages and their content.
fn render_all_pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut pages = vec![("iotop-plus.8".to_owned(), render_man_page()?)];
    let mut root = Cli::command();
    root.build();
    let mut pending: Vec<Command> = visible_subcommands(&root).cloned().collect();
    while let Some(command) = pending.pop() {
        pending.extend(visible_subcommands(&command).cloned());
        let title = command.get_bin_name().unwrap_or(command.get_name()).replace(' ', "-");
        pages.push((format!("{title}.8"), render_subcommand_page(&command, &title)?));
    }
    Ok(pages)
}

fn render_subcommand_page(command: &Command, title: &str) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let man = Man::new(command.clone().display_name(title)).title(title).section("8").manual("System Administration");
    render_standard_sections(&man, &mut out)?;
    let subcommands: Vec<_> = visible_subcommands(command)
        .map(|sub| (format!("{title}-{}(8)", sub.get_name()), sub.get_about().map(ToString::to_string)))
        .collect();
    if !subcommands.is_empty() {
        write_heading(&mut out, "COMMANDS")?;
        let entries = subcommands.iter().map(|(name, about)| (name.as_str(), about.as_deref().unwrap_or_default()));
        write_definition_list(&mut out, entries)?;
    }
    if let Some(help) = command.get_after_help().map(ToString::to_string) {
        write_heading(&mut out, "NOTES")?;
        write_verbatim(&mut out, help.lines())?;
    }
    write_heading(&mut out, "SEE ALSO")?;
    Roff::new().text(vec![roman("iotop-plus(8)")]).to_writer(&mut out)?;
    Ok(out)
}

fn render_standard_sections(man: &Man, out: &mut Vec<u8>) -> io::Result<()> {
    man.render_title(out)?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    man.render_description_section(out)?;
    man.render_options_section(out)
}

fn visible_subcommands(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
}

pub(super) fn print_completions(shell: clap_complete::Shell) -> anyhow::Result<u8> {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "iotop-plus", &mut out);
    io::stdout().write_all(&out)?;
    Ok(EXIT_OK)
}

fn render_man_page() -> io::Result<Vec<u8>> {
    let mut command = Cli::command();
    command.build();
    let mut out = Vec::new();
    let man = Man::new(command.clone()).section("8").manual("System Administration");
    render_standard_sections(&man, &mut out)?;
    write_heading(&mut out, "COMMANDS")?;
    write_subcommands(&mut out, &command)?;
    write_keys(&mut out)?;
    write_heading(&mut out, "SETTINGS")?;
    write_definition_list(&mut out, settings::SETTING_DESCRIPTIONS.iter().map(|(name, help)| (*name, *help)))?;
    write_heading(&mut out, "FILES")?;
    write_definition_list(&mut out, FILES.iter().copied())?;
    write_heading(&mut out, "ENVIRONMENT")?;
    write_definition_list(&mut out, ENVIRONMENT.iter().copied())?;
    write_heading(&mut out, "EXIT STATUS")?;
    let exits: Vec<_> = EXIT_CODES.iter().map(|(code, help)| (code.to_string(), *help)).collect();
    write_definition_list(&mut out, exits.iter().map(|(code, help)| (code.as_str(), *help)))?;
    write_heading(&mut out, "EXAMPLES")?;
    let after = command.get_after_help().map(|help| help.to_string()).unwrap_or_default();
    let examples = after.lines().skip_while(|l| *l != "Examples:").skip(1).take_while(|l| !l.is_empty());
    write_verbatim(&mut out, examples)?;
    write_heading(&mut out, "SEE ALSO")?;
    Roff::new()
        .text(vec![roman("iotop(8), iostat(1), vmstat(8), pidstat(1), dmesg(1), ionice(1), proc(5)")])
        .to_writer(&mut out)?;
    Ok(out)
}

fn write_subcommands(out: &mut Vec<u8>, command: &Command) -> io::Result<()> {
    for sub in visible_subcommands(command) {
        let name = sub.get_bin_name().unwrap_or(sub.get_name()).to_owned();
        let mut roff = Roff::new();
        roff.control("SS", [name.as_str()]);
        roff.text(vec![roman(sub.get_about().map(|a| a.to_string()).unwrap_or_default())]);
        roff.to_writer(out)?;
        // Its heading would start a new section of the page.
        let mut options = Vec::new();
        Man::new(sub.clone()).render_options_section(&mut options)?;
        let options = String::from_utf8_lossy(&options).replace(".SH OPTIONS\n", "");
        out.write_all(options.as_bytes())?;
        if let Some(help) = sub.get_after_help().map(|help| help.to_string()) {
            write_verbatim(out, help.lines())?;
        }
        write_subcommands(out, sub)?;
    }
    Ok(())
}

fn write_keys(out: &mut Vec<u8>) -> io::Result<()> {
    write_heading(out, "KEYS")?;
    let text = "These are the keys without a section keys in the config file, which gives actions other keys. The help of \
                the program (help in its footer) lists those in force.";
    Roff::new().text(vec![roman(text)]).to_writer(out)?;
    for (names, help) in help_lines() {
        let mut roff = Roff::new();
        if names.is_empty() {
            roff.control("SS", [help.as_str()]);
        } else {
            roff.control("TP", ["12"]);
            roff.text(vec![bold(names)]).text(vec![roman(help)]);
        }
        roff.to_writer(out)?;
    }
    Ok(())
}

fn write_heading(out: &mut Vec<u8>, title: &str) -> io::Result<()> {
    Roff::new().control("SH", [title]).to_writer(out)
}

fn write_definition_list<'a>(out: &mut Vec<u8>, entries: impl Iterator<Item = (&'a str, &'a str)>) -> io::Result<()> {
    let mut roff = Roff::new();
    for (name, help) in entries {
        roff.control("TP", []).text(vec![bold(name)]).text(vec![roman(help)]);
    }
    roff.to_writer(out)
}

fn write_verbatim<'a>(out: &mut Vec<u8>, lines: impl Iterator<Item = &'a str>) -> io::Result<()> {
    let mut roff = Roff::new();
    roff.control("PP", []).control("nf", []);
    for line in lines {
        roff.text(vec![roman(line)]);
    }
    roff.control("fi", []).to_writer(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_man_page_has_every_subcommand_key_and_setting() {
        let page = String::from_utf8(render_man_page().unwrap()).unwrap();
        // roff writes a hyphen as \-.
        let page = page.replace("\\-", "-");
        for sub in Cli::command().get_subcommands().filter(|c| !c.is_hide_set()) {
            assert!(page.contains(&format!(".SS \"iotop-plus {}\"", sub.get_name())), "{}", sub.get_name());
        }
        for (_, help) in help_lines() {
            let first = help.split(['\'', '`', '\\']).next().unwrap().to_owned();
            assert!(page.contains(&first), "{help}");
        }
        assert!(settings::SETTING_DESCRIPTIONS.iter().all(|(name, _)| page.contains(name)));
        assert!(!page.contains("worker"), "what is hidden stays hidden");
        assert_eq!(page.matches(".SH OPTIONS").count(), 1);
    }

    #[test]
    fn there_is_a_page_for_each_visible_subcommand() {
        let pages = render_all_pages().unwrap();
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        for name in ["iotop-plus.8", "iotop-plus-bench-run.8", "iotop-plus-tune-set.8", "iotop-plus-man.8"] {
            assert!(names.contains(&name), "{name}: {names:?}");
        }
        assert!(!names.contains(&"iotop-plus-worker.8"), "hidden subcommands have no page");
        let page = &pages.iter().find(|(name, _)| name == "iotop-plus-tune.8").unwrap().1;
        assert!(String::from_utf8_lossy(page).replace("\\-", "-").contains("iotop-plus-tune-set(8)"));
    }
}
