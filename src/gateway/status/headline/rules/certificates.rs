//! Certificates that expire, have expired, or whose changed files are not in force.
//!
//! Of an origin's certificate that has expired, the rules of origins say more: its requests fail.

use config::tls::{date, expiry};

use super::super::finding::{Cause, Finding, Severity};
use super::super::recent::Recent;
use super::super::words::{sentence, whole};
use crate::observe::certificates::CertificateOf;
use crate::status::views::{CertificateSample, Sample};

/// What is wrong with each certificate.
pub(super) fn certificates(recent: &Recent<'_>, now: &Sample) -> Vec<Finding> {
    let mut found = Vec::new();
    for it in &now.certificates {
        found.extend(not_in_force(it));
        found.extend(validity(recent, it, unix(now)));
    }
    found
}

/// The time of a sample, in whole seconds.
#[expect(clippy::cast_possible_truncation, reason = "a time of this age")]
fn unix(now: &Sample) -> i64 {
    now.time as i64
}

/// The changed files cannot be used.
fn not_in_force(it: &CertificateSample) -> Option<Finding> {
    let problem = it.problem.as_ref()?;
    let (name, expires) = (&it.name, date(it.expires));
    let (what, remedy) = match it.of {
        CertificateOf::ClientCa => (
            "The changed authorities or revocation lists of clients",
            "Write the files of `client_ca` and `client_crl` again; they are read every 2 s.",
        ),
        _ => (
            "The renewed certificate",
            "Write both files, the certificate and its key; they are read every 2 s.",
        ),
    };
    Some(Finding {
        title: format!("{what} in {name} cannot be used; the old one stays in use"),
        evidence: format!(
            "{} The old one expires on {expires}.",
            sentence(problem.as_str())
        ),
        remedy: remedy.to_owned(),
        ..Finding::new(Cause::Certificate, Severity::Warn)
    })
}

/// It is not valid yet, expires soon or has expired.
fn validity(recent: &Recent<'_>, it: &CertificateSample, now: i64) -> Option<Finding> {
    let CertificateSample {
        of, name, expires, ..
    } = it;
    let finding = |severity| Finding {
        weight: weight(expires - now),
        ..Finding::new(Cause::Certificate, severity)
    };
    let has_expired = *expires < now;
    if it.from > now && *of == CertificateOf::Server {
        return Some(Finding {
            title: format!(
                "The certificate {name} is not valid before {}",
                date(it.from)
            ),
            evidence: format!("Clients refuse it until then{}.", refused(recent)),
            remedy: "Set the clock, or name a certificate that is valid now.".to_owned(),
            ..finding(Severity::Bad)
        });
    }
    let words = expiry(*expires, now)?;
    match of {
        CertificateOf::Server => Some(Finding {
            title: if has_expired {
                format!("The certificate {name} {words}{}", refused(recent))
            } else {
                format!("The certificate {name} {words}")
            },
            evidence: if has_expired {
                "Clients that verify it cannot connect.".to_owned()
            } else {
                "Clients refuse it from then on.".to_owned()
            },
            remedy: "Renew it and its key: saved files are in force within 2 s.".to_owned(),
            ..finding(Severity::bad_if(has_expired))
        }),
        CertificateOf::ClientCa => Some(Finding {
            title: format!("An authority of clients in {name} {words}"),
            evidence: "The file is in `client_ca`. From then on, a client that shows this very certificate is refused."
                .to_owned(),
            remedy: "Renew the authority, and write its new certificate to the file before clients get certificates of it."
                .to_owned(),
            ..finding(Severity::Warn)
        }),
        CertificateOf::Origin if has_expired => None,
        CertificateOf::Origin => Some(Finding {
            about: Some(name.clone()),
            title: format!("The certificate of origin {name} {words}"),
            evidence: "Requests to it get 502 from then on.".to_owned(),
            remedy: format!("Renew it at the servers of {name}."),
            ..finding(Severity::Warn)
        }),
        CertificateOf::ClientCert => Some(Finding {
            about: Some(name.clone()),
            title: format!("The certificate that the gateway shows to origin {name} {words}"),
            evidence: "Servers that verify it refuse connections from then on.".to_owned(),
            remedy: format!("Renew the files of `client_cert` and `client_key` of {name}: saved files are in force within seconds."),
            ..finding(Severity::bad_if(has_expired))
        }),
    }
}

/// The nearest end is the heaviest.
#[expect(clippy::cast_precision_loss, reason = "seconds of this age")]
fn weight(left: i64) -> f64 {
    -(left as f64)
}

/// How many handshakes failed because clients refuse the certificate; empty if none did.
fn refused(recent: &Recent<'_>) -> String {
    let failed = recent.of_process(|it| it.handshakes.refused);
    let all = recent.of_process(|it| it.handshakes.done + it.handshakes.failed);
    if failed == 0 {
        return String::new();
    }
    format!(
        ": {} of {} handshakes failed in the last {:.0} s",
        whole(failed),
        whole(all),
        recent.seconds()
    )
}
