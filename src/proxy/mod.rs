//! A request's way through the gateway: find its route, take its key, wait for its turn, forward it to the origin.

mod client;
mod handler;
mod headers;
mod key;
pub mod origin;
mod reply;
mod routes;
mod worker;

pub use handler::handle;
pub use worker::Worker;
