//! Entries of `servers` in `[origins.NAME]`: a URL, or a table with the URL and more fields.
//!
//! In `table!`, an entry is a field of the file: its type, its reader with the default, when a
//! change takes effect, and its meaning (see `table_settings`, and `kinds` for readers such as
//! `BOOLEAN`).

use std::fmt;
use std::num::NonZeroUsize;

use super::prelude::*;
use super::url;
use crate::ServerUrl;

table! {
    /// One server of an origin.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct OriginServer {
        url: ServerUrl = URL.required("\"http://127.0.0.1:9000\""), NextRequest,
            "\"http://host:port\", \"https://host:port\", \"h2c://host:port\" (HTTP/2 without TLS) or \"unix:/run/app.sock\".";
        weight: u32 = whole::<_, 1, 65_535>().with_default("1"), NextRequest,
            "Share of the requests: a server of weight 3 gets three times as many as one of weight 1.";
        backup: bool = BOOLEAN.with_default("false"), NextRequest,
            "Gets requests only when no server that is no backup can take one.";
        max_in_flight: Option<NonZeroUsize> = whole_or_zero::<_, 1_000_000_000>().with_default("0"), Now,
            "Requests at this server at once; 0: no limit. Further ones go to others, or wait at the gate.";
    }
}

/// A list of servers for messages.
pub(super) const EXAMPLE: &str = "[\"http://127.0.0.1:9000\"]";

/// URL of a server.
const URL: Kind<ServerUrl> = Kind {
    form: url::FORM,
    read: url::read,
    show: show_text,
};

/// Form of an entry.
const FORM: Form = Form::OneOf(&[url::FORM, Form::Table(OriginServer::TABLE)]);

/// List of servers.
pub(super) const SERVERS: Kind<Vec<OriginServer>> = Kind {
    form: Form::UniqueList(&FORM, 1),
    read,
    show: |it| show_bare(&toml_list(it.iter().map(server_as_toml))),
};

/// Reads the servers of an origin.
fn read(node: Node) -> Option<Vec<OriginServer>> {
    let mut servers: Vec<Option<OriginServer>> = Vec::new();
    for item in values::require_items(node, EXAMPLE)? {
        let server = read_server(item);
        let mut earlier = servers.iter().flatten();
        if let Some(server) = &server
            && earlier.any(|other| other.url == server.url)
        {
            let url = item.field("url").unwrap_or(item);
            url.report_as_is(&format!("{} is listed twice; remove one", url.found()));
        }
        servers.push(server);
    }
    let servers: Vec<OriginServer> = servers.into_iter().collect::<Option<_>>()?;
    if !servers.is_empty() && servers.iter().all(|server| server.backup) {
        node.report_problem("each of them is a backup; a backup needs a server that it stands in for, so remove backup from one");
    }
    Some(servers)
}

/// Reads a server, written as its URL or as a table.
fn read_server(node: Node) -> Option<OriginServer> {
    if node.value.as_table().is_none() {
        return url::read(node).map(OriginServer::new);
    }
    let fields = Fields::begin(node, "a server".to_owned(), OriginServer::TABLE)?;
    OriginServer::read_valid(fields)
}

/// Returns a server as TOML: only its URL, if all other fields have their defaults.
fn server_as_toml(server: &OriginServer) -> String {
    let url = toml_text(&server.to_string());
    if server.is_plain() {
        return url;
    }
    let (weight, backup) = (server.weight, server.backup);
    let max_in_flight = server.max_in_flight.map_or(0, NonZeroUsize::get);
    format!(
        "{{ url = {url}, weight = {weight}, backup = {backup}, max_in_flight = {max_in_flight} }}"
    )
}

impl OriginServer {
    /// Makes a server that has only its URL.
    fn new(url: ServerUrl) -> Self {
        Self {
            url,
            weight: 1,
            backup: false,
            max_in_flight: None,
        }
    }

    /// Returns whether all fields except the URL have their defaults.
    pub fn is_plain(&self) -> bool {
        self.weight == 1 && !self.backup && self.max_in_flight.is_none()
    }
}

/// Writes the URL, which is the server's name everywhere.
impl fmt::Display for OriginServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}
