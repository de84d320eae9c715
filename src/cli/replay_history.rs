//! `replay --from-prometheus`: the history of a host as far as exported figures tell.

use super::exit::{EXIT_OK, print_text, usage};
use super::fleet::show_history;
use super::printer::block_on;
use super::prometheus_args::wall_secs;
use super::replay::{ReplayArgs, ReplayFormat};
use crate::fleet::history::{history_of, history_request};
use crate::fleet::history_text::{history_json, history_tables};
use crate::fleet::host::FleetHostId;
use crate::fleet::source::PrometheusSource;
use crate::fleet::text::parse_time;
use crate::fleet::url::PrometheusUrl;
use crate::root::Root;
use anyhow::{Context, bail};

/// What is shown without --from, seconds.
const DEFAULT_SPAN_SECS: f64 = 3600.0;
/// Values of each figure.
const VALUES: usize = 240;

/// Runs `replay` with `--from-prometheus`.
pub(super) fn run(root: &Root, args: &ReplayArgs, url: &PrometheusUrl) -> anyhow::Result<u8> {
    let now = wall_secs();
    let offset = crate::tui::timezone::utc_offset_secs((now * 1e9) as i64);
    let time = |text: &Option<String>| text.as_deref().map(|text| parse_time(text, now, offset)).transpose();
    let to = time(&args.to).map_err(usage)?.unwrap_or(now);
    let from = time(&args.from).map_err(usage)?.unwrap_or(to - DEFAULT_SPAN_SECS);
    if to - from < 1.0 {
        return Err(usage("--from must be before --to"));
    }
    if !matches!(args.format, None | Some(ReplayFormat::Text | ReplayFormat::Json)) {
        return Err(usage("--from-prometheus has the formats text and json, and the full screen"));
    }
    let mut source = args.access.source(url.clone())?;
    let name = args.host.as_deref().unwrap_or_default();
    let host = find_host(&mut source, url, name, (from, to))?;
    match args.format {
        None => {
            let picture = (args.config.as_deref(), args.picture.theme.clone(), args.picture.ascii);
            show_history(root, picture, source, url, &host, (from, to))
        }
        Some(format) => print_history(&mut source, url, &host, (from, to), (format, offset)),
    }
}

fn find_host(
    source: &mut PrometheusSource,
    url: &PrometheusUrl,
    name: &str,
    span: (f64, f64),
) -> anyhow::Result<FleetHostId> {
    let found = block_on(async { source.find_hosts(name, span).await.with_context(|| format!("--host at {url}")) })?;
    match found.as_slice() {
        [host] => Ok(host.clone()),
        several => {
            let shown: Vec<String> =
                several.iter().map(|host| format!("{} of job {}", host.instance, host.job)).collect();
            bail!("--host {name}: {}; choose one by --match", shown.join(", "));
        }
    }
}

fn print_history(
    source: &mut PrometheusSource,
    url: &PrometheusUrl,
    host: &FleetHostId,
    span: (f64, f64),
    (format, utc_offset_secs): (ReplayFormat, i64),
) -> anyhow::Result<u8> {
    let request = history_request(&source.scope, host, span, VALUES, 0);
    let answers = block_on(async { Ok(source.range(&request).await) })?;
    if let Some(why) = answers.first().and_then(|answer| answer.as_ref().err())
        && answers.iter().all(Result::is_err)
    {
        bail!("cannot read the history from {url}: {why}");
    }
    let history = history_of(&request, answers);
    let name = crate::sanitize::sanitize(&host.instance);
    print_text(&match format {
        ReplayFormat::Json => history_json(&name, &history).to_string() + "\n",
        _ => {
            let [findings, figures] = history_tables(&name, &history, utc_offset_secs);
            findings.to_text() + "\n" + &figures.to_text()
        }
    })?;
    Ok(EXIT_OK)
}
