//! Recognizes maps that make one tier of clients each.
//!
//! A zone of nginx has one rate, so each tier has a zone, and a map that gives the keys of the
//! other tiers no key there:
//!
//! ```nginx
//! map $http_x_api_key $gold { default ""; alice $http_x_api_key; }
//! map $http_x_api_key $free { default $http_x_api_key; alice ""; }
//! limit_req_zone $gold zone=gold:10m rate=100r/s;
//! limit_req_zone $free zone=free:10m rate=10r/s;
//! ```

use std::collections::{HashMap, HashSet};

use super::definition::{self, Definition};
use super::plans::Plan;
use super::variables::{Resolved, Variables};
use crate::config::{KeyTemplate, toml_string};
use crate::tools::import::notes::Place;

/// Most keys that the plans of a zone have.
const MAX_KEYS: usize = 1_000_000;
/// Longest key of a plan, in bytes.
const MAX_KEY_SIZE: usize = 65_535;

/// A zone whose key is a variable of a map.
pub(super) struct TierZone<'t> {
    pub(super) definition: Definition<'t>,
    /// The variable that the map looks at.
    pub(super) source: KeyTemplate,
    pub(super) role: Result<Role<'t>, Unclear>,
    /// Whether the map gives a key only to those that it names.
    pub(super) is_for_named: bool,
    /// The places of the maps.
    pub(super) places: Vec<Place>,
}

/// The role of a zone among the tiers of one source.
pub(super) enum Role<'t> {
    /// It limits all keys but these.
    Base(Vec<&'t str>),
    /// It limits only these keys.
    Plan(Vec<&'t str>),
}

/// Why a zone has no role among tiers.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unclear {
    #[error(
        "its map has patterns or variables, which plans do not have; write a plan by hand, with its keys in keys or in a file"
    )]
    Patterns,
    #[error(
        "its map looks at {source_key} and gives the key \"{other}\", where a plan looks at the key itself; write a zone with one key and its plans by hand"
    )]
    OtherKey {
        source_key: KeyTemplate,
        other: String,
    },
}

impl<'t> TierZone<'t> {
    /// `None` if the zone's key is no variable of a map that looks at a variable of drip.
    ///
    /// Also if its rate is wrong.
    pub(super) fn of(definition: Definition<'t>, variables: &Variables<'t>) -> Option<Self> {
        definition.rate().ok()?;
        let map = variables.resolve(definition.key)?;
        let source = map.source.parse().ok()?;
        Some(Self {
            definition,
            role: role(&map, &source),
            source,
            is_for_named: map.default.is_empty(),
            places: map.places,
        })
    }
}

fn role<'t>(map: &Resolved<'t>, source: &KeyTemplate) -> Result<Role<'t>, Unclear> {
    if !map.is_plain {
        return Err(Unclear::Patterns);
    }
    let is_source =
        |result: &str| result == map.source || definition::key(result).as_ref() == Ok(source);
    let results = map.values.iter().map(|(_, result)| *result);
    let mut results = std::iter::once(map.default).chain(results);
    if let Some(other) = results.find(|result| !result.is_empty() && !is_source(result)) {
        return Err(Unclear::OtherKey {
            source_key: source.clone(),
            other: other.to_owned(),
        });
    }
    let is_base = !map.default.is_empty();
    // Requests without a value have no key, here and there.
    let named = map.values.iter().filter(|(value, _)| !value.is_empty());
    let keys = named.filter(|(_, result)| result.is_empty() == is_base);
    let keys = keys.map(|(value, _)| *value).collect();
    Ok(if is_base {
        Role::Base(keys)
    } else {
        Role::Plan(keys)
    })
}

/// Checks that the keys that the base leaves out are those of the plans, each of one plan.
///
/// # Errors
///
/// Returns what is unclear.
pub(super) fn match_keys(
    (base, left_out): &(&str, Vec<&str>),
    plans: &[Plan],
) -> Result<(), String> {
    let lower = |key: &&str| key.to_ascii_lowercase();
    let left_out_here: HashSet<String> = left_out.iter().map(lower).collect();
    let mut zone_of: HashMap<String, &str> = HashMap::new();
    for (plan, key) in plans
        .iter()
        .flat_map(|plan| plan.keys.iter().map(move |key| (plan, key)))
    {
        let zone = plan.definition.name;
        if key.len() > MAX_KEY_SIZE {
            return Err(format!("{}... is longer than a key of a plan", shown(key)));
        }
        let other = if left_out_here.contains(&lower(key)) {
            zone_of.insert(lower(key), zone)
        } else {
            Some(*base)
        };
        if let Some(other) = other.filter(|other| *other != zone) {
            return Err(format!(
                "{} is a key of zone {other} and of zone {zone}",
                shown(key)
            ));
        }
    }
    if zone_of.len() > MAX_KEYS {
        return Err(format!("there are over {MAX_KEYS} keys"));
    }
    let mut left_out = left_out.iter();
    match left_out.find(|key| !zone_of.contains_key(&lower(key))) {
        None => Ok(()),
        Some(key) => Err(format!(
            "zone {base} leaves out {}, which is in no other zone (a plan with rate = \"none\" limits nothing)",
            shown(key)
        )),
    }
}

/// A key in a note.
fn shown(key: &str) -> String {
    toml_string(&key.chars().take(60).collect::<String>())
}
