//! The address of a Prometheus server.

use hyper::Uri;

/// Where a server listens, and what comes before `/api/v1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrometheusUrl {
    /// Name or address, without the brackets of IPv6.
    pub host: String,
    /// Whether it is https.
    pub is_tls: bool,
    /// TCP port.
    pub port: u16,
    /// For the header Host: with the port, as it was given.
    pub authority: String,
    /// Prefix of the paths, without a slash at its end.
    pub prefix: String,
}

impl std::str::FromStr for PrometheusUrl {
    type Err = String;

    /// Parses `http://HOST[:PORT][/PREFIX]`, or the same with https.
    ///
    /// # Errors
    /// What is wrong, and what to write instead.
    fn from_str(text: &str) -> Result<Self, String> {
        let uri: Uri = text.parse().map_err(|_| "is no URL; write http://HOST:PORT, as in http://localhost:9090")?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err("must begin with http:// or https://, as in http://localhost:9090".into()),
        };
        let authority = uri.authority().ok_or("has no host; write http://HOST:PORT")?;
        if authority.as_str().contains('@') {
            return Err("has a user or password; give them by --user and --password-file".into());
        }
        if uri.query().is_some() {
            return Err("has a query after `?`; give the part before it".into());
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self {
            host,
            is_tls,
            port: authority.port_u16().unwrap_or(if is_tls { 443 } else { 80 }),
            authority: authority.as_str().to_owned(),
            prefix: uri.path().trim_end_matches('/').to_owned(),
        })
    }
}

impl std::fmt::Display for PrometheusUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.prefix)
    }
}

/// Encodes a value for the query part of a URL.
pub fn percent_encode(out: &mut String, text: &str) {
    use std::fmt::Write;
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => _ = write!(out, "%{byte:02X}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_port_and_prefix_are_taken_apart() {
        let parse = |text: &str| text.parse::<PrometheusUrl>().unwrap();
        let url = parse("http://prom.example:9090/prometheus/");
        assert_eq!((&*url.host, url.port, &*url.prefix), ("prom.example", 9090, "/prometheus"));
        assert_eq!(url.to_string(), "http://prom.example:9090/prometheus");
        let url = parse("http://[::1]:9090");
        assert_eq!((&*url.host, &*url.authority, &*url.prefix), ("::1", "[::1]:9090", ""));
        assert_eq!((parse("http://prom").port, parse("http://prom").is_tls), (80, false));
        let url = parse("https://prom.example/x");
        assert_eq!((url.port, url.is_tls, &*url.to_string()), (443, true, "https://prom.example/x"));
    }

    #[test]
    fn what_cannot_be_asked_is_refused_with_what_to_write() {
        let error = |text: &str| text.parse::<PrometheusUrl>().unwrap_err();
        assert!(error("http://u:p@prom:9090").contains("--password-file"));
        assert!(error("localhost:9090").contains("http://"));
        assert!(error("http://a b").contains("is no URL"));
        assert!(error("http://prom/?x=1").contains("query"));
    }

    #[test]
    fn all_but_plain_letters_is_encoded() {
        let mut out = String::new();
        percent_encode(&mut out, "a{b=\"ü\"}[5m] + 1");
        assert_eq!(out, "a%7Bb%3D%22%C3%BC%22%7D%5B5m%5D%20%2B%201");
    }
}
