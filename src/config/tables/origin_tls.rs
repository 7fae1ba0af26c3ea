//! TLS connections to an origin: the fields `ca`, `client_cert`, `client_key` and `server_name`.
//!
//! The files are read here, with the configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::sign::CertifiedKey;

use super::prelude::*;
use crate::tls::{Authorities, Validity, flaw, unix_now, validity};
use crate::{FileKind, OriginServer};

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

/// Maximum size of a file, in bytes.
const MAX_FILE_SIZE: u64 = 32 << 20;

/// Reads the fields of an origin with these servers. A wrong field counts as missing.
pub(super) fn read(fields: &mut Fields, servers: &[OriginServer]) -> OriginTls {
    let ca = fields.get("ca");
    let (certificate, key) = (fields.get("client_cert"), fields.get("client_key"));
    let name = fields.get("server_name");
    if !fields.is_wrong("servers") && !servers.iter().any(|server| server.url.is_encrypted()) {
        for node in [ca, certificate, key, name].into_iter().flatten() {
            node.report_as_is(
                "no server of this origin has TLS; begin its URL with https://, or remove this",
            );
        }
        return OriginTls::default();
    }
    OriginTls {
        authorities: ca.and_then(|node| read_authorities(node, FileKind::OriginTls)),
        identity: match (certificate, key) {
            (Some(certificate), Some(key)) => read_identity(certificate, key),
            (Some(node), None) => {
                node.refuse_as_is("a certificate needs its key; add client_key = \"client.key\"")
            }
            (None, Some(node)) => {
                node.refuse_as_is("a key needs its certificate; add client_cert = \"client.pem\"")
            }
            (None, None) => None,
        },
        server_name: name.and_then(read_server_name),
    }
}

/// Reads a file with the certificates of authorities.
pub(super) fn read_authorities(node: Node, kind: FileKind) -> Option<Authorities> {
    let (file, pem) = read_file(node, kind, "ca.pem")?;
    let certificates = read_certificates(node, &file, &pem)?;
    let mut roots = RootCertStore::empty();
    for certificate in &certificates {
        if let Err(error) = roots.add(certificate.clone()) {
            return node.refuse_as_is(&format!("{}: {error}", node.show_path(&file)));
        }
    }
    Some(Authorities {
        file,
        roots: Arc::new(roots),
        certificates: certificates.into(),
    })
}

/// Reads the gateway's certificate and its key, and checks that they match.
fn read_identity(certificate: Node, key_node: Node) -> Option<ClientIdentity> {
    // Reads both files first, so that one problem does not hide the other.
    let chain_pem = read_file(certificate, FileKind::OriginTls, "client.pem");
    let key_pem = read_file(key_node, FileKind::OriginTls, "client.key");
    let (certificate_file, chain_pem) = chain_pem?;
    let (key_file, key_pem) = key_pem?;
    let (shown_chain, shown_key) = (
        certificate.show_path(&certificate_file),
        key_node.show_path(&key_file),
    );
    let chain = read_certificates(certificate, &certificate_file, &chain_pem);
    let key = PrivateKeyDer::from_pem_slice(&key_pem).ok();
    let key =
        key.or_else(|| key_node.refuse_as_is(&format!("{shown_key} has no private key in PEM")));
    let chain = chain?;
    if let Some(problem) = chain.first().and_then(flaw) {
        return certificate.refuse_as_is(&format!("{shown_chain}: {problem}"));
    }
    let key = key?;
    let provider = ring::default_provider();
    let signing_key = provider.key_provider.load_private_key(key.clone_key());
    let result = signing_key.and_then(|key| CertifiedKey::new(chain.clone(), key).keys_match());
    if let Err(error) = result {
        return key_node.refuse_as_is(&format!(
            "{shown_key} is not the key of {shown_chain}: {error}"
        ));
    }
    let validity = chain.first().and_then(|own| validity(own));
    if let Some(warning) = validity.and_then(|validity| validity.warning(unix_now())) {
        certificate.warn(&format!("the certificate {warning}"));
    }
    Some(ClientIdentity {
        validity,
        certificate_file,
        key_file,
        chain: chain.into(),
        key: Arc::new(key),
    })
}

/// Reads a file, and returns its path and its content. Messages show `example`, a file name.
fn read_file(node: Node, kind: FileKind, example: &str) -> Option<(PathBuf, Vec<u8>)> {
    let what = format!("the name of a PEM file such as \"{example}\"");
    let path = values::named_file(node, kind, &what)?;
    let pem = values::content(node, &path, MAX_FILE_SIZE, "")?;
    Some((path, pem))
}

/// Reads the certificates in a PEM file; at least one.
fn read_certificates(node: Node, file: &Path, pem: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let wrong = match found {
        Ok(found) if !found.is_empty() => return Some(found),
        Ok(_) => "it has no certificate in PEM".to_owned(),
        Err(error) => error.to_string(),
    };
    node.refuse_as_is(&format!("{}: {wrong}", node.show_path(file)))
}

/// Reads `server_name`.
fn read_server_name(node: Node) -> Option<ServerName<'static>> {
    let text = node.value.as_str();
    let name = text.and_then(|text| ServerName::try_from(text.to_owned()).ok());
    name.or_else(|| node.report_expected("a name or an address such as \"app.internal\""))
}
