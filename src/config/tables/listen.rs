//! Entries of `listen` in `[server]`.

use std::net::IpAddr;
use std::num::NonZeroU16;
use std::sync::Arc;

use super::client_auth::{self, ClientAuth};
use super::names::{NO_NAME, is_name};
use super::prelude::*;
use crate::{Listen, ListenAddress, ListenService, Server, Settings, SocketMode};

pub(super) const FORM: Form = Form::AnyList(
    &Form::OneOf(&[ADDRESS_FORM, Form::Table(ListenTable::TABLE)]),
    1,
);

table! {
    /// An entry of `listen` as a table. A missing field has the value of an entry that is a text.
    pub struct ListenTable {
        /// A Unix socket is stored here without its mode.
        address: ListenAddress = ADDRESS.required("\"0.0.0.0:443\""), Restart,
            "\"127.0.0.1:8080\", \"[::]:8080\" (IPv4 too), or a socket file \"unix:/run/drip.sock\".";
        tls: Option<bool> = BOOLEAN.optional(), Restart,
            "Whether clients get TLS here. Default: true at a TCP address if there is [server.tls].";
        mode: Option<SocketMode> = MODE.optional(), Restart,
            "Permissions of the socket file, as octal digits: \"0660\". Default: as the umask has it.";
        /// The inner `None`: the port is not given.
        redirect: Option<Option<NonZeroU16>> = REDIRECT.optional(), Restart,
            "\"https\": requests here get 308 to the address with TLS; \"https:443\": to this port.";
        name: Option<Arc<str>> = ADDRESS_NAME.optional(), Restart,
            "Routes with this name in listen are only for this address.";
        /// The inner `None`: no certificate is requested from clients.
        clients: Option<Option<ClientAuth>>;
        + client_ca: Field::of(NOT_EMPTY_FORM), Restart, "As in [server.tls], for this address.",
            |it, _| shown(&it.clients.as_ref()?.as_ref()?.ca.display());
        + client_auth: Field::of(client_auth::AUTH_FORM), Restart, "As in [server.tls], for this address.",
            |it, _| shown(it.clients.as_ref()?.as_ref().map_or("off", client_auth::shown_word));
        + client_crl: Field::of(NOT_EMPTY_FORM), Restart, "As in [server.tls], for this address.",
            |it, _| shown(&it.clients.as_ref()?.as_ref()?.crl.as_ref()?.display());
    }
}

const ADDRESS: Kind<ListenAddress> = kind(ADDRESS_FORM, address, shown);

const MODE: Kind<SocketMode> = kind(
    Form::Like("0?[0-7]{3}"),
    |node| {
        let mode = node.value.as_str().and_then(SocketMode::parse);
        mode.or_else(|| node.expected("permissions as octal digits such as \"0660\""))
    },
    shown,
);

const REDIRECT: Kind<Option<NonZeroU16>> = kind(
    Form::Like("https(:[+]?[0-9]+)?"),
    |node| {
        let text = node.value.as_str().unwrap_or_default();
        let port = match text.strip_prefix("https") {
            Some("") => Some(None),
            rest => rest
                .and_then(|rest| rest.strip_prefix(':')?.parse().ok())
                .map(Some),
        };
        port.or_else(|| {
            node.expected("\"https\", or \"https:443\" with the port that clients reach")
        })
    },
    |port| shown(&port.map_or("https".to_owned(), |port| format!("https:{port}"))),
);

const ADDRESS_NAME: Kind<Arc<str>> = kind(
    Form::Like(NAME),
    |node| {
        let name = values::text(node)?;
        if !is_name(name) {
            return node.refused(NO_NAME);
        }
        Some(name.into())
    },
    shown,
);

/// Reads `listen`.
///
/// `has_tls`: the file has `[server.tls]`. `clients`: its client authentication.
pub(super) fn read(node: Node, has_tls: bool, clients: Option<&ClientAuth>) -> Vec<Listen> {
    let items = values::filled(node, "[\"127.0.0.1:8080\"]").unwrap_or_default();
    let entries = items
        .into_iter()
        .filter_map(|item| entry(item, has_tls, clients));
    let entries: Vec<Entry> = entries.collect();
    for (index, entry) in entries.iter().enumerate() {
        let address = &entry.listen.address;
        let mut before = entries[..index]
            .iter()
            .map(|earlier| &earlier.listen.address);
        if let Some(earlier) = before.find(|earlier| conflict(earlier, address)) {
            entry.node.wrong(&format!(
                "{address} and {earlier} cannot both be listened on; remove one"
            ));
        }
    }
    let port = tls_port(&entries);
    let listens = entries.into_iter().filter_map(|mut entry| {
        if entry.needs_port {
            let port = port.or_else(|| {
                entry.node.refused_as_is("redirect: no address here has TLS and a port; add one, or name the port that clients reach: redirect = \"https:443\"")
            });
            entry.listen.service = ListenService::Redirect(port?);
        }
        Some(entry.listen)
    });
    listens.collect()
}

