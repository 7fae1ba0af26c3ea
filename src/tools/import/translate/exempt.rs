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
use crate::import::notes::{Position, SourceLocation};
use crate::import::tree::Directive;

/// Variable that a `geo` reads if it names none.
const CLIENT: &str = "$remote_addr";

/// A zone's key, and the networks of clients that the zone does not limit.
pub(super) struct Exemption {
    /// The key of limited clients, as nginx writes it.
    pub(super) key: String,
    /// The networks of exempt clients.
    pub(super) networks: Vec<String>,
    /// Positions of the map and the geo that it translates.
    pub(super) positions: [Position; 2],
}

/// The variables of `geo` and `map`, by name without the `$`.
pub(super) struct Variables<'t> {
    geos: HashMap<&'t str, Table<'t>>,
    maps: HashMap<&'t str, Table<'t>>,
}

/// A `geo` or `map`: the values of its variable, by the values of a source variable.
struct Table<'t> {
    at: SourceLocation<'t>,
    /// Name of the source variable, with its `$`.
    source: &'t str,
    default: &'t str,
    /// Values of the source variable, or networks in a geo, each with the value of the variable.
    entries: Vec<(&'t str, &'t str)>,
}

impl<'t> Variables<'t> {
    /// Reads the variables of `http`, the block around all servers.
    pub(super) fn read(http: &'t [Directive<'t>]) -> Self {
        let read = |title| named(http, title).filter_map(Table::read).collect();
        Self {
            geos: read("geo"),
            maps: read("map"),
        }
    }

    /// Translates a key that is one variable of a map over a geo.
    ///
    /// Returns `None` for any other key, and if drip's field `exempt` cannot express the networks.
    pub(super) fn exemption(&self, key: &str) -> Option<Exemption> {
        let map = self.maps.get(variable_name(key)?)?;
        let geo = self.geos.get(variable_name(map.source)?)?;
        let is_pattern = |(value, _): &(&str, &str)| value.starts_with(['~', '\\']);
        if geo.source != CLIENT || map.entries.iter().any(is_pattern) {
            return None;
        }
        // Any entry that is no network, such as `proxy` or `delete`, changes the meaning of a geo.
        // Networks of clients, each with their key.
        let mut networks: Vec<(IpNet, &str)> = Vec::new();
        for (text, value) in &geo.entries {
            let network = network(text).filter(|network| !is_mapped(network))?;
            // nginx uses the last entry of a network that is named twice.
            networks.retain(|(known, _)| *known != network);
            networks.push((network, map.value(value)));
        }
        // An empty key exempts a client. All limited clients must have the same key.
        let default_key = map.value(geo.default);
        if default_key.is_empty()
            || networks
                .iter()
                .any(|(_, key)| !["", default_key].contains(key))
        {
            return None;
        }
        let (exempt, limited): (Vec<_>, Vec<_>) =
            networks.into_iter().partition(|(_, key)| key.is_empty());
        // In nginx the smallest network decides. `exempt` has no such rule for nested networks.
        let is_in_exempt =
            |(inner, _): &(IpNet, &str)| exempt.iter().any(|(outer, _)| outer.contains(inner));
        if exempt.is_empty() || limited.iter().any(is_in_exempt) {
            return None;
        }
        let networks = exempt.iter().map(|(network, _)| network.to_string());
        Some(Exemption {
            key: default_key.to_owned(),
            networks: networks.collect(),
            positions: [map.at.position(), geo.at.position()],
        })
    }
}

impl<'t> Table<'t> {
    /// Reads a block, with its variable; `None` if an entry is not a name and a value.
    fn read(directive: &'t Directive<'t>) -> Option<(&'t str, Self)> {
        let (source, variable) = match &directive.args[..] {
            [variable] => (CLIENT, variable),
            [source, variable] => (&**source, variable),
            _ => return None,
        };
        let mut table = Self {
            at: directive.at,
            source,
            default: "",
            entries: Vec::new(),
        };
        for entry in directive.block.as_deref()? {
            match (&*entry.name, &entry.args[..]) {
                ("volatile", []) => {}
                ("default", [value]) => table.default = value,
                (name, [value]) => table.entries.push((name, value)),
                _ => return None,
            }
        }
        Some((variable_name(variable)?, table))
    }

    /// Returns the value of the variable for a value of the source variable, ignoring case.
    fn value(&self, source_value: &str) -> &'t str {
        let mut entries = self.entries.iter();
        let found = entries.find(|(name, _)| name.eq_ignore_ascii_case(source_value));
        found.map_or(self.default, |(_, value)| *value)
    }
}

/// Returns a variable's name without `$` and braces; `None` if the text does not start with `$`.
fn variable_name(text: &str) -> Option<&str> {
    let name = text.strip_prefix('$')?;
    let in_braces = name
        .strip_prefix('{')
        .and_then(|name| name.strip_suffix('}'));
    Some(in_braces.unwrap_or(name))
}
