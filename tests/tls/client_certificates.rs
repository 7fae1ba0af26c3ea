//! Clients that show certificates: who gets a connection, and what is known of them then.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType,
    IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber, date_time_ymd,
};

use crate::support::nginx::Nginx;
use crate::support::{Exchange, Origin, Site, drip, eventually, free_address};
use crate::tls::secure::{started, write_pair};

pub(super) type Authority = CertifiedIssuer<'static, KeyPair>;

/// An authority that may sign certificates and lists; `NAME.pem` is its certificate.
pub(super) fn authority(folder: &Path, name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(params, key).expect("a certificate");
    fs::write(folder.join(format!("{name}.pem")), authority.pem()).expect("a file");
    authority
}

/// A certificate of a client with this serial number, in `NAME.pem`, `NAME.key` and `NAME.p12`.
pub(super) fn client(folder: &Path, authority: &Authority, name: &str, serial: &[u8]) {
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.serial_number = Some(SerialNumber::from_slice(serial));
    params
        .distinguished_name
        .push(DnType::OrganizationName, "Drip, Inc.");
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, authority).expect("a certificate");
    fs::write(folder.join(format!("{name}.pem")), certificate.pem()).expect("a file");
    fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).expect("a file");
    let stored = Command::new("openssl")
        .args(["pkcs12", "-export", "-passout", "pass:secret", "-in"])
        .arg(folder.join(format!("{name}.pem")))
        .arg("-inkey")
        .arg(folder.join(format!("{name}.key")))
        .arg("-out")
        .arg(folder.join(format!("{name}.p12")))
        .output()
        .expect("openssl");
    assert!(stored.status.success(), "{stored:?}");
}

/// A list of revoked serial numbers.
fn revoked(authority: &Authority, serials: &[&[u8]]) -> String {
    let certificate = |serial: &&[u8]| RevokedCertParams {
        serial_number: SerialNumber::from_slice(serial),
        revocation_time: date_time_ymd(2024, 1, 1),
        reason_code: None,
        invalidity_date: None,
    };
    let params = CertificateRevocationListParams {
        this_update: date_time_ymd(2024, 1, 1),
        next_update: date_time_ymd(2099, 1, 1),
        crl_number: SerialNumber::from(1),
        issuing_distribution_point: None,
        revoked_certs: serials.iter().map(certificate).collect(),
        key_identifier_method: KeyIdMethod::Sha256,
    };
    params
        .signed_by(authority)
        .expect("a list")
        .pem()
        .expect("text")
}

/// What curl prints of an answer, or `none` if it gets no connection.
fn curl(url: &str, folder: &Path, name: &str) -> String {
    let mut curl = Command::new("curl");
    curl.args(["-s", "-k", "--max-time", "20", url]);
    if !name.is_empty() {
        curl.arg("--cert").arg(folder.join(format!("{name}.pem")));
        curl.arg("--key").arg(folder.join(format!("{name}.key")));
    }
    let output = curl.stdin(Stdio::null()).output().expect("curl");
    match output.status.code() {
        Some(0) => String::from_utf8(output.stdout).expect("text"),
        // The handshake failed, the connection was reset, or ended without an answer.
        Some(35 | 52 | 55 | 56) => "none".to_owned(),
        _ => panic!("{output:?}"),
    }
}

/// An origin that answers with what a route tells it about the client.
fn telling() -> Origin {
    Origin::answering(|exchange: &mut Exchange| {
        let names = ["x-verify", "x-fingerprint", "x-subject", "x-serial"];
        let told = names.map(|name| exchange.field(name).unwrap_or("-").to_owned());
        exchange.reply(told.join("|").as_bytes())
    })
}

fn routes(origin: &Origin) -> String {
    format!(
        "[origins.app]\nservers = [\"http://{}\"]\n\
         [zones.z]\nkey = \"$ssl_client_fingerprint\"\nrate = \"1000r/s\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{{ zone = \"z\", burst = 100 }}]\n\
         request_headers = {{ x-verify = \"$ssl_client_verify\", x-fingerprint = \"$ssl_client_fingerprint\", \
         x-subject = \"$ssl_client_subject\", x-serial = \"$ssl_client_serial\" }}\n",
        origin.address
    )
}

/// A place with an authority `ca`, another one that nobody trusts, and clients of both.
fn site() -> (Site, Authority) {
    let site = Site::new();
    let folder = site.folder().to_owned();
    write_pair(&folder, "a", &["a.test"]);
    let trusted = authority(&folder, "ca");
    client(&folder, &trusted, "alice", &[0x80, 0x0a]);
    client(&folder, &trusted, "bob", &[2]);
    let stranger = authority(&folder, "stranger");
    client(&folder, &stranger, "mallory", &[3]);
    (site, trusted)
}

