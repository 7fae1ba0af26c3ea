//! Tests of TLS to servers: accepted servers, and drip's own certificate.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use rcgen::{CertificateParams, KeyPair};

use crate::programs::nginx::Nginx;
use crate::support::client_certificates::{Authority, authority, client};
use crate::support::{Gateway, Origin, Site, eventually, fetch};

/// Creates a server's certificate for these names, in `NAME.pem` and `NAME.key`.
fn server(folder: &Path, authority: &Authority, name: &str, names: &[&str]) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(names).expect("parameters");
    let certificate = params.signed_by(&key, authority).expect("a certificate");
    fs::write(folder.join(format!("{name}.pem")), certificate.pem()).expect("a file");
    fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).expect("a file");
}

/// Starts a server for `app.internal` that requires a client certificate by `ca`.
///
/// It answers with what it knows of the client.
fn asking(folder: &Path, origin: &Origin) -> Nginx {
    let file = |name: &str| folder.join(name).display().to_string();
    Nginx::with_servers(origin, |address| {
        format!(
            "server {{ listen {address} ssl; ssl_certificate {}; ssl_certificate_key {}; ssl_client_certificate {}; \
             ssl_verify_client on; location / {{ return 200 \"$ssl_client_s_dn $ssl_server_name\"; }} }}",
            file("server.pem"),
            file("server.key"),
            file("ca.pem")
        )
    })
}

/// Starts nginx as a proxy in front of `to`, with these directives.
fn proxy(origin: &Origin, to: SocketAddr, directives: &str) -> Nginx {
    Nginx::with_servers(origin, |address| {
        format!(
            "server {{ listen {address}; location / {{ proxy_pass https://{to}; proxy_ssl_verify on; \
             proxy_ssl_server_name on; {directives} }} }}"
        )
    })
}

fn file_of(to: SocketAddr, fields: &str) -> String {
    format!(
        "[origins.app]\nservers = [\"https://{to}\"]\n{fields}\n[[routes]]\npath = \"/\"\norigin = \"app\"\n"
    )
}

fn files(site: &Site) {
    let folder = site.folder();
    let ca = authority(folder, "ca");
    server(folder, &ca, "server", &["app.internal"]);
    client(folder, &ca, "drip", &[1]);
    let stranger = authority(folder, "stranger");
    client(folder, &stranger, "mallory", &[2]);
}

#[test]
fn servers_and_the_gateway_know_each_other_as_with_nginx() {
    let origin = Origin::start();
    let site = Site::new();
    files(&site);
    let folder = site.folder().to_owned();
    let app = asking(&folder, &origin);
    let path = |name: &str| folder.join(name).display().to_string();
    for (ca, name, shown, expected) in [
        ("ca", "app.internal", "drip", 200),
        ("ca", "app.internal", "", 400),
        ("ca", "app.internal", "mallory", 400),
        ("ca", "other.internal", "drip", 502),
        // The certificate is not for the address in the URL.
        ("ca", "", "drip", 502),
        ("stranger", "app.internal", "drip", 502),
    ] {
        let case = format!("{ca} {name} {shown}");
        let mut fields = format!("ca = \"{}\"\n", path(&format!("{ca}.pem")));
        let mut directives = format!(
            "proxy_ssl_trusted_certificate {};",
            path(&format!("{ca}.pem"))
        );
        if !name.is_empty() {
            fields.extend([format!("server_name = \"{name}\"\n")]);
            directives.extend([format!("proxy_ssl_name {name};")]);
        }
        if !shown.is_empty() {
            let (pem, key) = (path(&format!("{shown}.pem")), path(&format!("{shown}.key")));
            fields.extend([format!("client_cert = \"{pem}\"\nclient_key = \"{key}\"\n")]);
            directives.extend([format!(
                "proxy_ssl_certificate {pem}; proxy_ssl_certificate_key {key};"
            )]);
        }
        let gateway = Gateway::start(&file_of(app.address, &fields));
        let theirs = fetch(proxy(&origin, app.address, &directives).address, "/");
        assert_eq!(theirs.status, expected, "{case}: nginx");
        let ours = gateway.fetch("/");
        assert_eq!(ours.status, expected, "{case}: {}", gateway.log());
        if expected == 200 {
            assert_eq!(ours.text(), "O=Drip\\, Inc.,CN=drip app.internal");
            assert_eq!(theirs.text(), ours.text());
        }
    }
}

#[test]
fn files_that_change_count_for_new_connections_and_broken_ones_change_nothing() {
    let origin = Origin::start();
    let site = Site::new();
    files(&site);
    let folder = site.folder().to_owned();
    let app = asking(&folder, &origin);
    let fields = "ca = \"ca.pem\"\nserver_name = \"app.internal\"\nclient_cert = \"drip.pem\"\n\
                  client_key = \"drip.key\"\nkeep_alive = 0\n";
    site.write(&file_of(app.address, fields));
    let gateway = Gateway::start_at(site);
    let status = || gateway.fetch("/").status;
    assert_eq!(status(), 200);
    let copy = |from: &str, to: &str| fs::copy(folder.join(from), folder.join(to)).expect("a file");
    copy("drip.pem", "old.pem");
    copy("drip.key", "old.key");

    // Between two writes: certificate and key do not match.
    copy("mallory.pem", "drip.pem");
    eventually("the log reports it", || {
        gateway.log().contains("drip.key is not the key of")
    });
    assert_eq!(status(), 200);
    copy("mallory.key", "drip.key");
    eventually("the other certificate is shown", || status() == 400);
    eventually("the log reports it", || {
        let received = "origin certificate file drip.pem content changed";
        gateway.log().contains(received)
    });
    copy("old.key", "drip.key");
    copy("old.pem", "drip.pem");
    eventually("the first one is shown again", || status() == 200);

    let ca = fs::read(folder.join("ca.pem")).expect("a file");
    copy("stranger.pem", "ca.pem");
    eventually("the server is not trusted", || status() == 502);
    fs::write(folder.join("ca.pem"), "none").expect("a file");
    eventually("the log reports it", || {
        gateway
            .log()
            .contains("ca.pem: it has no certificate in PEM")
    });
    assert_eq!(status(), 502);
    fs::remove_file(folder.join("ca.pem")).expect("a file");
    eventually("the log reports it", || {
        gateway.log().contains("ca.pem cannot be read")
    });
    fs::write(folder.join("ca.pem"), ca).expect("a file");
    eventually("it is trusted again", || status() == 200);
}
