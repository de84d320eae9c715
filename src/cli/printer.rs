//! Prints samples until the requested number is reached, the reader goes away or a signal arrives.

use super::sampler::Sampler;
use super::signals::Signals;
use super::stdout_writer::StdoutWriter;
use anyhow::anyhow;
use rustix::io::Errno;
use std::time::Duration;

/// How long an exiting program waits for the current write.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_millis(500);

const READER_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Prints texts and decides when to stop.
pub(super) struct Printer {
    output: StdoutWriter,
    signals: Signals,
    /// The number of texts still to print; `None`: no limit.
    remaining: Option<u64>,
}

impl Printer {
    /// Prints at most `count` texts.
    pub(super) fn start(count: Option<u64>) -> anyhow::Result<Self> {
        Ok(Self { output: StdoutWriter::default(), signals: Signals::ending()?, remaining: count })
    }

    /// Starts printing a text.
    pub(super) fn print(&mut self, text: impl Into<Vec<u8>>) {
        self.output.write_in_background(text.into());
        self.remaining = self.remaining.map(|n| n.saturating_sub(1));
    }

    /// Waits for a sample that can be printed; `false`: the program exits. While the reader is slow, samples are
    /// skipped; each covers its own interval only.
    pub(super) async fn wait_for_sample(&mut self, sampler: &mut Sampler) -> anyhow::Result<bool> {
        let mut glance = tokio::time::interval(READER_CHECK_INTERVAL);
        loop {
            let enough = self.remaining == Some(0);
            if enough && !self.output.is_busy() {
                return Ok(false);
            }
            tokio::select! {
                biased;
                () = self.signals.recv() => return self.finish().await,
                written = self.output.wait_until_written() => match written {
                    Ok(()) => {}
                    Err(Errno::PIPE) => return Ok(false),
                    Err(err) => return Err(write_error(err)),
                },
                _ = glance.tick() => if StdoutWriter::reader_is_gone() {
                    return Ok(false);
                },
                sample_result = sampler.next_sample(), if !enough => {
                    sample_result?;
                    if !self.output.is_busy() {
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Finishes the current write, within a time limit.
    async fn finish(&mut self) -> anyhow::Result<bool> {
        if self.output.is_busy()
            && let Ok(Err(err)) = tokio::time::timeout(FINAL_WRITE_TIMEOUT, self.output.wait_until_written()).await
            && err != Errno::PIPE
        {
            return Err(write_error(err));
        }
        Ok(false)
    }
}

fn write_error(err: Errno) -> anyhow::Error {
    let why = crate::model::reading::describe_io_error(&std::io::Error::from(err));
    let is_full = matches!(err, Errno::NOSPC | Errno::DQUOT);
    anyhow!("standard output: {why}{}", if is_full { "; free some space or write elsewhere" } else { "" })
}

/// Runs a future on a single-threaded runtime.
pub(super) fn block_on<T>(body: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(body);
    // Do not wait for a thread that hangs in a read.
    runtime.shutdown_background();
    result
}
