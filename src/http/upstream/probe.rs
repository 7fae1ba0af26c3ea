use std::io;
use std::sync::Arc;

use actix_tls::connect::{ConnectError, ConnectInfo, Connection};
use actix_web::dev::fn_service;
use awc::http::Uri;
use awc::{Client, Connector};
use http::header::HOST;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::dial::Dialer;
use super::server::Server;
use crate::config::{Health, HostRule, ServerUrl};
use crate::time::clock;

/// A health check of one server, repeated at an interval.
#[derive(Clone, Debug)]
pub(super) struct Check {
    server: Arc<Server>,
    health: Health,
    /// The value of `Host` in the check.
    host: String,
    dialer: Dialer,
}

impl Check {
    pub(super) fn new(
        server: &Arc<Server>,
        health: &Health,
        host: &HostRule,
        dialer: &Dialer,
    ) -> Self {
        Self {
            server: Arc::clone(server),
            health: health.clone(),
            host: match host {
                // A check has no client whose `Host` could be preserved.
                HostRule::Preserve | HostRule::Origin => server.url().authority(),
                HostRule::Literal(name) => name.clone(),
            },
            dialer: dialer.clone(),
        }
    }

    /// Returns whether `other` is the same check of the same server.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.server, &other.server)
            && self.health == other.health
            && self.host == other.host
    }

    /// Repeats the check and records each result.
    ///
    /// Ends only when it is dropped.
    pub(super) async fn run(self) {
        let client = client(&self.dialer, self.server.url(), &self.health);
        let mut ticks = interval(self.health.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let answer = timeout(self.health.timeout, self.ask(&client)).await;
            let found = answer
                .unwrap_or_else(|_| Err(format!("no answer within {:?}", self.health.timeout)));
            self.server.checked(found, &self.health, clock::now());
        }
    }

    async fn ask(&self, client: &Client) -> Result<String, String> {
        // The name has no meaning: the connector knows the server's address, and `Host` has its
        // own value.
        let url = format!("http://server{}", self.health.path);
        let request = client
            .get(url)
            .insert_header((HOST.as_str(), self.host.as_str()))
            .insert_header(("user-agent", "drip"))
            // Each check also tests whether the server accepts connections.
            .force_close();
        let answer = request.send().await.map_err(|error| error.to_string())?;
        let status = answer.status();
        if status.is_success() || status.is_redirection() {
            Ok(format!("it answered {status}"))
        } else {
            Err(format!("it answered {status}"))
        }
    }
}

/// Creates an awc client over the gateway's own connections.
///
/// It reaches unix sockets and TLS in the same way as requests, with the same addresses and roots.
/// The flaws of awc as a proxy's client do no harm here, where only the status counts. After an
/// interim response the status would be the wrong one, but servers send none to a health check.
fn client(dialer: &Dialer, server: &ServerUrl, health: &Health) -> Client {
    let (dialer, server) = (dialer.clone(), server.clone());
    let open = fn_service(move |to: ConnectInfo<Uri>| {
        let (dialer, server) = (dialer.clone(), server.clone());
        async move {
            let stream = dialer.open(&server, false).await;
            let stream = stream.map_err(|error: io::Error| ConnectError::Io(error))?;
            Ok(Connection::new(to.request().clone(), stream))
        }
    });
    let connector = Connector::new().connector(open).timeout(health.timeout);
    Client::builder()
        .connector(connector)
        .no_default_headers()
        .disable_redirects()
        .disable_timeout()
        .finish()
}
