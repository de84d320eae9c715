//! How to ask Prometheus: options of the subcommands that do.

use super::args::{parse_seconds, parse_seconds_from};
use super::exit::usage;
use crate::fleet::client::{Credentials, PrometheusClient};
use crate::fleet::plan::QueryScope;
use crate::fleet::source::PrometheusSource;
use crate::fleet::url::PrometheusUrl;
use anyhow::{Context, bail};
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a query may take.
const DEFAULT_TIMEOUT_SECS: f64 = 5.0;

/// Which series are read, and how.
#[derive(Debug, Args)]
pub(super) struct AccessArgs {
    /// Name for basic authentication.
    #[arg(long, value_name = "NAME", requires = "password_file")]
    user: Option<String>,
    /// File with the password, and nothing else.
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
    /// File with a bearer token, and nothing else.
    #[arg(long, value_name = "FILE", conflicts_with = "user")]
    token_file: Option<PathBuf>,
    /// For https: trust the certificates of this file (PEM), in place of the system's.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Only hosts whose series have these labels, such as job="iotop-plus",dc=~"fra|ams".
    #[arg(long = "match", value_name = "MATCHERS", default_value = "", hide_default_value = true,
          value_parser = parse_matchers)]
    matchers: String,
    /// The label that names a host; by default the instance, without its port.
    #[arg(long, value_name = "LABEL", default_value = "instance", hide_default_value = true, value_parser = parse_label)]
    host_label: String,
    /// Seconds that a query may take, 0.1 to 3600.
    #[arg(long, value_name = "S", default_value_t = DEFAULT_TIMEOUT_SECS, value_parser = parse_seconds)]
    timeout: f64,
    /// Seconds that rates are means of, 1 to 3600; by default four times the interval of scrapes.
    #[arg(long, value_name = "S", value_parser = |text: &str| parse_seconds_from(1.0, text))]
    window: Option<f64>,
}

/// Longest file of a password or token, bytes.
const MAX_SECRET_BYTES: usize = 4096;

/// Label matchers are a part of all selectors; what they may not do is end them.
fn parse_matchers(text: &str) -> Result<String, String> {
    let text = text.trim().trim_end_matches(',');
    if text.contains(['{', '}', '\n']) {
        return Err("must be label matchers without braces, as in job=\"iotop-plus\",dc=\"fra\"".into());
    }
    if !(text.is_empty() || text.contains('=') || text.contains('~')) {
        return Err("has no matcher; write LABEL=\"VALUE\"".into());
    }
    Ok(text.to_owned())
}

fn parse_label(text: &str) -> Result<String, String> {
    let is_name = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && text.bytes().next().is_some_and(|b| !b.is_ascii_digit());
    if is_name { Ok(text.to_owned()) } else { Err("is no name of a label".into()) }
}

/// The only line of a file.
fn read_secret(path: &Path) -> anyhow::Result<String> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() || text.len() > MAX_SECRET_BYTES || text.contains('\n') {
        bail!("{shown}: must be one line of at most {MAX_SECRET_BYTES} bytes, the password or token");
    }
    Ok(text.to_owned())
}

impl AccessArgs {
    /// The name of an option that was given, if any was.
    pub(super) fn given(&self) -> Option<&'static str> {
        let options = [
            (self.user.is_some(), "user"),
            (self.token_file.is_some(), "token-file"),
            (self.ca_file.is_some(), "ca-file"),
            (!self.matchers.is_empty(), "match"),
            (self.host_label != "instance", "host-label"),
            (self.timeout != DEFAULT_TIMEOUT_SECS, "timeout"),
            (self.window.is_some(), "window"),
        ];
        options.into_iter().find(|(is_given, _)| *is_given).map(|(_, name)| name)
    }

    /// A source that has asked nothing yet.
    pub(super) fn source(&self, url: PrometheusUrl) -> anyhow::Result<PrometheusSource> {
        let credentials = match (&self.user, &self.password_file, &self.token_file) {
            (Some(user), Some(file), _) => Some(Credentials::Basic(user.clone(), read_secret(file)?)),
            (_, _, Some(file)) => Some(Credentials::Bearer(read_secret(file)?)),
            _ => None,
        };
        if let Some(file) = &self.ca_file {
            if !url.is_tls {
                return Err(usage("--ca-file is for a URL that begins with https://"));
            }
            std::fs::File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
        }
        let client = PrometheusClient::new(url, credentials.as_ref(), self.query_timeout()).map_err(usage)?;
        let client = client.with_ca_file(self.ca_file.clone());
        let scope = QueryScope {
            matchers: self.matchers.clone(),
            host_label: self.host_label.clone(),
            ..QueryScope::default()
        };
        Ok(PrometheusSource::new(client, scope, self.window.map(|secs| secs as u32)))
    }

    pub(super) fn query_timeout(&self) -> Duration {
        Duration::from_secs_f64(self.timeout)
    }
}

/// The local clock, seconds since 1970.
pub(super) fn wall_secs() -> f64 {
    crate::collect::clock::now().wall_ns as f64 / 1e9
}
