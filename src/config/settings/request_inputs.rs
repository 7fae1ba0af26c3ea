//! Names of the request fields, cookies and query arguments that drip's decisions depend on.
//!
//! drip refuses or edits a request from which it and the origin could read different values.

use std::sync::Arc;

use super::{Matcher, MatcherInput};
use crate::spelling::{is_field, is_same_field};
use crate::{CostRule, KeyTemplate, Origin, Route, Variable, Zone};

/// Fields, cookies and query arguments that drip reads for a route.
///
/// The gateway and the origin must read the same value from them, or a client could bypass a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInputs {
    /// Inputs of this route.
    own: InputNames,
    /// Inputs of the conditions of all routes. They matter for this route, too: a request may reach
    /// it because it does not meet the conditions of another one.
    conditions: Arc<InputNames>,
}

/// Names of inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct InputNames {
    /// Field names as the file writes them, in lowercase.
    fields: Vec<String>,
    cookies: Vec<String>,
    /// Names of query arguments.
    arguments: Vec<String>,
}

impl InputNames {
    /// Collects the inputs of the conditions of all routes.
    pub(crate) fn of_conditions(routes: &[Route]) -> Self {
        let mut all = Self::default();
        all.add_conditions(routes.iter().flat_map(|route| &route.conditions));
        all
    }

    /// Adds the inputs of conditions, and removes duplicates.
    fn add_conditions<'m>(&mut self, conditions: impl IntoIterator<Item = &'m Matcher>) {
        for condition in conditions {
            let (names, name) = match &condition.input {
                MatcherInput::Header(name) => (&mut self.fields, name),
                MatcherInput::Cookie(name) => (&mut self.cookies, name),
                MatcherInput::Query(name) => (&mut self.arguments, name),
            };
            names.push(name.clone());
        }
        for names in [&mut self.fields, &mut self.cookies, &mut self.arguments] {
            names.sort();
            names.dedup();
        }
    }
}

impl RequestInputs {
    /// Collects the inputs of a route.
    ///
    /// These are the inputs of its limits, gate, waiting room, `collapse`, cost and conditions.
    /// `conditions`: inputs of the conditions of all routes.
    pub(crate) fn of(
        route: &Route,
        zones: &[Zone],
        origins: &[Origin],
        conditions: &Arc<InputNames>,
    ) -> Self {
        let origin = route.origin().and_then(|origin| origins.get(origin));
        let room = origin.filter(|_| route.asks_room);
        let room = room.and_then(|origin| origin.room.as_ref());
        let limits = route.limits.iter().map(|limit| limit.zone);
        let used_zones = limits
            .chain(origin.and_then(|origin| origin.share))
            .chain(room.and_then(|room| Some(room.draw.zone_limit()?.zone)));
        let keys = used_zones
            .filter_map(|zone| Some(&zones.get(zone)?.key))
            .chain(room.and_then(|room| room.bind.as_ref()))
            .chain(route.collapse.as_ref().map(|collapse| &collapse.key));
        let mut own = InputNames::default();
        let authorization = "authorization".to_owned();
        for variable in keys.flat_map(KeyTemplate::variables) {
            let (names, name) = match variable {
                Variable::Header(name) => (&mut own.fields, name),
                Variable::Jwt { .. } => (&mut own.fields, &authorization),
                Variable::Cookie(name) => (&mut own.cookies, name),
                Variable::Arg(name) => (&mut own.arguments, name),
                // Target, host and connection exist once per request.
                Variable::RemoteAddr
                | Variable::Host
                | Variable::Uri
                | Variable::RequestUri
                | Variable::RequestMethod
                | Variable::Scheme
                | Variable::ServerPort
                | Variable::SslClientVerify
                | Variable::SslClientFingerprint
                | Variable::SslClientSubject
                | Variable::SslClientSerial
                | Variable::Path(_) => continue,
            };
            names.push(name.clone());
        }
        let vary = route.collapse.iter().flat_map(|collapse| &collapse.vary);
        own.fields.extend(vary.cloned());
        if let CostRule::Header(cost) = &route.cost {
            own.fields.push(cost.header.clone());
        }
        own.add_conditions(&route.conditions);
        let conditions = Arc::clone(conditions);
        Self { own, conditions }
    }

    /// Returns whether a request may have this field at most once, if drip reads the field.
    ///
    /// The lines of the other fields form one list (RFC 9110, section 5.3), and a key contains all
    /// of them, or the field is checked elsewhere.
    #[rustfmt::skip]
    pub fn is_single(name: &str) -> bool {
        !matches!(
            name,
            "accept" | "accept-charset" | "accept-encoding" | "accept-language" | "cache-control"
                | "connection" | "cookie" | "forwarded" | "host" | "if-match" | "if-none-match"
                | "pragma" | "te" | "trailer" | "via" | "x-forwarded-for"
        )
    }

    /// Returns the fields that a request may have at most once.
    pub fn single_fields(&self) -> impl Iterator<Item = &str> {
        let fields = self.own.fields.iter().map(String::as_str);
        fields.filter(|name| Self::is_single(name))
    }

    /// Returns the names of the cookies that the route reads.
    pub fn cookies(&self) -> &[String] {
        &self.own.cookies
    }

    /// Returns the cookies that may reach the origin at most once.
    ///
    /// The first part is read by the route, the second part by conditions of any route.
    pub fn single_cookies(&self) -> [&[String]; 2] {
        [&self.own.cookies, &self.conditions.cookies]
    }

    /// Returns the names of the query arguments that the route reads.
    pub fn arguments(&self) -> &[String] {
        &self.own.arguments
    }

    /// Returns whether drip reads a field of this name, also for a condition of another route.
    ///
    /// `underscores`: whether `_` counts as `-`.
    pub fn reads(&self, name: &[u8], underscores: bool) -> bool {
        self.all_fields()
            .any(|known| is_field(known, name, underscores))
    }

    /// Returns whether some programs treat a field of this name as one that drip reads.
    ///
    /// An example is `X_Api_Key`, which CGI programs confuse with `X-Api-Key`.
    pub fn reads_similar_name(&self, name: &[u8]) -> bool {
        self.all_fields().any(|known| is_same_field(known, name))
    }

    /// Returns the names of all fields that drip reads, also for a condition of another route.
    fn all_fields(&self) -> impl Iterator<Item = &String> {
        self.own.fields.iter().chain(&self.conditions.fields)
    }
}
