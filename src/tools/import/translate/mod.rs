//! Translates the tree to settings.

mod addresses;
mod balancing;
mod choices;
mod client_certs;
mod connections;
mod definition;
mod exempt;
mod fallback;
mod fields;
mod gateway;
mod hints;
mod hosts;
mod kind;
mod limits;
mod listen;
mod locations;
mod networks;
mod one_location;
mod origin_tls;
mod origins;
pub(super) mod page;
mod pages;
mod pass;
pub(super) mod pcre;
mod plans;
mod precedence;
pub(super) mod probe;
mod protection;
mod requests;
mod route;
mod scope;
mod server;
mod servers;
mod tier_maps;
mod tiers;
mod upstreams;
mod variables;
mod virtual_hosts;
mod zones;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use choices::Choosers;
use client_certs::ClientCerts;
use networks::ClientAddresses;
use origins::Origins;
use page::Section;
use scope::{Scope, named};
use server::Server;
use zones::Zones;

use super::Files;
use super::notes::Notes;
use super::tree::Directive;

/// The state of a translation.
struct Translation<'f> {
    files: &'f dyn Files,
    folder: PathBuf,
    notes: Notes,
    zones: Zones,
    choosers: Choosers,
    origins: Origins,
    routes: Vec<Section>,
    /// `client_max_body_size` of each location that became a route.
    bodies: Vec<Option<u64>>,
    /// Whether routes that refuse are left out.
    is_unsafe: bool,
    /// The addresses that would open what another protects.
    dropped: HashSet<String>,
    clients: ClientAddresses,
    client_certs: ClientCerts,
    /// The file that a server sends for a URI, or why there is none.
    page_files: HashMap<(usize, String), Result<String, String>>,
    /// How many networks the routes have.
    networks: usize,
}

/// The text of the settings, if there is anything to forward, and the notes.
pub(super) fn translate(
    tree: Vec<Directive>,
    mut notes: Notes,
    files: &dyn Files,
    main: &Path,
) -> (Option<String>, Notes) {
    let (https, outside): (Vec<_>, Vec<_>) = tree
        .into_iter()
        .partition(|directive| directive.name == "http");
    let mut http = https
        .into_iter()
        .flat_map(|http| http.block.unwrap_or_default())
        .collect::<Vec<_>>();
    // A file of a folder such as conf.d has no `http` block around its directives.
    http.extend(outside);
    let folder = main.parent().unwrap_or(Path::new("")).to_owned();
    let client_certs = ClientCerts::take(&mut http, files, &folder, &mut notes);
    let zones = Zones::read(&http, &mut notes);
    let origins = Origins {
        upstreams: upstreams::read(&http, &mut notes),
        folder: folder.clone(),
        ..Origins::default()
    };
    let mut translation = Translation {
        files,
        folder,
        notes,
        zones,
        choosers: Choosers::read(&http),
        origins,
        routes: Vec::new(),
        bodies: Vec::new(),
        is_unsafe: false,
        dropped: HashSet::new(),
        clients: ClientAddresses::default(),
        client_certs,
        page_files: HashMap::new(),
        networks: 0,
    };
    let scope = Scope::default().inside(&http);
    let mut servers = named(&http, "server")
        .enumerate()
        .map(|(index, server)| Server {
            needs_certificates: translation.client_certs.required.contains(&index),
            ..Server::read(server, &scope, &mut translation.notes)
        })
        .collect::<Vec<_>>();
    virtual_hosts::settle(&mut servers, &mut translation.notes);
    let mut listens = servers.iter().flat_map(|server| &server.listens);
    let has_sockets = listens.any(|listen| listen.address.starts_with("unix:"));
    translation.clients = ClientAddresses::of(&http, has_sockets);
    translation.servers(&servers, &scope);
    let (zones, notes) = (&translation.zones, &mut translation.notes);
    let told = |directive: &&Directive| !zones.translated.contains(&directive.place);
    hints::unhandled(http.iter().filter(told), notes);
    let has_origin = !translation.origins.sections.is_empty();
    if translation.routes.is_empty() || !has_origin || translation.is_unsafe {
        return (None, translation.notes);
    }
    let mut sections = translation.gateway(&http, &servers);
    sections.append(&mut translation.origins.sections);
    sections.append(&mut translation.zones.sections);
    sections.append(&mut translation.routes);
    let mut page = String::new();
    for section in &sections {
        section.write(&mut page);
    }
    (Some(page), translation.notes)
}
