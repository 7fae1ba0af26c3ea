//! Translates a `map` that chooses the target of `proxy_pass`:
//!
//! ```nginx
//! map $http_x_version $app { default stable; 2 next; }
//! location / { proxy_pass http://$app; }
//! ```
//!
//! Each value becomes a route with `match`, and the default one without.

use std::collections::HashMap;

use super::pass::Pass;
use super::probe;
use super::scope::named;
use super::variables::{Variables, bare};
use crate::config::{toml_string, toml_text};
use crate::tools::import::notes::Place;
use crate::tools::import::tree::Directive;

/// Maximum number of values of a map. Each is a route.
const MAX_VALUES: usize = 100;

/// The targets among which a map chooses.
pub(super) struct Choices {
    /// The place of the map.
    pub(super) places: Vec<Place>,
    /// The target of requests that meet no condition.
    pub(super) default: String,
    /// Conditions in TOML with their targets, in the order in which they are compared.
    pub(super) values: Vec<(String, String)>,
    /// Whether drip decodes what is compared.
    pub(super) is_decoded: bool,
}

/// The maps that may choose, by the name of their variable.
#[derive(Default)]
pub(super) struct Choosers(HashMap<String, Chooser>);

/// A map, or two in a chain.
struct Chooser {
    source: String,
    default: String,
    values: Vec<(String, String)>,
    places: Vec<Place>,
}

impl Choosers {
    pub(super) fn read(http: &[Directive]) -> Self {
        let variables = Variables::read(http);
        let mut all = Self::default();
        for map in named(http, "map") {
            let name = map.arg(1);
            let resolved = variables.resolve(name);
            let Some((name, map)) = bare(name).zip(resolved.filter(|map| map.is_plain)) else {
                continue;
            };
            if map.values.len() <= MAX_VALUES {
                let pair =
                    |(value, result): &(&str, &str)| ((*value).to_owned(), (*result).to_owned());
                let chooser = Chooser {
                    source: map.source.to_owned(),
                    default: map.default.to_owned(),
                    values: map.values.iter().map(pair).collect(),
                    places: map.places,
                };
                all.0.insert(name.to_owned(), chooser);
            }
        }
        all
    }

    /// The targets of `proxy_pass`; `None` if no map chooses, or `match` cannot say how.
    pub(super) fn of(&self, pass: Pass) -> Option<Choices> {
        let target = pass.target();
        let (scheme, rest) = target.split_once("://").unwrap_or(("", target));
        let name = rest.strip_suffix("$request_uri").unwrap_or(rest);
        let map = self.0.get(bare(name)?)?;
        let to = |result: &str| {
            let is_fixed = !result.is_empty() && !result.contains('$');
            let whole = if scheme.is_empty() {
                result.to_owned()
            } else {
                format!("{scheme}://{result}")
            };
            // A URI in the target would replace that of the request.
            let address = whole.split_once("://")?.1;
            let is_address = address.starts_with("unix:") || !address.contains(['/', '?']);
            (is_fixed && is_address).then_some(whole)
        };
        let field = condition(&map.source)?;
        let mut values = Vec::new();
        let mut default = to(&map.default)?;
        let mut empty = None;
        for (value, result) in &map.values {
            if value.is_empty() {
                empty.get_or_insert(to(result)?);
            } else {
                let condition = format!("{field} = {}", compared(value));
                // nginx compares without regard to case, and the first one counts.
                if values.iter().all(|(known, _)| *known != condition) {
                    values.push((condition, to(result)?));
                }
            }
        }
        if let Some(empty) = empty {
            // What is not there is empty for nginx, and meets no condition of drip.
            let other = std::mem::replace(&mut default, empty);
            values.push((format!("{field} = \"regex:(?s).\""), other));
        }
        let is_known = |(condition, _): &(String, String)| probe::matches(condition);
        values.iter().all(is_known).then(|| Choices {
            places: map.places.clone(),
            is_decoded: !map.source.starts_with("$http_"),
            default,
            values,
        })
    }
}

/// What `match` compares for a variable of nginx, as a key in TOML.
fn condition(source: &str) -> Option<String> {
    let name = bare(source)?;
    let kinds = [
        ("http_", "header"),
        ("arg_", "query"),
        ("cookie_", "cookie"),
    ];
    let (kind, name) = kinds
        .iter()
        .find_map(|(prefix, kind)| Some((*kind, name.strip_prefix(prefix)?)))?;
    let name = if kind == "header" {
        name.replace('_', "-")
    } else {
        name.to_owned()
    };
    Some(toml_string(&format!("{kind}:{name}")))
}

/// The condition for a value of a map, as a text in TOML.
fn compared(value: &str) -> String {
    let has_letters = value.bytes().any(|byte| byte.is_ascii_alphabetic());
    if has_letters || value.starts_with("regex:") {
        toml_text(&format!("regex:(?i)^{}\\z", regex::escape(value)))
    } else {
        toml_text(value)
    }
}
