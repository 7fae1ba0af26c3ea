//! Explains why a certificate is refused, and what to do.
//!
//! Servers and clients present certificates. The texts name their owner, and the field of the
//! configuration that can accept them.

use std::io;
use std::path::Path;

use tokio_rustls::rustls::pki_types::UnixTime;
use tokio_rustls::rustls::{CertificateError, Error};

use super::expiry::timestamp;

/// Error of a TLS connection that failed because of a certificate.
///
/// The message says what is wrong, and in a second sentence what to do.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct CertificateRefused {
    /// Reason and remedy.
    pub message: String,
    /// End of the validity in Unix time, if the certificate has expired.
    pub expired: Option<i64>,
    /// Whether the certificate is the gateway's own, which the server refuses.
    pub is_of_gateway: bool,
}

/// Context for messages about a refused certificate: its owner, and the settings for it.
#[derive(Clone, Copy, Debug)]
pub struct RefusalContext<'a> {
    /// Owner of the certificate: `server` or `client`.
    pub owner: &'static str,
    /// Field that names the file of the authorities.
    pub field: &'static str,
    /// File of the authorities; `None`: the authorities of the system.
    pub ca: Option<&'a Path>,
    /// Certificate that the file may contain instead of its authority, such as `this very
    /// certificate`. Connections then trust it directly.
    pub pinnable: &'static str,
    /// Purpose that a certificate must have, such as `serverAuth`.
    pub purpose: &'static str,
    /// Remedy for a certificate that is for other names; empty if there is none.
    pub name_remedy: &'static str,
}

impl RefusalContext<'_> {
    /// Replaces an error about this certificate by one with a reason and a remedy.
    ///
    /// Returns any other error unchanged.
    pub fn explain(&self, error: io::Error) -> io::Error {
        let source = error.get_ref().and_then(|it| it.downcast_ref::<Error>());
        let Some(Error::InvalidCertificate(why)) = source else {
            return error;
        };
        let Some(message) = self.why(why) else {
            return error;
        };
        let expired = match why {
            CertificateError::ExpiredContext { not_after, .. } => {
                i64::try_from(not_after.as_secs()).ok()
            }
            _ => None,
        };
        let refused = CertificateRefused {
            message,
            expired,
            is_of_gateway: false,
        };
        io::Error::new(error.kind(), refused)
    }

    /// Returns reason and remedy; `None`: the message of the TLS library is good enough.
    pub fn why(&self, error: &CertificateError) -> Option<String> {
        use CertificateError as Why;
        let (owner, field, pinnable) = (self.owner, self.field, self.pinnable);
        Some(match error {
            Why::UnknownIssuer => match self.ca {
                Some(ca) => format!(
                    "the certificate of the {owner} is signed by none of the authorities in {} (UnknownIssuer). Add its authority, or {pinnable}, to that file, and let the {owner} send its intermediate certificates",
                    ca.display()
                ),
                None => format!(
                    "the certificate of the {owner} is signed by none of the system's authorities (UnknownIssuer). Name a file with its authority, or with {pinnable}, in {field}, and let the {owner} send its intermediate certificates"
                ),
            },
            Why::ExpiredContext { time, not_after } => format!(
                "the certificate of the {owner} expired at {}, and the clock says {}. Renew it on the {owner}, and its copy in {field} if there is one",
                show_time(*not_after),
                show_time(*time)
            ),
            Why::NotValidYetContext { time, not_before } => format!(
                "the certificate of the {owner} is not valid before {}, and the clock says {}. Set the clock, or wait",
                show_time(*not_before),
                show_time(*time)
            ),
            Why::NotValidForNameContext {
                expected,
                presented,
            } => {
                let expected = expected.to_str();
                if presented.is_empty() {
                    format!(
                        "the certificate of the {owner} is not valid for {expected}: it has no subjectAltName, and its common name does not count. Make one with subjectAltName"
                    )
                } else {
                    // Each text has a name in quotes, or is an address.
                    let name = |text: &String| text.split('"').nth(1).unwrap_or(text).to_owned();
                    let names = presented.iter().map(name).collect::<Vec<_>>().join(", ");
                    format!(
                        "the certificate of the {owner} is not valid for {expected}, but for {names}. {}",
                        self.name_remedy
                    )
                }
            }
            Why::InvalidPurpose | Why::InvalidPurposeContext { .. } => format!(
                "the certificate of the {owner} is not for {owner}s: its extendedKeyUsage has no {}. Make one that has",
                self.purpose
            ),
            Why::BadSignature => format!(
                "the signature of the {owner}'s certificate or handshake is wrong (BadSignature). An authority in {field} may have a new key under its old name: renew {field}, and see that the {owner} has the key of its certificate"
            ),
            Why::Revoked => {
                format!("the certificate of the {owner} is revoked. Renew it on the {owner}")
            }
            Why::UnknownRevocationStatus => format!(
                "an authority of the {owner}'s certificate has no revocation list (UnknownRevocationStatus). Add the list of each authority to the file in client_crl"
            ),
            Why::ExpiredRevocationList | Why::ExpiredRevocationListContext { .. } => format!(
                "the revocation list of the {owner}'s authority expired (ExpiredRevocationList). Renew it in the file in client_crl"
            ),
            Why::BadEncoding => {
                format!(
                    "the certificate of the {owner} cannot be read (BadEncoding). Make a new one"
                )
            }
            Why::UnhandledCriticalExtension => format!(
                "the certificate of the {owner} has a critical extension that is not known here. Make one without it, or add {pinnable} to {field}"
            ),
            Why::UnsupportedSignatureAlgorithmContext { .. }
            | Why::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => format!(
                "the certificate of the {owner} is signed in a way that is not secure or not known, such as SHA-1 or RSA of less than 2048 bits. Make one with SHA-256 and ECDSA P-256 or RSA 2048"
            ),
            Why::Other(other) => return self.why_other(&other.to_string()),
            _ => return None,
        })
    }

    /// Returns reason and remedy for an error that the TLS library knows only by a name.
    ///
    /// `why`: that name.
    fn why_other(&self, why: &str) -> Option<String> {
        let (owner, field, pinnable) = (self.owner, self.field, self.pinnable);
        let text = match why {
            "CaUsedAsEndEntity" => format!(
                "the {owner} shows a certificate of an authority (CA:TRUE) as its own. Add {pinnable} to the file in {field}, or give the {owner} one with CA:FALSE"
            ),
            "EndEntityUsedAsCa" => format!(
                "a certificate that is not an authority's (CA:FALSE) signed that of the {owner}. Sign it by an authority, or add {pinnable} to the file in {field}"
            ),
            "PathLenConstraintViolated" | "NameConstraintViolation" => format!(
                "the authority of the {owner}'s certificate may not sign it (its pathLenConstraint or nameConstraints). Have it signed by another one, or add {pinnable} to the file in {field}"
            ),
            "UnsupportedCertVersion" => format!(
                "the certificate of the {owner} is of an old version of X.509. Make one of version 3, with subjectAltName"
            ),
            _ => return None,
        };
        Some(format!("{text} ({why})"))
    }
}

/// Returns a time as text, such as `2026-12-01T00:00:00Z`.
fn show_time(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    timestamp(seconds).to_string()
}
