//! The server's certificates: load them, choose one for each client, reload changed files.
//!
//! A *pair* is a certificate file (with its chain) and its key file, both in PEM.

use std::fmt::{self, Display};
use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use config::tls::{Validity, flaw, validity};
use config::{CertPair, read_regular};
use thiserror::Error;
use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;

use super::certificate_facts::dns_names;
use crate::observe::certificates::{CertificateOf, log_expiring, note_certificate, note_problem};

/// Maximum size of a certificate file (with its chain) or of a key file, in bytes.
const MAX_FILE_SIZE: u64 = 1 << 20;

/// Certificates that the gateway presents to clients. They are reloaded when their files change.
pub struct Certificates {
    /// Configured pairs, in the order of the configuration.
    pairs: Vec<CertPair>,
    provider: CryptoProvider,
    /// Certificates in use: one for each pair, in the same order.
    ///
    /// For a client that requests no name, or an unknown name, the first certificate whose key type
    /// the client supports is used.
    in_use: RwLock<Vec<Loaded>>,
}

/// Contents of a pair of files, and the key made from them.
struct Loaded {
    /// Contents of the certificate file and of the key file.
    text: (Vec<u8>, Vec<u8>),
    key: Arc<CertifiedKey>,
    /// DNS names in the certificate.
    names: Vec<Box<str>>,
}

impl Loaded {
    /// Returns whether the certificate contains `name` itself, and not just a wildcard for it.
    fn contains(&self, name: &ServerName<'_>) -> bool {
        match name {
            ServerName::DnsName(name) => {
                let mut names = self.names.iter();
                names.any(|known| known.eq_ignore_ascii_case(name.as_ref()))
            }
            // An IP address has no wildcard.
            _ => true,
        }
    }

    /// Returns the validity period of the certificate, if it can be read.
    fn validity(&self) -> Option<Validity> {
        validity(self.key.cert.first()?)
    }

    /// Publishes the validity of the certificate to the headline, the metrics and the log.
    ///
    /// `pair`: files of the certificate.
    fn publish_validity(&self, pair: &CertPair) {
        if let Some(validity) = self.validity() {
            note_certificate(CertificateOf::Server, &pair_name(pair), validity);
        }
    }

    /// Returns whether the client supports a signature scheme of this key.
    fn is_usable(&self, hello: &ClientHello<'_>) -> bool {
        let schemes = hello.signature_schemes();
        self.key.key.choose_scheme(schemes).is_some()
    }
}

/// Error: a TLS file for client connections cannot be used.
#[derive(Debug, Error)]
#[error("{text}")]
pub struct TlsFileError {
    text: String,
    /// Whether the error concerns the second file of a pair: a key, or the revocation lists.
    pub(crate) is_second: bool,
    /// Whether the directory is missing, too: a volume (a Secret) is probably not mounted.
    pub(crate) is_unmounted: bool,
}

impl TlsFileError {
    pub(super) fn new(file: &Path, why: &dyn Display, is_second: bool) -> Self {
        Self {
            text: format!("{}: {why}", file.display()),
            is_second,
            is_unmounted: false,
        }
    }
}

impl From<TlsFileError> for io::Error {
    fn from(error: TlsFileError) -> Self {
        Self::other(error)
    }
}

impl Certificates {
    /// Reads the files of all pairs.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read or is not PEM, or if a key does not match its
    /// certificate.
    pub fn load(pairs: &[CertPair]) -> Result<Self, TlsFileError> {
        let provider = ring::default_provider();
        let load = |pair| parse_pair(pair, read_pair(pair)?, &provider);
        let loaded = pairs.iter().map(load).collect::<Result<_, _>>()?;
        Ok(Self {
            pairs: pairs.to_vec(),
            in_use: RwLock::new(loaded),
            provider,
        })
    }

    /// Returns the validity period of the first pair's certificate, if it can be read.
    pub(crate) fn first_validity(&self) -> Option<Validity> {
        self.in_use().first()?.validity()
    }

    /// Publishes the validity of all certificates to the headline, the metrics and the log.
    pub fn publish_validity(&self) {
        for (pair, loaded) in self.pairs.iter().zip(&*self.in_use()) {
            loaded.publish_validity(pair);
        }
    }

    /// Watches the files and loads renewed certificates.
    ///
    /// If a new key does not match its new certificate, the old certificate stays in use. Perhaps
    /// only one of the two files is written yet.
    pub async fn follow(self: Arc<Self>) {
        let renew = move || self.renew();
        follow_files("the current certificate stays in use", renew).await;
    }

    /// Reloads the pairs whose files changed. Returns the problem of the last pair that has one.
    fn renew(&self) -> Result<(), TlsFileError> {
        let mut last_problem = Ok(());
        for (index, pair) in self.pairs.iter().enumerate() {
            let renewed = self.renew_pair(index, pair);
            let problem = renewed.as_ref().err().map(ToString::to_string);
            note_problem(CertificateOf::Server, &pair_name(pair), problem.as_deref());
            // `and` returns the earlier problem if this pair has none.
            last_problem = renewed.and(last_problem);
        }
        last_problem
    }

