//! Entries of `listen` in `[server]`: the addresses at which clients connect.
//!
//! An entry is a text with the address, or a table. In `table!`, an entry is a field of the file:
//! its type, its reader with the default, when a change takes effect, and its meaning (see
//! `table_settings`, and `kinds` for readers such as `BOOLEAN`).

use std::net::IpAddr;
use std::num::NonZeroU16;
use std::sync::Arc;

use super::client_auth::{self, ClientAuth};
use super::names::{NO_NAME, is_name};
use super::prelude::*;
use crate::{Listen, ListenAddress, ListenService, Server, Settings};

/// Form of `listen`.
pub(super) const FORM: Form = Form::List(
    &Form::OneOf(&[ADDRESS.form, Form::Table(ListenTable::TABLE)]),
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
        mode: Option<u32> = MODE.optional(), Restart,
            "Permissions of the socket file, as octal digits: \"0660\". Default: as the umask has it.";
        /// The inner `None`: the port is not given.
        redirect: Option<Option<NonZeroU16>> = REDIRECT.optional(), Restart,
            "\"https\": requests here get 308 to the address with TLS; \"https:443\": to this port.";
        name: Option<Arc<str>> = ADDRESS_NAME.optional(), Restart,
            "Routes with this name in listen are only for this address.";
        /// The inner `None`: no certificate is requested from clients.
        clients: Option<Option<ClientAuth>>;
        + client_ca: Field::of_form(NOT_EMPTY_FORM), Restart, "As in [server.tls], for this address.",
            |it, _| show_text(&it.clients.as_ref()?.as_ref()?.ca.display());
        + client_auth: Field::of_form(client_auth::AUTH_FORM), Restart, "As in [server.tls], for this address.",
            |it, _| show_text(it.clients.as_ref()?.as_ref().map_or("off", client_auth::auth_word));
        + client_crl: Field::of_form(NOT_EMPTY_FORM), Restart, "As in [server.tls], for this address.",
            |it, _| show_text(&it.clients.as_ref()?.as_ref()?.crl.as_ref()?.display());
    }
}

/// IP address with a port, or the path of a Unix socket.
const ADDRESS: Kind<ListenAddress> = Kind {
    form: Form::Regex("unix:.+|([0-9.]+|\\[[0-9a-fA-F:.%]+\\]):[0-9]+"),
    read: read_address,
    show: show_text,
};

/// Permission bits of a Unix socket.
const MODE: Kind<u32> = Kind {
    form: Form::Regex("0?[0-7]{3}"),
    read: |node| {
        let mode = node.value.as_str().and_then(parse_mode);
        mode.or_else(|| node.report_expected("permissions as octal digits such as \"0660\""))
    },
    show: |it| show_text(&format!("{it:04o}")),
};

/// Reads three octal digits, or four digits of which the first is 0.
fn parse_mode(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('0').filter(|rest| rest.len() == 3);
    let digits = digits.unwrap_or(text);
    let is_octal = digits.len() == 3 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
    u32::from_str_radix(digits, 8).ok().filter(|_| is_octal)
}

/// Redirect to the TLS address at a port; `None`: the port is not given.
const REDIRECT: Kind<Option<NonZeroU16>> = Kind {
    form: Form::Regex("https(:[+]?[0-9]+)?"),
    read: |node| {
        let what = "\"https\", or \"https:443\" with the port that clients reach";
        let text = node.value.as_str().unwrap_or_default();
        if text == "https" {
            // The port is not given.
            return Some(None);
        }
        let port = text
            .strip_prefix("https:")
            .and_then(|port| port.parse().ok());
        port.map(Some).or_else(|| node.report_expected(what))
    },
    show: |port| show_text(&port.map_or("https".to_owned(), |port| format!("https:{port}"))),
};

/// Name by which routes select an address.
const ADDRESS_NAME: Kind<Arc<str>> = Kind {
    form: Form::Regex(NAME),
    read: |node| {
        let name = Some(values::text(node)?).filter(|name| is_name(name));
        name.map(Arc::from).or_else(|| node.refuse(NO_NAME))
    },
    show: show_text,
};

