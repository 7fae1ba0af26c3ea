//! Files of gateways that listen in several ways.

use std::fs;
use std::net::SocketAddr;

use crate::support::secure::write_pair;
use crate::support::{Gateway, Origin, Site, file, free_address, zone};

pub const LIMITS: &str = "limits = [{ zone = \"z\", burst = 9, nodelay = true }]";
pub const TLS: &str = "[server.tls]\ncert = \"a.pem\"\nkey = \"a.key\"\n";

/// Creates a site with a certificate, and a file with `listen` and `more` of `[server]`.
pub fn site(listen: &str, more: &str, rest: &str) -> Site {
    let site = Site::new();
    write_pair(site.folder(), "a", &["a.test"]);
    let text = format!(
        "[server]\nlisten = [{listen}]\nadmin = \"{}\"\n{more}\n{rest}",
        site.admin
    );
    fs::write(site.file(), text).expect("a file");
    site
}

/// Starts a gateway that redirects from one address to TLS at another. Returns both addresses.
pub fn redirecting(origin: &Origin, redirect: &str) -> (Gateway, SocketAddr, SocketAddr) {
    let (plain, tls) = (free_address(), free_address());
    let listen = format!("{{ address = \"{plain}\", redirect = \"{redirect}\" }}, \"{tls}\"");
    let zones = zone("z", "$remote_addr", "1r/h");
    let routes = [("/", LIMITS), ("/.well-known/acme-challenge/", "")];
    let rest = file(origin, &zones, &routes);
    (Gateway::start_at(site(&listen, TLS, &rest)), plain, tls)
}
