//! Why an origin is not reached decides what helps.

use super::*;
use crate::origin::FailureKind;
use crate::status::views::FailureSample;

/// All requests fail like this, for so many seconds.
fn failing(it: &mut Sample, kind: FailureKind, lasts: f64, text: &str) {
    it.origins[0].codes.clear();
    it.origins[0].errors = counts(&[("unreachable", 12)]);
    it.origins[0].last_failure = Some(text.into());
    it.origins[0].failure = Some(FailureSample {
        server: "http://10.0.0.2:80".into(),
        kind,
        lasts,
        is_held: false,
    });
}

const REFUSED: &str = "connecting to http://10.0.0.2:80 failed: Connection refused (os error 111)";

const SITUATIONS: &[Situation] = &[
    Situation {
        change: |it| failing(it, FailureKind::Refused, 4.0, REFUSED),
        cause: "origin_failing",
        says: &[
            "api does not answer: it refuses connections",
            "http://10.0.0.2:80 has refused connections for 4.0 s",
            "`hold = \"10s\"` in [origins.api]",
        ],
        says_not: &["aise", "certificate", "resol"],
        ..BAD
    },
    Situation {
        // A second server starts the count of seconds: never 0 ms.
        change: |it| failing(it, FailureKind::Refused, 0.0, REFUSED),
        cause: "origin_failing",
        says: &["for 1.0 s"],
        says_not: &["0 ms"],
        ..BAD
    },
    Situation {
        change: |it| failing(it, FailureKind::Refused, 11.0, REFUSED),
        cause: "origin_failing",
        says: &["for 11 s", "Start it"],
        says_not: &["hold", "aise"],
        ..BAD
    },
    Situation {
        // It has `hold` already, which has not sufficed.
        change: |it| {
            failing(it, FailureKind::Refused, 4.0, REFUSED);
            it.origins[0].failure.as_mut().unwrap().is_held = true;
        },
        cause: "origin_failing",
        says: &["Start it"],
        says_not: &["hold"],
        ..BAD
    },
    Situation {
        change: |it| {
            let text = "connecting to http://no.invalid:80 failed: looking up no.invalid: Name or service not known (resolver 10.0.0.53)";
            failing(it, FailureKind::Lookup, 2.0, text);
        },
        cause: "origin_failing",
        says: &[
            "its name does not resolve",
            "no.invalid",
            "10.0.0.53",
            "Correct the name in `servers` of [origins.api]",
        ],
        says_not: &["hold", "refuse"],
        ..BAD
    },
    Situation {
        change: |it| {
            let text = "connecting to https://10.0.0.2:443 failed: the certificate of the server expired at 2020-01-02T00:00:00Z, and the clock says 2026-11-29T00:00:00Z. Renew it on the server";
            failing(it, FailureKind::Certificate, 2.0, text);
        },
        cause: "origin_failing",
        says: &[
            "a certificate is refused",
            "expired at 2020-01-02",
            "\nRenew it on the server.",
        ],
        says_not: &["hold", "own log", "aise"],
        ..BAD
    },
    Situation {
        change: |it| {
            let text = "https://10.0.0.2:443 gave no answer: the server refuses the certificate of the gateway, or that it shows none (CertificateExpired). Name one that the server accepts in client_cert and client_key";
            failing(it, FailureKind::ClientCert, 2.0, text);
        },
        cause: "origin_failing",
        says: &[
            "api does not answer: it refuses the certificate of the gateway",
            "(CertificateExpired).",
            "`client_cert` and `client_key` of [origins.api]",
        ],
        says_not: &["hold", "Repair the origin", "aise"],
        ..BAD
    },
    Situation {
        change: |it| failing(it, FailureKind::Other, 2.0, "10.0.0.2:80 gave no answer"),
        cause: "origin_failing",
        says: &["Last: 10.0.0.2:80 gave no answer.", "Repair the origin"],
        says_not: &["hold"],
        ..BAD
    },
];

#[test]
fn what_helps_an_origin_depends_on_why_it_is_not_reached() {
    check_all(SITUATIONS);
}
