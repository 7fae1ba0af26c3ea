//! What is probably a mistake in `[server]`.

use std::path::Path;

use rustix::fs::{Access, access};

use super::addresses::{every_peer, is_loopback};
use crate::config::node::Node;
use crate::config::{Listen, ListenAddress, Server, check_state_file};

pub(super) fn server(server: &Server, node: Node) {
    let is_local = |listen: &Listen| match &listen.address {
        ListenAddress::Tcp(address) => is_loopback(address),
        ListenAddress::Unix { .. } => true,
    };
    if !server.listen.iter().all(is_local) {
        every_peer(node.field("trusted_proxies"), &server.trusted_proxies);
        every_peer(node.field("proxy_protocol"), &server.proxy_protocol);
    }
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

/// Warns of a state file that cannot be written.
fn state_file(state: &Path, node: Node) {
    let file = match check_state_file(state) {
        Ok(file) => file,
        Err(error) => {
            node.warn(&format!(
                "the state cannot be written to {}: {error}; name another file, or a restart forgets all levels",
                state.display()
            ));
            return;
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
