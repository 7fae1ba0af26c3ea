//! Makes routes and origins of what is planned for each host.

use std::collections::{HashMap, HashSet};

use config::toml_string;

use super::hosts::Host;
use super::object::{Backend, Ingress, Port, Services};
use super::patterns::{Action, Planned};
use super::policy::Policy;
use crate::import::notes::Notes;
use crate::import::translate::page::{Fields, Names, Section};
use crate::import::translate::probe;

/// Makes routes of what is planned for each host.
pub(super) struct Routes<'i> {
    ingresses: &'i [Ingress],
    policies: &'i [Policy],
    services: &'i Services,
    has_namespaces: bool,
    pub(super) origins: Origins,
    pub(super) sections: Vec<Section>,
    /// The Ingresses whose notes stand at a route.
    noted: HashSet<usize>,
}

impl<'i> Routes<'i> {
    pub(super) fn new(
        ingresses: &'i [Ingress],
        policies: &'i [Policy],
        services: &'i Services,
    ) -> Self {
        let namespaces: HashSet<&str> = ingresses.iter().map(|it| &*it.namespace).collect();
        Self {
            ingresses,
            policies,
            services,
            has_namespaces: namespaces.len() > 1,
            origins: Origins::default(),
            sections: Vec::new(),
            noted: HashSet::new(),
        }
    }

    /// Adds the routes of a host.
    pub(super) fn host(&mut self, host: &Host, planned: &[Planned], notes: &mut Notes) {
        let before = notes.count();
        if host.name.as_ref().is_some_and(|name| name.starts_with('*')) {
            let name = host.shown();
            notes.add(host.place, format!("{name}: a wildcard of an Ingress takes one label, and that of drip one or more; hosts with more labels come here, too"));
        }
        let mut comments = notes.since(before);
        comments.insert(0, format!("{}: {}", notes.name(host.place), host.shown()));
        for planned in planned {
            self.route(host, planned, std::mem::take(&mut comments), notes);
        }
    }

    fn route(
        &mut self,
        host: &Host,
        planned: &Planned,
        mut comments: Vec<String>,
        notes: &mut Notes,
    ) {
        let before = notes.count();
        let mut section = Section::new("[[routes]]");
        section.text("path", &planned.path());
        if let Some(name) = &host.name {
            section.text("host", name);
        }
        match &planned.action {
            Action::Refuse(status) => section.fields.push(("refuse", status.to_string())),
            Action::Location {
                location,
                strip,
                add,
            } => {
                let policy = &self.policies[location.ingress];
                let ingress = &self.ingresses[location.ingress];
                let refuse = policy.refuse.or(host.refuse);
                let services = (self.services, self.has_namespaces);
                let origin = match refuse {
                    Some(_) => None,
                    None => self
                        .origins
                        .of(ingress, policy, &location.backend, services, notes),
                };
                if let Some(origin) = origin {
                    policy.access.networks.write(&mut section);
                    section.text("origin", &origin);
                    for (name, prefix) in [("strip_prefix", strip), ("add_prefix", add)] {
                        if let Some(prefix) = prefix {
                            section.text(name, prefix);
                        }
                    }
                    if !policy.limits.is_empty() {
                        let limits = format!("[{}]", policy.limits.join(", "));
                        section.fields.push(("limits", limits));
                        section.fields.push(("reject_status", "503".to_owned()));
                    } else if policy.has_lost {
                        notes.is_unlimited(format!("{}{}", host.shown(), location.path));
                    }
                } else {
                    let status = refuse.unwrap_or(503);
                    section.fields.push(("refuse", status.to_string()));
                }
                if self.noted.insert(location.ingress) {
                    comments.extend(policy.comments.iter().cloned());
                }
            }
        }
        comments.extend(notes.since(before));
        section.comments = comments;
        self.sections.push(section);
    }
}

/// The origins of all paths: one for each combination of a port of a Service and settings.
#[derive(Default)]
pub(super) struct Origins {
    pub(super) sections: Vec<Section>,
    names: Names,
    /// The name of each, by its fields.
    known: HashMap<Fields, String>,
}

impl Origins {
    /// The name of the origin of a backend; `None` if it has no address, which is noted.
    pub(super) fn of(
        &mut self,
        ingress: &Ingress,
        policy: &Policy,
        backend: &Backend,
        (services, has_namespaces): (&Services, bool),
        notes: &mut Notes,
    ) -> Option<String> {
        let (namespace, service) = (&ingress.namespace, &backend.service);
        let Some(port) = services.port(namespace, backend) else {
            note_port(ingress, backend, notes);
            return None;
        };
        let url = format!(
            "{}://{service}.{namespace}.svc.cluster.local:{port}",
            policy.scheme
        );
        if !probe::server(&url) {
            let shown = ingress.shown();
            notes.add(backend.place, format!("Ingress {shown}: {url} is no URL of a server, so requests get 503; correct the name of the Service"));
            return None;
        }
        let mut fields = vec![("servers", format!("[{}]", toml_string(&url)))];
        fields.extend(policy.of_origin.iter().cloned());
        if let Some(name) = self.known.get(&fields) {
            return Some(name.clone());
        }
        let name = self.names.unique(&if has_namespaces {
            format!("{namespace}-{service}")
        } else {
            service.clone()
        });
        let mut section = Section::new(format!("[origins.{name}]"));
        section.fields.clone_from(&fields);
        self.sections.push(section);
        self.known.insert(fields, name.clone());
        Some(name)
    }
}

fn note_port(ingress: &Ingress, backend: &Backend, notes: &mut Notes) {
    let (shown, service) = (ingress.shown(), &backend.service);
    let Port::Name(port) = &backend.port else {
        return;
    };
    let namespace = &ingress.namespace;
    notes.add(backend.place, format!("Ingress {shown}: the number of the port {port} of {service} is not known, so requests get 503; add the Service to the input, as by kubectl get -n {namespace} ingress,service -o yaml"));
}
