use super::arrival::Arrival;
use crate::config::Route;

/// The route that a request takes: the longest matching path wins; of those with the same path one that names the host
/// before one that does not; then the first in the file.
pub(super) fn find<'a>(routes: &'a [Route], arrival: &Arrival) -> Option<(usize, &'a Route)> {
    let method = arrival.request.method().as_str();
    let takes = |route: &Route| {
        route.path.matches(&arrival.path)
            && route.host.as_ref().is_none_or(|host| *host == arrival.host)
            && (route.methods.is_empty() || route.methods.iter().any(|named| named == method))
    };
    let matching = routes.iter().enumerate().filter(|(_, route)| takes(route));
    // Of equals `max_by_key` takes the last, and the first is wanted.
    matching
        .rev()
        .max_by_key(|(_, route)| (route.path.precedence(), route.host.is_some()))
}
