//! Tests of client certificates: accepted clients, and the fields about them.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    date_time_ymd,
};
use ring::digest::{SHA256, digest};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use super::key;
use crate::support::client_certificates::*;
use crate::support::{Gateway, Site, assert_contains, drip, eventually, free_address};

/// Returns the fingerprint of a certificate: SHA-256 in hexadecimal digits.
fn fingerprint(folder: &Path, name: &str) -> String {
    let certificate = CertificateDer::from_pem_file(folder.join(format!("{name}.pem")));
    let certificate = certificate.expect("a certificate");
    let mut digits = String::new();
    for byte in digest(&SHA256, &certificate).as_ref() {
        write!(digits, "{byte:02x}").expect("a string takes it");
    }
    digits
}

#[test]
fn a_required_certificate_is_verified_and_known_to_keys_and_origins() {
    let (site, _) = site();
    let origin = echo_origin();
    let folder = site.folder().to_owned();
    let tls = "[server.tls]\ncert = \"a.pem\"\nkey = \"a.key\"\nclient_ca = \"ca.pem\"\n";
    site.write(&format!("{tls}{}", routes(&origin)));
    let gateway = Gateway::start_at(site);
    let at = gateway.address();
    let alice = fingerprint(&folder, "alice");
    let received = ask(at, &folder, "alice");
    let expected = format!("SUCCESS|{alice}|O=Drip\\, Inc.,CN=alice|800A");
    assert_eq!(received, expected);
    assert_eq!(ask(at, &folder, ""), "none");
    assert_eq!(ask(at, &folder, "mallory"), "none");
    assert_eq!(origin.arrivals().len(), 1);
    // The key is the fingerprint.
    let keys = gateway
        .admin("/api/zones/z/keys")
        .expect("an answer")
        .text();
    assert_contains!(keys, &alice);
    gateway.wait_for_line("a TLS handshake failed");
}

#[test]
fn a_revoked_certificate_is_refused_once_the_list_is_there_and_no_session_goes_on() {
    let (site, ca) = site();
    let origin = echo_origin();
    let folder = site.folder().to_owned();
    let crl = folder.join("revoked.pem");
    fs::write(&crl, revoked(&ca, &[])).expect("a file");
    let tls = "[server.tls]\ncert = \"a.pem\"\nkey = \"a.key\"\nclient_ca = \"ca.pem\"\nclient_crl = \"revoked.pem\"\n";
    site.write(&format!("{tls}{}", routes(&origin)));
    let gateway = Gateway::start_at(site);
    let at = gateway.address();
    for name in ["alice", "bob"] {
        assert!(ask(at, &folder, name).starts_with("SUCCESS|"), "{name}");
    }
    // An invalid list keeps the previous one in force.
    fs::write(&crl, "nonsense").expect("a file");
    gateway.wait_for_line("no revocation list in PEM");
    assert!(ask(at, &folder, "bob").starts_with("SUCCESS|"));
    fs::write(&crl, revoked(&ca, &[&[2]])).expect("a file");
    eventually("bob is refused", || ask(at, &folder, "bob") == "none");
    gateway.wait_for_line("client authorities reloaded: new handshakes use them");
    assert!(ask(at, &folder, "alice").starts_with("SUCCESS|"));
    assert_eq!(ask(at, &folder, "mallory"), "none");
}

#[test]
fn each_address_has_its_own_rule_for_certificates() {
    let (site, _) = site();
    let origin = echo_origin();
    let folder = site.folder().to_owned();
    let [open, optional, stranger] = [free_address(), free_address(), free_address()];
    let text = site.text(&format!(
        "[server.tls]\ncert = \"a.pem\"\nkey = \"a.key\"\nclient_ca = \"ca.pem\"\n{}",
        routes(&origin)
    ));
    let entries = format!(
        "listen = [{{ address = \"{open}\", client_auth = \"off\" }}, \
         {{ address = \"{optional}\", client_auth = \"optional\" }}, \
         {{ address = \"{stranger}\", client_ca = \"stranger.pem\" }}, "
    );
    fs::write(site.file(), text.replacen("listen = [", &entries, 1)).expect("a file");
    let gateway = Gateway::start_at(site);
    let public = gateway.address();
    for (to, name, expected) in [
        (public, "", "none"),
        (public, "alice", "SUCCESS"),
        (open, "", "NONE"),
        // This address requests no certificate.
        (open, "alice", "NONE"),
        (optional, "", "NONE"),
        (optional, "alice", "SUCCESS"),
        (optional, "mallory", "none"),
        (stranger, "mallory", "SUCCESS"),
        (stranger, "alice", "none"),
        (stranger, "", "none"),
    ] {
        let received = ask(to, &folder, name);
        assert_eq!(received.split('|').next(), Some(expected), "{to} {name}");
    }
}

/// Writes a self-signed certificate to `NAME.pem` and its key to `NAME.key`. Returns the first.
fn self_signed(folder: &Path, name: &str, key: &KeyPair, params: &CertificateParams) -> String {
    let pem = params.self_signed(key).expect("a certificate").pem();
    fs::write(folder.join(format!("{name}.pem")), &pem).expect("a file");
    fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).expect("a file");
    pem
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

const PINNED: &str =
    "[server.tls]\ncert = \"a.pem\"\nkey = \"a.key\"\nclient_ca = \"clients.pem\"\n";

