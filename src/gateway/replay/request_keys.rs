//! Routes and keys of replayed requests, by the gateway's own rules.
//!
//! A trace lacks some data of a request, so some conditions and variables are unknown.

use std::collections::BTreeSet;
use std::io::Write;

use config::{
    MAX_KEY_SIZE, Matcher, MatcherInput, Route, RouteIndex, Settings, Variable, Zone, cut_ipv6,
    target,
};

use super::line::{Line, Recorded};

/// Finds the route and the keys of the requests of a trace.
pub(super) struct RequestKeys<'a> {
    settings: &'a Settings,
    route_index: RouteIndex,
    /// Variables that keys need but the trace does not contain.
    pub(super) missing_variables: BTreeSet<String>,
}

impl<'a> RequestKeys<'a> {
    pub(super) fn new(settings: &'a Settings) -> Self {
        Self {
            settings,
            route_index: RouteIndex::new(&settings.routes),
            missing_variables: BTreeSet::new(),
        }
    }

    /// Returns the route of a request; `None` if no route matches or the request would be refused.
    ///
    /// The gateway refuses a request if its route says so, if its method is not in capitals, or if
    /// an argument that is read occurs twice.
    pub(super) fn route(&self, line: &Line) -> Option<&'a Route> {
        let method = line.recorded.as_ref().map(|recorded| &*recorded.method);
        if method.is_some_and(has_lowercase_letters) {
            return None;
        }
        let (routes, path) = (&self.settings.routes, target::path(line.path.as_bytes()));
        let method = method.map(str::as_bytes);
        let meets = |route: &Route| meets_conditions(route, line);
        let index = self.route_index.find(routes, &path, None, method, meets)?;
        let route = routes.get(index)?;
        let query = line.recorded.as_ref().map_or("", Recorded::query);
        let is_twice = |name: &String| target::has_several(query.as_bytes(), name);
        let is_ambiguous = route.inputs.arguments().iter().any(is_twice);
        route.origin().filter(|_| !is_ambiguous).map(|_| route)
    }

    /// Returns the key that a zone limits; `None` if it is empty or the client is exempt.
    pub(super) fn find_limited_key(
        &mut self,
        zone: &Zone,
        route: &Route,
        line: &Line,
    ) -> Option<Box<[u8]>> {
        let client = line.recorded.as_ref().and_then(|recorded| recorded.client);
        if line.key.is_none() && client.is_some_and(|client| zone.is_exempt(client)) {
            return None;
        }
        let key = self.find_key(zone, route, line);
        (!key.is_empty()).then(|| key.into_boxed_slice())
    }

    /// Returns the key for a zone, even if the client is exempt.
    ///
    /// A long key is truncated, as in the gateway.
    pub(super) fn find_key(&mut self, zone: &Zone, route: &Route, line: &Line) -> Vec<u8> {
        // The key of the trace, or else the logged key, or else a key from the zone's template.
        let mut key = match (&line.key, &line.recorded) {
            (Some(key), _) => key.to_vec(),
            (None, Some(recorded)) => match recorded.decided() {
                Some((decided, key)) if *decided == zone.name => key.into_owned(),
                _ => zone.key.fill(|variable, key| {
                    if let Variable::Path(group) = variable {
                        let path = target::path(line.path.as_bytes());
                        key.extend_from_slice(route.path.capture(&path, group));
                    } else if !add_to_key(key, variable, zone.ipv6_prefix, line, recorded) {
                        self.missing_variables.insert(variable.to_string());
                    }
                }),
            },
            (None, None) => Vec::new(),
        };
        key.truncate(MAX_KEY_SIZE);
        key
    }
}

/// Returns whether the request of a line is known to meet the conditions of a route.
///
/// A log has the query, but no other field, no cookie, and not the listener of the client.
fn meets_conditions(route: &Route, line: &Line) -> bool {
    let query = line.recorded.as_ref().map_or("", Recorded::query);
    let query = query.as_bytes();
    let is_met = |condition: &Matcher| match &condition.input {
        // As in the gateway: if the argument occurs twice, the route matches and then refuses the
        // request.
        MatcherInput::Query(name) => {
            condition.is_met_by(target::given_argument(query, name).as_deref())
                || target::has_several(query, name)
        }
        MatcherInput::Header(_) | MatcherInput::Cookie(_) => false,
    };
    route.listen.is_none() && route.conditions.iter().all(is_met)
}

/// Returns whether this is a word with lower-case letters, so a method that the gateway refuses.
///
/// Anything else is a part of invalid HTTP.
fn has_lowercase_letters(method: &str) -> bool {
    let is_word = method.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_word && method.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// Appends the value of `variable` for a recorded request to `key`.
///
/// IPv6 addresses are reduced to `ipv6_prefix` bits. Returns `false` if an access log does not
/// contain the variable.
pub fn add_to_key(
    key: &mut Vec<u8>,
    variable: &Variable,
    ipv6_prefix: u8,
    line: &Line,
    recorded: &Recorded,
) -> bool {
    match variable {
        Variable::RemoteAddr => {
            let Some(client) = recorded.client else {
                return false;
            };
            // Writing to memory cannot fail.
            let _ = write!(key, "{}", cut_ipv6(client, ipv6_prefix));
        }
        Variable::RequestMethod => key.extend_from_slice(recorded.method.as_bytes()),
        Variable::RequestUri => key.extend_from_slice(recorded.target.as_bytes()),
        Variable::Uri => key.extend_from_slice(&target::path(line.path.as_bytes())),
        Variable::Header(name) if name == "referer" => {
            key.extend_from_slice(recorded.referer.as_bytes());
        }
        Variable::Header(name) if name == "user-agent" => {
            key.extend_from_slice(recorded.user_agent.as_bytes());
        }
        Variable::Arg(name) => {
            key.extend_from_slice(&target::argument(recorded.query().as_bytes(), name));
        }
        _ => return false,
    }
    true
}
