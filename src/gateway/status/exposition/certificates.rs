//! The metric of the certificates that expire.

use super::table::{Table, labels};
use crate::http::gateway::Gateway;
use crate::observe::certificates::{CertificateOf, known_certificates};
use crate::time::clock;

/// Writes when certificates expire; nothing if none is known.
pub(super) fn write(out: &mut String, gateway: &Gateway) {
    let mut ends = Vec::new();
    let mut add = |of: CertificateOf, name: &str, at: i64| {
        ends.push((labels(&[("of", of.label()), ("name", name)]), at));
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
    Table::new(out, ends).write(
        "drip_certificate_expires_timestamp_seconds",
        |at, series| series.add(at),
    );
}
