//! TLS to the servers of an origin.

use std::path::PathBuf;
use std::sync::Arc;

use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};

use crate::tls::{Authorities, Validity};

/// What is special about TLS to the servers of an origin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OriginTls {
    /// Who signs their certificates; `None`: the system's authorities.
    pub authorities: Option<Authorities>,
    /// What the gateway shows; `None`: nothing.
    pub identity: Option<ClientIdentity>,
    /// The name that is asked for and that their certificates are for; `None`: that of their URL.
    pub server_name: Option<ServerName<'static>>,
}

impl OriginTls {
    /// When the certificate that the gateway shows is valid; `None`: it shows none.
    pub fn own_validity(&self) -> Option<Validity> {
        self.identity.as_ref()?.validity
    }
}

/// A certificate that the gateway shows, and its key.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientIdentity {
    /// The absolute path of the certificate.
    pub certificate_file: PathBuf,
    /// The absolute path of the key.
    pub key_file: PathBuf,
    /// The certificate, and those that lead to its authority.
    pub chain: Arc<[CertificateDer<'static>]>,
    /// The key of the first one.
    pub key: Arc<PrivateKeyDer<'static>>,
    /// When the first one is valid; `None`: it does not say.
    pub validity: Option<Validity>,
}