fn fingerprint(folder: &Path, name: &str) -> String {
    let output = Command::new("openssl")
        .args(["x509", "-noout", "-fingerprint", "-sha256", "-in"])
        .arg(folder.join(format!("{name}.pem")))
        .output()
        .expect("openssl");
    let text = String::from_utf8(output.stdout).expect("text");
    let (_, digits) = text.trim().split_once('=').expect("a fingerprint");
    digits.replace(':', "").to_ascii_lowercase()
}

#[test]
fn a_required_certificate_is_verified_and_known_to_keys_and_origins() {
    let (site, _) = site();
    let origin = telling();
    let folder = site.folder().to_owned();
    let tls = "[server.tls]\ncert = \"a.pem\"\nkey = \"a.key\"\nclient_ca = \"ca.pem\"\n";
    site.write(&format!("{tls}{}", routes(&origin)));
    let gateway = started(site);
    let url = format!("https://{}/", gateway.address());
    let alice = fingerprint(&folder, "alice");
    let told = curl(&url, &folder, "alice");
    assert_eq!(
        told,
        format!("SUCCESS|{alice}|O=Drip\\, Inc.,CN=alice|800A")
    );
    assert_eq!(curl(&url, &folder, ""), "none");
    assert_eq!(curl(&url, &folder, "mallory"), "none");
    assert_eq!(origin.arrivals().len(), 1);
    // The key is the fingerprint.
    let keys = gateway
        .admin("/api/zones/z/keys")
        .expect("an answer")
        .text();
    assert!(keys.contains(&alice), "{keys}");
    gateway.wait_for_line("a TLS handshake failed");
}

/// A subject with a comma is written alike, and a serial number.
#[test]
fn an_optional_certificate_is_verified_as_nginx_does_and_what_is_said_of_it_is_the_same() {
    let (site, _) = site();
    let origin = telling();
    let folder = site.folder().to_owned();
    let tls = "[server.tls]\ncert = \"a.pem\"\nkey = \"a.key\"\nclient_ca = \"ca.pem\"\nclient_auth = \"optional\"\n";
    site.write(&format!("{tls}{}", routes(&origin)));
    let gateway = started(site);
    let file = |name: &str| folder.join(name).display().to_string();
    let nginx = Nginx::with_servers(&origin, |address| {
        format!(
            "server {{ listen {address} ssl; ssl_certificate {}; ssl_certificate_key {}; \
             ssl_client_certificate {}; ssl_verify_client optional; \
             location / {{ proxy_set_header X-Verify $ssl_client_verify; proxy_set_header X-Subject $ssl_client_s_dn; \
             proxy_set_header X-Serial $ssl_client_serial; proxy_pass http://origin; }} }}",
            file("a.pem"),
            file("a.key"),
            file("ca.pem")
        )
    });
    let parts = |told: &str| -> Vec<String> {
        let parts: Vec<&str> = told.split('|').collect();
        [parts[0], parts[2], parts[3]].map(str::to_owned).to_vec()
    };
    for name in ["alice", "bob", ""] {
        let [theirs, ours] = [nginx.address, gateway.address()]
            .map(|to| parts(&curl(&format!("https://{to}/"), &folder, name)));
        assert_eq!(ours, theirs, "{name}");
        let verify = if name.is_empty() { "NONE" } else { "SUCCESS" };
        assert_eq!(ours[0], verify);
    }
    // nginx answers 400; here no connection comes about.
    let ours = curl(
        &format!("https://{}/", gateway.address()),
        &folder,
        "mallory",
    );
    assert_eq!(ours, "none");
}

#[test]
fn a_revoked_certificate_is_refused_once_the_list_is_there_and_no_session_goes_on() {
    let (site, ca) = site();
    let origin = telling();
    let folder = site.folder().to_owned();
    let crl = folder.join("revoked.pem");
    fs::write(&crl, revoked(&ca, &[])).expect("a file");
    let tls = "[server.tls]\ncert = \"a.pem\"\nkey = \"a.key\"\nclient_ca = \"ca.pem\"\nclient_crl = \"revoked.pem\"\n";
    site.write(&format!("{tls}{}", routes(&origin)));
    let gateway = started(site);
    let url = format!("https://{}/", gateway.address());
    for name in ["alice", "bob"] {
        assert!(curl(&url, &folder, name).starts_with("SUCCESS|"), "{name}");
    }
    // A list that is none keeps the last one.
    fs::write(&crl, "nonsense").expect("a file");
    gateway.wait_for_line("no revocation list in PEM");
    assert!(curl(&url, &folder, "bob").starts_with("SUCCESS|"));
    fs::write(&crl, revoked(&ca, &[&[2]])).expect("a file");
    eventually("bob is refused", || curl(&url, &folder, "bob") == "none");
    gateway.wait_for_line("the changed authorities and revocation lists are in force");
    assert!(curl(&url, &folder, "alice").starts_with("SUCCESS|"));
    assert_eq!(curl(&url, &folder, "mallory"), "none");
}

