//! Builds the tables `[server]` and `[server.tls]`.

use std::path::Path;
use std::time::Duration;

use config::toml_string;

use super::Translation;
use super::listen;
use super::networks::{is_mapped, network, why_addresses_differ};
use super::page::{Section, absolute, list};
use super::scope::everywhere;
use super::server::Server;
use crate::import::tree::Directive;
use crate::import::values;

impl Translation<'_> {
    /// Returns the sections `[server]` and `[server.tls]`.
    pub(super) fn gateway(&mut self, http: &[Directive], servers: &[Server]) -> Vec<Section> {
        let notes = servers[0].at.notes;
        let before = notes.count();
        let mut section = Section::new("[server]");
        let tls = self.tls(http);
        self.listens(servers, tls.is_some(), &mut section);
        trusted(http, &mut section);
        for (theirs, ours, zero) in [
            ("keepalive_timeout", "keep_alive", true),
            ("client_header_timeout", "header_timeout", false),
            ("client_body_timeout", "body_timeout", false),
        ] {
            if let Some(span) = one_for_all(http, theirs, zero) {
                section.span(ours, span);
            }
        }
        // Default of nginx's `client_max_body_size`.
        let bodies = self.bodies.iter().map(|size| size.unwrap_or(1 << 20));
        let bodies: Vec<u64> = bodies.collect();
        section.largest_body(&bodies, 0, "client_max_body_size differs between locations");
        section.comments.extend(notes.since(before));
        std::iter::once(section).chain(tls).collect()
    }

    fn listens(&mut self, servers: &[Server], certified: bool, section: &mut Section) {
        let mut all = servers.iter().flat_map(|server| &server.listens);
        let tls = all.any(|listen| listen.tls);
        let mut listens: Vec<&str> = Vec::new();
        for server in servers {
            for listen in &server.listens {
                let address = &listen.address;
                let why = if self.dropped.contains(address) {
                    "import writes no routes by listen address, and requests that are protected or local would be open there"
                } else if listen.tls && !certified {
                    "it needs TLS and no certificate could be loaded here; add it to listen along with [server.tls]"
                } else if listen.tls || !tls || address.starts_with("unix:") {
                    listens.push(address);
                    continue;
                } else {
                    "other addresses have TLS; to serve it, add it to listen with tls = false, or with redirect = \"https\""
                };
                let message = format!("{address} is left out: {why}");
                server.at.note(message);
            }
        }
        let mut addresses = listen::together(&listens);
        if addresses.is_empty() && tls {
            // Until the certificate exists, only this machine can reach the gateway.
            addresses.push("127.0.0.1:8080".to_owned());
        }
        if addresses.is_empty() {
            return;
        }
        section.fields.push(("listen", list(&addresses)));
        let mut ports = (9090..=u16::MAX).map(|port| format!("127.0.0.1:{port}"));
        let free =
            ports.find(|admin| !addresses.iter().any(|address| listen::meet(address, admin)));
        if let Some(admin) = free.filter(|admin| admin != "127.0.0.1:9090") {
            section.text("admin", &admin);
        }
    }

    fn tls(&mut self, http: &[Directive]) -> Option<Section> {
        let (mut certs, mut keys) = (Vec::new(), Vec::new());
        let servers = everywhere(http, "server");
        let blocks = servers.iter().filter_map(|server| server.block.as_deref());
        for block in std::iter::once(http).chain(blocks) {
            let all = |name: &'static str| super::scope::named(block, name);
            for (cert, key) in all("ssl_certificate").zip(all("ssl_certificate_key")) {
                let file = |directive: &Directive| absolute(&self.folder, directive.arg(0));
                let (cert_file, key_file) = (file(cert), file(key));
                if certs.contains(&cert_file) {
                    continue;
                }
                match self.files.pair(Path::new(&cert_file), Path::new(&key_file)) {
                    Ok(()) => {
                        certs.push(cert_file);
                        keys.push(key_file);
                    }
                    Err(why) => cert.at.note(format!("this certificate is left out, as it cannot be loaded here: {why}; [server.tls] would have cert = {} and key = {}", toml_string(&cert_file), toml_string(&key_file))),
                }
            }
        }
        if certs.is_empty() {
            return None;
        }
        let mut section = Section::new("[server.tls]");
        section.fields.push(("cert", list(&certs)));
        section.fields.push(("key", list(&keys)));
        Some(section)
    }
}

fn trusted(http: &[Directive], section: &mut Section) {
    let from = everywhere(http, "set_real_ip_from");
    let Some(first) = from.first() else { return };
    if let Some(why) = why_addresses_differ(http) {
        let message = format!("set_real_ip_from: {why}");
        first.at.note(message);
    }
    let headers = everywhere(http, "real_ip_header");
    let header = headers.first().map_or("", |header| header.arg(0));
    if !header.eq_ignore_ascii_case("x-forwarded-for") {
        return;
    }
    let mut networks: Vec<String> = Vec::new();
    let known = from.iter().filter_map(|it| network(it.arg(0)));
    for network in known.filter(|network| !is_mapped(network)) {
        let network = network.to_string();
        if !networks.contains(&network) {
            networks.push(network);
        }
    }
    if !networks.is_empty() {
        section.fields.push(("trusted_proxies", list(&networks)));
    }
}

/// Returns the first value of a directive for which drip has one setting in the whole gateway.
///
/// `zero`: whether the setting may be 0.
fn one_for_all(http: &[Directive], name: &str, zero: bool) -> Option<Duration> {
    let mut taken = None;
    for directive in everywhere(http, name) {
        let text = directive.arg(0);
        let value = values::time(text).filter(|span| zero || !span.is_zero());
        if value.is_none() {
            let message = format!("{name}: drip does not accept \"{text}\"; it is left out");
            directive.at.note(message);
        } else if taken.is_some() && taken != value {
            let message = format!("{name}: drip has one value for all; the first is used");
            directive.at.note(message);
        }
        taken = taken.or(value);
    }
    taken
}
