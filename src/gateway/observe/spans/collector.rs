//! HTTP client that posts spans to a collector, on the thread that calls it.
//!
//! A span is a part of a request's trace. `export` decides when to send, and what.

use std::error::Error;
use std::future::ready;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix_tls::connect::{Connector, Resolve, Resolver};
use awc::error::SendRequestError;
use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use http::{Request, Response, StatusCode, Uri};
use opentelemetry_http::{HttpClient, HttpError};

/// Time limit of one request, without the lookup of the collector's name.
const MAX_REQUEST: Duration = Duration::from_secs(3);

/// Client that opens a connection for each request. It blocks, so it needs a thread of its own.
#[derive(Clone, Debug, Default)]
pub(super) struct Collector {
    /// Error of the last request without a response. The crate `opentelemetry-otlp` hides it.
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl Collector {
    /// Takes the error of the last request without a response.
    pub(super) fn take_failure(&self) -> Option<io::Error> {
        let failure = self.failure.lock();
        failure.unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl HttpClient for Collector {
    fn send_bytes<'client, 'answer>(
        &'client self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'answer>>
    where
        'client: 'answer,
        Self: 'answer,
    {
        let posted = post(&request).map_err(|error| {
            let kind = error.kind();
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            *failure = Some(error);
            HttpError::from(io::Error::from(kind))
        });
        Box::pin(ready(posted))
    }
}

/// Addresses that were looked up before.
///
/// The default resolver runs a lookup on the runtime's thread pool. The pool panics if the system
/// cannot start a thread. Dropping the runtime waits for a lookup that still runs.
#[derive(Clone)]
struct Resolved(Vec<SocketAddr>);

impl Resolve for Resolved {
    fn lookup<'a>(
        &'a self,
        _host: &'a str,
        _port: u16,
    ) -> LocalBoxFuture<'a, Result<Vec<SocketAddr>, Box<dyn Error>>> {
        Box::pin(ready(Ok(self.0.clone())))
    }
}

/// Looks up the addresses of the collector. Blocks.
fn resolve(collector: &Uri) -> io::Result<Resolved> {
    let host = collector.host().ok_or(io::ErrorKind::InvalidInput)?;
    let port = collector.port_u16().unwrap_or(80);
    let found = format!("{host}:{port}").to_socket_addrs()?;
    Ok(Resolved(found.collect()))
}

/// Posts a request. The body of the response is not read: only its status matters.
fn post(request: &Request<Bytes>) -> io::Result<Response<Bytes>> {
    let resolver = Resolver::custom(resolve(request.uri())?);
    let status = actix_rt::Runtime::new()?.block_on(async {
        let connector = awc::Connector::new().connector(Connector::new(resolver).service());
        let client = awc::Client::builder()
            .connector(connector.timeout(MAX_REQUEST))
            .timeout(MAX_REQUEST)
            .disable_redirects();
        let mut post = client.finish().post(request.uri().to_string());
        // The connection ends with the runtime.
        post = post.force_close();
        for (name, value) in request.headers() {
            post = post.insert_header((name.as_str(), value.as_bytes()));
        }
        let answer = post.send_body(request.body().clone()).await;
        answer.map(|answer| answer.status().as_u16())
    });
    let status = status.map_err(|error| match error {
        SendRequestError::Timeout => {
            let message = format!("the collector did not answer in {MAX_REQUEST:?}");
            io::Error::new(io::ErrorKind::TimedOut, message)
        }
        error => io::Error::other(error.to_string()),
    })?;
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::from_u16(status).map_err(io::Error::other)?;
    Ok(response)
}
