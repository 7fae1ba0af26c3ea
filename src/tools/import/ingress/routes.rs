use std::collections::HashSet;

use super::hosts::Host;
use super::object::{Ingress, Services};
use super::origins::Origins;
use super::patterns::{Action, Planned};
use super::policy::Policy;
use super::server::{Plain, TLS_LISTEN};
use crate::tools::import::notes::Notes;
use crate::tools::import::translate::page::Section;

/// Makes routes of what is planned for each host.
pub(super) struct Routes<'i> {
    pub(super) ingresses: &'i [Ingress],
    pub(super) policies: &'i [Policy],
    pub(super) services: &'i Services,
    pub(super) has_namespaces: bool,
    pub(super) plain: Plain,
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
        plain: Plain,
    ) -> Self {
        let namespaces: HashSet<&str> = ingresses.iter().map(|it| &*it.namespace).collect();
        Self {
            ingresses,
            policies,
            services,
            has_namespaces: namespaces.len() > 1,
            plain,
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
        section.text("path", &planned.pattern.path());
        if let Some(name) = &host.name {
            section.text("host", name);
        }
        let mut twin = None;
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
                    if self.plain == Plain::Mixed && policy.redirects(host.has_tls) {
                        let mut refused = section.clone();
                        refused.fields.push(("refuse", "403".to_owned()));
                        twin = Some(refused);
                        section.text("listen", TLS_LISTEN);
                    }
                    section.fields.extend(policy.networks());
                    section.text("origin", &origin);
                    for (name, prefix) in [("strip_prefix", strip), ("add_prefix", add)] {
                        if let Some(prefix) = prefix {
                            section.text(name, prefix);
                        }
                    }
                    section.fields.extend(policy.fields());
                    if policy.has_lost && policy.limits.is_empty() {
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
        self.sections.extend(twin);
    }
}
