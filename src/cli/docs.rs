//! `man` and `completions`, from the command definition, the key table and the settings' list: nothing is
//! said twice.

use super::exit::{EXIT_FAILED, EXIT_OK, EXIT_PRIVILEGE, EXIT_REFUSED, EXIT_USAGE};
use super::parser::Cli;
use crate::tui::draw::help_lines;
use crate::tui::settings;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::io::{self, Write};

/// What the program takes from its surroundings.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("NO_COLOR", "not empty: no colour, whatever the theme."),
    ("XDG_CONFIG_HOME, HOME", "where the config file is; paths that do not begin with / are passed over."),
    ("TZ", "the zone of the times shown."),
];

/// Files read or written, but for the kernel's own.
const FILES: &[(&str, &str)] = &[
    (
        "$XDG_CONFIG_HOME/iotop-plus/config.toml, else ~/.config/iotop-plus/config.toml",
        "Settings in TOML, written by the key W. All may be left out; one that is not known is an error that \
         names its line. Root does not read a file that belongs to another user.",
    ),
    ("/run/iotop-plus", "The journal of this boot's changes by tune, and the sockets of leases. Root's own."),
    (
        "/etc/sysctl.d/99-zz-iotop-plus.conf, /etc/udev/rules.d/99-zz-iotop-plus.rules, \
         /etc/tmpfiles.d/zz-iotop-plus.conf",
        "What tune persist wrote.",
    ),
];

/// Exit codes.
const EXIT_CODES: &[(u8, &str)] = &[
    (EXIT_OK, "All went well, or the reader of our output went away."),
    (EXIT_FAILED, "It did not work; the reason is on standard error."),
    (EXIT_USAGE, "The command line or the config file is wrong."),
    (EXIT_REFUSED, "Refused for safety."),
    (EXIT_PRIVILEGE, "A privilege is missing; for tune and experiment the sudo line is on standard error."),
];

/// Prints the man page, section 8: one page with every subcommand, key, setting and exit code.
pub fn print_man_page() -> anyhow::Result<u8> {
    io::stdout().write_all(&render_man_page()?)?;
    Ok(EXIT_OK)
}

/// Prints a shell's completions.
pub fn print_completions(shell: clap_complete::Shell) -> anyhow::Result<u8> {
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
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
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

/// Every subcommand that is not hidden, and theirs.
fn write_subcommands(out: &mut Vec<u8>, command: &Command) -> io::Result<()> {
    for sub in command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help") {
        let name = sub.get_bin_name().unwrap_or(sub.get_name()).to_owned();
        let mut roff = Roff::new();
        roff.control("SS", [name.as_str()]);
        roff.text(vec![roman(sub.get_about().map(|a| a.to_string()).unwrap_or_default())]);
        roff.to_writer(out)?;
        // The section's own heading would look like a section of the whole page.
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

/// Lines as they are.
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
}
