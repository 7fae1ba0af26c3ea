//! Certificates of the gateway, of its origins and of its clients' authority that expire, or do not fit.

use std::fs;
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
use crate::support::secure::started;
use crate::support::{Gateway, Site, now};

const EXPIRES: &str = "drip_certificate_expires_timestamp_seconds";
const YEARS: u64 = 1_000;

/// The file of a gateway before an origin over TLS, of the authority in `ca.pem`. `own`: fields of the origin.
fn file(origin: &TlsOrigin, own: &str) -> String {
    format!(
        "[origins.app]\nservers = [\"https://{}\"]\nca = \"ca.pem\"\nserver_name = \"a.test\"\n{own}\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n",
        origin.origin.address
    )
}

/// The fields of the certificate that the gateway shows.
const SHOWS: &str = "client_cert = \"a.pem\"\nclient_key = \"a.key\"";

/// Such a gateway, which shows no certificate.
fn before(origin: &TlsOrigin, site: Site) -> Gateway {
    site.write(&file(origin, ""));
    started(site)
}

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

#[test]
fn an_expired_certificate_of_an_origin_is_reported_with_its_date() {
    let site = Site::new();
    let ca = authority(site.folder(), "ca");
    let origin = TlsOrigin::start(&ca, LONG_AGO);
    let gateway = before(&origin, site);
    let mut requests = None;
    let begin = || requests = Some(steady(&gateway, STEADY, |_| get("/")));
    let mut incident = Incident::begin(&gateway, &ORIGIN_EXPIRED, begin);
    incident.reported();
    incident.end(|| origin.show(&ca, in_days(YEARS)));
}

const ORIGIN_EXPIRES: Rule = Rule {
    worst: Severity::Warn,
    about: Some("app"),
    says: &["app"],
    helps: &["renew"],
    ..RULE
};

#[test]
fn a_certificate_of_an_origin_that_expires_soon_is_reported_until_there_is_a_new_one() {
    let site = Site::new();
    let ca = authority(site.folder(), "ca");
    let soon = in_days(9);
    let origin = TlsOrigin::start(&ca, soon);
    let gateway = before(&origin, site);
    let mut requests = None;
    let begin = || requests = Some(steady(&gateway, STEADY, |_| get("/")));
    let incident = Incident::begin(&gateway, &ORIGIN_EXPIRES, begin);
    let mut incident = incident.saying(format!("[89] days|{}", date(soon)));
    incident.reported();
    incident.end(|| origin.show(&ca, in_days(YEARS)));
}

/// A gateway with the pair `a.pem` and `a.key`. `server`: more fields of `[server.tls]`.
fn with_pair(site: Site, origin: &Server, server: &str) -> Gateway {
    let tls = format!("[server.tls]\ncert = \"a.pem\"\nkey = \"a.key\"\n{server}\n");
    site.write(&(tls + &app(&[origin.address()], "", "")));
    started(site)
}

const EXPIRES_SOON: Rule = Rule {
    worst: Severity::Warn,
    says: &[r"a\.pem"],
    helps: &["renew"],
    log: Some(Line {
        levels: &["WARN"],
        parts: &[r"a\.pem|certificate"],
    }),
    ..RULE
};

#[test]
fn a_certificate_that_expires_soon_is_reported_from_the_start() {
    let site = Site::new();
    let ca = authority(site.folder(), "ca");
    let soon = in_days(9);
    write_pair(site.folder(), &ca, soon);
    let server = Server::start();
    let began = now();
    let gateway = with_pair(site, &server, "");
    let incident = Incident::since(&gateway, &EXPIRES_SOON, began);
    let mut incident = incident.saying(format!("[89] days|{}", date(soon)));
    incident.reported();
    let value = gateway.metrics().value(EXPIRES, &[("of", "server")]);
    let value = value.expect("the metric");
    #[allow(clippy::cast_precision_loss, reason = "a time of this century")]
    let soon_as_float = soon as f64;
    assert!((value - soon_as_float).abs() < 0.5, "{value} is not {soon}");
    let day = date(soon);
    let says = Box::leak(Box::new(day));
    let parts: &'static [&'static str] = Box::leak(Box::new(["warning", "cert", says.as_str()]));
    let check = Check { status: 0, parts };
    check.hold_for(&gateway);
    // The certificate is the same still.
    incident.leave();
}