/// The folder of compiled programs.
fn programs() -> (PathBuf, PathBuf) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (go, java) = (folder.join("mutual-go"), folder.join("mutual-java"));
    let mut build = Command::new("go");
    build.env("GOCACHE", folder.join("go"));
    build
        .args(["build", "-o"])
        .arg(&go)
        .arg("tests/tls/mutual.go");
    let mut compile = Command::new("javac");
    compile.arg("-d").arg(&java).arg("tests/tls/Mutual.java");
    for mut command in [build, compile] {
        let output = command.output().expect("a compiler");
        assert!(output.status.success(), "{output:?}");
    }
    (go, java)
}

#[test]
fn programs_in_go_and_java_show_certificates_and_are_refused_without() {
    let (site, ca) = site();
    let origin = telling();
    let folder = site.folder().to_owned();
    fs::write(folder.join("revoked.pem"), revoked(&ca, &[&[2]])).expect("a file");
    let tls = "[server.tls]\ncert = \"a.pem\"\nkey = \"a.key\"\nclient_ca = \"ca.pem\"\nclient_crl = \"revoked.pem\"\n";
    site.write(&format!("{tls}{}", routes(&origin)));
    let gateway = started(site);
    let url = format!("https://localhost:{}/", gateway.address().port());
    let (go, java) = programs();
    let in_folder = |name: &str, end: &str| folder.join(format!("{name}.{end}"));
    for (name, is_taken) in [
        ("alice", true),
        ("bob", false),
        ("mallory", false),
        ("", false),
    ] {
        let mut by_go = Command::new(&go);
        by_go.arg(&url);
        let mut by_java = Command::new("java");
        by_java.arg("-Djdk.internal.httpclient.disableHostnameVerification=true");
        by_java.arg("-cp").arg(&java).arg("Mutual").arg(&url);
        if !name.is_empty() {
            by_go.args([in_folder(name, "pem"), in_folder(name, "key")]);
            by_java.arg(in_folder(name, "p12"));
        }
        for mut command in [by_go, by_java] {
            let output = command.stdin(Stdio::null()).output().expect("a program");
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            let expected = if is_taken { "200 SUCCESS|" } else { "error:" };
            assert!(
                printed.starts_with(expected),
                "{name}: {printed} {output:?}"
            );
        }
    }
    assert_eq!(origin.arrivals().len(), 2);
}

#[test]
fn each_address_has_its_own_rule_for_certificates() {
    let (site, _) = site();
    let origin = telling();
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
    let gateway = started(site);
    let public = gateway.address();
    for (to, name, expected) in [
        (public, "", "none"),
        (public, "alice", "SUCCESS"),
        (open, "", "NONE"),
        // Nobody asks for it there.
        (open, "alice", "NONE"),
        (optional, "", "NONE"),
        (optional, "alice", "SUCCESS"),
        (optional, "mallory", "none"),
        (stranger, "mallory", "SUCCESS"),
        (stranger, "alice", "none"),
        (stranger, "", "none"),
    ] {
        let told = curl(&format!("https://{to}/"), &folder, name);
        assert_eq!(told.split('|').next(), Some(expected), "{to} {name}");
    }
}

/// Whether the file of a place passes the check, and what is told of it.
fn check(site: &Site) -> (bool, String) {
    let mut check = drip();
    check.arg("check").arg("-c").arg(site.file());
    let checked = check.output().expect("drip");
    let told = [checked.stdout, checked.stderr].concat();
    let told = String::from_utf8_lossy(&told).into_owned();
    (checked.status.success(), told)
}

#[test]
fn files_that_cannot_be_used_are_told_at_their_place_before_anything_starts() {
    let (site, _) = site();
    let origin = telling();
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
        let (passes, told) = check(&site);
        assert!(!passes && told.contains(expected), "{fields}: {told}");
        assert!(
            told.contains("gateway.toml:7:") || told.contains("gateway.toml:8:"),
            "{told}"
        );
    }
    site.write(&routes(&origin));
    let text = fs::read_to_string(site.file()).expect("a file");
    let plain = text.replacen(
        "listen = [",
        "listen = [{ address = \"127.0.0.1:1\", client_auth = \"required\" }, ",
        1,
    );
    fs::write(site.file(), plain).expect("a file");
    let (_, told) = check(&site);
    assert!(
        told.contains("client_auth: clients show certificates over TLS only"),
        "{told}"
    );
}
