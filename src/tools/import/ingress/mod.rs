//! Translates Ingress objects of Kubernetes with annotations of ingress-nginx.
//!
//! An Ingress says which paths of which hosts go to which Service. Its annotations are settings of
//! ingress-nginx. `yaml` and `manifest` read the objects, and `policy` reads the annotations.
//! `hosts` collects the paths of each host, and `routes` and `origins` make routes of them.
//!
//! Sources: <https://github.com/kubernetes/ingress-nginx> at commit dbb11b92,
//! `rootfs/etc/nginx/template/nginx.tmpl` and `internal/ingress`.

mod annotations;
mod hosts;
mod limits;
mod manifest;
mod networks;
mod origins;
mod policy;
mod protection;
mod rewrite;
mod routes;
mod server;
mod yaml;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::path::Path;

use hosts::group_by_host;
use limits::Zones;
use manifest::{Ingress, Manifest, paths};
use origins::Origins;
use policy::Policy;

use super::MAX_ROUTES;
use super::notes::SourceLocation;
use super::translate::page;
use super::translate::route::tables;

/// Returns whether a file is a Kubernetes manifest rather than an `nginx.conf`.
pub(super) fn is_manifest(path: &Path, text: &[u8]) -> bool {
    let extension = path.extension().unwrap_or_default();
    let mut known = ["yaml", "yml", "json"].iter();
    let has_extension = known.any(|known| extension.eq_ignore_ascii_case(known));
    let mut lines = text.split(|byte| *byte == b'\n');
    has_extension || lines.any(|line| line.starts_with(b"apiVersion:"))
}

/// Returns the text of the settings if there is anything to forward. `start`: start of the file.
pub(super) fn translate(start: SourceLocation, text: &[u8]) -> Option<String> {
    let documents = match std::str::from_utf8(text) {
        Ok(text) => yaml::parse_documents(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(error) => Err(yaml::YamlError {
            line: 1 + memchr::memchr_iter(b'\n', &text[..error.valid_up_to()]).count(),
            message: "this is no text in UTF-8".to_owned(),
        }),
    };
    let note = |error: yaml::YamlError| start.at_line(error.line).note(error.message);
    let documents = documents.map_err(note).ok()?;
    let manifest = Manifest::read(&documents, start);
    let (mut ingresses, services) = (manifest.ingresses, manifest.services);
    ingresses.retain(|ingress| !note_if_canary(ingress));
    // Each path becomes a route, and each rule may need one for the other paths of its host.
    let rules = ingresses.iter().flat_map(|ingress| ingress.rules);
    let count: usize = rules.map(|rule| 1 + paths(rule).len()).sum();
    if count > MAX_ROUTES {
        return note_too_many_routes(start);
    }
    let mut zones = Zones::default();
    let namespaces: HashSet<&str> = ingresses.iter().map(|ingress| ingress.namespace).collect();
    let has_namespaces = namespaces.len() > 1;
    let policy = |ingress: &Ingress| {
        let like = qualified_name(has_namespaces, ingress.namespace, ingress.name);
        Policy::read(ingress, &like, &mut zones)
    };
    let policies: Vec<Policy> = ingresses.iter().map(policy).collect();
    let hosts = group_by_host(&ingresses, &policies);
    let folders = server::certificate_folders(&ingresses);
    let mut origins = Origins {
        ingresses: &ingresses,
        policies: &policies,
        services: &services,
        has_namespaces,
        tables: page::OriginTables::default(),
        noted: HashSet::new(),
    };
    let Some(routes_by_host) = routes::plan(&hosts, &policies, &mut origins) else {
        return note_too_many_routes(start);
    };
    if origins.tables.sections.is_empty() {
        return None;
    }
    let mut sections = server::gateway_sections(&folders, &hosts, &policies);
    sections.append(&mut origins.tables.sections);
    sections.append(&mut zones.sections);
    for (host, routes) in hosts.iter().zip(&routes_by_host) {
        let notes_before = start.notes.count();
        if host.name.as_ref().is_some_and(|name| name.starts_with('*')) {
            let name = host.shown();
            host.at.note(format!("{name}: a wildcard of an Ingress takes one label, and that of drip one or more; hosts with more labels come here, too"));
        }
        let mut comments = vec![format!("{}: {}", host.at, host.shown())];
        comments.extend(start.notes.since(notes_before));
        sections.extend(tables(routes, host.name.as_deref(), comments));
    }
    Some(page::text(&sections))
}

/// Notes an Ingress that is a canary. Returns whether it is one.
///
/// A canary gets a part of the requests of another Ingress, which has the same paths.
fn note_if_canary(ingress: &Ingress) -> bool {
    let is_canary = ingress.annotations.flag("canary") == Some(true);
    if is_canary {
        ingress.at.note(format!("Ingress {} is a canary and is left out: all requests go to the Service of the main Ingress. Give a part of them to another origin by match of a route, or by weight in servers", ingress.shown()));
    }
    is_canary
}

/// Returns a name for a zone or an origin.
///
/// It has the namespace if there are several, because names may be the same in two of them.
fn qualified_name(has_namespaces: bool, namespace: &str, name: &str) -> String {
    if has_namespaces {
        format!("{namespace}-{name}")
    } else {
        name.to_owned()
    }
}

/// Notes that there are too many routes. Returns no settings.
fn note_too_many_routes(start: SourceLocation) -> Option<String> {
    start.note(format!("there are more than {MAX_ROUTES} routes; nothing is translated. Import the Ingresses in parts"));
    None
}
