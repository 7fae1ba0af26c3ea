//! Tests of several certificates for one name.

use std::fs;

use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, SignatureAlgorithm};
use tokio_rustls::rustls::SignatureScheme;
use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::support::secure::certificate_for;
use crate::support::{Gateway, Origin, Site, one_zone};

fn write(
    site: &Site,
    file: &str,
    name: &str,
    algorithm: &'static SignatureAlgorithm,
) -> CertificateDer<'static> {
    let key = KeyPair::generate_for(algorithm).expect("a key");
    let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    let cert = params.self_signed(&key).expect("a certificate");
    let file = |kind: &str| site.folder().join(format!("{file}.{kind}"));
    fs::write(file("pem"), cert.pem()).expect("a file");
    fs::write(file("key"), key.serialize_pem()).expect("a file");
    cert.der().clone()
}

#[test]
fn a_client_gets_the_certificate_that_fits_best() {
    let origin = Origin::start();
    let site = Site::new();
    let wildcard = write(&site, "wildcard", "*.x.test", &PKCS_ED25519);
    let ed25519 = write(&site, "ed25519", "a.x.test", &PKCS_ED25519);
    let ecdsa = write(&site, "ecdsa", "A.x.test", &PKCS_ECDSA_P256_SHA256);
    let all = ["wildcard", "ed25519", "ecdsa"];
    let files = |kind: &str| all.map(|name| format!("\"{name}.{kind}\"")).join(", ");
    let tls = format!(
        "[server.tls]\ncert = [{}]\nkey = [{}]\n",
        files("pem"),
        files("key")
    );
    site.write(&(tls + &one_zone(&origin, "1000r/s", "burst = 9")));
    let gateway = Gateway::start_at(site);
    let (of_ed25519, of_ecdsa) = (
        SignatureScheme::ED25519,
        SignatureScheme::ECDSA_NISTP256_SHA256,
    );
    let shown = |name, scheme| certificate_for(&gateway, name, scheme).expect("a handshake");
    assert_eq!(shown("a.x.test", of_ed25519), ed25519);
    assert_eq!(shown("a.x.test", of_ecdsa), ecdsa);
    assert_eq!(shown("b.x.test", of_ed25519), wildcard);
    assert_eq!(shown("other.test", of_ed25519), wildcard);
    assert_eq!(shown("other.test", of_ecdsa), ecdsa);
    let refused = certificate_for(&gateway, "b.x.test", of_ecdsa);
    assert!(refused.is_err(), "only a certificate of another name fits");
}
