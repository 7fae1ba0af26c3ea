//! Server names that clients should not send, from real clients and as bytes.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use crate::support::{Gateway, Origin, SOON, Site, one_zone};
use crate::tls::secure::{started, write_pair};

/// A gateway with certificates for `a.test` and `b.test`, in this order.
fn two_certificates(origin: &Origin) -> Gateway {
    let site = Site::new();
    for name in ["a", "b"] {
        write_pair(site.folder(), name, &[&format!("{name}.test")]);
    }
    let tls =
        "[server.tls]\ncert = [\"a.pem\", \"b.pem\"]\nkey = [\"a.key\", \"b.key\"]\n".to_owned();
    site.write(&(tls + &one_zone(origin, "1000r/s", "burst = 9")));
    started(site)
}

/// What `openssl s_client` writes when it asks for `name`, with `more` arguments.
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

/// The lines of the certificate in a text of PEM and other lines.
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
        // The default one: nobody has a certificate for these.
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
fn a_name_that_is_no_dns_name_fails_with_an_alert_and_the_log_says_which() {
    let origin = Origin::start();
    for name in ["b.test:443", "*.test", "[b.test]"] {
        let gateway = two_certificates(&origin);
        let told = s_client(&gateway, name, &[]);
        assert!(told.contains("alert illegal parameter"), "{told}");
        let line = gateway.wait_for_line("a TLS handshake failed");
        assert!(
            line.contains(" INFO ")
                && line.contains(&format!(" server_name=\"{name}\""))
                && line.contains("make it send the name of the host alone, or none")
                && line.contains("client=127.0.0.1:"),
            "{line}"
        );
    }
}

/// A first message with TLS 1.3's extensions as far as a server looks before the name.
fn hello(name: &[u8]) -> Vec<u8> {
    let number = |number: usize| u16::try_from(number).expect("short").to_be_bytes();
    let sized = |bytes: &[u8]| [&number(bytes.len())[..], bytes].concat();
    let name = sized(&[&[0][..], &sized(name)].concat());
    let extensions = [
        // Supported versions, groups, signature schemes, and the name.
        &[0, 43, 0, 3, 2, 3, 4][..],
        &[0, 10, 0, 4, 0, 2, 0, 29],
        &[0, 13, 0, 4, 0, 2, 4, 3],
        &[0, 0],
        &sized(&name),
    ]
    .concat();
    let body = [
        &[3, 3][..],
        &[7; 32],
        &[0],
        &[0, 2, 0x13, 1],
        &[1, 0],
        &sized(&extensions),
    ]
    .concat();
    let message = [&[1, 0][..], &sized(&body)].concat();
    [&[22, 3, 1][..], &sized(&message)].concat()
}

#[test]
fn a_name_of_any_bytes_is_escaped_in_the_log() {
    let origin = Origin::start();
    let gateway = two_certificates(&origin);
    let mut client = TcpStream::connect(gateway.address()).expect("a connection");
    client.set_read_timeout(Some(SOON)).expect("a timeout");
    client
        .write_all(&hello(b"a\" x\n\xff\x1b[1m"))
        .expect("it reads");
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).expect("it closes");
    // A fatal alert: illegal_parameter.
    assert_eq!(answer, [21, 3, 3, 0, 2, 2, 47]);
    let line = gateway.wait_for_line("a TLS handshake failed");
    let escaped = r#" server_name="a\x22 x\x0A\xFF\x1B[1m""#;
    assert!(line.contains(escaped), "{line}");
}

#[test]
fn clients_that_speak_tls_but_do_not_agree_are_told_of_and_others_at_debug() {
    let origin = Origin::start();
    let gateway = two_certificates(&origin);
    s_client(
        &gateway,
        "a.test",
        &["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"],
    );
    let line = gateway.wait_for_line("a TLS handshake failed");
    assert!(line.contains(" INFO ") && line.contains("error="), "{line}");

    // It does not know who signed the certificate, and says so.
    let gateway = two_certificates(&origin);
    s_client(&gateway, "a.test", &["-verify_return_error"]);
    let line = gateway.wait_for_line("a TLS handshake failed");
    assert!(
        line.contains(" INFO ") && line.contains("UnknownCA"),
        "{line}"
    );

    let site = Site::new();
    write_pair(site.folder(), "a", &["a.test"]);
    let rest =
        "[server.tls]\ncert = \"a.pem\"\nkey = \"a.key\"\n[log]\nlevel = \"debug\"\n".to_owned();
    site.write(&(rest + &one_zone(&origin, "1000r/s", "burst = 9")));
    let gateway = started(site);
    let mut client = TcpStream::connect(gateway.address()).expect("a connection");
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .expect("it reads");
    let line = gateway.wait_for_line("a TLS handshake failed");
    assert!(line.contains("DEBUG"), "{line}");
}
