//! The command line of `tune`.

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

/// A lease: `120`, `120s`, `10m`, `2h`.
pub(super) fn parse_lease_secs(text: &str) -> Result<u64, String> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let factor = match unit {
        "" | "s" => Some(1),
        "m" | "min" => Some(60),
        "h" => Some(3600),
        _ => None,
    };
    match digits.parse::<u64>().ok().zip(factor).and_then(|(n, f)| n.checked_mul(f)) {
        Some(secs) if (1..=86_400).contains(&secs) => Ok(secs),
        _ => Err("must be 1s to 24h, as in 120s, 10m, 2h".into()),
    }
}
