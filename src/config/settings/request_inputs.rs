use super::CostRule;
use crate::config::spelling::{is_field, is_same_field};
use crate::config::{KeyTemplate, Origin, Part, Route, Variable, Zone};

/// What the limits and `collapse` of a route read from the fields and the query of a request.
///
/// A client must not be able to say one thing to the gateway and another to the origin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInputs {
    /// Names of fields as the file writes them, in lowercase.
    fields: Vec<String>,
    /// Names of cookies.
    cookies: Vec<String>,
    /// Names of arguments of the query.
    arguments: Vec<String>,
}

/// Fields whose lines make one list (RFC 9110, section 5.3), or that are checked elsewhere.
///
/// Their lines are joined in a key.
const LISTS: [&str; 16] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "connection",
    "cookie",
    "forwarded",
    "host",
    "if-match",
    "if-none-match",
    "pragma",
    "te",
    "trailer",
    "via",
    "x-forwarded-for",
];

impl RequestInputs {
    /// What the limits, the gate, the waiting room, `collapse` and the cost of a route read.
    pub(in crate::config) fn of(route: &Route, zones: &[Zone], origins: &[Origin]) -> Self {
        let origin = route.origin().and_then(|origin| origins.get(origin));
        let limits = route.limits.iter().map(|limit| limit.zone);
        let used = limits.chain(origin.and_then(|origin| origin.share));
        let room = origin.filter(|_| route.asks_room);
        let room = room.and_then(|origin| origin.room.as_ref());
        let used = used.chain(room.and_then(|room| Some(room.draw?.zone)));
        let keys = used.filter_map(|zone| Some(&zones.get(zone)?.key));
        let keys = keys.chain(room.and_then(|room| room.bind.as_ref()));
        let keys = keys.chain(route.collapse.as_ref().map(|collapse| &collapse.key));
        let mut inputs = Self::default();
        let authorization = "authorization".to_owned();
        for part in keys.flat_map(KeyTemplate::parts) {
            let (names, name) = match part {
                Part::Variable(Variable::Header(name)) => (&mut inputs.fields, name),
                Part::Variable(Variable::Jwt { .. }) => (&mut inputs.fields, &authorization),
                Part::Variable(Variable::Cookie(name)) => (&mut inputs.cookies, name),
                Part::Variable(Variable::Arg(name)) => (&mut inputs.arguments, name),
                Part::Variable(
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
                    | Variable::Path(_),
                )
                | Part::Text(_) => continue,
            };
            names.push(name.clone());
        }
        let vary = route.collapse.iter().flat_map(|collapse| &collapse.vary);
        inputs.fields.extend(vary.cloned());
        if let CostRule::Header { name, .. } = &route.cost {
            inputs.fields.push(name.clone());
        }
        for names in [
            &mut inputs.fields,
            &mut inputs.cookies,
            &mut inputs.arguments,
        ] {
            names.sort();
            names.dedup();
        }
        inputs
    }

    /// The fields that a request has at most once.
    pub fn single_fields(&self) -> impl Iterator<Item = &str> {
        let fields = self.fields.iter().map(String::as_str);
        fields.filter(|name| !LISTS.contains(name))
    }

    /// The cookies.
    #[must_use]
    pub fn cookies(&self) -> &[String] {
        &self.cookies
    }

    /// The arguments.
    #[must_use]
    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// Whether a field of this name is read.
    ///
    /// `underscores`: `_` counts as `-`.
    #[must_use]
    pub fn reads(&self, name: &[u8], underscores: bool) -> bool {
        let mut fields = self.fields.iter();
        fields.any(|known| is_field(known, name, underscores))
    }

    /// Whether some programs take a field of this name for one that is read.
    #[must_use]
    pub fn seem_to_read(&self, name: &[u8]) -> bool {
        self.fields.iter().any(|known| is_same_field(known, name))
    }
}
