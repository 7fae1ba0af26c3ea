//! `[routes.cors]`.

use std::num::NonZeroU16;
use std::time::Duration;

use super::prelude::*;

table! {
    /// `[routes.cors]`: scripts of these sites may read the responses.
    ///
    /// Implements the CORS protocol of the Fetch standard.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Cors {
        /// Origins as browsers send them, without duplicates; never empty.
        ///
        /// [`ANY`](Self::ANY) alone: all sites.
        origins: Vec<String> = ORIGINS.required("[\"https://app.example\"]"), NextRequest,
            "Sites whose scripts may read the responses, as browsers write them in Origin; [\"*\"]: all sites.";
        credentials: bool = BOOLEAN.or("false"), NextRequest,
            "Whether browsers may send cookies and logins, and show scripts the responses to such requests.";
        /// Zero: browsers send a preflight before each request. At most a day.
        max_age: Duration = duration::<0, { 24 * HOUR }>().or("\"10m\""), NextRequest,
            "How long a browser may remember the answer to a preflight, up to 1d.";
    }
}

const ORIGINS: Kind<Vec<String>> = kind(
    Form::List(
        &Form::Like(r"\*|[a-z][a-z0-9+.-]*://(\[[0-9a-f:.]+\]|[^/?#@\s:*]+)(:[1-9][0-9]{0,4})?"),
        1,
    ),
    |node| values::filled_list(node, "[\"https://app.example\"]", origin),
    |it| texts(it),
);

/// Reads one origin as browsers send it, or [`Cors::ANY`].
fn origin(node: Node) -> Option<String> {
    let what = "a site as browsers write it, such as \"https://app.example\", or \"*\"";
    let text = values::fitting(node, what, is_origin)?;
    if let Some(why) = never_sent(text) {
        return node.refused(&format!("{why}; found \"{text}\""));
    }
    Some(text.to_owned())
}

/// Reason why no browser sends this origin, or `None` if browsers may send it.
///
/// The origin of a URL has a host and no default port (RFC 6454, section 6.2).
fn never_sent(text: &str) -> Option<&'static str> {
    let (scheme, host) = text.split_once("://")?;
    if host.contains('*') {
        return Some("sites are compared as a whole: name each, or write [\"*\"] for all");
    }
    // Colons within brackets belong to an IPv6 address.
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (host, None),
    };
    let is_port = |port: &str| {
        port.parse::<NonZeroU16>()
            .is_ok_and(|number| number.to_string() == port)
    };
    let is_ipv6 = host.starts_with('[') && host.ends_with(']');
    if host.is_empty() || host.contains(':') && !is_ipv6 || !port.is_none_or(is_port) {
        return Some("expected a host, and a port from 1 to 65535 if there is one");
    }
    match (scheme, port) {
        ("http", Some("80")) | ("https", Some("443")) => {
            Some("browsers leave out the default port of a scheme: remove it")
        }
        _ => None,
    }
}

/// Returns whether a text is an origin as browsers send it, or [`Cors::ANY`].
fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else {
        return text == Cors::ANY;
    };
    let is_scheme = |byte: u8| byte.is_ascii_lowercase() || b"0123456789+.-".contains(&byte);
    let is_host = |byte: u8| {
        byte.is_ascii_graphic() && !byte.is_ascii_uppercase() && !b"/?#@\\".contains(&byte)
    };
    scheme.starts_with(|first: char| first.is_ascii_lowercase())
        && scheme.bytes().all(is_scheme)
        && !host.is_empty()
        && host.bytes().all(is_host)
}

impl Cors {
    /// Matches all sites.
    pub const ANY: &'static str = "*";

    /// Returns whether scripts of all sites may read the responses.
    pub fn allows_any(&self) -> bool {
        self.origins.iter().any(|origin| origin == Self::ANY)
    }
}

/// Reads `[routes.cors]`, if the route has it.
pub(super) fn read(node: Node) -> Option<Cors> {
    let mut fields = Fields::of(node, "[routes.cors]".to_owned(), Cors::TABLE)?;
    let cors = Cors::read(&mut fields);
    let origins = fields.right("origins");
    let is_right = !fields.has_wrong();
    fields.finish();
    let is_any = cors.allows_any();
    let wrong = if is_any && cors.origins.len() > 1 {
        "\"*\" means all sites; remove it, or the others"
    } else if is_any && cors.credentials {
        "browsers show no response with credentials where \"*\" is allowed; name the sites, or remove credentials"
    } else {
        return is_right.then_some(cors);
    };
    if let Some(origins) = origins {
        origins.wrong(wrong);
    }
    None
}
