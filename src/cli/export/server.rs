//! Serves the metrics over HTTP, on a thread of its own: it sends what was last read, whatever the sampler waits for.

use super::auth::BasicAuth;
use super::listener::MetricsListener;
use crate::export::metrics::{MetricsFormat, render_end};
use anyhow::Context;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;

/// Connections at a time; more wait.
const MAX_CONNECTIONS: usize = 16;
/// How long a connection may take: one request, one answer.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after a connection could not be accepted, such as for lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The metrics of a sample, without their end.
pub(super) struct MetricsPage {
    pub(super) open_metrics: String,
    pub(super) prometheus: String,
    pub(super) sampled_at: Instant,
}

impl MetricsPage {
    fn render(&self, format: MetricsFormat) -> String {
        let text = match format {
            MetricsFormat::OpenMetrics => &self.open_metrics,
            MetricsFormat::Prometheus => &self.prometheus,
        };
        text.clone() + &render_end(format, Some(self.sampled_at.elapsed().as_secs_f64()))
    }
}

/// The newest page; none before the first sample.
type SharedPage = Arc<Mutex<Option<Arc<MetricsPage>>>>;

/// What a listener serves.
pub(super) struct PagePublisher(SharedPage);

impl PagePublisher {
    /// Serves this page from now on.
    pub(super) fn publish(&self, page: MetricsPage) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(page));
    }
}

/// Starts the server's thread, which asks for a password if there are users. Returns a publisher for each listener, in their
/// order.
pub(super) fn start_server(
    listeners: Vec<MetricsListener>,
    auth: Option<BasicAuth>,
) -> anyhow::Result<Vec<PagePublisher>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let pages: Vec<SharedPage> = listeners.iter().map(|_| SharedPage::default()).collect();
    let served: Vec<_> = listeners.into_iter().zip(pages.iter().cloned()).collect();
    let serve_all = move || {
        let tasks = tokio::task::LocalSet::new();
        for (listener, page) in served {
            tasks.spawn_local(serve(listener, page, auth.clone()));
        }
        tasks.block_on(&runtime, std::future::pending::<()>());
    };
    std::thread::Builder::new().name("http".into()).spawn(serve_all).context("no thread for the server")?;
    Ok(pages.into_iter().map(PagePublisher).collect())
}

async fn serve(listener: MetricsListener, page: SharedPage, auth: Option<BasicAuth>) {
    let limit = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    match listener {
        MetricsListener::Tcp(tcp) => {
            let Ok(tcp) = tokio::net::TcpListener::from_std(tcp) else { return };
            accept_all(async || tcp.accept().await.map(|(stream, _)| stream), limit, page, auth).await;
        }
        MetricsListener::Unix(unix) => {
            let Ok(unix) = tokio::net::UnixListener::from_std(unix) else { return };
            accept_all(async || unix.accept().await.map(|(stream, _)| stream), limit, page, auth).await;
        }
    }
}

async fn accept_all<S>(
    accept: impl AsyncFn() -> io::Result<S>,
    limit: Arc<Semaphore>,
    page: SharedPage,
    auth: Option<BasicAuth>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    loop {
        let Ok(permit) = limit.clone().acquire_owned().await else { return };
        let Ok(stream) = accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (page, auth) = (page.clone(), auth.clone());
        tokio::spawn(async move {
            let answer = service_fn(move |request: Request<Incoming>| {
                let (page, auth) = (page.clone(), auth.clone());
                async move {
                    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
                    if let Some(auth) = auth
                        && !auth.accepts(header).await
                    {
                        return Ok(unauthorized());
                    }
                    let page = page.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    Ok::<_, Infallible>(respond(&request, page.as_deref()))
                }
            });
            // A client that is slow or sends nonsense loses its connection; nothing else follows from it.
            let connection = http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(stream), answer);
            let _ = tokio::time::timeout(CONNECTION_TIMEOUT, connection).await;
            drop(permit);
        });
    }
}

const INDEX: &str = "<!doctype html><title>iotop-plus</title><a href=\"/metrics\">Metrics</a>\n";

fn respond<B>(request: &Request<B>, page: Option<&MetricsPage>) -> Response<String> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = text_response(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "only GET and HEAD\n".into());
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match (request.uri().path(), page) {
        ("/metrics", Some(page)) => {
            let accepts = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
            let is_open = accepts.contains("application/openmetrics-text");
            let format = if is_open { MetricsFormat::OpenMetrics } else { MetricsFormat::Prometheus };
            text_response(StatusCode::OK, format.content_type(), page.render(format))
        }
        ("/metrics", None) => text_response(StatusCode::SERVICE_UNAVAILABLE, "text/plain", "no sample yet\n".into()),
        ("/", _) => text_response(StatusCode::OK, "text/html; charset=utf-8", INDEX.into()),
        _ => text_response(StatusCode::NOT_FOUND, "text/plain", "not found: see /metrics\n".into()),
    }
}

fn unauthorized() -> Response<String> {
    let mut response =
        text_response(StatusCode::UNAUTHORIZED, "text/plain", "a user and the password are needed\n".into());
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"iotop-plus\""));
    response
}

fn text_response(status: StatusCode, content_type: &'static str, text: String) -> Response<String> {
    let mut response = Response::new(text);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, path: &str, accept: &str) -> Request<()> {
        Request::builder().method(method).uri(path).header(ACCEPT, accept).body(()).unwrap()
    }

    fn page() -> MetricsPage {
        MetricsPage { open_metrics: "open\n".into(), prometheus: "old\n".into(), sampled_at: Instant::now() }
    }

    #[test]
    fn the_format_is_what_the_client_accepts() {
        let scrape = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        let response = respond(&request("GET", "/metrics", scrape), Some(&page()));
        assert!(response.headers()[CONTENT_TYPE].to_str().unwrap().starts_with("application/openmetrics-text"));
        let body = response.body();
        assert!(
            body.starts_with("open\n") && body.contains("sample_age_seconds") && body.ends_with("# EOF\n"),
            "{body}"
        );
        let response = respond(&request("GET", "/metrics", "*/*"), Some(&page()));
        assert!(response.headers()[CONTENT_TYPE].to_str().unwrap().starts_with("text/plain; version=0.0.4"));
        assert!(response.body().starts_with("old\n") && !response.body().contains("# EOF"));
    }

    #[test]
    fn requests_for_anything_else_are_refused() {
        let status = |method, path, page: Option<&MetricsPage>| respond(&request(method, path, ""), page).status();
        assert_eq!(status("GET", "/metrics", None), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(status("GET", "/", None), StatusCode::OK);
        assert_eq!(status("GET", "/etc/passwd", Some(&page())), StatusCode::NOT_FOUND);
        assert_eq!(status("POST", "/metrics", Some(&page())), StatusCode::METHOD_NOT_ALLOWED);
    }
}
