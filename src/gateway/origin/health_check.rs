//! Health check of a server, repeated at an interval, over HTTP/1, HTTP/2 or gRPC.
//!
//! `prober` runs the checks of all servers. The messages of gRPC are in `grpc_health`. `health`
//! decides by the results whether the server gets requests.

use std::cell::Cell;
use std::fmt::Display;
use std::rc::Rc;
use std::sync::Arc;

use actix_tls::connect::{ConnectError, ConnectInfo, Connection};
use actix_web::dev::fn_service;
use awc::http::Uri;
use awc::{Client, Connector};
use bytes::Bytes;
use config::{Health, Http2};
use h2::RecvStream;
use http::header::HOST;
use http::uri::PathAndQuery;
use http::{HeaderMap, Response};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::dial::Dialer;
use super::grpc_health::{self, GRPC_CHECK};
use super::server::Server;
use super::shortage;
use super::stream::OriginStream;
use crate::time::clock;

/// Maximum number of bytes kept of a gRPC answer. A valid one has 7.
const MAX_MESSAGE: usize = 1024;

/// Health check of one server, repeated at an interval.
#[derive(Clone)]
pub(super) struct Check {
    pub(super) server: Arc<Server>,
    pub(super) health: Health,
    pub(super) http2: Http2,
    /// Value of `Host` in the check.
    pub(super) host: String,
    pub(super) dialer: Dialer,
}

impl Check {
    /// Returns whether `other` is the same check of the same server.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.server, &other.server)
            && self.health == other.health
            && self.host == other.host
            && self.http2 == other.http2
            && self.dialer.has_tls_of(&other.dialer)
    }

    /// Repeats the check and records each result. Ends only when it is dropped.
    pub(super) async fn run(self) {
        let client = CheckClient::new(&self.health);
        let mut ticks = interval(self.health.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let found = match timeout(self.health.timeout, self.check(&client)).await {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                Err(_) => Err(format!("no answer within {:?}", self.health.timeout)),
            };
            // Without a descriptor, the result says nothing about the server.
            if found.is_ok() || !shortage::no_descriptor_is_free() {
                self.server.note_check(found, &self.health, clock::now());
            }
        }
    }

    /// Sends one check. Returns the answer of a healthy server, or why the server is not healthy.
    ///
    /// Returns `None` if this host lacks a descriptor or a local port for the connection.
    async fn check(&self, client: &CheckClient) -> Option<Result<String, String>> {
        let url = self.server.url();
        let wants_http2 = self.health.grpc.is_some() || self.http2 == Http2::Auto;
        let offers_http2 = url.is_encrypted() && wants_http2;
        match self.dialer.open(url, offers_http2).await {
            Ok(stream) => Some(self.check_over(stream, client).await),
            Err(error) if shortage::missing_resource(&error).is_some() => None,
            Err(error) => Some(Err(error.to_string())),
        }
    }

    /// Sends one check over a new connection.
    async fn check_over(
        &self,
        stream: OriginStream,
        client: &CheckClient,
    ) -> Result<String, String> {
        let is_http2 = self.server.url().is_h2c() || stream.chose_http2();
        match &self.health.grpc {
            Some(service) if is_http2 => self.check_grpc(stream, service).await,
            Some(_) => Err("it does not speak HTTP/2, which gRPC needs".to_owned()),
            None if is_http2 => {
                let read = async |answer: Response<RecvStream>| verdict(answer.status().as_u16());
                send_over_http2(stream, http::Request::get(self.uri()), None, read).await
            }
            None => {
                client.opened.set(Some(stream));
                // The name has no meaning: the connection is open, and `Host` is set below.
                let request = client.awc.get(format!("http://server{}", self.path()));
                let request = request
                    .insert_header((HOST.as_str(), self.host.as_str()))
                    .insert_header(("user-agent", "drip"))
                    // Each check also tests whether the server accepts connections.
                    .force_close();
                let answer = with_error_text(request.send().await)?;
                verdict(answer.status().as_u16())
            }
        }
    }

    /// Returns the path of the check.
    fn path(&self) -> PathAndQuery {
        let path = self.health.path.clone();
        path.unwrap_or_else(|| PathAndQuery::from_static(GRPC_CHECK))
    }

    /// Checks the health of a service over gRPC (`grpc.health.v1`).
    async fn check_grpc(&self, stream: OriginStream, service: &str) -> Result<String, String> {
        let request = http::Request::post(self.uri())
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        let message = grpc_health::request(service);
        send_over_http2(stream, request, Some(message.into()), async |answer| {
            let (head, body) = answer.into_parts();
            if head.status != http::StatusCode::OK {
                return Err(format!("it answered {}", head.status));
            }
            // A server that has no message to send ends with its head.
            if let Some(status) = grpc_health::call_status(&head.headers) {
                return grpc_health::verdict(status, &[]);
            }
            let (message, trailers) = with_error_text(read_whole(body).await)?;
            let status = trailers.as_ref().and_then(grpc_health::call_status);
            let status = status.ok_or("its answer has no grpc-status")?;
            grpc_health::verdict(status, &message)
        })
        .await
    }

    /// Returns the URI of the check, for a request over HTTP/2.
    fn uri(&self) -> String {
        let is_encrypted = self.server.url().is_encrypted();
        let scheme = if is_encrypted { "https" } else { "http" };
        format!("{scheme}://{}{}", self.host, self.path())
    }
}

