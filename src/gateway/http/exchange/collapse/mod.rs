//! Requests for the same thing wait for the answer of one of them: `[routes.collapse]`.
//!
//! A request comes here with its turns in the zones, before the gate of the origin. The rules are in
//! [`crate::collapse`].

mod collector;
mod kind;
mod lead;
mod own_copy;
mod refresh;
mod share;

pub(super) use lead::lead;
pub(super) use share::share;
