//! The entries of `listen` in `[server]`.

use std::net::IpAddr;
use std::num::NonZeroU16;
use std::path::Path;
use std::sync::Arc;

use super::client_auth::{self, ClientAuth};
use super::names::{NO_NAME, is_name};
use super::prelude::*;
use crate::{Listen, ListenAddress, ListenService, Server, SocketMode};

pub(super) const FORM: Form = Form::List(&Form::OneOf(&[ADDRESS_FORM, Form::Table(LISTEN)]), 1);

table! {
    pub(crate) const LISTEN {
        address: Field::of(ADDRESS_FORM).required("\"0.0.0.0:443\""), Restart,
            "\"127.0.0.1:8080\", \"[::]:8080\" (IPv4 too), or a socket file \"unix:/run/drip.sock\".";
        tls: Field::of(Form::Boolean), Restart,
            "Whether clients get TLS here. Default: true at a TCP address if there is [server.tls].";
        mode: Field::of(Form::Like("0?[0-7]{3}")), Restart,
            "Permissions of the socket file, as octal digits: \"0660\". Default: as the umask has it.";
        redirect: Field::of(Form::Like("https(:[+]?[0-9]+)?")), Restart,
            "\"https\": requests here get 308 to the address with TLS; \"https:443\": to this port.";
        name: Field::of(Form::Like(NAME)), Restart,
            "Routes with this name in listen are only for this address.";
        client_ca: Field::of(NOT_EMPTY_FORM), Restart,
            "As in [server.tls], for this address.";
        client_auth: Field::of(client_auth::AUTH_FORM), Restart,
            "As in [server.tls], for this address.";
        client_crl: Field::of(NOT_EMPTY_FORM), Restart,
            "As in [server.tls], for this address.";
    }
}

/// Reads `listen`. `has_tls`: the file has `[server.tls]`, with these certificates of clients.
pub(super) fn read(node: Node, has_tls: bool, clients: Option<&ClientAuth>) -> Vec<Listen> {
    let items = values::filled("[\"127.0.0.1:8080\"]", node).unwrap_or_default();
    let entries = items
        .into_iter()
        .filter_map(|item| entry(item, has_tls, clients));
    let entries: Vec<Entry> = entries.collect();
    for (index, entry) in entries.iter().enumerate() {
        let address = &entry.listen.address;
        let mut before = entries[..index]
            .iter()
            .map(|earlier| &earlier.listen.address);
        if let Some(earlier) = before.find(|earlier| meet(earlier, address)) {
            entry.node.wrong(&format!(
                "{address} and {earlier} cannot both be listened on; remove one"
            ));
        }
    }
    let port = tls_port(&entries);
    let listens = entries.into_iter().filter_map(|mut entry| {
        if entry.needs_port {
            let port = port.or_else(|| {
                entry.node.tell("redirect: no address here has TLS and a port; add one, or name the port that clients reach: redirect = \"https:443\"");
                None
            });
            entry.listen.service = ListenService::Redirect(port?);
        }
        Some(entry.listen)
    });
    listens.collect()
}

/// An entry that is written as a text, or not at all.
pub(super) fn of_text(address: ListenAddress, has_tls: bool) -> Listen {
    let service = ListenService::of_text(&address, has_tls);
    Listen {
        address,
        service,
        client_auth: None,
        name: None,
    }
}

/// Whether two addresses conflict, so that the kernel would refuse one of them.
///
/// Port 0 never conflicts, because the kernel picks a new port each time.
pub(super) fn meet(one: &ListenAddress, other: &ListenAddress) -> bool {
    let (one, other) = match (one, other) {
        (ListenAddress::Tcp(one), ListenAddress::Tcp(other)) => (one, other),
        (ListenAddress::Unix { path: one, .. }, ListenAddress::Unix { path: other, .. }) => {
            return one == other;
        }
        _ => return false,
    };
    let covers = |one: IpAddr, other: IpAddr| {
        one == other || one.is_unspecified() && (one.is_ipv6() || other.is_ipv4())
    };
    let (a, b) = (one.ip(), other.ip());
    one.port() != 0 && one.port() == other.port() && (covers(a, b) || covers(b, a))
}

struct Entry<'r> {
    node: Node<'r>,
    listen: Listen,
    /// Whether it redirects to the port of an address with TLS, which is not known yet.
    needs_port: bool,
}

/// The port to redirect to: 443 if an address with TLS has it, or else that of the first one.
fn tls_port(entries: &[Entry]) -> Option<NonZeroU16> {
    let listens = entries.iter().map(|entry| &entry.listen);
    let ports = listens.filter_map(|listen| match (&listen.address, listen.service) {
        (ListenAddress::Tcp(address), ListenService::Tls) => NonZeroU16::new(address.port()),
        _ => None,
    });
    let mut ports: Vec<NonZeroU16> = ports.collect();
    ports.sort_by_key(|port| port.get() != 443);
    ports.first().copied()
}

fn entry<'r>(node: Node<'r>, has_tls: bool, clients: Option<&ClientAuth>) -> Option<Entry<'r>> {
    if node.value.as_table().is_some() {
        return table(node, has_tls, clients);
    }
    let mut listen = of_text(address(node)?, has_tls);
    let is_tls = listen.service == ListenService::Tls;
    listen.client_auth = clients.filter(|_| is_tls).cloned();
    Some(Entry {
        node,
        listen,
        needs_port: false,
    })
}

