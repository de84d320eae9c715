//! Asks Prometheus: one connection, one request at a time, each with a deadline and a limit of the answer's size.

use super::openssl::{self, OpensslProcess};
use super::query_error::QueryError;
use super::url::{PrometheusUrl, percent_encode};
use crate::sanitize::sanitize;
use base64::Engine as _;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, AUTHORIZATION, HOST, HeaderValue, LOCATION, USER_AGENT};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Bytes of an answer that are read at most.
pub const MAX_ANSWER_BYTES: usize = 10_000_000;
/// Characters of a server's error that are shown.
const MAX_ERROR_CHARS: usize = 200;

/// What the server is to know of who asks.
#[derive(Debug, Clone)]
pub enum Credentials {
    /// Name and password, for basic authentication.
    Basic(String, String),
    /// A bearer token.
    Bearer(String),
}

impl Credentials {
    /// The header; `None`: it has characters that no header may have.
    fn header(&self) -> Option<HeaderValue> {
        let text = match self {
            Credentials::Basic(user, password) => {
                format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}")))
            }
            Credentials::Bearer(token) => format!("Bearer {token}"),
        };
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

/// A server's query API.
pub struct PrometheusClient {
    url: PrometheusUrl,
    authorization: Option<HeaderValue>,
    deadline: Duration,
    /// For https, the certificates to trust in place of the system's.
    ca_file: Option<PathBuf>,
    /// The open connection, and what gives it TLS.
    sender: Option<SendRequest<Empty<Bytes>>>,
    tls: Option<OpensslProcess>,
}

impl PrometheusClient {
    /// A client whose requests may take `deadline` each. Nothing is sent yet.
    ///
    /// # Errors
    /// The password or token cannot be sent.
    pub fn new(url: PrometheusUrl, credentials: Option<&Credentials>, deadline: Duration) -> Result<Self, String> {
        let authorization = match credentials {
            Some(credentials) => {
                Some(credentials.header().ok_or("the password or token has characters that no header may have")?)
            }
            None => None,
        };
        Ok(Self { url, authorization, deadline, ca_file: None, sender: None, tls: None })
    }

    /// The same that trusts the certificates of this file for https, and no others.
    pub fn with_ca_file(self, ca_file: Option<PathBuf>) -> Self {
        Self { ca_file, ..self }
    }

    /// Asks for a path below the URL's prefix. The server is asked to give up at the same deadline.
    ///
    /// # Errors
    /// There is no answer, or none of the query API.
    pub async fn get(&mut self, path: &str, params: &[(&str, &str)]) -> Result<Vec<u8>, QueryError> {
        let mut target = format!("{}{path}?timeout={}ms", self.url.prefix, self.deadline.as_millis());
        for (name, value) in params {
            target.push_str(&format!("&{name}="));
            percent_encode(&mut target, value);
        }
        let mut answer = match timeout(self.deadline, self.exchange(&target)).await {
            Ok(answer) => answer,
            Err(_) => Err(QueryError::Timeout(self.deadline)),
        };
        if answer.is_err() {
            // What is left of the answer must not be taken for the next one.
            self.sender = None;
            let said = self.tls.take().and_then(OpensslProcess::failure);
            if let (Err(QueryError::Connection { why, .. }), Some(said)) = (&mut answer, said) {
                *why = said;
            }
        }
        answer
    }

    async fn exchange(&mut self, target: &str) -> Result<Vec<u8>, QueryError> {
        // A connection that was idle may be closed already, which shows only when it is used.
        if let Some(sender) = self.sender.take()
            && let Ok((sender, response)) = self.send(sender, target).await
        {
            return self.receive(sender, response).await;
        }
        let sender = self.connect().await?;
        let (sender, response) = self.send(sender, target).await.map_err(|why| self.broken(&why))?;
        self.receive(sender, response).await
    }

