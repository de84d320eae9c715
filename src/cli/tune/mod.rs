//! The subcommand `tune`: shows, changes and restores knobs.

pub(super) mod common;
mod set;
pub(super) mod show;
mod status;
mod undo;

use super::args::parse_lease_secs;
use super::exit::EXIT_OK;
use crate::root::Root;
use clap::Subcommand;

/// Subcommands of `tune`.
#[derive(Debug, Subcommand)]
pub(super) enum TuneCommand {
    /// List all knobs: current value, allowed values, kernel default.
    List {
        /// Only knobs whose name contains this.
        part: Option<String>,
    },
    /// Describe knobs: what they do and what they cost.
    Get {
        /// Such as vm.dirty_ratio, scheduler@vda, atime@/srv, nofile@1234.
        #[arg(required = true, value_name = "KNOB")]
        knobs: Vec<String>,
    },
    /// Change knobs, all or none. The old values come back by themselves unless the change is kept.
    #[command(after_help = "Examples:\n  iotop-plus tune set vm.dirty_background_bytes=16M vm.dirty_bytes=256M\n  \
                            iotop-plus tune set --for 10m scheduler@vda=none\n  \
                            iotop-plus tune set --dry-run vm.dirty_ratio=2G")]
    Set {
        /// KNOB[@WHERE]=VALUE; units such as 16M, 50% and 30s are accepted.
        #[arg(required = true, value_name = "KNOB=VALUE")]
        changes: Vec<String>,
        /// Duration of the lease, 1s to 24h.
        #[arg(long = "for", value_name = "TIME", default_value = "120s", value_parser = parse_lease_secs)]
        lease: u64,
        /// Keep the change until it is undone or the machine reboots.
        #[arg(long, conflicts_with = "lease")]
        keep: bool,
        /// Print the changes and exit.
        #[arg(long)]
        dry_run: bool,
    },
    /// Apply settings for a workload, like `set`; without a name, list the presets and their costs.
    #[command(after_help = "Examples:\n  iotop-plus tune preset\n  iotop-plus tune preset database --dry-run\n  \
                            iotop-plus tune preset latency --for 10m")]
    Preset {
        /// database, latency, ingest or defaults.
        name: Option<String>,
        /// Duration of the lease, 1s to 24h.
        #[arg(long = "for", value_name = "TIME", default_value = "120s", value_parser = parse_lease_secs)]
        lease: u64,
        /// Keep the change until it is undone or the machine reboots.
        #[arg(long, conflicts_with = "lease")]
        keep: bool,
        /// Print the changes and exit.
        #[arg(long, requires = "name")]
        dry_run: bool,
    },
    /// Keep changes that are on lease; without an id, all of them.
    Keep {
        /// The change's id, as shown by `set` and `status`.
        id: Option<u64>,
    },
    /// Renew leases; without an id, all of them.
    Renew {
        /// The change's id, as shown by `set` and `status`.
        id: Option<u64>,
        /// Duration from now, 1s to 24h.
        #[arg(long = "for", value_name = "TIME", default_value = "120s", value_parser = parse_lease_secs)]
        lease: u64,
    },
    /// Undo changes; without an id, all that are on lease or orphaned, else the newest kept one.
    Undo {
        /// The change's id.
        id: Option<u64>,
    },
    /// Show for each knob the current value, the one before the first change, the default, the one after reboot and
    /// the file that sets it.
    Status {
        /// Only these.
        #[arg(value_name = "KNOB")]
        knobs: Vec<String>,
    },
    /// Persist values across reboots: the current ones, or KNOB=VALUE.
    Persist {
        /// The knobs.
        #[arg(required = true, value_name = "KNOB[=VALUE]")]
        knobs: Vec<String>,
    },
    /// Remove what `persist` wrote.
    Unpersist {
        /// The knobs.
        #[arg(required = true, value_name = "KNOB")]
        knobs: Vec<String>,
    },
}

pub(super) fn run(root: &Root, action: TuneCommand) -> anyhow::Result<u8> {
    match action {
        TuneCommand::List { part } => show::list(root, part.as_deref()),
        TuneCommand::Get { knobs } => show::get(root, &knobs),
        TuneCommand::Set { changes, lease, keep, dry_run } => {
            set::run(root, changes, (!keep).then_some(lease), dry_run)
        }
        TuneCommand::Preset { name: None, .. } => set::list_presets(root),
        TuneCommand::Preset { name: Some(name), lease, keep, dry_run } => {
            set::apply_preset(root, &name, (!keep).then_some(lease), dry_run)
        }
        TuneCommand::Keep { id } => undo::keep(root, id),
        TuneCommand::Renew { id, lease } => undo::renew(root, id, lease),
        TuneCommand::Undo { id } => undo::undo(root, id),
        TuneCommand::Status { knobs } => status::run(root, &knobs),
        TuneCommand::Persist { knobs } => undo::persist(root, &knobs),
        TuneCommand::Unpersist { knobs } => undo::unpersist(root, &knobs),
    }
}

/// The tuner process started by `tune set`; `kill` is a test's plan.
pub(super) fn run_tuner(root: &Root, kill: Option<&str>) -> anyhow::Result<u8> {
    let plan = kill.map(str::parse).transpose().map_err(anyhow::Error::msg::<String>)?;
    crate::tuning::tuner::run_tuner_process(root, plan)?;
    Ok(EXIT_OK)
}
