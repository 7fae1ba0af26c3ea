//! Certificates that expire at a given time, servers that present them, and verifying clients.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned,
};

use super::servers::answer_once;
use crate::support::Origin;
use crate::support::client_certificates::Authority;

pub const NAME: &str = "a.test";

/// 2020-01-02, in Unix time.
pub const LONG_AGO: u64 = 1_577_923_200;

/// Returns the Unix time `days` from now, plus an hour so that rounding down gives `days`.
pub fn in_days(days: u64) -> u64 {
    let now = u64::try_from(Timestamp::now().as_second()).expect("after 1970");
    now + days * 86_400 + 3_600
}

/// Formats the date of a Unix time: `2020-01-02`.
pub fn date(unix: u64) -> String {
    let unix = i64::try_from(unix).expect("this age");
    let at = Timestamp::from_second(unix).expect("a time");
    at.strftime("%Y-%m-%d").to_string()
}

/// Creates a certificate for [`NAME`] that expires at `not_after` (Unix time), and its key.
pub fn pair(authority: &Authority, not_after: u64) -> (CertificateDer<'static>, String, KeyPair) {
    let at = |seconds| date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds);
    let mut params = CertificateParams::new(vec![NAME.to_owned()]).expect("a name");
    (params.not_before, params.not_after) = (at(0), at(not_after));
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, authority).expect("a certificate");
    (certificate.der().clone(), certificate.pem(), key)
}

/// Writes such a pair: `a.pem` and `a.key`.
pub fn write_pair(folder: &Path, authority: &Authority, not_after: u64) {
    let (_, pem, key) = pair(authority, not_after);
    fs::write(folder.join("a.pem"), pem).expect("a file");
    fs::write(folder.join("a.key"), key.serialize_pem()).expect("a file");
}

/// Writes `NAME.pem`: an authority that expired long ago.
pub fn write_expired_authority(folder: &Path, name: &str) {
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_after = date_time_ymd(1970, 1, 1) + Duration::from_secs(LONG_AGO);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(params, key).expect("a certificate");
    fs::write(folder.join(format!("{name}.pem")), authority.pem()).expect("a file");
}

/// An origin over TLS whose certificate can change. Each request makes a new handshake.
pub struct TlsOrigin {
    pub origin: Origin,
    shown: Arc<Shown>,
}

#[derive(Debug)]
struct Shown(Mutex<Arc<CertifiedKey>>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.lock().expect("no panic")))
    }
}

impl TlsOrigin {
    /// Starts the origin. `asks`: requests certificates of `authority` from its clients.
    pub fn start(authority: &Authority, not_after: u64, asks: bool) -> Self {
        let mut clients = WebPkiClientVerifier::no_client_auth();
        if asks {
            let provider = ring::default_provider().into();
            let roots = Arc::new(roots(authority));
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
            clients = verifier.build().expect("a verifier");
        }
        let shown = Arc::new(Shown(Mutex::new(certified(authority, not_after))));
        let resolver = Arc::clone(&shown) as Arc<dyn ResolvesServerCert>;
        let config = ServerConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_client_cert_verifier(clients)
            .with_cert_resolver(resolver);
        let origin = Origin::with_tls("127.0.0.1:0", Arc::new(config), answer_once);
        Self { origin, shown }
    }

    /// Presents another certificate from now on.
    pub fn show(&self, authority: &Authority, not_after: u64) {
        *self.shown.0.lock().expect("no panic") = certified(authority, not_after);
    }
}

fn certified(authority: &Authority, not_after: u64) -> Arc<CertifiedKey> {
    let (certificate, _, key) = pair(authority, not_after);
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    let key = ring::sign::any_supported_type(&key.into()).expect("a key");
    Arc::new(CertifiedKey::new(vec![certificate], key))
}

fn roots(authority: &Authority) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).expect("a root");
    roots
}

/// Returns a client that trusts only `authority`. It never resumes a session, which skips checks.
pub fn verifying(authority: &Authority) -> Arc<ClientConfig> {
    let mut config = ClientConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots(authority))
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    Arc::new(config)
}

/// Sends one request over TLS.
pub fn fetch(config: &Arc<ClientConfig>, to: SocketAddr) -> io::Result<String> {
    let tcp = TcpStream::connect(to)?;
    tcp.set_read_timeout(Some(Duration::from_secs(10)))?;
    let name = ServerName::try_from(NAME).map_err(io::Error::other)?;
    let tls = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(tls, tcp);
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
