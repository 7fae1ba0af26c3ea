//! Translates Ingress objects of Kubernetes with annotations of ingress-nginx.
//!
//! Sources: <https://github.com/kubernetes/ingress-nginx>, `rootfs/etc/nginx/template/nginx.tmpl` and
//! `internal/ingress`, at commit dbb11b92.

mod annotations;
mod hosts;
mod limits;
mod networks;
mod object;
mod patterns;
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

use hosts::hosts;
use limits::Zones;
use object::{Ingress, Manifest};
use policy::Policy;
use routes::Routes;

use super::MAX_ROUTES;
use super::notes::{Notes, Place};
use super::translate::page;

/// Whether a file is a manifest of Kubernetes, and not an `nginx.conf`.
pub(super) fn is_manifest(path: &Path, text: &[u8]) -> bool {
    let ending = path.extension().and_then(|it| it.to_str());
    let is_named = ending.is_some_and(|it| {
        let endings = ["yaml", "yml", "json"];
        endings.iter().any(|known| it.eq_ignore_ascii_case(known))
    });
    is_named
        || text
            .split(|byte| *byte == b'\n')
            .any(|line| line.starts_with(b"apiVersion:"))
}

/// The text of the settings, if there is anything to forward, and the notes.
pub(super) fn translate(path: &Path, text: &[u8]) -> (Option<String>, Notes) {
    let mut notes = Notes::default();
    let file = notes.file(path);
    let documents = match std::str::from_utf8(text) {
        Ok(text) => yaml::documents(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(error) => Err(yaml::YamlError {
            line: 1 + memchr::memchr_iter(b'\n', &text[..error.valid_up_to()]).count(),
            message: "this is no text in UTF-8".to_owned(),
        }),
    };
    let documents = match documents {
        Ok(documents) => documents,
        Err(yaml::YamlError { line, message }) => {
            notes.add(Place { file, line }, message);
            return (None, notes);
        }
    };
    let Manifest {
        mut ingresses,
        services,
    } = Manifest::read(&documents, file, &mut notes);
    ingresses.retain(|ingress| !is_canary(ingress, &mut notes));
    let paths = ingresses.iter().flat_map(|it| &it.rules);
    let paths: usize = paths.map(|rule| 1 + rule.paths.len()).sum();
    if paths > MAX_ROUTES {
        too_many(&ingresses, &mut notes);
        return (None, notes);
    }
    let mut zones = Zones::default();
    let policies = policies(&ingresses, &mut zones, &mut notes);
    let hosts = hosts(&ingresses, &policies, &mut notes);
    let folders = server::certificates(&ingresses, &mut notes);
    let Some(planned) = patterns::plan(&hosts, &policies, MAX_ROUTES, &mut notes) else {
        too_many(&ingresses, &mut notes);
        return (None, notes);
    };
    let mut routes = Routes::new(&ingresses, &policies, &services);
    for (host, planned) in hosts.iter().zip(&planned) {
        routes.host(host, planned, &mut notes);
    }
    if routes.origins.sections.is_empty() {
        return (None, notes);
    }
    let mut sections = server::sections(&folders, &hosts, &policies, &mut notes);
    sections.append(&mut routes.origins.sections);
    sections.append(&mut zones.sections);
    sections.append(&mut routes.sections);
    (Some(page::text(&sections)), notes)
}

fn policies(ingresses: &[Ingress], zones: &mut Zones, notes: &mut Notes) -> Vec<Policy> {
    let namespaces: HashSet<&str> = ingresses.iter().map(|it| &*it.namespace).collect();
    let mut policies = Vec::new();
    for ingress in ingresses {
        let like = match namespaces.len() {
            0 | 1 => ingress.name.clone(),
            _ => format!("{}-{}", ingress.namespace, ingress.name),
        };
        policies.push(Policy::read(ingress, &like, zones, notes));
    }
    policies
}

/// Whether an Ingress is a canary, which is noted: its paths are those of another Ingress.
fn is_canary(ingress: &Ingress, notes: &mut Notes) -> bool {
    let is_canary = ingress.annotations.flag("canary", notes) == Some(true);
    if is_canary {
        let shown = ingress.shown();
        notes.add(ingress.place, format!("Ingress {shown} is a canary and is left out: all requests go to the Service of the main Ingress. Give a part of them to another origin by match of a route, or by weight in servers"));
    }
    is_canary
}

fn too_many(ingresses: &[Ingress], notes: &mut Notes) {
    let place = ingresses.first().map(|ingress| ingress.place);
    notes.add(
        place.unwrap_or(Place::START),
        format!("there are more than {MAX_ROUTES} routes; nothing is translated. Import the Ingresses in parts"),
    );
}
