//! Incidents of certificates that expire or do not fit.
//!
//! They belong to the gateway, its origins, or its clients' authority.

use std::cell::OnceCell;
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::certificates::{
    LONG_AGO, TlsOrigin, date, fetch, in_days, pair, verifying, write_expired_authority, write_pair,
};
use super::clients::{Background, STEADY, get, steady};
use super::driver::{Check, Incident, Is, Line, RULE, Rule, Series, Severity};
use super::servers::{Server, app};
use crate::support::client_certificates::{Authority, authority};
use crate::support::{Gateway, Site, now};

const EXPIRES: &str = "drip_certificate_expires_timestamp_seconds";
const YEARS: u64 = 1_000;

/// Returns a file with an origin over TLS that trusts `ca.pem`. `own`: fields of the origin.
fn file(origin: &TlsOrigin, own: &str) -> String {
    format!(
        "[origins.app]\nservers = [\"https://{}\"]\nca = \"ca.pem\"\nserver_name = \"a.test\"\n{own}\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n",
        origin.origin.address
    )
}

/// Fields of the certificate that the gateway presents.
const SHOWS: &str = "client_cert = \"a.pem\"\nclient_key = \"a.key\"";

const ORIGIN_EXPIRED: Rule = Rule {
    within: 6,
    severity: Severity::Bad,
    about: Some("app"),
    says: &["certificate", "expired", "2020-01-02", "app"],
    helps: &["renew.*(server|origin)|(server|origin).*renew"],
    never: &["raise .*rate", "hold"],
    log: Some(Line {
        levels: &["WARN", "ERROR"],
        parts: &["2020-01-02"],
    }),
    metrics: &[Series {
        name: EXPIRES,
        labels: &[("of", "origin")],
        is: Is::Exactly(1_577_923_200.0),
    }],
    ..RULE
};

const ORIGIN_EXPIRES: Rule = Rule {
    worst: Severity::Warn,
    about: Some("app"),
    says: &["app"],
    helps: &["renew"],
    ..RULE
};

/// Plays a certificate of an origin that expires at `end`, and is renewed.
fn expire_at_origin(end: u64, rule: &Rule, says: &str) {
    let site = Site::new();
    let ca = authority(site.folder(), "ca");
    let origin = TlsOrigin::start(&ca, end, false);
    site.write(&file(&origin, ""));
    let gateway = Gateway::start_at(site);
    let mut requests = None;
    let begin = || requests = Some(steady(&gateway, STEADY, |_| get("/")));
    let mut incident = Incident::begin(&gateway, rule, begin).saying(says);
    incident.reported();
    incident.end(|| origin.show(&ca, in_days(YEARS)));
}

#[test]
fn a_certificate_of_an_origin_that_has_expired_is_reported_with_its_date() {
    expire_at_origin(LONG_AGO, &ORIGIN_EXPIRED, "2020-01-02");
}

#[test]
fn a_certificate_of_an_origin_that_expires_soon_is_reported_with_its_date() {
    let soon = in_days(9);
    expire_at_origin(soon, &ORIGIN_EXPIRES, &format!("[89] days|{}", date(soon)));
}

const EXPIRES_SOON: Rule = Rule {
    worst: Severity::Warn,
    titles: &[r"a\.pem", r"old\.pem", "origin app"],
    helps: &["renew|client_ca"],
    log: Some(Line {
        levels: &["WARN"],
        parts: &[r"a\.pem|certificate"],
    }),
    check: Some(Check {
        status: 0,
        parts: &["warning", "client_ca", "2020-01-02"],
    }),
    ..RULE
};

#[test]
fn certificates_of_the_gateway_and_of_its_clients_that_expire_are_reported_from_the_start() {
    let site = Site::new();
    let ca = authority(site.folder(), "ca");
    let soon = in_days(9);
    write_pair(site.folder(), &ca, soon);
    write_expired_authority(site.folder(), "old");
    let origin = TlsOrigin::start(&ca, in_days(YEARS), false);
    let tls = "[server.tls]\ncert = \"a.pem\"\nkey = \"a.key\"\nclient_ca = \"old.pem\"\n";
    site.write(&format!("{tls}{}", file(&origin, SHOWS)));
    let began = now();
    let gateway = Gateway::start_at(site);
    let mut incident = Incident::since(&gateway, &EXPIRES_SOON, began);
    incident.reported();
    let value = gateway.value(EXPIRES, &[("of", "server")]);
    #[allow(clippy::cast_precision_loss, reason = "a time of this century")]
    let soon_as_float = soon as f64;
    let is_soon = value.is_some_and(|value| (value - soon_as_float).abs() < 0.5);
    assert!(is_soon, "{value:?} is not {soon}");
    for parts in [
        &["warning", r"\bcert\b", "[89] days"],
        &["warning", "client_cert", "[89] days"],
    ] {
        Check { status: 0, parts }.hold_of(&gateway.site.file());
    }
    // The certificates are still the same.
    incident.leave();
}

