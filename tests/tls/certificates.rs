//! Tests of the choice of the served certificate, and of its renewal.

use std::fs;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::support::secure::{connect, gateway, write_pair};
use crate::support::{Gateway, Origin, Site, assert_contains, drip, make_fifo, now, one_zone};

/// Maximum time until renewed certificates are in force.
const RENEWED_WITHIN: Duration = Duration::from_secs(5);

async fn shown(gateway: &Gateway, name: &str) -> CertificateDer<'static> {
    connect(gateway, name, &[]).await.1
}

#[tokio::test(flavor = "multi_thread")]
async fn the_certificate_is_that_of_the_name_and_else_the_first() {
    let origin = Origin::start();
    let site = Site::new();
    let first = write_pair(site.folder(), "first", &["a.test"]);
    let second = write_pair(site.folder(), "second", &["b.test", "*.c.test"]);
    let files = "cert = [\"first.pem\", \"second.pem\"]\nkey = [\"first.key\", \"second.key\"]";
    let zone = one_zone(&origin, "1000r/s", "burst = 9");
    site.write(&format!("[server.tls]\n{files}\n{zone}"));
    let gateway = Gateway::start_at(site);
    for (name, expected) in [
        ("a.test", &first),
        ("b.test", &second),
        ("B.TEST", &second),
        ("x.c.test", &second),
        ("c.test", &first),
        ("unknown.test", &first),
        ("127.0.0.1", &first),
    ] {
        assert_eq!(shown(&gateway, name).await, *expected, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_certificate_is_shown_within_five_seconds_and_half_a_pair_never() {
    let origin = Origin::start();
    let gateway = gateway("", &one_zone(&origin, "1000r/s", "burst = 9"));
    let folder = gateway.site.folder();
    let old = shown(&gateway, "a.test").await;

    // A renewal writes one file and then the other.
    let scratch = tempfile::tempdir().expect("a folder");
    let new = write_pair(scratch.path(), "a", &["a.test"]);
    let put = |name| fs::copy(scratch.path().join(name), folder.join(name)).expect("a copy");
    put("a.pem");
    gateway.wait_for_line("is not the key of");
    assert_eq!(shown(&gateway, "a.test").await, old);
    put("a.key");
    let since = now();
    while shown(&gateway, "a.test").await != new {
        let took = since.elapsed();
        assert!(took < RENEWED_WITHIN, "the old one is still shown");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    gateway.wait_for_line("certificate renewed: new connections get it");
}

#[test]
fn a_certificate_that_cannot_be_shown_is_an_error_with_its_file() {
    let origin = Origin::start();
    let site = Site::new();
    write_pair(site.folder(), "a", &["a.test"]);
    write_pair(site.folder(), "b", &["b.test"]);
    fs::write(site.folder().join("empty"), "").expect("a file");
    let garbage = "-----BEGIN CERTIFICATE-----\nMAAB\n-----END CERTIFICATE-----\n";
    fs::write(site.folder().join("garbage"), garbage).expect("a file");
    make_fifo(site.folder().join("fifo"));
    fs::write(site.folder().join("large"), vec![b'x'; (1 << 20) + 1]).expect("a file");
    let zone = one_zone(&origin, "1r/s", "burst = 1");
    let [no_key, no_certificate] = ["no private key in PEM: ", "no certificate in PEM: "];
    for (cert, key, wrong) in [
        ("a.pem", "b.key", "@/b.key is not the key of @/a.pem: "),
        ("a.pem", "none.key", "@/none.key: No such file"),
        ("a.pem", "empty", &format!("@/empty: {no_key}")),
        ("a.pem", "a.pem", &format!("@/a.pem: {no_key}")),
        ("none", "none", "@/none: No such file"),
        ("empty", "a.key", &format!("@/empty: {no_certificate}")),
        ("a.key", "a.key", &format!("@/a.key: {no_certificate}")),
        (
            "garbage",
            "a.key",
            "@/garbage: the certificate cannot be read: ",
        ),
        // A file without end, or one that waits for a writer.
        ("fifo", "a.key", "@/fifo: it is not a regular file"),
        ("a.pem", "fifo", "@/fifo: it is not a regular file"),
        ("large", "a.key", "@/large: it is larger than 1M"),
        ("/dev/zero", "a.key", "/dev/zero: it is not a regular file"),
    ] {
        site.write(&format!(
            "[server.tls]\ncert = {cert:?}\nkey = {key:?}\n{zone}"
        ));
        let location = if cert == "a.pem" {
            "6:7: key"
        } else {
            "5:8: cert"
        };
        check_reported(&site, &[&format!("{location}: {wrong}")]);
    }
    // Several certificates, each for its own name.
    site.write(&format!(
        "tls.cert = [\"a.pem\",\n  \"none.pem\", \"b.pem\"]\n\
         tls.key = [\"b.key\", \"a.key\",\n  \"none.key\"]\n{zone}"
    ));
    check_reported(
        &site,
        &[
            "5:3: cert: @/none.pem: No such file",
            "6:12: key: @/b.key is not the key of @/a.pem: ",
            "7:3: key: @/none.key: No such file",
        ],
    );
}

#[test]
fn a_certificate_that_is_mounted_elsewhere_is_a_warning_of_check_and_ends_a_start() {
    let origin = Origin::start();
    let site = Site::new();
    let zone = one_zone(&origin, "1r/s", "burst = 1");
    site.write(&format!(
        "[server.tls]\ncert = \"shop-tls/tls.crt\"\nkey = \"shop-tls/tls.key\"\n{zone}"
    ));
    let received = |command: &str| {
        let output = drip().arg(command).arg(site.file()).output();
        let output = output.expect("the program runs");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let file = site.folder().join("shop-tls/tls.crt");
    let missing = format!("cert: {}: No such file", file.display());
    let (code, said) = received("check");
    assert_eq!(code, Some(0), "{said}");
    assert_contains!(said, ":5:8: warning: ", &missing, "a start needs it");
    let (code, said) = received("run");
    assert_eq!(code, Some(1), "{said}");
    assert_contains!(said, &missing);
    // The folder exists, but the name of the file is wrong.
    fs::create_dir(site.folder().join("shop-tls")).expect("a folder");
    check_reported(&site, &["5:8: cert: @/shop-tls/tls.crt: No such file"]);
}

#[test]
fn a_certificate_that_clients_refuse_is_reported() {
    let origin = Origin::start();
    let site = Site::new();
    let key = KeyPair::generate().expect("a key");
    // Many names, so that both lengths below have two bytes.
    let names = (0..20).map(|nth| format!("host-{nth}.a.test"));
    let mut requested = CertificateParams::new(names.collect::<Vec<_>>()).expect("names");
    requested.not_before = date_time_ymd(2001, 1, 1);
    requested.not_after = date_time_ymd(2002, 2, 3);
    let expired = requested.self_signed(&key).expect("a certificate");
    let write = |name: &str, text: String| {
        fs::write(site.folder().join(name), text).expect("a file");
    };
    write("a.pem", expired.pem());
    write("a.key", key.serialize_pem());
    let zone = one_zone(&origin, "1r/s", "burst = 1");
    site.write(&format!(
        "[server.tls]\ncert = \"a.pem\"\nkey = \"a.key\"\n{zone}"
    ));
    let checked = drip().arg("check").arg(site.file()).output();
    let checked = checked.expect("the program runs");
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
    let expected = format!(
        "{}:5:8: warning: cert: the certificate expired on 2002-02-03; renew it\n",
        site.file().display()
    );
    assert_eq!(String::from_utf8_lossy(&checked.stderr), expected);

    // A certificate without a version is of version 1: the field is removed, and two lengths
    // change.
    let mut der = expired.der().to_vec();
    assert_eq!(der[8..13], [0xA0, 3, 2, 1, 2]);
    der.drain(8..13);
    for at in [2, 6] {
        assert_eq!(der[at - 1], 0x82);
        let length = u16::from_be_bytes([der[at], der[at + 1]]) - 5;
        der[at..at + 2].copy_from_slice(&length.to_be_bytes());
    }
    let body = STANDARD.encode(&der);
    write(
        "a.pem",
        format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n"),
    );
    check_reported(
        &site,
        &["5:8: cert: @/a.pem: the certificate is of X.509 version 1, and TLS needs version 3; "],
    );
    // The same for the certificate that the gateway shows to an origin, and for an invalid one.
    write(
        "garbage.pem",
        "-----BEGIN CERTIFICATE-----\nMAAB\n-----END CERTIFICATE-----\n".to_owned(),
    );
    for (cert, wrong) in [
        ("a.pem", "the certificate is of X.509 version 1, "),
        ("garbage.pem", "the certificate cannot be read: "),
    ] {
        site.write(&format!(
            "[origins.app]\nservers = [\"https://{}\"]\nclient_cert = {cert:?}\nclient_key = \"a.key\"\n\
             [[routes]]\npath = \"/\"\norigin = \"app\"\n",
            origin.address
        ));
        let line = format!("6:15: client_cert: @/{cert}: {wrong}");
        check_reported(&site, &[&line]);
    }
}

/// Fails unless `drip check` and a start report exactly these problems. `@` is the file's folder.
fn check_reported(site: &Site, expected: &[&str]) {
    let folder = site.folder().display().to_string();
    for command in ["check", "run"] {
        let ended = drip().arg(command).arg("-c").arg(site.file()).output();
        let ended = ended.expect("the program runs");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(1), "{command}: {said}");
        assert_eq!(said.lines().count(), expected.len(), "{command}: {said}");
        for (line, expected) in said.lines().zip(expected) {
            let expected = expected.replace('@', &folder);
            let expected = format!("{}:{expected}", site.file().display());
            assert!(line.starts_with(&expected), "{command}: {line}\n{expected}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_slow_to_greet_is_cut_off() {
    let origin = Origin::start();
    let server = "header_timeout = \"300ms\"";
    let gateway = gateway(server, &one_zone(&origin, "1000r/s", "burst = 9"));
    let since = now();
    let silent = TcpStream::connect(gateway.address())
        .await
        .expect("a connection");
    silent.readable().await.expect("an end");
    assert_eq!(silent.try_read(&mut [0; 16]).ok(), Some(0));
    let took = since.elapsed();
    assert!(took >= Duration::from_millis(290), "{took:?}");
}
