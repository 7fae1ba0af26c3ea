//! Destination of a request: its route, and the origin of the route.

use config::Route;

/// Route of a request, and the index of the route's origin.
#[derive(Clone, Copy)]
pub(super) struct Destination<'a> {
    pub(super) route: &'a Route,
    /// Index of the origin in the settings.
    pub(super) origin: usize,
}
