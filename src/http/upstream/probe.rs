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

/// What is asked of one server, again and again.
#[derive(Clone, Debug)]
pub(super) struct Check {
    server: Arc<Server>,
    health: Health,
    /// What the server is told that it is called.
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
                // There is no client whose name for it could be kept.
                HostRule::Preserve | HostRule::Origin => server.url().authority(),
                HostRule::Literal(name) => name.clone(),
            },
            dialer: dialer.clone(),
        }
    }

    /// Whether `other` asks the same of the same server.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.server, &other.server)
            && self.health == other.health
            && self.host == other.host
    }

    /// Asks again and again, and tells the server's condition. Ends only by being dropped.
    pub(super) async fn run(self) {
        let client = client(&self.dialer, self.server.url(), &self.health);
        let mut ticks = interval(self.health.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let answer = timeout(self.health.timeout, self.ask(&client)).await;
            let found = answer
                .unwrap_or_else(|_| Err(format!("no answer within {:?}", self.health.timeout)));
            self.server.checked(found, &self.health);
        }
    }

    async fn ask(&self, client: &Client) -> Result<(), String> {
        // The name says nothing: it is the connector that knows where to go, and the server is told
        // its own.
        let url = format!("http://server{}", self.health.path);
        let request = client
            .get(url)
            .insert_header((HOST.as_str(), self.host.as_str()))
            .insert_header(("user-agent", "drip"))
            // Each check is also one of whether the server takes connections.
            .force_close();
        let answer = request.send().await.map_err(|error| error.to_string())?;
        let status = answer.status();
        if status.is_success() || status.is_redirection() {
            Ok(())
        } else {
            Err(format!("it answered {status}"))
        }
    }
}

/// awc over connections of our own: so it reaches unix sockets and TLS as requests do, by the same
/// addresses and roots. Its flaws as the client of a proxy do no harm here, where only a status
/// counts; of an interim answer, which nobody gives to a health check, it would be the wrong one.
fn client(dialer: &Dialer, server: &ServerUrl, health: &Health) -> Client {
    let (dialer, server) = (dialer.clone(), server.clone());
    let open = fn_service(move |to: ConnectInfo<Uri>| {
        let (dialer, server) = (dialer.clone(), server.clone());
        async move {
            let stream = dialer.open(&server).await;
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
