//! Destination of a request: its route, and the origin of the route.

use config::Route;

/// Route of a request, and the index of the route's origin.
#[derive(Clone, Copy)]
pub(super) struct Destination<'a> {
    pub(super) route: &'a Route,
    pub(super) origin: usize,
}
