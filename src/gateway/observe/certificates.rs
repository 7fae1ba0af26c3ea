//! Certificates in force for TLS with clients, and the log lines about their expiry.
//!
//! The process has one list of the certificates that its file names for TLS with clients.
//! `http::downstream` fills it; the headline, the metrics and the log read it. The certificates of
//! origins are in `origin`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use config::tls::{DAY, Validity, unix_now};

use crate::observe::metrics::labels;

labels! {
    /// Owner of a certificate.
    #[derive(Default, PartialOrd, Ord)]
    pub enum CertificateOf {
        /// The gateway, as a server for clients.
        #[default]
        Server = "server",
        /// An authority in `client_ca`.
        ClientCa = "client_ca",
        /// A server of an origin.
        Origin = "origin",
        /// The gateway, as a client of an origin's servers.
        ClientCert = "client_cert",
    }
}

/// A certificate in force.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Certificate {
    /// Owner of the certificate.
    pub of: CertificateOf,
    /// File of the certificate, or name of the origin.
    pub name: String,
    /// Validity; of several certificates in one file, of the one that expires first.
    pub validity: Validity,
    /// Reason why the changed file is not in force.
    pub problem: Option<String>,
}

/// A certificate whose expiry is logged.
struct LoggedCertificate {
    certificate: Certificate,
    /// Last log line about its expiry; `None`: none since the certificate changed.
    logged: Option<LoggedExpiry>,
}

/// Log line about the expiry of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LoggedExpiry {
    /// Unix time of the line, in seconds.
    at: i64,
    /// Whether the certificate was valid then.
    was_valid: bool,
}

/// Certificates in force.
static KNOWN: Mutex<Vec<LoggedCertificate>> = Mutex::new(Vec::new());

/// Locks the list of certificates.
fn known() -> MutexGuard<'static, Vec<LoggedCertificate>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LoggedCertificate {
    /// Returns whether this is the certificate of a file.
    fn is_of(&self, owner: CertificateOf, name: &str) -> bool {
        self.certificate.of == owner && self.certificate.name == name
    }
}

/// Records the certificate in force, and that its file has no problem.
///
/// The file is checked before the gateway starts, which logs a warning. So the first certificate of
/// a file is logged a day later, a changed one at once.
pub fn note_certificate(of: CertificateOf, name: &str, validity: Validity) {
    let mut list = known();
    if let Some(known) = list.iter_mut().find(|known| known.is_of(of, name)) {
        known.certificate.problem = None;
        if known.certificate.validity != validity {
            known.certificate.validity = validity;
            known.logged = None;
        }
    } else {
        let at = unix_now();
        list.push(LoggedCertificate {
            certificate: Certificate {
                of,
                name: name.to_owned(),
                validity,
                problem: None,
            },
            logged: Some(LoggedExpiry {
                at,
                was_valid: validity.is_valid(at),
            }),
        });
    }
}

/// Records why a changed file is not in force, or that it has no problem.
pub fn note_problem(of: CertificateOf, name: &str, problem: Option<&str>) {
    let mut list = known();
    if let Some(known) = list.iter_mut().find(|known| known.is_of(of, name)) {
        known.certificate.problem = problem.map(str::to_owned);
    }
}

/// Returns whether any certificate is in force.
pub fn has_known_certificates() -> bool {
    !known().is_empty()
}

/// Returns the certificates in force, in the order in which they were recorded.
pub fn known_certificates() -> Vec<Certificate> {
    let known = known();
    known.iter().map(|it| it.certificate.clone()).collect()
}

/// Logs certificates that are not valid or expire soon: once a day, and when one changes.
pub fn log_expiring() {
    let now = unix_now();
    for LoggedCertificate {
        certificate,
        logged,
    } in known().iter_mut()
    {
        let Some(warning) = certificate.validity.warning(now) else {
            continue;
        };
        let is_valid = certificate.validity.is_valid(now);
        let is_current = |line: &LoggedExpiry| now - line.at < DAY && line.was_valid == is_valid;
        if logged.as_ref().is_some_and(is_current) {
            continue;
        }
        *logged = Some(LoggedExpiry {
            at: now,
            was_valid: is_valid,
        });
        let (of, file) = (certificate.of.label(), certificate.name.as_str());
        if is_valid {
            tracing::warn!(of, file, "the certificate {warning}");
        } else {
            tracing::error!(of, file, "the certificate {warning}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_known_until_the_file_is_in_force() {
        let name = "a file of this test alone";
        let find = || {
            let mut certificates = known_certificates().into_iter();
            certificates.find(|certificate| certificate.name == name)
        };
        let validity = |to| Validity { from: 0, to };
        note_problem(CertificateOf::Server, name, Some("unknown"));
        assert!(find().is_none());
        note_certificate(CertificateOf::Server, name, validity(1));
        note_problem(CertificateOf::Server, name, Some("not its key"));
        let problem = find().and_then(|it| it.problem);
        assert_eq!(problem.as_deref(), Some("not its key"));
        note_certificate(CertificateOf::Server, name, validity(2));
        let known = find().expect("it is known");
        assert_eq!((known.problem, known.validity.to), (None, 2));
        let logged = || {
            let all = super::known();
            let known = all.iter().find(|it| it.certificate.name == name);
            known.and_then(|it| it.logged)
        };
        assert_eq!(logged(), None);
        log_expiring();
        assert!(logged().is_some());
    }
}
