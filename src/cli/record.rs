//! The subcommand `record`: writes the collectors' observations to a file.

use super::args::{parse_duration_secs, parse_seconds};
use super::exit::{EXIT_FAILED, EXIT_OK, print_error, usage};
use super::printer::{block_on, ending_signals};
use super::sampler::{SLOW_SYNC_THRESHOLD, Sampler, SamplerOptions};
use crate::collect::{clock, host};
use crate::recording::encoder::CHECKPOINT_INTERVAL;
use crate::recording::frame::RecordingHeader;
use crate::recording::writer::{RecorderOptions, RecorderState, RecorderStatus, RecordingWriter};
use crate::root::Root;
use crate::subprocess::child::next_signal;
use crate::tui::timezone;
use crate::units::{format_bytes_long, format_duration, format_time_of_day, parse_bytes};
use anyhow::Context;
use clap::Args;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  iotop-plus record night.iotop -d 5 --for 8h\n  \
                        iotop-plus record /var/log/iotop/box --max-size 50M --rotate 14\n  \
                        iotop-plus replay night.iotop\n\n\
                        SIGINT and SIGTERM end the file cleanly; what was written before a crash can be read too.")]
pub(super) struct RecordArgs {
    /// Target file; with --rotate it gets a numeric suffix: FILE.0001, FILE.0002, ...
    pub(super) file: PathBuf,
    /// Seconds between samples, 0.1 to 3600.
    #[arg(short, long, value_name = "S", default_value = "1", value_parser = parse_seconds)]
    pub(super) delay: f64,
    /// Stop after this time: 90, 10m, 8h; by default when interrupted.
    #[arg(long = "for", value_name = "T", value_parser = parse_duration_secs)]
    pub(super) time: Option<u64>,
    /// Stop when the file has about this size; with --rotate, continue in the next file. 512K, 50M, 1G.
    #[arg(long, value_name = "SIZE")]
    pub(super) max_size: Option<String>,
    /// Keep the newest N files, 1 to 9999; older files of this run are deleted.
    #[arg(long, value_name = "N", requires = "max_size", value_parser = clap::value_parser!(u32).range(1..=9999))]
    pub(super) rotate: Option<u32>,
    /// Also record sync calls and the files they wait for; adds 10 to 50 ns to every system call.
    #[arg(long)]
    pub(super) syncs: bool,
    /// Also record which files the I/O of the devices is for; costs some time for every request.
    #[arg(long)]
    pub(super) files: bool,
    /// Also record what tasks wait for; costs some time for every sleep and every request.
    #[arg(long)]
    pub(super) waits: bool,
    /// Replace an existing file.
    #[arg(long)]
    pub(super) replace: bool,
    /// Print only errors on stderr.
    #[arg(short, long)]
    pub(super) quiet: bool,
}

/// How often settings and limits are read.
const FACTS_EVERY: Duration = Duration::from_secs(30);

/// How long to wait for the disk at the end.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(5);
const STATUS_INTERVAL: Duration = Duration::from_millis(20);

/// Records until the time limit, the size limit or a signal.
pub(super) fn run(root: &Root, args: &RecordArgs, tracing: bool) -> anyhow::Result<u8> {
    let max_size = args.max_size.as_deref().map(parse_bytes).transpose();
    let max_size = max_size.map_err(|why| usage(format!("--max-size: {why}")))?;
    if max_size.is_some_and(|n| n < 64 << 10) {
        return Err(usage("--max-size: at least 64K"));
    }
    let path = std::path::absolute(&args.file)?;
    let plan = RecorderOptions { path, replace: args.replace, max_size, rotate: args.rotate };
    block_on(async {
        let interval = Duration::from_secs_f64(args.delay);
        let mut signals = ending_signals();
        let mut recorder =
            RecordingWriter::start(root, plan, recording_header(root, interval)).context("no thread to record")?;
        let options = SamplerOptions {
            queue_settings: true,
            kernel_log: true,
            keep_events: true,
            tracing,
            slow_syncs_from: args.syncs.then_some(SLOW_SYNC_THRESHOLD),
            files: args.files,
            waits: args.waits,
            facts_every: Some(FACTS_EVERY),
            ..SamplerOptions::default()
        };
        let mut sampler = Sampler::start(root, interval, options)?;
        let zone = timezone::utc_offset_secs(clock::now().wall_ns);
        if !args.quiet {
            print_note(&format!("recording to {}; Ctrl-C ends it", status_path(&recorder.status())));
        }
        // The time counts from the first sample, which waits for tracing to be loaded. The last one may be a little late.
        let time = args.time.map(|secs| Duration::from_secs(secs) + interval / 2);
        let mut end = None;
        let (mut ticks, mut disk_warnings) = (0u32, DiskWarnings::default());
        while recorder.status().state == RecorderState::Running {
            tokio::select! {
                biased;
                () = next_signal(&mut signals) => break,
                () = async { sleep_until(end.unwrap_or_else(Instant::now)).await }, if end.is_some() => break,
                // Notices a file that cannot be opened before the next sample arrives.
                () = sleep(10 * STATUS_INTERVAL) => {}
                sample_result = sampler.next_sample() => {
                    sample_result?;
                    recorder.record_tick(sampler.take_events(), sampler.state.now().wall_ns);
                    ticks = ticks.wrapping_add(1);
                    end = end.or_else(|| Some(Instant::now() + time?));
                    // Idle tasks may have been swapped out: read all tasks just before a checkpoint, which records
                    // all of them.
                    sampler.set_read_every_task((ticks + 1).is_multiple_of(CHECKPOINT_INTERVAL));
                }
            }
            disk_warnings.report(&recorder.status(), zone);
        }
        recorder.finish();
        wait_for_writer(&recorder).await;
        Ok(report_end(&recorder.status(), args))
    })
}

