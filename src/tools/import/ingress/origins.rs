//! Finds the origin for the requests of each path.
//!
//! A path has a backend: a port of a Service. The origin of a backend is a table `[origins.NAME]`.

use std::collections::HashSet;

use config::toml_string;

use super::hosts::{Host, HostPath};
use super::manifest::{Backend, Ingress, Port, Services};
use super::policy::Policy;
use super::qualified_name;
use super::rewrite::Prefixes;
use crate::import::translate::fields::Fields;
use crate::import::translate::limits::{Limits, STATUS};
use crate::import::translate::page::{OriginTables, Section};
use crate::import::translate::probe;
use crate::import::translate::route::{Action, Forward};

/// The origins of all paths. Each Service port with different settings is one origin.
pub(super) struct Origins<'i> {
    pub(super) ingresses: &'i [Ingress<'i>],
    /// The settings of each Ingress.
    pub(super) policies: &'i [Policy],
    pub(super) services: &'i Services<'i>,
    /// Whether the Ingresses are in several namespaces.
    pub(super) has_namespaces: bool,
    /// The tables of the origins so far.
    pub(super) tables: OriginTables,
    /// The Ingresses whose notes have been written at a route.
    pub(super) noted: HashSet<usize>,
}

impl Origins<'_> {
    /// Takes the notes on an Ingress, to write them at its first route. Later calls return none.
    pub(super) fn take_comments(&mut self, ingress: usize) -> Vec<String> {
        let is_first = self.noted.insert(ingress);
        let comments = is_first.then(|| self.policies[ingress].comments.clone());
        comments.unwrap_or_default()
    }

    /// Returns the action for the requests of a path. `prefixes`: its rewrite.
    pub(super) fn action(&mut self, host: &Host, path: &HostPath, prefixes: Prefixes) -> Action {
        let policy = &self.policies[path.ingress];
        if let Some(status) = policy.refuse.or(host.refuse) {
            return Action::Refuse(status);
        }
        let ingress = &self.ingresses[path.ingress];
        let Some(origin) = self.add(ingress, policy, &path.backend) else {
            return Action::Refuse(503);
        };
        if policy.limits.is_empty() && policy.has_lost_limits {
            let shown = format!("{}{}", host.shown(), path.path);
            path.at.notes.add_unlimited(shown);
        }
        Action::Forward(Box::new(Forward {
            origin,
            response_timeout: None,
            limits: Limits {
                list: policy.limits.clone(),
                status: STATUS,
                dry_run: false,
            },
            strip_prefix: prefixes.strip,
            add_prefix: prefixes.add,
            request_headers: Fields::default(),
            response_headers: Fields::default(),
            networks: policy.networks.clone(),
        }))
    }

    /// Adds the origin of a backend, if it is new. Returns its name.
    ///
    /// Returns `None` if the backend has no address, which is noted.
    fn add(&mut self, ingress: &Ingress, policy: &Policy, backend: &Backend) -> Option<String> {
        let (namespace, service) = (ingress.namespace, backend.service);
        let Some(port) = backend.port_number(namespace, self.services) else {
            if let Port::Name(port) = backend.port {
                ingress.note(backend.at, format_args!("the number of the port {port} of {service} is not known, so requests get 503; add the Service to the input, as by kubectl get -n {namespace} ingress,service -o yaml"));
            }
            return None;
        };
        let scheme = policy.scheme;
        let url = format!("{scheme}://{service}.{namespace}.svc.cluster.local:{port}");
        if !probe::server(&url) {
            ingress.note(backend.at, format_args!("{url} is no URL of a server, so requests get 503; correct the name of the Service"));
            return None;
        }
        let mut section = Section::default();
        let servers = format!("[{}]", toml_string(&url));
        section.fields.push(("servers", servers));
        section.fields.extend(policy.origin_fields.iter().cloned());
        let like = qualified_name(self.has_namespaces, namespace, service);
        // Routes of an Ingress have no response timeout of their own.
        let (name, _timeout) = self.tables.find_or_add(section, None, &like, None);
        Some(name)
    }
}
