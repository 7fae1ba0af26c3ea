//! TLS of the listening addresses, and logs of connections that fail before a request.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use config::{ClientAuth, ListenService, Server};
use tokio_rustls::rustls::{AlertDescription, Error, InvalidMessage, PeerMisbehaved};

use crate::http::downstream::{Certificates, HandshakeError, ProxyHeaderError, TlsServer};
use crate::observe::metrics::{HandshakeFailure, count_handshake_failure};
use crate::observe::throttle::Throttle;
use crate::time::clock;

/// Builds the TLS of each address for clients; `None` for an address without TLS.
///
/// Also starts the tasks that reload renewed certificates.
pub(super) fn tls_servers(server: &Server) -> io::Result<Vec<Option<TlsServer>>> {
    let explain = |error: &dyn Display| io::Error::other(format!("server.tls: {error}"));
    let Some(tls) = &server.tls else {
        return Ok(server.listen.iter().map(|_| None).collect());
    };
    let certificates = Arc::new(Certificates::load(&tls.pairs).map_err(|error| explain(&error))?);
    // The headline, the metrics and the log report when they expire.
    certificates.publish_validity();
    actix_rt::spawn(Arc::clone(&certificates).follow());
    // Addresses that check client certificates in the same way share a `TlsServer`.
    let mut started: Vec<(Option<&ClientAuth>, TlsServer)> = Vec::new();
    let servers = server.listen.iter().map(|listen| {
        let clients = listen.client_auth.as_ref();
        if listen.service != ListenService::Tls {
            return Ok(None);
        }
        if let Some((_, same)) = started.iter().find(|(auth, _)| *auth == clients) {
            return Ok(Some(same.clone()));
        }
        let new = TlsServer::new(Arc::clone(&certificates), clients.cloned());
        let new = new.map_err(|error| explain(&error))?;
        actix_rt::spawn(new.clone().follow());
        started.push((clients, new.clone()));
        Ok(Some(new))
    });
    servers.collect()
}

/// Counts and logs the reason of a failed handshake.
///
/// Each kind of reason is logged at most once a second. A client that speaks TLS and gets no
/// connection is logged at level `info`. Scans, and clients that disconnect or send other data, are
/// logged at level `debug`.
pub(super) fn log_failed_handshake(client: Option<SocketAddr>, error: &HandshakeError) {
    // `hidden` is the number of such lines since the last one that was logged.
    static REFUSALS: Throttle = Throttle::new();
    static OTHERS: Throttle = Throttle::new();
    let reason = failure_reason(error);
    count_handshake_failure(reason);
    let speaks_tls = matches!(
        error,
        HandshakeError::Tls(Error::AlertReceived(_) | Error::PeerMisbehaved(_))
    );
    let now = clock::now();
    let client = client.map(tracing::field::display);
    if reason != HandshakeFailure::Other || speaks_tls {
        if let Some(hidden) = REFUSALS.show(now) {
            tracing::info!(client, %error, hidden, "a TLS handshake failed");
        }
    } else if let Some(hidden) = OTHERS.show(now) {
        tracing::debug!(client, %error, hidden, "a TLS handshake failed");
    }
}

/// Returns the reason of a failed handshake, for the metrics.
fn failure_reason(error: &HandshakeError) -> HandshakeFailure {
    use AlertDescription as Alert;
    use HandshakeFailure as Reason;
    let error = match error {
        HandshakeError::NoCertificate => return Reason::NoCertificate,
        HandshakeError::Certificate(_) => return Reason::ClientCertificate,
        HandshakeError::Tls(error) => error,
        HandshakeError::TimedOut | HandshakeError::Connection(_) => return Reason::Other,
    };
    match error {
        Error::AlertReceived(Alert::CertificateExpired) => Reason::Expired,
        Error::AlertReceived(
            Alert::UnknownCA
            | Alert::BadCertificate
            | Alert::CertificateUnknown
            | Alert::CertificateRevoked
            | Alert::UnsupportedCertificate,
        ) => Reason::Untrusted,
        Error::NoCertificatesPresented => Reason::NoCertificate,
        Error::InvalidCertificate(_) => Reason::ClientCertificate,
        Error::InvalidMessage(InvalidMessage::InvalidServerName)
        | Error::PeerMisbehaved(PeerMisbehaved::ServerNameMustContainOneHostName) => {
            Reason::ServerName
        }
        Error::PeerIncompatible(_)
        | Error::NoApplicationProtocol
        | Error::AlertReceived(
            Alert::HandshakeFailure | Alert::ProtocolVersion | Alert::InsufficientSecurity,
        ) => Reason::Incompatible,
        _ => Reason::Other,
    }
}

/// Logs why a connection without the required PROXY protocol header is closed.
///
/// Each kind of reason is logged at most once a second. Connections without any data are health
/// checks, and are logged at level `debug`.
pub(super) fn log_no_header(peer: Option<SocketAddr>, error: &ProxyHeaderError) {
    static REFUSALS: Throttle = Throttle::new();
    static OTHERS: Throttle = Throttle::new();
    let now = clock::now();
    // A peer without an address is at the other end of a socket file.
    let peer = peer.map_or_else(|| "unix:".to_owned(), |address| address.to_string());
    let has_sent_nothing = matches!(
        error,
        ProxyHeaderError::Unsent | ProxyHeaderError::Connection(_)
    );
    if has_sent_nothing {
        if let Some(hidden) = OTHERS.show(now) {
            tracing::debug!(peer, %error, hidden, "a connection ended before the PROXY protocol");
        }
    } else if let Some(hidden) = REFUSALS.show(now) {
        tracing::warn!(
            peer,
            %error,
            hidden,
            "a connection is closed, as it does not begin with a valid header of the PROXY \
             protocol; make the peer send it, or take the peer out of proxy_protocol"
        );
    }
}
