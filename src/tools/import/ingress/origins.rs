use std::collections::HashMap;

use super::object::{Backend, Ingress, Port, Services};
use super::policy::Policy;
use crate::config::toml_string;
use crate::tools::import::notes::Notes;
use crate::tools::import::translate::page::{Names, Section};
use crate::tools::import::translate::probe;

/// The origins of all paths: one for each combination of a port of a Service and settings.
#[derive(Default)]
pub(super) struct Origins {
    pub(super) sections: Vec<Section>,
    names: Names,
    /// The name of each, by its fields.
    known: HashMap<Vec<(&'static str, String)>, String>,
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
            note_port(ingress, backend, services, notes);
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

fn note_port(ingress: &Ingress, backend: &Backend, services: &Services, notes: &mut Notes) {
    let (shown, service) = (ingress.shown(), &backend.service);
    let Port::Name(port) = &backend.port else {
        return;
    };
    let namespace = &ingress.namespace;
    let remedy = if services.has(namespace, service) {
        format!("the Service {service} has no port of this name")
    } else {
        format!(
            "add the Service to the input, as by kubectl get -n {namespace} ingress,service -o yaml"
        )
    };
    notes.add(backend.place, format!("Ingress {shown}: the number of the port {port} of {service} is not known, so requests get 503; {remedy}"));
}
