//! Warnings about `[server]`.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use ipnet::IpNet;
use limit::show_duration;
use rustix::fs::{Access, access};

use crate::node::Node;
use crate::{Listen, ListenAddress, Server, Zone, check_state_file};

pub(super) fn server(server: &Server, node: Node) {
    let is_local = |listen: &Listen| match &listen.address {
        ListenAddress::Tcp(address) => is_loopback(address),
        ListenAddress::Unix { .. } => true,
    };
    if !server.listen.iter().all(is_local) {
        let so = "each client chooses the address that it is known by; name the proxies only";
        let (trusted, senders) = (&server.trusted_proxies, &server.proxy_protocol);
        every_address(node.field("trusted_proxies"), &trusted.networks.list, so);
        every_address(node.field("proxy_protocol"), &senders.networks.list, so);
    }
    idle_time(server, node);
    if let Some(tls) = node.field("tls").filter(|_| !server.has_tls_address()) {
        tls.warn("no address of listen has TLS, so nothing uses the certificates; write tls = true for one, or remove this table");
    }
    if let (Some(state), Some(node)) = (&server.state, node.field("state")) {
        state_file(state, node);
    }
    if let (Some(admin), Some(node)) = (server.admin, node.field("admin"))
        && !is_loopback(&admin)
    {
        node.warn(&format!(
            "{admin} is reachable from other hosts without TLS, so the token can be read on its way; use 127.0.0.1:{} behind a tunnel or a TLS proxy, unless the network is trusted",
            admin.port()
        ));
    }
}

/// Warns of networks that together contain every address. `so`: the consequence.
fn every_address(node: Option<Node>, networks: &[IpNet], so: &str) {
    let together = IpNet::aggregate(&networks.to_vec());
    let whole = together.iter().find(|network| network.prefix_len() == 0);
    if let (Some(node), Some(whole)) = (node, whole) {
        node.warn(&format!("it has every address of {whole}, so {so}"));
    }
}

/// Warns of a zone that exempts every client.
pub(super) fn exempt(zone: &Zone, node: Node) {
    let so = "the zone never limits these clients; name fewer";
    every_address(node.field("exempt"), &zone.exempt, so);
}

fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// Source networks of Google's load balancers.
const GOOGLE: [&str; 2] = ["35.191.0.0/16", "130.211.0.0/22"];

/// Warns of a load balancer that keeps idle connections longer than the gateway does.
///
/// It sends requests on connections that the gateway is just closing, and answers these requests
/// with 502.
fn idle_time(server: &Server, node: Node) {
    let Some(node) = node.field("trusted_proxies") else {
        return;
    };
    let networks = &server.trusted_proxies.networks.list;
    let google = GOOGLE.map(str::parse::<IpNet>);
    let is_google = |network: &IpNet| google.iter().flatten().any(|it| it.contains(network));
    let google = ("Google's load balancers keep", 600, "620s");
    let others = ("most load balancers, such as AWS's, keep", 60, "75s");
    let has_google = networks.iter().any(is_google);
    let (who, keeps, enough) = if has_google { google } else { others };
    let keeps = Duration::from_secs(keeps);
    if !networks.is_empty() && !server.keep_alive.is_zero() && server.keep_alive <= keeps {
        node.warn(&format!(
            "{who} idle connections for {}, and keep_alive = \"{}\" closes them no later, so requests meet closed connections; set keep_alive = \"{enough}\"",
            show_duration(keeps),
            show_duration(server.keep_alive)
        ));
    }
}

/// Warns of a state file that cannot be written.
fn state_file(state: &Path, node: Node) {
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
