//! Translates nginx's usual way to exempt clients: a geo or map that makes their key empty.
//!
//! ```nginx
//! geo $limit { default 1; 10.0.0.0/8 0; }
//! map $limit $limit_key { 0 ""; 1 $binary_remote_addr; }
//! limit_req_zone $limit_key zone=z:10m rate=5r/s;
//! ```

use std::collections::HashMap;

use ipnet::IpNet;

use super::networks::{is_mapped, network};
use super::scope::named;
use crate::import::notes::SourceLocation;
use crate::import::tree::Directive;

/// Translation of a zone's key with its exempt networks.
pub(super) struct Exempting {
    /// The key of limited clients, as nginx writes it.
    pub(super) key: String,
    /// The networks of exempt clients.
    pub(super) networks: Vec<String>,
    /// Positions of the translated directives.
    pub(super) positions: [(usize, usize); 2],
}

/// The variables of `geo` and `map`, by name without the `$`.
pub(super) struct Variables<'t> {
    geos: HashMap<&'t str, Geo<'t>>,
    maps: HashMap<&'t str, Map<'t>>,
}

/// A `geo` of the client's address.
struct Geo<'t> {
    at: SourceLocation<'t>,
    default: &'t str,
    networks: Vec<(IpNet, &'t str)>,
}

/// A `map` that compares whole values, without patterns.
struct Map<'t> {
    at: SourceLocation<'t>,
    source: &'t str,
    default: &'t str,
    values: Vec<(&'t str, &'t str)>,
}

impl<'t> Variables<'t> {
    pub(super) fn read(http: &'t [Directive<'t>]) -> Self {
        Self {
            geos: named(http, "geo").filter_map(geo).collect(),
            maps: named(http, "map").filter_map(map).collect(),
        }
    }

    /// Translates a key that is one variable of a map; `None` if `exempt` cannot express it.
    pub(super) fn exempting(&self, key: &str) -> Option<Exempting> {
        let map = self.maps.get(bare(key)?)?;
        let source = bare(map.source)?;
        let geo = self.geos.get(source)?;
        let networks = geo.networks.iter();
        let networks = networks.map(|(network, value)| (*network, map.of(value)));
        let (default, networks): (_, Vec<_>) = (map.of(geo.default), networks.collect());
        // `exempt` fits only if other clients are limited by default and all limited clients have
        // the same
        // key.
        if default.is_empty() || networks.iter().any(|(_, key)| !["", default].contains(key)) {
            return None;
        }
        let (free, limited): (Vec<_>, Vec<_>) =
            networks.into_iter().partition(|(_, key)| key.is_empty());
        // In nginx the smallest network decides. `exempt` has no such rule for nested networks.
        let is_within =
            |(inner, _): &(IpNet, &str)| free.iter().any(|(outer, _)| outer.contains(inner));
        if free.is_empty() || limited.iter().any(is_within) {
            return None;
        }
        let networks = free.iter().map(|(network, _)| network.to_string());
        Some(Exempting {
            key: default.to_owned(),
            networks: networks.collect(),
            positions: [map.at.position(), geo.at.position()],
        })
    }
}

impl<'t> Map<'t> {
    /// Returns the result for a value, ignoring case.
    fn of(&self, value: &str) -> &'t str {
        let mut values = self.values.iter();
        let known = values.find(|(known, _)| known.eq_ignore_ascii_case(value));
        known.map_or(self.default, |(_, result)| *result)
    }
}

/// Returns a variable's name without `$` and braces; `None` if the text does not start with `$`.
fn bare(text: &str) -> Option<&str> {
    let name = text.strip_prefix('$')?;
    let inside = name.strip_prefix('{');
    let inside = inside.and_then(|name| name.strip_suffix('}'));
    Some(inside.unwrap_or(name))
}

fn geo<'t>(directive: &'t Directive<'t>) -> Option<(&'t str, Geo<'t>)> {
    let name = match &directive.args[..] {
        [name] => name,
        [source, name] if source == "$remote_addr" => name,
        _ => return None,
    };
    let mut geo = Geo {
        at: directive.at,
        default: "",
        networks: Vec::new(),
    };
    for entry in directive.block.as_deref()? {
        let [value] = &entry.args[..] else {
            return None;
        };
        if entry.name == "default" {
            geo.default = value;
            continue;
        }
        // Any other entry, such as `proxy` or `delete`, changes the meaning of the block.
        let network = network(&entry.name).filter(|network| !is_mapped(network))?;
        // nginx uses the last entry of a network that is named twice.
        geo.networks.retain(|(known, _)| *known != network);
        geo.networks.push((network, value));
    }
    Some((bare(name)?, geo))
}

/// Reads a map; `None` if it has patterns, escaped values, or `hostnames`.
fn map<'t>(directive: &'t Directive<'t>) -> Option<(&'t str, Map<'t>)> {
    let [source, name] = &directive.args[..] else {
        return None;
    };
    let mut map = Map {
        at: directive.at,
        source,
        default: "",
        values: Vec::new(),
    };
    for entry in directive.block.as_deref()? {
        match (&*entry.name, &entry.args[..]) {
            ("volatile", []) => {}
            ("default", [result]) => map.default = result,
            (value, [result]) if !value.starts_with(['~', '\\']) => {
                map.values.push((value, result));
            }
            _ => return None,
        }
    }
    Some((bare(name)?, map))
}
