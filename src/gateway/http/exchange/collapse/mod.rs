//! Collapse: requests for the same resource share one answer. Configured by `[routes.collapse]`.
//!
//! A request gets here after its zones and before the gate of its origin. The rules are in
//! [`crate::collapse`].
//!
//! One request, the *leader*, fetches the answer from the origin. The other ones, its *followers*,
//! wait for that answer. `share` decides, `kind` builds the key, `lead` and `collector` run the
//! leader, `refresh` renews a stale answer.

mod collector;
mod kind;
mod lead;
mod own_copy;
mod refresh;
mod share;

pub(super) use lead::lead;
pub(super) use share::share;