/// Starts clients that verify the certificate of the gateway.
fn clients(gateway: &Gateway, authority: &Authority) -> Background {
    let (to, config) = (gateway.address(), verifying(authority));
    Background::start(move |stop| {
        while !stop.load(Ordering::SeqCst) {
            let _answer = fetch(&config, to);
            thread::sleep(Duration::from_millis(50));
        }
    })
}

const EXPIRED: Rule = Rule {
    severity: Severity::Bad,
    says: &[
        r"a\.pem",
        "expired",
        "2020-01-02",
        r"\d+.* handshakes|handshakes.* \d+",
    ],
    helps: &["renew"],
    never: &[r"\bapp\b"],
    metrics: &[Series {
        name: "drip_tls_handshake_failures_total",
        labels: &[("reason", "expired")],
        is: Is::Higher,
    }],
    log: Some(Line {
        levels: &["ERROR"],
        parts: &["expired"],
    }),
    check: Some(Check {
        status: 0,
        parts: &["warning", "cert", "2020-01-02"],
    }),
    ..RULE
};

const NOT_ITS_KEY: Rule = Rule {
    worst: Severity::Warn,
    says: &[
        r"a\.key",
        r"a\.pem",
        "not the key|does not match",
        "stays|old|not in force",
    ],
    helps: &["both"],
    log: Some(Line {
        levels: &["ERROR"],
        parts: &["not the key|does not match"],
    }),
    ..RULE
};

/// Plays an incident of the gateway's certificate. Both actions change files in a folder.
fn change_own(
    rule: &Rule,
    begin: impl FnOnce(&Path, &Authority),
    end: impl FnOnce(&Path, &Authority),
) {
    let site = Site::new();
    let ca = authority(site.folder(), "ca");
    write_pair(site.folder(), &ca, in_days(YEARS));
    let server = Server::start();
    let tls = "[server.tls]\ncert = \"a.pem\"\nkey = \"a.key\"\n".to_owned();
    site.write(&(tls + &app(&[server.address()], "", "")));
    let gateway = Gateway::start_at(site);
    let folder = gateway.site.folder();
    let _clients = clients(&gateway, &ca);
    let mut incident = Incident::begin(&gateway, rule, || begin(folder, &ca));
    incident.reported();
    incident.end(|| end(folder, &ca));
}

#[test]
fn a_certificate_that_expires_is_reported_until_it_is_renewed() {
    change_own(
        &EXPIRED,
        |folder, ca| write_pair(folder, ca, LONG_AGO),
        |folder, ca| write_pair(folder, ca, in_days(YEARS)),
    );
}

#[test]
fn a_certificate_that_lacks_its_key_is_reported_until_both_files_are_right() {
    let new_key = OnceCell::new();
    change_own(
        &NOT_ITS_KEY,
        |folder, ca| {
            let (_, pem, key) = pair(ca, in_days(YEARS));
            fs::write(folder.join("a.pem"), pem).expect("a file");
            new_key.set(key.serialize_pem()).expect("one key");
        },
        |folder, _| fs::write(folder.join("a.key"), new_key.get().expect("a key")).expect("a file"),
    );
}

const CLIENT_CERT_REFUSED: Rule = Rule {
    cause: Some("origin_failing"),
    within: 6,
    severity: Severity::Bad,
    about: Some("app"),
    says: &["certificate", "CertificateRequired"],
    helps: &[r"client_cert.*client_key.*\[origins\.app\]"],
    never: &["Repair the origin", "hold", "raise"],
    ..RULE
};

#[test]
fn an_origin_that_refuses_the_certificate_of_the_gateway_is_reported_with_its_fields() {
    let site = Site::new();
    let ca = authority(site.folder(), "ca");
    write_pair(site.folder(), &ca, in_days(YEARS));
    let origin = TlsOrigin::start(&ca, in_days(YEARS), true);
    site.write(&file(&origin, SHOWS));
    let gateway = Gateway::start_at(site);
    let _requests = steady(&gateway, STEADY, |_| get("/"));
    let begin = || gateway.site.write(&file(&origin, ""));
    let mut incident = Incident::begin(&gateway, &CLIENT_CERT_REFUSED, begin);
    incident.reported();
    incident.end(|| gateway.site.write(&file(&origin, SHOWS)));
}