/// Clients that verify the certificate of the gateway.
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

#[test]
fn an_expired_certificate_is_reported_with_the_handshakes_that_fail() {
    let site = Site::new();
    let ca = authority(site.folder(), "ca");
    write_pair(site.folder(), &ca, in_days(YEARS));
    let server = Server::start();
    let gateway = with_pair(site, &server, "");
    let folder = gateway.site.folder().to_owned();
    let _clients = clients(&gateway, &ca);
    let begin = || write_pair(&folder, &ca, LONG_AGO);
    let mut incident = Incident::begin(&gateway, &EXPIRED, begin);
    incident.reported();
    incident.end(|| write_pair(&folder, &ca, in_days(YEARS)));
}

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

#[test]
fn a_renewed_certificate_without_its_key_is_reported_until_the_key_is_there() {
    let site = Site::new();
    let ca = authority(site.folder(), "ca");
    write_pair(site.folder(), &ca, in_days(YEARS));
    let server = Server::start();
    let gateway = with_pair(site, &server, "");
    let folder = gateway.site.folder().to_owned();
    let _clients = clients(&gateway, &ca);
    let (_, pem, key) = pair(&ca, in_days(YEARS));
    let begin = || fs::write(folder.join("a.pem"), pem).expect("a file");
    let mut incident = Incident::begin(&gateway, &NOT_ITS_KEY, begin);
    incident.reported();
    incident.end(|| fs::write(folder.join("a.key"), key.serialize_pem()).expect("a file"));
}

const CLIENTS_AUTHORITY: Rule = Rule {
    says: &[r"client_ca|old\.pem", "2020-01-02"],
    check: Some(Check {
        status: 0,
        parts: &["warning", "client_ca", "2020-01-02"],
    }),
    ..RULE
};

#[test]
fn an_expired_authority_of_clients_is_reported() {
    let site = Site::new();
    let ca = authority(site.folder(), "ca");
    write_pair(site.folder(), &ca, in_days(YEARS));
    write_expired_authority(site.folder(), "old");
    let server = Server::start();
    let began = now();
    let gateway = with_pair(site, &server, "client_ca = \"old.pem\"");
    let mut incident = Incident::since(&gateway, &CLIENTS_AUTHORITY, began);
    incident.reported();
    incident.leave();
}

const CLIENT_CERT_EXPIRES: Rule = Rule {
    worst: Severity::Warn,
    about: Some("app"),
    says: &["app"],
    helps: &["client_cert"],
    log: Some(Line {
        levels: &["WARN"],
        parts: &["app"],
    }),
    ..RULE
};

#[test]
fn a_client_cert_that_expires_soon_is_reported_until_the_file_is_renewed() {
    let site = Site::new();
    let ca = authority(site.folder(), "ca");
    let soon = in_days(9);
    write_pair(site.folder(), &ca, soon);
    let origin = TlsOrigin::start(&ca, in_days(YEARS));
    site.write(&file(&origin, SHOWS));
    let began = now();
    let gateway = started(site);
    let incident = Incident::since(&gateway, &CLIENT_CERT_EXPIRES, began);
    let mut incident = incident.saying(format!("[89] days|{}", date(soon)));
    incident.reported();
    let check = Check {
        status: 0,
        parts: &["warning", "client_cert", "days"],
    };
    check.hold_for(&gateway);
    incident.end(|| write_pair(gateway.site.folder(), &ca, in_days(YEARS)));
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
    let origin = TlsOrigin::requiring(&ca, in_days(YEARS));
    site.write(&file(&origin, SHOWS));
    let gateway = started(site);
    let _requests = steady(&gateway, STEADY, |_| get("/"));
    let begin = || gateway.site.write(&file(&origin, ""));
    let mut incident = Incident::begin(&gateway, &CLIENT_CERT_REFUSED, begin);
    incident.reported();
    incident.end(|| gateway.site.write(&file(&origin, SHOWS)));
}
