//! Translates the common way to exempt some clients: a geo or a map that makes their key empty.
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
use crate::import::notes::Place;
use crate::import::tree::Directive;

/// The translation of a zone's key.
pub(super) struct Exempting {
    /// The key of clients that are limited, as nginx writes it.
    pub(super) key: String,
    /// The networks of clients that are not limited.
    pub(super) networks: Vec<String>,
    /// The places in the file that say so.
    pub(super) places: Vec<Place>,
}

/// The variables of `geo` and `map`, by name without the `$`.
pub(super) struct Variables<'t> {
    geos: HashMap<&'t str, Geo<'t>>,
    maps: HashMap<&'t str, Map<'t>>,
}

/// A `geo` of the client's address.
struct Geo<'t> {
    place: Place,
    default: &'t str,
    networks: Vec<(IpNet, &'t str)>,
}

/// A `map` whose values are compared as a whole.
struct Map<'t> {
    place: Place,
    source: &'t str,
    default: &'t str,
    values: Vec<(&'t str, &'t str)>,
}

impl<'t> Variables<'t> {
    pub(super) fn read(http: &'t [Directive]) -> Self {
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
        // Clients that are not named must be limited, and all limited clients must have the same
        // key.
        if default.is_empty() || networks.iter().any(|(_, key)| !["", default].contains(key)) {
            return None;
        }
        let (free, limited): (Vec<_>, Vec<_>) =
            networks.into_iter().partition(|(_, key)| key.is_empty());
        // In nginx the smallest of nested networks decides. `exempt` has no such rule.
        let is_within =
            |(inner, _): &(IpNet, &str)| free.iter().any(|(outer, _)| outer.contains(inner));
        if free.is_empty() || limited.iter().any(is_within) {
            return None;
        }
        let networks = free.iter().map(|(network, _)| network.to_string());
        Some(Exempting {
            key: default.to_owned(),
            networks: networks.collect(),
            places: vec![map.place, geo.place],
        })
    }
}

impl<'t> Map<'t> {
    /// The result for a value. The comparison ignores case.
    fn of(&self, value: &str) -> &'t str {
        let mut values = self.values.iter();
        let known = values.find(|(known, _)| known.eq_ignore_ascii_case(value));
        known.map_or(self.default, |(_, result)| *result)
    }
}

/// The name of a variable without `$` and braces; `None` if the text does not start with `$`.
fn bare(text: &str) -> Option<&str> {
    let name = text.strip_prefix('$')?;
    let inside = name.strip_prefix('{');
    let inside = inside.and_then(|name| name.strip_suffix('}'));
    Some(inside.unwrap_or(name))
}

fn geo(directive: &Directive) -> Option<(&str, Geo<'_>)> {
    let name = match &directive.args[..] {
        [name] => name,
        [source, name] if source == "$remote_addr" => name,
        _ => return None,
    };
    let mut geo = Geo {
        place: directive.place,
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
        // If a network is named twice, nginx takes the last.
        geo.networks.retain(|(known, _)| *known != network);
        geo.networks.push((network, value));
    }
    Some((bare(name)?, geo))
}

/// A map; `None` if it has patterns, escaped values, or `hostnames`.
fn map(directive: &Directive) -> Option<(&str, Map<'_>)> {
    let [source, name] = &directive.args[..] else {
        return None;
    };
    let mut map = Map {
        place: directive.place,
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
