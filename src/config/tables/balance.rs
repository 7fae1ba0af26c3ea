//! `balance` of `[origins.NAME]`: how one of several servers is chosen.

use std::fmt;

use super::prelude::*;
use super::zone::varying_key;
use crate::KeyTemplate;

/// Policy by which an origin chooses one of its servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Balance {
    /// `"least_in_flight"`: the server with the fewest requests in flight relative to its weight.
    LeastInFlight,
    /// `"hash:$cookie_session"`: the server that the key of the request hashes to, while it is in
    /// use.
    ///
    /// The template is never constant.
    Hash(KeyTemplate),
}

const BY_LOAD: &str = "least_in_flight";
const BY_KEY: &str = "hash:";

pub(super) const BALANCE: Kind<Balance> = kind(
    Form::Like("least_in_flight|hash:(.|\\n)+"),
    read,
    // A key has its own variables, and none of the environment.
    |it| bare(&toml_string(&it.to_string())),
);

fn read(node: Node) -> Option<Balance> {
    const WHAT: &str =
        "\"least_in_flight\", or \"hash:\" with a key behind it, such as \"hash:$cookie_session\"";
    let text = node.value.as_str();
    if text == Some(BY_LOAD) {
        return Some(Balance::LeastInFlight);
    }
    let Some(text) = text.and_then(|text| text.strip_prefix(BY_KEY)) else {
        return node.expected(WHAT);
    };
    let why = "all requests have one key, and go to one server; name one such as \"hash:$cookie_session\"";
    varying_key(node, text, why).map(Balance::Hash)
}

/// Writes the value as in the file.
impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeastInFlight => f.write_str(BY_LOAD),
            Self::Hash(key) => write!(f, "{BY_KEY}{key}"),
        }
    }
}