/// Reads `listen`.
///
/// `has_tls`: whether the file has `[server.tls]`. `clients`: client authentication of that table.
pub(super) fn read(node: Node, has_tls: bool, clients: Option<&ClientAuth>) -> Vec<Listen> {
    let items = values::require_items(node, "[\"127.0.0.1:8080\"]").unwrap_or_default();
    let read = |item| read_entry(item, has_tls, clients);
    let entries: Vec<Entry> = items.into_iter().filter_map(read).collect();
    for (index, entry) in entries.iter().enumerate() {
        let address = &entry.listen.address;
        let mut earlier = entries[..index].iter().map(|entry| &entry.listen.address);
        if let Some(other) = earlier.find(|earlier| conflict(earlier, address)) {
            entry.node.report_problem(&format!(
                "{address} and {other} cannot both be listened on; remove one"
            ));
        }
    }
    let redirect_port = find_tls_port(&entries);
    let listens = entries.into_iter().filter_map(|mut entry| {
        if entry.needs_port {
            let port = redirect_port.or_else(|| {
                entry.node.refuse_as_is("redirect: no address here has TLS and a port; add one, or name the port that clients reach: redirect = \"https:443\"")
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
    let covers = |one: IpAddr, other: IpAddr| {
        // `0.0.0.0` is every IPv4 address, and `[::]` every IPv6 and IPv4 address.
        one == other || one.is_unspecified() && (one.is_ipv6() || other.is_ipv4())
    };
    match (one, other) {
        (ListenAddress::Tcp(one), ListenAddress::Tcp(other)) => {
            let is_covered = covers(one.ip(), other.ip()) || covers(other.ip(), one.ip());
            one.port() != 0 && one.port() == other.port() && is_covered
        }
        (ListenAddress::Unix { path: one, .. }, ListenAddress::Unix { path: other, .. }) => {
            one == other
        }
        _ => false,
    }
}

/// One entry of `listen` that has been read.
struct Entry<'r> {
    node: Node<'r>,
    listen: Listen,
    /// Whether the entry redirects to the port of a TLS address, which is not known yet.
    needs_port: bool,
}

/// Returns the port to redirect to: 443 if a TLS address has it, else the port of the first one.
fn find_tls_port(entries: &[Entry]) -> Option<NonZeroU16> {
    let listens = entries.iter().map(|entry| &entry.listen);
    let ports = listens.filter_map(|listen| match (&listen.address, listen.service) {
        (ListenAddress::Tcp(address), ListenService::Tls) => NonZeroU16::new(address.port()),
        _ => None,
    });
    ports.min_by_key(|port| port.get() != 443)
}

impl ListenTable {
    /// Makes an entry that has only its address.
    fn new(address: ListenAddress) -> Self {
        Self {
            address,
            tls: None,
            mode: None,
            redirect: None,
            name: None,
            clients: None,
        }
    }

    /// Returns the service at the address. A redirect may lack its port. `has_tls`: as in [`read`].
    fn service(&self, has_tls: bool) -> ListenService {
        let is_tcp = matches!(self.address, ListenAddress::Tcp(_));
        match self.redirect {
            Some(port) => ListenService::Redirect(port.unwrap_or(NonZeroU16::MIN)),
            None if self.tls.unwrap_or(has_tls && is_tcp) => ListenService::Tls,
            None => ListenService::Plain,
        }
    }
}

/// Reads one entry, written as a text or as a table. The parameters are those of [`read`].
fn read_entry<'r>(
    node: Node<'r>,
    has_tls: bool,
    clients: Option<&ClientAuth>,
) -> Option<Entry<'r>> {
    let (mut entry, client_auth) = match node.value.as_table() {
        Some(_) => read_table(node, has_tls, clients)?,
        None => (ListenTable::new(read_address(node)?), clients.cloned()),
    };
    let service = entry.service(has_tls);
    if let ListenAddress::Unix { mode, .. } = &mut entry.address {
        *mode = entry.mode;
    }
    let listen = Listen {
        address: entry.address,
        service,
        client_auth: client_auth.filter(|_| service == ListenService::Tls),
        name: entry.name,
    };
    Some(Entry {
        node,
        listen,
        needs_port: entry.redirect == Some(None),
    })
}

/// Reads one entry that is written as a table, and its client authentication.
fn read_table(
    node: Node,
    has_tls: bool,
    clients: Option<&ClientAuth>,
) -> Option<(ListenTable, Option<ClientAuth>)> {
    let mut fields = Fields::begin(node, "an entry of listen".to_owned(), ListenTable::TABLE)?;
    let entry = ListenTable::read(&mut fields);
    let client_auth = client_auth::read(&mut fields, clients);
    let wants_tls = entry.tls == Some(true);
    fields.refuse_if(
        wants_tls,
        "redirect",
        "an address with TLS cannot redirect to https; remove tls or redirect",
    );
    // Without these fields the entry is dropped. A wrong value of another field only becomes the
    // default.
    let mut decisive = ["address", "redirect", "name"].iter();
    if !decisive.all(|name| !fields.is_wrong(name)) {
        fields.finish();
        return None;
    }
    let is_unix = matches!(entry.address, ListenAddress::Unix { .. });
    fields.refuse_if(!is_unix, "mode", "only a socket file has a mode; remove it");
    fields.refuse_if(
        wants_tls && is_unix,
        "tls",
        "a socket file has no TLS, as what passes there does not leave the machine; remove tls",
    );
    fields.refuse_if(
        wants_tls && !has_tls,
        "tls",
        "there is no [server.tls]; add it with cert and key, or remove tls here",
    );
    if entry.service(has_tls) != ListenService::Tls {
        let nodes = ["client_ca", "client_auth", "client_crl"].map(|name| fields.peek(name));
        for node in nodes.into_iter().flatten() {
            node.report_as_is(
                "clients show certificates over TLS only, and there is none here; remove this",
            );
        }
    }
    fields.finish();
    Some((entry, client_auth))
}

/// Reads an IP address with a port, or the path of a Unix socket.
fn read_address(node: Node) -> Option<ListenAddress> {
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
        node.report_expected("an address with a port such as \"127.0.0.1:8080\" or \"[::]:8080\", or a socket such as \"unix:/run/drip.sock\"")
    })
}

