//! Finds the Ingresses and Services of a manifest: a file with objects of Kubernetes.
//!
//! An Ingress has rules, each with a host and its paths. A path has a backend: a port of a Service.

use std::collections::HashMap;
use std::fmt::Display;

use super::annotations::Annotations;
use super::yaml::Node;
use crate::import::notes::SourceLocation;

/// Namespace of objects that name none.
const DEFAULT_NAMESPACE: &str = "default";

/// The Ingresses and Services of a manifest.
#[derive(Default)]
pub(super) struct Manifest<'n> {
    pub(super) ingresses: Vec<Ingress<'n>>,
    pub(super) services: Services<'n>,
}

/// The Services of the input, by namespace and name.
pub(super) type Services<'n> = HashMap<(&'n str, &'n str), &'n Node>;

impl<'n> Manifest<'n> {
    /// Sorts the objects of the documents. `start`: start of the file.
    pub(super) fn read(documents: &'n [Node], start: SourceLocation<'n>) -> Self {
        let mut manifest = Self::default();
        for document in documents {
            let kind = document.text_of("kind").unwrap_or_default();
            let is_list = kind == "List" || kind == "IngressList" || kind == "ServiceList";
            if is_list && document.get("items").is_some() {
                for item in document.items_of("items") {
                    manifest.add(item, kind, start);
                }
            } else {
                manifest.add(document, kind, start);
            }
        }
        manifest
    }

    /// Adds an object. `list`: the kind of the list that contains it.
    fn add(&mut self, object: &'n Node, list: &'n str, start: SourceLocation<'n>) {
        let at = start.at_line(object.line);
        // Objects in a list may omit `kind`: the kind of the list implies it.
        let kind = object.text_of("kind").or_else(|| list.strip_suffix("List"));
        let version = object.text_of("apiVersion");
        let version = version.unwrap_or("networking.k8s.io/v1");
        let metadata = object.get("metadata");
        let name = metadata.and_then(|it| it.text_of("name")).unwrap_or("-");
        match kind.unwrap_or_default() {
            "Ingress" if version == "networking.k8s.io/v1" => {
                self.ingresses.push(Ingress::read(object, at));
            }
            "Ingress" => at.note(format!("Ingress {name} is of {version} and is skipped; write it for networking.k8s.io/v1, as kubectl get -o yaml shows it")),
            "Service" => {
                let namespace = metadata.and_then(|it| it.text_of("namespace"));
                let namespace = namespace.unwrap_or(DEFAULT_NAMESPACE);
                self.services.insert((namespace, name), object);
            }
            "ConfigMap" => at.note(format!("ConfigMap {name} is skipped; if it is that of ingress-nginx, its settings count for all Ingresses, such as use-forwarded-headers (see trusted_proxies), limit-req-status-code (see reject_status) and global-auth-url")),
            // An empty document, as after a last `---`.
            "" if object.text().is_none() && object.entries().is_empty() && object.items().is_empty() => {}
            "" => at.note("this is no object of Kubernetes, as it has no kind; it is skipped"),
            kind => at.note(format!("{kind} {name} is skipped: only Ingresses are translated, and Services are read for the numbers of their ports")),
        }
    }
}

/// An Ingress of `networking.k8s.io/v1`.
pub(super) struct Ingress<'n> {
    pub(super) at: SourceLocation<'n>,
    pub(super) namespace: &'n str,
    pub(super) name: &'n str,
    pub(super) annotations: Annotations<'n>,
    pub(super) rules: &'n [Node],
    pub(super) tls: &'n [Node],
    /// Backend of the requests that match no path.
    pub(super) default: Option<Backend<'n>>,
}

/// A port of a Service, to which requests go.
#[derive(Clone, Copy)]
pub(super) struct Backend<'n> {
    pub(super) service: &'n str,
    pub(super) port: Port<'n>,
    pub(super) at: SourceLocation<'n>,
}

/// Number of a port, or its name in the Service.
#[derive(Clone, Copy)]
pub(super) enum Port<'n> {
    Number(u16),
    Name(&'n str),
}

impl Backend<'_> {
    /// Returns the number of the port; `None` if the input does not define the port.
    pub(super) fn port_number(&self, namespace: &str, services: &Services) -> Option<u16> {
        let name = match self.port {
            Port::Number(number) => return Some(number),
            Port::Name(name) => name,
        };
        let spec = services.get(&(namespace, self.service))?.get("spec")?;
        let mut ports = spec.items_of("ports").iter();
        let port = ports.find(|port| port.text_of("name") == Some(name))?;
        port.text_of("port")?.parse().ok()
    }
}

impl<'n> Ingress<'n> {
    /// Reads an object of the kind Ingress.
    fn read(object: &'n Node, at: SourceLocation<'n>) -> Self {
        let metadata = object.get("metadata");
        let field = |name| metadata.and_then(|metadata| metadata.text_of(name));
        let name = field("name").unwrap_or("-");
        let namespace = field("namespace").unwrap_or_else(|| {
            at.note(format!("Ingress {name} has no namespace; its Services are looked up in the namespace {DEFAULT_NAMESPACE}"));
            DEFAULT_NAMESPACE
        });
        let spec = object.get("spec");
        let items = |key| spec.map_or(&[][..], |spec| spec.items_of(key));
        let mut ingress = Self {
            at,
            namespace,
            name,
            annotations: Annotations::read(format!("{namespace}/{name}"), metadata, at),
            rules: items("rules"),
            tls: items("tls"),
            default: None,
        };
        let default = spec.and_then(|spec| spec.get("defaultBackend"));
        ingress.default = default.and_then(|it| ingress.read_backend(it));
        ingress
    }

    /// Returns the name of the Ingress for notes.
    pub(super) fn shown(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Returns the source location of a node.
    pub(super) fn at(&self, node: &Node) -> SourceLocation<'n> {
        self.at.at_line(node.line)
    }

    /// Adds a note about the Ingress.
    pub(super) fn note(&self, at: SourceLocation, what: impl Display) {
        at.note(format!("Ingress {}: {what}", self.shown()));
    }

    /// Reads a backend; `None` if it is wrong, which is noted.
    pub(super) fn read_backend(&self, node: &'n Node) -> Option<Backend<'n>> {
        let at = self.at(node);
        let service = node.get("service");
        let Some(service_name) = service.and_then(|service| service.text_of("name")) else {
            let what = "a backend is a service of networking.k8s.io/v1; this path is left out";
            self.note(at, what);
            return None;
        };
        let port = service.and_then(|service| service.get("port"));
        let number = port.and_then(|port| port.text_of("number")?.parse::<u16>().ok());
        let number = number.filter(|number| *number > 0).map(Port::Number);
        let port = number.or_else(|| port?.text_of("name").map(Port::Name));
        if port.is_none() {
            let what = format!(
                "the backend {service_name} has no port from 1 to 65535; its path is left out"
            );
            self.note(at, what);
        }
        Some(Backend {
            service: service_name,
            port: port?,
            at,
        })
    }
}

/// Returns the paths of a rule.
pub(super) fn paths(rule: &Node) -> &[Node] {
    rule.get("http").map_or(&[], |it| it.items_of("paths"))
}
