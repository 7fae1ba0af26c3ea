//! Rule of the headline for certificates that expire, or whose changed files cannot be used.
//!
//! The rules of origins report an origin whose certificate has expired, because its requests fail.

use config::tls::date;

use crate::observe::certificates::{Certificate, CertificateOf};
use crate::status::headline::finding::{Cause, Finding, Severity};
use crate::status::headline::recent::Recent;
use crate::status::headline::words::{sentence, whole};
use crate::status::plain::Plain;
use crate::status::sample::Sample;

/// Finds the problems of all certificates.
pub(crate) fn certificates(recent: &Recent<'_>, now: &Sample) -> Vec<Finding> {
    let mut found = Vec::new();
    for certificate in &now.certificates {
        found.extend(find_unusable(certificate));
        found.extend(find_expiry(recent, certificate, unix_seconds(now)));
    }
    found
}

/// Returns the time of a sample, in whole seconds since the Unix epoch.
#[expect(clippy::cast_possible_truncation, reason = "a time of this age")]
fn unix_seconds(now: &Sample) -> i64 {
    now.time as i64
}

/// Reports changed files that cannot be used.
fn find_unusable(certificate: &Certificate) -> Option<Finding> {
    let problem = certificate.problem.as_ref()?;
    let (name, expires) = (&certificate.name, date(certificate.validity.to));
    let (what, remedy) = match certificate.of {
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
        evidence: format!("{} The old one expires on {expires}.", sentence(problem)),
        remedy: remedy.to_owned(),
        ..Finding::new(Cause::Certificate, Severity::Warn)
    })
}

/// Reports a certificate that is not valid yet, expires soon or has expired.
fn find_expiry(recent: &Recent<'_>, certificate: &Certificate, now: i64) -> Option<Finding> {
    let (name, validity) = (&certificate.name, certificate.validity);
    let expiry_text = validity.describe_problem(now)?;
    let (is_valid, is_early) = (validity.is_valid(now), validity.is_not_yet_valid(now));
    let when = match (is_early, is_valid) {
        (true, _) => "until then",
        (_, true) => "from then on",
        _ => "since then",
    };
    let of_origin = matches!(
        certificate.of,
        CertificateOf::Origin | CertificateOf::ClientCert
    );
    let (whose, evidence, remedy) = match certificate.of {
        CertificateOf::Server => (
            format!("The certificate {name}"),
            format!("Clients that verify it refuse it {when}."),
            "Renew it and its key: saved files are in force within 2 s.".to_owned(),
        ),
        CertificateOf::ClientCa => (
            format!("An authority of clients in {name}"),
            format!("The file is in `client_ca`. A client that shows this very certificate is refused {when}."),
            "Renew the authority, and write its new certificate to the file before clients get certificates of it."
                .to_owned(),
        ),
        // The rules of origins report it.
        CertificateOf::Origin if !is_valid => return None,
        CertificateOf::Origin => (
            format!("The certificate of origin {name}"),
            format!("Requests to it get 502 {when}."),
            format!("Renew it at the servers of {name}."),
        ),
        CertificateOf::ClientCert => (
            format!("The certificate that the gateway shows to origin {name}"),
            format!("Servers that verify it refuse connections {when}."),
            format!("Renew the files of `client_cert` and `client_key` of [origins.{name}]: saved files are in force within seconds."),
        ),
    };
    let remedy = if is_early {
        "Set the clock, or name a certificate that is valid now.".to_owned()
    } else {
        remedy
    };
    let refused = match certificate.of {
        CertificateOf::Server if !is_valid => count_refused(recent),
        _ => String::new(),
    };
    let is_bad = !is_valid && certificate.of != CertificateOf::ClientCa;
    Some(Finding {
        weight: weight(validity.to - now),
        about: of_origin.then(|| Plain::new(name)),
        title: format!("{whose} {expiry_text}{refused}"),
        evidence,
        remedy,
        ..Finding::new(Cause::Certificate, Severity::bad_if(is_bad))
    })
}

/// Returns the weight of an expiry in `left` seconds: the nearest one is the heaviest.
fn weight(left: i64) -> f64 {
    -(left as f64)
}

/// Counts handshakes that failed because clients refuse the certificate, as text; may be empty.
fn count_refused(recent: &Recent<'_>) -> String {
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
