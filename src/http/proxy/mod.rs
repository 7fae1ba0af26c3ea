//! A request's way through the gateway: find its route, take its key, wait for its turn, forward it
//! to the origin.

mod answer;
mod client;
mod download;
mod forward;
mod handler;
mod heads;
mod key;
mod limits;
mod ratelimit_headers;
mod record;
mod reply;
mod request_info;
mod tunnel;
mod upload;
mod worker;

pub use worker::Worker;
