//! Translates the tree of an `nginx.conf` to settings.
//!
//! drip must never forward what nginx protects. So what cannot be translated exactly is refused or
//! left out, and noted.
//!
//! | module | content |
//! |---|---|
//! | `scope` | the blocks and the server around a directive, and what it inherits from them |
//! | `server`, `listen` | one `server` block, and the addresses on which it listens |
//! | `addresses` | choice of the addresses on which drip can listen |
//! | `servers`, `virtual_hosts` | routes of all servers; routes of each host name |
//! | `locations`, `location_kind`, `route` | `location` blocks, and the routes that they become |
//! | `precedence` | order of routes |
//! | `expression` | regular expressions |
//! | `protection`, `networks` | what protects a location; `allow` and `deny` |
//! | `zones`, `limits`, `exempt` | zones, limits of a route, and clients without limits |
//! | `upstreams`, `origins` | `upstream` blocks, and the origin of each location |
//! | `fields` | request and response fields |
//! | `gateway` | tables `[server]` and `[server.tls]` |
//! | `directives` | directives that other modules read or that can be ignored |
//! | `page`, `probe` | text of the tables, and a check that the settings accept a value |

mod addresses;
mod directives;
mod exempt;
pub(super) mod expression;
pub(super) mod fields;
mod gateway;
pub(super) mod limits;
mod listen;
mod location_kind;
mod locations;
pub(super) mod networks;
mod origins;
pub(super) mod page;
pub(super) mod precedence;
pub(super) mod probe;
mod protection;
pub(super) mod route;
mod scope;
mod server;
mod servers;
mod upstreams;
pub(super) mod virtual_hosts;
mod zones;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use origins::Origins;
use page::{OriginTables, Section};
use scope::{Scope, named};
use server::Server;
use zones::Zones;

use super::Files;
use super::tree::Directive;

/// The state of a translation.
struct Translation<'f> {
    files: &'f dyn Files,
    /// Folder of nginx's main file.
    folder: PathBuf,
    zones: Zones,
    origins: Origins,
    routes: Vec<Section>,
    /// `client_max_body_size` of each location that forwards.
    body_sizes: Vec<Option<u64>>,
    /// Whether the routes would forward what nginx refuses. Then nothing is translated.
    is_unsafe: bool,
    /// Addresses that are left out because they would expose what another address protects.
    dropped_addresses: HashSet<String>,
    /// Reason why drip may see other client addresses than nginx.
    why_addresses_differ: Option<&'static str>,
}

/// Returns the text of the settings if there is anything to forward. `main`: nginx's main file.
pub(super) fn translate(tree: Vec<Directive>, files: &dyn Files, main: &Path) -> Option<String> {
    let (http_blocks, outside): (Vec<_>, Vec<_>) =
        tree.into_iter().partition(|it| it.name == "http");
    let blocks = http_blocks.into_iter().filter_map(|http| http.block);
    // A file of a folder such as conf.d has no `http` block around its directives.
    let http: Vec<Directive> = blocks.flatten().chain(outside).collect();
    let zones = Zones::read(&http);
    let (upstreams, tables) = (upstreams::read(&http), OriginTables::default());
    let scope = Scope::default().inside(&http);
    let servers = named(&http, "server").map(|server| Server::read(server, &scope));
    let servers: Vec<Server> = servers.collect();
    let mut listens = servers.iter().flat_map(|server| &server.listens);
    let has_sockets = listens.any(|listen| listen.address.starts_with("unix:"));
    let mut translation = Translation {
        files,
        folder: main.parent().unwrap_or(Path::new("")).to_owned(),
        zones,
        origins: Origins { upstreams, tables },
        routes: Vec::new(),
        body_sizes: Vec::new(),
        is_unsafe: false,
        dropped_addresses: HashSet::new(),
        why_addresses_differ: if has_sockets {
            Some("clients of a socket file have no address")
        } else {
            networks::why_addresses_differ(&http)
        },
    };
    translation.add_servers(&servers, &scope);
    let translated = &translation.zones.translated;
    let is_translated = |it: &Directive| translated.contains(&it.at.position());
    directives::note_unknown(http.iter().filter(|it| !is_translated(it)));
    let has_origin = !translation.origins.tables.sections.is_empty();
    if translation.routes.is_empty() || !has_origin || translation.is_unsafe {
        return None;
    }
    let mut sections = translation.gateway_sections(&http, &servers);
    sections.append(&mut translation.origins.tables.sections);
    sections.append(&mut translation.zones.sections);
    sections.append(&mut translation.routes);
    Some(page::text(&sections))
}
