//! Tests of remedies for an origin that cannot be reached: the cause decides.
//!
//! `reported` changes a second in which nothing is wrong (`fine`), and checks the headline after
//! ten such seconds: severity, cause and subject. Then `says` checks parts of its text: `…` stands
//! for any text between two parts. `not` checks that the text has none of some parts. A part
//! without its first letter, such as `aise`, stands for both `Raise` and `raise`.

use super::*;
use crate::origin::FailureKind::{self, Certificate, ClientCert, Lookup, Other, Refused};
use crate::origin::report::sample::FailureSample;

/// Makes all requests fail in this way, for `lasts` seconds.
fn failing(now: &mut Sample, kind: FailureKind, lasts: f64, text: &str) {
    now.origins[0].codes.clear();
    now.origins[0].errors = counts(&[("unreachable", 12)]);
    now.origins[0].last_failure = Some(text.into());
    now.origins[0].failure = Some(FailureSample {
        server: "http://10.0.0.2:80".into(),
        kind,
        lasts,
        is_held: false,
    });
}

const REFUSED: &str = "connecting to http://10.0.0.2:80 failed: Connection refused (os error 111)";

/// Checks the headline if all requests fail in this way.
#[track_caller]
fn unreachable(kind: FailureKind, lasts: f64, text: &str) -> Reported {
    reported("bad origin_failing api", |now| {
        failing(now, kind, lasts, text);
    })
}

#[test]
fn the_remedy_of_an_unreachable_origin_depends_on_the_cause() {
    unreachable(Refused, 4.0, REFUSED)
        .says("api does not answer: it refuses connections")
        .says("http://10.0.0.2:80 has refused connections for 4.0 s")
        .says("`hold = \"10s\"` in [origins.api]")
        .not(&["aise", "certificate", "resol"]);
    // The failure has just begun. Its duration is shown as at least a second, not as 0 ms.
    unreachable(Refused, 0.0, REFUSED)
        .says("for 1.0 s")
        .not(&["0 ms"]);
    unreachable(Refused, 11.0, REFUSED)
        .says("for 11 s … Start it")
        .not(&["hold", "aise"]);
    // The origin has `hold` already, which was not sufficient.
    reported("bad origin_failing api", |now| {
        failing(now, Refused, 4.0, REFUSED);
        now.origins[0].failure.as_mut().unwrap().is_held = true;
    })
    .says("Start it")
    .not(&["hold"]);
    let text = "looking up no.invalid: Name or service not known (resolver 10.0.0.53)";
    unreachable(Lookup, 2.0, text)
        .says("its name does not resolve … no.invalid … 10.0.0.53")
        .says("Correct the name in `servers` of [origins.api]")
        .not(&["hold", "refuse"]);
    let text = "the certificate of the server expired at 2020-01-02. Renew it on the server";
    unreachable(Certificate, 2.0, text)
        .says("a certificate is refused … expired at 2020-01-02 … \nRenew it on the server.")
        .not(&["hold", "own log", "aise"]);
    let text = "no answer: the server refuses it (CertificateExpired). Name one in client_cert";
    unreachable(ClientCert, 2.0, text)
        .says("api does not answer: it refuses the certificate of the gateway")
        .says("(CertificateExpired). … `client_cert` and `client_key` of [origins.api]")
        .not(&["hold", "Repair the origin", "aise"]);
    unreachable(Other, 2.0, "10.0.0.2:80 gave no answer")
        .says("Last: 10.0.0.2:80 gave no answer. … Repair the origin")
        .not(&["hold"]);
}
