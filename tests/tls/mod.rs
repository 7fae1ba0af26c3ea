//! Tests of `[server.tls]` with HTTP/1.1 and HTTP/2 clients.
//!
//! Also tests certificates of origins and of Redis.

mod certificates;
mod client_certificates;
mod http1;
mod http2;
mod names;
mod origins;
mod redis;
mod streams;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair};

fn key() -> KeyPair {
    KeyPair::generate().expect("a key")
}

fn params(name: &str, is_ca: IsCa) -> CertificateParams {
    let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    params.is_ca = is_ca;
    params
}

/// Returns an authority with its own name.
fn authority() -> CertificateParams {
    let mut params = params("root", IsCa::Ca(BasicConstraints::Unconstrained));
    let name = &mut params.distinguished_name;
    name.push(DnType::CommonName, "an authority");
    params
}
