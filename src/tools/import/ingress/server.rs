//! Builds the tables `[server]` and `[server.tls]` for Ingresses.
//!
//! Kubernetes keeps a certificate and its key in a Secret, which a container sees as a folder.

use std::collections::HashSet;

use super::hosts::Host;
use super::manifest::Ingress;
use super::policy::{BODY_SIZE, Policy};
use crate::import::translate::page::{Section, list};

/// Folder where Secrets are expected to be mounted.
const FOLDER: &str = "/etc/drip/tls";

/// Returns the folders with the certificates of all Ingresses. Notes which Secret to mount where.
pub(super) fn certificate_folders(ingresses: &[Ingress]) -> Vec<String> {
    let mut folders: Vec<String> = Vec::new();
    // Namespaces and names of the Secrets.
    let mut known: HashSet<(&str, &str)> = HashSet::new();
    for ingress in ingresses {
        for tls in ingress.tls {
            let (at, namespace) = (ingress.at(tls), ingress.namespace);
            let Some(secret) = tls.text_of("secretName") else {
                ingress.note(at, "tls without secretName has the default certificate of ingress-nginx; add its files to [server.tls]");
                continue;
            };
            let is_name =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
            if !secret.chars().all(is_name) || secret.starts_with('.') {
                let what = format!("{secret} is no name of a Secret; its certificate is left out");
                ingress.note(at, what);
                continue;
            }
            if !known.insert((namespace, secret)) {
                continue;
            }
            let mut folder = format!("{FOLDER}/{secret}");
            if folders.contains(&folder) {
                folder = format!("{FOLDER}/{namespace}.{secret}");
            }
            ingress.note(at, format_args!("mount the Secret {namespace}/{secret} at {folder}; drip check and the start fail until its tls.crt and tls.key are there"));
            folders.push(folder);
        }
    }
    folders
}

/// Returns the tables that apply to the whole gateway. `folders`: the folders with certificates.
pub(super) fn gateway_sections(
    folders: &[String],
    hosts: &[Host],
    policies: &[Policy],
) -> Vec<Section> {
    let mut section = Section::new("[server]");
    if folders.is_empty() {
        let listen = list(&["0.0.0.0:8080".to_owned()]);
        section.fields.push(("listen", listen));
    } else {
        section.comments.push("requests without TLS are redirected to https, also those of hosts without a certificate here; to serve them, replace redirect = \"https:443\" by tls = false".to_owned());
        let listen = "[{ address = \"0.0.0.0:8080\", redirect = \"https:443\" }, { address = \"0.0.0.0:8443\", tls = true }]";
        section.fields.push(("listen", listen.to_owned()));
    }
    let paths = hosts.iter().flat_map(|host| &host.paths);
    let sizes: Vec<u64> = paths.map(|it| policies[it.ingress].body_size).collect();
    let differ = "proxy-body-size differs between Ingresses, and is 1m where it is not set";
    section.add_largest_body(&sizes, BODY_SIZE, differ);
    let mut sections = vec![section];
    if !folders.is_empty() {
        let mut section = Section::new("[server.tls]");
        let files = |name: &str| -> Vec<String> {
            let files = folders.iter().map(|folder| format!("{folder}/{name}"));
            files.collect()
        };
        section.fields.push(("cert", list(&files("tls.crt"))));
        section.fields.push(("key", list(&files("tls.key"))));
        sections.push(section);
        if let Some(host) = hosts.first() {
            host.at.note("ingress-nginx adds Strict-Transport-Security to responses over TLS; with drip, let the application do it, or set it by response_headers");
        }
    }
    sections
}
