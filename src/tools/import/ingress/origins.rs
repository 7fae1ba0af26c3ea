//! Finds the origin for the requests of each path.

use std::collections::HashSet;

use config::toml_string;

use super::hosts::{Host, HostPath};
use super::object::{Backend, Ingress, Port, Services};
use super::policy::Policy;
use crate::import::translate::fields::Fields;
use crate::import::translate::limits::{Limits, STATUS};
use crate::import::translate::page::{OriginTables, Section};
use crate::import::translate::probe;
use crate::import::translate::route::{Action, Forward};

/// The origins of all paths. Each Service port with different settings is one origin.
pub(super) struct Origins<'i> {
    pub(super) ingresses: &'i [Ingress<'i>],
    pub(super) policies: &'i [Policy],
    pub(super) services: &'i Services<'i>,
    pub(super) has_namespaces: bool,
    pub(super) tables: OriginTables,
    /// The Ingresses whose notes have been written at a route.
    pub(super) noted: HashSet<usize>,
}

impl Origins<'_> {
    /// Returns the notes on an Ingress, to be written at its first route.
    pub(super) fn comments(&mut self, ingress: usize) -> Vec<String> {
        let is_first = self.noted.insert(ingress);
        let comments = is_first.then(|| self.policies[ingress].comments.clone());
        comments.unwrap_or_default()
    }

    /// Returns the action for the requests of a path.
    pub(super) fn action(
        &mut self,
        host: &Host,
        path: &HostPath,
        strip: Option<String>,
        add: Option<String>,
    ) -> Action {
        let policy = &self.policies[path.ingress];
        if let Some(status) = policy.refuse.or(host.refuse) {
            return Action::Refuse(status);
        }
        let ingress = &self.ingresses[path.ingress];
        let Some(origin) = self.of(ingress, policy, &path.backend) else {
            return Action::Refuse(503);
        };
        if policy.limits.is_empty() && policy.has_lost {
            path.at
                .notes
                .is_unlimited(format!("{}{}", host.shown(), path.path));
        }
        Action::Forward(Box::new(Forward {
            origin,
            response_timeout: None,
            limits: Limits {
                list: policy.limits.clone(),
                status: STATUS,
                dry_run: false,
            },
            strip,
            add,
            fields: Fields::default(),
            responses: Fields::default(),
            networks: policy.access.networks.clone(),
        }))
    }

    /// Returns the origin of a backend; `None` if the backend has no address, which is noted.
    fn of(&mut self, ingress: &Ingress, policy: &Policy, backend: &Backend) -> Option<String> {
        let (namespace, service) = (ingress.namespace, backend.service);
        let Some(port) = self.services.port(namespace, backend) else {
            if let Port::Name(port) = backend.port {
                let what = format!(
                    "the number of the port {port} of {service} is not known, so requests get 503; add the Service to the input, as by kubectl get -n {namespace} ingress,service -o yaml"
                );
                ingress.note(backend.at, &what);
            }
            return None;
        };
        let scheme = policy.scheme;
        let url = format!("{scheme}://{service}.{namespace}.svc.cluster.local:{port}");
        if !probe::server(&url) {
            let what = format!(
                "{url} is no URL of a server, so requests get 503; correct the name of the Service"
            );
            ingress.note(backend.at, &what);
            return None;
        }
        let mut section = Section::default();
        let servers = format!("[{}]", toml_string(&url));
        section.fields.push(("servers", servers));
        section.fields.extend(policy.of_origin.iter().cloned());
        let like = if self.has_namespaces {
            &format!("{namespace}-{service}")
        } else {
            service
        };
        let (name, _) = self.tables.named(section, None, like, None);
        Some(name)
    }
}
