//! `balance` of `[origins.NAME]`: the policy by which an origin chooses one of its servers.
//!
//! `kinds` explains kinds of values such as `BALANCE`.

use std::fmt;

use super::prelude::*;
use super::zone::varying_key;
use crate::KeyTemplate;

/// Policy by which an origin chooses the server for a request.
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

/// The whole value of the field, for [`Balance::LeastInFlight`].
const BY_LOAD: &str = "least_in_flight";
/// Text before the key, for [`Balance::Hash`].
const BY_KEY: &str = "hash:";

/// Value of `balance`.
pub(super) const BALANCE: Kind<Balance> = Kind {
    form: Form::Regex("least_in_flight|hash:(.|\\n)+"),
    read,
    // Not escaped: a `$` in a key begins a variable of the request, not of the environment.
    show: |it| show_bare(&toml_string(&it.to_string())),
};

/// Reads `balance`.
fn read(node: Node) -> Option<Balance> {
    const WHAT: &str =
        "\"least_in_flight\", or \"hash:\" with a key behind it, such as \"hash:$cookie_session\"";
    let text = node.value.as_str();
    if text == Some(BY_LOAD) {
        return Some(Balance::LeastInFlight);
    }
    let Some(text) = text.and_then(|text| text.strip_prefix(BY_KEY)) else {
        return node.report_expected(WHAT);
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
