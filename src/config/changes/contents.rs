//! What changed in the files that settings name: `show` has their paths alone.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::jwt::KeySet;
use crate::{PageContent, PeerPattern, RejectBody, Route, Settings};

/// A file that a field names: the field, the methods of its route, and the path.
///
/// Routes of one path have the same field, and differ in their methods.
type NamedFile<'s> = ((String, &'s [String]), &'s Path);

#[derive(PartialEq)]
enum Content<'s> {
    Certificates(&'s [CertificateDer<'static>]),
    Key(&'s PrivateKeyDer<'static>),
    Keys(&'s KeySet),
    Networks(HashSet<PeerPattern>),
    Page(&'s PageContent),
}

/// Compares the contents of files that have the same names in both.
pub(super) fn compare(old: &Settings, new: &Settings, found: &mut Vec<String>) {
    let known: HashMap<NamedFile, Content> = files(old).into_iter().collect();
    for (file, now) in files(new) {
        let ((field, _), _) = &file;
        match (known.get(&file), &now) {
            (Some(Content::Networks(old)), Content::Networks(new)) => {
                for (sign, more, less) in [('+', new, old), ('-', old, new)] {
                    match more.difference(less).count() {
                        0 => {}
                        1 => found.push(format!("{field} {sign} 1 network")),
                        count => found.push(format!("{field} {sign} {count} networks")),
                    }
                }
            }
            (Some(known), _) if *known != now => found.push(format!("{field} content changed")),
            _ => {}
        }
    }
}

/// The files of all settings.
fn files(settings: &Settings) -> Vec<(NamedFile<'_>, Content<'_>)> {
    use Content::{Certificates, Key, Keys, Networks, Page};
    let mut all = Vec::new();
    let mut add = |field: String, file, content| all.push((((field, &[][..]), file), content));
    if let Some(ca) = &settings.redis.ca {
        add("redis.ca".into(), &*ca.file, Certificates(&ca.certificates));
    }
    let server = &settings.server;
    for (name, peers) in [
        ("server.trusted_proxies.file", &server.trusted_proxies),
        ("server.proxy_protocol.file", &server.proxy_protocol),
    ] {
        if let Some(file) = peers.file() {
            let networks = peers.patterns().iter().copied().collect();
            add(name.into(), file, Networks(networks));
        }
    }
    for jwt in settings.jwt.iter() {
        let keys = Keys(jwt.verifier.keys());
        add(format!("jwt.{}.jwks", jwt.name), &jwt.jwks, keys);
    }
    for origin in &settings.origins {
        let mut add = |field, file, content| {
            add(format!("origins.{}.{field}", origin.name), file, content);
        };
        if let Some(ca) = &origin.tls.authorities {
            add("ca", &*ca.file, Certificates(&ca.certificates));
        }
        if let Some(own) = &origin.tls.identity {
            let (certificate, key) = (&own.certificate_file, &own.key_file);
            add("client_cert", certificate, Certificates(&own.chain));
            add("client_key", key, Key(&own.key));
        }
        if let Some(page) = origin.room.as_ref().and_then(|room| room.page.as_ref()) {
            add("room.page", &page.file, Page(&page.content));
        }
    }
    all.extend(settings.routes.iter().flat_map(of_route));
    all
}

fn of_route(route: &Route) -> Vec<(NamedFile<'_>, Content<'_>)> {
    let networks = [("allow.file", &route.allow), ("deny.file", &route.deny)];
    let networks = networks.into_iter().filter_map(|(field, networks)| {
        let networks = networks.as_ref()?;
        let file = networks.file.as_deref()?;
        let list = networks.list.iter().copied().map(PeerPattern::Network);
        Some((field.to_owned(), file, Content::Networks(list.collect())))
    });
    let body = match &route.reject_body {
        RejectBody::File(page) => Some(("reject_body.file".to_owned(), page)),
        RejectBody::Text(_) => None,
    };
    let of_statuses = route.pages.iter().flat_map(|(statuses, choice)| {
        choice.iter().map(move |(name, page)| {
            let name = name.map_or(String::new(), |name| format!(".{name}"));
            (format!("pages.{statuses}{name}"), page)
        })
    });
    let pages = body.into_iter().chain(of_statuses);
    let pages = pages.map(|(field, page)| (field, &*page.file, Content::Page(&page.content)));
    let named = networks.chain(pages).map(|(field, file, content)| {
        let field = format!("routes[{}].{field}", route.name());
        (((field, &*route.methods), file), content)
    });
    named.collect()
}
