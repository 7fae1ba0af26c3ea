//! The verification of clients' certificates becomes that of addresses, where all servers there agree.

use std::fs;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use tempfile::TempDir;

use super::{drip, told};

/// A certificate that is its own authority, in `NAME.pem` and `NAME.key`.
fn certificate(folder: &Path, name: &str) {
    let mut params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    fs::write(folder.join(format!("{name}.pem")), certificate.pem()).unwrap();
    fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["site", "staff", "partners"] {
        certificate(folder.path(), name);
    }
    folder
}

/// The result for these servers, with the folder's name left out.
fn imported(folder: &TempDir, conf: &str) -> (String, Vec<String>) {
    let conf = format!(
        "ssl_certificate site.pem; ssl_certificate_key site.key;\n{}",
        conf.replace("APP", "proxy_pass http://127.0.0.1:9000;")
    );
    fs::write(folder.path().join("nginx.conf"), conf).unwrap();
    let (_, settings, notes) = told(&drip(folder.path(), &["import", "nginx.conf"]));
    let here = format!("{}/", folder.path().display());
    (settings.replace(&here, ""), notes)
}

const STAFF: &str = "ssl_verify_client on; ssl_client_certificate staff.pem;";

#[test]
fn servers_that_agree_have_one_rule_and_are_open_to_their_clients() {
    let folder = folder();
    let (settings, notes) = imported(
        &folder,
        &format!(
            "{STAFF} ssl_verify_depth 2; ssl_trusted_certificate partners.pem;
             server {{ listen 80; server_name a.example; return 301 https://a.example; }}
             server {{ listen 443 ssl; server_name a.example; location / {{ APP }} }}
             server {{ listen 443 ssl; server_name b.example; location / {{ APP }} }}"
        ),
    );
    let tls = "client_ca = \"staff.pem\"\nclient_auth = \"required\"\n";
    assert!(settings.contains(tls), "{settings}");
    assert!(
        settings.contains("listen = [\"0.0.0.0:443\"]"),
        "{settings}"
    );
    assert!(!settings.contains("refuse"), "{settings}");
    for part in [
        "where nginx answers 400",
        "chains of any length, nginx of 2",
        "ssl_trusted_certificate: ",
    ] {
        assert!(
            notes.iter().any(|note| note.contains(part)),
            "{part}: {notes:#?}"
        );
    }
}

#[test]
fn each_address_has_the_rule_of_its_servers_and_opens_no_other() {
    let folder = folder();
    let (settings, notes) = imported(
        &folder,
        &format!(
            "server {{ listen 443 ssl; server_name a.example; {STAFF} location / {{ APP }} }}
             server {{ listen 8443 ssl; server_name b.example; location / {{ APP }} }}"
        ),
    );
    // Clients of 8443 would reach a.example without a certificate.
    let entry = "listen = [{ address = \"0.0.0.0:443\", client_ca = \"staff.pem\", client_auth = \"required\" }]";
    assert!(settings.contains(entry), "{settings}");
    let told = |note: &String| note.contains("0.0.0.0:8443 is left out");
    assert!(notes.iter().any(told), "{notes:#?}");

    let optional = "ssl_verify_client optional; ssl_client_certificate partners.pem;";
    let (settings, _) = imported(
        &folder,
        &format!(
            "server {{ listen 443 ssl; server_name a.example; {optional} location / {{ APP }} }}
             server {{ listen 8443 ssl; server_name b.example; location / {{ APP }} }}"
        ),
    );
    let entries = "listen = [{ address = \"0.0.0.0:443\", client_ca = \"partners.pem\", client_auth = \"optional\" }, \"0.0.0.0:8443\"]";
    assert!(settings.contains(entries), "{settings}");
}

#[test]
fn what_drip_cannot_verify_is_refused_and_told() {
    let folder = folder();
    let second = "server { listen 443 ssl; server_name b.example; location / { APP } }";
    for (first, more, why) in [
        (STAFF, second, "another server there has another"),
        (
            "ssl_verify_client on; ssl_client_certificate none.pem;",
            "",
            "its files cannot be used here",
        ),
        (
            "ssl_verify_client on; ssl_client_certificate staff.pem; ssl_crl site.key;",
            "",
            "its files cannot be used here",
        ),
        (
            "ssl_verify_client on;",
            "",
            "there is no ssl_client_certificate",
        ),
        (
            "ssl_verify_client optional_no_ca;",
            "",
            "takes no certificate of an unknown authority",
        ),
    ] {
        let (settings, notes) = imported(
            &folder,
            &format!(
                "server {{ listen 443 ssl; server_name a.example; {first} location / {{ APP }} }} {more}"
            ),
        );
        assert!(!settings.contains("client_ca"), "{settings}");
        assert!(
            notes.iter().any(|note| note.contains(why)),
            "{why}: {notes:#?}"
        );
        let opens = settings.contains("path = \"/\"\norigin") && more.is_empty();
        assert_eq!(opens, first.contains("optional"), "{first}: {settings}");
    }
}
