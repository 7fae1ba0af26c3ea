//! What differs in the files that settings name: the settings' text has only their names.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::jwt::KeySet;
use crate::{Page, PageContent, PeerPattern, RejectBody, Route, Settings};

/// A file that was read with the settings.
struct Named<'s> {
    /// The field that names it, as a text of a change has it.
    field: String,
    file: &'s Path,
    content: Content<'s>,
}

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
    let known: HashMap<String, Named> = files(old).into_iter().collect();
    for (place, now) in files(new) {
        let before = known.get(&place).filter(|it| it.file == now.file);
        let Some(before) = before.filter(|it| it.content != now.content) else {
            continue;
        };
        let field = now.field;
        let (Content::Networks(old), Content::Networks(new)) = (&before.content, &now.content)
        else {
            found.push(format!("{field} content changed"));
            continue;
        };
        for (sign, more, less) in [('+', new, old), ('-', old, new)] {
            match more.difference(less).count() {
                0 => {}
                1 => found.push(format!("{field} {sign} 1 network")),
                count => found.push(format!("{field} {sign} {count} networks")),
            }
        }
    }
}

/// The files of all settings, each with what tells its place from others.
fn files(settings: &Settings) -> Vec<(String, Named<'_>)> {
    let mut all = Vec::new();
    let mut add = |field: String, file, content| {
        let named = Named {
            field,
            file,
            content,
        };
        all.push((named.field.clone(), named));
    };
    if let Some(ca) = &settings.redis.ca {
        let content = Content::Certificates(&ca.certificates);
        add("redis.ca".to_owned(), &*ca.file, content);
    }
    let server = &settings.server;
    for (name, peers) in [
        ("trusted_proxies", &server.trusted_proxies),
        ("proxy_protocol", &server.proxy_protocol),
    ] {
        if let Some(file) = peers.file() {
            let networks = peers.patterns().iter().copied().collect();
            add(
                format!("server.{name}.file"),
                file,
                Content::Networks(networks),
            );
        }
    }
    for jwt in settings.jwt.iter() {
        let content = Content::Keys(jwt.verifier.keys());
        add(format!("jwt.{}.jwks", jwt.name), &jwt.jwks, content);
    }
    for origin in &settings.origins {
        let mut add = |field, file, content| {
            add(format!("origins.{}.{field}", origin.name), file, content);
        };
        if let Some(ca) = &origin.tls.authorities {
            add("ca", &ca.file, Content::Certificates(&ca.certificates));
        }
        if let Some(own) = &origin.tls.identity {
            add(
                "client_cert",
                &own.certificate_file,
                Content::Certificates(&own.chain),
            );
            add("client_key", &own.key_file, Content::Key(&own.key));
        }
        if let Some(page) = origin.room.as_ref().and_then(|room| room.page.as_ref()) {
            add("room.page", &page.file, Content::Page(&page.content));
        }
    }
    for route in &settings.routes {
        all.extend(of_route(route).into_iter().map(|(field, file, content)| {
            let place = format!("{:?} {field}", route.selector());
            let field = format!("routes[{}].{field}", route.name());
            (
                place,
                Named {
                    field,
                    file,
                    content,
                },
            )
        }));
    }
    all
}

fn of_route<'r>(route: &'r Route) -> Vec<(String, &'r Path, Content<'r>)> {
    let mut all = Vec::new();
    for (name, networks) in [("allow", &route.allow), ("deny", &route.deny)] {
        if let Some(networks) = networks
            && let Some(file) = &networks.file
        {
            let list = networks.list.iter().copied().map(PeerPattern::Network);
            all.push((
                format!("{name}.file"),
                &**file,
                Content::Networks(list.collect()),
            ));
        }
    }
    let mut pages = Vec::new();
    if let RejectBody::File(page) = &route.reject_body {
        pages.push(("reject_body.file".to_owned(), page));
    }
    for (statuses, choice) in route.pages.iter() {
        for (name, page) in choice.iter() {
            let name = name.map_or(String::new(), |name| format!(".{name}"));
            pages.push((format!("pages.{statuses}{name}"), page));
        }
    }
    let content =
        |(field, page): (String, &'r Page)| (field, &*page.file, Content::Page(&page.content));
    all.extend(pages.into_iter().map(content));
    all
}
