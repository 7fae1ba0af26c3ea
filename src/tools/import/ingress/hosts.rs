//! Groups the paths of all Ingresses by host, as ingress-nginx groups them into nginx servers.
//!
//! An Ingress is known here by its index in the list of all Ingresses. A backend is a port of a
//! Service, to which requests go. The default backend of an Ingress gets all other paths.

use super::manifest::{Backend, Ingress, paths};
use super::policy::Policy;
use super::yaml::Node;
use crate::import::notes::SourceLocation;
use crate::import::translate::probe;

/// A host, with the paths of all Ingresses that name it.
pub(super) struct Host<'n> {
    /// `None`: all hosts that have no rule.
    pub(super) name: Option<String>,
    /// Location of the first rule that names it.
    pub(super) at: SourceLocation<'n>,
    pub(super) paths: Vec<HostPath<'n>>,
    /// Index of the Ingress whose annotations make all paths of the host regular expressions.
    pub(super) regex_ingress: Option<usize>,
    /// Status with which all requests of the host are refused; `None`: they are not.
    pub(super) refuse: Option<u16>,
    /// Index of the first Ingress that names the host.
    first_ingress: usize,
}

/// A path of a host.
#[derive(Clone, Copy)]
pub(super) struct HostPath<'n> {
    pub(super) path: &'n str,
    pub(super) is_exact: bool,
    /// Index of the Ingress that has this path.
    pub(super) ingress: usize,
    pub(super) backend: Backend<'n>,
    pub(super) at: SourceLocation<'n>,
}

/// Returns the hosts of the Ingresses, each with its paths. `policies`: one for each Ingress.
pub(super) fn group_by_host<'n>(ingresses: &[Ingress<'n>], policies: &[Policy]) -> Vec<Host<'n>> {
    let mut hosts = Vec::new();
    for (index, ingress) in ingresses.iter().enumerate() {
        for rule in ingress.rules {
            let (at, name) = (ingress.at(rule), rule.text_of("host"));
            let name = name.map(str::to_ascii_lowercase);
            if let Some(name) = name.as_ref().filter(|name| !probe::host(name)) {
                let what =
                    format!("{name} is no host that a route can have; its paths are left out");
                ingress.note(at, what);
                continue;
            }
            let host = find_or_add(&mut hosts, name, at, index);
            for node in paths(rule) {
                if let Some(path) = HostPath::read(ingress, index, node) {
                    host.add(path, ingress);
                }
            }
            host.refuse = host.refuse.or(policies[index].refuse_hosts);
        }
        if let Some(default) = ingress.default.filter(|_| ingress.rules.is_empty()) {
            let host = find_or_add(&mut hosts, None, default.at, index);
            host.add(HostPath::root(default, index), ingress);
        }
    }
    for host in &mut hosts {
        // ingress-nginx uses the default backend of the Ingress that names the host first.
        let default = ingresses[host.first_ingress].default;
        let has_root = host.name.is_none() || host.has_path("/", false);
        if let Some(default) = default.filter(|_| !has_root) {
            let root = HostPath::root(default, host.first_ingress);
            host.paths.push(root);
        }
        // Such a path makes ingress-nginx treat all paths of the host as regular expressions.
        let makes_regex = |path: &&HostPath| {
            let policy = &policies[path.ingress];
            let target = policy.rewrite_target.as_deref();
            policy.uses_regex || target.is_some_and(|target| target != path.path)
        };
        let regex_path = host.paths.iter().find(makes_regex);
        host.regex_ingress = regex_path.map(|path| path.ingress);
    }
    hosts
}

/// Returns the host of this name. A new host begins at `at`, with the Ingress of index `ingress`.
fn find_or_add<'h, 'n>(
    hosts: &'h mut Vec<Host<'n>>,
    name: Option<String>,
    at: SourceLocation<'n>,
    ingress: usize,
) -> &'h mut Host<'n> {
    // `MAX_ROUTES` bounds the number of hosts, so a search through all is fast enough.
    let known = hosts.iter().position(|host| host.name == name);
    let index = known.unwrap_or(hosts.len());
    if known.is_none() {
        hosts.push(Host {
            name,
            at,
            paths: Vec::new(),
            regex_ingress: None,
            refuse: None,
            first_ingress: ingress,
        });
    }
    &mut hosts[index]
}

impl<'n> Host<'n> {
    /// Returns whether the host has this path with this type.
    fn has_path(&self, path: &str, is_exact: bool) -> bool {
        let mut paths = self.paths.iter();
        paths.any(|known| (known.path, known.is_exact) == (path, is_exact))
    }

    /// Adds a path, unless the host has it already. Notes a path that is left out.
    fn add(&mut self, path: HostPath<'n>, ingress: &Ingress) {
        if self.has_path(path.path, path.is_exact) {
            let what = format!(
                "{} has the path {} already; this one is left out. ingress-nginx keeps that of the older Ingress",
                self.shown(),
                path.path
            );
            return ingress.note(path.at, what);
        }
        self.paths.push(path);
    }

    /// Returns the name of the host for notes.
    pub(super) fn shown(&self) -> &str {
        self.name.as_deref().unwrap_or("any other host")
    }
}

impl<'n> HostPath<'n> {
    /// Reads a path; `None` if the path is left out, which is noted.
    fn read(ingress: &Ingress<'n>, index: usize, node: &'n Node) -> Option<Self> {
        let at = ingress.at(node);
        let path = node.text_of("path").unwrap_or("/");
        if !path.starts_with('/') {
            ingress.note(at, format_args!("the path {path} does not begin with /, which Kubernetes refuses; it is left out"));
            return None;
        }
        Some(Self {
            path,
            // ingress-nginx treats ImplementationSpecific as Prefix.
            is_exact: node.text_of("pathType") == Some("Exact"),
            ingress: index,
            backend: ingress.read_backend(node.get("backend")?)?,
            at,
        })
    }

    /// Returns the path `/` of a default backend.
    fn root(default: Backend<'n>, ingress: usize) -> Self {
        Self {
            path: "/",
            is_exact: false,
            ingress,
            backend: default,
            at: default.at,
        }
    }
}
