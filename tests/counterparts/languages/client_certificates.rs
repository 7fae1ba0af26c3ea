//! Tests of client certificates with clients in Go and Java.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::programs::running::{go, java};
use crate::support::Gateway;
use crate::support::client_certificates::{echo_origin, revoked, routes, site};

/// Writes `NAME.p12`, which Java reads, from `NAME.pem` and `NAME.key`.
fn store(folder: &Path, name: &str) {
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

#[test]
fn programs_in_go_and_java_show_certificates_and_are_refused_without() {
    let (site, ca) = site();
    let origin = echo_origin();
    let folder = site.folder().to_owned();
    fs::write(folder.join("revoked.pem"), revoked(&ca, &[&[2]])).expect("a file");
    let tls = "[server.tls]\ncert = \"a.pem\"\nkey = \"a.key\"\nclient_ca = \"ca.pem\"\nclient_crl = \"revoked.pem\"\n";
    site.write(&format!("{tls}{}", routes(&origin)));
    let gateway = Gateway::start_at(site);
    let url = format!("https://localhost:{}/", gateway.address().port());
    let (go, java) = (go("mutual.go"), java("Mutual.java"));
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
            store(&folder, name);
            by_go.args([in_folder(name, "pem"), in_folder(name, "key")]);
            by_java.arg(in_folder(name, "p12"));
        }
        for mut command in [by_go, by_java] {
            let output = command.stdin(Stdio::null()).output().expect("a program");
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            let expected = if is_taken { "200 SUCCESS|" } else { "error:" };
            let has_outcome = printed.starts_with(expected);
            assert!(has_outcome, "{name}: {printed} {output:?}");
        }
    }
    assert_eq!(origin.arrivals().len(), 2);
}
