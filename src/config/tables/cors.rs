//! `[routes.cors]`: sites whose scripts may read the responses of a route.
//!
//! In `table!`, an entry is a field of the file: its type, its reader with the default, when a
//! change takes effect, and its meaning (see `table_settings`, and `kinds` for readers such as
//! `BOOLEAN`).

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
        credentials: bool = BOOLEAN.with_default("false"), NextRequest,
            "Whether browsers may send cookies and logins, and show scripts the responses to such requests.";
        /// Zero: browsers send a preflight before each request. At most a day.
        max_age: Duration = duration::<0, { 24 * HOUR }>().with_default("\"10m\""), NextRequest,
            "How long a browser may remember the answer to a preflight, up to 1d.";
    }
}

/// List of sites.
const ORIGINS: Kind<Vec<String>> = Kind {
    form: Form::UniqueList(
        &Form::Regex(r"\*|[a-z][a-z0-9+.-]*://(\[[0-9a-f:.]+\]|[^/?#@\s:*]+)(:[1-9][0-9]{0,4})?"),
        1,
    ),
    read: |node| {
        values::non_empty_list(node, "[\"https://app.example\"]", |item| {
            let what = "a site as browsers write it, such as \"https://app.example\", or \"*\"";
            values::parse(item, what, parse_origin)
        })
    },
    show: |it| show_texts(it),
};

/// Reads an origin as browsers send it (RFC 6454, section 6.2), or [`Cors::ANY`].
fn parse_origin(text: &str) -> Result<String, &'static str> {
    const FORM: &str =
        "expected a site as browsers write it, such as \"https://app.example\", or \"*\"";
    if text == Cors::ANY {
        return Ok(text.to_owned());
    }
    let (scheme, authority) = text.split_once("://").ok_or(FORM)?;
    let is_scheme = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '+' | '.' | '-');
    let is_authority = |c: char| c.is_ascii_graphic() && !c.is_ascii_uppercase();
    if !scheme.starts_with(|first: char| first.is_ascii_lowercase())
        || !scheme.chars().all(is_scheme)
        || !authority.chars().all(is_authority)
        || authority.is_empty()
        || authority.contains(['/', '?', '#', '@', '\\'])
    {
        return Err(FORM);
    }
    if authority.contains('*') {
        return Err("sites are compared as a whole: name each, or write [\"*\"] for all");
    }
    // Colons within brackets belong to an IPv6 address.
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let is_port = |port: &str| {
        let number = port.parse::<NonZeroU16>();
        number.is_ok_and(|number| number.to_string() == port)
    };
    let is_ipv6 = host.starts_with('[') && host.ends_with(']');
    if host.is_empty() || host.contains(':') && !is_ipv6 || !port.is_none_or(is_port) {
        return Err("expected a host, and a port from 1 to 65535 if there is one");
    }
    match (scheme, port) {
        ("http", Some("80")) | ("https", Some("443")) => {
            Err("browsers leave out the default port of a scheme: remove it")
        }
        _ => Ok(text.to_owned()),
    }
}

impl Cors {
    /// Text in `origins` that stands for all sites.
    pub const ANY: &'static str = "*";

    /// Returns whether scripts of all sites may read the responses.
    pub fn allows_any(&self) -> bool {
        self.origins.iter().any(|origin| origin == Self::ANY)
    }
}

/// Reads `[routes.cors]`; `None` if it is wrong.
pub(super) fn read(node: Node) -> Option<Cors> {
    let mut fields = Fields::begin(node, "[routes.cors]".to_owned(), Cors::TABLE)?;
    let cors = Cors::read(&mut fields);
    let is_any = cors.allows_any();
    let has_others = cors.origins.len() > 1;
    fields.refuse_if(
        is_any && has_others,
        "origins",
        "\"*\" means all sites; remove it, or the others",
    );
    fields.refuse_if(is_any && cors.credentials, "origins", "browsers show no response with credentials where \"*\" is allowed; name the sites, or remove credentials");
    fields.finish().then_some(cors)
}