    /// Reloads a pair if its files changed. `index`: its index among the pairs.
    fn renew_pair(&self, index: usize, pair: &CertPair) -> Result<(), TlsFileError> {
        let text = read_pair(pair)?;
        let is_same = |loaded: &Loaded| loaded.text == text;
        if self.in_use().get(index).is_some_and(is_same) {
            return Ok(());
        }
        let renewed = parse_pair(pair, text, &self.provider)?;
        renewed.publish_validity(pair);
        let in_use = self.in_use.write();
        in_use.unwrap_or_else(PoisonError::into_inner)[index] = renewed;
        tracing::info!(cert = %pair.cert.display(), "certificate renewed: new connections get it");
        Ok(())
    }

    /// Returns the certificates in use.
    fn in_use(&self) -> RwLockReadGuard<'_, Vec<Loaded>> {
        self.in_use.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let in_use = self.in_use();
        // A trailing dot names the same host.
        let name = hello.server_name();
        let name = name.map(|name| name.strip_suffix('.').unwrap_or(name));
        let name = name.and_then(|name| ServerName::try_from(name).ok());
        // Tuples compare element by element, and true is greater than false.
        let rank = |loaded: &&Loaded| {
            let valid_name = name.as_ref().filter(|name| is_valid_for(&loaded.key, name));
            // Clients reject a certificate for another name, whatever its key type.
            let is_valid = valid_name.is_some();
            let is_exact = valid_name.is_some_and(|name| loaded.contains(name));
            (is_valid, loaded.is_usable(&hello), is_exact)
        };
        // `max_by_key` returns the last of several maxima. The order is reversed, so that the first
        // configured one wins.
        let best = in_use.iter().rev().max_by_key(rank);
        best.map(|loaded| Arc::clone(&loaded.key))
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key is secret.
        f.write_str("Certificates")
    }
}

/// Returns the name of a pair in logs and metrics: the path of its certificate.
fn pair_name(pair: &CertPair) -> String {
    pair.cert.display().to_string()
}

/// Returns whether the certificate is valid for `name`.
fn is_valid_for(key: &CertifiedKey, name: &ServerName<'_>) -> bool {
    let cert = key.end_entity_cert().and_then(ParsedCertificate::try_from);
    cert.is_ok_and(|cert| verify_server_name(&cert, name).is_ok())
}

/// Reads both files of a pair. Returns the contents of the certificate file and of the key file.
fn read_pair(pair: &CertPair) -> Result<(Vec<u8>, Vec<u8>), TlsFileError> {
    let read = |file: &Path, is_key| {
        read_regular(file, MAX_FILE_SIZE).map_err(|error| TlsFileError {
            is_unmounted: error.kind() == io::ErrorKind::NotFound
                && file.parent().is_some_and(|folder| !folder.exists()),
            ..TlsFileError::new(file, &error, is_key)
        })
    };
    Ok((read(&pair.cert, false)?, read(&pair.key, true)?))
}

/// Parses the contents of both files, and checks that the key matches the certificate.
fn parse_pair(
    pair: &CertPair,
    text: (Vec<u8>, Vec<u8>),
    provider: &CryptoProvider,
) -> Result<Loaded, TlsFileError> {
    let (certificate_pem, key_pem) = &text;
    let wrong_cert = |why: &dyn Display| TlsFileError::new(&pair.cert, why, false);
    let no_certificate = |why| wrong_cert(&format!("no certificate in PEM: {why}"));
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate_pem).collect();
    let chain = match chain {
        Ok(chain) if chain.is_empty() => return Err(no_certificate(pem::Error::NoItemsFound)),
        chain => chain.map_err(no_certificate)?,
    };
    if let Some(why) = chain.first().and_then(flaw) {
        return Err(wrong_cert(&why));
    }
    let names = chain.first().map(|first| dns_names(first));
    let wrong_key = |why: &dyn Display| TlsFileError::new(&pair.key, why, true);
    let private = PrivateKeyDer::from_pem_slice(key_pem)
        .map_err(|why| wrong_key(&format!("no private key in PEM: {why}")))?;
    let key = CertifiedKey::from_der(chain, private, provider).map_err(|why| {
        let (key, cert) = (pair.key.display(), pair_name(pair));
        TlsFileError {
            text: format!("{key} is not the key of {cert}: {why}"),
            ..wrong_key(&why)
        }
    })?;
    Ok(Loaded {
        text,
        key: Arc::new(key),
        names: names.unwrap_or_default(),
    })
}

/// Interval between checks of the files.
const CHECK_EVERY: Duration = Duration::from_secs(2);

/// Calls `renew` every [`CHECK_EVERY`], forever. `renew` reloads the files if they changed.
///
/// Each problem is logged once. `consequence` ends the log message: it says what stays in use.
pub(super) async fn follow_files<E: ToString + Send + 'static>(
    consequence: &str,
    renew: impl Fn() -> Result<(), E> + Clone + Send + 'static,
) {
    let mut last_problem = None;
    loop {
        tokio::time::sleep(CHECK_EVERY).await;
        let Ok(renewed) = tokio::task::spawn_blocking(renew.clone()).await else {
            continue;
        };
        let problem = renewed.err().map(|error| error.to_string());
        if let Some(new) = problem.as_ref().filter(|_| problem != last_problem) {
            tracing::error!("server.tls: {new}; {consequence}");
        }
        last_problem = problem;
        log_expiring();
    }
}
