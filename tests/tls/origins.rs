//! Tests of origins' certificates: which are accepted, and the log lines about others.

use std::fs;

use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};
use tokio_rustls::rustls::pki_types::CertificateDer;

use super::{authority, key, params};
use crate::support::secure::server_config;
use crate::support::{Exchange, Gateway, Origin, Site, assert_contains};

const NAME: &str = "app.internal";
const ANY_CA: IsCa = IsCa::Ca(BasicConstraints::Unconstrained);

fn server(certificate: CertificateDer<'static>, key: &KeyPair) -> Origin {
    Origin::with_tls(
        "127.0.0.1:0",
        server_config(certificate, key),
        |exchange: &mut Exchange| exchange.reply(b"ok"),
    )
}

/// Starts a gateway in front of the origin whose `ca` is this file.
fn gateway(origin: &Origin, ca: &str) -> Gateway {
    let site = Site::new();
    fs::write(site.folder().join("ca.pem"), ca).expect("a file");
    site.write(&format!(
        "[origins.app]\nservers = [\"https://{}\"]\nca = \"ca.pem\"\n\
         server_name = \"{NAME}\"\n[[routes]]\npath = \"/\"\norigin = \"app\"\n",
        origin.address
    ));
    Gateway::start_at(site)
}

#[test]
fn a_certificate_that_is_in_ca_itself_is_accepted_whoever_signed_it() {
    let root = key();
    let issuer = Issuer::new(authority(), root);
    for is_ca in [ANY_CA, IsCa::NoCa, IsCa::ExplicitNoCa] {
        for is_self_signed in [true, false] {
            let key = key();
            let params = params(NAME, is_ca);
            let certificate = if is_self_signed {
                params.self_signed(&key)
            } else {
                params.signed_by(&key, &issuer)
            };
            let certificate = certificate.expect("a certificate");
            let origin = server(certificate.der().clone(), &key);
            let gateway = gateway(&origin, &certificate.pem());
            let answer = gateway.fetch("/");
            assert_eq!(answer.status, 200, "{is_ca:?} {is_self_signed}");
        }
    }
}

#[test]
fn a_refused_certificate_is_a_502_and_the_log_says_what_to_do() {
    let own_key = key();
    let self_signed = |params: &CertificateParams| params.self_signed(&own_key).expect("one");
    let own = self_signed(&params(NAME, IsCa::NoCa));
    let stranger = key();
    let other_root = authority().self_signed(&stranger);
    let other_root = other_root.expect("a certificate").pem();

    let mut expired = params(NAME, ANY_CA);
    expired.not_after = date_time_ymd(2020, 1, 2);
    let mut nameless = params(NAME, IsCa::NoCa);
    nameless.subject_alt_names.clear();

    let root_key = key();
    let root_params = params("root", ANY_CA);
    let root = root_params.self_signed(&root_key).expect("a root").pem();
    let issuer = Issuer::new(root_params, root_key);
    let signed = |params: CertificateParams| params.signed_by(&own_key, &issuer).expect("one");
    let mut for_clients = params(NAME, IsCa::NoCa);
    for_clients.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];

    let pinned = |params: &CertificateParams| {
        let certificate = self_signed(params);
        let pem = certificate.pem();
        (certificate, pem)
    };
    let other = params("other.internal", ANY_CA);
    let cases = [
        // The certificate itself is in `ca`.
        (pinned(&expired), "expired at 2020-01-02T00:00:00Z"),
        (
            pinned(&other),
            "not valid for app.internal, but for other.internal. Set server_name",
        ),
        (pinned(&nameless), "it has no subjectAltName"),
        // The certificate is not in `ca`: the rules of chains apply.
        ((own, other_root), "signed by none of the authorities in "),
        (
            (signed(params(NAME, ANY_CA)), root.clone()),
            "Add this very certificate",
        ),
        ((signed(for_clients), root.clone()), "has no serverAuth"),
        (
            (signed(params("other.internal", IsCa::NoCa)), root),
            "but for other.internal",
        ),
    ];
    for ((certificate, ca), words) in cases {
        let origin = server(certificate.der().clone(), &own_key);
        let gateway = gateway(&origin, &ca);
        assert_eq!(gateway.fetch("/").status, 502, "{words}");
        let line = gateway.wait_for_line(words);
        assert_contains!(line, &origin.address.to_string());
        assert!(origin.arrivals().is_empty(), "nothing is sent to it");
    }
}

/// A pinned certificate does not make another one of the same key trusted.
#[test]
fn a_pinned_certificate_vouches_for_no_other_one() {
    let key = key();
    let of = |name: &str| params(name, IsCa::NoCa).self_signed(&key).expect("one");
    let (pinned, mut second) = (of(NAME), params(NAME, IsCa::NoCa));
    second.distinguished_name.remove(rcgen::DnType::CommonName);
    let second = second.self_signed(&key).expect("a certificate");
    let origin = server(second.der().clone(), &key);
    let gateway = gateway(&origin, &pinned.pem());
    assert_eq!(gateway.fetch("/").status, 502);
    let _in_words = gateway.wait_for_line("UnknownIssuer");
}
