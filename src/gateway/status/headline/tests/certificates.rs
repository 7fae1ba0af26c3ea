//! Tests of certificates that expire or do not match, and of their order among warnings.
//!
//! `reported` changes a second in which nothing is wrong (`fine`), and checks the headline after
//! ten such seconds: severity, cause and subject. Then `says` checks parts of its text.

use config::tls::{DAY, Validity};

use super::*;
use crate::observe::certificates::Certificate;
use crate::observe::certificates::CertificateOf::{self, ClientCa, ClientCert, Origin, Server};
use crate::status::sample::HandshakeSample;

/// Time of the sample: 2026-11-29 00:00, in Unix time.
const NOW: i64 = 1_795_910_400;

/// Adds a certificate that expires in `left` seconds.
fn expiring(now: &mut Sample, of: CertificateOf, name: &str, left: i64) {
    now.time = NOW as f64;
    now.certificates.push(Certificate {
        of,
        name: name.into(),
        validity: Validity {
            from: 0,
            to: NOW + left,
        },
        problem: None,
    });
}

/// Checks the label of the headline if one certificate expires in `left` seconds.
#[track_caller]
fn expiry(label: &str, of: CertificateOf, name: &str, left: i64) -> Reported {
    reported(label, |now| expiring(now, of, name, left))
}

#[test]
fn a_certificate_that_is_not_valid_or_not_for_long_has_a_headline() {
    expiry("warn certificate", Server, "/a.pem", 9 * DAY + 60)
        .says("/a.pem expires in 9 days, on 2026-12-08 … Renew it")
        .not(&["handshakes"]);
    reported("bad certificate", |now| {
        expiring(now, Server, "/a.pem", -DAY);
        now.handshakes = HandshakeSample {
            done: 1,
            failed: 5,
            refused: 4,
        };
    })
    .says("/a.pem expired on 2026-11-28: 40 of 60 handshakes failed … Renew it");
    // No client connects.
    expiry("bad certificate", Server, "/a.pem", -DAY)
        .says("/a.pem expired on 2026-11-28")
        .not(&["handshakes"]);
    reported("bad certificate", |now| {
        expiring(now, Server, "/a.pem", 90 * DAY);
        now.certificates[0].validity.from = NOW + DAY;
    })
    .says("/a.pem is not valid before 2026-11-30 … clock");
    reported("warn certificate", |now| {
        expiring(now, Server, "/a.pem", 90 * DAY);
        let problem = "/a.key is not the key of /a.pem: keys may not be consistent";
        now.certificates[0].problem = Some(problem.into());
    })
    .says("The renewed certificate in /a.pem cannot be used")
    .says("/a.key is not the key of /a.pem … 2027-02-27 … both files");
    expiry("warn certificate", ClientCa, "/ca.pem", -DAY)
        .says("/ca.pem expired on 2026-11-28 … client_ca");
    expiry("warn certificate api", Origin, "api", DAY)
        .says("origin api expires in 1 day, on 2026-11-30 … servers of api");
    expiry("warn certificate api", ClientCert, "api", DAY)
        .says("shows to origin api expires in 1 day, on 2026-11-30 … client_cert");
    expiry("bad certificate api", ClientCert, "api", -DAY)
        .says("shows to origin api expired on 2026-11-28 … client_cert");
    reported("bad certificate api", |now| {
        expiring(now, ClientCert, "api", 90 * DAY);
        now.certificates[0].validity.from = NOW + DAY;
    })
    .says("shows to origin api is not valid before 2026-11-30")
    .says("Servers that verify it refuse connections until then. … Set the clock");
    // Requests to this origin fail. The rule of origins reports that.
    expiry("fine fine", Origin, "api", -DAY).not(&["api"]);
    // An expired one comes before an origin that fails, and one that expires soon after it.
    reported("bad certificate", |now| {
        expiring(now, Server, "/a.pem", -DAY);
        now.origins[0].healthy = 0;
    })
    .says("Also: Origin api has no server in use");
    reported("warn log_lost", |now| {
        expiring(now, Server, "/a.pem", DAY);
        expiring(now, Server, "/b.pem", 2 * DAY);
        now.log.lost = 1;
    })
    .says("Also: The certificate /a.pem expires … Also: The certificate /b.pem expires");
    reported("warn certificate", |now| {
        expiring(now, Server, "/b.pem", 2 * DAY);
        expiring(now, Server, "/a.pem", DAY);
        now.error = Some(crate::status::sample::Problem::default());
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
