//! Settings of TLS connections to the servers of an origin.

use std::path::PathBuf;
use std::sync::Arc;

use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};

use crate::tls::{Authorities, Validity};

/// Settings of TLS connections to the servers of an origin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OriginTls {
    /// Authorities that sign the servers' certificates; `None`: the system's authorities.
    pub authorities: Option<Authorities>,
    /// Certificate that the gateway presents; `None`: no certificate.
    pub identity: Option<ClientIdentity>,
    /// Server name that is requested and verified; `None`: the host of the URL.
    pub server_name: Option<ServerName<'static>>,
}

impl OriginTls {
    /// Returns the validity of the gateway's certificate; `None` without a certificate.
    pub fn own_validity(&self) -> Option<Validity> {
        self.identity.as_ref()?.validity
    }
}

/// Certificate that the gateway presents, and its key.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientIdentity {
    /// Absolute path of the certificate.
    pub certificate_file: PathBuf,
    /// Absolute path of the key.
    pub key_file: PathBuf,
    /// The certificate, followed by its chain.
    pub chain: Arc<[CertificateDer<'static>]>,
    /// Key of the first certificate.
    pub key: Arc<PrivateKeyDer<'static>>,
    /// Validity of the first certificate; `None`: unreadable.
    pub validity: Option<Validity>,
}
