//! Tests with openssl of invalid server names, and of clients that reject drip's certificate.

#[path = "../../tls/names/two.rs"]
mod two;

use std::fs;
use std::process::{Command, Stdio};

use two::two_certificates;

use crate::support::{Gateway, Origin, assert_contains};

/// Returns the output of `openssl s_client` for `name`, with `more` arguments.
fn s_client(gateway: &Gateway, name: &str, more: &[&str]) -> String {
    let mut command = Command::new("openssl");
    command
        .args(["s_client", "-connect", &gateway.address().to_string()])
        .args(["-servername", name])
        .args(more)
        .stdin(Stdio::null());
    let output = command.output().expect("openssl");
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// Returns the lines of the certificate in a text of PEM and other lines.
fn certificate(text: &str) -> String {
    let begun = text.split_once("-----BEGIN CERTIFICATE-----");
    let (inner, _) = begun
        .and_then(|(_, rest)| rest.split_once("-----END CERTIFICATE-----"))
        .unwrap_or_else(|| panic!("no certificate in {text}"));
    inner.split_whitespace().collect()
}

fn of_file(gateway: &Gateway, name: &str) -> String {
    let file = gateway.site.folder().join(name);
    certificate(&fs::read_to_string(file).expect("a file"))
}

#[test]
fn a_name_with_a_dot_at_its_end_and_an_address_get_a_certificate() {
    let origin = Origin::start();
    let gateway = two_certificates(&origin);
    for (name, file) in [
        ("b.test", "b.pem"),
        ("b.test.", "b.pem"),
        ("B.Test.", "b.pem"),
        // The default certificate, because no certificate has these names.
        ("_a_b.test", "a.pem"),
        ("127.0.0.1", "a.pem"),
        ("::1", "a.pem"),
        ("c.test.", "a.pem"),
    ] {
        for version in ["-tls1_2", "-tls1_3"] {
            let shown = certificate(&s_client(&gateway, name, &[version]));
            assert_eq!(shown, of_file(&gateway, file), "{name} {version}");
        }
    }
    assert!(!gateway.log().contains("handshake"), "{}", gateway.log());
}

#[test]
fn a_name_that_is_no_dns_name_fails_with_an_alert_and_the_log_says_so() {
    let origin = Origin::start();
    for name in ["b.test:443", "*.test", "[b.test]"] {
        let gateway = two_certificates(&origin);
        let received = s_client(&gateway, name, &[]);
        assert_contains!(received, "alert illegal parameter");
        let line = gateway.wait_for_line("a TLS handshake failed");
        assert_contains!(line, " INFO ", "ServerName", "client=127.0.0.1:");
    }
}

#[test]
fn failed_tls_handshakes_of_clients_are_logged() {
    let origin = Origin::start();
    let gateway = two_certificates(&origin);
    s_client(
        &gateway,
        "a.test",
        &["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"],
    );
    let line = gateway.wait_for_line("a TLS handshake failed");
    assert_contains!(line, " INFO ", "error=");

    // openssl does not know the authority of the certificate, and reports it.
    let gateway = two_certificates(&origin);
    s_client(&gateway, "a.test", &["-verify_return_error"]);
    let line = gateway.wait_for_line("a TLS handshake failed");
    assert_contains!(line, " INFO ", "UnknownCA");
}
