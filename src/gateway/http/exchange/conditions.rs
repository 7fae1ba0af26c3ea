//! Which route takes a request.

use std::borrow::Cow;

use config::{Matcher, MatcherInput, Route, target};

use super::cookies;
use super::request_info::RequestInfo;
use crate::http::gateway::Gateway;
use crate::http::message::FieldName;

/// Returns the route that takes a request with this method, and its index.
pub(super) fn find_route<'g>(
    gateway: &'g Gateway,
    info: &RequestInfo<'_>,
    method: &[u8],
) -> Option<(usize, &'g Route)> {
    gateway.route(&info.path, &info.host, method, |route| are_met(route, info))
}

/// Whether a request meets the conditions of a route, and came to the address that it names.
fn are_met(route: &Route, info: &RequestInfo<'_>) -> bool {
    let listen = route.listen.as_deref();
    let is_here = listen.is_none_or(|listen| info.peer().listener() == Some(listen));
    is_here && route.conditions.iter().all(|it| is_met(it, info))
}

/// Whether a condition is met, or would be to some programs.
///
/// Who finds the route refuses a request that is read in two ways: the route reads the same.
fn is_met(condition: &Matcher, info: &RequestInfo<'_>) -> bool {
    let value = match &condition.input {
        MatcherInput::Header(name) if name == "host" => info.head.named_host().map(Cow::Borrowed),
        MatcherInput::Header(name) => info.as_forwarded(name),
        MatcherInput::Query(name) => target::given_argument(info.query(), name),
        MatcherInput::Cookie(name) => cookies::value(info.fields().all(FieldName::Cookie), name),
    };
    condition.is_met_by(value.as_deref()) || info.is_ambiguous(&condition.input)
}
