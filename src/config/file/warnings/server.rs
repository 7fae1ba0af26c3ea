//! Warnings about `[server]`, and about networks that contain every address.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use ipnet::IpNet;
use limit::show_duration;
use rustix::fs::{Access, access};

use crate::node::Node;
use crate::{Listen, ListenAddress, Server, Zone, check_state_file};

/// Warns of values that are unsafe, that nothing uses, or that do not work on this host.
///
/// `node`: `[server]` in the file.
pub(super) fn check(server: &Server, node: Node) {
    let is_local = |listen: &Listen| match &listen.address {
        ListenAddress::Tcp(address) => is_loopback(address),
        ListenAddress::Unix { .. } => true,
    };
    if !server.listen.iter().all(is_local) {
        let consequence =
            "each client chooses the address that it is known by; name the proxies only";
        let (trusted, senders) = (&server.trusted_proxies, &server.proxy_protocol);
        check_networks(node, "trusted_proxies", &trusted.networks.list, consequence);
        check_networks(node, "proxy_protocol", &senders.networks.list, consequence);
    }
    check_keep_alive(server, node);
    if !server.has_tls_address() {
        node.warn_field("tls", "no address of listen has TLS, so nothing uses the certificates; write tls = true for one, or remove this table");
    }
    if let (Some(state), Some(node)) = (&server.state, node.field("state")) {
        check_state(state, node);
    }
    if let Some(admin) = server.admin.filter(|admin| !is_loopback(admin)) {
        let message = format!(
            "{admin} is reachable from other hosts without TLS, so the token can be read on its way; use 127.0.0.1:{} behind a tunnel or a TLS proxy, unless the network is trusted",
            admin.port()
        );
        node.warn_field("admin", &message);
    }
}

/// Warns if the networks of a field together contain every IPv4 or every IPv6 address.
fn check_networks(node: Node, name: &'static str, networks: &[IpNet], consequence: &str) {
    let aggregated = IpNet::aggregate(&networks.to_vec());
    if let Some(all) = aggregated.iter().find(|network| network.prefix_len() == 0) {
        let message = format!("it has every address of {all}, so {consequence}");
        node.warn_field(name, &message);
    }
}

/// Warns of a zone that exempts every client.
pub(super) fn check_exempt(zone: &Zone, node: Node) {
    let consequence = "the zone never limits these clients; name fewer";
    check_networks(node, "exempt", &zone.exempt, consequence);
}

/// Returns whether only this host can reach an address.
fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// Source networks of Google's load balancers.
const GOOGLE: [&str; 2] = ["35.191.0.0/16", "130.211.0.0/22"];

/// Warns of a load balancer that keeps idle connections longer than the gateway does.
///
/// Such a load balancer sends requests on connections that the gateway is just closing. It answers
/// these requests with 502.
fn check_keep_alive(server: &Server, node: Node) {
    let networks = &server.trusted_proxies.networks.list;
    let google = GOOGLE.map(str::parse::<IpNet>);
    let is_google = |network: &IpNet| google.iter().flatten().any(|all| all.contains(network));
    // Begin of the message, seconds for which idle connections are kept, and a longer `keep_alive`.
    let google_balancers = ("Google's load balancers keep", 600, "620s");
    let other_balancers = ("most load balancers, such as AWS's, keep", 60, "75s");
    let (balancers_keep, idle_seconds, remedy) = if networks.iter().any(is_google) {
        google_balancers
    } else {
        other_balancers
    };
    let idle = Duration::from_secs(idle_seconds);
    if !networks.is_empty() && !server.keep_alive.is_zero() && server.keep_alive <= idle {
        let message = format!(
            "{balancers_keep} idle connections for {}, and keep_alive = \"{}\" closes them no later, so requests meet closed connections; set keep_alive = \"{remedy}\"",
            show_duration(idle),
            show_duration(server.keep_alive)
        );
        node.warn_field("trusted_proxies", &message);
    }
}

/// Warns of a state file that cannot be written.
fn check_state(state: &Path, node: Node) {
    let file = match check_state_file(state) {
        Ok(file) => file,
        Err(error) => {
            return node.warn(&format!(
                "the state cannot be written to {}: {error}; name another file, or a restart forgets all levels",
                state.display()
            ));
        }
    };
    let folder = file.parent().unwrap_or(&file);
    if let Err(error) = access(folder, Access::WRITE_OK | Access::EXEC_OK) {
        node.warn(&format!(
            "no file can be written in {}: {error}; name one in a folder that this user can write, or a restart forgets all levels",
            folder.display()
        ));
    }
}