#[test]
fn a_self_signed_certificate_in_client_ca_is_accepted_and_no_other_one_of_its_key() {
    let (site, ca) = site();
    let origin = echo_origin();
    let folder = site.folder().to_owned();
    let mut clients = ca.pem();
    let kinds = [
        ("authority", IsCa::Ca(BasicConstraints::Unconstrained)),
        ("plain", IsCa::NoCa),
        ("explicit", IsCa::ExplicitNoCa),
    ];
    let mut names = Vec::new();
    for (name, is_ca) in kinds {
        let key = key();
        let mut params = named(name);
        params.is_ca = is_ca;
        clients += &self_signed(&folder, name, &key, &params);
        // Same key and name, but not in the file.
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(1));
        let other = format!("{name}-again");
        self_signed(&folder, &other, &key, &params);
        names.push((name, other));
    }
    fs::write(folder.join("clients.pem"), clients).expect("a file");
    fs::write(folder.join("revoked.pem"), revoked(&ca, &[&[2]])).expect("a file");
    let tls = format!("{PINNED}client_crl = \"revoked.pem\"\n");
    site.write(&format!("{tls}{}", routes(&origin)));
    let gateway = Gateway::start_at(site);
    let at = gateway.address();
    for (name, other) in &names {
        let print = fingerprint(&folder, name);
        let answer = ask(at, &folder, name);
        assert!(answer.starts_with(&format!("SUCCESS|{print}|")), "{answer}");
        assert_eq!(ask(at, &folder, other), "none", "{other}");
    }
    // Chains are verified as usual.
    assert!(ask(at, &folder, "alice").starts_with("SUCCESS|"));
    assert_eq!(ask(at, &folder, "bob"), "none");
    assert_eq!(ask(at, &folder, "mallory"), "none");
}

#[test]
fn the_log_says_why_a_certificate_is_refused_and_what_to_do() {
    let (site, ca) = site();
    let origin = echo_origin();
    let folder = site.folder().to_owned();
    let key = key();
    let mut expired = named("expired");
    expired.not_after = date_time_ymd(2020, 1, 2);
    let mut early = named("early");
    early.not_before = date_time_ymd(2999, 1, 2);
    let mut listed = ca.pem();
    listed += &self_signed(&folder, "expired", &key, &expired);
    listed += &self_signed(&folder, "early", &key, &early);
    fs::write(folder.join("clients.pem"), listed).expect("a file");
    let mut for_servers = named("for-servers");
    for_servers.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let for_servers = for_servers.signed_by(&key, &ca).expect("a certificate");
    fs::write(folder.join("for-servers.pem"), for_servers.pem()).expect("a file");
    fs::write(folder.join("for-servers.key"), key.serialize_pem()).expect("a file");
    let mut authority = named("authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    self_signed(&folder, "authority", &key, &authority);
    site.write(&format!("{PINNED}{}", routes(&origin)));
    let gateway = Gateway::start_at(site);
    for (name, words) in [
        ("expired", "of the client expired at 2020-01-02T00:00:00Z"),
        ("early", "not valid before 2999-01-02T00:00:00Z"),
        ("for-servers", "has no clientAuth"),
        (
            "authority",
            "Add this very certificate if it is self-signed",
        ),
        ("mallory", "signed by none of the authorities in "),
        ("", "the client shows no certificate"),
    ] {
        // Reasons are logged at most once per second.
        eventually(words, || {
            assert_eq!(ask(gateway.address(), &folder, name), "none", "{name}");
            gateway.log().contains(words)
        });
    }
    assert!(origin.arrivals().is_empty(), "no request is served");
}

/// Returns whether the file of a site passes the check, and the output.
fn check(site: &Site) -> (bool, String) {
    let mut check = drip();
    check.arg("check").arg("-c").arg(site.file());
    let checked = check.output().expect("drip");
    let received = [checked.stdout, checked.stderr].concat();
    let received = String::from_utf8_lossy(&received).into_owned();
    (checked.status.success(), received)
}

#[test]
fn unusable_files_are_reported_at_their_location_before_anything_starts() {
    let (site, _) = site();
    let origin = echo_origin();
    fs::write(site.folder().join("empty.pem"), "").expect("a file");
    for (fields, expected) in [
        ("client_ca = \"none.pem\"", "client_ca: "),
        ("client_ca = \"empty.pem\"", "no certificate in PEM"),
        (
            "client_ca = \"ca.pem\"\nclient_crl = \"ca.pem\"",
            "no revocation list in PEM",
        ),
        ("client_auth = \"required\"", "there is no client_ca"),
        ("client_crl = \"ca.pem\"", "there is no client_ca"),
        (
            "client_ca = \"ca.pem\"\nclient_auth = \"always\"",
            "\"required\" or \"optional\" or \"off\"",
        ),
        ("client_ca = 1", "the name of a PEM file"),
    ] {
        let tls = format!("[server.tls]\ncert = \"a.pem\"\nkey = \"a.key\"\n{fields}\n");
        site.write(&format!("{tls}{}", routes(&origin)));
        let (passes, received) = check(&site);
        let is_refused = !passes && received.contains(expected);
        assert!(is_refused, "{fields}: {received}");
        let names_line = |line| received.contains(&format!("gateway.toml:{line}:"));
        assert!(names_line(7) || names_line(8), "{received}");
    }
    site.write(&routes(&origin));
    let text = fs::read_to_string(site.file()).expect("a file");
    let plain = text.replacen(
        "listen = [",
        "listen = [{ address = \"127.0.0.1:1\", client_auth = \"required\" }, ",
        1,
    );
    fs::write(site.file(), plain).expect("a file");
    let (_, received) = check(&site);
    let says = "client_auth: clients show certificates over TLS only";
    assert_contains!(received, says);
}
