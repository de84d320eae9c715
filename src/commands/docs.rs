//! `man` and `completions`, from the command definition.

use super::FINE;
use crate::cli::Cli;
use clap::CommandFactory;
use std::io::Write;

/// Prints the man page, section 8: the program's, then each subcommand's.
pub fn man() -> anyhow::Result<u8> {
    let mut out = Vec::new();
    let command = Cli::command();
    clap_mangen::Man::new(command).section("8").render(&mut out)?;
    std::io::stdout().write_all(&out)?;
    Ok(FINE)
}

/// Prints a shell's completions.
pub fn completions(shell: clap_complete::Shell) -> anyhow::Result<u8> {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "iotop-plus", &mut out);
    std::io::stdout().write_all(&out)?;
    Ok(FINE)
}