/// Sends a request over a new HTTP/2 connection, and returns the result of `read` for its answer.
async fn send_over_http2(
    stream: OriginStream,
    request: http::request::Builder,
    body: Option<Bytes>,
    read: impl AsyncFnOnce(Response<RecvStream>) -> Result<String, String>,
) -> Result<String, String> {
    let (mut send, connection) = with_error_text(h2::client::handshake(stream).await)?;
    let request = with_error_text(request.header("user-agent", "drip").body(()))?;
    let (answer, mut upload) = with_error_text(send.send_request(request, body.is_none()))?;
    if let Some(body) = body {
        with_error_text(upload.send_data(body, true))?;
    }
    let exchange = async { read(with_error_text(answer.await)?).await };
    tokio::select! {
        found = exchange => found,
        ended = connection => Err(match ended {
            Ok(()) => "it closed the connection".to_owned(),
            Err(error) => error.to_string(),
        }),
    }
}

/// Converts an error to its text.
fn with_error_text<T>(result: Result<T, impl Display>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}

/// Reads the body of an answer and its trailers.
async fn read_whole(mut body: RecvStream) -> Result<(Vec<u8>, Option<HeaderMap>), h2::Error> {
    let mut message = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece?;
        let _reset = body.flow_control().release_capacity(piece.len());
        if message.len() < MAX_MESSAGE {
            message.extend_from_slice(&piece);
        }
    }
    Ok((message, body.trailers().await?))
}

/// Returns the verdict on a server from the HTTP status of its answer.
fn verdict(status: u16) -> Result<String, String> {
    let answer = format!(
        "it answered {}",
        http::StatusCode::from_u16(status).unwrap_or_default()
    );
    match status {
        200..400 => Ok(answer),
        _ => Err(answer),
    }
}

/// Client for checks over HTTP/1.
struct CheckClient {
    awc: Client,
    /// Connection for the next check.
    opened: Rc<Cell<Option<OriginStream>>>,
}

impl CheckClient {
    /// Creates an awc client over the gateway's own connections.
    ///
    /// Only the status counts. After an interim response awc would return the wrong status, but
    /// servers send none to a health check.
    fn new(health: &Health) -> Self {
        let opened = Rc::<Cell<Option<OriginStream>>>::default();
        let for_next = Rc::clone(&opened);
        let open = fn_service(move |to: ConnectInfo<Uri>| {
            let stream = for_next.take().ok_or(ConnectError::Unresolved);
            async move { Ok(Connection::new(to.request().clone(), stream?)) }
        });
        let connector = Connector::new().connector(open).timeout(health.timeout);
        let awc = Client::builder()
            .connector(connector)
            .no_default_headers()
            .disable_redirects()
            .disable_timeout()
            .finish();
        Self { awc, opened }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_but_2xx_and_3xx_is_a_failure() {
        let is_good = [101, 204, 302, 404, 429, 500].map(|status| verdict(status).is_ok());
        assert_eq!(is_good, [false, true, true, false, false, false]);
    }
}
