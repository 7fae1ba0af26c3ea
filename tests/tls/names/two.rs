//! A gateway with two certificates. The client's server name chooses one.

use crate::support::secure::write_pair;
use crate::support::{Gateway, Origin, Site, one_zone};

/// Starts a gateway with certificates for `a.test` and `b.test`, in this order.
pub fn two_certificates(origin: &Origin) -> Gateway {
    let site = Site::new();
    for name in ["a", "b"] {
        write_pair(site.folder(), name, &[&format!("{name}.test")]);
    }
    let tls =
        "[server.tls]\ncert = [\"a.pem\", \"b.pem\"]\nkey = [\"a.key\", \"b.key\"]\n".to_owned();
    site.write(&(tls + &one_zone(origin, "1000r/s", "burst = 9")));
    Gateway::start_at(site)
}
