//! `tune`: the knobs without a screen.

mod persist;
mod preset;
mod set;
pub(super) mod show;
mod status;
mod undo;

use super::args::parse_lease_secs;
use super::exit::{EXIT_FAILED, EXIT_OK, EXIT_PRIVILEGE, EXIT_REFUSED, EXIT_USAGE, print_error};
use crate::root::Root;
use crate::tuning::child_io::ChildKnobIo;
use crate::tuning::knob_id::KnobId;
use crate::tuning::plan::TuneError;
use crate::tuning::sudo::sudo_command_line;
use clap::Subcommand;

/// What `tune` does.
#[derive(Debug, Subcommand)]
pub enum TuneCommand {
    /// All knobs: value now, what is allowed, the kernel's default.
    List {
        /// Only knobs whose name contains this.
        part: Option<String>,
    },
    /// What knobs are, what they do and what they cost.
    Get {
        /// Such as vm.dirty_ratio, scheduler@vda, atime@/srv, nofile@1234.
        #[arg(required = true, value_name = "KNOB")]
        knobs: Vec<String>,
    },
    /// Change knobs, all or none; the old values come back by themselves unless kept.
    #[command(after_help = "Examples:\n  iotop-plus tune set vm.dirty_background_bytes=16M vm.dirty_bytes=256M\n  \
                            iotop-plus tune set --for 10m scheduler@vda=none\n  \
                            iotop-plus tune set --dry-run vm.dirty_ratio=2G")]
    Set {
        /// KNOB[@WHERE]=VALUE; units such as 16M, 50%, 30s are understood.
        #[arg(required = true, value_name = "KNOB=VALUE")]
        changes: Vec<String>,
        /// How long the change lasts unless it is kept, 1s to 24h.
        #[arg(long = "for", value_name = "TIME", default_value = "120s", value_parser = parse_lease_secs)]
        lease: u64,
        /// Let it stay until it is undone or the machine boots.
        #[arg(long, conflicts_with = "lease")]
        keep: bool,
        /// Only say what would be done.
        #[arg(long)]
        dry_run: bool,
    },
    /// Settings for a kind of work, applied as by set; without a name what there is and what it costs.
    #[command(after_help = "Examples:\n  iotop-plus tune preset\n  iotop-plus tune preset database --dry-run\n  \
                            iotop-plus tune preset latency --for 10m")]
    Preset {
        /// database, latency, ingest or defaults.
        name: Option<String>,
        /// How long the change lasts unless it is kept, 1s to 24h.
        #[arg(long = "for", value_name = "TIME", default_value = "120s", value_parser = parse_lease_secs)]
        lease: u64,
        /// Let it stay until it is undone or the machine boots.
        #[arg(long, conflicts_with = "lease")]
        keep: bool,
        /// Only say what would be done.
        #[arg(long, requires = "name")]
        dry_run: bool,
    },
    /// Let changes on lease stay; without a number all of them.
    Keep {
        /// The change's number, as `set` and `status` say it.
        id: Option<u64>,
    },
    /// Start leases anew; without a number all of them.
    Renew {
        /// The change's number, as `set` and `status` say it.
        id: Option<u64>,
        /// How long they last from now, 1s to 24h.
        #[arg(long = "for", value_name = "TIME", default_value = "120s", value_parser = parse_lease_secs)]
        lease: u64,
    },
    /// Take changes back; without a number all that are on lease or were left behind, else the newest kept one.
    Undo {
        /// The change's number.
        id: Option<u64>,
    },
    /// For each knob: now, at first change, kernel's default, at the next boot, and which file decides that.
    Status {
        /// Only these.
        #[arg(value_name = "KNOB")]
        knobs: Vec<String>,
    },
    /// Make values last over a boot: as they stand now, or KNOB=VALUE.
    Persist {
        /// Which.
        #[arg(required = true, value_name = "KNOB[=VALUE]")]
        knobs: Vec<String>,
    },
    /// Take back what persist wrote.
    Unpersist {
        /// Which.
        #[arg(required = true, value_name = "KNOB")]
        knobs: Vec<String>,
    },
}

/// Does it; the exit code says how it went.
pub fn run(root: &Root, action: TuneCommand) -> anyhow::Result<u8> {
    let done = match action {
        TuneCommand::List { part } => show::list(root, part.as_deref()),
        TuneCommand::Get { knobs } => show::get(root, &knobs),
        TuneCommand::Set { changes, lease, keep, dry_run } => {
            set::run(root, changes, (!keep).then_some(lease), dry_run)
        }
        TuneCommand::Preset { name: None, .. } => preset::list(root),
        TuneCommand::Preset { name: Some(name), lease, keep, dry_run } => {
            preset::run(root, &name, (!keep).then_some(lease), dry_run)
        }
        TuneCommand::Keep { id } => undo::keep(root, id),
        TuneCommand::Renew { id, lease } => undo::renew(root, id, lease),
        TuneCommand::Undo { id } => undo::undo(root, id),
        TuneCommand::Status { knobs } => status::run(root, &knobs),
        TuneCommand::Persist { knobs } => persist::persist(root, &knobs),
        TuneCommand::Unpersist { knobs } => persist::unpersist(root, &knobs),
    };
    match done {
        Ok(done) => done,
        Err(refusal) => Ok(print_refusal(&refusal)),
    }
}

/// Says why nothing was done, and for want of a privilege the `sudo` line; the exit code.
pub(super) fn print_refusal(refusal: &TuneError) -> u8 {
    print_error(&refusal.to_string());
    match refusal {
        TuneError::Usage(_) => EXIT_USAGE,
        TuneError::Unsafe(_) => EXIT_REFUSED,
        TuneError::Privilege(_) => {
            print_error(&format!("to do it as root: {}", sudo_this_command()));
            EXIT_PRIVILEGE
        }
        TuneError::Failed(_) => EXIT_FAILED,
    }
}

/// The process behind `tune set`; `kill` is a test's plan.
pub fn run_tuner(root: &Root, kill: Option<&str>) -> anyhow::Result<u8> {
    let plan = kill.map(str::parse).transpose().map_err(anyhow::Error::msg::<String>)?;
    crate::tuning::tuner::run_tuner_process(root, plan)?;
    Ok(EXIT_OK)
}

/// What a step of `tune` comes to: refused with a reason, or an exit code, or an error of the output.
type CommandResult = Result<anyhow::Result<u8>, TuneError>;

/// Access to knobs that never hangs this process.
pub(super) fn child_knob_io(root: &Root) -> ChildKnobIo {
    ChildKnobIo::new(root, Root::self_exe().into())
}

/// Only root changes anything.
pub(super) fn require_root(root: &Root, what: &str) -> Result<(), TuneError> {
    match rustix::process::geteuid().is_root() || !root.is_live() {
        true => Ok(()),
        false => Err(TuneError::Privilege(format!("{what} needs root"))),
    }
}

fn parse_knob_ids(words: &[String]) -> Result<Vec<KnobId>, TuneError> {
    words.iter().map(|w| Ok(KnobId::parse(w)?)).collect()
}

/// This very command under sudo.
pub fn sudo_this_command() -> String {
    let program = std::env::current_exe().map(|p| p.to_string_lossy().into_owned());
    sudo_command_line(&program.unwrap_or_else(|_| "iotop-plus".into()), std::env::args().skip(1))
}
