//! The variables that `geo` and `map` define.

use std::collections::HashMap;
use std::net::IpAddr;

use ipnet::IpNet;

use super::scope::named;
use crate::config::{KeyTemplate, Part, Variable};
use crate::tools::import::notes::Place;
use crate::tools::import::tree::Directive;

/// The variables of `geo` and `map`, by name without the `$`.
pub(super) struct Variables<'t> {
    pub(super) geos: HashMap<&'t str, Geo<'t>>,
    maps: HashMap<&'t str, Map<'t>>,
}

/// A `geo` of the client's address.
pub(super) struct Geo<'t> {
    pub(super) place: Place,
    pub(super) default: &'t str,
    pub(super) networks: Vec<(IpNet, &'t str)>,
}

/// A `map`.
pub(super) struct Map<'t> {
    pub(super) place: Place,
    pub(super) source: &'t str,
    pub(super) default: &'t str,
    pub(super) values: Vec<(&'t str, &'t str)>,
    /// Whether all its values are compared as a whole. Patterns are not translated.
    pub(super) is_plain: bool,
}

/// What a variable is for each value of a source that is no map: one map, or two in a chain.
pub(super) struct Resolved<'t> {
    pub(super) source: &'t str,
    pub(super) default: &'t str,
    pub(super) values: Vec<(&'t str, &'t str)>,
    /// The places of the maps.
    pub(super) places: Vec<Place>,
    pub(super) is_plain: bool,
}

impl<'t> Variables<'t> {
    pub(super) fn read(http: &'t [Directive]) -> Self {
        let geos = named(http, "geo").filter_map(geo).collect();
        let maps = named(http, "map").filter_map(map).collect();
        Self { geos, maps }
    }

    /// The map that defines a key of one variable.
    pub(super) fn map(&self, key: &str) -> Option<&Map<'t>> {
        self.maps.get(bare(key)?)
    }

    /// Resolves a key of one variable. `None` if no map defines it, or if a geo decides.
    pub(super) fn resolve(&self, key: &str) -> Option<Resolved<'t>> {
        let map = self.map(key)?;
        let first = self.map(map.source).unwrap_or(map);
        let is_defined = |name| self.maps.contains_key(name) || self.geos.contains_key(name);
        if is_defined(bare(first.source)?) {
            return None;
        }
        if std::ptr::eq(first, map) {
            return Some(Resolved {
                source: map.source,
                default: map.default,
                values: map.values.clone(),
                places: vec![map.place],
                is_plain: map.is_plain,
            });
        }
        let results = map.by_lowercase();
        let of = |value: &str| {
            let result = results.get(&value.to_ascii_lowercase());
            result.copied().unwrap_or(map.default)
        };
        let values = first.values.iter();
        let is_text = |result: &str| !result.contains('$');
        let is_plain = map.is_plain
            && first.is_plain
            && is_text(first.default)
            && values.clone().all(|(_, result)| is_text(result));
        Some(Resolved {
            source: first.source,
            default: of(first.default),
            values: values.map(|(value, result)| (*value, of(result))).collect(),
            places: vec![first.place, map.place],
            is_plain,
        })
    }
}

impl<'t> Map<'t> {
    /// The result for a value. The comparison ignores case.
    pub(super) fn of(&self, value: &str) -> &'t str {
        let known = self
            .values
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(value));
        known.map_or(self.default, |(_, result)| *result)
    }

    /// The results by value in lowercase.
    fn by_lowercase(&self) -> HashMap<String, &'t str> {
        let mut results = HashMap::new();
        for (value, result) in &self.values {
            results.entry(value.to_ascii_lowercase()).or_insert(*result);
        }
        results
    }
}

/// The name of a variable without `$` and braces; `None` if the text does not start with `$`.
pub(super) fn bare(text: &str) -> Option<&str> {
    let name = text.strip_prefix('$')?;
    let inside = name
        .strip_prefix('{')
        .and_then(|name| name.strip_suffix('}'));
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
        let network = entry.name.parse::<IpNet>();
        let network = network.or_else(|_| entry.name.parse::<IpAddr>().map(IpNet::from));
        let network = network.ok()?.trunc();
        if matches!(network, IpNet::V6(network) if network.addr().to_ipv4_mapped().is_some()) {
            return None;
        }
        // If a network is named twice, nginx takes the last.
        geo.networks.retain(|(known, _)| *known != network);
        geo.networks.push((network, value));
    }
    Some((bare(name)?, geo))
}

fn map(directive: &Directive) -> Option<(&str, Map<'_>)> {
    let [source, name] = &directive.args[..] else {
        return None;
    };
    let mut map = Map {
        place: directive.place,
        source,
        default: "",
        values: Vec::new(),
        is_plain: true,
    };
    for entry in directive.block.as_deref()? {
        match (&*entry.name, &entry.args[..]) {
            ("volatile", []) => {}
            ("default", [result]) => map.default = result,
            (value, [result]) if !value.starts_with(['~', '\\']) => {
                map.values.push((value, result));
            }
            // Patterns, escaped values, and `hostnames`.
            _ => map.is_plain = false,
        }
    }
    Some((bare(name)?, map))
}

/// The first variable that is another one in nginx, if it has it: its own tokens, and what a file
/// sets.
pub(super) fn of_drip_alone(template: &KeyTemplate) -> Option<&Variable> {
    template.parts().iter().find_map(|part| match part {
        Part::Variable(variable @ (Variable::Jwt { .. } | Variable::Path(_))) => Some(variable),
        Part::Variable(_) | Part::Text(_) => None,
    })
}