/// Shows the addresses for clients. An entry is shown as a text if it has only its address.
pub(super) fn show_list(server: &Server, settings: &Settings) -> Option<Shown> {
    // What an entry has that is only an address: an entry with other values is shown as a table.
    let usual_clients = server.tls.as_ref().and_then(|tls| tls.clients.as_ref());
    let items = server.listen.iter().map(|listen| {
        let mode = match &listen.address {
            ListenAddress::Tcp(_) => None,
            ListenAddress::Unix { mode, .. } => *mode,
        };
        let usual = ListenTable::new(listen.address.clone()).service(server.tls.is_some());
        let (tls, redirect) = match listen.service {
            ListenService::Redirect(port) => (None, Some(Some(port))),
            service if service == usual => (None, None),
            service => (Some(service == ListenService::Tls), None),
        };
        let has_usual_clients = listen.client_auth.as_ref() == usual_clients;
        let has_own_clients = listen.service == ListenService::Tls && !has_usual_clients;
        let table = ListenTable {
            address: listen.address.clone(),
            tls,
            mode,
            redirect,
            name: listen.name.clone(),
            clients: has_own_clients.then(|| listen.client_auth.clone()),
        };
        match &table.shown_rows(settings)[..] {
            [(_, Shown::Value(address))] => address.clone(),
            _ => inline_table(table.shown_rows(settings)),
        }
    });
    show_bare(&toml_list(items))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_three_octal_digits_with_or_without_a_zero_before() {
        for (text, shown) in [
            ("0660", "0660"),
            ("660", "0660"),
            ("000", "0000"),
            ("0777", "0777"),
        ] {
            let mode = parse_mode(text).unwrap();
            assert_eq!((MODE.show)(&mode), show_text(shown), "{text}");
        }
        for text in [
            "", "0", "60", "0680", "1660", "00660", "+66", "-660", "0o660", "u+x",
        ] {
            assert_eq!(parse_mode(text), None, "{text}");
        }
    }
}
