//! Whether a request meets the conditions of a route.

use std::borrow::Cow;

use config::{Matcher, MatcherInput, Route, target};

use super::cookies;
use super::request_info::RequestInfo;
use crate::http::message::FieldName;

/// Whether a request meets the conditions of a route, and came to the address that it names.
pub(super) fn are_met(route: &Route, info: &RequestInfo<'_>) -> bool {
    let listen = route.listen.as_deref();
    let is_here = listen.is_none_or(|listen| info.peer.listener() == Some(listen));
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
