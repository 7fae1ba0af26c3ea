//! Tests of examples of deployments: TLS with certbot, a sidecar, a cluster in Kubernetes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use crate::documents::examples::{Example, best_of_three, curl};
use crate::support::secure::{connect, write_pair};
use crate::support::{Origin, SOON, Site, free_address, now};

/// Folder in which the file looks for certificates.
const LIVE: &str = "/etc/letsencrypt";

/// Writes the pair of renewal `nth` as certbot does: files in `archive`, links in `live`.
fn renew(letsencrypt: &Path, nth: u32) -> Vec<u8> {
    let (archive, live) = (
        letsencrypt.join("archive/www.example.com"),
        letsencrypt.join("live/www.example.com"),
    );
    for folder in [&archive, &live] {
        fs::create_dir_all(folder).expect("a folder");
    }
    let scratch = tempfile::tempdir().expect("a folder");
    let cert = write_pair(scratch.path(), "new", &["www.example.com"]);
    for (name, written) in [("fullchain", "new.pem"), ("privkey", "new.key")] {
        let file = format!("{name}{nth}.pem");
        fs::copy(scratch.path().join(written), archive.join(&file)).expect("a copy");
        let link = live.join(format!("{name}.pem"));
        let _none_before_the_first = fs::remove_file(&link);
        symlink(format!("../../archive/www.example.com/{file}"), link).expect("a link");
    }
    cert.to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_files_that_certbot_renews_are_taken_up() {
    let (site, origin) = (Site::new(), Origin::start());
    let letsencrypt = site.folder().join("letsencrypt");
    let first = renew(&letsencrypt, 1);
    let live_path = letsencrypt.display().to_string();
    let (redirecting, certbot) = (free_address(), Origin::start());
    let replaced = [
        (LIVE, &*live_path),
        ("\"0.0.0.0:80\"", &format!("\"{redirecting}\"")),
        ("127.0.0.1:8402", &certbot.address.to_string()),
        // The gateway of the page has port 443.
        ("redirect = \"https\"", "redirect = \"https:443\""),
    ];
    let example = Example::start_in(site, "tls-certbot", &origin, &replaced);
    let gateway = &example.gateway;
    let addresses = [
        ("127.0.0.1:443", gateway.address()),
        ("127.0.0.1:80", redirecting),
    ];
    if let Err(failure) = example.page.try_it(&addresses) {
        panic!("{failure}");
    }
    let challenge = "/.well-known/acme-challenge/token";
    assert_eq!(curl(redirecting, challenge, &[]), 200);
    assert_eq!(certbot.arrivals()[0].target, challenge);
    assert_eq!(curl(redirecting, "/.well-known/other", &[]), 308);
    let shown = || async { connect(gateway, "www.example.com", &[]).await.1.to_vec() };
    assert!(shown().await == first);
    let second = renew(&letsencrypt, 2);
    let since = now();
    while shown().await != second {
        assert!(since.elapsed() < 2 * SOON, "the old one is still shown");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    gateway.wait_for_line("certificate renewed: new connections get it");
}

#[test]
fn a_sidecar_is_ready_without_a_token_and_changes_nothing_without_one() {
    let origin = Origin::start();
    let example = Example::start("kubernetes-sidecar", &origin, &[]);
    example.works();
}

#[test]
fn a_gateway_of_a_cluster_keeps_the_limits_of_its_ingresses() {
    let origin = Origin::start();
    let url = format!("http://{}", origin.address);
    let replaced = [
        ("http://web.shop.svc.cluster.local:80", url.as_str()),
        ("http://api.shop.svc.cluster.local:8000", url.as_str()),
        ("rate = \"2r/s\"", "rate = \"2r/m\""),
    ];
    best_of_three(|| Example::start("ingress-nginx-cluster", &origin, &replaced));
}