/// Warnings about the disk, each printed when it begins or ends.
#[derive(Default)]
struct DiskWarnings {
    dropped: bool,
    stuck: bool,
}

impl DiskWarnings {
    fn report(&mut self, status: &RecorderStatus, utc_offset_secs: i64) {
        let warn = |text: &str| {
            print_error(&format!("{}: {text}", format_time_of_day(clock::now().wall_ns, utc_offset_secs)));
        };
        if status.frames_dropped > 0 && !std::mem::replace(&mut self.dropped, true) {
            warn("the disk is too slow for the recording; samples are dropped");
        }
        if status.is_stuck != std::mem::replace(&mut self.stuck, status.is_stuck) {
            warn(match self.stuck {
                true => "the disk does not answer; samples are buffered, up to 8 MiB",
                false => "the disk answers again",
            });
        }
    }
}

pub(super) async fn wait_for_writer(recorder: &RecordingWriter) {
    let deadline = Instant::now() + FINAL_WRITE_TIMEOUT;
    let is_writing = || matches!(recorder.status().state, RecorderState::Running | RecorderState::Full);
    while is_writing() && Instant::now() < deadline {
        sleep(STATUS_INTERVAL).await;
    }
}

pub(super) fn recording_header(root: &Root, interval: Duration) -> RecordingHeader {
    let (host, at) = (host::read_host(root), clock::now());
    RecordingHeader {
        program: concat!("iotop-plus ", env!("CARGO_PKG_VERSION")).into(),
        host: host.name,
        kernel: host.kernel,
        program_pid: host.program_pid,
        started_at: at,
        mono_ns: clock::now_log_clock().mono_ns,
        interval_ns: interval.as_nanos() as u64,
        utc_offset_secs: timezone::utc_offset_secs(at.wall_ns),
    }
}

/// Prints a line on standard error. One that cannot be written, because its disk is full, must not end a recording.
fn print_note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", crate::sanitize::sanitize(text));
}

fn status_path(status: &RecorderStatus) -> String {
    status.path.display().to_string()
}

fn report_end(status: &RecorderStatus, args: &RecordArgs) -> u8 {
    let (path, frames) = (status_path(status), status.frames_sent);
    let dropped = match status.frames_dropped {
        0 => String::new(),
        n => format!(", {n} dropped because the disk was too slow"),
    };
    match &status.state {
        RecorderState::Done if frames == 0 => {
            print_error(&format!("{path}: nothing was recorded, it ended before the first sample"));
            EXIT_FAILED
        }
        RecorderState::Done => {
            if !args.quiet {
                let time = format_duration((frames as f64 * args.delay) as u64);
                let size = format_bytes_long(status.bytes_sent);
                print_note(&format!("{path}: {frames} samples over {time}, {size}{dropped}"));
            }
            EXIT_OK
        }
        RecorderState::Failed(why) => {
            print_error(&format!("{why} ({frames} samples taken{dropped})"));
            EXIT_FAILED
        }
        RecorderState::Running | RecorderState::Full => {
            let secs = FINAL_WRITE_TIMEOUT.as_secs();
            print_error(&format!("{path}: its disk has not answered for {secs} s; the file is as long as it got"));
            EXIT_FAILED
        }
    }
}