fn table<'r>(node: Node<'r>, has_tls: bool, clients: Option<&ClientAuth>) -> Option<Entry<'r>> {
    let mut fields = Fields::of(node, "an entry of listen".to_owned(), LISTEN)?;
    let address = fields.required("address", address);
    let (tls, mode, redirect) = (
        fields.get("tls"),
        fields.get("mode"),
        fields.get("redirect"),
    );
    let name = fields.get("name").map(name);
    let client_auth = client_auth::read(&mut fields, clients);
    let auth_nodes = ["client_ca", "client_auth", "client_crl"].map(|name| fields.value(name));
    fields.finish();
    let wish = tls.and_then(values::boolean);
    let redirect = redirect.map(|node| (node, redirect_port(node)));
    let mode = mode.map(|node| (node, socket_mode(node)));
    if let (Some((node, _)), Some(true)) = (redirect, wish) {
        node.wrong("an address with TLS cannot redirect to https; remove tls or redirect");
    }
    let address = match (address?, mode) {
        (ListenAddress::Unix { path, .. }, Some((_, mode))) => ListenAddress::Unix { path, mode },
        (address, Some((node, _))) => {
            node.wrong("only a socket file has a mode; remove it");
            address
        }
        (address, None) => address,
    };
    let is_unix = matches!(address, ListenAddress::Unix { .. });
    if let (Some(true), Some(node)) = (wish, tls) {
        if is_unix {
            node.wrong("a socket file has no TLS, as what passes there does not leave the machine; remove tls");
        } else if !has_tls {
            node.wrong("there is no [server.tls]; add it with cert and key, or remove tls here");
        }
    }
    let (service, needs_port) = match (redirect, wish) {
        (Some(_), Some(true)) => return None,
        (Some((_, port)), _) => {
            let port = port?;
            let service = ListenService::Redirect(port.unwrap_or(NonZeroU16::MIN));
            (service, port.is_none())
        }
        (None, wish) if wish.unwrap_or(has_tls && !is_unix) => (ListenService::Tls, false),
        (None, _) => (ListenService::Plain, false),
    };
    let is_tls = service == ListenService::Tls;
    if !is_tls {
        for node in auth_nodes.into_iter().flatten() {
            node.tell(
                "clients show certificates over TLS only, and there is none here; remove this",
            );
        }
    }
    let listen = Listen {
        address,
        service,
        client_auth: client_auth.filter(|_| is_tls),
        name: match name {
            None => None,
            Some(name) => Some(name?),
        },
    };
    Some(Entry {
        node,
        listen,
        needs_port,
    })
}

fn name(node: Node) -> Option<Arc<str>> {
    let name = values::text(node)?;
    if !is_name(name) {
        node.wrong(NO_NAME);
        return None;
    }
    Some(name.into())
}

fn address(node: Node) -> Option<ListenAddress> {
    let text = node.value.as_str().unwrap_or_default();
    let address = match text.strip_prefix("unix:") {
        Some("") => None,
        Some(path) => Some(ListenAddress::Unix {
            path: node.in_folder(path),
            mode: None,
        }),
        None => text.parse().ok().map(ListenAddress::Tcp),
    };
    address.or_else(|| {
        node.expected("an address with a port such as \"127.0.0.1:8080\" or \"[::]:8080\", or a socket such as \"unix:/run/drip.sock\"")
    })
}

fn socket_mode(node: Node) -> Option<SocketMode> {
    let mode = node.value.as_str().and_then(SocketMode::parse);
    mode.or_else(|| node.expected("permissions as octal digits such as \"0660\""))
}

/// The port in `https` or `https:PORT`; `Some(None)` if it is not named.
fn redirect_port(node: Node) -> Option<Option<NonZeroU16>> {
    let text = node.value.as_str().unwrap_or_default();
    let port = match text.strip_prefix("https") {
        Some("") => Some(None),
        Some(rest) => rest
            .strip_prefix(':')
            .and_then(|port| port.parse().ok())
            .map(Some),
        None => None,
    };
    port.or_else(|| node.expected("\"https\", or \"https:443\" with the port that clients reach"))
}

/// The addresses for clients: as texts, where that says it all.
pub(super) fn shown(server: &Server) -> Shown {
    let items = server.listen.iter().map(|listen| {
        let mode = match &listen.address {
            ListenAddress::Tcp(_) => None,
            ListenAddress::Unix { mode, .. } => *mode,
        };
        let address = toml_text(&listen.address.to_string());
        let usual = ListenService::of_text(&listen.address, server.tls.is_some());
        let service = match listen.service {
            service if service == usual => String::new(),
            ListenService::Plain => ", tls = false".to_owned(),
            ListenService::Tls => ", tls = true".to_owned(),
            ListenService::Redirect(port) => format!(", redirect = \"https:{port}\""),
        };
        let mode = mode.map_or(String::new(), |mode| format!(", mode = \"{mode}\""));
        let auth = shown_auth(server, listen);
        let name = listen.name.as_deref();
        let name = name.map_or(String::new(), |name| {
            format!(", name = {}", toml_text(name))
        });
        match format!("{service}{mode}{name}{auth}") {
            fields if fields.is_empty() => address,
            fields => format!("{{ address = {address}{fields} }}"),
        }
    });
    Shown::Value(list(items))
}

/// The fields for certificates of clients, unless they are those of `[server.tls]`.
fn shown_auth(server: &Server, listen: &Listen) -> String {
    let usual = server.tls.as_ref().and_then(|tls| tls.clients.as_ref());
    if listen.service != ListenService::Tls || listen.client_auth.as_ref() == usual {
        return String::new();
    }
    let Some(auth) = &listen.client_auth else {
        return ", client_auth = \"off\"".to_owned();
    };
    let field =
        |name: &str, file: &Path| format!(", {name} = {}", toml_text(&file.display().to_string()));
    let word = client_auth::shown_word(auth);
    let crl = auth.crl.as_ref().map(|crl| field("client_crl", crl));
    let ca = field("client_ca", &auth.ca);
    format!("{ca}, client_auth = \"{word}\"{}", crl.unwrap_or_default())
}
