//! Builds the tables `[server]` and `[server.tls]`.
//!
//! `http` is the block around all servers of an `nginx.conf`. A section is a table of the settings.
//! Notes that are added while a section is built become its comments.

use std::path::Path;
use std::time::Duration;

use config::toml_string;

use super::Translation;
use super::listen;
use super::networks::{is_mapped, network, why_addresses_differ};
use super::page::{Section, absolute, list};
use super::scope::{everywhere, named};
use super::server::Server;
use crate::import::tree::Directive;
use crate::import::values;

/// Default of nginx's `client_max_body_size`, in bytes.
const BODY_SIZE: u64 = 1 << 20;

/// Port of the admin port's default address.
const ADMIN_PORT: u16 = 9090;

impl Translation<'_> {
    /// Returns the sections `[server]` and `[server.tls]`.
    pub(super) fn gateway_sections(
        &mut self,
        http: &[Directive],
        servers: &[Server],
    ) -> Vec<Section> {
        let notes = servers[0].at.notes;
        let notes_before = notes.count();
        let mut section = Section::new("[server]");
        let tls = self.tls_section(http);
        self.add_listen(servers, tls.is_some(), &mut section);
        add_trusted_proxies(http, &mut section);
        for (directive, field, may_be_zero) in [
            ("keepalive_timeout", "keep_alive", true),
            ("client_header_timeout", "header_timeout", false),
            ("client_body_timeout", "body_timeout", false),
        ] {
            if let Some(timeout) = gateway_timeout(http, directive, may_be_zero) {
                section.add_duration(field, timeout);
            }
        }
        let body_sizes = self.body_sizes.iter();
        let body_sizes: Vec<u64> = body_sizes.map(|it| it.unwrap_or(BODY_SIZE)).collect();
        // A comment begins with this text if the sizes differ.
        let differ = "client_max_body_size differs between locations";
        section.add_largest_body(&body_sizes, 0, differ);
        section.comments.extend(notes.since(notes_before));
        std::iter::once(section).chain(tls).collect()
    }

    /// Adds the field `listen`, and `admin` if its default address conflicts with one of these.
    /// Notes addresses that are left out.
    fn add_listen(&mut self, servers: &[Server], has_certificate: bool, section: &mut Section) {
        let has_tls = servers.iter().any(Server::has_tls);
        let mut listens: Vec<&str> = Vec::new();
        for server in servers {
            for listen in &server.listens {
                let address = &listen.address;
                let why = if self.dropped_addresses.contains(address) {
                    "import writes no routes by listen address, and requests that are protected or local would be open there"
                } else if listen.has_tls && !has_certificate {
                    "it needs TLS and no certificate could be loaded here; add it to listen along with [server.tls]"
                } else if listen.has_tls || !has_tls || address.starts_with("unix:") {
                    listens.push(address);
                    continue;
                } else {
                    "other addresses have TLS; to serve it, add it to listen with tls = false, or with redirect = \"https\""
                };
                let message = format!("{address} is left out: {why}");
                server.at.note(message);
            }
        }
        let mut addresses = listen::without_covered(&listens);
        if addresses.is_empty() && has_tls {
            // Until the certificate exists, only this machine can reach the gateway.
            addresses.push("127.0.0.1:8080".to_owned());
        }
        if addresses.is_empty() {
            return;
        }
        section.fields.push(("listen", list(&addresses)));
        let is_free = |admin: &String| !addresses.iter().any(|it| listen::conflicts(it, admin));
        let mut admins = (ADMIN_PORT..=u16::MAX).map(|port| (port, format!("127.0.0.1:{port}")));
        if let Some((port, admin)) = admins.find(|(_, admin)| is_free(admin))
            && port != ADMIN_PORT
        {
            section.add_text("admin", &admin);
        }
    }

    /// Returns the section `[server.tls]`, if a certificate can be loaded.
    fn tls_section(&mut self, http: &[Directive]) -> Option<Section> {
        let (mut certs, mut keys) = (Vec::new(), Vec::new());
        let servers = named(http, "server").map(Directive::inside);
        for block in std::iter::once(http).chain(servers) {
            let certificates = named(block, "ssl_certificate");
            for (cert, key) in certificates.zip(named(block, "ssl_certificate_key")) {
                let file = |directive: &Directive| absolute(&self.folder, directive.arg(0));
                let (cert_file, key_file) = (file(cert), file(key));
                if certs.contains(&cert_file) {
                    continue;
                }
                match self.files.check_pair(Path::new(&cert_file), Path::new(&key_file)) {
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

/// Adds the field `trusted_proxies`.
fn add_trusted_proxies(http: &[Directive], section: &mut Section) {
    let proxies = everywhere(http, "set_real_ip_from");
    let Some(first) = proxies.first() else { return };
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
    let valid = proxies.iter().filter_map(|it| network(it.arg(0)));
    for network in valid.filter(|network| !is_mapped(network)) {
        let network = network.to_string();
        if !networks.contains(&network) {
            networks.push(network);
        }
    }
    if !networks.is_empty() {
        section.fields.push(("trusted_proxies", list(&networks)));
    }
}

/// Returns the first value of a timeout for which drip has one setting in the whole gateway.
///
/// Notes values that differ, and those that drip does not accept.
fn gateway_timeout(http: &[Directive], name: &str, may_be_zero: bool) -> Option<Duration> {
    let mut first = None;
    for directive in everywhere(http, name) {
        let text = directive.arg(0);
        let value = values::time(text).filter(|span| may_be_zero || !span.is_zero());
        if value.is_none() {
            let message = format!("{name}: drip does not accept \"{text}\"; it is left out");
            directive.at.note(message);
        } else if first.is_some() && first != value {
            let message = format!("{name}: drip has one value for all; the first is used");
            directive.at.note(message);
        }
        first = first.or(value);
    }
    first
}
