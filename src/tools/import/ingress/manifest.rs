//! Finds the objects of a manifest.

use super::object::{Ingress, Services};
use super::yaml::Node;
use crate::tools::import::notes::{Notes, Place};

/// What a manifest has for a gateway.
#[derive(Default)]
pub(super) struct Manifest {
    pub(super) ingresses: Vec<Ingress>,
    pub(super) services: Services,
}

impl Manifest {
    pub(super) fn read(documents: &[Node], file: usize, notes: &mut Notes) -> Self {
        let mut manifest = Self::default();
        for document in documents {
            let kind = document.text_of("kind").unwrap_or_default();
            let is_list = kind == "List" || kind == "IngressList" || kind == "ServiceList";
            if is_list && document.get("items").is_some() {
                for item in document.items_of("items") {
                    manifest.add(item, kind, file, notes);
                }
            } else {
                manifest.add(document, kind, file, notes);
            }
        }
        manifest
    }

    /// Adds an object; `list`: the kind of the list that it is of.
    fn add(&mut self, object: &Node, list: &str, file: usize, notes: &mut Notes) {
        let place = Place {
            file,
            line: object.line,
        };
        // The objects of a list of one kind may leave it out.
        let kind = object.text_of("kind").or_else(|| list.strip_suffix("List"));
        let version = object
            .text_of("apiVersion")
            .unwrap_or("networking.k8s.io/v1");
        let metadata = object.get("metadata");
        let name = metadata.and_then(|it| it.text_of("name")).unwrap_or("-");
        match kind.unwrap_or_default() {
            "Ingress" if version == "networking.k8s.io/v1" => {
                self.ingresses.push(Ingress::read(object, file, notes));
            }
            "Ingress" => notes.add(place, format!("Ingress {name} is of {version} and is skipped; write it for networking.k8s.io/v1, as kubectl get -o yaml shows it")),
            "Service" => {
                let namespace = metadata.and_then(|it| it.text_of("namespace"));
                let namespace = namespace.unwrap_or("default");
                self.services.add(namespace, name, object);
            }
            "ConfigMap" => notes.add(place, format!("ConfigMap {name} is skipped; if it is that of ingress-nginx, its settings count for all Ingresses, such as use-forwarded-headers (see trusted_proxies), limit-req-status-code (see reject_status) and global-auth-url")),
            "" if object.text().is_none() && object.entries().is_empty() && object.items().is_empty() => {}
            "" => notes.add(place, "this is no object of Kubernetes, as it has no kind; it is skipped"),
            kind => notes.add(place, format!("{kind} {name} is skipped: only Ingresses are translated, and Services are read for the numbers of their ports")),
        }
    }
}
