//! Certificates in force for TLS with clients.
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

/// A certificate file that is in force.
#[derive(Clone, Debug)]
pub struct KnownCertificate {
    /// Owner of the certificate.
    pub of: CertificateOf,
    /// The file.
    pub name: String,
    /// Validity; of several certificates in one file, of the one that expires first.
    pub validity: Validity,
    /// Reason why the changed file is not in force.
    pub problem: Option<String>,
    /// Time of the last log line about an expiry, and whether the certificate was valid then.
    logged: Option<(i64, bool)>,
}

/// Certificates in force.
static KNOWN: Mutex<Vec<KnownCertificate>> = Mutex::new(Vec::new());

/// Locks the list of certificates.
fn known() -> MutexGuard<'static, Vec<KnownCertificate>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records the certificate in force, and that its file has no problem.
///
/// The file is checked before the gateway starts, which logs a warning. So the first certificate of
/// a file is logged a day later, a changed one at once.
pub fn note_certificate(of: CertificateOf, name: &str, validity: Validity) {
    let mut all = known();
    if let Some(it) = all.iter_mut().find(|it| it.of == of && it.name == name) {
        it.problem = None;
        if it.validity != validity {
            (it.validity, it.logged) = (validity, None);
        }
    } else {
        let now = unix_now();
        all.push(KnownCertificate {
            of,
            name: name.to_owned(),
            validity,
            problem: None,
            logged: Some((now, validity.is_valid(now))),
        });
    }
}

/// Records why a changed file is not in force, or that it has no problem.
pub fn note_problem(of: CertificateOf, name: &str, problem: Option<&str>) {
    let mut all = known();
    if let Some(it) = all.iter_mut().find(|it| it.of == of && it.name == name) {
        it.problem = problem.map(str::to_owned);
    }
}

/// Returns whether any certificate is in force.
pub fn has_known_certificates() -> bool {
    !known().is_empty()
}

/// Returns the certificates in force, in the order in which they were recorded.
pub fn known_certificates() -> Vec<KnownCertificate> {
    known().clone()
}

/// Logs certificates that are not valid or expire soon: once a day, and when one changes.
pub fn log_expiring() {
    let now = unix_now();
    for it in known().iter_mut() {
        let Some(words) = it.validity.warning(now) else {
            continue;
        };
        let is_valid = it.validity.is_valid(now);
        let is_known = |(at, was): (i64, bool)| now - at < DAY && was == is_valid;
        if it.logged.is_some_and(is_known) {
            continue;
        }
        it.logged = Some((now, is_valid));
        let (of, file) = (it.of.label(), it.name.as_str());
        if is_valid {
            tracing::warn!(of, file, "the certificate {words}");
        } else {
            tracing::error!(of, file, "the certificate {words}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_known_until_the_file_is_in_force() {
        let name = "a file of this test alone";
        let of_test = || {
            let all = known_certificates();
            all.into_iter().find(|it| it.name == name)
        };
        let validity = |to| Validity { from: 0, to };
        note_problem(CertificateOf::Server, name, Some("unknown"));
        assert!(of_test().is_none());
        note_certificate(CertificateOf::Server, name, validity(1));
        note_problem(CertificateOf::Server, name, Some("not its key"));
        let problem = of_test().and_then(|it| it.problem);
        assert_eq!(problem.as_deref(), Some("not its key"));
        note_certificate(CertificateOf::Server, name, validity(2));
        let known = of_test().expect("it is known");
        assert_eq!((known.problem, known.validity.to), (None, 2));
        assert_eq!(known.logged, None);
        log_expiring();
        assert!(of_test().is_some_and(|it| it.logged.is_some()));
    }
}
