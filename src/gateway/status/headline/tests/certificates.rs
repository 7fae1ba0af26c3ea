//! Tests of certificates that expire or do not match, and of their order among warnings.

use config::tls::{DAY, Validity};

use super::*;
use crate::observe::certificates::{Certificate, CertificateOf};
use crate::status::sample::HandshakeSample;

/// 2026-11-29 00:00.
const NOW: i64 = 1_795_910_400;

/// Adds a certificate that expires in `left` seconds.
fn expiring(it: &mut Sample, of: CertificateOf, name: &str, left: i64) {
    it.time = NOW as f64;
    it.certificates.push(Certificate {
        of,
        name: name.into(),
        validity: Validity {
            from: 0,
            to: NOW + left,
        },
        problem: None,
    });
}

#[test]
fn certificates_have_their_headlines() {
    reported("warn certificate", |it| {
        expiring(it, CertificateOf::Server, "/a.pem", 9 * DAY + 60);
    })
    .says("/a.pem expires in 9 days, on 2026-12-08 … Renew it")
    .not(&["handshakes"]);
    reported("bad certificate", |it| {
        expiring(it, CertificateOf::Server, "/a.pem", -DAY);
        it.handshakes = HandshakeSample {
            done: 1,
            failed: 5,
            refused: 4,
        };
    })
    .says("/a.pem expired on 2026-11-28: 40 of 60 handshakes failed … Renew it");
    // No client connects.
    reported("bad certificate", |it| {
        expiring(it, CertificateOf::Server, "/a.pem", -DAY);
    })
    .says("/a.pem expired on 2026-11-28")
    .not(&["handshakes"]);
    reported("bad certificate", |it| {
        expiring(it, CertificateOf::Server, "/a.pem", 90 * DAY);
        it.certificates[0].validity.from = NOW + DAY;
    })
    .says("/a.pem is not valid before 2026-11-30 … clock");
    reported("warn certificate", |it| {
        expiring(it, CertificateOf::Server, "/a.pem", 90 * DAY);
        let problem = "/a.key is not the key of /a.pem: keys may not be consistent";
        it.certificates[0].problem = Some(problem.into());
    })
    .says("The renewed certificate in /a.pem cannot be used")
    .says("/a.key is not the key of /a.pem … 2027-02-27 … both files");
    reported("warn certificate", |it| {
        expiring(it, CertificateOf::ClientCa, "/ca.pem", -DAY);
    })
    .says("/ca.pem expired on 2026-11-28 … client_ca");
    reported("warn certificate api", |it| {
        expiring(it, CertificateOf::Origin, "api", DAY);
    })
    .says("origin api expires in 1 day, on 2026-11-30 … servers of api");
    reported("warn certificate api", |it| {
        expiring(it, CertificateOf::ClientCert, "api", DAY);
    })
    .says("shows to origin api expires in 1 day, on 2026-11-30 … client_cert");
    reported("bad certificate api", |it| {
        expiring(it, CertificateOf::ClientCert, "api", -DAY);
    })
    .says("shows to origin api expired on 2026-11-28 … client_cert");
    reported("bad certificate api", |it| {
        expiring(it, CertificateOf::ClientCert, "api", 90 * DAY);
        it.certificates[0].validity.from = NOW + DAY;
    })
    .says("shows to origin api is not valid before 2026-11-30")
    .says("Servers that verify it refuse connections until then. … Set the clock");
    // Its requests fail, which the rule of origins reports.
    reported("fine fine", |it| {
        expiring(it, CertificateOf::Origin, "api", -DAY);
    })
    .not(&["api"]);
    // An expired one comes before an origin that fails, and one that expires soon after it.
    reported("bad certificate", |it| {
        expiring(it, CertificateOf::Server, "/a.pem", -DAY);
        it.origins[0].healthy = 0;
    })
    .says("Also: Origin api has no server in use");
    reported("warn log_lost", |it| {
        expiring(it, CertificateOf::Server, "/a.pem", DAY);
        expiring(it, CertificateOf::Server, "/b.pem", 2 * DAY);
        it.log.lost = 1;
    })
    .says("Also: The certificate /a.pem expires … Also: The certificate /b.pem expires");
    reported("warn certificate", |it| {
        expiring(it, CertificateOf::Server, "/b.pem", 2 * DAY);
        expiring(it, CertificateOf::Server, "/a.pem", DAY);
        it.error = Some(crate::status::sample::Problem::default());
    })
    .says("/a.pem expires … Also: The file has an error");
}

/// Scans and single old clients are no news while the certificate is valid.
#[test]
fn failed_handshakes_alone_are_no_warning() {
    let mut second = fine();
    second.handshakes = HandshakeSample {
        done: 1,
        failed: 50,
        refused: 50,
    };
    assert_eq!(after(&second).finding.severity.label(), "fine");
}
