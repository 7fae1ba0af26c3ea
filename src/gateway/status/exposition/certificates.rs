//! The metric of the certificates that expire.

use super::Family;
use crate::http::gateway::Gateway;
use crate::observe::certificates::{CertificateOf, known_certificates};
use crate::time::clock;

/// Writes when certificates expire; nothing if none is known.
pub(super) fn write(out: &mut String, gateway: &Gateway) {
    let mut expires = Family::gauge(
        "drip_certificate_expires_timestamp_seconds",
        "End of a certificate's validity, in Unix time: of the server, of the clients' authority, as an origin's servers showed it last, or of the client_cert of an origin.",
    );
    let mut is_empty = true;
    let mut add = |of: CertificateOf, name: &str, at: i64| {
        expires.add(&[("of", of.label()), ("name", name)], at);
        is_empty = false;
    };
    for it in known_certificates() {
        add(it.of, &it.name, it.validity.to);
    }
    let now = clock::now();
    for origin in gateway.origins() {
        let shown = origin.servers(now).filter_map(|it| it.certificate_expires);
        if let Some(first) = shown.min() {
            add(CertificateOf::Origin, &origin.settings().name, first);
        }
        if let Some(own) = origin.settings().tls.own_validity() {
            add(CertificateOf::ClientCert, &origin.settings().name, own.to);
        }
    }
    if !is_empty {
        out.push_str(&expires.text);
    }
}