    fn broken(&self, why: &dyn std::error::Error) -> QueryError {
        let mut text = why.to_string();
        let mut source = why.source();
        while let Some(cause) = source {
            text.push_str(&format!(": {cause}"));
            source = cause.source();
        }
        QueryError::Connection { server: self.url.authority.clone(), why: sanitize(text) }
    }

    async fn connect(&mut self) -> Result<SendRequest<Empty<Bytes>>, QueryError> {
        self.tls = None;
        let failed = |why: String| QueryError::Connection { server: self.url.authority.clone(), why };
        if self.url.is_tls {
            let (stream, process) = openssl::start(&self.url, self.ca_file.as_deref()).map_err(failed)?;
            self.tls = Some(process);
            return self.begin(stream).await;
        }
        let stream = TcpStream::connect((self.url.host.as_str(), self.url.port)).await;
        let stream = stream.map_err(|err| failed(crate::model::reading::describe_io_error(&err)))?;
        let _ = stream.set_nodelay(true);
        self.begin(stream).await
    }

    async fn begin<S>(&self, stream: S) -> Result<SendRequest<Empty<Bytes>>, QueryError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|why| self.broken(&why))?;
        // It ends with the sender.
        tokio::spawn(async move { _ = connection.await });
        Ok(sender)
    }

    async fn send(
        &self,
        mut sender: SendRequest<Empty<Bytes>>,
        target: &str,
    ) -> Result<(SendRequest<Empty<Bytes>>, Response<Incoming>), hyper::Error> {
        sender.ready().await?;
        let mut request = Request::new(Empty::new());
        // Made of encoded parts, so it is always valid; should it not be, the server says what it thinks of `/`.
        *request.uri_mut() = target.parse().unwrap_or_default();
        let headers = request.headers_mut();
        if let Ok(host) = HeaderValue::from_str(&self.url.authority) {
            headers.insert(HOST, host);
        }
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("iotop-plus/", env!("CARGO_PKG_VERSION"))));
        if let Some(value) = &self.authorization {
            headers.insert(AUTHORIZATION, value.clone());
        }
        let response = sender.send_request(request).await?;
        Ok((sender, response))
    }

    async fn receive(
        &mut self,
        sender: SendRequest<Empty<Bytes>>,
        mut response: Response<Incoming>,
    ) -> Result<Vec<u8>, QueryError> {
        let mut body = Vec::new();
        while let Some(frame) = response.body_mut().frame().await {
            let frame = frame.map_err(|why| self.broken(&why))?;
            let Some(data) = frame.data_ref() else { continue };
            if body.len() + data.len() > MAX_ANSWER_BYTES {
                return Err(QueryError::TooLarge(MAX_ANSWER_BYTES));
            }
            body.extend_from_slice(data);
        }
        let status = response.status();
        // The query API answers errors of a query with these and says more in the body; 499 stands for a cancelled one.
        let has_reason = matches!(status.as_u16(), 400 | 422 | 499 | 500 | 503);
        if status.is_success() || has_reason && body.first() == Some(&b'{') {
            self.sender = Some(sender);
            return Ok(body);
        }
        Err(status_error(status, &response, &body))
    }
}

fn status_error(status: StatusCode, response: &Response<Incoming>, body: &[u8]) -> QueryError {
    let advice = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "; give --user and --password-file, or --token-file",
        StatusCode::NOT_FOUND => "; the URL must be that of Prometheus, with its prefix if it has one",
        _ => "",
    };
    if status.is_redirection() {
        let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("another place");
        return QueryError::Refused(format!("it redirects to {}; give that URL", sanitize(to)));
    }
    let said: String = String::from_utf8_lossy(body).chars().take(MAX_ERROR_CHARS).collect();
    let said = said.lines().next().unwrap_or_default();
    let said = if said.is_empty() { String::new() } else { format!(" ({})", sanitize(said)) };
    let why = format!("HTTP status {status}{said}{advice}");
    if status.is_server_error() { QueryError::Unavailable(why) } else { QueryError::Refused(why) }
}