/// Returns whether two addresses conflict, so that the kernel would refuse one of them.
///
/// Port 0 never conflicts, because the kernel picks a new port each time.
pub(super) fn conflict(one: &ListenAddress, other: &ListenAddress) -> bool {
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

/// One entry of `listen` that has been read.
struct Entry<'r> {
    node: Node<'r>,
    listen: Listen,
    /// The entry redirects to the port of a TLS address, which is not known yet.
    needs_port: bool,
}

/// Returns the port to redirect to: 443 if a TLS address has it, else that of the first one.
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

/// Reads one entry, written as a text or as a table.
fn entry<'r>(node: Node<'r>, has_tls: bool, clients: Option<&ClientAuth>) -> Option<Entry<'r>> {
    if node.value.as_table().is_some() {
        return table(node, has_tls, clients);
    }
    let address = address(node)?;
    let service = ListenService::of_text(&address, has_tls);
    let is_tls = service == ListenService::Tls;
    let listen = Listen {
        address,
        service,
        client_auth: clients.filter(|_| is_tls).cloned(),
        name: None,
    };
    Some(Entry {
        node,
        listen,
        needs_port: false,
    })
}

/// Reads one entry that is written as a table.
fn table<'r>(node: Node<'r>, has_tls: bool, clients: Option<&ClientAuth>) -> Option<Entry<'r>> {
    let mut fields = Fields::of(node, "an entry of listen".to_owned(), ListenTable::TABLE)?;
    let entry = ListenTable::read(&mut fields);
    let client_auth = client_auth::read(&mut fields, clients);
    let [tls, mode, redirect] = ["tls", "mode", "redirect"].map(|name| fields.value(name));
    let auth_nodes = ["client_ca", "client_auth", "client_crl"].map(|name| fields.value(name));
    let decisive = ["address", "redirect", "name"];
    let is_right = !decisive.iter().any(|name| fields.is_wrong(name));
    fields.finish();
    if let (Some(node), Some(true)) = (redirect, entry.tls) {
        return node
            .refused("an address with TLS cannot redirect to https; remove tls or redirect");
    }
    let mut address = entry.address;
    match (&mut address, mode) {
        (ListenAddress::Unix { mode, .. }, _) => *mode = entry.mode,
        (_, Some(node)) if is_right => node.wrong("only a socket file has a mode; remove it"),
        _ => {}
    }
    let is_unix = matches!(address, ListenAddress::Unix { .. });
    if let (Some(true), Some(node), true) = (entry.tls, tls, is_right) {
        if is_unix {
            node.wrong("a socket file has no TLS, as what passes there does not leave the machine; remove tls");
        } else if !has_tls {
            node.wrong("there is no [server.tls]; add it with cert and key, or remove tls here");
        }
    }
    let service = match (entry.redirect, entry.tls) {
        (Some(port), _) => ListenService::Redirect(port.unwrap_or(NonZeroU16::MIN)),
        (None, wish) if wish.unwrap_or(has_tls && !is_unix) => ListenService::Tls,
        (None, _) => ListenService::Plain,
    };
    let is_tls = service == ListenService::Tls;
    for node in auth_nodes.into_iter().flatten().filter(|_| !is_tls) {
        node.report_as_is(
            "clients show certificates over TLS only, and there is none here; remove this",
        );
    }
    let listen = Listen {
        address,
        service,
        client_auth: client_auth.filter(|_| is_tls),
        name: entry.name,
    };
    is_right.then_some(Entry {
        node,
        listen,
        needs_port: entry.redirect == Some(None),
    })
}

/// Reads an IP address with a port, or the path of a Unix socket.
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

/// Shows the addresses for clients. An entry is shown as a text where a text is enough.
pub(super) fn shown_list(server: &Server, settings: &Settings) -> Option<Shown> {
    let usual_clients = server.tls.as_ref().and_then(|tls| tls.clients.as_ref());
    let items = server.listen.iter().map(|listen| {
        let mode = match &listen.address {
            ListenAddress::Tcp(_) => None,
            ListenAddress::Unix { mode, .. } => *mode,
        };
        let usual = ListenService::of_text(&listen.address, server.tls.is_some());
        let (tls, redirect) = match listen.service {
            ListenService::Redirect(port) => (None, Some(Some(port))),
            service if service == usual => (None, None),
            service => (Some(service == ListenService::Tls), None),
        };
        let is_usual = listen.client_auth.as_ref() == usual_clients;
        let has_own = listen.service == ListenService::Tls && !is_usual;
        let table = ListenTable {
            address: listen.address.clone(),
            tls,
            mode,
            redirect,
            name: listen.name.clone(),
            clients: has_own.then(|| listen.client_auth.clone()),
        };
        match &table.shown(settings)[..] {
            [(_, Shown::Value(address))] => address.clone(),
            _ => inline_text(table.shown(settings)),
        }
    });
    bare(&toml_list(items))
}
