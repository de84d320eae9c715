//! TLS by the machine's `openssl s_client`: a library for it would make the static file larger than it may be (docs/limits.md).
//!
//! The program has one end of a pair of sockets, and passes on what is written to the other. It checks the server's
//! certificate and its name, by the certificates of the system or those of a file.

use super::url::PrometheusUrl;
use crate::sanitize::sanitize;
use crate::subprocess::system_program::{end_program, start_with_socket};
use std::ffi::OsString;
use std::io::Read as _;
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Child;

/// Bytes of the program's errors that are read.
const MAX_ERROR_BYTES: u64 = 16 << 10;

/// A connection's program. Dropping it ends both.
pub(super) struct OpensslProcess(Option<Child>);

impl Drop for OpensslProcess {
    fn drop(&mut self) {
        if let Some(child) = self.0.take() {
            end_program(child);
        }
    }
}

/// The arguments that connect to a server and check who it is.
fn arguments(url: &PrometheusUrl, ca_file: Option<&Path>) -> Vec<OsString> {
    let address = if url.host.contains(':') { format!("[{}]", url.host) } else { url.host.clone() };
    let address = format!("{address}:{}", url.port);
    let mut out: Vec<OsString> =
        ["s_client", "-quiet", "-verify_quiet", "-verify_return_error", "-min_protocol", "TLSv1.2", "-connect"]
            .map(OsString::from)
            .into();
    out.push(address.into());
    // A server's name is asked for by its name only, never by an address.
    let names: &[&str] = match url.host.parse::<IpAddr>() {
        Ok(_) => &["-noservername", "-verify_ip", &url.host],
        Err(_) => &["-servername", &url.host, "-verify_hostname", &url.host],
    };
    out.extend(names.iter().map(OsString::from));
    if let Some(file) = ca_file {
        out.extend(["-CAfile".into(), file.into()]);
    }
    out
}

/// Starts the program. What it does with the connection shows when the stream is used.
///
/// # Errors
/// Why it cannot be started, and what to do.
pub(super) fn start(
    url: &PrometheusUrl,
    ca_file: Option<&Path>,
) -> Result<(tokio::net::UnixStream, OpensslProcess), String> {
    let describe = |err: &std::io::Error| crate::model::reading::describe_io_error(err);
    let sockets = || {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        Ok((tokio::net::UnixStream::from_std(ours)?, theirs))
    };
    let (stream, theirs) = sockets().map_err(|err| describe(&err))?;
    let child = start_with_socket(Path::new("openssl"), &arguments(url, ca_file), theirs);
    let child = child.map_err(|err| match err.kind() {
        std::io::ErrorKind::NotFound => {
            "https takes the program openssl, which is not installed; install it".to_owned()
        }
        _ => format!("openssl cannot be started: {}", describe(&err)),
    })?;
    Ok((stream, OpensslProcess(Some(child))))
}

impl OpensslProcess {
    /// Ends the program and returns why the connection failed, if it said so.
    pub(super) fn failure(mut self) -> Option<String> {
        let mut child = self.0.take()?;
        let errors = child.stderr.take();
        end_program(child);
        // What it said is in the pipe by now. A program that its disk holds back keeps the pipe open: its end is not waited for.
        let errors = errors.filter(|errors| rustix::io::ioctl_fionbio(errors, true).is_ok())?;
        let mut text = Vec::new();
        let _ = errors.take(MAX_ERROR_BYTES).read_to_end(&mut text);
        reason(&String::from_utf8_lossy(&text))
    }
}

/// The reason in what `s_client` prints: of its verification, of connecting, or the newest error of its library.
fn reason(text: &str) -> Option<String> {
    let after = |line: &str, mark: &str| line.split_once(mark).map(|(_, rest)| rest.to_owned());
    let verified = text.lines().find_map(|line| after(line, "verify error:num="));
    if let Some((number, why)) = verified.as_deref().and_then(|rest| rest.split_once(':')) {
        // Numbers of verify(1): an issuer that is not known; another name, another address.
        let advice = match number {
            "18" | "19" | "20" | "21" => "; give the certificate of its CA by --ca-file",
            "62" | "64" => "; give the name that its certificate has",
            _ => "",
        };
        return Some(format!("its certificate is not accepted: {}{advice}", sanitize(why)));
    }
    let errno = text.lines().find_map(|line| after(line, "connect:errno=")?.trim().parse().ok());
    if let Some(number) = errno.filter(|number| *number != 0) {
        return Some(crate::model::reading::describe_io_error(&std::io::Error::from_raw_os_error(number)));
    }
    // THREAD:error:NUMBER:LIBRARY:FUNCTION:REASON:FILE:LINE:MORE
    let fields: Vec<&str> = text.lines().rev().find_map(|line| line.split_once(":error:"))?.1.split(':').collect();
    let why = fields.get(6).filter(|more| !more.is_empty()).or(fields.get(3))?;
    Some(format!("openssl: {}", sanitize(*why)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(url: &str, ca_file: Option<&str>) -> String {
        let words = arguments(&url.parse().unwrap(), ca_file.map(Path::new));
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_name_or_address_of_the_server_is_checked() {
        let by_name = words("https://prom.example/x", Some("/ca.pem"));
        for part in
            ["-verify_return_error", "-connect prom.example:443", "-verify_hostname prom.example", "-CAfile /ca.pem"]
        {
            assert!(by_name.contains(part), "{by_name}");
        }
        let by_address = words("https://[::1]:9090", None);
        assert!(by_address.contains("-connect [::1]:9090 -noservername -verify_ip ::1"), "{by_address}");
        assert!(!by_address.contains("-CAfile"));
    }

    #[test]
    fn reasons_are_taken_from_what_openssl_prints() {
        let verified = reason(
            "depth=0 CN = a\nverify error:num=18:self-signed certificate\n40:error:0A000086:SSL routines:f:x:y:1:\n",
        );
        assert!(verified.unwrap().starts_with("its certificate is not accepted: self-signed certificate; give"));
        let refused = reason(
            "40D7:error:8000006F:system library:BIO_connect:Connection refused:../c.c:114:calling connect()\nconnect:errno=111\n",
        );
        assert!(refused.unwrap().contains("onnection refused"));
        let other = reason("40D7:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:../ssl/x.c:354:\n");
        assert_eq!(other.as_deref(), Some("openssl: wrong version number"));
        let unknown = reason(
            "40:error:10080002:BIO routines:BIO_lookup_ex:system lib:../b.c:746:Name or service not known\nconnect:errno=0\n",
        );
        assert_eq!(unknown.as_deref(), Some("openssl: Name or service not known"));
        let other_name = reason("verify error:num=64:IP address mismatch\n").unwrap();
        assert!(other_name.ends_with("IP address mismatch; give the name that its certificate has"), "{other_name}");
        assert_eq!((reason(""), reason("\u{1b}x\n:error:\n")), (None, None));
    }
}
