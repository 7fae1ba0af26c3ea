use actix_web::dev::RequestHead;

use crate::config::Route;

/// The route that a request takes: the longest matching path wins; of those with the same path one that names the
/// host before one that does not; then the first in the file.
pub(super) fn find<'a>(
    routes: &'a [Route],
    head: &RequestHead,
    host: &str,
) -> Option<(usize, &'a Route)> {
    let path = head.uri.path();
    let takes = |route: &Route| {
        route.path.matches(path)
            && route.host.as_deref().is_none_or(|named| named == host)
            && (route.methods.is_empty()
                || route
                    .methods
                    .iter()
                    .any(|method| method == head.method.as_str()))
    };
    let matching = routes.iter().enumerate().filter(|(_, route)| takes(route));
    // Of equals `max_by_key` takes the last, and the first is wanted.
    matching
        .rev()
        .max_by_key(|(_, route)| (route.path.precedence(), route.host.is_some()))
}
