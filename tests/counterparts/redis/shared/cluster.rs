//! Tests of zones in a Redis cluster.

use std::process::Command;
use std::time::Duration;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tempfile::TempDir;

use crate::programs::redis::Redis;
use crate::redis::shared::file;
use crate::support::{Gateway, Origin, eventually, fetch, free_address};

fn passed(gateway: &Gateway, key: &str) -> usize {
    let answers = (0..6).map(|_| fetch(gateway.address(), &format!("/?key={key}")).status);
    answers.filter(|status| *status == 200).count()
}

#[test]
fn the_keys_of_a_zone_are_spread_over_a_cluster() {
    // By default, nodes connect to each other on ports that the kernel may give to clients.
    let nodes = [(); 3].map(|()| {
        let port = free_address().port().to_string();
        Redis::with(&["--cluster-enabled", "yes", "--cluster-port", &port])
    });
    let mut command = Command::new("redis-cli");
    command.args(["--cluster", "create"]);
    command.args(nodes.iter().map(|node| node.address.to_string()));
    command.args(["--cluster-replicas", "0", "--cluster-yes"]);
    let made = command
        .output()
        .expect("redis-cli is there with redis-server");
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&[made.stdout, made.stderr].concat())
    );
    eventually("the cluster is up", || {
        let info = |node: &Redis| node.ask("CLUSTER COUNTKEYSINSLOT 0") == ":0";
        nodes.iter().all(info)
    });

    let origin = Origin::start();
    // The URL names two of the three nodes.
    let url = format!("redis+cluster://{},{}", nodes[0].address, nodes[1].address);
    let text = file(&origin, &url, "3r/h", "", ", burst = 2, nodelay = true");
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    for nth in 0..20 {
        let key = format!("k{nth}");
        let both = passed(&one, &key) + passed(&other, &key);
        assert_eq!(both, 3, "{key}");
    }
    let sizes: Vec<String> = nodes.iter().map(|node| node.ask("DBSIZE")).collect();
    assert!(sizes.iter().all(|size| size != ":0"), "{sizes:?}");
    assert_eq!(one.metrics().count("drip_store_up", &[]), 1);
}

#[test]
fn over_tls_with_a_password_which_nobody_is_shown() {
    let folder = TempDir::new().expect("a folder");
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let (cert_file, key_file) = (
        folder.path().join("cert.pem"),
        folder.path().join("key.pem"),
    );
    std::fs::write(&cert_file, cert.pem()).expect("a file");
    std::fs::write(&key_file, signing_key.serialize_pem()).expect("a file");
    let address = free_address();
    let port = address.port().to_string();
    let (cert, key) = (
        cert_file.display().to_string(),
        key_file.display().to_string(),
    );
    let arguments = [
        "--port",
        "0",
        "--tls-port",
        &port,
        "--tls-cert-file",
        &cert,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &cert,
        "--tls-auth-clients",
        "no",
        "--requirepass",
        "s3cret",
    ];
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
    assert_eq!(passed(&gateway, "a"), 3);
    let config = gateway.admin("/api/config").expect("an admin port").text();
    assert!(
        config.contains("rediss://:***@localhost") && !config.contains("s3cret"),
        "{config}"
    );

    gateway.site.write(&text("wrong"));
    gateway.wait_for_line("the changed file is in force");
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 503);
    let line = gateway.wait_for_line("the store is out");
    assert!(!line.contains("wrong@"), "{line}");
    gateway.site.write(&text("s3cret"));
    eventually("the store is there again", || {
        fetch(gateway.address(), "/?key=a").status == 429
    });

    // Without the CA, a gateway does not trust the cluster.
    let stranger = Gateway::start(&text("s3cret"));
    assert_eq!(fetch(stranger.address(), "/?key=b").status, 503);
    std::thread::sleep(Duration::from_millis(10));
}
