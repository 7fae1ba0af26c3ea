//! Finds the Ingresses and Services of a manifest.

use std::collections::HashMap;

use super::annotations::Annotations;
use super::yaml::Node;
use crate::import::notes::{Notes, Place};

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

/// An Ingress of `networking.k8s.io/v1`.
pub(super) struct Ingress {
    pub(super) place: Place,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) annotations: Annotations,
    pub(super) rules: Vec<Rule>,
    pub(super) tls: Vec<Tls>,
    pub(super) default: Option<Backend>,
}

/// The paths of one host; `None`: of all hosts that have no rule.
pub(super) struct Rule {
    pub(super) host: Option<String>,
    pub(super) paths: Vec<RulePath>,
    pub(super) place: Place,
}

pub(super) struct RulePath {
    pub(super) path: String,
    pub(super) is_exact: bool,
    pub(super) backend: Backend,
    pub(super) place: Place,
}

/// A port of a Service.
#[derive(Clone, Debug)]
pub(super) struct Backend {
    pub(super) service: String,
    pub(super) port: Port,
    pub(super) place: Place,
}

#[derive(Clone, Debug)]
pub(super) enum Port {
    Number(u16),
    Name(String),
}

/// An entry of `tls`: a Secret with a certificate.
pub(super) struct Tls {
    pub(super) secret: Option<String>,
    pub(super) place: Place,
}

/// The numbers of the named ports of the Services that the input has.
#[derive(Default)]
pub(super) struct Services(HashMap<(String, String), HashMap<String, u16>>);

impl Services {
    pub fn add(&mut self, namespace: &str, name: &str, object: &Node) {
        let ports = object
            .get("spec")
            .map_or(&[][..], |it| it.items_of("ports"));
        let named = ports.iter().filter_map(|port| {
            let number = port.text_of("port")?.parse().ok()?;
            Some((port.text_of("name")?.to_owned(), number))
        });
        let key = (namespace.to_owned(), name.to_owned());
        self.0.insert(key, named.collect());
    }

    /// The number of a port; `None` if the input does not have it.
    pub(super) fn port(&self, namespace: &str, backend: &Backend) -> Option<u16> {
        match &backend.port {
            Port::Number(number) => Some(*number),
            Port::Name(name) => {
                let key = (namespace.to_owned(), backend.service.clone());
                self.0.get(&key)?.get(name).copied()
            }
        }
    }
}

impl Ingress {
    pub(super) fn read(object: &Node, file: usize, notes: &mut Notes) -> Self {
        let at = |node: &Node| Place {
            file,
            line: node.line,
        };
        let metadata = object.get("metadata");
        let field = |name| metadata.and_then(|metadata| metadata.text_of(name));
        let name = field("name").unwrap_or("-").to_owned();
        let namespace = field("namespace").unwrap_or_else(|| {
            notes.add(at(object), format!("Ingress {name} has no namespace; its Services are taken for those of the namespace default"));
            "default"
        });
        let shown = format!("{namespace}/{name}");
        let spec = object.get("spec");
        let of_spec = |key| spec.map_or(&[][..], |spec| spec.items_of(key));
        let annotations = Annotations::read(&shown, metadata, file);
        let reader = Reader {
            file,
            shown: &shown,
        };
        let rules = of_spec("rules").iter();
        let tls = of_spec("tls").iter();
        let default = spec.and_then(|spec| spec.get("defaultBackend"));
        Self {
            place: at(object),
            rules: rules.map(|rule| reader.rule(rule, notes)).collect(),
            tls: tls.map(|tls| reader.tls(tls)).collect(),
            default: default.and_then(|it| reader.backend(it, notes)),
            namespace: namespace.to_owned(),
            name,
            annotations,
        }
    }

    /// The Ingress as notes name it.
    pub(super) fn shown(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// Reads the parts of an Ingress.
struct Reader<'s> {
    file: usize,
    shown: &'s str,
}

impl Reader<'_> {
    fn at(&self, node: &Node) -> Place {
        Place {
            file: self.file,
            line: node.line,
        }
    }

    fn rule(&self, rule: &Node, notes: &mut Notes) -> Rule {
        let host = rule.text_of("host").map(str::to_ascii_lowercase);
        let paths = rule.get("http").map_or(&[][..], |it| it.items_of("paths"));
        let paths = paths.iter().filter_map(|path| self.path(path, notes));
        Rule {
            host,
            paths: paths.collect(),
            place: self.at(rule),
        }
    }

    fn path(&self, node: &Node, notes: &mut Notes) -> Option<RulePath> {
        let place = self.at(node);
        let path = node.text_of("path").unwrap_or("/");
        if !path.starts_with('/') {
            let shown = self.shown;
            notes.add(place, format!("Ingress {shown}: the path {path} does not begin with /, which Kubernetes refuses; it is left out"));
            return None;
        }
        let backend = node.get("backend")?;
        Some(RulePath {
            path: path.to_owned(),
            // ingress-nginx takes ImplementationSpecific for Prefix.
            is_exact: node.text_of("pathType") == Some("Exact"),
            backend: self.backend(backend, notes)?,
            place,
        })
    }

    fn backend(&self, node: &Node, notes: &mut Notes) -> Option<Backend> {
        let (place, shown) = (self.at(node), self.shown);
        let service = node.get("service");
        let Some(name) = service.and_then(|service| service.text_of("name")) else {
            let message = "a backend is a service of networking.k8s.io/v1; this path is left out";
            notes.add(place, format!("Ingress {shown}: {message}"));
            return None;
        };
        let port = service.and_then(|service| service.get("port"));
        let number = port.and_then(|port| port.text_of("number"));
        let number = number.and_then(|number| number.parse::<u16>().ok());
        let port_name = port.and_then(|port| port.text_of("name"));
        let port = match (number.filter(|number| *number > 0), port_name) {
            (Some(number), _) => Port::Number(number),
            (None, Some(name)) => Port::Name(name.to_owned()),
            (None, None) => {
                notes.add(place, format!("Ingress {shown}: the backend {name} has no port from 1 to 65535; its path is left out"));
                return None;
            }
        };
        Some(Backend {
            service: name.to_owned(),
            port,
            place,
        })
    }

    fn tls(&self, node: &Node) -> Tls {
        Tls {
            secret: node.text_of("secretName").map(str::to_owned),
            place: self.at(node),
        }
    }
}
