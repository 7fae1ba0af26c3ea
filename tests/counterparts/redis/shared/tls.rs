//! Tests of a Redis over TLS with a password.

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tempfile::TempDir;

use crate::programs::redis::Redis;
use crate::redis::shared::file;
use crate::support::{Gateway, Origin, eventually, fetch, free_address};

#[test]
fn over_tls_with_a_password_which_nobody_is_shown() {
    let folder = TempDir::new().expect("a folder");
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let [cert_file, key_file] = ["cert.pem", "key.pem"].map(|name| folder.path().join(name));
    std::fs::write(&cert_file, cert.pem()).expect("a file");
    std::fs::write(&key_file, signing_key.serialize_pem()).expect("a file");
    let address = free_address();
    let port = address.port();
    let arguments = format!(
        "--port 0 --tls-port {port} --tls-auth-clients no --requirepass s3cret \
         --tls-cert-file {cert} --tls-ca-cert-file {cert} --tls-key-file {}",
        key_file.display(),
        cert = cert_file.display(),
    );
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let _redis = Redis::in_folder(folder, address, &arguments);
    let origin = Origin::start();
    let text = |password: &str| {
        let url = format!("rediss://:{password}@localhost:{port}/0");
        let limit = ", burst = 2, nodelay = true";
        let more = "on_store_failure = \"closed\"";
        file(&origin, &url, "3r/h", more, limit)
    };
    let trust = [("SSL_CERT_FILE", cert_file.as_path())];
    let gateway = Gateway::start_with(&text("s3cret"), &trust);
    let passed = (0..6).filter(|_| gateway.fetch("/?key=a").status == 200);
    assert_eq!(passed.count(), 3);
    let config = gateway.admin("/api/config").expect("an admin port").text();
    let is_hidden = config.contains("rediss://:***@localhost") && !config.contains("s3cret");
    assert!(is_hidden, "{config}");

    gateway.site.write(&text("wrong"));
    gateway.wait_for_line("the changed file is in force");
    assert_eq!(gateway.fetch("/?key=a").status, 503);
    let line = gateway.wait_for_line("the store is out");
    assert!(!line.contains("wrong@"), "{line}");
    gateway.site.write(&text("s3cret"));
    eventually("the store is there again", || {
        gateway.fetch("/?key=a").status == 429
    });

    // Without the CA, a gateway does not trust the cluster.
    let stranger = Gateway::start(&text("s3cret"));
    assert_eq!(fetch(stranger.address(), "/?key=b").status, 503);
}
